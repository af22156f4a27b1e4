"""Told: answers without noise over single rows, each at the level of all that was told before.

Three kinds of pure things make a verb.

    procedure   what the rows say at any level: log p-values and intervals (`Share`, `Mean`, `Pair`,
                `Median`)
    rule        what is fixed before the rows are read: the letters that can be told, what each costs
                and what it claims (`CountWindows`, `Intervals`, `Lattice`, `ThreeWay`, `Winner`)
    level       ln 1/β and the nats of every letter told before (`Past`)

A rule follows from the question, from what is public (`Expects`) and from the past, and from nothing
else. A row of the ledger keeps the letter, with the level, the nats and the claim; `check` makes the
rule again from the rows before and compares. Why all claims hold at once: theory/told.py and
docs/explanation/theory/told.md.

An exact answer needs no reservation: it is recorded durably, and then shown.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, real_number, whole_number
from holdfast.grids import Grid
from holdfast.protocols.answers import AT_SHARES, ROWS, Told, rounded_up
from holdfast.protocols.base import (
    Drawn,
    Lesson,
    Paid,
    PastTold,
    Protocol,
    Question,
    Steps,
    Terms,
    Values,
    Verb,
    block_floats,
)
from holdfast.protocols.budget import Account, Charge, Use
from holdfast.protocols.plans import Left, OwnPlan, Wanted
from holdfast.protocols.source import WEIGHT_SCALE
from holdfast.randomness import Entropy
from holdfast.theory import betting, told
from holdfast.theory.betting import Bets, predicted_half_width, predicted_stake
from holdfast.theory.numerics import log_binomial_tail
from holdfast.theory.told import (
    CONFIRM_CELL,
    PRECISE_CELL,
    Around,
    Code,
    Ends,
    Even,
    History,
    Outward,
    Shifts,
    Surprises,
    Verdict,
    Windows,
    add_nats,
    batch_in_order,
    batch_together,
    cost,
    guess_error,
    level,
    share_bar,
    tolerance,
)

__all__ = [
    "BLOCKS",
    "Expects",
    "Mean",
    "Median",
    "Pair",
    "Past",
    "Rule",
    "Share",
    "ToldAsk",
    "ToldBest",
    "ToldCompare",
    "ToldGate",
    "ToldInterval",
    "ToldMean",
    "ToldPlan",
    "ToldScore",
    "ToldScores",
    "ToldVerify",
    "bars_table",
    "forecast",
    "told_blocks",
    "told_plan",
]

BLOCKS = 100
_FEWEST = 2 * BLOCKS // 3
_PARTS = WEIGHT_SCALE
_NOISE = 0.6  # nats that an end on a lattice pays for its code, about: it sets what is announced
_COARSE = 0.5  # nats to which the level of the rows' own interval is rounded up
_LEAN = 3  # surprises on one side that are worth a word
_VERDICTS = ("gate", "verify")
Ends2 = tuple[float | None, float | None]


def told_blocks(units: int) -> int:
    """How many blocks so many sealed units are cut into: about 100, so that few are left over.

    >>> told_blocks(6_000), told_blocks(1_987), told_blocks(60)
    (100, 99, 60)
    """
    units = whole_number("units", units, 1, 10**12)
    if units <= BLOCKS:
        return units
    return min(range(BLOCKS, _FEWEST - 1, -1), key=lambda blocks: (units % blocks, -blocks))


@dataclass(frozen=True)
class ToldPlan(OwnPlan):
    """No plan at all: all of β is for what is told. `queries` only sharpens tolerances.

    `extends`: a tenth of β is kept for rows that arrive later.
    """

    kind = "told"
    protocol = "told"
    priced = False

    confidence: float
    blocks: int
    queries: int
    extends: bool

    def __post_init__(self) -> None:
        hint = "At a confidence of 0.5 or less what is told cannot be certified."
        real_number("confidence", self.confidence, 0.5, 1, open_low=True, open_high=True, hint=hint)
        whole_number("blocks", self.blocks, 1, 10**12)
        whole_number("queries", self.queries, 0, 10**9)

    def verify(self) -> bool:
        return 0.5 < self.confidence < 1 and self.blocks >= 1

    def past(self) -> Past:
        """Nothing was told yet."""
        return Past(History(self.failure, self.extends))

    def words(self) -> tuple[str, str]:
        most = f"{self.queries:,} questions expected" if self.queries else "any number of questions"
        return most, "What was expected costs almost nothing, a surprise costs its surprise."

    @property
    def limit(self) -> Fraction:
        return Fraction(1)

    @property
    def looks(self) -> int:  # type: ignore[override]
        return 1

    @property
    def least_tail(self) -> float:
        return 0.5

    def use(self, account: Account) -> tuple[float, float, str]:
        return float(account.charged), math.inf, "nats told"

    def rest(self, _account: Account) -> float:
        return math.inf

    def left(self, _order: float, _rest: Fraction, _use: Use) -> Left:
        return Left(0, 0)

    def still_possible(self, _order: float, _rest: Fraction, _use: Use) -> str:
        return "any question: bars widen with what is told"

    def preview(self, _plan: Any, units: int) -> tuple[float | None, str]:
        first = self.forecast(units, 0)[0]["half_widths"][0]
        return first, f"a share near 0.9 within ±{rounded_up(first, 2)}, if it is as expected"

    def forecast(self, units: int, open_units: int) -> tuple[dict[str, Any], ...]:
        past, rows = self.past(), self.blocks * units
        return tuple(forecast(past, rows, self.queries, open_rows=open_units))


def told_plan(
    units: int, confidence: float = 0.95, *, queries: int = 0, extends: bool = True
) -> ToldPlan:
    """What is told over so many sealed units."""
    return ToldPlan(confidence, told_blocks(units), queries, extends)


# The past: all that later questions need of earlier answers. A fold over the rows of the ledger.


@dataclass
class Past:
    """What was told so far, to anybody. Every field is a function of the ledger's rows."""

    history: History
    answers: int = 0
    askers: dict[str, float] = field(default_factory=dict)
    """The nats that each asker was told."""
    offsets: dict[str, float] = field(default_factory=dict)
    """By metric: the last told value less the open part's score of the same rule."""
    verdicts: dict[str, int] = field(default_factory=dict)
    """By verb: the last verdict."""
    above: int = 0
    below: int = 0
    """Surprises above and below a guess from the open part."""
    leaning: float = 0.0
    """By how much they were above, added up."""

    @property
    def level(self) -> float:
        """ln 1/β + T, rounded up."""
        return level(self.history)

    @property
    def nats(self) -> float:
        """T: what was told so far."""
        return self.history.told[0]

    @property
    def confirmations(self) -> int:
        """How many answers were confirmed or surprising values."""
        done = self.history.confirmations
        return done.expected + done.surprised

    def after(self, question: Question, drawn: Drawn) -> Drawn:
        """What was drawn, with the sums up to it."""
        del question
        sums: Drawn = {"so_far": add_nats(self.nats, drawn["nats"]), "answers": self.answers + 1}
        off, count = self.leaning, self.above + self.below
        if count >= _LEAN and max(self.above, self.below) >= _LEAN * count // (_LEAN + 1):
            sums["leaning"] = -off / count
        return drawn | sums

    def later(self, question: Question, nats: float, surprise: bool | None) -> Past:
        """The past with one more answer in its history, as far as that decides levels and codes."""
        sequence = {_sequence(question): surprise} if surprise is not None else {}
        return replace(self, history=self.history.tell(nats, **sequence))

    def tell(self, question: Question, drawn: Drawn, asker: str | None = None) -> None:
        """Go on to one more answer."""
        nats, surprise = float(drawn["nats"]), drawn.get("surprise")
        self.history = self.later(question, nats, surprise).history
        self.answers += 1
        if asker is not None:
            self.askers[asker] = self.askers.get(asker, 0.0) + nats
        if question.verb in _VERDICTS or question.margin is not None:
            self.verdicts[question.verb] = drawn["letter"][0]
        opened, value = drawn.get("expects", {}).get("open"), drawn.get("value")
        if question.verb == "score" and opened is not None and value is not None:
            self.offsets[str(question.metric)] = value - opened
            if surprise and question.guess is None:
                off = value - drawn["expects"]["guess"]
                self.above, self.below = self.above + (off > 0), self.below + (off < 0)
                self.leaning += off


