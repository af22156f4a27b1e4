"""Rules: what can be told by one answer, fixed before the rows are read.

A rule has letters, whole numbers; for each what it costs (`nats`) and what it claims (`claim`); and
it says which letter the rows tell (`letter`), given what a procedure says of them. Each has
condition (★) of theory/told.py, by the section of docs/explanation/theory/told.md that is named:

    CountWindows   windows of whole counts, ends by the tail rule ("Codes of one letter")
    Shifted        an announced interval, shifted or widened, by the letter rule
    Lattice        both ends on a lattice, by the code's marginals ("Two ends on a lattice")
    GridEnds       the same on a question's grid
    ThreeWay       a verdict of three, by the letter rule
    Winner         the best of m candidates: no claim
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from holdfast.grids import Grid
from holdfast.protocols.base import Drawn
from holdfast.protocols.procedures import Procedure, Share
from holdfast.protocols.source import is_within
from holdfast.theory.numerics import round_down, round_up
from holdfast.theory.told import Code, Ends, Even, Shifts, VerdictCode, Windows, add_nats, share_bar

__all__ = [
    "Claimed",
    "CountWindows",
    "GridEnds",
    "Lattice",
    "Letter",
    "Rule",
    "Shifted",
    "TermRange",
    "ThreeWay",
    "Winner",
]

_COARSE = 0.5  # nats to which the level of the rows' own interval is rounded up

Letter = tuple[int, ...]
Claimed = tuple[float | None, float | None]


@dataclass(frozen=True)
class TermRange:
    """The range of a term, and [0, 1], where procedures speak of it."""

    low: float = 0.0
    high: float = 1.0

    def unit(self, value: float) -> float:
        """A value as a share of the range, about."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def unit_below(self, value: float) -> float:
        """The same, rounded down."""
        return min(1.0, max(0.0, round_down(self._exact(value))))

    def unit_above(self, value: float) -> float:
        """The same, rounded up."""
        return min(1.0, max(0.0, round_up(self._exact(value))))

    def _exact(self, value: float) -> Fraction:
        low = Fraction(self.low)
        return (Fraction(value) - low) / (Fraction(self.high) - low)

    def value(self, unit: float) -> float:
        """A share of the range as a value, about."""
        return min(self.high, max(self.low, self.low + (self.high - self.low) * unit))

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """An interval of shares as one of values, rounded outwards."""
        if (self.low, self.high) == (0.0, 1.0):
            return low, high
        least, most = Fraction(self.low), Fraction(self.high)
        below, above = (least + (most - least) * Fraction(end) for end in (low, high))
        return max(self.low, round_down(below)), min(self.high, round_up(above))


