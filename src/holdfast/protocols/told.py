"""Told: answers without noise over single rows, each at the level of all that was told before.

Three kinds of pure things make a verb.

    procedure   what the rows say at any level: log p-values and intervals (procedures.py)
    rule        what is fixed before the rows are read: the letters that can be told, what each
                costs and what it claims (rules.py)
    level       ln 1/β and the nats of every letter told before (`Past`)

A rule follows from the question, from what is public (`Expects`) and from the past, and from
nothing else. A row of the ledger keeps the letter, with the level, the nats and the claim; `check`
makes the rule again from the rows before and compares. Why all claims hold at once: theory/told.py
and docs/explanation/theory/told.md.

An exact answer needs no reservation: it is recorded durably, and then shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, InvalidInput, real_number, whole_number
from holdfast.protocols.answers import AT_SHARES, ROWS, Told, number, rounded_up
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
    checked_claim,
)
from holdfast.protocols.plans import Account, Charge, Left, OwnPlan, Use, Wanted
from holdfast.protocols.procedures import (
    HALF_PART,
    BlockMedian,
    Mean,
    Nothing,
    Pair,
    Procedure,
    Share,
)
from holdfast.protocols.rules import (
    CountWindows,
    GridEnds,
    Lattice,
    Letter,
    Rule,
    Shifted,
    TermRange,
    ThreeWay,
    Winner,
)
from holdfast.protocols.source import UNIT, WEIGHT_SCALE
from holdfast.randomness import Entropy
from holdfast.theory import betting
from holdfast.theory.betting import Bets, predicted_half_width, predicted_stake
from holdfast.theory.numerics import log_binomial_tail
from holdfast.theory.told import (
    CONFIRM_CELL,
    PRECISE_CELL,
    Around,
    Ends,
    Even,
    History,
    Outward,
    Shifts,
    Surprises,
    VerdictCode,
    Windows,
    add_nats,
    batch_in_order,
    batch_together,
    cost,
    guess_error,
    level,
    tolerance,
)

__all__ = [
    "BLOCKS",
    "Expects",
    "Past",
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
    "law_of",
    "law_of_question",
    "mean_rule",
    "three_way",
    "told_blocks",
    "told_plan",
]

BLOCKS = 100
_FEWEST = 2 * BLOCKS // 3
_NOISE = 0.6  # nats that an end on a lattice pays for its code, about: it sets what is announced
_EVERYTHING = 0.95  # of the range: a bar that is as wide says nothing
_SOON = 0.002  # seconds to find a letter, beside the bets
_WEALTHS = 100  # evaluations of the bets for one letter, at most about
_LOGARITHMS = 2e-7  # seconds for a term by all stakes
_REMEMBERED = 100  # offsets
_CHANCE = 12.0  # squared standard errors of a guess that one offset may well be by chance
_FEW = 20  # open blocks: of fewer nothing is said of guesses that would be compatible
_LEAN = 3  # surprises on one side that are worth a word
_VERDICTS = ("gate", "verify")
_OF_BLOCKS = ("ask", "interval", "verify")
_UNSCALED = TermRange()


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
        return Past(History(self.failure, self.extends, mixes=True))

    def words(self) -> tuple[str, str]:
        most = f"{self.queries:,} questions expected" if self.queries else "any number of questions"
        sure = number(100 * self.confidence, 12)
        return most, (
            "Every interval and verdict below is true of fresh data, all at once, with at least "
            f"{sure} % confidence."
        )

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
    readings: list[str] = field(default_factory=list)
    """What claims were about, in the order in which it was first asked for (`law_of`)."""
    askers: dict[str, float] = field(default_factory=dict)
    """The nats that each asker was told."""
    offsets: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """By metric: values that were no confirmed guesses, each less the same rule's open score."""
    verdicts: dict[str, int] = field(default_factory=dict)
    """By verb: the last verdict."""
    above: int = 0
    below: int = 0
    """Surprises above and below what was supposed: the user's guess, or the open part's score."""
    leaning: float = 0.0
    """By how much they were above, added up."""

    @property
    def level(self) -> float:
        """ln 1/β + T of the reading that was asked for first, rounded up."""
        return level(self.history)

    def level_of(self, question: Question) -> float:
        """The level of a question's claims, by their reading; rounded up."""
        return self.level_about(law_of_question(question))

    def level_about(self, law: str) -> float:
        """The level of claims about one law (`law_of`), rounded up."""
        place = self.readings.index(law) if law in self.readings else len(self.readings)
        return level(self.history, reading=place + 1)

    @property
    def nats(self) -> float:
        """T: what was told so far."""
        return self.history.told[0]

    @property
    def confirmations(self) -> int:
        """How many answers were confirmed or surprising values."""
        done = self.history.confirmations
        return done.expected + done.surprised

    def after(self, drawn: Drawn) -> Drawn:
        """What was drawn, with the sums up to it."""
        sums: Drawn = {"so_far": add_nats(self.nats, drawn["nats"]), "answers": self.answers + 1}
        count = self.above + self.below
        if count >= _LEAN and max(self.above, self.below) >= _LEAN * count // (_LEAN + 1):
            sums["leaning"] = -self.leaning / count
        return drawn | sums

    def later(self, question: Question, nats: float, surprise: bool | None) -> Past:
        """The past with one more answer in its history, as far as that decides levels and codes."""
        sequence = {_sequence(question): surprise} if surprise is not None else {}
        return replace(self, history=self.history.tell(nats, **sequence))

    def tell(self, question: Question, drawn: Drawn, asker: str | None = None) -> None:
        """Go on to one more answer."""
        nats, surprise = float(drawn["nats"]), drawn.get("surprise")
        verdict = _sequence(question) == "verdict"
        self.history = self.later(question, nats, surprise).history
        self.answers += 1
        law = law_of_question(question)
        if question.verb != "best" and law not in self.readings:
            self.readings.append(law)
        if asker is not None:
            self.askers[asker] = self.askers.get(asker, 0.0) + nats
        if verdict:
            self.verdicts[question.verb] = drawn["letter"][0]
        opened, value = drawn.get("expects", {}).get("open"), drawn.get("value")
        if question.verb != "score" or value is None or surprise is False:
            return  # a confirmed guess says no more than the guess
        if opened is not None:
            before = self.offsets.get(str(question.metric), ())
            self.offsets[str(question.metric)] = (*before, value - opened)[-_REMEMBERED:]
        supposed = opened if question.guess is None else question.guess
        if surprise and supposed is not None:
            off = value - supposed
            self.above, self.below = self.above + (off > 0), self.below + (off < 0)
            self.leaning += off


