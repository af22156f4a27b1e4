"""What an answer may say: for every protocol, every field that its question decides."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.holdout.check import Wrong, check_holdout, check_key, check_said
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.prices import tally_fits
from holdfast.ledger.ledger import Row
from holdfast.planning.exact import exact_weights
from holdfast.planning.joint import joint_plan
from holdfast.planning.requests import WeightedEstimates
from holdfast.planning.shapes import BoundedMean, KnownSd
from tests.holdout import plans
from tests.holdout.forging import Entry, failed, forge
from tests.holdout.tables import Still, sealed, sources

POINTS = hf.grid(0, 1, points=8)
SHAPE = KnownSd(0.1)
_numbers = itertools.count()


def weighted(path: Path, plan: Any) -> Holdout:
    """A holdout of blocks that are one coin each, 70 % heads."""
    blocks = plan.blocks
    number = np.arange(blocks) + 0.5 + 10**6 * next(_numbers)  # no two tables are alike
    data = {"y": np.arange(blocks) % 10 < 7, "i": number}
    return Holdout.create(path, data, plan, universe={"y": [False, True]}, block_units=1)


def exact_weighing(path: Path) -> Holdout:
    return weighted(path, exact_weights(5, universe=2, tail=0.25))


def weighing(path: Path) -> Holdout:
    return weighted(path, joint_plan(WeightedEstimates(queries=5, universe=2, tail=0.05)))


def blocks_of(plan: Callable[[], Any]) -> Callable[[Path], Holdout]:
    return lambda path: sealed(path, plan())


Made = Callable[[Path], Holdout]
Ask = Callable[[Holdout], Any]

KINDS: dict[str, tuple[Made, Ask]] = {
    "estimate": (blocks_of(plans.mixed), lambda h: h.ask("avg(x)", grid=POINTS)),
    "bar": (blocks_of(plans.mixed), lambda h: h.ask("avg(x)", grid=POINTS, shape=SHAPE)),
    "interval": (
        blocks_of(plans.mixed),
        lambda h: h.interval("avg(x)", grid=hf.grid(-1, 2, points=13)),
    ),
    "verify": (blocks_of(plans.mixed), lambda h: h.verify("avg(x)", 0.5)),
    "refused": (blocks_of(plans.mixed), lambda h: h.verify("avg(x)", 9)),
    "kept": (blocks_of(plans.mixed), lambda h: h.correct("avg(x)", 0.5, grid=POINTS)),
    "corrected": (blocks_of(plans.mixed), lambda h: h.correct("avg(x)", 9, grid=POINTS)),
    "near": (blocks_of(plans.estimates), lambda h: h.verify("avg(x)", 0.5, tolerance=0.1)),
    "median mean": (blocks_of(plans.medians), lambda h: h.mean("y = 1")),
    "mean on a grid": (blocks_of(plans.medians), lambda h: h.mean("y = 1", grid=POINTS)),
    "filtered mean": (blocks_of(plans.medians), lambda h: h.mean("y = 1", where="x > 0")),
    "direct mean": (blocks_of(plans.direct), lambda h: h.mean("y = 1")),
    "direct mean in a range": (blocks_of(plans.direct), lambda h: h.mean("x", range=(-3, 7))),
    "median mean in a range": (blocks_of(plans.medians), lambda h: h.mean("x", range=(-3, 7))),
    "filtered mean in a range": (
        blocks_of(plans.medians),
        lambda h: h.mean("x", where="x > 0", range=(-3, 7)),
    ),
    "simple": (blocks_of(plans.simple), lambda h: h.ask("avg(x)", grid=POINTS)),
    "amplified": (blocks_of(plans.amplified), lambda h: h.ask("avg(x)", grid=POINTS)),
    "weights": (weighing, lambda h: h.ask("avg(y)", grid=POINTS)),
    "exact": (blocks_of(plans.exact), lambda h: h.ask("avg(x)", grid=POINTS, shape=SHAPE)),
    "exact-verify": (blocks_of(plans.verdicts), lambda h: h.verify("avg(x)", 0.5)),
    "exact-correct": (blocks_of(plans.corrections), lambda h: h.correct("avg(x)", 9, grid=POINTS)),
    "exact-weights": (exact_weighing, lambda h: h.ask("avg(y)", grid=POINTS)),
    "rounds": (blocks_of(plans.rounds), lambda h: h.ask("avg(x)", shape=SHAPE)),
    "split": (blocks_of(plans.split), lambda h: h.ask("avg(x)")),
}
WITH_POINTS = ("estimate", "bar", "simple", "amplified", "weights", "exact", "exact-weights")
TALLIED = ("exact", "exact-verify", "exact-correct", "exact-weights", "rounds", "split")


@pytest.fixture(scope="module", params=KINDS)
def told(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Holdout, Row]]:
    """A holdout with one answer, and its row."""
    make, ask = KINDS[request.param]
    with make(tmp_path_factory.mktemp("told") / "a") as holdout:
        with nullcontext() if "weights" in request.param else sources():
            ask(holdout)
        yield request.param, holdout, holdout.door.ledger.rows()[-1]


def says(holdout: Holdout, row: Row, body: dict[str, Any]) -> None:
    (one,) = holdout.charter.sets
    check_said(holdout.charter, one, dataclasses.replace(row, body=body))


def steps(answer: dict[str, Any]) -> list[dict[str, Any]]:
    if answer["type"] != "corrected":
        return [answer]
    return [each for each in (answer["verdict"], answer["correction"]) if each is not None]


def lies(kind: str, step: dict[str, Any]) -> dict[str, list[Any]]:
    """Values that each field cannot have."""
    found: dict[str, list[Any]] = {
        "protocol": ["other"],
        "confidence": [0.999999, True, None],
        "tail_low": [0.4, -1.0],
        "tail_high": [0.4, True],
        "certified": [False, 1],
        "block_units": [step["block_units"] + 1, True],
        "promise": [""] if kind == "near" else ["", "certain truth"],
        "budget_left": [-1.0, 1e9, float("nan")],
        "reading": ["rule-on-fresh-rows", "other", True],
    }
    if kind != "near" and "assuming" not in step["promise"]:
        found["promise"].append(step["promise"] + "; certainly")
    if step["type"] == "verdict":
        found["refusals_left"] = [-1, 100] if kind == "near" else [-1, 100, None]
        found |= {"guess": [step["guess"] + 1, True], "refused": [None, "perhaps"]}
        found |= {"claim": ["at most"], "tolerance": [0.5 if step["tolerance"] is None else None]}
        return found
    found |= {"method": ["other"], "at_grid_end": [not step["at_grid_end"], 2]}
    for end in ("low", "high"):
        found[end] = [1e6 if step[end] is None else step[end] + 1e-9, True]
    found["value"] = [float("nan"), True]
    if kind not in ("rounds", "split"):
        found["value"] += [0.123456, step["value"] + 1e-12, 1e6]
    return found


def test_everything_that_its_question_decides(told: tuple[str, Holdout, Row]) -> None:
    kind, holdout, row = told
    assert failed(check_holdout(holdout.path)) == {}
    says(holdout, row, row.body)
    for number, step in enumerate(steps(row.body["answer"])):
        fields = lies(kind, step)
        if kind in TALLIED:
            fields["price"] = [step["price"] + 0.5]
        assert set(fields) | {"type", "price", "refusals_left"} >= set(step)
        for name, values in fields.items():
            for value in values:
                body = copy.deepcopy(row.body)
                steps(body["answer"])[number][name] = value
                # Value and ends follow from each other: a false one is found by another.
                by = "(value|low|high)" if name in ("value", "low", "high") else name
                with pytest.raises(Wrong, match=f"row {row.number} .*{by}"):
                    says(holdout, row, body)


@pytest.mark.parametrize("told", WITH_POINTS, indirect=True)
def test_another_point_cannot_be_told_but_its_end_can(told: tuple[str, Holdout, Row]) -> None:
    _, holdout, row = told
    body = copy.deepcopy(row.body)
    body["answer"].update(value=POINTS.point(7), at_grid_end=False)
    with pytest.raises(Wrong, match="at_grid_end"):
        says(holdout, row, body)


def test_an_answer_of_another_kind(told: tuple[str, Holdout, Row]) -> None:
    kind, holdout, row = told
    others = {"ask": "verify", "mean": "verify", "interval": "verify", "correct": "ask"}
    body = copy.deepcopy(row.body)
    body["question"]["verb"] = others.get(body["question"]["verb"], "ask")
    with pytest.raises(Wrong, match="type"):
        says(holdout, row, body)
    if body["answer"]["type"] == "answer" and not kind.startswith("direct mean"):
        body["question"] |= {"verb": "mean" if kind in (*TALLIED, "weights") else "interval"}
        if kind != "interval":
            with pytest.raises(Wrong, match="protocol"):
                says(holdout, row, body)


def test_the_key_of_words(told: tuple[str, Holdout, Row]) -> None:
    _, _, row = told
    check_key(row)
    for question in ({"part": "other"}, {"estimator": {"engine": "sql", "text": "avg(z)"}}):
        body = {**row.body, "question": row.body["question"] | question}
        with pytest.raises(Wrong, match="key of another"):
            check_key(dataclasses.replace(row, body=body))
    for key in (None, "ab" * 32):
        with pytest.raises(Wrong, match="key of another"):
            check_key(dataclasses.replace(row, question=key))


@pytest.mark.parametrize("told", [each for each in KINDS if "range" in each], indirect=True)
def test_a_range_is_that_of_the_question(told: tuple[str, Holdout, Row]) -> None:
    _, holdout, row = told
    for question in ({"range": [-3.0, 8.0]}, {"range": [0.0, 1.0]}, {"range": None}):
        body = copy.deepcopy(row.body)
        body["question"] |= question
        if question["range"] is None:  # as if nothing could leave [0, 1]
            del body["question"]["range"]
        with pytest.raises(Wrong, match=f"row {row.number} says what its question cannot"):
            says(holdout, row, body)
    body = copy.deepcopy(row.body)
    body["question"].pop("range")
    body["question"]["estimator"]["text"] = "x > 3"
    body["answer"]["promise"] = body["answer"]["promise"].replace(" of the term cut to [-3, 7]", "")
    with pytest.raises(Wrong, match=f"row {row.number} says what its question cannot"):
        says(holdout, row, body)


def test_a_term_whose_text_is_too_long_to_be_read_again(tmp_path: Path) -> None:
    """Its one text has the brackets that a question may leave out."""
    with sealed(tmp_path / "a", plans.direct()) as holdout, sources():
        holdout.mean(" OR ".join([f"g='{'a' * 54}'"] * 160))
        (row,) = holdout.transcript()
        with pytest.raises(hf.InvalidInput):
            holdout.price("mean", row["question"]["estimator"]["text"])
        assert failed(check_holdout(holdout.path)) == {}


def test_a_correction_belongs_to_a_refusal(tmp_path: Path) -> None:
    with sealed(tmp_path / "a", plans.mixed()) as holdout, sources():
        holdout.correct("avg(x)", 0.5, grid=POINTS)
        kept = holdout.door.ledger.rows()[-1]
        holdout.correct("avg(x)", 9, grid=POINTS)
        corrected = holdout.door.ledger.rows()[-1]
    for row, other in ((kept, corrected), (corrected, kept)):
        body = copy.deepcopy(row.body)
        body["answer"]["correction"] = other.body["answer"]["correction"]
        with pytest.raises(Wrong, match="correction"):
            says(holdout, row, body)


def test_assumptions_may_follow_the_promise(tmp_path: Path) -> None:
    with sealed(tmp_path / "a", plans.mixed()) as holdout, sources():
        holdout.ask("avg(x)", grid=POINTS)
        row = holdout.door.ledger.rows()[-1]
    body = copy.deepcopy(row.body)
    body["answer"]["promise"] += "; assuming that it rains"
    says(holdout, row, body)


def test_what_an_answer_must_say_of_its_grid_and_its_filter(tmp_path: Path) -> None:
    with sealed(tmp_path / "a", plans.mixed()) as holdout, sources():
        holdout.ask("avg(x)", grid=POINTS, where="x > 0")
        holdout.ask("avg(x)", grid=POINTS)
        filtered, plain = holdout.door.ledger.rows()[-3::2]
    seen, empty = "; 3 of the 20 open blocks are such", "; a block without such rows counts as "

    def told(row: Row, promise: str) -> None:
        body = copy.deepcopy(row.body)
        body["answer"]["promise"] = promise
        says(holdout, row, body)

    said = {row.number: row.body["answer"]["promise"] for row in (filtered, plain)}
    assert f"{empty}the lowest point, 0" in said[filtered.number]
    assert "; rounded up to a grid with step " in said[plain.number]
    told(filtered, said[filtered.number] + seen)  # what the open part says may follow
    told(filtered, said[filtered.number] + seen + "; assuming that it rains")
    for row, promise in (
        (filtered, said[filtered.number].partition(empty)[0]),
        (filtered, said[filtered.number].replace("point, 0", "point, 1")),
        (filtered, said[filtered.number] + "; none of the open blocks is such"),
        (filtered, seen.join(said[filtered.number].split("; rounded", 1)) + "; rounded"),
        (plain, said[plain.number].partition("; rounded")[0]),
        (plain, said[plain.number] + seen),
        (plain, said[plain.number] + f"{empty}the lowest point, 0"),
    ):
        with pytest.raises(Wrong, match="promise"):
            told(row, promise)


def test_bars_of_every_point(tmp_path: Path) -> None:
    """Wherever the blocks lie, also beyond the grid, what was told is what may be told."""
    with sealed(tmp_path / "a", plans.mixed(), ranges={"x": (-4, 1)}) as holdout:
        for number, middle in enumerate((-5.0, 0.0, 0.3, 1.0, 5.0)):
            with sources(partial(Still, values=partial(np.full, fill_value=middle))):
                shape = BoundedMean(-4, 5) if number % 2 else SHAPE
                holdout.ask(f"avg(x) + {number}", grid=POINTS, shape=shape)
                if number < 2:
                    holdout.interval(f"avg(x) + {number}", grid=hf.grid(0, 1, points=4))
        assert failed(check_holdout(holdout.path)) == {}


# Tallies and charges of weights.


def test_a_tally_of_weights_that_was_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with exact_weighing(tmp_path / "a") as holdout:
        for text in ("avg(y)", "count_if(not y)"):
            holdout.ask(text, grid=POINTS)
    folder = holdout.path
    assert failed(check_holdout(folder)) == {}
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))  # nobody has seen a receipt

    def put_back(tally: dict[str, str]) -> Callable[[list[Entry]], None]:
        def edit(entries: list[Entry]) -> None:
            for each in entries:
                if each.kind == "recorded":
                    each.body["tally"] = {**each.body["tally"], **tally}

        return edit

    for tally in ({"asked": "-0x3e8"}, {"asked": "0x0"}, {"refused": "0x63"}):
        forge(folder, put_back(tally))
        assert "prices" in failed(check_holdout(folder))


def test_weights_have_so_many_questions_and_updates() -> None:
    plan = exact_weights(5, universe=2, tail=0.25)
    most = {"asked": plan.queries - 1, "refused": plan.updates}
    assert tally_fits(plan, most, {})
    assert not tally_fits(plan, {**most, "asked": plan.queries}, {})
    assert not tally_fits(plan, {**most, "refused": plan.updates + 1}, {})


def test_looks_of_weights_that_were_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with weighing(tmp_path / "a") as holdout:
        holdout.ask("avg(y)", grid=POINTS)
    assert failed(check_holdout(holdout.path)) == {}

    def give_back(entries: list[Entry]) -> None:
        body = entries[-1].body
        body["charges"][-1].update(price="0", looks=0, noes=0)
        body["answer"]["price"] = 0.0

    def show_less(entries: list[Entry]) -> None:
        entries[-1].body["answer"]["price"] /= 2

    with Holdout.open(holdout.path) as opened:
        rows = opened.door.ledger.rows()
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))  # nobody remembers a receipt
    for edit in (give_back, show_less):
        forge(holdout.path, edit)
        assert "prices" in failed(check_holdout(holdout.path))
        forge(holdout.path, lambda entries: entries[-1].body.update(rows[-1].body))
        assert failed(check_holdout(holdout.path)) == {}
