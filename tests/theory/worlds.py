"""Worlds so small that every dataset, every transcript and every analyst can be written out.

A world has a few atoms of rational probability, m blocks, a grid of r points and a mechanism. A
question is a function from atoms to grid indices; an analyst is a tree that chooses the next one
from the answers so far. By symmetry it is enough to follow one block x and the multiset u of the
others, in two laws of the proof of the transfer theorem:

    law 1   the transcript comes from M(S)
    law 2   it comes from Q(S₋ᵢ), which ignores block i: the same questions, coins half a count off

All numbers are exact up to the rounding of floats.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.theory.coins import Coin, VerdictCoin, coin_profile
from holdfast.theory.transfer import FailureClass

__all__ = [
    "ANY",
    "Action",
    "Facts",
    "Guessing",
    "Outcome",
    "Population",
    "Rules",
    "Searches",
    "Side",
    "World",
    "atoms_for",
    "divergences",
    "exponential",
    "facts",
    "looks",
    "most_broken",
    "samples",
    "search_law",
    "tables",
]

Array = NDArray[np.float64]
Yes = Callable[[int], float]  # P[Yes] of the coin, by twice the offset
Side = Literal["low", "high", "both"]
ANY: Side = "both"


def samples(atoms: Sequence[Fraction], blocks: int) -> dict[tuple[int, ...], Fraction]:
    """Every multiset of so many atoms, as counts, with its multinomial chance."""
    return {
        counts: math.factorial(blocks)
        // math.prod(map(math.factorial, counts))
        * math.prod((p**c for p, c in zip(atoms, counts, strict=True)), start=Fraction(1))
        for counts in itertools.product(range(blocks + 1), repeat=len(atoms))
        if sum(counts) == blocks
    }


# The law of the answer, (r, …) → (r, …), from #{φ ≤ T[v]} of all blocks, or of all but one.
Mechanism = Callable[["World", NDArray[np.int64], bool], Array]


def search_law(size: int, yes: Callable[[int], Any], reached: Any = 1.0) -> list[Any]:
    """The law of a binary search: yes(i) is the chance to go left at i, as floats or arrays."""
    law: list[Any] = [0.0] * size

    def descend(low: int, high: int, reached: Any) -> None:
        if low == high:
            law[low] = reached
            return
        middle = (low + high) // 2
        chance = yes(middle)
        descend(low, middle, reached * chance)
        descend(middle + 1, high, reached * (1 - chance))

    descend(0, size - 1, reached)
    return law


def looks(yes: Yes, twice_target: int | None = None) -> Mechanism:
    """The search of theory.md §3: binary, one look per step. Its centre is half a count further."""

    def law(world: World, counts: NDArray[np.int64], centre: bool) -> Array:
        target = world.blocks if twice_target is None else twice_target
        offsets = 2 * counts + int(centre) - target
        each = np.vectorize(yes, otypes=[float])
        law = search_law(world.size, lambda i: each(offsets[i]), np.ones(counts.shape[1:]))
        return np.array(law)

    return law


def exponential(epsilon: float) -> Mechanism:
    """The exponential mechanism's median: weights e^(−ε·c/2), c = max(#less, #greater).

    Its centre has the score of the other blocks: a constant ½ more or less changes no law.
    """

    def law(world: World, counts: NDArray[np.int64], centre: bool) -> Array:
        less = np.concatenate([np.zeros_like(counts[:1]), counts[:-1]])
        scores = np.maximum(less, counts[-1] - counts)
        weights = np.exp(-epsilon / 2 * scores)
        return np.asarray(weights / weights.sum(axis=0))

    return law


@dataclass(frozen=True)
class World:
    """m blocks, each one of the atoms; a grid of `size` points; a mechanism that answers."""

    atoms: tuple[Fraction, ...]
    blocks: int
    size: int
    mechanism: Mechanism

    @cached_property
    def others(self) -> NDArray[np.int64]:
        """Every multiset of m − 1 blocks, as counts per atom."""
        return np.array(list(samples(self.atoms, self.blocks - 1)), dtype=np.int64)

    @cached_property
    def weights(self) -> Array:
        """P[S₋ᵢ = u, S_i = x]."""
        chances = samples(self.atoms, self.blocks - 1).values()
        return np.array([[float(c * p) for p in self.atoms] for c in chances])

    @cached_property
    def questions(self) -> list[tuple[int, ...]]:
        """Every function from atoms to grid indices."""
        return list(itertools.product(range(self.size), repeat=len(self.atoms)))

    @cached_property
    def channels(self) -> list[tuple[Array, Array]]:
        """For each question the law of the answer: (r, u, x) under law 1, (r, u, 1) under law 2."""
        return [self._channel(question) for question in self.questions]

    def _channel(self, question: tuple[int, ...]) -> tuple[Array, Array]:
        at_most = np.array([[phi <= v for phi in question] for v in range(self.size)])
        rest = np.einsum("ux,vx->vu", self.others, at_most)
        rest = rest[:, :, np.newaxis]
        real = rest + at_most[:, np.newaxis, :]
        return self.mechanism(self, real, False), self.mechanism(self, rest, True)

    def tails(self, question: tuple[int, ...], answer: int) -> tuple[Fraction, Fraction]:
        """D[φ ≤ v] and D[φ ≥ v]."""
        low = sum((p for p, phi in zip(self.atoms, question, strict=True) if phi <= answer), ZERO)
        high = sum((p for p, phi in zip(self.atoms, question, strict=True) if phi >= answer), ZERO)
        return low, high

    def offence(
        self, question: tuple[int, ...], answer: int, tail: Fraction, side: Side
    ) -> Array | None:
        """The offending indicator ψ on atoms, if this answer breaks the promise on this side."""
        low, high = self.tails(question, answer)
        if side in ("low", ANY) and low <= tail:
            return np.array([float(phi <= answer) for phi in question])
        if side in ("high", ANY) and high <= tail:
            return np.array([float(phi >= answer) for phi in question])
        return None


ZERO = Fraction(0)


@dataclass(frozen=True)
class Facts:
    """What the proof speaks of, one entry per analyst."""

    bad: Array  # P₁[bad]
    bad_without: Array  # P₂[bad]
    sample: Array  # P₁[bad, ψ(S_i) = 1] = E[1(bad)·S[ψ]]
    fresh: Array  # P₂[bad, ψ(S_i) = 1] = E₂[1(bad)·D[ψ]]

    def __len__(self) -> int:
        return self.bad.size

    def only(self, chosen: NDArray[np.intp]) -> Facts:
        """The facts of some analysts."""
        return Facts(*(x[chosen] for x in (self.bad, self.bad_without, self.sample, self.fresh)))


def facts(
    world: World, queries: int, tail: Fraction, side: Side = ANY, most: int = 200_000, seed: int = 1
) -> Facts:
    """For every analyst of so many questions; a random part of them where there are too many."""
    rng = np.random.default_rng(seed)
    offences = [
        [world.offence(q, v, tail, side) for v in range(world.size)] for q in world.questions
    ]

    def subtrees(one: Array, two: Array, depth: int) -> Array:
        """(analysts, 4): what each analyst of this depth adds from here on."""
        if depth == 0:
            return np.zeros((1, 4))
        found = []
        for (real, centre), offence in zip(world.channels, offences, strict=True):
            total = np.zeros((1, 4))
            for answer in range(world.size):
                reached, ghost = one * real[answer], two * centre[answer]
                psi = offence[answer]
                if psi is None:
                    more = subtrees(reached, ghost, depth - 1)
                    if len(total) * len(more) > most:
                        some, others = (rng.integers(len(x), size=most) for x in (total, more))
                        total = total[some] + more[others]
                    else:
                        total = (total[:, np.newaxis] + more[np.newaxis]).reshape(-1, 4)
                else:
                    sums = (reached.sum(), ghost.sum(), (reached * psi).sum(), (ghost * psi).sum())
                    total = total + np.array(sums)
            found.append(total)
        return np.concatenate(found)

    table = subtrees(world.weights, world.weights, queries)
    if len(table) > most:
        table = table[rng.choice(len(table), most, replace=False)]
    return Facts(*table.T)


def divergences(world: World, queries: int, order: float, rng: random.Random) -> dict[str, Array]:
    """Of whole transcripts of one random analyst, over all datasets: the largest is the price.

    `neighbours`: D(M(u, x)‖M(u, x′)); `centre`: D(M(u, x)‖Q(u)) and D(Q(u)‖M(u, x)).
    """
    laws: list[tuple[Array, Array]] = []

    def ask(real: Array, centre: Array, left: int) -> None:
        if left == 0:
            laws.append((real, centre))
            return
        for one, two in zip(*rng.choice(world.channels), strict=True):
            ask(real * one, centre * two, left - 1)

    shape = world.weights.shape
    ask(np.ones(shape), np.ones((shape[0], 1)), queries)
    real = np.array([law[0] for law in laws])
    centre = np.array([law[1] for law in laws])
    return {
        "neighbours": _renyi(order, real[..., :, np.newaxis], real[..., np.newaxis, :]).ravel(),
        "centre": np.concatenate(
            [_renyi(order, real, centre).ravel(), _renyi(order, centre, real).ravel()]
        ),
    }


def _renyi(order: float, p: Array, q: Array) -> Array:
    """D(p‖q) along the first axis."""
    terms = order * np.log(p) + (1 - order) * np.log(q)
    return np.asarray(np.logaddexp.reduce(terms, axis=0) / (order - 1))


def tables(seed: int, count: int) -> Sequence[Array]:
    """Random coins of a few half steps, steep and flat ones."""
    rng = np.random.default_rng(seed)
    steps = [rng.gamma(0.6, 1.2, size=rng.integers(1, 6)) for _ in range(count)]
    return [0.5 * np.exp(-np.cumsum([0.0, *np.minimum(step, 4.0)])) for step in steps]


# What is asked at random, and who is most likely to break a failure class.


@dataclass(frozen=True)
class Population:
    """Atoms of rational probability, and m blocks of one atom each."""

    atoms: tuple[Fraction, ...]
    blocks: int

    @cached_property
    def datasets(self) -> NDArray[np.int64]:
        """Every multiset of m atoms, as counts."""
        return np.array(list(samples(self.atoms, self.blocks)), dtype=np.int64)

    @cached_property
    def weights(self) -> Array:
        """P[S = s]."""
        return np.array([float(c) for c in samples(self.atoms, self.blocks).values()])

    def chance(self, event: Sequence[bool]) -> Fraction:
        """D[ψ]."""
        return sum((p for p, w in zip(self.atoms, event, strict=True) if w), Fraction(0))

    def counts(self, event: Sequence[bool]) -> NDArray[np.int64]:
        """m·S[ψ] for every dataset."""
        return self.datasets @ np.array(event, dtype=np.int64)


@dataclass(frozen=True)
class Outcome:
    """One possible answer: how likely on each dataset, what it is charged, what it breaks."""

    chance: Array
    price: float
    refused: bool
    breaks: frozenset[str]


@dataclass(frozen=True)
class Action:
    """One question: its outcomes, and what must be free before it is asked."""

    kind: str
    worst: float
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Rules:
    """What ends the interaction: numbers of questions and of refusals, and a budget."""

    limit: float
    questions: int
    refusals: int


def most_broken(world: Population, actions: Sequence[Action], rules: Rules, *targets: str) -> float:
    """P[one of the classes is broken] for the best adaptive analyst."""

    def value(reached: Array, left: Rules) -> float:
        if left.questions == 0:
            return 0.0
        best = 0.0
        for action in actions:
            if action.worst > left.limit + 1e-12 or (action.kind == "verify" and not left.refusals):
                continue
            total = 0.0
            for outcome in action.outcomes:
                now = reached * outcome.chance
                if not outcome.breaks.isdisjoint(targets):
                    total += float(now.sum())
                elif left.questions > 1:
                    after = Rules(
                        left.limit - outcome.price,
                        left.questions - 1,
                        left.refusals - outcome.refused,
                    )
                    total += value(now, after)
            best = max(best, total)
        return best

    return value(world.weights, rules)


def yes_chances(coin: VerdictCoin, counts: NDArray[np.int64], twice_target: int) -> Array:
    offsets = 2 * counts - twice_target
    return np.array([coin.side(int(x)).yes(int(x)) for x in offsets])


def events(world: Population) -> Iterator[tuple[bool, ...]]:
    return itertools.product((False, True), repeat=len(world.atoms))


@dataclass(frozen=True)
class Guessing:
    """Verification: a coin with its prices, a target, and what is promised."""

    coin: VerdictCoin
    no: float
    yes: float
    twice_target: int
    tail_low: float
    tail_high: float
    sides: int

    def actions(self, world: Population) -> list[Action]:
        """One-sided: every event. Two-sided: every {φ ≤ v}, {φ ≥ v}, which together are all."""
        every = list(events(world))
        questions: list[tuple[tuple[bool, ...], ...]]
        if self.sides == 1:
            questions = [(event,) for event in every]
        else:
            pairs = itertools.product(every, every)
            questions = [q for q in pairs if all(x or y for x, y in zip(*q, strict=True))]
        return [self._action(world, question) for question in questions]

    def _action(self, world: Population, question: tuple[tuple[bool, ...], ...]) -> Action:
        tails = [world.chance(event) for event in question]
        offends = min(tails) <= Fraction(self.tail_low)
        right = min(tails) >= Fraction(self.tail_high)
        outcomes, reached = [], np.ones(len(world.datasets))
        false_no = frozenset({"false no"} if right else ())
        for done, event in enumerate(question):
            yes = yes_chances(self.coin, world.counts(event), self.twice_target)
            price = done * self.yes + self.no
            outcomes.append(Outcome(reached * (1 - yes), price, True, false_no))
            reached = reached * yes
        false_yes = frozenset({"false yes"} if offends else ())
        outcomes.append(Outcome(reached, self.sides * self.yes, False, false_yes))
        worst = (self.sides - 1) * self.yes + max(self.no, self.yes)
        return Action("verify", worst, tuple(outcomes))

    def classes(self, blocks: int, looks: int, failure: float = 0.5) -> dict[str, FailureClass]:
        """As in `planning.parts`, written out again."""
        below = coin_profile(self.coin.below, looks)
        above = coin_profile(self.coin.above, looks)
        high, reach = 1 - self.tail_high, 2 * blocks - self.twice_target
        return {
            "false yes": FailureClass("", self.tail_low, self.twice_target, failure, below),
            "false no": FailureClass("", high, reach, failure, above),
        }


@dataclass(frozen=True)
class Searches:
    """A search, or with `mirrored` the two of an interval, on a grid of `size` points."""

    coin: Coin
    price: float
    twice_target: int
    tail_low: float | Fraction
    tail_high: float | Fraction
    size: int
    mirrored: bool = False

    def actions(self, world: Population) -> list[Action]:
        questions = itertools.product(range(self.size), repeat=len(world.atoms))
        return [self._action(world, question) for question in questions]

    @property
    def looks(self) -> int:
        return (self.size - 1).bit_length() * (2 if self.mirrored else 1)

    def _law(self, world: Population, question: tuple[int, ...], twice_target: int) -> list[Array]:
        coin = VerdictCoin.symmetric(self.coin)

        def yes(point: int) -> Array:
            counts = world.counts([phi <= point for phi in question])
            return yes_chances(coin, counts, twice_target)

        return search_law(self.size, yes, np.ones(len(world.datasets)))

    def _action(self, world: Population, question: tuple[int, ...]) -> Action:
        def at_most(v: int) -> Fraction:
            return world.chance([phi <= v for phi in question])

        def at_least(v: int) -> Fraction:
            return world.chance([phi >= v for phi in question])

        price = self.looks * self.price
        low, high = Fraction(self.tail_low), Fraction(self.tail_high)
        first = self._law(world, question, self.twice_target)
        outcomes = []
        if not self.mirrored:
            for v, chance in enumerate(first):
                breaks = {"too low"} if at_most(v) <= low else set()
                breaks |= {"too high"} if at_least(v) <= high else set()
                outcomes.append(Outcome(chance, price, False, frozenset(breaks)))
        else:
            second = self._law(world, question, 2 * world.blocks - self.twice_target)
            for (v, one), (w, two) in itertools.product(enumerate(first), enumerate(second)):
                # "too low" is too wide; "too high" does not enclose the median (tail 1/2).
                breaks = {"too low"} if min(at_most(v), at_least(w)) <= low else set()
                breaks |= {"too high"} if min(at_least(v), at_most(w)) <= high else set()
                outcomes.append(Outcome(one * two, price, False, frozenset(breaks)))
        return Action("search", price, tuple(outcomes))

    def classes(self, blocks: int, looks: int, failure: float = 0.5) -> dict[str, FailureClass]:
        profile = coin_profile(self.coin, looks)
        reach = 2 * blocks - self.twice_target
        return {
            "too low": FailureClass("", float(self.tail_low), self.twice_target, failure, profile),
            "too high": FailureClass("", float(self.tail_high), reach, failure, profile),
        }


def atoms_for(*rare: Fraction) -> tuple[Fraction, ...]:
    return (*rare, 1 - sum(rare, Fraction(0)))