def _sequence(question: Question) -> str:
    """Which sequence of expected answers and surprises it belongs to."""
    verdict = question.verb in _VERDICTS or question.margin is not None
    return "verdict" if verdict else "confirmation"


def law_of(reading: str | None, target: object) -> str:
    """Which law claims are about: that of labels given all else of the rows, or that of rows.

    Claims of two kinds have shares of β of their own: see "Readings" in theory/told.md.
    """
    return f"{ROWS} {target or ''}" if reading == ROWS else ""


def law_of_question(question: Question) -> str:
    """Which law a question's claims are about."""
    return law_of(question.reading, question.about.get("target"))


@dataclass(frozen=True)
class Expects:
    """What is public of the answer: a guess, its standard error, the terms' standard deviation.

    `open` is the score on the open part, from which the guess follows if the user gives none;
    `rows` how many sealed rows a filter is expected to keep; `differ` on how many of them two
    submissions differ, which whoever compares them knows.
    """

    guess: float | None = None
    error: float | None = None
    sd: float | None = None
    open: float | None = None
    rows: float | None = None
    differ: int | None = None

    def to_dict(self) -> dict[str, float]:
        """Plain numbers: those that are known."""
        return {name: value for name, value in vars(self).items() if value is not None}


# From a question, what is public and the past to a rule.


def _sd(share: float, rows: float) -> float:
    """The standard deviation of a 0/1 term, kept away from 0."""
    share = (share * rows + 1) / (rows + 2)
    return math.sqrt(share * (1 - share))


def _shrunk(offsets: Sequence[float], error: float) -> float:
    """How much of past offsets a guess is corrected by: of their mean what no chance explains.

    >>> [round(_shrunk(each, 0.01), 4) for each in ([], [0.03], [0.04], [0.04, 0.04], [-0.1])]
    [0.0, 0.0, 0.01, 0.025, -0.088]
    """
    mean = math.fsum(offsets) / max(1, len(offsets))
    if abs(mean) <= error / 100:
        return 0.0
    return mean * max(0.0, 1 - _CHANCE / len(offsets) * (error / mean) ** 2)


