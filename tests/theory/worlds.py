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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ANY",
    "Facts",
    "Side",
    "World",
    "divergences",
    "exponential",
    "facts",
    "looks",
    "tables",
    "worst",
]

Array = NDArray[np.float64]
Yes = Callable[[int], float]  # P[Yes] of the coin, by twice the offset
Side = Literal["low", "high", "both"]
ANY: Side = "both"

# The law of the answer, (r, …) → (r, …), from #{φ ≤ T[v]} of all blocks, or of all but one.
Mechanism = Callable[["World", NDArray[np.int64], bool], Array]


def looks(yes: Yes, twice_target: int | None = None) -> Mechanism:
    """The search of theory.md §3: binary, one look per step. Its centre is half a count further."""

    def law(world: World, counts: NDArray[np.int64], centre: bool) -> Array:
        target = world.blocks if twice_target is None else twice_target
        offsets = 2 * counts + int(centre) - target
        result = np.zeros(counts.shape)

        def descend(low: int, high: int, reached: Array) -> None:
            if low == high:
                result[low] = reached
                return
            middle = (low + high) // 2
            chance = np.vectorize(yes, otypes=[float])(offsets[middle])
            descend(low, middle, reached * chance)
            descend(middle + 1, high, reached * (1 - chance))

        descend(0, world.size - 1, np.ones(counts.shape[1:]))
        return result

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
        ranges = itertools.product(range(self.blocks), repeat=len(self.atoms))
        return np.array([u for u in ranges if sum(u) == self.blocks - 1], dtype=np.int64)

    @cached_property
    def weights(self) -> Array:
        """P[S₋ᵢ = u, S_i = x]."""
        ways = [
            math.factorial(self.blocks - 1) // math.prod(math.factorial(int(c)) for c in u)
            for u in self.others
        ]
        chance = [
            way * math.prod(p ** int(c) for p, c in zip(self.atoms, u, strict=True))
            for way, u in zip(ways, self.others, strict=True)
        ]
        return np.array([[float(c * p) for p in self.atoms] for c in chance])

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


def worst(world: World, queries: int, tail: Fraction, side: Side = ANY) -> float:
    """P[bad] of the best analyst there is, by dynamic programming over transcripts."""
    offences = [
        [world.offence(q, v, tail, side) is not None for v in range(world.size)]
        for q in world.questions
    ]

    def value(reached: Array, left: int) -> float:
        if left == 0:
            return 0.0
        best = 0.0
        for (real, _), offence in zip(world.channels, offences, strict=True):
            total = 0.0
            for answer in range(world.size):
                now = reached * real[answer]
                total += float(now.sum()) if offence[answer] else value(now, left - 1)
            best = max(best, total)
        return best

    return value(world.weights, queries)


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
