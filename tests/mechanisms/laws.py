"""Entropies that a test controls, exact laws of mechanisms, and divergences between laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc

from holdfast.mechanisms.looks import search_counts
from holdfast.randomness import Entropy
from holdfast.theory.coins import Coin

LARGEST_WORD = 2**64 - 1
Outcome = TypeVar("Outcome", bound=Hashable)
Transcript = tuple[bool, ...]
SearchCounts = Callable[[Callable[[int], int], int, int, Coin, Entropy], int]


class Exhausted(Exception):
    """A script has no more words."""


class Script(Entropy):
    """The given words, then `Exhausted`."""

    def __init__(self, words: Sequence[int]) -> None:
        self.rest = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        if count > len(self.rest):
            raise Exhausted
        taken, self.rest = self.rest[:count], self.rest[count:]
        return np.array(taken, np.uint64)


class Constant(Entropy):
    """The same word again and again: every coin of the same probability falls the same way."""

    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.full(count, self.word, np.uint64)


def search_law(
    counts: Sequence[int], twice_target: int, coin: Coin, search: SearchCounts = search_counts
) -> dict[Transcript, tuple[int, Fraction]]:
    """Every transcript of a search, with its answer and its exact probability.

    The search itself is run, once for each way its coins can fall: the word 0 makes a coin err,
    the largest word makes it tell the truth. counts[i] = #{φ ≤ T[i]} for all but the last point.
    """
    law: dict[Transcript, tuple[int, Fraction]] = {}
    pending: list[tuple[int, ...]] = [()]
    while pending:
        words = pending.pop()
        offsets: list[int] = []

        def count_at(index: int, offsets: list[int] = offsets) -> int:
            offsets.append(2 * counts[index] - twice_target)
            return counts[index]

        try:
            answer = search(count_at, len(counts) + 1, twice_target, coin, Script(words))
        except Exhausted:
            pending += [(*words, 0), (*words, LARGEST_WORD)]
            continue
        probability = Fraction(1)
        for offset, word in zip(offsets, words, strict=True):
            error = Fraction(coin.halfsteps[min(abs(offset), coin.halfsteps.size - 1)])
            probability *= error if word == 0 else 1 - error
        transcript = tuple((x > 0) != (w == 0) for x, w in zip(offsets, words, strict=True))
        assert transcript not in law
        law[transcript] = (answer, probability)
    assert sum(p for _, p in law.values()) == 1
    return law


def answers(law: Mapping[Transcript, tuple[int, Fraction]]) -> dict[int, Fraction]:
    """The law of the answer alone."""
    result: dict[int, Fraction] = {}
    for answer, probability in law.values():
        result[answer] = result.get(answer, Fraction(0)) + probability
    return result


def renyi(order: float, p: Mapping[Outcome, float], q: Mapping[Outcome, float]) -> float:
    """D_order(p‖q) for two laws on the same finite set."""
    assert p.keys() == q.keys()
    terms = [math.exp(order * math.log(p[x]) + (1 - order) * math.log(q[x])) for x in p]
    return math.log(math.fsum(terms)) / (order - 1)


def neighbours(data: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    """Every list that differs in one block."""
    for i, old in enumerate(data):
        for new in range(size):
            if new != old:
                yield (*data[:i], new, *data[i + 1 :])


def surprise(successes: int, trials: int, probability: float) -> float:
    """The smaller tail of the binomial law at what was seen: at most x has probability ≤ 2x."""
    low = float(bdtr(successes, trials, probability))
    high = 1.0 if successes == 0 else float(bdtrc(successes - 1, trials, probability))
    return min(low, high)


def alarm(seen: Sequence[int], trials: int, law: Sequence[float], chance: float = 1e-6) -> bool:
    """Whether counts contradict the law; if they follow it, with probability ≤ `chance`.

    Each count alone is binomial; by the union bound over both tails of each, the smallest
    tail falls below chance / (2 · counts) with probability at most `chance`.
    """
    least = min(surprise(x, trials, p) for x, p in zip(seen, law, strict=True))
    return least < chance / (2 * len(law))