def mean_rule(
    past: Past,
    expects: Expects,
    rows: int,
    *,
    share: bool,
    at: float | None = None,
    sd: float | None = None,
    whole: bool = True,
    fixed: bool = False,
    precise: bool = False,
    scale: TermRange = _UNSCALED,
    queries: int = 0,
) -> Rule:
    """The rule for a mean: confirmed where there is a guess, precise else or where it is wanted.

    `share`: terms are 0 or 1; `whole`: over all rows, whose number is public. `at` is the level,
    where it is another than that of the past; `sd` the terms' standard deviation, as far as known.
    """
    at = past.level if at is None else at
    span = scale.high - scale.low
    n = rows if whole or expects.rows is None else max(1.0, expects.rows)
    guess = None if expects.guess is None else scale.unit(expects.guess)
    if share or sd is None:
        sd = span * _sd(0.5 if guess is None else guess, n)
    sd = max(1e-6, sd / span)
    cell, few, counts = sd / math.sqrt(n), max(1, round(n)), share and whole
    width, noisy = PRECISE_CELL * cell, at + _NOISE
    if guess is None:  # nothing is expected: a uniform code over the range
        if counts:
            windows, even = Windows.even(rows, width)
            return CountWindows(at, windows, even, fixed, None)
        points = max(1, math.ceil(2 * predicted_half_width(sd, few, noisy) / width))
        return Lattice(at, Ends(Even(math.ceil(1 / width)), points), 0.0, width, scale)
    assert expects.error is not None
    # Nobody knows the sealed mean better than that, or can be off by more.
    error = min(1.0, max(width, expects.error / span))
    if precise:
        if counts:
            windows = Windows.precise(rows, guess, width)
            return CountWindows(at, windows, Around(windows.width / rows / error), fixed, None)
        points = max(1, math.ceil(2 * predicted_half_width(sd, few, noisy) / width))
        code = Ends(Around(width / error), points)
        return Lattice(at, code, guess - points * width / 2, width, scale)
    epsilon = past.history.confirmations.epsilon
    tau = tolerance(min(1.0, expects.error / span), max(past.confirmations + 1, queries))
    if counts:
        windows = Windows.confirming(rows, guess, tau, CONFIRM_CELL * cell)
        return CountWindows(at, windows, Outward(epsilon), fixed, guess)
    paid = add_nats(at, cost(1 - epsilon))
    # No stake is all: terms that hardly vary still have an interval of about L/n.
    half = tau + max(predicted_half_width(sd, few, paid), 1.15 * (paid + 1) / few)
    return Shifted(at, Shifts(epsilon), guess, half, CONFIRM_CELL * cell, scale)


def three_way(
    past: Past,
    expects: Expects,
    rows: int,
    verb: str,
    claims: tuple[float, float],
    sd: float,
    scale: TermRange,
    *,
    at: float | None = None,
    top_first: bool = True,
) -> ThreeWay:
    """The rule for a verdict: M is at most the first claim, at least the second, or neither.

    Expected is what the guess makes likely, else the last verdict, else the middle one.
    """
    at = past.level if at is None else at
    epsilon = past.history.verdicts.epsilon
    thresholds = below, above = scale.unit_below(claims[0]), scale.unit_above(claims[1])
    expected, leans_up = past.verdicts.get(verb, 1), True
    if expects.guess is not None:
        guess = scale.unit(expects.guess)
        expected, leans_up = 1, 2 * guess >= below + above
        reach = sd / (scale.high - scale.low) * math.sqrt(2 * (at + cost(1 - epsilon)) / rows)
        if guess - above >= reach:
            expected = 2
        elif below - guess >= reach:
            expected = 0
    return ThreeWay(at, VerdictCode(epsilon, expected, leans_up), claims, thresholds, top_first)


# What bars to expect: after so many questions, with so many surprises.


