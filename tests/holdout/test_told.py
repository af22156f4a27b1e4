"""What is told over single rows, through a holdout: scores, comparisons, gates, batches."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import holdfast as hf
from holdfast import randomness
from holdfast.engines.source import Limits
from holdfast.errors import Exhausted, InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.tokens import Asker
from holdfast.protocols.answers import AT_SHARES, ROWS, RULE, Told, bar_ends, number
from tests.holdout.tables import refusing

ROWS_IN_ALL = 5_000


def rows(seed: int = 1, size: int = ROWS_IN_ALL) -> pd.DataFrame:
    """Rows with a label, a number in [0, 1] and a group."""
    chance = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "row": np.arange(size),
            "x": chance.random(size),
            "group": chance.choice(["a", "b", "c"], size),
            "y": chance.integers(0, 2, size),
            "luck": chance.random(size),
        }
    )


def right(frame: pd.DataFrame, share: float, *, luck: str = "luck") -> pd.DataFrame:
    """Predictions that are right on so many rows: the luckiest, so that models are alike."""
    predicted = np.where(frame[luck] < share, frame.y, 1 - frame.y)
    return pd.DataFrame({"row": frame.row, "prediction": predicted})


FRAME = rows()


@pytest.fixture(autouse=True)
def the_same_split(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Which rows are sealed is no matter of chance here: by chance a guess may be a surprise."""
    words = np.random.Philox(zlib.crc32(request.node.name.encode()))
    monkeypatch.setattr(randomness, "_from_system", words.random_raw)
    monkeypatch.setattr(randomness.system_entropy(), "_reserve", randomness._Reserve((0, 0)))


@pytest.fixture
def holdout(tmp_path: Path) -> Iterator[Holdout]:
    with made(tmp_path / "h", FRAME) as opened:
        yield opened


def made(path: Path, frame: pd.DataFrame, **more: Any) -> Holdout:
    given = {"ids": "row", "target": "y", "labels": [0, 1], "new_budget": "a test", **more}
    return Holdout.create(path, frame.drop(columns="luck"), limits=Limits(workers=1), **given)


def score(holdout: Holdout, *given: Any, **words: Any) -> Any:
    found = holdout.score(*given, **words)
    assert isinstance(found, Told)
    return found


def inside(told: Any, truth: float, under: float = math.inf) -> bool:
    """Whether the truth is inside the bar, and all of the bar under a number."""
    return bool(told.low < truth < told.high < under)


def nats(holdout: Holdout) -> float:
    told = holdout.status().sets[0].told
    assert told is not None
    return told.nats


def test_no_plan_is_needed(holdout: Holdout) -> None:
    status = holdout.status()
    assert (status.units, status.open_units, status.blocks, status.block_units) == (
        ROWS_IN_ALL,
        2_000,
        100,
        30,
    )
    first = score(holdout, right(FRAME, 0.9))
    assert first.expected is True
    assert inside(first, 0.9)
    assert first.high - first.low < 0.08
    assert (first.reading, first.certified, first.confidence) == (ROWS, True, 0.95)
    assert first.told_so_far == nats(holdout) == pytest.approx(first.told, abs=1e-12)
    assert first.told == pytest.approx(0.161, abs=1e-3)
    check = check_holdout(holdout.path)
    assert check.passed, str(check)


def test_the_value_of_a_confirmed_answer_is_the_guess(holdout: Holdout) -> None:
    told = score(holdout, right(FRAME, 0.9), guess=0.9)
    assert (told.value, told.guess, told.expected) == (0.9, 0.9, True)
    assert "your guess 0.9 is confirmed" in str(told)


def test_a_surprise_costs_its_surprise_and_says_so(holdout: Holdout) -> None:
    told = score(holdout, right(FRAME, 0.8), guess=0.9)
    assert told.expected is False
    assert told.told > 3
    assert inside(told, 0.8)
    assert "surprise" in str(told)
    later = score(holdout, right(FRAME, 0.81), guess=0.81)
    assert later.told_so_far == pytest.approx(told.told + later.told)
    assert later.level > told.level


