"""A state machine drives a holdout: ask, verify, correct, lose a question, reopen, in any order.

After every step the books that are folded from the ledger are those of the one who asks, what is
charged fits the budget, the status adds up, and no answer that was ever given has changed.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import holdfast as hf
from holdfast.errors import Exhausted
from holdfast.grids import Grid
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.state import HoldoutState, SetState
from tests.holdout import plans
from tests.holdout.tables import broken, sealed, sources

NUMBERS = st.integers(0, 5)
GUESSES = st.sampled_from([0.02, 0.25, 0.5, 9.0])
GRIDS = st.sampled_from([hf.grid([0.5]), *(hf.grid(0, 1, points=n) for n in (2, 8, 20))])
POINTS = hf.grid(0, 1, points=8)

_template: list[Path] = []


def template() -> Path:
    """A holdout that nothing was asked of, to copy."""
    if not _template:
        folder = Path(tempfile.mkdtemp(prefix="holdfast-machine-"))
        made = [plans.mixed(), plans.amplified(), plans.rounds(), plans.split()]
        sealed(folder / "a", made).close()
        _template.append(folder)
    return _template[0] / "a"


class Lost(Exception):
    """The process of a question was lost."""


class Machine(RuleBasedStateMachine):
    """One holdout, by whoever opens it."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-machine-"))
        self.state = Path(tempfile.mkdtemp(prefix="holdfast-state-"))
        shutil.copytree(template(), self.folder / "a")
        self.holdout = self.opened()
        self.told: dict[Any, str] = {}

    def opened(self) -> Holdout:
        # Copies of one holdout would contradict each other: each has a witness of its own.
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOLDFAST_STATE", str(self.state))
            return Holdout.open(self.folder / "a")

    def teardown(self) -> None:
        if hasattr(self, "holdout"):
            assert check_holdout_of(self).passed
            self.holdout.close()
            shutil.rmtree(self.folder)
            shutil.rmtree(self.state)

    def once(self, key: Any, ask: Any) -> None:
        """Ask; what was told before must be told again."""
        try:
            with sources():
                result = ask(self.holdout)
        except Exhausted:
            assert key not in self.told
            return
        said = repr(result.value if hasattr(result, "value") else result.verdict)
        if said in ("None", "'exhausted'"):
            assert key not in self.told
            return
        assert self.told.setdefault(key, said) == said

    @rule(number=NUMBERS, grid=GRIDS, protocol=st.sampled_from(["estimate", "amplified"]))
    def ask(self, number: int, grid: Grid, protocol: str) -> None:
        key = ("ask", number, grid, protocol)
        self.once(key, lambda h: h.ask(f"avg(x) + {number}", grid=grid, protocol=protocol))

    @rule(number=NUMBERS, protocol=st.sampled_from(["rounds", "split"]))
    def ask_exactly(self, number: int, protocol: str) -> None:
        self.once(
            ("ask", number, protocol), lambda h: h.ask(f"avg(x) + {number}", protocol=protocol)
        )

    @rule(number=NUMBERS, guess=GUESSES)
    def verify(self, number: int, guess: float) -> None:
        key = ("verify", number, guess)
        self.once(key, lambda h: h.verify(f"avg(x) + {number}", guess, protocol="verify"))

    @rule(number=NUMBERS, guess=GUESSES)
    def correct(self, number: int, guess: float) -> None:
        key = ("correct", number, guess)
        self.once(key, lambda h: h.correct(f"avg(x) + {number}", guess, grid=POINTS))

    @rule(number=NUMBERS)
    def interval(self, number: int) -> None:
        grid = hf.grid(0, 1, points=4)
        self.once(("interval", number), lambda h: h.interval(f"avg(x) + {number}", grid=grid))

    @rule(
        number=st.integers(10, 12),
        protocol=st.sampled_from(["estimate", "amplified", "split", "rounds", "verify"]),
    )
    def lose(self, number: int, protocol: str) -> None:
        verb = self.holdout.verify if protocol == "verify" else self.holdout.ask
        more: dict[str, Any] = {"guess": 0.5} if protocol == "verify" else {"grid": POINTS}
        with sources(broken(Lost())), suppress(Lost, Exhausted):
            verb(f"avg(x) + {number}", protocol=protocol, **more)

    @rule()
    def reopen(self) -> None:
        before = self.holdout.status()
        self.holdout.close()
        self.holdout = self.opened()
        assert self.holdout.status() == before

    @invariant()
    def books_are_those_of_the_ledger(self) -> None:
        if not hasattr(self, "holdout"):
            return
        sets = self.holdout.spec.sets
        folded = HoldoutState(sets)
        folded.read(self.holdout.journal.ledger.rows())
        with self.holdout.journal.state() as live:
            assert (live.number, live.answers) == (folded.number, folded.answers)
            for each in sets:
                found = live.sets[each.name]
                assert state(found) == state(folded.sets[each.name])
                assert 0 <= found.account.charged <= each.plan.limit

    @invariant()
    def status_adds_up(self) -> None:
        if not hasattr(self, "holdout"):
            return
        status = self.holdout.status()
        assert status.answers == len(self.told)
        assert status.receipt == str(self.holdout.receipt)
        for each in status.sets:
            assert 0 <= each.used <= 1
            assert each.budget is not None
            assert each.spent <= each.budget * (1 + 1e-9)
            for part in each.parts:
                assert part.questions_left >= 0
                assert part.refusals_left is None or part.refusals_left >= 0


def state(found: SetState) -> Any:
    return found.account.charged, found.account.uses, found.unsettled


def check_holdout_of(machine: Machine) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_STATE", str(machine.state / "unseen"))
        return check_holdout(machine.holdout.path)


@pytest.mark.hypothesis
def test_any_order_of_questions_losses_and_reopenings() -> None:
    try:
        run_state_machine_as_test(
            Machine, settings=settings(max_examples=12, stateful_step_count=25, deadline=None)
        )
    finally:
        while _template:
            shutil.rmtree(_template.pop())
