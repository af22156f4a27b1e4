"""Tiny worlds without noise: the best analyst is found by trying everything, in whole fractions.

A block is one of a few atoms with known probabilities; a sample is how often each of them occurs.
A set of samples is a whole number, one bit for each. What an analyst can know is the set of samples
that would have given the same answers; the best she can do from there, failure for failure, is a
maximum over all questions. Only the first failure counts: one is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product

from tests.theory.worlds import samples

__all__ = ["World", "best_verdict"]


@dataclass(frozen=True)
class Outcome:
    """A question's samples: where it fails, and where each harmless answer is given."""

    failing: int
    harmless: tuple[tuple[bool, int], ...]  # (counted as a refusal, samples)


@dataclass(frozen=True)
class World:
    """Atoms with probabilities, and the number of blocks."""

    masses: tuple[Fraction, ...]
    blocks: int

    @cached_property
    def law(self) -> dict[tuple[int, ...], Fraction]:
        """How often each atom occurs, for every sample, and the chance of that."""
        return samples(self.masses, self.blocks)

    @cached_property
    def samples(self) -> list[tuple[int, ...]]:
        return list(self.law)

    @cached_property
    def chances(self) -> list[Fraction]:
        return list(self.law.values())

    def where(self, holds: Callable[[tuple[int, ...]], bool]) -> int:
        """The samples for which something holds."""
        return sum(1 << i for i, count in enumerate(self.samples) if holds(count))

    def chance(self, cell: int) -> Fraction:
        return sum((p for i, p in enumerate(self.chances) if cell >> i & 1), Fraction(0))

    def mass(self, atoms: set[int]) -> Fraction:
        return sum((self.masses[a] for a in atoms), Fraction(0))

    @property
    def everything(self) -> int:
        return (1 << len(self.samples)) - 1

    def questions(self, points: int) -> Iterator[tuple[int, ...]]:
        """Every estimator: a grid index for each atom."""
        return product(range(points), repeat=len(self.masses))

    def sides(self, values: tuple[int, ...], guess: int) -> tuple[set[int], set[int]]:
        """The atoms with values at most, and at least, the guess."""
        at_most = {a for a, value in enumerate(values) if value <= guess}
        return at_most, {a for a, value in enumerate(values) if value >= guess}


def _count(count: tuple[int, ...], atoms: set[int]) -> int:
    return sum(count[a] for a in atoms)


def _verdict(
    world: World, sides: list[set[int]], least: int, tails: tuple[Fraction, Fraction]
) -> tuple[int, int, int]:
    """Where a guess fails, and where it is harmlessly confirmed, and refused."""
    yes = world.where(lambda count: min(_count(count, side) for side in sides) >= least)
    no = world.everything & ~yes
    masses = [world.mass(side) for side in sides]
    if min(masses) <= tails[0]:
        return yes, 0, no
    if min(masses) >= tails[1]:
        return no, yes, 0
    return 0, yes, no


def best_verdict(
    world: World,
    least: int,
    queries: int,
    refusals: int,
    tails: tuple[Fraction, Fraction],
    *,
    sides: int = 2,
) -> Fraction:
    """The largest chance that a promise about verdicts fails."""
    outcomes = set()
    for values in world.questions(3):  # below the guess, equal to it, above it
        both = list(world.sides(values, 1))
        failing, yes, no = _verdict(world, both[:sides], least, tails)
        outcomes.add(Outcome(failing, ((False, yes), (True, no))))
    return _play(world, frozenset(outcomes), queries, refusals)


def _play(world: World, outcomes: frozenset[Outcome], queries: int, refusals: int) -> Fraction:
    """The best adaptive choice among the outcomes, until the questions or refusals are used up."""

    @cache
    def chance(cell: int) -> Fraction:
        return world.chance(cell)

    @cache
    def best(cell: int, left: int, noes: int) -> Fraction:
        if not (cell and left and noes):
            return Fraction(0)
        return max(
            chance(cell & each.failing)
            + sum(
                (best(cell & part, left - 1, noes - no) for no, part in each.harmless), Fraction(0)
            )
            for each in outcomes
        )

    return best(world.everything, queries, refusals)