def forecast(
    past: Past,
    rows: int,
    queries: int = 0,
    share: float = 0.9,
    open_rows: int = 0,
    law: str = "",
) -> list[dict[str, Any]]:
    """Half-widths of bars about a share, from now on: of an expected answer, and of a precise one.

    For 0, 20, 100 and 1,000 more questions; each with 0, 1 and 3 surprises of one window. The guess
    is from `open_rows` rows that are open, or else from as many as are sealed. The bars are about
    one `law` (`law_of`).

    >>> [round(h, 4) for h in forecast(told_plan(10_000).past(), 10_000)[2]["half_widths"]]
    [0.0191, 0.026, 0.0319]
    >>> [round(h, 4) for h in forecast(told_plan(10_000).past(), 10_000)[2]["precise"]]
    [0.0077, 0.0144, 0.0201]
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
            at = then.level_about(law)
            for precise, each in widths.items():
                expects = Expects(share, error)
                rule = mean_rule(
                    then, expects, rows, share=True, at=at, precise=precise, queries=queries
                )
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
        return int(self.plan.blocks) * self.units

    @property
    def says(self) -> str:  # type: ignore[override]
        return self.verb

    def worst(self, question: Question) -> tuple[Charge, ...]:
        del question
        return ()

    # What is public, and the rule that follows from it.

    def fixed(self, question: Question) -> bool:
        """Whether terms are independent but not alike, by the question's reading."""
        return question.reading in (ROWS, AT_SHARES)

    def share(self, question: Question) -> bool:
        """Whether the answer is a share of rows."""
        return bool(question.share) and not question.paired and question.bounds == UNIT

    def scale(self, question: Question) -> TermRange:
        """The range that answers lie in."""
        low, high = question.bounds
        return TermRange(low - high, high - low) if question.paired else TermRange(low, high)

    def sd(self, question: Question, expects: Expects) -> float:
        """The standard deviation of the terms, in the answer's units, as far as it is public."""
        scale = self.scale(question)
        span, guess = scale.high - scale.low, expects.guess
        if expects.sd is not None and not self.share(question):
            return expects.sd
        if question.paired:
            return 0.25 * span
        rows = self.rows if expects.rows is None else max(1.0, expects.rows)
        return span * _sd(0.5 if guess is None else scale.unit(guess), rows)

    def expected(self, question: Question, expects: Expects, past: Past) -> Expects:
        """What is public, with the guess that follows from it and from the past."""
        scale, guess, error = self.scale(question), question.guess, question.error
        if guess is None:
            guess, error = expects.guess, expects.error
            if expects.open is not None:
                score = question.verb == "score"
                offsets = past.offsets.get(str(question.metric), ()) if score else ()
                guess = expects.open + _shrunk(offsets, error or 0.0)
                guess = min(scale.high, max(scale.low, guess))
        if guess is None:
            return replace(expects, guess=None, error=None)
        expects = replace(expects, guess=guess)
        if error is None:
            rows = self.rows if expects.rows is None else max(1, round(expects.rows))
            error = guess_error(self.sd(question, expects), rows)
        return replace(expects, error=error)

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        """What can be told, fixed before the rows are read."""
        return self._value_rule(question, expects, past)

    def _value_rule(
        self, question: Question, expects: Expects, past: Past, add: float = 0.0
    ) -> Rule:
        """The rule for a value; a batch adds something to its level."""
        return mean_rule(
            past,
            expects,
            self.rows,
            share=self.share(question),
            at=add_nats(past.level_of(question), add),
            sd=self.sd(question, expects),
            whole=not question.filtered,
            fixed=self.fixed(question),
            precise=bool(question.precise),
            scale=self.scale(question),
            queries=self.part.queries,
        )

    # What the rows say.

    def ask(self, question: Question, entropy: Entropy, lessons: Sequence[Lesson]) -> Steps:
        del entropy, lessons
        found = yield from self.read(question)
        past, expects = cast("tuple[Past, Expects]", (yield PastTold()))
        expects = self.expected(question, expects, past)
        rule = self.rule(question, expects, past)
        letter = rule.letter(self.procedure(question, expects, found, rule.level))
        return past.after(rule.drawn(letter) | {"expects": expects.to_dict()})

    def read(self, question: Question) -> Any:
        """What is needed of the rows: the terms of all units by each rule that it is about."""
        found = []
        for place in range(question.candidates or 1):
            terms = yield Terms(question.bounds, of=place)
            found.append(self.needed(terms))
        if question.filtered:
            kept = yield Terms(count=True)
            found = [terms[kept > 0] for terms in found]
        return found

    def needed(self, terms: NDArray[np.int64]) -> Any:
        """What is needed of one rule's terms."""
        return terms

    def procedure(self, question: Question, expects: Expects, found: Any, at: float) -> Any:
        """What the rows say."""
        fixed = self.fixed(question)
        if question.paired:
            first, second = found
            wins, losses = (
                int(np.count_nonzero(each)) for each in (first > second, first < second)
            )
            bets = self._bets(question, expects, at)
            if not question.share:
                terms = betting.Tally.of(first - second + WEIGHT_SCALE, 2 * WEIGHT_SCALE)
                return Pair(terms, bets, HALF_PART, wins, losses)
            terms = betting.Tally.paired(first.size, wins, losses)
            differ, exact = wins + losses, not fixed
            if question.reading == ROWS and question.classes == 2 and expects.differ is not None:
                differ, exact = max(differ, expects.differ), True  # some may have no target
            return Pair(terms, bets, 0.0, wins, losses, differ, fixed, exact)
        (terms,) = found
        if not terms.size:
            return Nothing()
        if self.share(question):
            return Share(terms.size, int(np.count_nonzero(terms)), fixed)
        return Mean(betting.Tally.of(terms, WEIGHT_SCALE), self._bets(question, expects, at))

    def _bets(self, question: Question, expects: Expects, at: float) -> tuple[Bets, Bets]:
        """Stakes that are fixed before the rows are read."""
        scale = self.scale(question)
        rows = self.rows if expects.rows is None else max(2, round(expects.rows))
        mean = 0.5 if expects.guess is None else scale.unit(expects.guess)
        sd = min(0.5, max(1e-6, self.sd(question, expects) / (scale.high - scale.low)))
        stakes = [predicted_stake(each, sd, rows, at + _NOISE) for each in (mean, 1 - mean)]
        return Bets.spread(rows, stakes[0]), Bets.spread(rows, stakes[1])

    def seconds(self, question: Question) -> float:
        """At worst, to find the letter of rows that were read: a function of the question alone."""
        paired, several = question.paired, question.candidates or 1
        if question.verb in ("best", *_OF_BLOCKS) or (question.share and not paired):
            return _SOON * several
        most = 3 if question.share else min(self.rows, WEIGHT_SCALE * (1 + paired)) + 1
        return (_SOON + _WEALTHS * most * _LOGARITHMS) * (1 if paired else several)

    # What is said of it: all from the question and from what was drawn.

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Told:
        assert drawn is not None
        del paid
        letter = _letter(drawn)
        expects = drawn.get("expects", {})
        guess, opened = expects.get("guess"), expects.get("open")
        facts = self.facts(question)
        if question.guess is None and None not in (guess, opened) and guess != opened:
            facts = {**facts, "corrected": True}
        return Told(
            verb=question.verb,
            about=str(question.metric or question.about["text"]),
            value=drawn.get("value"),
            low=drawn.get("low"),
            high=drawn.get("high"),
            guess=question.guess if guess is None else float(guess),
            expected=None if "surprise" not in drawn else not drawn["surprise"],
            verdict=self.word(question, letter),
            letter=letter,
            told=float(drawn["nats"]),
            level=float(drawn["level"]),
            confidence=self.confidence,
            certified=self.certified,
            reading=question.reading,
            facts=facts,
            told_so_far=float(drawn["so_far"]),
            answers=int(drawn["answers"]),
            leaning=drawn.get("leaning"),
            names=tuple(question.about.get("names", ())),
            assumes=(question.failures or self.lacking,),
        )

    lacking: ClassVar[str] = "a row without a value counts as the lowest"
    """What a failure counts as where the question says nothing of it."""

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
        """Make all that the row says of itself again, after the past, and compare."""
        (past,) = cast("Sequence[Past]", lessons)
        _same("drawn", drawn, past.after(self.redrawn(question, drawn, past)))

    def redrawn(self, question: Question, drawn: Drawn, past: Past) -> Drawn:
        """What is drawn with this letter and with what was public."""
        expects = Expects(**drawn["expects"])
        due = self.expected(question, self.given(expects), past)
        _same("expects", expects.to_dict(), due.to_dict())
        return self._redrawn(self.rule(question, expects, past), drawn)

    def given(self, expects: Expects) -> Expects:
        """What the open part says: a guess follows from its score, or is the question's."""
        return replace(expects, guess=None)

    def _redrawn(self, rule: Rule, drawn: Drawn) -> Drawn:
        letter = _letter(drawn)
        if not math.isfinite(rule.nats(letter)) or not rule.has(letter):
            raise ValueError(f"no letter of its code: {letter}")
        return rule.drawn(letter) | {"expects": drawn["expects"]}

    # What it would cost.

    def price(self, question: Question, expects: Any, past: Past) -> list[dict[str, Any]]:
        """What each of the likely answers costs and claims; a function of the past alone."""
        return list(self._offers(question, expects, past))

    def _offers(self, question: Question, expects: Any, past: Past) -> Iterator[dict[str, Any]]:
        """The same, one at a time: to know that one of them says something takes few."""
        rule = self.rule(question, self.expected(question, expects, past), past)
        yield from self._letters(question, rule)

    def _letters(self, question: Question, rule: Rule) -> Iterator[dict[str, Any]]:
        for letter in rule.likely():
            if math.isfinite(rule.nats(letter)) and rule.has(letter):
                (low, high), surprise = rule.claim(letter), rule.surprise(letter)
                expected = None if surprise is None else not surprise
                each: dict[str, Any] = {"letter": list(letter), "nats": rule.nats(letter)}
                each |= {"verdict": self.word(question, letter), "expected": expected}
                yield each | {"low": low, "high": high}

    def refuse_everything(self, question: Question, expects: Any, past: Past) -> None:
        """Raise `Exhausted`, before anything is read, if the answer could not say anything.

        A value whose bar, as expected, is nearly all of its range; a verdict that no rows decide.
        """
        scale = self.scale(question)
        verdict = question.threshold is not None or question.margin is not None
        if verdict or question.verb in _OF_BLOCKS:
            says = self._decides(question, self.expected(question, expects, past), past)
        else:
            first = next(self._offers(question, expects, past))
            says = first["high"] - first["low"] < _EVERYTHING * (scale.high - scale.low)
        if not says:
            left = f"no such answer after {past.nats:.3g} nats"
            remedy = (
                "Another question may still have an answer: means over rows need the fewest rows, "
                "a far threshold fewer than a near one. Else seal fresh rows. Nothing was told."
            )
            what = "What these rows can still prove about this question"
            raise Exhausted(what, "an answer that says something", left, remedy)

    def _decides(self, question: Question, expects: Expects, past: Past) -> bool:
        """Whether rows that are all right, or all wrong, would get a verdict."""
        rule = self.rule(question, expects, past)
        right = np.full(self.rows, WEIGHT_SCALE)
        for best, worst in ((right, 0 * right), (0 * right, right)):
            found = [best, worst] if question.paired else [best]
            rows = self.procedure(question, expects, found, rule.level)
            if rule.letter(rows) != (1,):
                return True
        return False