def test_asked_again_it_is_free_and_never_judged_again(holdout: Holdout) -> None:
    given = right(FRAME, 0.9)
    first = score(holdout, given)
    for k in range(3):
        score(holdout, right(FRAME, 0.7 + k / 100), precise=True)
    before = holdout.receipt
    for again in (given.sample(frac=1.0, random_state=1), given.prediction.to_numpy()):
        told = score(holdout, again)
        assert (told.cached, told.receipt) == (True, first.receipt)
        names = ("letter", "level", "low", "high", "told", "told_so_far")
        assert [getattr(told, n) for n in names] == [getattr(first, n) for n in names]
    assert holdout.receipt == before
    other = score(holdout, given, guess=0.9)  # a guess of one's own makes another question
    assert not other.cached


def test_guesses_follow_what_was_told(tmp_path: Path) -> None:
    """Predictions that are better on open rows: the first surprise corrects later guesses."""
    with made(tmp_path / "h", FRAME, seed=5) as holdout:
        opened = set(holdout.open_table(["x"]).column("x").to_pylist())
        luck = FRAME.luck.where(~FRAME.x.isin(opened), FRAME.luck * 0.7)
        fitted = FRAME.assign(fitted=luck)
        first = score(holdout, right(fitted, 0.6, luck="fitted"))
        assert first.expected is False
        second = score(holdout, right(fitted, 0.61, luck="fitted"))
        assert second.expected is True
        assert second.guess == pytest.approx(0.61, abs=0.04)


def test_surprises_that_lean_to_one_side_are_named(holdout: Holdout) -> None:
    """Every metric learns its own offset, so that each can be too good once."""
    opened = set(holdout.open_table(["x"]).column("x").to_pylist())
    seen: list[Told] = []
    for k in range(6):
        luck = FRAME.luck.where(~FRAME.x.isin(opened), FRAME.luck * (0.9 - 0.1 * k))
        seen.append(score(holdout, right(FRAME.assign(f=luck), 0.4 + k / 100, luck="f")))
    leaning = [each for each in seen if each.leaning is not None]
    assert (leaning[-1].leaning or 0) > 0
    # What is said is by how much the open part's own scores were off, whatever corrected them.
    assert leaning[-1].leaning == pytest.approx(0.25, abs=0.1)
    assert "were higher than what was told, by 0.2" in str(leaning[-1])
    assert check_holdout(holdout.path).passed


def test_comparisons(holdout: Holdout) -> None:
    a, b = right(FRAME, 0.8), right(FRAME, 0.9)
    told: Any = holdout.compare(b, a)
    assert told.low > 0
    assert inside(told, 0.1)
    assert "B is better than A by 0.0" in str(told)
    assert holdout.compare(b, a, margin=0).verdict == "better"
    assert holdout.compare(a, b, margin=0).verdict == "worse"
    other = FRAME.luck.sample(frac=1.0, random_state=7).to_numpy()
    close = holdout.compare(right(FRAME.assign(other=other), 0.9, luck="other"), b, margin=0)
    assert (close.verdict, close.low, close.high) == ("not shown", None, None)
    assert holdout.compare(b, a, margin=0.5).verdict == "not shown"
    precise = holdout.compare(b, right(FRAME, 0.85), precise=True)
    assert inside(precise, 0.05)
    assert precise.expected is None
    with pytest.raises(InvalidInput, match="the same predictions twice"):
        holdout.compare(a, a)
    assert check_holdout(holdout.path).passed