def _sequence(question: Question) -> str:
    verdict = question.verb in _VERDICTS or question.margin is not None
    return "verdict" if verdict else "confirmation"


@dataclass(frozen=True)
class Expects:
    """What is public of the answer: a guess, its standard error, the terms' standard deviation.

    `open` is the score on the open part, from which the guess follows if the user gives none;
    `rows` how many sealed rows a filter is expected to keep.
    """

    guess: float | None = None
    error: float | None = None
    sd: float | None = None
    open: float | None = None
    rows: float | None = None

    def to_dict(self) -> dict[str, float]:
        """Plain numbers: those that are known."""
        return {name: value for name, value in vars(self).items() if value is not None}


# Procedures: what the rows say, at any level. Values are scaled to [0, 1].


class Procedure(ABC):
    """Confidence statements about one number M in [0, 1], valid at every level."""

    @abstractmethod
    def log_above(self, value: float) -> float:
        """ln of the p-value of "M < value"; rounded up."""

    @abstractmethod
    def log_below(self, value: float) -> float:
        """ln of the p-value of "M > value"; rounded up."""

    def interval(self, nats: float) -> tuple[float, float]:
        """What holds at this level, each end in full."""
        raise NotImplementedError


@dataclass(frozen=True)
class Share(Procedure):
    """A share of rows, by Clopper & Pearson. `fixed`: terms that are independent, not alike."""

    rows: int
    count: int
    fixed: bool = False

    def log_above(self, value: float) -> float:
        return told.log_share_above(self.rows, self.count, value, fixed=self.fixed)

    def log_below(self, value: float) -> float:
        return told.log_share_below(self.rows, self.count, value, fixed=self.fixed)

    def interval(self, nats: float) -> tuple[float, float]:
        low = told.share_low(self.rows, self.count, nats, fixed=self.fixed)
        return low, told.share_high(self.rows, self.count, nats, fixed=self.fixed)


@dataclass(frozen=True)
class Mean(Procedure):
    """A mean of terms in [0, 1], by bets whose stakes public numbers predict."""

    terms: betting.Terms
    bets: tuple[Bets, Bets]
    """For lower ends, and for upper ones."""

    def log_above(self, value: float) -> float:
        return betting.log_mean_above(self.terms, min(1.0, max(0.0, value)), self.bets[0])

    def log_below(self, value: float) -> float:
        return betting.log_mean_below(self.terms, min(1.0, max(0.0, value)), self.bets[1])

    def interval(self, nats: float) -> tuple[float, float]:
        low = betting.mean_low(self.terms, nats, self.bets[0])
        return low, betting.mean_high(self.terms, nats, self.bets[1])


@dataclass(frozen=True)
class Pair(Mean):
    """A difference of two shares on the same rows, as (1 + difference)/2.

    At the middle, no difference, exact McNemar is sharper than a bet; where labels are fixed with
    the rows (`fixed`), it needs labels of two classes.
    """

    wins: int = 0
    losses: int = 0
    fixed: bool = False
    exact: bool = False

    def log_above(self, value: float) -> float:
        if self.exact and value == 0.5:
            return told.log_mcnemar(self.wins, self.losses, fixed=self.fixed)
        return super().log_above(value)

    def log_below(self, value: float) -> float:
        if self.exact and value == 0.5:
            return told.log_mcnemar(self.losses, self.wins, fixed=self.fixed)
        return super().log_below(value)


class Nothing(Procedure):
    """No row: nothing is known at any level."""

    def log_above(self, value: float) -> float:
        del value
        return 0.0

    def log_below(self, value: float) -> float:
        del value
        return 0.0

    def interval(self, nats: float) -> tuple[float, float]:
        del nats
        return 0.0, 1.0