def _letter(drawn: Drawn) -> Letter:
    letter = drawn["letter"]
    if type(letter) is not list or not all(type(each) is int for each in letter):
        raise ValueError(f"no letter: {letter!r}")
    return tuple(letter)


def _same(name: str, one: Any, other: Any) -> None:
    """Refuse, as a ValueError, what is recorded and what follows if they differ."""
    if isinstance(one, dict) and isinstance(other, dict) and {*one} == {*other}:
        for key in one:
            _same(key, one[key], other[key])
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for first, second in zip(one, other, strict=True):
            _same(name, first, second)
    elif type(one) is not type(other) or (one != other and not _close(one, other)):
        raise ValueError(f"{name} is {one!r}, and follows as {other!r}")


def _close(one: Any, other: Any) -> bool:
    """Whether two floats are one, but for what machines differ by."""
    return isinstance(one, float) and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


class ToldScore(_Told):
    """A score: the mean over rows of a metric's term."""

    verb: ClassVar[Verb] = "score"
    mixes: ClassVar = dict.fromkeys(
        ("score", "gate"),
        Wanted(lambda _, k, sure, units: told_plan(units or BLOCKS, sure, queries=k)),
    )


class ToldMean(_Told):
    """The mean of any term in a range, also over the rows that a filter keeps."""

    verb: ClassVar[Verb] = "mean"


