"""Certificates that count what is told: no plan, no noise, rows instead of blocks.

After a history h of letters the next letter is r_h(X), X the sealed rows; q_h is a code for it, a
sub-probability fixed by h, and each letter makes a claim about the law of the rows, or none. With
T(h) = Σ ln 1/q the nats told so far, and F the letters whose claims are false,

    (★)  P[r_h(X) ∈ F] ≤ β·e^(−T(h))·(1 − q_h(A∖F))   for every h and every law

makes all claims ever told true at once, but for probability β: any analyst, any number of
questions. So one number governs a question, `level` = ln 1/β + T(h):

    letter rule   the claim of letter a is judged at level + ln 1/q(a)
    tail rule     ordered letters, β < ½: the lower end of letter a at level + ln 1/q(letters ≥ a),
                  the upper one at level + ln 1/q(letters ≤ a), each in full

What was expected has q near 1 and costs almost nothing; a surprise costs its surprise. The idea is
the description length of Dwork, Feldman, Hardt, Pitassi, Reingold & Roth (2015).

Rounding. Any code is allowed, so ε may be any float. A code's q are right to 1e-13 of themselves;
`cost` takes logarithms and adds 1e-12, sums are rounded up: nats and levels are never too small.
Ends of intervals are checked to be far enough out (`share_low`), whatever an inverse returned.
Proofs, and the sources: docs/explanation/theory/told.md (sections of it are cited below).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.theory.numerics import ROUNDING, log_binomial_tail, log_up, round_down

__all__ = [
    "CONFIRM_CELL",
    "PRECISE_CELL",
    "Around",
    "Code",
    "Ends",
    "Even",
    "History",
    "OrderRanks",
    "Outward",
    "Shifts",
    "Surprises",
    "VerdictCode",
    "Windows",
    "add_nats",
    "allowance",
    "batch_in_order",
    "batch_together",
    "bisect_last",
    "cost",
    "gap_epsilon",
    "guess_error",
    "horizon_epsilon",
    "level",
    "log_mcnemar",
    "log_share_above",
    "log_share_below",
    "look_failure",
    "quantile_ranks",
    "share_bar",
    "share_high",
    "share_low",
    "tolerance",
]

ROWS_MAX = 10**12
NATS_MAX = 1e6
CONFIRM_CELL = 1.5  # windows beside an announced one, in standard deviations of the sealed mean
PRECISE_CELL = 0.5  # windows or lattice points of a precise answer
_KEPT_FOR_LATER = 0.1  # of β, for row sets of later epochs
_KEPT_FOR_OTHERS = 0.05  # of that, for claims of another reading than the first
_FAR = 64  # excess cells of a span that enter the marginal of the upper end


# Nats and levels.


def cost(q: float) -> float:
    """ln 1/q, rounded up: what a letter of code q costs. At least 0, infinite at q = 0.

    >>> cost(0.5), cost(1.0) < 1e-11, cost(0.0)
    (0.69314718056..., True, inf)
    """
    if q <= 0:
        return math.inf
    return max(0.0, log_up(-math.log(q)))


def add_nats(*nats: float) -> float:
    """The sum, rounded up.

    >>> 0.3 < add_nats(0.1, 0.2) < 0.3 + 1e-15
    True
    """
    total = 0.0
    for term in nats:
        total = math.nextafter(total + term, math.inf)
    return total


@dataclass(frozen=True)
class Surprises:
    """A sequence of expected answers and surprises, and its code (section "Expected or not").

    The half-and-half mixture of two Beta predictives for a surprise, with pseudo-counts
    (surprises, expected) = (½, 3/2) and (1/20, 1): the two probabilities of the whole sequence,
    B(a + f, b + e)/B(a, b), are averaged, and ε is the ratio of successive averages. They depend
    on the two counts alone, so that a question costs O(1) however long the history is.

    >>> code = Surprises()
    >>> round(code.epsilon, 4), round(code.nats(False), 3)
    (0.1488, 0.161)
    >>> Surprises(100, 0).epsilon, Surprises(100, 3).epsilon
    (0.00105..., 0.0321...)
    """

    expected: int = 0
    surprised: int = 0

    def __post_init__(self) -> None:
        whole_number("expected", self.expected, 0, ROWS_MAX)
        whole_number("surprised", self.surprised, 0, ROWS_MAX)

    @property
    def epsilon(self) -> float:
        """ε: the code of a surprise; 1 − ε that of an expected answer."""
        f, e = self.surprised, self.expected
        odds = math.exp(min(700.0, self._log_part(0.05, 1.0) - self._log_part(0.5, 1.5)))
        first, second = (f + 0.5) / (f + e + 2.0), (f + 0.05) / (f + e + 1.05)
        return (first + odds * second) / (1 + odds)

    @property
    def total(self) -> float:
        """The nats of the whole sequence: ln 1/((P₁ + P₂)/2), to nine digits; not rounded."""
        one, other = self._log_part(0.5, 1.5), self._log_part(0.05, 1.0)
        return math.log(2) - float(np.logaddexp(one, other))

    def _log_part(self, a: float, b: float) -> float:
        """ln B(a + f, b + e)/B(a, b)."""
        f, e = self.surprised, self.expected
        log = math.lgamma
        there = log(a + f) + log(b + e) - log(a + b + f + e)
        return there - (log(a) + log(b) - log(a + b))

    def nats(self, surprise: bool) -> float:
        return cost(self.epsilon if surprise else 1 - self.epsilon)

    def then(self, surprise: bool) -> Surprises:
        """The sequence with one more answer."""
        return Surprises(self.expected + (not surprise), self.surprised + surprise)


def gap_epsilon(gap: int) -> float:
    """1/(g + 2): ε after g expected answers in a row, if a gap of g has the code 1/((g+1)(g+2)).

    >>> gap_epsilon(0), gap_epsilon(98)
    (0.5, 0.01)
    """
    return 1 / (whole_number("gap", gap, 0, ROWS_MAX) + 2)


def horizon_epsilon(left: int, surprises: int) -> float:
    """ε of the uniform code over sequences of `left` more answers with ≤ `surprises` surprises.

    N(k−1, ℓ−1)/N(k, ℓ) with N(k, ℓ) = Σ_{j≤ℓ} C(k, j) = N(k−1, ℓ) + N(k−1, ℓ−1); 0 when no
    surprise is left (nothing can be certified after one more).

    >>> horizon_epsilon(3, 1), horizon_epsilon(3, 3), horizon_epsilon(5, 0)
    (0.25, 0.5, 0.0)
    """
    left = whole_number("left", left, 1, 10**4)
    surprises = min(left, whole_number("surprises", surprises, 0, ROWS_MAX))
    if surprises == 0:
        return 0.0
    all_of_them = sum(math.comb(left, j) for j in range(surprises + 1))
    return float(Fraction(sum(math.comb(left - 1, j) for j in range(surprises)), all_of_them))


@dataclass(frozen=True)
class History:
    """All that a level needs of a history: nats told on each account, counts of two sequences.

    Account e = 1, 2, … speaks of the rows S_e that are there since epoch e; told[e−1] = T_e are
    the nats of the letters whose rule read a row of S_e. β_1 = .9·β and β_e = .1·β/(e(e−1)), which
    add up to β; β_1 = β if the rows will never be extended (section "Row sets"). If claims have
    several readings (`mixes`), the first that is asked for has .95 of it, the j-th one .05/(j(j−1))
    (section "Readings").

    >>> h = History(0.05, extends=False)
    >>> round(level(h), 4), round(level(h.tell(2.0)), 4)
    (2.9957, 4.9957)
    """

    failure: float
    extends: bool = True
    mixes: bool = False
    told: tuple[float, ...] = (0.0,)
    confirmations: Surprises = Surprises()
    verdicts: Surprises = Surprises()

    def __post_init__(self) -> None:
        hint = "At a confidence of ½ or less the tail rule is false."
        real_number("failure", self.failure, 0, 0.5, open_low=True, open_high=True, hint=hint)
        if not self.told or min(self.told) < 0:
            raise InvalidInput("told", self.told, "nats for each account, at least one")

    def share(self, account: int, reading: int = 1) -> float:
        """β_e of a reading, right to 1e-15 of itself."""
        later = _KEPT_FOR_LATER if self.extends else 0.0
        others = _KEPT_FOR_OTHERS if self.mixes else 0.0
        return self.failure * _split(later, account) * _split(others, reading)

    def extend(self) -> History:
        """A new epoch, with an account of its own: no letter has read its rows."""
        if not self.extends:
            raise InvalidInput("extends", False, "a history that kept a share for later epochs")
        return replace(self, told=(*self.told, 0.0))

    def tell(
        self,
        nats: float,
        *,
        newest: int | None = None,
        confirmation: bool | None = None,
        verdict: bool | None = None,
    ) -> History:
        """The history with one more letter, which cost `nats`.

        `newest` is the last epoch of whose rows one was read, the latest without it: the letter is
        on all accounts up to that. `confirmation` and `verdict` say, for letters of these two
        kinds, whether they were a surprise. O(1) in the length of the history.
        """
        nats = real_number("nats", nats, 0, NATS_MAX)
        last = whole_number("newest", len(self.told) if newest is None else newest, 1, self.epochs)
        told = tuple(add_nats(t, nats) if e < last else t for e, t in enumerate(self.told))
        new = replace(self, told=told)
        if confirmation is not None:
            new = replace(new, confirmations=self.confirmations.then(confirmation))
        if verdict is not None:
            new = replace(new, verdicts=self.verdicts.then(verdict))
        return new

    @property
    def epochs(self) -> int:
        return len(self.told)


def _split(kept: float, place: int) -> float:
    """1 − kept for the first, kept/(j(j−1)) for the j-th: they add up to 1."""
    return 1 - kept if place == 1 else kept / (place * (place - 1))


def level(history: History, account: int = 1, reading: int = 1) -> float:
    """ln 1/β_e + T_e, rounded up: a claim that is false at this level has (★) on its side.

    The claim's rule reads rows of S_e alone, e the account; its reading is the j-th that was asked
    for (sections "The theorem", "Row sets", "Readings").

    >>> h = History(0.05).tell(3.0).extend()
    >>> round(level(h), 3), round(level(h, 2), 3)
    (6.101, 5.991)
    >>> h = History(0.05, mixes=True)
    >>> round(level(h), 3), round(level(h, reading=2), 3)
    (3.152, 6.79)
    """
    account = whole_number("account", account, 1, history.epochs)
    reading = whole_number("reading", reading, 1, ROWS_MAX if history.mixes else 1)
    return add_nats(cost(history.share(account, reading)), history.told[account - 1])


def allowance(level: float, harmless: float) -> float:
    """The right side of (★), β·w·(1 − q(A∖F)), as a logarithm, rounded down.

    `harmless` = q(A∖F) is the code of the letters whose claims are true.

    >>> round(allowance(math.log(20), 0.5), 4)
    -3.6889
    """
    return -add_nats(level, cost(1 - real_number("harmless", harmless, 0, 1)))


def look_failure(failure: float, cap: float) -> float:
    """β_look·e^(−B), rounded down: what looks beside exact answers of up to B nats are planned at.

    A look beside them then fails while T ≤ B with probability ≤ β_look (section "Looks", (i)). For
    exact claims after looks a look is a letter of two values: `Even(2)`.

    >>> look_failure(0.05, 3.0)
    0.00248...
    """
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    return math.exp(-add_nats(cost(failure), real_number("cap", cap, 0, 600)))


def batch_together(questions: int) -> float:
    """ln m, rounded up: what each of m questions that are answered at once adds to its level.

    The code of their letters is the product of theirs (section "Batches").

    >>> round(batch_together(100), 4)
    4.6052
    """
    return log_up(math.log(whole_number("questions", questions, 1, ROWS_MAX)))


def batch_in_order(expected: Sequence[float]) -> bool:
    """Whether m questions had better be answered one after the other than at once, at ln m each.

    `expected` are the nats that public numbers predict for their letters. In order the last one
    pays for all before it; the choice is public, so either is right.

    >>> batch_in_order([0.01] * 100), batch_in_order([2.5] * 10)
    (True, False)
    """
    return sum(expected[:-1]) <= batch_together(len(expected))


# Codes of one letter. q is right to 1e-13 of itself; `nats…` are rounded up.


class Code:
    """A code for letters in order: Σ q ≤ 1; q(letters ≥ a) and q(letters ≤ a) for the tail rule."""

    def at(self, letter: int) -> float:
        raise NotImplementedError

    def at_least(self, letter: int) -> float:
        raise NotImplementedError

    def at_most(self, letter: int) -> float:
        raise NotImplementedError

    def nats(self, letter: int) -> float:
        """What the letter costs: it is added to T."""
        return cost(self.at(letter))

    def nats_at_least(self, letter: int) -> float:
        """What the lower end pays beside the level."""
        return cost(self.at_least(letter))

    def nats_at_most(self, letter: int) -> float:
        """What the upper end pays beside the level."""
        return cost(self.at_most(letter))


@dataclass(frozen=True)
class Outward(Code):
    """0 is expected; ±c is c windows away: q = (ε/2)/(c(c+1)), and (ε/2)/c for it or beyond.

    >>> code = Outward(0.1)
    >>> code.at(0), code.at(-1), round(code.at_least(2), 9), code.at_most(0)
    (0.9, 0.025, 0.025, 0.95)
    """

    epsilon: float

    def __post_init__(self) -> None:
        real_number("epsilon", self.epsilon, 0, 1)

    def at(self, letter: int) -> float:
        c = abs(letter)
        return 1 - self.epsilon if c == 0 else self.epsilon / (2.0 * c * (c + 1))

    def at_least(self, letter: int) -> float:
        if letter > 0:
            return self.epsilon / (2.0 * letter)
        return 1 - self.epsilon / (2.0 * (1 - letter))

    def at_most(self, letter: int) -> float:
        return self.at_least(-letter)


@dataclass(frozen=True)
class Around(Code):
    """Windows around the guess, coded by the Cauchy law whose scale is the error of the guess.

    `cells` is the width of a window in these errors; window j lies between (j − ½)·cells and
    (j + ½)·cells, so q(≥ j) = ½ − arctan((j − ½)·cells)/π.

    >>> code = Around(0.5 / math.sqrt(2))
    >>> round(code.nats(0), 2), round(code.nats(3), 2), round(code.nats_at_least(0), 3)
    (2.19, 2.93, 0.588)
    """

    cells: float

    def __post_init__(self) -> None:
        real_number("cells", self.cells, 0, open_low=True)

    def at(self, letter: int) -> float:
        x, y = (letter - 0.5) * self.cells, (letter + 0.5) * self.cells
        return math.atan2(self.cells, 1 + x * y) / math.pi  # arctan y − arctan x

    def at_least(self, letter: int) -> float:
        x = (letter - 0.5) * self.cells
        return math.atan2(1.0, x) / math.pi  # ½ − arctan(x)/π, without cancellation

    def at_most(self, letter: int) -> float:
        return self.at_least(-letter)


@dataclass(frozen=True)
class Even(Code):
    """m letters, 0 to m − 1, of 1/m each: no guess, the winner of m candidates, a look (m = 2).

    >>> round(Even(400).nats(7), 3), Even(4).at_least(3)
    (5.991, 0.25)
    """

    letters: int

    def __post_init__(self) -> None:
        whole_number("letters", self.letters, 1, ROWS_MAX)

    def at(self, letter: int) -> float:
        return 1 / self.letters if 0 <= letter < self.letters else 0.0

    def at_least(self, letter: int) -> float:
        return min(1.0, max(0.0, (self.letters - letter) / self.letters))

    def at_most(self, letter: int) -> float:
        return min(1.0, max(0.0, (letter + 1) / self.letters))


@dataclass(frozen=True)
class VerdictCode(Code):
    """Three letters in order, 0 worse or fail, 1 not shown, 2 better or pass: one is expected.

    It has 1 − ε; of the others the neighbour that the guess leans to has 7/8 of ε, the last 1/8.
    An expected 0 or 2 has one neighbour, the middle.

    >>> gate = VerdictCode(0.08, expected=2)
    >>> [round(gate.at(letter), 3) for letter in range(3)]
    [0.01, 0.07, 0.92]
    """

    epsilon: float
    expected: int
    leans_up: bool = True

    def __post_init__(self) -> None:
        real_number("epsilon", self.epsilon, 0, 1)
        whole_number("expected", self.expected, 0, 2)

    def at(self, letter: int) -> float:
        if not 0 <= letter <= 2:
            return 0.0
        if letter == self.expected:
            return 1 - self.epsilon
        near = 1 if self.expected != 1 else 2 if self.leans_up else 0
        return self.epsilon * (0.875 if letter == near else 0.125)

    def at_least(self, letter: int) -> float:
        return 1.0 if letter <= 0 else self.at(1) + self.at(2) if letter == 1 else self.at(letter)

    def at_most(self, letter: int) -> float:
        return 1.0 if letter >= 2 else self.at(0) + self.at(1) if letter == 1 else self.at(letter)


def _away(c: int) -> float:
    """u(0) = ½, u(±c) = 1/(4c(c+1)): they add up to 1."""
    return 0.5 if c == 0 else 0.25 / (abs(c) * (abs(c) + 1.0))


@lru_cache(maxsize=8)
def _public_order(most: int) -> tuple[tuple[int, int], ...]:
    pairs = [(c, j) for c in range(-most, most + 1) for j in range(most) if (c, j) != (0, 0)]
    pairs.sort(key=lambda pair: (-_away(pair[0]) * 2.0 ** -pair[1], pair[1], -pair[0]))
    return ((0, 0), *pairs, (0, 4 * most))


@dataclass(frozen=True)
class Shifts:
    """Letters (c, j): the announced interval shifted by c cells and widened by 2^(j/2).

    q(0, 0) = 1 − ε, the others ε·u(c)·2^−(j+1)/(3/4): normalised without (0, 0), which would have
    u(0)/2 = ¼. The letter is the first of `letters` whose interval contains the data's own at
    level + nats, both ends in full: the letter rule. Nothing else of the data is told.

    >>> code = Shifts(0.03)
    >>> round(code.at(0, 0), 4), round(code.at(0, 1), 4), round(code.at(-1, 0), 4)
    (0.97, 0.005, 0.0025)
    >>> list(code.letters()[:5])
    [(0, 0), (0, 1), (1, 0), (-1, 0), (0, 2)]
    """

    epsilon: float

    def __post_init__(self) -> None:
        real_number("epsilon", self.epsilon, 0, 1)

    def at(self, shift: int, wider: int) -> float:
        if wider < 0:
            return 0.0
        if shift == wider == 0:
            return 1 - self.epsilon
        return self.epsilon * _away(shift) * 2.0 ** -(wider + 1) / 0.75

    def nats(self, shift: int, wider: int) -> float:
        return cost(self.at(shift, wider))

    @staticmethod
    def letters(most: int = 64) -> tuple[tuple[int, int], ...]:
        """The public order: the expected one, then by falling q; |c| ≤ most, j < most.

        The last one, (0, 4·most), is wider than any range and contains everything.
        """
        return _public_order(most)

    @staticmethod
    def interval(
        shift: int, wider: int, guess: float, half_width: float, cell: float
    ) -> tuple[float, float]:
        """[guess + c·cell ± 2^(j/2)·H]."""
        centre, reach = guess + shift * cell, half_width * 2.0 ** (wider / 2)
        return centre - reach, centre + reach


@dataclass(frozen=True)
class Ends:
    """Both ends on a lattice: a precise answer about any value.

    The letter (a, e): the lower end is lattice point a of its own prediction, coded by `start`
    (`Around` a guess, or `Even` over the range); the upper end is point a + e of its own, coded by
    u(0) = ½, u(±e) = 1/(4e(e+1)). `span` is how many points the predictions are apart: e ≥ −span.

        lower end = max{ℓ : p-value of "M < ℓ" ≤ β·w·q(lower end ≥ ℓ)}, the upper in the mirror,

    by the code's marginals; that of the upper end is rounded down by leaving out |e| > 64.

    >>> code = Ends(Around(0.5 / math.sqrt(2)), span=12)
    >>> round(code.nats(0, 0), 2), round(code.nats_low(0), 3), round(code.nats_high(0), 3)
    (2.89, 0.607, 0.641)
    """

    start: Code
    span: int

    def __post_init__(self) -> None:
        whole_number("span", self.span, 0, ROWS_MAX)

    def at(self, low: int, excess: int) -> float:
        return self.start.at(low) * _away(excess) if excess >= -self.span else 0.0

    def nats(self, low: int, excess: int) -> float:
        return cost(self.at(low, excess))

    def nats_low(self, low: int) -> float:
        """ln 1/q(lower end ≥ this point), less what spans below −span would have had."""
        left_out = 0.25 / (self.span + 1)  # Σ_{e > span} u(−e)
        return cost(self.start.at_least(low) * (1 - left_out))

    def nats_high(self, high: int) -> float:
        """ln 1/q(upper end ≤ this point)."""
        excesses = range(-min(self.span, _FAR), _FAR + 1)
        return cost(sum(_away(e) * self.start.at_most(high - e) for e in excesses))

    def choose(
        self,
        log_below: Callable[[int], float],
        log_above: Callable[[int], float],
        level: float,
        reach: tuple[int, int],
    ) -> tuple[int, int]:
        """The letter (a, e), from log p-values of "M < point a" and "M > point b".

        Points are counted from the prediction of their end; `reach` is the first point of the lower
        end and the last of the upper one, at or beyond the range of M, where nothing is claimed.
        Both nulls grow with the end, so both searches are bisections.
        """
        first, last = reach

        def lower(a: int) -> bool:
            return log_below(a) <= -add_nats(level, self.nats_low(a))

        def upper(b: int) -> bool:
            return log_above(b) <= -add_nats(level, self.nats_high(b))

        low = bisect_last(lower, first, last + self.span)
        high = -bisect_last(lambda b: upper(-b), -last, self.span - first)
        return min(low, high + self.span), high - min(low, high + self.span)


def bisect_last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last whole number up to `high` that holds, of those above `low`; else `low`.

    >>> bisect_last(lambda i: i * i <= 50, 0, 100)
    7
    """
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