def test_gates(holdout: Holdout) -> None:
    given = right(FRAME, 0.9)
    passed = holdout.gate(given, at_least=0.85)
    assert (passed.verdict, passed.low, passed.high) == ("pass", 0.85, None)
    failed = holdout.gate(given, at_least=0.95)
    assert (failed.verdict, failed.low, failed.high) == ("fail", None, 0.95)
    unclear = holdout.gate(given, at_least=0.9)
    assert (unclear.verdict, unclear.low, unclear.high) == ("unclear", None, None)
    near = holdout.gate(given, at_least=0.9, tolerance=0.05)
    assert near.verdict == "pass"
    assert near.low == pytest.approx(0.85)
    below = holdout.gate(given, metric="error_rate", at_most=0.2)
    assert (below.verdict, below.low, below.high) == ("pass", None, 0.2)
    above = holdout.gate(given, metric="error_rate", at_most=0.05)
    assert (above.verdict, above.low, above.high) == ("fail", 0.05, None)
    rival = right(FRAME, 0.8)
    assert holdout.gate(given, better_than=rival).verdict == "pass"
    assert holdout.gate(rival, better_than=given).verdict == "fail"
    assert holdout.gate(given, better_than=rival, margin=0.05).verdict == "pass"
    assert holdout.gate(given, better_than=rival, margin=0.1).verdict == "unclear"
    losses: dict[str, Any] = {"metric": "error_rate", "better_than": rival}
    assert holdout.gate(given, **losses).verdict == "pass"
    both: list[dict[str, Any]] = [{}, {"at_least": 0.5, "at_most": 0.6}]
    for wrong in (*both, {"at_least": 0.5, "margin": 0.1}):
        with pytest.raises(InvalidInput):
            holdout.gate(given, **wrong)
    with pytest.raises(InvalidInput, match="from 0 to 1, where every accuracy lies"):
        holdout.gate(given, at_least=85)
    assert check_holdout(holdout.path).passed


def test_what_a_pass_needs_grows_and_a_gate_never_exhausts(holdout: Holdout) -> None:
    def level() -> Any:
        told: Any = holdout.price("gate", right(FRAME, 0.9), at_least=0.85).told
        return told.level

    before = level()
    for k in range(5):
        holdout.gate(right(FRAME, 0.85 + k / 1_000), at_least=0.85, guess=0.95)
    assert level() > before + 2
    assert holdout.gate(right(FRAME, 0.97), at_least=0.85).verdict == "pass"


def test_the_best_of_several(holdout: Holdout) -> None:
    given = [right(FRAME, each) for each in (0.7, 0.9, 0.8)]
    told = holdout.best(given, names=["small", "large", "middle"])
    assert (told.winner, told.names[told.winner or 0]) == (1, "large")
    assert told.told == pytest.approx(math.log(3))
    assert (told.low, told.high, told.expected) == (None, None, None)
    assert "large has the best accuracy" in str(told)
    named = dict(zip(("small", "large", "middle"), given, strict=True))
    assert holdout.best(named).cached
    assert holdout.scores(named).names == tuple(named)
    with pytest.raises(InvalidInput, match="has their names"):
        holdout.best(named, names=["a", "b", "c"])
    losses = holdout.best(given, metric="error_rate")
    assert losses.winner == 1
    with_bar = holdout.best([given[0], given[2]], precise=True)
    (bar,) = with_bar.batch
    assert inside(bar, 0.8)
    for wrong in ([], given[:1], [given[0], given[0]], "abc"):
        with pytest.raises(InvalidInput):
            holdout.best(wrong)
    assert check_holdout(holdout.path).passed


def test_a_batch_is_frozen_before_any_of_it_is_answered(holdout: Holdout) -> None:
    given = [right(FRAME, 0.7 + k / 100) for k in range(4)]
    told = holdout.scores(given, guesses=[None, 0.71, None, 0.9])
    assert len(told.batch) == 4
    assert [each.expected for each in told.batch] == [True, True, True, False]
    assert told.told == pytest.approx(sum(each.told for each in told.batch))
    for share, each in zip((0.7, 0.71, 0.72, 0.73), told.batch, strict=True):
        assert inside(each, share)
        assert "accuracy is between" in each.promise  # a score like any other
    assert holdout.scores(given, guesses=[None, 0.71, None, 0.9]).cached
    assert check_holdout(holdout.path).passed


