"""What the theorem asks of the product, demand by demand; and histories drawn at random."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidInput
from holdfast.holdout.check import check_holdout
from tests.holdout.tables import refusing
from tests.holdout.told_history import create, ledger_rows, said, table
from tests.protocols.oracle_told import disagreements, share_low

SIZE = 400  # so that 100 blocks of 2 are sealed, and none is left over


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Every x once, so that it is known which rows are open."""
    return table(SIZE).assign(x=np.random.default_rng(4).permutation(SIZE) / SIZE)


@pytest.fixture(scope="module")
def fresh(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fresh") / "a.holdfast"
    create(path, frame=frame).close()
    return path


@pytest.fixture
def holdout(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    with copied(fresh, tmp_path, monkeypatch) as opened:
        yield opened


def copied(fresh: Path, folder: Path, patch: pytest.MonkeyPatch) -> hf.Holdout:
    """A copy in which nothing was told, of which nobody has seen a receipt."""
    patch.setenv("HOLDFAST_STATE", str(folder / "state"))
    return hf.Holdout.open(shutil.copytree(fresh, folder / "a.holdfast"))


def sealed_ids(holdout: hf.Holdout, frame: pd.DataFrame) -> pd.Series[bool]:
    """Which rows are sealed: those that are not open."""
    opened = holdout.open_table(["x", "late"]).to_pandas()
    merged = frame.merge(opened, on=["x", "late"], how="left", indicator=True)
    return merged["_merge"] == "left_only"


def test_1_sealed_rows_are_a_simple_random_split(frame: pd.DataFrame, tmp_path: Path) -> None:
    """Class counts of the open part do not tell those of the sealed one: they vary by chance."""
    counts = set()
    for seed in range(6):
        with create(tmp_path / f"{seed}", frame=frame, seed=seed) as holdout:
            counts.add(int(frame.y[sealed_ids(holdout, frame)].sum()))
    assert len(counts) > 2
    with create(tmp_path / "s", frame=frame, split="stratified", open_fraction=0) as holdout:
        told: Any = holdout.score(said(frame, 0.9), guess=0.9)
        assert "at these class shares" in str(told)
        with pytest.raises(InvalidInput, match="split class by class"):
            holdout.mean("x > 0.5", where="who = 'a'")


def test_4_failures_are_letters(holdout: hf.Holdout, frame: pd.DataFrame) -> None:
    """No row, no value: the letter that says nothing, at its cost; bad words are refused, free."""
    before = len(ledger_rows(holdout.path))
    none: Any = holdout.mean("x > 0.5", where="x > 2", guess=0.5, anyway=True)
    assert (none.low, none.high) == (0.0, 1.0)
    assert none.told > 0
    empty: Any = holdout.mean("x / 0", range=(0, 1), guess=0.0)
    assert "without a value counts as the lowest" in str(empty)
    assert len(ledger_rows(holdout.path)) == before + 2
    with pytest.raises(InvalidInput):
        holdout.score(said(frame, 0.9).assign(prediction=math.nan))
    assert len(ledger_rows(holdout.path)) == before + 2


def test_5_levels_follow_the_order_of_the_ledger(holdout: hf.Holdout, frame: pd.DataFrame) -> None:
    """Asked at once by many, each is judged at the level of all that was recorded before."""
    given = [said(frame, 0.6 + k / 40, k) for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: holdout.score(each, guess=0.8), given))
    first, *rest = ledger_rows(holdout.path)
    assert len(rest) == 8
    assert disagreements(first, rest) == []


def test_6_an_answer_is_recorded_before_it_is_shown(
    holdout: hf.Holdout, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lost before it was recorded nothing is told, and the rows tell the same letter again."""
    from holdfast.holdout import answering

    with monkeypatch.context() as patch:
        patch.setattr(answering._Pending, "record", lambda *_: 1 / 0)
        with refusing(holdout, error=ZeroDivisionError):
            holdout.score(said(frame, 0.9), guess=0.8)
    told: Any = holdout.score(said(frame, 0.9), guess=0.8)
    sealed = sealed_ids(holdout, frame)
    right = int((said(frame, 0.9).prediction == frame.y)[sealed].sum())
    assert told.low <= right / sealed.sum() <= told.high
    assert ledger_rows(holdout.path)[-1]["drawn"]["letter"] == list(told.letter)


def test_7_levels_are_exact_and_rounded_towards_safety(
    holdout: hf.Holdout, frame: pd.DataFrame, tmp_path: Path
) -> None:
    told: Any = holdout.score(said(frame, 0.9), guess=0.9)
    exact = -math.log(0.05 * 0.9 * 0.95)
    assert exact <= told.level < exact + 1e-9
    for sure in (0.5, 0.3):
        with pytest.raises(InvalidInput):
            create(tmp_path / "half", frame=frame, confidence=sure)


def test_8_all_that_is_told_is_a_function_of_the_letters(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other sealed labels in the same windows: every reply is the same, but for receipts."""

    def replies(path: Path, flip: int) -> str:
        other, given = frame.copy(), said(frame, 0.9)
        monkeypatch.setenv("HOLDFAST_STATE", str(path / "state"))
        with create(path / "a.holdfast", frame=frame) as holdout:
            rows = np.flatnonzero(sealed_ids(holdout, frame))[:flip]
        other.loc[rows, "y"] = 1 - other.loc[rows, "y"]
        with create(path / "b.holdfast", frame=other, labels=[0, 1]) as holdout:
            seen = [holdout.price("score", given).to_dict(), holdout.score(given).to_dict()]
            seen += [holdout.gate(given, at_least=0.5).to_dict(), holdout.status().to_dict()]
        text = json.dumps(seen, sort_keys=True, default=str)
        for each in {seen[1]["receipt"], seen[2]["receipt"], seen[3]["receipt"]}:
            text = text.replace(str(each), "")
        return text.replace(str(path), "").replace(seen[3]["holdout"], "")

    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert replies(tmp_path / "one", 1) == replies(tmp_path / "two", 2)


QUESTIONS = st.lists(
    st.tuples(
        st.sampled_from(["score", "gate", "mean", "where", "compare"]),
        st.integers(0, 3),
        st.sampled_from([None, 0.3, 0.7, 0.9]),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=5)
@given(QUESTIONS)
def test_random_histories(fresh: Path, frame: pd.DataFrame, asked: Any) -> None:
    """Levels grow, nats add up, prices hold, nothing is told twice, shares are in their bars."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        with copied(fresh, Path(folder), patch) as holdout:
            sealed = sealed_ids(holdout, frame)
            n, total = int(sealed.sum()), 0.0
            assert n == SIZE // 2
            for verb, k, guess, precise in asked:
                given, words = said(frame, 0.5 + k / 8, k), {"guess": guess, "precise": precise}
                right = (given.prediction == frame.y)[sealed]
                asks: Any = {
                    "score": ("score", given, words),
                    "gate": ("gate", given, {"at_least": 0.6, "guess": guess}),
                    "mean": ("mean", f"x > 0.{k + 1}", words),
                    "where": (
                        "mean",
                        f"x > 0.{k + 1}",
                        words | {"where": "who = 'a'", "anyway": True},
                    ),
                    "compare": ("compare", given, {"against": said(frame, 0.7, 9), **words}),
                }
                name, about, words = asks[verb]
                price = holdout.price(name, about, **words)
                if not price.affordable:
                    continue
                before = len(ledger_rows(holdout.path))
                told: Any = getattr(holdout, name)(about, **words)
                assert told.cached is price.cached
                assert len(ledger_rows(holdout.path)) == before + (not told.cached)
                if told.cached:
                    continue
                assert price.told is not None
                assert price.told.told_so_far == total
                assert price.told.level <= told.level  # its own letter may pay for it first
                for offer in price.told.answers:
                    level = price.told.level + offer["nats"]
                    assert math.isclose(offer["level"], level, abs_tol=1e-9)
                    if tuple(offer["letter"]) == told.letter:
                        known = (offer["nats"], offer["low"], offer["high"])
                        assert known == (told.told, told.low, told.high)
                total = told.told_so_far
                now = holdout.status().sets[0].told
                assert now is not None
                assert now.nats == total
                truth = {"score": right, "mean": (frame.x > (k + 1) / 10)[sealed]}.get(verb)
                if truth is not None:
                    count, fixed = int(truth.sum()), verb == "score"
                    assert told.low <= share_low(n, count, told.level, fixed=fixed) + 1e-9
                    above = 1 - share_low(n, n - count, told.level, fixed=fixed)
                    assert told.high >= above - 1e-9
        first, *rest = ledger_rows(holdout.path)
        nats = [body["drawn"]["nats"] for body in rest]
        assert min(nats, default=0) >= 0
        assert math.isclose(sum(nats), total, abs_tol=1e-9)
        assert disagreements(first, rest) == []
        assert check_holdout(holdout.path).passed