@dataclass(frozen=True)
class Windows:
    """Whole counts 0…n cut into windows: letter 0 from `first` to `last`, then `width` counts each.

    >>> windows = Windows.confirming(10_000, guess=0.9, tolerance=0.0104, cell=0.0045)
    >>> windows.counts(0), windows.counts(1), windows.letter(8_850)
    ((8896, 9104), (9105, 9149), -2)
    """

    rows: int
    first: int
    last: int
    width: int

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 1, ROWS_MAX)
        whole_number("last", self.last, whole_number("first", self.first, 0, self.rows), self.rows)
        whole_number("width", self.width, 1, ROWS_MAX)

    @classmethod
    def confirming(cls, rows: int, guess: float, tolerance: float, cell: float) -> Windows:
        """The announced window guess ± tolerance, and cells beside it; at least one count."""
        middle = _whole_share(rows, guess)
        first, last = math.ceil(rows * (guess - tolerance)), math.floor(rows * (guess + tolerance))
        width = max(1, round(rows * cell))
        return cls(rows, max(0, min(first, middle)), min(rows, max(last, middle)), width)

    @classmethod
    def precise(cls, rows: int, guess: float, cell: float) -> Windows:
        """Cells of one width, the guess in the middle of letter 0."""
        width = max(1, round(rows * cell))
        first = max(0, _whole_share(rows, guess) - (width - 1) // 2)
        return cls(rows, first, min(rows, first + width - 1), width)

    @classmethod
    def even(cls, rows: int, cell: float) -> tuple[Windows, Even]:
        """Cells of one width from 0 on, and the code for no guess: a public uniform one."""
        width = max(1, round(rows * cell))
        return cls(rows, 0, min(rows, width - 1), width), Even(-(-(rows + 1) // width))

    def letter(self, count: int) -> int:
        """The window that holds this count."""
        count = whole_number("count", count, 0, self.rows)
        if count < self.first:
            return -((self.first - count + self.width - 1) // self.width)
        return max(0, (count - self.last + self.width - 1) // self.width)

    def counts(self, letter: int) -> tuple[int, int]:
        """The first and the last count of a window; of one that is not all there, what is."""
        low, high = self.first, self.last
        if letter > 0:
            low, high = high + 1 + (letter - 1) * self.width, high + letter * self.width
        elif letter < 0:
            low, high = low + letter * self.width, low + (letter + 1) * self.width - 1
        return min(max(low, 0), self.rows), min(max(high, 0), self.rows)


def _whole_share(rows: int, share: float) -> int:
    return round(rows * real_number("guess", share, 0, 1))


def guess_error(sd: float, rows: int) -> float:
    """s_g = sd·√(2/n): a guess counts as one from as many rows as are sealed.

    >>> guess_error(0.3, 10_000)
    0.00424...
    """
    return real_number("sd", sd, 0) * math.sqrt(2 / whole_number("rows", rows, 1, ROWS_MAX))


def tolerance(error: float, question: int) -> float:
    """τ = s_g·√(2 ln max(k, 20)) for the k-th confirmation.

    >>> [round(tolerance(1.0, k), 2) for k in (1, 100, 1_000)]
    [2.45, 3.03, 3.72]
    """
    question = max(20, whole_number("question", question, 1, ROWS_MAX))
    return real_number("error", error, 0) * math.sqrt(2 * math.log(question))


# Confidence procedures for counts, at levels in nats.


def share_low(rows: int, count: int, nats: float, *, fixed: bool = False) -> float:
    """Clopper & Pearson's lower end: the largest M with P[Bin(n, M) ≥ c] ≤ e^(−nats), rounded down.

    `fixed`: terms independent, not alike, M the mean of their means (section "Fixed features").
    Then Hoeffding (1956) covers c ≥ 2 as long as M ≤ (c − 1)/n, which is no limit at e^(−nats) ≤ ¼,
    and Markov's inequality c = 1 with e^(−nats)/n.

    >>> share_low(10_000, 9_000, 3.81), share_low(500, 1, 5.0), share_low(500, 1, 5.0, fixed=True)
    (0.8937..., 1.352...e-05, 1.347...e-05)
    """
    n = whole_number("rows", rows, 1, ROWS_MAX)
    c = whole_number("count", count, 0, n)
    nats = real_number("nats", nats, 0, NATS_MAX)
    if c == 0:
        return 0.0
    if fixed and c == 1:
        return math.exp(-nats) / n * (1 - 1e-9)
    end = _clopper_pearson(n, c, nats)
    return min(end, round_down(Fraction(c - 1, n))) if fixed else end


@lru_cache(maxsize=256)  # what is offered is then told
def _clopper_pearson(n: int, c: int, nats: float) -> float:
    """What an inverse returns, moved down until the tail there, rounded up, is small enough."""
    if c == n:
        return math.exp(-nats / n - ROUNDING * (1 + nats / n))
    from scipy.special import betaincinv

    start = float(betaincinv(c, n - c + 1, math.exp(-nats))) if nats < 500 else math.nan
    if (
        not 0 < start < 1
    ):  # it gives up far out: P[Bin(n, M) ≥ c] ≤ (nM)^c is a start to bisect from
        low, high = math.exp(-nats / c) / n, c / n
        while high > low * (1 + 1e-9) > 0:
            middle = math.sqrt(low) * math.sqrt(high)
            small = log_binomial_tail(n, middle, c) <= -nats
            low, high = (middle, high) if small else (low, middle)
        start = low
    step = 1e-12
    while start > 0 and log_binomial_tail(n, start, c) > -nats:
        start, step = max(0.0, start - step * min(start, 1 - start)), 2 * step
    return start


def share_high(rows: int, count: int, nats: float, *, fixed: bool = False) -> float:
    """The upper end, 1 − `share_low` of the other terms, rounded up.

    >>> round(share_high(10_000, 9_000, 3.81), 6)
    0.905961
    """
    low = share_low(rows, rows - count, nats, fixed=fixed)
    return 1.0 if low == 0 else min(1.0, math.nextafter(1 - low, 2.0))


def share_bar(
    windows: Windows, code: Code, letter: int, level: float, *, fixed: bool = False
) -> tuple[float, float]:
    """What the letter claims of a share, by the tail rule: ends from the window's end counts.

    >>> windows = Windows.confirming(10_000, 0.9, 0.0104, 0.0045)
    >>> [round(end, 4) for end in share_bar(windows, Outward(0.03), 0, math.log(20))]
    [0.8843, 0.9151]
    """
    low, high = windows.counts(letter)
    return (
        share_low(windows.rows, low, add_nats(level, code.nats_at_least(letter)), fixed=fixed),
        share_high(windows.rows, high, add_nats(level, code.nats_at_most(letter)), fixed=fixed),
    )


def log_share_above(rows: int, count: int, value: float, *, fixed: bool = False) -> float:
    """ln of the p-value of "M < value", sup P[count or more] = P[Bin(n, value) ≥ c]; rounded up.

    "M ≥ value" is proved by a letter if it is ≤ −(level + its nats). `fixed` as in `share_low`.

    >>> round(log_share_above(10_000, 8_574, 0.85), 3)
    -3.95
    """
    n = whole_number("rows", rows, 1, ROWS_MAX)
    c = whole_number("count", count, 0, n)
    value = min(1.0, math.nextafter(real_number("value", value, 0, 1), 2.0))
    if fixed and c == 1:
        return min(0.0, log_up(math.log(n * value)))
    if c == 0 or (fixed and Fraction(value) * n > c - 1):
        return 0.0
    return min(0.0, log_binomial_tail(n, value, c))


def log_share_below(rows: int, count: int, value: float, *, fixed: bool = False) -> float:
    """ln of the p-value of "M > value", the mirror of `log_share_above`; rounded up.

    >>> round(log_share_below(10_000, 8_426, 0.85), 3)
    -3.898
    """
    other = math.nextafter(1 - real_number("value", value, 0, 1), 2.0)
    return log_share_above(rows, rows - count, min(1.0, other), fixed=fixed)


def log_mcnemar(wins: int, losses: int, *, fixed: bool = False) -> float:
    """ln P[Bin(wins + losses, ½) ≥ wins], rounded up: the p-value of "B is not better than A".

    Exact, given how many rows they differ on (McNemar 1947). `fixed`: two classes, labels
    independent given the features; the rows they differ on are then given, and by Hoeffding (1956)
    the same tail holds for wins ≥ (wins + losses)/2 + 1; elsewhere the p-value is 1.

    >>> round(log_mcnemar(294, 206), 3)
    -9.942
    """
    wins = whole_number("wins", wins, 0, ROWS_MAX)
    both = wins + whole_number("losses", losses, 0, ROWS_MAX)
    if fixed and 2 * wins < both + 2:
        return 0.0
    return min(0.0, log_binomial_tail(both, 0.5, wins))


class OrderRanks(NamedTuple):
    """Order statistics X_(low) and X_(high) of n, counted from 1; 0 and n + 1 claim nothing."""

    low: int
    high: int


def quantile_ranks(rows: int, quantile: float, nats_low: float, nats_high: float) -> OrderRanks:
    """Order statistics around the q-quantile M = inf{c : P[X ≤ c] ≥ q}, at these levels.

    M < X_(i) means that fewer than i rows are ≤ M: P[Bin(n, q) ≤ i − 1] at most; M > X_(i) that i
    rows or more are < M: P[Bin(n, q) ≥ i]. The largest and the smallest i that are small enough.

    >>> quantile_ranks(1_000, 0.5, 3.0, 3.0), quantile_ranks(100, 0.99, 3.0, 3.0)
    (OrderRanks(low=474, high=527), OrderRanks(low=97, high=101))
    """
    n = whole_number("rows", rows, 1, ROWS_MAX)
    q = real_number("quantile", quantile, 0, 1, open_low=True, open_high=True)
    below, above = math.nextafter(1 - q, 2.0), math.nextafter(q, 2.0)

    def lower(i: int) -> bool:
        return log_binomial_tail(n, below, n - i + 1) <= -nats_low

    def upper(i: int) -> bool:
        return log_binomial_tail(n, above, i) <= -nats_high

    high = n + 1 - bisect_last(lambda i: upper(n + 1 - i), 0, n)
    return OrderRanks(bisect_last(lower, 0, n), high)