def test_means_of_any_term_and_of_groups(holdout: Holdout) -> None:
    share: Any = holdout.mean("x > 0.25")
    assert inside(share, 0.75)
    term = holdout.mean("x", range=(0, 1))
    assert inside(term, 0.5)
    assert "cut to [0, 1]" in str(term)
    wide = holdout.mean("10 * x - 5", range=(-5, 5))
    assert inside(wide, 0, under=1)
    group: Any = holdout.mean("x > 0.25", where="group = 'a'")
    assert inside(group, 0.75)
    assert group.high - group.low > share.high - share.low
    assert check_holdout(holdout.path).passed


def test_a_term_that_nothing_bounds_is_refused_free(holdout: Holdout) -> None:
    """Labels are no range, nothing is declared of x, and Python may give anything."""
    known, unknown = "declare its range, as range=", "Nothing is known of what a Python function"
    refused: list[tuple[Any, str]] = [(each, known) for each in ("y - x", "x", "10 * x", "10 * y")]
    refused += [(lambda frame: frame.x, unknown), (lambda frame: 10 * frame.y, unknown)]
    for term, said in refused:
        for ask in (holdout.mean, partial(holdout.price, "mean")):
            with refusing(holdout, said):
                ask(term)
    assert nats(holdout) == 0
    assert inside(holdout.mean("10 * x", range=(0, 10)), 5, under=6)
    assert inside(holdout.mean(lambda frame: frame.x, range=(0, 1)), 0.5)


def test_medians_over_blocks_of_any_estimator(holdout: Holdout) -> None:
    points = hf.grid(0, 1, step=0.01)
    told = holdout.ask("avg(x)", grid=points)
    assert inside(told, 0.5)
    assert "fresh blocks of 30 units" in str(told)
    mine = holdout.ask(lambda block: float(block.x.median()), grid=points)
    assert inside(mine, 0.5)
    assert holdout.interval("stddev(x)", grid=points).low is not None
    assert holdout.verify("avg(x)", guess=0.5, tolerance=0.02).verdict == "compatible"
    wrong: Any = holdout.verify("avg(x)", guess=0.3, tolerance=0.02)
    assert (wrong.verdict, wrong.low) == ("not compatible", 0.32)
    assert check_holdout(holdout.path).passed


def test_readings(tmp_path: Path) -> None:
    class Model:
        classes_ = np.array([0, 1])

        def predict(self, given: pd.DataFrame) -> Any:
            return (given.x > 0.5).astype(int)

    words = {
        ROWS: "these rows, fresh labels",
        RULE: "this rule, on fresh rows",
        AT_SHARES: "this rule, on fresh rows at these class shares",
    }
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, ROWS),
        ({"reading": "rule"}, RULE),
        ({"split": "stratified", "open_fraction": 0}, AT_SHARES),
    ]
    for more, reading in cases:
        with made(tmp_path / reading, FRAME, **more) as holdout:
            told = score(holdout, right(FRAME, 0.9), guess=0.9)
            assert told.reading == reading
            assert words[reading] in str(told)
            assert str(told.to_dict()["reading_words"]).startswith(words[reading])
            model = score(holdout, Model(), features=["x"], guess=0.5)
            assert model.reading == (AT_SHARES if reading == AT_SHARES else RULE)
            if reading == AT_SHARES:
                with pytest.raises(InvalidInput, match="split class by class"):
                    holdout.mean("x > 0.5", where="group = 'a'")
                with pytest.raises(InvalidInput, match="split class by class"):
                    holdout.ask("avg(x)", grid=hf.grid(0, 1, step=0.1))
            assert check_holdout(holdout.path).passed
    bad: list[dict[str, Any]] = [{"reading": "other"}, {"split": "other"}]
    for wrong in (*bad, {"confidence": 0.5}, {"queries": 0}):
        with pytest.raises(InvalidInput):
            made(tmp_path / "wrong", FRAME, **wrong)
    assert not (tmp_path / "wrong").exists()


