"""Mistakes in what is told, each caught by the best analyst of a tiny world, or by its sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from holdfast.protocols import procedures, rules
from holdfast.protocols import told as protocol
from holdfast.protocols.answers import RULE
from holdfast.protocols.base import Question
from holdfast.protocols.rules import CountWindows, Shifted, ThreeWay, Winner
from holdfast.protocols.source import WEIGHT_SCALE
from holdfast.protocols.told import Past
from holdfast.theory import betting, told
from holdfast.theory.betting import Bets, Tally
from holdfast.theory.told import Code, Ends, History, level
from tests.mutants.theory import Mutant
from tests.protocols import test_told_worlds as worlds

__all__ = ["MUTANTS"]

Patch = tuple[Any, str, Any]


@cache
def passes(check: Callable[[], bool]) -> Callable[..., bool]:
    """A check of the code as it is, or with something in it replaced."""

    def patched(patches: Sequence[Patch] = ()) -> bool:
        with pytest.MonkeyPatch.context() as monkey:
            for patch in patches:
                monkey.setattr(*patch)
            return check()

    return patched


def within(tried: str | Callable[[], float]) -> Callable[[], bool]:
    """Whether the best analyst stays within what is certified."""
    return lambda: (worlds.worst(tried) if isinstance(tried, str) else tried()) <= 1 + 1e-9


def verdicts_cost_little() -> bool:
    """A hundred verdicts, all as expected: what the theory says that they cost, for ever."""
    past, question = Past(History(0.05)), Question("gate", "told", {})
    for _ in range(100):
        nats = told.VerdictCode(past.history.verdicts.epsilon, 1).nats(1)
        past.tell(question, {"letter": [1], "nats": nats, "surprise": False})
    return abs(past.nats - 0.815) < 0.001


def claims_hold_for_terms_in_parts() -> bool:
    """Terms that are all the same, and lie between two parts: no end may pass them."""
    rows, bets = 10**9, Bets.spread(10**9)
    for part, term in ((20_000, 20_000.499), (20_001, 20_000.501)):
        terms = Tally(np.array([part]), np.array([rows]), WEIGHT_SCALE)
        low, high = procedures.Mean(terms, (bets, bets)).interval(3.0)
        if not low <= term / WEIGHT_SCALE <= high:
            return False
    return True


def unrounded(self: procedures.Mean, nats: float) -> tuple[float, float]:
    return betting.mean_low(self.terms, nats, self.bets[0]), betting.mean_high(
        self.terms, nats, self.bets[1]
    )


# Mistakes that take more than a line.


def one_nat_short(history: History, account: int = 1, reading: int = 1) -> float:
    return level(history, account, reading) - 1


def tell_nothing(self: History, nats: float, tell: Any = History.tell, **rest: Any) -> History:
    return tell(self, 0.0 * nats, **rest)  # type: ignore[no-any-return]


def sequences_forgotten(
    self: History, nats: float, tell: Any = History.tell, **rest: Any
) -> History:
    return tell(self, nats, **{name: each for name, each in rest.items() if name != "verdict"})  # type: ignore[no-any-return]


def known_beforehand(self: CountWindows, letter: rules.Letter) -> float:
    """ε from the future: 0 if the answer is as expected, 1 if it is not."""
    return 0.0 if letter == (0,) else told.Outward(1.0).nats(letter[0])


def at_the_level_alone(self: Shifted, rows: Any) -> rules.Letter:
    own = rows.interval(self.level)
    for letter in self.code.letters():
        low, high = self._unit(letter)
        if low <= own[0] and own[1] <= high:
            return letter
    raise AssertionError


def proved_at_the_level_alone(self: ThreeWay, rows: Any) -> rules.Letter:
    below, above = self.thresholds
    if rows.log_over(above) <= -self.level:
        return (2,)
    return (0,) if rows.log_under(below) <= -self.level else (1,)


def winner_is_free(self: Winner, letter: rules.Letter) -> float:
    return 0.0


def all_of_beta(self: History, account: int, reading: int = 1) -> float:
    return self.failure


def without_mirror(self: Code, letter: int) -> float:
    return self.nats_at_least(letter)


def nothing(*_: Any) -> float:
    return 0.0


LEVEL: Patch = (protocol, "level", one_nat_short)
FORGOTTEN: Patch = (History, "tell", tell_nothing)
_BROKEN: dict[Callable[[], bool], dict[str, list[Patch]]] = {
    within("confirmed shares"): {
        "levels one nat short": [LEVEL],
        "both ends take the whole tail": [
            (Code, "nats_at_least", nothing),
            (Code, "nats_at_most", nothing),
        ],
        "upper ends pay for the lower tail": [(Code, "nats_at_most", without_mirror)],
        "ε from the future": [(CountWindows, "nats", known_beforehand)],
    },
    within("precise shares"): {"precise shares one nat short": [LEVEL]},
    within("gates"): {
        "gates one nat short": [LEVEL],
        "a verdict does not pay for its letter": [(ThreeWay, "letter", proved_at_the_level_alone)],
    },
    within("verdicts"): {"comparisons one nat short": [LEVEL]},
    within(worlds.letters_of_all): {
        "intervals at the level without their nats": [(Shifted, "letter", at_the_level_alone)],
    },
    within("blocks"): {
        "ends on a lattice pay nothing": [
            (Ends, "nats_low", nothing),
            (Ends, "nats_high", nothing),
        ],
        "medians one nat short": [LEVEL],
    },
    within("winners"): {"a winner is free": [(Winner, "nats", winner_is_free)]},
    within("batches"): {"a batch without ln m": [(protocol, "batch_together", nothing)]},
    within("three shares, one after the other"): {"letters are not counted": [FORGOTTEN]},
    within("both readings"): {"readings without shares": [(History, "share", all_of_beta)]},
    within(worlds.strata): {
        "a split by class is read as simple": [(worlds, "HOW", RULE)],
    },
    verdicts_cost_little: {
        "the code of verdicts does not learn": [(History, "tell", sequences_forgotten)],
    },
    claims_hold_for_terms_in_parts: {
        "terms are not rounded": [(procedures.Mean, "interval", unrounded)],
    },
}
MUTANTS = [
    Mutant(name, passes(check), patches)
    for check, mistakes in _BROKEN.items()
    for name, patches in mistakes.items()
]
