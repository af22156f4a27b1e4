"""Broken bounds of verdicts, each with the check of the real tests that rejects it."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.theory.bars import Bar, verdict_bar
from tests.mutants.theory import Mutant
from tests.theory.test_verdict_bars import Side, tail

VerdictBar = Callable[[float, Side, bool, int, float, float], Bar]
SIDES: tuple[Side, Side] = ("at least", "at most")
OTHER: dict[Side, Side] = {"at least": "at most", "at most": "at least"}
MEANS = [k / 40 for k in range(1, 40)]


def no_true_mean_is_excluded(bar: VerdictBar = verdict_bar) -> bool:
    """Exactly, on blocks of 30 flips: every mean under which a verdict may be said is allowed."""
    units, low_tail, high_tail = 30, 0.05, 0.25
    for claim in SIDES:
        for guess in (0.2, 0.5, 0.85):
            for mean in MEANS:
                found = tail(mean, units, guess, claim)
                for confirmed, said in ((True, found > low_tail), (False, found < high_tail)):
                    low, high = bar(guess, claim, confirmed, units, low_tail, high_tail)
                    if said and not (low or 0.0) <= mean <= (1.0 if high is None else high):
                        return False
    return True


def _tails_swapped(
    guess: float, claim: Side, confirmed: bool, units: int, low: float, high: float
) -> Bar:
    return verdict_bar(guess, claim, confirmed, units, high, low)


def _sides_swapped(
    guess: float, claim: Side, confirmed: bool, units: int, low: float, high: float
) -> Bar:
    return verdict_bar(guess, OTHER[claim], confirmed, units, low, high)


def _no_is_yes(
    guess: float, claim: Side, confirmed: bool, units: int, low: float, high: float
) -> Bar:
    return verdict_bar(guess, claim, True, units, low, high)


def _blocks_too_large(
    guess: float, claim: Side, confirmed: bool, units: int, low: float, high: float
) -> Bar:
    return verdict_bar(guess, claim, confirmed, 4 * units, low, high)


def _at_the_guess(
    guess: float, claim: Side, confirmed: bool, units: int, low: float, high: float
) -> Bar:
    return (guess, 1.0) if (claim == "at least") == confirmed else (0.0, guess)


MUTANTS = [
    Mutant("a verdict's tails are swapped", no_true_mean_is_excluded, _tails_swapped),
    Mutant("a verdict bounds the other side", no_true_mean_is_excluded, _sides_swapped),
    Mutant("a No bounds like a Yes", no_true_mean_is_excluded, _no_is_yes),
    Mutant("a verdict's blocks count four times", no_true_mean_is_excluded, _blocks_too_large),
    Mutant("a verdict bounds the mean by its guess", no_true_mean_is_excluded, _at_the_guess),
]