class ToldCompare(_Told):
    """The difference of two scores on the same rows, or with a margin which is better."""

    verb: ClassVar[Verb] = "compare"

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        if question.margin is None:
            return self._value_rule(question, expects, past)
        claims, at = (-question.margin, question.margin), past.level_of(question)
        sd, scale = self.sd(question, expects), self.scale(question)
        return three_way(past, expects, self.rows, "compare", claims, sd, scale, at=at)

    def word(self, question: Question, letter: Letter) -> str | None:
        if question.margin is None:
            return None
        words = ("worse", "not shown", "better")
        return (words if question.about.get("greater", True) else words[::-1])[letter[0]]


class ToldGate(_Told):
    """Whether a score is proved to reach a threshold or to miss it; or to beat an incumbent's."""

    verb: ClassVar[Verb] = "gate"

    def admit(self, question: Question) -> None:
        if question.claim not in ("at least", "at most") or question.threshold is None:
            raise InvalidInput("claim", question.claim, "'at least' or 'at most' a threshold")

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        threshold, near, at = question.threshold, question.tolerance or 0.0, past.level_of(question)
        assert threshold is not None
        about_it = replace(expects, guess=threshold) if self.share(question) else expects
        upwards = question.claim == "at least"
        claims = (threshold, threshold - near) if upwards else (threshold + near, threshold)
        sd, scale = self.sd(question, about_it), self.scale(question)
        words = {"at": at, "top_first": upwards}
        return three_way(past, expects, self.rows, "gate", claims, sd, scale, **words)  # type: ignore[arg-type]

    def word(self, question: Question, letter: Letter) -> str | None:
        words = ("fail", "unclear", "pass")
        return (words if question.claim == "at least" else words[::-1])[letter[0]]