class Rule(ABC):
    """What can be told by one answer. Claims are in the answer's units."""

    level: float
    counted: ClassVar[bool] = True
    """Whether an answer is expected or a surprise, and is counted as one."""

    @abstractmethod
    def letter(self, rows: Any) -> Letter:
        """The letter that the rows tell."""

    @abstractmethod
    def nats(self, letter: Letter) -> float:
        """What it costs."""

    @abstractmethod
    def claim(self, letter: Letter) -> Claimed:
        """What it claims: the ends, None where there is none."""

    @abstractmethod
    def likely(self) -> tuple[Letter, ...]:
        """Letters to show before asking, the expected one first."""

    @abstractmethod
    def has(self, letter: Letter) -> bool:
        """Whether some rows tell this letter."""

    def value(self, letter: Letter) -> float | None:
        """The centre of what is told; the guess, where it is confirmed."""
        low, high = self.claim(letter)
        return None if low is None or high is None else (low + high) / 2

    def surprise(self, letter: Letter) -> bool | None:
        """Whether the letter is none that was expected; None where none is."""
        return letter != self.likely()[0] if self.counted else None

    def drawn(self, letter: Letter) -> Drawn:
        """What the ledger keeps: a function of the letter, and of what the rule is made from."""
        low, high = self.claim(letter)
        value = self.value(letter)
        if value is not None:
            value = min(math.inf if high is None else high, value)
            value = max(-math.inf if low is None else low, value)
        found = {
            "letter": list(letter),
            "level": self.level,
            "nats": self.nats(letter),
            "low": low,
            "high": high,
            "value": value,
            "surprise": self.surprise(letter),
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class CountWindows(Rule):
    """Windows of whole counts, with ends by the tail rule: for shares of all rows."""

    level: float
    windows: Windows
    code: Code
    fixed: bool
    guess: float | None
    """Where the answer may be as expected: the guess that letter 0 then confirms."""

    @property
    def counted(self) -> bool:  # type: ignore[override]
        return self.guess is not None

    def letter(self, rows: Share) -> Letter:
        return (self.windows.letter(rows.count),)

    def nats(self, letter: Letter) -> float:
        return self.code.nats(letter[0])

    def claim(self, letter: Letter) -> Claimed:
        return share_bar(self.windows, self.code, letter[0], self.level, fixed=self.fixed)

    def value(self, letter: Letter) -> float:
        if letter == (0,) and self.guess is not None:
            return self.guess
        return sum(self.windows.counts(letter[0])) / (2 * self.windows.rows)

    def likely(self) -> tuple[Letter, ...]:
        middle = self.code.letters // 2 if isinstance(self.code, Even) else 0
        return tuple((middle + c,) for c in (0, 1, -1, 2, -2))

    def has(self, letter: Letter) -> bool:
        return (self.windows.letter(self.windows.counts(*letter)[0]),) == letter


@dataclass(frozen=True)
class Shifted(Rule):
    """The announced interval, shifted or widened until it holds the rows' own: any bounded mean.

    The rows' own interval is taken at the letter's level rounded up to half nats: a wider one, so
    that few are computed; and only for letters that hold the narrowest of them.
    """

    level: float
    code: Shifts
    guess: float
    half_width: float
    cell: float
    scale: TermRange

    def letter(self, rows: Procedure) -> Letter:
        letters, known = self.code.letters(), dict[int, tuple[float, float]]()

        def own(step: int) -> tuple[float, float]:
            if step not in known:
                known[step] = rows.interval(add_nats(self.level, step * _COARSE))
            return known[step]

        # All but the first are in the order of their nats.
        narrowest = own(min(self._step(each) for each in letters[:2]))
        for letter in letters:
            ends = self._unit(letter)
            if is_within(narrowest, ends) and is_within(own(self._step(letter)), ends):
                return letter
        raise AssertionError("the last letter contains everything")

    def _step(self, letter: Letter) -> int:
        return math.ceil(self.code.nats(*letter) / _COARSE)

    def _unit(self, letter: Letter) -> tuple[float, float]:
        shift, wider = letter
        low, high = self.code.interval(shift, wider, self.guess, self.half_width, self.cell)
        return max(0.0, low), min(1.0, high)

    def nats(self, letter: Letter) -> float:
        return self.code.nats(*letter)

    def claim(self, letter: Letter) -> Claimed:
        return self.scale.ends(*self._unit(letter))

    def value(self, letter: Letter) -> float:
        return self.scale.value(self.guess + letter[0] * self.cell)

    def likely(self) -> tuple[Letter, ...]:
        return ((0, 0), (0, 1), (1, 0), (-1, 0))

    def has(self, letter: Letter) -> bool:
        return letter in self.code.letters()


class _TwoEnds(Rule):
    """Both ends on points in a row: the letter (a, e) has the lower one at a, the upper at a + e.

    Points are counted from the predictions of the ends, which are `span` apart. At the ends of
    `reach`, the first point of the lower end and the last of the upper one, nothing is claimed.
    """

    code: Ends
    counted: ClassVar[bool] = False

    @property
    @abstractmethod
    def reach(self) -> tuple[int, int]: ...

    @abstractmethod
    def point(self, place: int) -> float:
        """A point, counted from the prediction of the lower end."""

    def letter(self, rows: Procedure) -> Letter:
        return self.code.choose(
            lambda a: rows.log_above(self.point(a)),
            lambda b: rows.log_below(self.point(b + self.code.span)),
            self.level,
            self.reach,
        )

    def nats(self, letter: Letter) -> float:
        return self.code.nats(*letter)

    def claim(self, letter: Letter) -> Claimed:
        low, excess = letter
        first, last = self.reach
        below = None if low <= first else self.point(low)
        above = None if low + excess >= last else self.point(low + excess + self.code.span)
        return below, above

    def likely(self) -> tuple[Letter, ...]:
        start = self.code.start
        middle = (start.letters - self.code.span) // 2 if isinstance(start, Even) else 0
        first, last = self.reach
        found = []
        for low, excess in ((0, 0), (0, 1), (1, 0), (2, 2)):
            high = min(last, max(first - self.code.span, middle + low + excess))
            low = min(high + self.code.span, max(first, middle + low))
            found.append((low, high - low))
        return tuple(dict.fromkeys(found))

    def has(self, letter: Letter) -> bool:
        low, excess = letter
        first, last = self.reach
        return first <= low <= low + excess + self.code.span and low + excess <= last


@dataclass(frozen=True)
class Lattice(_TwoEnds):
    """Points of [0, 1] at one distance: precise answers about any value."""

    level: float
    code: Ends
    first: float
    """Where the lower end is predicted: its lattice point 0."""
    cell: float
    scale: TermRange

    @property
    def reach(self) -> tuple[int, int]:
        last = self.first + self.code.span * self.cell
        return math.floor(-self.first / self.cell), math.ceil((1 - last) / self.cell)

    def point(self, place: int) -> float:
        return min(1.0, max(0.0, self.first + place * self.cell))

    def claim(self, letter: Letter) -> Claimed:
        low, high = super().claim(letter)
        return self.scale.ends(0.0 if low is None else low, 1.0 if high is None else high)


@dataclass(frozen=True)
class GridEnds(_TwoEnds):
    """Points of a question's grid, for the median of what an estimator gives on blocks."""

    level: float
    code: Ends
    grid: Grid
    first: int
    """The place on the grid where the lower end is predicted."""

    @property
    def reach(self) -> tuple[int, int]:
        return -self.first, self.grid.size - 1 - self.first - self.code.span

    def point(self, place: int) -> float:
        return float(self.grid.point(min(self.grid.size - 1, max(0, self.first + place))))

    def value(self, letter: Letter) -> float:
        return self.point((letter[0] + sum(letter) + self.code.span) // 2)


@dataclass(frozen=True)
class ThreeWay(Rule):
    """Three letters in order: 0 worse or fail, 1 not shown, 2 better or pass.

    The middle one claims nothing.
    """

    level: float
    code: VerdictCode
    claims: tuple[float, float]
    """"M is at most the first" is 0's claim, "M is at least the second" that of 2."""
    thresholds: tuple[float, float]
    """The same as the procedure has them, rounded so that they claim no less."""
    top_first: bool = True
    """Which is told if both can be proved, as with a tolerance."""

    def letter(self, rows: Procedure) -> Letter:
        below, above = self.thresholds
        proofs = {2: rows.log_over(above), 0: rows.log_under(below)}
        for letter in (2, 0) if self.top_first else (0, 2):
            if proofs[letter] <= -add_nats(self.level, self.code.nats(letter)):
                return (letter,)
        return (1,)

    def nats(self, letter: Letter) -> float:
        return self.code.nats(*letter)

    def claim(self, letter: Letter) -> Claimed:
        below, above = self.claims
        return above if letter == (2,) else None, below if letter == (0,) else None

    def likely(self) -> tuple[Letter, ...]:
        others = tuple((each,) for each in (2, 1, 0) if each != self.code.expected)
        return ((self.code.expected,), *others)

    def has(self, letter: Letter) -> bool:
        return letter in ((0,), (1,), (2,))


@dataclass(frozen=True)
class Winner(Rule):
    """Which of m candidates is best on the rows, ties by their order: ln m nats, and no claim."""

    level: float
    candidates: int
    greater_is_better: bool
    counted: ClassVar[bool] = False

    def letter(self, rows: Sequence[int]) -> Letter:
        totals = list(rows) if self.greater_is_better else [-each for each in rows]
        return (totals.index(max(totals)),)

    def nats(self, letter: Letter) -> float:
        return Even(self.candidates).nats(*letter)

    def claim(self, letter: Letter) -> Claimed:
        del letter
        return None, None

    def likely(self) -> tuple[Letter, ...]:
        return ((0,),)

    def has(self, letter: Letter) -> bool:
        return len(letter) == 1 and 0 <= letter[0] < self.candidates