class Median(Procedure):
    """The median M of what an estimator gives on fresh blocks, by signs; not scaled.

    M = inf{c : P[value ≤ c] ≥ ½}. If M < c then P[value ≥ c] ≤ ½, and if M > c then
    P[value ≤ c] < ½.

    >>> signs = Median(np.arange(100.0))
    >>> signs.log_above(30.0) < -9 < signs.log_above(45.0), signs.log_below(49.0)
    (True, -0.77...)
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        self._values = np.sort(values)

    def log_above(self, value: float) -> float:
        below = int(np.searchsorted(self._values, value, side="left"))
        return self._tail(self._values.size - below)

    def log_below(self, value: float) -> float:
        return self._tail(int(np.searchsorted(self._values, value, side="right")))

    def log_beyond(self, value: float) -> tuple[float, float]:
        """ln of the p-values of "M ≤ value" and of "M ≥ value"."""
        size = self._values.size
        up = size - int(np.searchsorted(self._values, value, side="right"))
        return self._tail(up), self._tail(int(np.searchsorted(self._values, value, side="left")))

    def _tail(self, count: int) -> float:
        return min(0.0, log_binomial_tail(self._values.size, 0.5, count))


# Rules: letters, what each costs and what it claims, fixed before the rows are read.


Letter = tuple[int, ...]


class Rule(ABC):
    """What can be told by one answer. Letters are whole numbers, claims are in the answer's units."""

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
    def claim(self, letter: Letter) -> Ends2:
        """What it claims: the ends, None where there is none."""

    @abstractmethod
    def likely(self) -> tuple[Letter, ...]:
        """Letters to show before asking, the expected one first."""

    def value(self, letter: Letter) -> float | None:
        """The centre of what is told; the guess, where it is confirmed."""
        low, high = self.claim(letter)
        return None if low is None or high is None else (low + high) / 2

    def surprise(self, letter: Letter) -> bool | None:
        """Whether the letter is none that was expected; None where none is."""
        return letter != self.likely()[0] if self.counted else None

    def drawn(self, letter: Letter) -> Drawn:
        """What the ledger keeps."""
        low, high = self.claim(letter)
        found = {
            "letter": list(letter),
            "level": self.level,
            "nats": self.nats(letter),
            "low": low,
            "high": high,
            "value": self.value(letter),
            "surprise": self.surprise(letter),
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Scale:
    """From [0, 1] to the range of a term, rounded outwards."""

    low: float = 0.0
    high: float = 1.0

    def unit(self, value: float) -> float:
        """A value as a share of the range."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """An interval in the range."""
        if (self.low, self.high) == (0.0, 1.0):
            return low, high
        span = self.high - self.low
        below = self.low if low <= 0 else math.nextafter(self.low + span * low, -math.inf)
        above = self.high if high >= 1 else math.nextafter(self.low + span * high, math.inf)
        return max(self.low, below), min(self.high, above)

    def value(self, unit: float) -> float:
        """A share of the range as a value."""
        return self.low + (self.high - self.low) * unit


@dataclass(frozen=True)
class CountWindows(Rule):
    """Windows of whole counts, with ends by the tail rule: for shares of all rows."""

    level: float
    windows: Windows
    code: Code
    fixed: bool
    scale: Scale
    guess: float | None
    """Where the answer may be as expected: the guess that letter 0 then confirms."""

    @property
    def counted(self) -> bool:  # type: ignore[override]
        return self.guess is not None

    def letter(self, rows: Share) -> Letter:
        return (self.windows.letter(rows.count),)

    def nats(self, letter: Letter) -> float:
        return self.code.nats(letter[0])

    def claim(self, letter: Letter) -> Ends2:
        bar = share_bar(self.windows, self.code, letter[0], self.level, fixed=self.fixed)
        return self.scale.ends(*bar)

    def value(self, letter: Letter) -> float:
        if letter == (0,) and self.guess is not None:
            return self.guess
        return self.scale.value(sum(self.windows.counts(letter[0])) / (2 * self.windows.rows))

    def likely(self) -> tuple[Letter, ...]:
        middle = self.code.letters // 2 if isinstance(self.code, Even) else 0
        return tuple((middle + c,) for c in (0, 1, -1, 2, -2))


@dataclass(frozen=True)
class Intervals(Rule):
    """The announced interval, shifted or widened until it holds the rows' own: any bounded mean.

    The rows' own interval is taken at the letter's level rounded up to half nats: a wider one, so
    that few are computed.
    """

    level: float
    code: Shifts
    guess: float
    half_width: float
    cell: float
    scale: Scale

    def letter(self, rows: Procedure) -> Letter:
        known: dict[int, tuple[float, float]] = {}
        for letter in self.code.letters():
            step = math.ceil(self.code.nats(*letter) / _COARSE)
            if step not in known:
                known[step] = rows.interval(add_nats(self.level, step * _COARSE))
            low, high = self._unit(letter)
            if low <= known[step][0] and known[step][1] <= high:
                return letter
        raise AssertionError("the last letter contains everything")

    def _unit(self, letter: Letter) -> tuple[float, float]:
        shift, wider = letter
        low, high = self.code.interval(shift, wider, self.guess, self.half_width, self.cell)
        return max(0.0, low), min(1.0, high)

    def nats(self, letter: Letter) -> float:
        return self.code.nats(*letter)

    def claim(self, letter: Letter) -> Ends2:
        return self.scale.ends(*self._unit(letter))

    def value(self, letter: Letter) -> float:
        return self.scale.value(min(1.0, max(0.0, self.guess + letter[0] * self.cell)))

    def likely(self) -> tuple[Letter, ...]:
        return ((0, 0), (0, 1), (1, 0), (-1, 0))


@dataclass(frozen=True)
class Lattice(Rule):
    """Both ends on a lattice, in units of its points: precise answers about any value."""

    level: float
    code: Ends
    first: float
    """Where the lower end is predicted: its lattice point 0."""
    cell: float
    scale: Scale
    counted: ClassVar[bool] = False

    def letter(self, rows: Procedure) -> Letter:
        return self.code.choose(
            lambda a: rows.log_above(self._point(a)),
            lambda b: rows.log_below(self._point(b + self.code.span)),
            self.level,
            self._reach,
        )

    @property
    def _reach(self) -> tuple[int, int]:
        """The first point of the lower end and the last of the upper one: nothing is claimed."""
        last = self.first + self.code.span * self.cell
        return math.floor(-self.first / self.cell), math.ceil((1 - last) / self.cell)

    def _point(self, place: int) -> float:
        return min(1.0, max(0.0, self.first + place * self.cell))

    def nats(self, letter: Letter) -> float:
        return self.code.nats(*letter)

    def claim(self, letter: Letter) -> Ends2:
        low, excess = letter
        first, last = self._reach
        below = 0.0 if low <= first else self._point(low)
        above = 1.0 if low + excess >= last else self._point(low + excess + self.code.span)
        return self.scale.ends(below, above)

    def likely(self) -> tuple[Letter, ...]:
        middle = self.code.start.letters // 2 if isinstance(self.code.start, Even) else 0
        return tuple((middle + low, excess) for low, excess in ((0, 0), (0, 1), (1, 0), (2, 2)))


@dataclass(frozen=True)
class GridEnds(Rule):
    """Both ends on a question's grid, for the median of what an estimator gives on blocks."""

    level: float
    code: Ends
    grid: Grid
    first: int
    counted: ClassVar[bool] = False

    def letter(self, rows: Median) -> Letter:
        span, size = self.code.span, self.grid.size
        return self.code.choose(
            lambda a: rows.log_above(self._point(a)),
            lambda b: rows.log_below(self._point(b + span)),
            self.level,
            (-self.first, size - 1 - self.first - span),
        )

    def _point(self, place: int) -> float:
        return float(self.grid.point(min(self.grid.size - 1, max(0, self.first + place))))

    def nats(self, letter: Letter) -> float:
        return self.code.nats(*letter)

    def claim(self, letter: Letter) -> Ends2:
        low, excess = letter
        high = low + excess + self.code.span
        below = None if low <= -self.first else self._point(low)
        above = None if high + self.first >= self.grid.size - 1 else self._point(high)
        return below, above

    def value(self, letter: Letter) -> float:
        low, high = letter[0], sum(letter) + self.code.span
        return self._point((low + high) // 2)

    def likely(self) -> tuple[Letter, ...]:
        middle = self.grid.size // 2 if isinstance(self.code.start, Even) else 0
        return tuple((middle + low, excess) for low, excess in ((0, 0), (0, 1), (1, 0)))


@dataclass(frozen=True)
class ThreeWay(Rule):
    """Three letters in order: 0 worse or fail, 1 not shown, 2 better or pass.

    The middle one claims nothing.
    """

    level: float
    code: Verdict
    claims: tuple[float, float]
    """"M is below the first" is 0's claim, "M is above the second" that of 2."""
    scale: Scale
    top_first: bool = True
    """Which is told if both can be proved, as with a tolerance."""

    def letter(self, rows: Procedure) -> Letter:
        below, above = (self.scale.unit(each) for each in self.claims)
        proofs = {2: rows.log_above(above), 0: rows.log_below(below)}
        for letter in (2, 0) if self.top_first else (0, 2):
            if proofs[letter] <= -add_nats(self.level, self.code.nats(letter)):
                return (letter,)
        return (1,)

    def nats(self, letter: Letter) -> float:
        return self.code.nats(letter[0])

    def claim(self, letter: Letter) -> Ends2:
        below, above = self.claims
        return (
            (above, None) if letter == (2,) else (None, below) if letter == (0,) else (None, None)
        )

    def value(self, letter: Letter) -> None:
        del letter

    def likely(self) -> tuple[Letter, ...]:
        others = tuple((each,) for each in (2, 1, 0) if each != self.code.expected)
        return ((self.code.expected,), *others)


@dataclass(frozen=True)
class Beyond(ThreeWay):
    """The same of a median over blocks, whose thresholds are not scaled: a guess and a tolerance."""

    def letter(self, rows: Median) -> Letter:  # type: ignore[override]
        below, above = self.claims
        proofs = {2: rows.log_beyond(above)[0], 0: rows.log_beyond(below)[1]}
        for letter in (2, 0):
            if proofs[letter] <= -add_nats(self.level, self.code.nats(letter)):
                return (letter,)
        return (1,)


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
        return Even(self.candidates).nats(letter[0])

    def claim(self, letter: Letter) -> Ends2:
        del letter
        return None, None

    def likely(self) -> tuple[Letter, ...]:
        return ((0,),)


# From a question, what is public and the past to a rule.


def _sd(share: float, rows: float) -> float:
    """The standard deviation of a 0/1 term, kept away from 0."""
    share = (share * rows + 1) / (rows + 2)
    return math.sqrt(share * (1 - share))


def _announced(expects: Expects, past: Past, queries: int) -> tuple[float, float]:
    """τ, and the error of the guess, in the units of the answer."""
    assert expects.error is not None
    question = max(past.confirmations + 1, queries)
    return tolerance(expects.error, question), expects.error


def mean_rule(
    past: Past,
    expects: Expects,
    rows: int,
    *,
    share: bool,
    whole: bool = True,
    fixed: bool = False,
    precise: bool = False,
    scale: Scale = Scale(),
    queries: int = 0,
    add: float = 0.0,
    epsilon: float | None = None,
) -> Rule:
    """The rule for a mean: confirmed where there is a guess, precise else or where it is wanted.

    `share`: terms are 0 or 1; `whole`: over all rows, whose number is public. `add` is what a batch
    adds to the level, and `epsilon` its code for a surprise.
    """
    at = add_nats(past.level, add)
    span = scale.high - scale.low
    n = rows if whole or expects.rows is None else max(1.0, expects.rows)
    counts = share and whole
    guess = None if expects.guess is None else scale.unit(expects.guess)
    sd = _sd(0.5 if guess is None else guess, n)
    if not share and expects.sd is not None:
        sd = max(expects.sd / span, 1e-6)
    cell = sd / math.sqrt(n)
    if guess is None:
        return _unguessed(at, rows, cell, counts, fixed, scale, sd)
    tau, error = (each / span for each in _announced(expects, past, queries))
    error = max(error, 1e-9)
    if precise:
        width = PRECISE_CELL * cell
        if counts:
            windows = Windows.precise(rows, guess, width)
            code = Around(windows.width / rows / error)
            return CountWindows(at, windows, code, fixed, scale, None)
        below, above = _reaches(guess, sd, n, at + _NOISE)
        points = max(1, math.ceil((below + above) / width))
        return Lattice(at, Ends(Around(width / error), points), guess - below, width, scale)
    epsilon = past.history.confirmations.epsilon if epsilon is None else epsilon
    if counts:
        windows = Windows.confirming(rows, guess, tau, CONFIRM_CELL * cell)
        return CountWindows(at, windows, Outward(epsilon), fixed, scale, scale.value(guess))
    half = max(_reaches(guess, sd, n, add_nats(at, cost(1 - epsilon))))
    return Intervals(at, Shifts(epsilon), guess, tau + half, CONFIRM_CELL * cell, scale)


def _reaches(guess: float, sd: float, rows: float, nats: float) -> tuple[float, float]:
    """About how far the lower and the upper end will be from the mean."""
    n = max(1, round(rows))
    low, high = (predicted_half_width(sd, n, nats, mean=each) for each in (guess, 1 - guess))
    return low, high


def _unguessed(
    at: float, rows: int, cell: float, counts: bool, fixed: bool, scale: Scale, sd: float
) -> Rule:
    """Nothing is expected: a uniform code over the range."""
    width = PRECISE_CELL * cell
    if counts:
        windows, code = Windows.even(rows, width)
        return CountWindows(at, windows, code, fixed, scale, None)
    half = predicted_half_width(sd, rows, at + _NOISE)
    letters = max(1, math.ceil(1 / width))
    return Lattice(at, Ends(Even(letters), max(1, math.ceil(2 * half / width))), 0.0, width, scale)


def three_way(
    past: Past,
    expects: Expects,
    rows: int,
    verb: str,
    thresholds: tuple[float, float],
    sd: float,
    scale: Scale,
    *,
    top_first: bool = True,
) -> ThreeWay:
    """The rule for a verdict. Expected is what the guess makes likely, else the last, else 1."""
    epsilon, at = past.history.verdicts.epsilon, past.level
    below, above = (scale.unit(each) for each in thresholds)
    expected, leans_up = past.verdicts.get(verb, 1), True
    if expects.guess is not None:
        guess = scale.unit(expects.guess)
        expected, leans_up = 1, 2 * guess >= below + above
        reach = sd / (scale.high - scale.low) * math.sqrt(2 * (at + cost(1 - epsilon)) / rows)
        if guess - above >= reach:
            expected = 2
        elif below - guess >= reach:
            expected = 0
    return ThreeWay(at, Verdict(epsilon, expected, leans_up), thresholds, scale, top_first)


# What bars to expect: after so many questions, with so many surprises.


def forecast(
    past: Past, rows: int, queries: int = 0, share: float = 0.9, open_rows: int = 0
) -> list[dict[str, Any]]:
    """Half-widths of bars about a share, from now on: of an expected answer, and of a precise one.

    For 0, 20, 100 and 1,000 more questions; each with 0, 1 and 3 surprises of one window. The guess
    is from `open_rows` rows that are open, or else from as many as are sealed.

    >>> [round(h, 4) for h in forecast(told_plan(10_000).past(), 10_000)[2]["half_widths"]]
    [0.0191, 0.0264, 0.0325]
    >>> [round(h, 4) for h in forecast(told_plan(10_000).past(), 10_000)[2]["precise"]]
    [0.0078, 0.0145, 0.0203]
    """
    sd = _sd(share, rows)
    error = guess_error(sd, rows)
    if open_rows:
        error = sd * math.sqrt(1 / open_rows + 1 / rows)
    found = []
    for questions in (0, 20, 100, 1_000):
        widths: dict[bool, list[float]] = {False: [], True: []}
        for surprises in (0, 1, 3):
            then = _later(past, questions, min(questions, surprises))
            for precise, each in widths.items():
                expects = Expects(share, error)
                rule = mean_rule(then, expects, rows, share=True, precise=precise, queries=queries)
                low, high = rule.claim((0,))
                assert low is not None
                assert high is not None
                each.append((high - low) / 2)
        told = {"half_widths": widths[False], "precise": widths[True]}
        found.append({"questions": questions, "surprises": [0, 1, 3], **told})
    return found


def _later(past: Past, questions: int, surprises: int) -> Past:
    """The past after so many more confirmations, of which so many were off by one window."""
    done = past.history.confirmations
    later = Surprises(done.expected + questions - surprises, done.surprised + surprises)
    more = max(0.0, later.total - done.total + surprises * math.log(4))
    return replace(past, history=replace(past.history.tell(more), confirmations=later))


def bars_table(bars: Sequence[Mapping[str, Any]], when: str = "questions so far") -> list[str]:
    """What `forecast` says, in lines for people; more surprises than questions are left out."""
    columns = ("no surprise", "1 surprise", "3 surprises")
    lines = [f"  {when:>17}" + "".join(f"{each:>14}" for each in columns)]
    for each in bars:
        shown = (
            f"±{rounded_up(width, 2)}" if surprises <= each["questions"] else ""
            for surprises, width in zip(each["surprises"], each["half_widths"], strict=True)
        )
        line = f"  {each['questions']:>17,}" + "".join(f"{width:>14}" for width in shown)
        lines.append(line.rstrip())
    precise = [f"±{rounded_up(each['precise'][0], 2)}" for each in bars]
    lines.append(f"  precise answers, which tell more: {precise[0]} now, {precise[-1]} at the end")
    return lines


# The protocol: one class for each verb.


class _Told(Protocol[ToldPlan]):
    """Answers of what is told: the steps that all verbs share."""

    of = ("told",)
    part_type = ToldPlan
    method = "told"
    random = False
    on_grid = False
    told = True
    one_at_a_time = True

    @property
    def rows(self) -> int:
        """How many sealed units there are."""
        return self.plan.blocks * self.units

    @property
    def says(self) -> str:  # type: ignore[override]
        return self.verb

    def worst(self, question: Question) -> tuple[Charge, ...]:
        del question
        return ()

    def fixed(self, question: Question) -> bool:
        """Whether terms are independent but not alike, by the question's reading."""
        return question.reading in (ROWS, AT_SHARES)

    def scale(self, question: Question) -> Scale:
        """The range that answers lie in."""
        low, high = question.bounds
        return Scale(low - high, high - low) if question.paired else Scale(low, high)

    def sd(self, question: Question, expects: Expects) -> float:
        """The standard deviation of the terms, in the answer's units, as far as it is public."""
        scale = self.scale(question)
        if expects.sd is not None:
            return expects.sd
        return (scale.high - scale.low) * (0.25 if question.paired else 0.5)

    def ask(self, question: Question, entropy: Entropy, lessons: Sequence[Lesson]) -> Steps:
        del entropy, lessons
        found = yield from self.read(question)
        past, expects = yield PastTold()
        expects = self.expected(question, expects, past)
        rule = self.rule(question, expects, past)
        drawn = rule.drawn(rule.letter(self.procedure(question, expects, found, rule.level)))
        return past.after(question, drawn | {"expects": expects.to_dict()})

    def read(self, question: Question) -> Any:
        """What is needed of the rows: the terms of all units, and which a filter keeps."""
        if question.paired:
            first = yield Terms(question.bounds, of=0)
            return first, (yield Terms(question.bounds, of=1))
        terms = yield Terms(question.bounds)
        kept = (yield Terms(count=True)) if question.filtered else None
        return terms, kept

    def expected(self, question: Question, expects: Expects, past: Past) -> Expects:
        """What is public, with the guess that follows from it and from the past."""
        scale, error, guess = self.scale(question), expects.error, question.guess
        opened = expects.open
        if guess is not None:
            error = question.error
        elif opened is not None:
            offset = (
                past.offsets.get(str(question.metric), 0.0) if question.verb == "score" else 0.0
            )
            guess = min(scale.high, max(scale.low, opened + offset))
        else:
            guess, error = expects.guess, expects.error
        if guess is None:
            return replace(expects, guess=None, error=None)
        if error is None:
            span = scale.high - scale.low
            rows = self.rows if expects.rows is None else max(1, round(expects.rows))
            sd = self.sd(question, expects)
            if question.share and not question.paired:
                sd = span * _sd(scale.unit(guess), rows)
            error = guess_error(sd, rows)
        return replace(expects, guess=guess, error=error)

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        """What can be told, fixed before the rows are read."""
        return mean_rule(
            past,
            expects,
            self.rows,
            share=bool(question.share),
            whole=not question.filtered,
            fixed=self.fixed(question),
            precise=bool(question.precise),
            scale=self.scale(question),
            queries=self.part.queries,
        )

    def procedure(self, question: Question, expects: Expects, found: Any, at: float) -> Any:
        """What the rows say."""
        fixed = self.fixed(question)
        if question.paired:
            first, second = found
            wins = int(np.count_nonzero(first > second))
            losses = int(np.count_nonzero(first < second))
            exact = bool(question.share) and (not fixed or question.classes == 2)
            if question.share:
                terms = betting.Terms.paired(first.size, wins, losses)
            else:
                terms = betting.Terms.tally(first - second + _PARTS, 2 * _PARTS)
            return Pair(terms, self._bets(question, expects, at), wins, losses, fixed, exact)
        terms, kept = found
        if kept is not None:
            terms = terms[kept > 0]
        if not terms.size:
            return Nothing()
        if question.share:
            return Share(terms.size, int(np.count_nonzero(terms)), fixed)
        return Mean(betting.Terms.tally(terms, _PARTS), self._bets(question, expects, at))

    def _bets(self, question: Question, expects: Expects, at: float) -> tuple[Bets, Bets]:
        """Stakes that are fixed before the rows are read."""
        scale = self.scale(question)
        rows = self.rows if expects.rows is None else max(2, round(expects.rows))
        mean = 0.5 if expects.guess is None else scale.unit(expects.guess)
        sd = min(0.5, max(1e-6, self.sd(question, expects) / (scale.high - scale.low)))
        stakes = [predicted_stake(each, sd, rows, at + _NOISE) for each in (mean, 1 - mean)]
        return Bets.spread(rows, stakes[0]), Bets.spread(rows, stakes[1])

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Told:
        assert drawn is not None
        del paid
        letter = tuple(drawn["letter"])
        if not all(type(each) is int for each in letter):
            raise ValueError(f"no letter: {drawn['letter']!r}")
        return Told(
            verb=question.verb,
            about=str(question.metric or question.about["text"]),
            value=drawn.get("value"),
            low=drawn.get("low"),
            high=drawn.get("high"),
            guess=question.guess if question.guess is not None else _guess(drawn),
            expected=None if "surprise" not in drawn else not drawn["surprise"],
            verdict=self.word(question, letter),
            letter=letter,
            told=float(drawn["nats"]),
            level=float(drawn["level"]),
            confidence=self.confidence,
            certified=self.certified,
            reading=question.reading,
            facts=self.facts(question),
            told_so_far=float(drawn.get("so_far", 0.0)),
            answers=int(drawn.get("answers", 0)),
            leaning=drawn.get("leaning"),
            names=tuple(question.about.get("names", ())),
        )

    def facts(self, question: Question) -> Mapping[str, Any]:
        """What the sentence needs beside the numbers."""
        names = ("threshold", "claim", "tolerance", "margin", "precise")
        known = {name: getattr(question, name) for name in names}
        if question.range is not None:
            known["cut"] = list(question.range)
        known |= {"block_units": self.units, "against": question.about.get("against")}
        known |= {"of": question.candidates} if question.verb == "best" else {}
        known |= {"share": question.share, "where": question.about.get("where")}
        known |= {} if question.about.get("greater", True) else {"greater": False}
        known["guessed"] = True if question.guess is not None else None
        return {name: value for name, value in known.items() if value is not None}

    def word(self, question: Question, letter: Letter) -> str | None:
        """The verdict in one word, where the letter is one."""
        del question, letter
        return None

    def check(self, question: Question, drawn: Drawn, lessons: Sequence[Lesson]) -> None:
        """Make the rule again after the past, and compare all that the row says of itself."""
        (past,) = cast("Sequence[Past]", lessons)
        expects = Expects(**drawn["expects"])
        if question.guess is not None and expects.guess != question.guess:
            raise ValueError("another guess than the question's")
        self._compare(self.rule(question, expects, past), drawn)
        self._check_sums(question, drawn, past)

    def _check_sums(self, question: Question, drawn: Drawn, past: Past) -> None:
        made = past.after(question, {"nats": drawn["nats"]})
        for name in ("so_far", "answers", "leaning"):
            one, other = drawn.get(name), made.get(name)
            if type(one) is not type(other) or (one != other and not _close(one, other)):
                raise ValueError(f"{name} is {one!r}, and follows as {other!r}")

    def _compare(self, rule: Rule, drawn: Drawn) -> None:
        letter = tuple(drawn["letter"])
        made = rule.drawn(letter)
        for name in ("level", "nats", "low", "high", "value", "surprise"):
            one, other = drawn.get(name), made.get(name)
            if type(one) is not type(other) or (one != other and not _close(one, other)):
                raise ValueError(f"{name} is {one!r}, and follows as {other!r}")
        if math.isinf(made["nats"]):
            raise ValueError(f"no letter of its code: {letter}")

    def price(self, question: Question, expects: Any, past: Past) -> list[dict[str, Any]]:
        """What each of the likely answers costs and claims; a function of the past alone."""
        return list(self._offers(question, expects, past))

    def _offers(self, question: Question, expects: Any, past: Past) -> Iterator[dict[str, Any]]:
        """The same, one at a time: to know that one of them says something takes few."""
        expects = self.expected(question, expects, past)
        rule = self.rule(question, expects, past)
        for letter in rule.likely():
            nats, surprise = rule.nats(letter), rule.surprise(letter)
            if math.isfinite(nats):
                low, high = rule.claim(letter)
                yield {
                    "letter": list(letter),
                    "verdict": self.word(question, letter),
                    "expected": None if surprise is None else not surprise,
                    "nats": nats,
                    "low": low,
                    "high": high,
                }

    def refuse_everything(self, question: Question, expects: Any, past: Past) -> None:
        """Raise `Exhausted`, before anything is read, if no likely answer would say anything."""
        if question.verb == "best":
            return
        scale, offered = self.scale(question), False
        for each in self._offers(question, expects, past):
            low, high, offered = each["low"], each["high"], True
            if (low is not None and low > scale.low) or (high is not None and high < scale.high):
                return
        if offered:
            remedy = "Seal more rows, or add fresh ones. Nothing was told."
            needed = "a bar that is narrower than everything"
            raise Exhausted("This question", needed, "none at this level", remedy)


def _close(one: Any, other: Any) -> bool:
    numbers = isinstance(one, float) and isinstance(other, float)
    return numbers and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _guess(drawn: Drawn) -> float | None:
    found = drawn.get("expects", {}).get("guess")
    return None if found is None else float(found)


class ToldScore(_Told):
    """A score: the mean over rows of a metric's term."""

    verb: ClassVar[Verb] = "score"
    mixes: ClassVar = {
        "score": Wanted(lambda _, k, sure, units: told_plan(units or BLOCKS, sure, queries=k)),
    }


class ToldMean(_Told):
    """The mean of any term in a range, also over the rows that a filter keeps."""

    verb: ClassVar[Verb] = "mean"


class ToldCompare(_Told):
    """The difference of two scores on the same rows, or with a margin which is better."""

    verb: ClassVar[Verb] = "compare"

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        scale, sd = self.scale(question), self.sd(question, expects)
        if question.margin is not None:
            thresholds = -question.margin, question.margin
            return three_way(past, expects, self.rows, "compare", thresholds, sd, scale)
        return mean_rule(
            past,
            replace(expects, sd=sd),
            self.rows,
            share=False,
            precise=bool(question.precise),
            scale=scale,
            queries=self.part.queries,
        )

    def word(self, question: Question, letter: Letter) -> str | None:
        if question.margin is None:
            return None
        words = ("worse", "not shown", "better")
        return (words if question.about.get("greater", True) else words[::-1])[letter[0]]


class ToldGate(_Told):
    """Whether a score is proved to reach a threshold or to miss it; or to beat an incumbent's."""

    verb: ClassVar[Verb] = "gate"

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        threshold, near = question.threshold, question.tolerance or 0.0
        assert threshold is not None
        scale, sd = self.scale(question), self.sd(question, expects)
        if question.share and not question.paired:
            sd = (scale.high - scale.low) * _sd(scale.unit(threshold), self.rows)
        upwards = question.claim != "at most"
        thresholds = (threshold, threshold - near) if upwards else (threshold + near, threshold)
        return three_way(past, expects, self.rows, "gate", thresholds, sd, scale, top_first=upwards)

    def word(self, question: Question, letter: Letter) -> str | None:
        words = ("fail", "unclear", "pass")
        return (words if question.claim != "at most" else words[::-1])[letter[0]]


class ToldBest(_Told):
    """The best of several candidates on the rows."""

    verb: ClassVar[Verb] = "best"

    def read(self, question: Question) -> Any:
        totals = []
        for place in range(int(question.candidates or 0)):
            terms = yield Terms(question.bounds, of=place)
            totals.append(int(terms.sum()))
        return totals

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        del expects
        greater = question.about.get("greater", True)
        return Winner(past.level, int(question.candidates or 0), bool(greater))

    def procedure(self, question: Question, expects: Expects, found: Any, at: float) -> Any:
        del question, expects, at
        return found


class ToldScores(_Told):
    """A batch of scores, frozen before any of them is answered."""

    verb: ClassVar[Verb] = "scores"

    def ask(self, question: Question, entropy: Entropy, lessons: Sequence[Lesson]) -> Steps:
        del entropy, lessons
        found = []
        for place in range(int(question.candidates or 0)):
            found.append((yield Terms(question.bounds, of=place)))
        past, expects = yield PastTold()
        batch = [self._expected(question, k, each, past) for k, each in enumerate(expects)]
        drawn: list[Drawn] = []
        for each, terms, rule in self._rules(question, batch, past, drawn, found):
            letter = rule.letter(self.procedure(question, each, (terms, None), rule.level))
            drawn.append(rule.drawn(letter) | {"expects": each.to_dict()})
        whole = {"batch": drawn, "letter": [], "level": past.level}
        return past.after(question, whole | {"nats": add_nats(*(each["nats"] for each in drawn))})

    def _expected(self, question: Question, place: int, expects: Expects, past: Past) -> Expects:
        guess = None if question.guesses is None else question.guesses[place]
        return self.expected(replace(question, guess=guess, guesses=None), expects, past)

    def _rules(
        self,
        question: Question,
        batch: Sequence[Expects],
        past: Past,
        drawn: Sequence[Drawn],
        found: Sequence[Any],
    ) -> Any:
        """The rule of each, one after the other: `drawn` has the answers to those before."""
        epsilon = past.history.confirmations.epsilon
        in_order = self._in_order(question, batch, past, epsilon)
        for place, each in enumerate(batch):
            before = add_nats(*(one["nats"] for one in drawn[:place])) if in_order else 0.0
            add = before if in_order else batch_together(len(batch))
            yield each, found[place], self._one(question, each, past, add, epsilon)

    def _one(
        self, question: Question, expects: Expects, past: Past, add: float, epsilon: float
    ) -> Rule:
        return mean_rule(
            past,
            expects,
            self.rows,
            share=bool(question.share),
            fixed=self.fixed(question),
            precise=bool(question.precise),
            scale=self.scale(question),
            queries=self.part.queries,
            add=add,
            epsilon=epsilon,
        )

    def _in_order(
        self, question: Question, batch: Sequence[Expects], past: Past, epsilon: float
    ) -> bool:
        rules = [self._one(question, each, past, 0.0, epsilon) for each in batch]
        return batch_in_order([rule.nats(rule.likely()[0]) for rule in rules])

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        add = batch_together(max(1, int(question.candidates or 1)))
        return self._one(question, expects, past, add, past.history.confirmations.epsilon)

    def _offers(self, question: Question, expects: Any, past: Past) -> Iterator[dict[str, Any]]:
        for place, each in enumerate(expects):
            guess = None if question.guesses is None else question.guesses[place]
            one = replace(question, guess=guess, guesses=None)
            for offer in super()._offers(one, each, past):
                yield {"candidate": place, **offer}

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Told:
        assert drawn is not None
        guesses = question.guesses or (None,) * len(drawn["batch"])
        each = tuple(
            super(ToldScores, self).answer(replace(question, guess=guess), one, paid)
            for guess, one in zip(guesses, drawn["batch"], strict=True)
        )
        whole = super().answer(question, {**drawn, "letter": []}, paid)
        return replace(whole, batch=each)

    def check(self, question: Question, drawn: Drawn, lessons: Sequence[Lesson]) -> None:
        (past,) = cast("Sequence[Past]", lessons)
        batch = [Expects(**each["expects"]) for each in drawn["batch"]]
        if len(batch) != question.candidates:
            raise ValueError("not one answer for each")
        for one, (_, _, rule) in zip(
            drawn["batch"],
            self._rules(question, batch, past, drawn["batch"], [None] * len(batch)),
            strict=True,
        ):
            self._compare(rule, one)
        due = add_nats(*(each["nats"] for each in drawn["batch"]))
        if not _close(drawn["nats"], due) or not _close(drawn["level"], past.level):
            raise ValueError("other nats than those of its answers")
        self._check_sums(question, drawn, past)


class _Blocks(_Told):
    """Medians of what any estimator gives on about a hundred blocks."""

    def read(self, question: Question) -> Any:
        del question
        return block_floats((yield Values()), self.plan.blocks)

    def procedure(self, question: Question, expects: Expects, found: Any, at: float) -> Median:
        del question, expects, at
        return Median(found)

    def expected(self, question: Question, expects: Expects, past: Past) -> Expects:
        del past
        return replace(expects, guess=question.guess) if question.guess is not None else expects

    def scale(self, question: Question) -> Scale:
        del question
        return Scale(-math.inf, math.inf)


class ToldAsk(_Blocks):
    """An estimator's median over fresh blocks, with a bar on the question's grid."""

    verb: ClassVar[Verb] = "ask"
    on_grid = True

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        grid = question.points
        signs = math.sqrt((past.level + 2) / (2 * self.plan.blocks))  # in shares of blocks
        if expects.guess is None or expects.sd is None:
            span = min(grid.size - 1, max(1, round(grid.size * min(0.5, signs))))
            return GridEnds(past.level, Ends(Even(grid.size), span), grid, 0)
        step = max(1e-300, float(grid.point(grid.size - 1) - grid.point(0)) / max(1, grid.size - 1))
        reach = 2.5 * expects.sd * min(1.0, signs)  # of order statistics of about normal values
        span = min(grid.size - 1, max(1, math.ceil(2 * reach / step)))
        place = int(grid.ceiling(np.array([expects.guess - reach]))[0])
        error = max(step / 8, 1.25 * expects.sd * math.sqrt(2 / self.plan.blocks))
        return GridEnds(past.level, Ends(Around(step / error), span), grid, place)


class ToldInterval(ToldAsk):
    """The same, by the name that asks for both ends."""

    verb: ClassVar[Verb] = "interval"


class ToldVerify(_Blocks):
    """Whether a guess at the median over fresh blocks is proved wrong."""

    verb: ClassVar[Verb] = "verify"
    by_tolerance = True

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        del expects
        assert question.guess is not None
        near = question.tolerance or 0.0
        below, above = question.guess - near, question.guess + near
        if question.claim == "at least":
            above = math.inf
        elif question.claim == "at most":
            below = -math.inf
        epsilon = past.history.verdicts.epsilon
        code = Verdict(epsilon, 1)
        return Beyond(past.level, code, (below, above), Scale())

    def word(self, question: Question, letter: Letter) -> str | None:
        del question
        return "compatible" if letter == (1,) else "not compatible"
