"""Tallies: what a keeper hears before anything is said, and how a later object goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.errors import Exhausted, InvalidInput
from holdfast.grids import grid
from holdfast.protocols.exact import ExactCorrect, ExactEstimate, ExactVerify
from holdfast.protocols.rounds import EffectiveRounds
from holdfast.protocols.source import BlockArray
from holdfast.protocols.split import Split
from tests.holdout import plans

POINTS = grid(0, 7, step=1)


def first(rows: NDArray[Any]) -> float:
    return float(rows[0])


def ranked(blocks: int) -> BlockArray:
    return BlockArray(np.random.default_rng(7).permutation(blocks).astype(float), blocks)


Make = Callable[[], Any]
Ask = Callable[..., Any]

KINDS: dict[str, tuple[Make, Ask, list[dict[str, int]]]] = {
    "verify": (
        lambda: ExactVerify(plans.verdicts(), ranked(plans.verdicts().blocks)),
        lambda p, e=first: p.ask(e, -1.0),
        [{"asked": n, "refused": n} for n in (1, 2, 3)],
    ),
    "correct": (
        lambda: ExactCorrect(plans.corrections(), ranked(plans.corrections().blocks)),
        lambda p, e=first: p.ask(e, -1.0, POINTS),
        [{"asked": n, "refused": n, "told": 8**n} for n in (1, 2, 3)],
    ),
    "estimate": (
        lambda: ExactEstimate(plans.exact(), ranked(plans.exact().blocks)),
        lambda p, e=first: p.ask(e, POINTS),
        [{"room": 8**n} for n in (2, 1, 0)],
    ),
    "split": (
        lambda: Split(plans.split(), ranked(plans.split().blocks)),
        lambda p, e=first: p.ask(e),
        [{"asked": n} for n in (1, 2, 3)],
    ),
}
EVERY = pytest.mark.parametrize("kind", KINDS)


@EVERY
def test_the_keeper_hears_the_worst_case_before_anything_is_evaluated(kind: str) -> None:
    make, ask, tallies = KINDS[kind]
    protocol = make()
    heard: list[dict[str, int]] = []
    seen: list[int] = []

    def watching(rows: NDArray[Any]) -> float:
        seen.append(len(heard))
        return first(rows)

    protocol.keeper = lambda tally: heard.append(dict(tally))
    ask(protocol, watching)
    assert heard == tallies[:1]
    assert set(seen) == {1}


@EVERY
def test_a_later_object_goes_on_where_the_first_was(kind: str) -> None:
    make, ask, tallies = KINDS[kind]
    whole = make()
    expected = [repr(ask(whole)) for _ in tallies]
    last = make()
    for number, tally in enumerate(tallies):
        assert repr(ask(last)) == expected[number]
        assert last.tally == tally
        following = make()
        following.restore(last.tally)
        last = following
    assert last.tally == whole.tally


@EVERY
def test_a_keeper_that_fails_stops_the_answer(kind: str) -> None:
    make, ask, tallies = KINDS[kind]
    protocol = make()

    def full(_: object) -> None:
        raise OSError("disk full")

    protocol.keeper = full
    with pytest.raises(OSError, match="disk full"):
        ask(protocol)
    assert protocol.tally == tallies[0]  # what may have been written counts


@EVERY
@pytest.mark.parametrize("wrong", [{}, {"other": 1}, {"asked": 1.5}, {"asked": -1, "more": 1}])
def test_another_tally_is_refused(kind: str, wrong: dict[str, Any]) -> None:
    protocol = KINDS[kind][0]()
    before = protocol.tally
    with pytest.raises(InvalidInput):
        protocol.restore(wrong)
    assert protocol.tally == before


def test_a_yes_gives_its_refusal_back() -> None:
    plan = plans.corrections()
    correct = ExactCorrect(plan, ranked(plan.blocks))
    correct.ask(first, plan.blocks / 2, POINTS)
    assert correct.tally == {"asked": 1, "refused": 0, "told": 1}
    verify = ExactVerify(plans.verdicts(), ranked(plans.verdicts().blocks))
    verify.ask(first, plans.verdicts().blocks / 2)
    assert verify.tally == {"asked": 1, "refused": 0}


def test_nothing_is_heard_of_what_is_refused() -> None:
    make, ask, _ = KINDS["estimate"]
    protocol = make()
    for _ in range(4):
        ask(protocol)
    protocol.keeper = pytest.fail
    with pytest.raises(Exhausted):
        ask(protocol)
    verify = KINDS["verify"][0]()
    verify.restore({"asked": 3, "refused": 3})
    verify.keeper = pytest.fail
    assert KINDS["verify"][1](verify).verdict == "exhausted"


def test_rounds_tell_that_a_set_may_be_thrown_away() -> None:
    plan = plans.rounds()
    heard: list[dict[str, int]] = []
    seen: list[int] = []

    def watching(rows: NDArray[Any]) -> float:
        seen.append(len(heard))
        return first(rows)

    rounds = EffectiveRounds.of(plan, ranked(plan.blocks))
    rounds.keeper = lambda tally: heard.append(dict(tally))
    rounds.ask(watching)
    assert heard == [{"thrown": 1, "asked": 1, "refused": 1}]
    assert set(seen) == {1}  # neither set is evaluated before
    assert rounds.tally == {"thrown": 0, "asked": 1, "refused": 0}
    later = EffectiveRounds.of(plan, ranked(plan.blocks))
    later.restore({"thrown": 1, "asked": 1, "refused": 1})
    assert later.rounds_left == plan.sets - 1
    with pytest.raises(InvalidInput):
        later.restore({"asked": 1, "refused": 1})
    with pytest.raises(InvalidInput):
        later.restore({"thrown": 9, "asked": 1, "refused": 1})