def test_bad_input_is_refused_and_nothing_is_told(holdout: Holdout) -> None:
    good = right(FRAME, 0.9)
    wrong: dict[str, Any] = {
        "probabilities": good.assign(prediction=0.3),
        "labels": good.assign(prediction=2),
        "missing": good.assign(prediction=np.nan),
        "twice": pd.concat([good, good[:1]]),
        "unknown": good.assign(row=good.row + 1),
        "none": {},
    }
    for given in wrong.values():
        with refusing(holdout):
            holdout.score(given)
        with refusing(holdout):
            holdout.compare(given, good)
        with refusing(holdout):
            holdout.gate(given, at_least=0.5)
        with refusing(holdout):
            holdout.best([good, given])
    for guess in (math.nan, -0.1, 1.1, "much"):
        with refusing(holdout, "guess"):
            holdout.score(good, guess=guess)  # type: ignore[arg-type]
    with refusing(holdout, "a mean over rows"):
        holdout.compare(good, right(FRAME, 0.8), metric="f1")


def test_a_request_key_is_answered_once(holdout: Holdout) -> None:
    given = right(FRAME, 0.9)
    first = score(holdout, given, request="one")
    assert score(holdout, given, request="one").receipt == first.receipt
    with pytest.raises(InvalidInput, match="a key that named no other question"):
        score(holdout, right(FRAME, 0.8), request="one")


def test_quotas_and_limits_are_functions_of_what_was_told(holdout: Holdout) -> None:
    ann = holdout.on_behalf(Asker("ann", None, 1.0))
    bob = holdout.on_behalf(Asker("bob", None, 1.0))
    score(ann, right(FRAME, 0.8), guess=0.9)  # a surprise, of more than a nat
    with pytest.raises(Exhausted, match="Your quota"):
        score(ann, right(FRAME, 0.81))
    assert score(ann, right(FRAME, 0.8), guess=0.9).cached
    level = score(bob, right(FRAME, 0.81)).level
    with pytest.raises(Exhausted, match="Earlier answers have told more"):
        score(holdout, right(FRAME, 0.82), max_level=level - 0.01)
    assert not score(holdout, right(FRAME, 0.82), max_level=level + 1).cached


def test_what_could_say_nothing_is_refused_before_anything_is_read(
    tmp_path: Path,
) -> None:
    small, chance = rows(2, 40), np.random.default_rng(3)
    with made(tmp_path / "h", small, open_fraction=0) as holdout:
        for _ in range(120):
            two = chance.integers(0, 2, (2, len(small)))
            holdout.best([small[["row"]].assign(prediction=each) for each in two])
        given, nothing = right(small, 0.5), "no such answer after"
        with refusing(holdout, nothing, Exhausted):
            holdout.score(given, guess=0.5)
        with refusing(holdout, nothing, Exhausted):
            holdout.gate(given, at_least=0.5)
        with refusing(holdout, nothing, Exhausted):
            holdout.compare(given, right(small, 0.2), margin=0)
        assert check_holdout(holdout.path).passed