class ToldBest(_Told):
    """The best of several candidates on the rows."""

    verb: ClassVar[Verb] = "best"

    def needed(self, terms: NDArray[np.int64]) -> int:
        return int(terms.sum())

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        del expects
        greater = bool(question.about.get("greater", True))
        return Winner(past.level, int(question.candidates or 0), greater)

    def procedure(self, question: Question, expects: Expects, found: Any, at: float) -> Any:
        del question, expects, at
        return found

    def refuse_everything(self, question: Question, expects: Any, past: Past) -> None:
        """Nothing is claimed, and a winner is told at any level."""


class ToldScores(_Told):
    """A batch of scores, frozen before any of them is answered.

    Answered one after the other, each pays for those before it; answered at once, each pays ln m.
    Which of the two it is follows from what is expected.
    """

    verb: ClassVar[Verb] = "scores"

    def ask(self, question: Question, entropy: Entropy, lessons: Sequence[Lesson]) -> Steps:
        del entropy, lessons
        found = yield from self.read(question)
        past, expects = cast("tuple[Past, Sequence[Expects]]", (yield PastTold()))
        batch = [self._expected(question, k, each, past) for k, each in enumerate(expects)]
        drawn: list[Drawn] = []
        rules = self._rules(question, batch, past, drawn)
        for each, terms, rule in zip(batch, found, rules, strict=True):
            letter = rule.letter(self.procedure(question, each, [terms], rule.level))
            drawn.append(rule.drawn(letter) | {"expects": each.to_dict()})
        return past.after(self._whole(question, drawn, past))

    def _whole(self, question: Question, drawn: list[Drawn], past: Past) -> Drawn:
        nats = add_nats(*(each["nats"] for each in drawn))
        return {"batch": drawn, "letter": [], "level": past.level_of(question), "nats": nats}

    def _expected(self, question: Question, place: int, expects: Expects, past: Past) -> Expects:
        guess = None if question.guesses is None else question.guesses[place]
        return self.expected(replace(question, guess=guess, guesses=None), expects, past)

    def _rules(
        self, question: Question, batch: Sequence[Expects], past: Past, drawn: Sequence[Drawn]
    ) -> Iterator[Rule]:
        """The rule of each, one after the other: `drawn` has the answers to those before."""
        in_order, _ = self._order(question, batch, past)
        for place, each in enumerate(batch):
            before = [one["nats"] for one in drawn[:place]]
            add = add_nats(*before) if in_order else batch_together(len(batch))
            yield self._value_rule(question, each, past, add)

    def _order(
        self, question: Question, batch: Sequence[Expects], past: Past
    ) -> tuple[bool, float]:
        """Whether they are answered one after the other; and what the last one is to pay then."""
        rules = [self._value_rule(question, each, past) for each in batch]
        nats = [rule.nats(rule.likely()[0]) for rule in rules]
        return batch_in_order(nats), add_nats(*nats[:-1])

    def _offers(self, question: Question, expects: Any, past: Past) -> Iterator[dict[str, Any]]:
        """For each the price of the last one in its place, if those before it are as expected."""
        batch = [self._expected(question, k, each, past) for k, each in enumerate(expects)]
        in_order, add = self._order(question, batch, past)
        add = add if in_order else batch_together(len(batch))
        for place, each in enumerate(batch):
            for offer in self._letters(question, self._value_rule(question, each, past, add)):
                yield {"candidate": place, **offer}

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Told:
        assert drawn is not None
        sums = {name: drawn[name] for name in ("so_far", "answers")}
        guesses = question.guesses or (None,) * len(drawn["batch"])
        batch = tuple(
            self._one(replace(question, guess=guess), one | sums, paid)
            for guess, one in zip(guesses, drawn["batch"], strict=True)
        )
        return replace(super().answer(question, drawn, paid), batch=batch)

    def _one(self, question: Question, drawn: Drawn, paid: Paid) -> Told:
        """One of a batch: a score like any other."""
        return replace(super().answer(question, drawn, paid), verb="score", names=())

    def redrawn(self, question: Question, drawn: Drawn, past: Past) -> Drawn:
        batch = [Expects(**each["expects"]) for each in drawn["batch"]]
        if len(batch) != question.candidates:
            raise ValueError("not one answer for each")
        for place, each in enumerate(batch):
            due = self._expected(question, place, self.given(each), past)
            _same("expects", each.to_dict(), due.to_dict())
        rules = self._rules(question, batch, past, drawn["batch"])
        made = [self._redrawn(r, one) for r, one in zip(rules, drawn["batch"], strict=True)]
        return self._whole(question, made, past)