def test_slips_are_named(tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_bytes(b"")
    by_id = FRAME.set_index("row").y
    strange = DecisionTreeClassifier().fit(FRAME[["luck"]], FRAME.y)
    slips: list[tuple[Any, dict[str, Any], str]] = [
        ("nothere.csv", {}, "in a file that exists; got 'nothere.csv'"),
        (tmp_path / "m.pkl", {}, "m.pkl'. Create the holdout with ids='COLUMN', or pass an array"),
        (by_id, {}, r"a Series, which is matched by its index.*series.to_numpy\(\)"),
        (DecisionTreeClassifier, {}, "the class DecisionTreeClassifier.*an instance"),
        (DecisionTreeClassifier(), {}, "model failed on most open rows, or on all: NotFitted"),
        (strange, {}, "was fitted with luck, which the holdout lacks"),
        (FRAME.y.to_numpy(), {"target": "label"}, "must be one of y, row, x, group; got 'label'"),
    ]
    with made(tmp_path / "h", FRAME, ids=None, labels=None, open_fraction=0.3) as holdout:
        for given, words, said in slips:
            with refusing(holdout, said):
                holdout.score(given, **words)
        with refusing(holdout, "given, and only one of them; got 'none of them'"):
            holdout.gate(FRAME.y.to_numpy())
        near = right(FRAME, 0.85).prediction.to_numpy()
        unclear = holdout.gate(near, at_least=0.85, guess=0.85)
        assert "; as the guess 0.85 made likely" in str(unclear)


def test_prices_are_shown_before_asking(holdout: Holdout) -> None:
    given = right(FRAME, 0.9)
    before = holdout.receipt
    price: Any = holdout.price("score", given)
    assert holdout.receipt == before
    expected, *others = price.told.answers
    assert expected["expected"] is True
    assert sum(math.exp(-each["nats"]) for each in price.told.answers) <= 1
    assert all(each["nats"] > expected["nats"] for each in others)
    told = score(holdout, given)
    assert [told.told, told.low, told.high] == [expected[n] for n in ("nats", "low", "high")]
    assert holdout.price("score", given).cached
    other = right(FRAME, 0.8)
    asked = holdout.price("compare", other, given, margin=0)  # as it is asked
    assert asked == holdout.price("compare", other, against=given, margin=0)
    assert holdout.price("enter", other, "Ann") == holdout.price("score", other)
    assert holdout.leaderboard().entries == ()


def test_a_holdout_checks_and_reports_itself(holdout: Holdout, tmp_path: Path) -> None:
    score(holdout, right(FRAME, 0.9))
    kept = str(holdout.receipt)
    assert holdout.check(kept).to_dict() == check_holdout(holdout.path, kept).to_dict()
    assert holdout.check().passed
    for _ in "twice":  # as a notebook is run again
        holdout.report(tmp_path / "told.html")
    assert "1 question answered" in (tmp_path / "told.html").read_text("utf-8")


def test_the_price_of_a_winner_with_its_bar_is_that_of_both(holdout: Holdout) -> None:
    pair = [right(FRAME, 0.9), right(FRAME, 0.8)]
    asks: list[Any] = [holdout.price("best", pair, precise=precise) for precise in (False, True)]
    winner, both = asks
    bar = holdout.price("score", pair[0], precise=True)
    assert winner.price == pytest.approx(math.log(2))
    assert both.price == winner.price + bar.price
    assert both.told.answers[0]["nats"] == both.price
    holdout.best(pair)
    rest = holdout.price("best", pair, precise=True)
    assert not rest.cached
    assert rest.price == holdout.price("score", pair[0], precise=True).price
    holdout.best(pair, precise=True)
    assert holdout.price("best", pair, precise=True).price == 0.0


def test_models_that_fail_count_as_wrong_and_say_so(tmp_path: Path) -> None:
    class Model:
        classes_ = np.array([0, 1])

        def __init__(self, worst: float) -> None:
            self.worst = worst

        def predict(self, given: pd.DataFrame) -> Any:
            if (given.x < self.worst).any():
                raise RuntimeError("no prediction")
            return np.ones(len(given), int)

    sometimes = rows(size=1_000).assign(y=1)
    with made(tmp_path / "h", sometimes) as holdout:
        told = score(holdout, Model(0.1), features=["x"], guess=0.9)
        assert inside(told, 0.9)
        fine = score(holdout, Model(-1), features=["x"], guess=0.99)
        for each in (told, fine):
            said = each.described()["assumes"]
            assert "a row on which it fails, or without a target, counts as wrong" in said
        with refusing(holdout, "no prediction"):
            holdout.score(Model(2.0), features=["x"])
        assert check_holdout(holdout.path).passed


def test_terms_that_hardly_vary_are_no_surprise(holdout: Holdout) -> None:
    sure = pd.DataFrame({"row": FRAME.row, "prediction": np.where(FRAME.y == 1, 0.9, 0.1)})
    told = score(holdout, sure, metric="brier")
    assert told.expected is True
    assert inside(told, 0.01, under=0.02)


def test_a_repeated_comparison_is_told_by_the_names_of_now(holdout: Holdout) -> None:
    a, b = right(FRAME, 0.61), right(FRAME, 0.83)
    first = holdout.compare(b, a, names=("new", "old"))
    again = holdout.compare(b, a, names=("tree", "line"))
    assert again.cached
    assert (again.low, again.high) == (first.low, first.high)
    assert "tree is better than line" in str(again)
    assert "new is better than old" in str(first)


def test_open_rows_come_with_their_ids(holdout: Holdout) -> None:
    opened = holdout.open_table().to_pandas()
    assert opened.columns[0] == "row"
    known = opened.merge(FRAME, on="row", suffixes=("", " there"))
    assert len(known) == len(opened)
    assert (known["x"] == known["x there"]).all()
    assert holdout.open_table(["x"]).column_names == ["x"]
    assert holdout.open_table(["x", "row"]).column_names == ["row", "x"]


def test_predictions_may_be_numbers_of_numpy(holdout: Holdout) -> None:
    plain = right(FRAME, 0.77)
    pairs = zip(plain["row"], plain["prediction"], strict=True)
    told = holdout.score({np.int64(key): np.int64(value) for key, value in pairs})
    assert holdout.score(plain).cached
    assert not told.cached


def test_check_finds_what_was_told_of_sql_again(holdout: Holdout) -> None:
    """And says how many answers it cannot find: those about predictions."""
    holdout.score(right(FRAME, 0.8))
    holdout.mean("x > 0.3")
    holdout.mean("x", range=(-1, 2), where="y = 1", precise=True)
    holdout.ask("avg(x)", grid=hf.grid(0, 1, step=0.01))
    holdout.verify("avg(x)", 0.9, tolerance=0.01)
    check = check_holdout(holdout.path)
    *_, found = check.findings
    assert (found.name, found.passed) == ("told", True)
    rest = "1 cannot be (its predictions or functions are not kept)"
    assert found.detail == f"4 answers found again in the sealed rows; {rest}"
    assert f"\nok      told      {found.detail}\n" in str(check)


def test_bars_to_expect_are_those_of_the_claims_that_they_are_about(tmp_path: Path) -> None:
    """The kind of claim that is asked for first has nearly all of the confidence."""
    with made(tmp_path / "h", FRAME, seed=2) as holdout:
        holdout.mean("x > 0.5")
        first = holdout.status().sets[0].told
        assert first is not None
        assert first.fresh_labels is False
        assert first.further == pytest.approx(math.log(0.95 / 0.025), abs=1e-6)
        assert "fresh labels are judged 3.6 nats further" in str(holdout.status())
        expected = holdout.price("score", right(FRAME, 0.9)).told
        assert expected is not None
        told = score(holdout, right(FRAME, 0.9))
        assert told.level == pytest.approx(expected.level)
        then = holdout.status().sets[0].told
        assert then is not None
        assert then.fresh_labels is True
        assert then.further == pytest.approx(-first.further, abs=1e-6)
        now: Any = score(holdout, right(FRAME, 0.89), precise=True)
        assert (now.high - now.low) / 2 == pytest.approx(then.bars[0]["precise"][0], rel=0.2)


def test_a_comparison_by_a_loss_shows_its_guess_as_it_shows_its_bar(holdout: Holdout) -> None:
    """Losses are new less old, so that better is negative; the sentence turns all of it round."""
    told: Any = holdout.compare(right(FRAME, 0.9), right(FRAME, 0.8), metric="error_rate")
    low, high = bar_ends(-told.high, -told.low)
    assert told.guess < 0 < -told.high
    assert f"B is better than A by {low} to {high} in error rate" in str(told)
    assert f"as guessed from the open part, better by {number(-told.guess)}" in str(told)
    pair = right(FRAME, 0.85), right(FRAME, 0.75)
    mine: Any = holdout.compare(*pair, metric="error_rate", guess=-0.1)
    assert "your guess (better by 0.1) is confirmed" in str(mine)