class _Blocks(_Told):
    """Medians of what any estimator gives on about a hundred blocks."""

    lacking = "a block without a value counts as the lowest"

    def read(self, question: Question) -> Any:
        del question
        return block_floats((yield Values()), self.plan.blocks)

    def procedure(self, question: Question, expects: Expects, found: Any, at: float) -> Procedure:
        del question, expects, at
        return BlockMedian(found)

    def expected(self, question: Question, expects: Expects, past: Past) -> Expects:
        del past
        return replace(expects, guess=question.guess) if question.guess is not None else expects

    def given(self, expects: Expects) -> Expects:
        return expects  # the open blocks' median is the guess itself

    def _decides(self, question: Question, expects: Expects, past: Past) -> bool:
        """Whether blocks that all lie beyond one end would get a claim."""
        rule = self.rule(question, expects, past)
        for end in (math.inf, -math.inf):
            letter = rule.letter(BlockMedian(np.full(self.plan.blocks, end)))
            if rule.claim(letter) != (None, None):
                return True
        return False

    def scale(self, question: Question) -> TermRange:
        del question
        return TermRange(-math.inf, math.inf)


class ToldAsk(_Blocks):
    """An estimator's median over fresh blocks, with a bar on the question's grid."""

    verb: ClassVar[Verb] = "ask"
    on_grid = True

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        grid, at = question.points, past.level_of(question)
        signs = math.sqrt((at + 2) / (2 * self.plan.blocks))  # in shares of blocks
        if expects.guess is None or expects.sd is None:
            span = min(grid.size - 1, max(1, round(grid.size * min(0.5, signs))))
            return GridEnds(at, Ends(Even(grid.size), span), grid, 0)
        step = max(1e-300, float(grid.point(grid.size - 1) - grid.point(0)) / max(1, grid.size - 1))
        reach = 2.5 * expects.sd * min(1.0, signs)  # of order statistics of about normal values
        span = min(grid.size - 1, max(1, math.ceil(min(1e18, 2 * reach / step))))
        place = int(grid.ceiling(np.array([expects.guess - reach]))[0])
        error = max(step / 8, 1.25 * expects.sd * math.sqrt(2 / self.plan.blocks))
        return GridEnds(at, Ends(Around(max(1e-12, step / error)), span), grid, place)


class ToldInterval(ToldAsk):
    """The same, by the name that asks for both ends."""

    verb: ClassVar[Verb] = "interval"


class ToldVerify(_Blocks):
    """Whether a guess at the median over fresh blocks is proved wrong."""

    verb: ClassVar[Verb] = "verify"
    by_tolerance = True

    def admit(self, question: Question) -> None:
        checked_claim(question.claim)
        if question.guess is None:
            raise InvalidInput("guess", None, "a number")

    def rule(self, question: Question, expects: Expects, past: Past) -> Rule:
        del expects
        assert question.guess is not None
        near = question.tolerance or 0.0
        below, above = question.guess - near, question.guess + near
        if question.claim == "at least":
            above = math.inf
        elif question.claim == "at most":
            below = -math.inf
        code = VerdictCode(past.history.verdicts.epsilon, 1)
        return ThreeWay(past.level_of(question), code, (below, above), (below, above))

    def ranged(
        self, question: Question, told: Told, values: NDArray[np.float64] | None, worst: float
    ) -> Told:
        """The verdict, with the guesses that were compatible if fresh blocks were these open ones.

        Of m blocks c or more on one side refuse a guess, if so many have a p-value at the letter's
        level; of n open ones that share are ⌈n·c/m⌉. A block without a value counts as `worst`.
        """
        if values is None or values.size < _FEW or told.verdict != "compatible":
            return told
        code, m, n = VerdictCode(-math.expm1(-told.told), 1), int(self.plan.blocks), values.size
        ordered, near = (
            np.sort(np.where(np.isnan(values), worst, values)),
            question.tolerance or 0.0,
        )
        ends: list[float | None] = []
        for letter, claim in ((2, "at least"), (0, "at most")):
            needed = -add_nats(told.level, code.nats(letter))
            refused = (c for c in range(1, m + 1) if log_binomial_tail(m, 0.5, c) <= needed)
            least = math.ceil(n * Fraction(next(refused, m + 1), m))
            known = least <= n and question.claim != claim
            place = n - least if letter == 2 else least - 1
            end = float(ordered[place]) + (-near if letter == 2 else near) if known else math.nan
            ends.append(end if math.isfinite(end) else None)
        low, high = ends
        facts = {"range_low": low, "range_high": high, "open_blocks": n}
        known_facts = {name: value for name, value in facts.items() if value is not None}
        return replace(told, facts={**told.facts, **known_facts})

    def word(self, question: Question, letter: Letter) -> str | None:
        del question
        return "compatible" if letter == (1,) else "not compatible"
