"""Attacks on what is told, by analysts who know the protocol, its levels and the law of the rows.

    python -m holdfast_lab.told.attacks --runs 1000 --output docs/explanation/told-attacks.md

Rows have labels, a submission is a table of predictions. Nobody can predict the labels, or nobody
better than is known: so the true accuracy of every table is known exactly, whatever made the
analyst submit it, and a claim is true or false without any error of estimation.

A run has failed if any claim in it is false. Failures are compared with β by an exact test,
P[Bin(runs, β) ≥ failures] > 0.001. Asked are the protocol's own generators, on rows in memory.
"""

from __future__ import annotations

import argparse
import math
import platform
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.protocols.answers import ROWS, RULE
from holdfast.protocols.base import Drawn, Question
from holdfast.protocols.base import Terms as RowTerms
from holdfast.protocols.source import WEIGHT_SCALE
from holdfast.protocols.told import (
    Expects,
    Past,
    ToldBest,
    ToldCompare,
    ToldGate,
    ToldScore,
    told_plan,
)
from holdfast.randomness import SeededEntropy
from holdfast.theory.numerics import log_binomial_tail
from holdfast.theory.told import add_nats, bisect_last, cost, share_low, tolerance
from holdfast_lab.attacks.conversation import (
    Bits,
    Conversation,
    FloatArray,
    MeanResponder,
    Means,
    Replies,
    Responder,
    Terms,
    interview,
)
from holdfast_lab.attacks.targets import confidence_of
from holdfast_lab.attacks.textbook import GuessAndCheck, Ladder, Naive, Thresholdout

FAILURES = (0.05, 0.3)
_SIGNIFICANT = 1e-3
_SHARP = 1e-9  # the error of a guess whose window is one count
_NO_COINS = SeededEntropy(0)  # nothing is drawn from it

Table = NDArray[np.uint8]
Words = Mapping[str, Any]
Ask = Callable[[Past, int], Words]
"""From all that is public, the past and the number of rows, to the words of a question."""


# Who answers.


class ToldRows(Responder):
    """The protocol's own questions about rows in memory, one after the other."""

    name = "told"
    certified = True

    def __init__(self, terms: Terms, reading: str = ROWS, *, extends: bool = False) -> None:
        plan = told_plan(terms.rows, confidence_of(terms.failure), extends=extends)
        units = terms.rows // plan.blocks
        assert units * plan.blocks == terms.rows
        self._protocols = {
            kind.verb: kind(plan, plan, units, plan.confidence, certified=False)
            for kind in (ToldScore, ToldGate, ToldCompare, ToldBest)
        }
        self._about = {"text": "accuracy", "reading": reading}
        self.past = plan.past()

    def ask(self, right: Bits, ask: Ask) -> Drawn:
        """One question about a table, or several; it may depend on all that was told before."""
        words = {"verb": "score", "metric": "accuracy", **ask(self.past, right.shape[-1])}
        question = Question(part="told", about=self._about, share=True, **words)
        steps = self._protocols[question.verb].ask(question, _NO_COINS, ())
        step = next(steps)
        while True:
            found: Any = (self.past, Expects())
            if isinstance(step, RowTerms):
                found = np.atleast_2d(right)[step.of].astype(np.int64) * WEIGHT_SCALE
            try:
                step = steps.send(found)
            except StopIteration as ended:
                drawn: Drawn = ended.value
                self.go_on(question, drawn)
                return drawn

    def go_on(self, question: Question, drawn: Drawn) -> None:
        """What was told counts from now on."""
        self.past.tell(question, drawn)


class Forgetful(ToldRows):
    """The same with a mistake: its level stays what it was before anything was told."""

    name = "forgetful"
    certified = False

    def go_on(self, question: Question, drawn: Drawn) -> None:
        super().go_on(question, drawn)
        self.past.history = replace(self.past.history, told=(0.0,))


class OneBitGate(Naive):
    """Passes what reaches the guess on the rows; a pass claims as much, less the textbook's bar.

    One bit is all that is shown, and the bar is for as many gates as there will be.
    """

    name: ClassVar[str] = "one-bit gate"

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        assert guesses is not None
        passed = values.mean(axis=1, dtype=np.float64) >= guesses
        low = np.where(passed, guesses - self._half_width, -np.inf)
        high = np.where(passed, np.inf, guesses + self._half_width)
        return Replies(guesses + np.where(passed, 1e-3, -1e-3), low, high)


class ScoreLadder(MeanResponder):
    """The Ladder, of scores in place of losses: the best so far."""

    name: ClassVar[str] = "ladder of scores"

    def __init__(self, terms: Terms) -> None:
        self._ladder = Ladder(terms)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        return Replies.unclaimed(1 - self._ladder.means(1 - values, guesses).values)


# What is asked.


@dataclass(frozen=True, eq=False)
class Tables(Means):
    """Scores of tables; `asks` say how what is told is asked, the guesses are for all others.

    Where there are fewer of these, only the first tables are asked about.
    """

    asks: tuple[Ask, ...] = ()

    def put(self, rows: Any, responder: Responder) -> Replies:
        values = self.values(rows)
        if not isinstance(responder, ToldRows):
            return responder.means(values, self.guesses)
        return _replies(responder.ask(*each) for each in zip(values, self.asks, strict=False))

    def reached(self, values: FloatArray) -> FloatArray:
        return np.asarray(self.truths[: len(values)], np.float64)


@dataclass(frozen=True, eq=False)
class Pairs(Tables):
    """Which of two tables is better; others are asked for half of one more than the difference."""

    def put(self, rows: Any, responder: Responder) -> Replies:
        if isinstance(responder, ToldRows):
            found = super().put(rows, responder)
            return Replies(found.values, (1 + found.low) / 2, (1 + found.high) / 2)
        first, second = np.swapaxes(self.values(rows), 0, 1)
        return responder.means((1.0 + first - second) / 2, self.guesses)

    def wrong(self, replies: Replies, reached: FloatArray) -> Bits:
        """A difference of nothing is none that was shown."""
        return np.asarray((reached <= replies.low) | (reached >= replies.high))


@dataclass(frozen=True, eq=False)
class Best(Tables):
    """Which table is the best: a place, and no claim."""

    def put(self, rows: Any, responder: Responder) -> Replies:
        values = self.values(rows)
        if isinstance(responder, ToldRows):
            place = responder.ask(values, self.asks[0])["letter"][0]
        else:
            place = int(np.argmax(responder.means(values, self.guesses).values))
        return Replies.unclaimed(np.array([place]))


def _replies(drawn: Iterable[Drawn]) -> Replies:
    """What was told, as replies; a verdict has no value."""
    ends = [
        (each.get("value", 0.0), each.get("low", -math.inf), each.get("high", math.inf))
        for each in drawn
    ]
    return Replies(*np.array(ends, np.float64).T.copy())


# How it is asked. All of it follows from what is public: the level, ε, the number of rows.


def precise(truth: float) -> Ask:
    """As much as can be told, around a guess."""
    return lambda *_: {"guess": truth, "precise": True}


def honest(truth: float) -> Ask:
    """A guess that is right but for chance."""
    return lambda *_: {"guess": truth}


def sided(truth: float) -> Ask:
    """Confirmed on one side of the truth and a surprise on the other: a bit for each question."""
    return lambda past, rows: _from_count(past, rows, round(truth * rows))


def bold(truth: float) -> Ask:
    """Confirmed just if the claim is false: as likely as the level allows at all."""

    def words(past: Past, rows: int) -> Words:
        nats = cost(1 - past.history.confirmations.epsilon / 2)
        return _from_count(past, rows, _critical(past, rows, truth, nats))

    return words


def cheap(truth: float) -> Ask:
    """A surprise just if the claim is false, where surprises have become cheap."""

    def words(past: Past, rows: int) -> Words:
        nats = cost(past.history.confirmations.epsilon / 2)
        first = _critical(past, rows, truth, nats)
        return {"guess": (first - 1) / rows, "error": _SHARP}

    return words


def surprising(truth: float) -> Ask:
    """Most likely one window above the guess."""

    def words(past: Past, rows: int) -> Words:
        del past
        window = 1.5 * math.sqrt(truth * (1 - truth) / rows)
        return {"guess": truth - window / 2, "error": _SHARP}

    return words


def false_gate(truth: float) -> Ask:
    """A gate just above the truth, at which a pass is expected."""
    words = {"verb": "gate", "claim": "at least", "guess": 1.0}
    return lambda *_: words | {"threshold": truth + _SHARP}


def false_comparison(truth: float) -> Ask:
    """Of two tables that are as good as each other "better" is expected of the first."""
    words = {"verb": "compare", "margin": 0.0, "candidates": 2, "classes": 2}
    return lambda *_: words | {"guess": 2 * truth}


def best_of(candidates: int) -> Ask:
    """Which of so many is the best."""
    return lambda *_: {"verb": "best", "candidates": candidates}


def _from_count(past: Past, rows: int, first: int) -> Words:
    """A guess whose announced window begins with this count, and is wide."""
    low = (first - 0.5) / rows
    reach = min(0.1, (1 - low) / 2)
    return {"guess": low + reach, "error": reach / tolerance(1.0, past.confirmations + 1)}


def _critical(past: Past, rows: int, truth: float, nats: float) -> int:
    """The least count whose lower end is beyond the truth, where a letter has so many nats."""
    at = add_nats(past.level, nats)

    def covers(count: int) -> bool:
        return share_low(rows, count, at, fixed=True) <= truth

    return 1 + bisect_last(covers, 0, rows - 1)


# Who asks.


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels that are held back, the chance that analysts use, and what features say of each."""

    holdout: Table
    chance: np.random.Generator
    likely: Table | None = None
    sure: FloatArray | None = None


@dataclass(frozen=True)
class Fair:
    """Labels are drawn evenly from all classes: every table is right with probability 1/classes.

    `submissions` is how many are asked about in order to learn. `improving`: a reply is good if it
    is above all before it, as with a Ladder. `lying`: guesses are so much too high, for a responder
    that says no more than the guess where that is near.
    """

    name: ClassVar[str]
    story: ClassVar[str]
    learns: ClassVar[bool] = False
    """Whether it learns from many submissions, so that exact answers fall for it."""

    submissions: int = 300
    classes: int = 2
    rows: int = 1_000
    improving: bool = False
    lying: float = 0.0

    @property
    def queries(self) -> int:
        """What a fixed list would be corrected for."""
        return self.submissions + _GAINS.size

    @property
    def truth(self) -> float:
        """The accuracy of any table."""
        return 1 / self.classes

    def draw(self, chance: np.random.Generator) -> Labels:
        """Fresh labels."""
        labels = chance.integers(0, self.classes, self.rows, np.uint8)
        return Labels(labels, chance.spawn(1)[0])

    def guesses(self, world: Labels, count: int) -> Table:
        """Predictions at random."""
        return world.chance.integers(0, self.classes, (count, self.rows), np.uint8)

    def scores(
        self, tables: Table, *asks: Callable[[float], Ask], gains: FloatArray | None = None
    ) -> Tables:
        """Tables, each asked like this; gates are put to them at the truth, or beyond it."""
        truths = np.full(len(tables), self.truth)
        made = [each(self.truth) for each in asks] * (len(tables) if len(asks) == 1 else 1)
        guessed = truths + (self.lying if gains is None else gains)
        return Tables(lambda labels: tables == labels, truths, guessed, tuple(made))

    def converse(self, world: Labels) -> Conversation:
        """What is asked."""
        raise NotImplementedError


_GAINS = np.arange(1, 17) / 80
"""At which a vote is put to gates: one of them is beyond the bar, and reached."""
_STRIKES = 10


class SignAggregation(Fair):
    """All tables vote, turned around where they are wrong more often than chance is."""

    name = "sign aggregation"
    story = (
        "asks of random predictions on which side of chance they are, one bit each (of what is "
        "told: a guess whose window begins there), and then about the vote of all of them, those "
        "below turned around"
    )
    learns = True
    weighs: ClassVar[bool] = False
    drops: ClassVar[bool] = False

    def converse(self, world: Labels) -> Conversation:
        tables = self.guesses(world, self.submissions)
        replies = yield self.scores(tables, self.how)
        votes = np.repeat(self.vote(tables, replies.values)[np.newaxis], _GAINS.size, axis=0)
        yield self.scores(votes, precise, bold, bold, gains=_GAINS)

    def how(self, truth: float) -> Ask:
        """How it asks what it learns from."""
        return sided(truth)

    def vote(self, tables: Table, values: FloatArray) -> Table:
        """For every row the class that the tables name, each as its score has it."""
        weights = np.nan_to_num(values - self.truth)
        if self.improving:
            before = np.maximum.accumulate(np.concatenate([[self.truth], values[:-1]]))
            weights = (values > before).astype(np.float64)
        elif not self.weighs:
            weights = np.sign(weights)
        weights = np.maximum(weights, 0) if self.drops else weights
        votes = [weights @ (tables == label) for label in range(self.classes)]
        found: Table = np.argmax(votes, axis=0).astype(np.uint8)
        return found


class Boosted(SignAggregation):
    """Those that did well vote."""

    name = "boosting"
    story = (
        "asks for the scores of random predictions (precisely, of what is told), keeps those above "
        "chance, and asks about their vote (Blum & Hardt 2015)"
    )
    drops = True

    def how(self, truth: float) -> Ask:
        return precise(truth)


@dataclass(frozen=True)
class ManyClasses(SignAggregation):
    """Tables weigh what they are above or below chance."""

    name = "many classes"
    story = (
        "the same with ten classes, where chance is 0.1, and every table weighs what its score is "
        "above or below that (Feldman, Frostig & Hardt 2019)"
    )
    weighs = True
    classes: int = 10

    def how(self, truth: float) -> Ask:
        return precise(truth)


class Hidden(Fair):
    """Expected answers, which cost next to nothing, until one question."""

    name = "hidden behind expected answers"
    story = (
        "asks what everybody expects, until an expected answer costs nothing and a surprise all it "
        "can, and then puts a guess that is confirmed just if it is false; and goes on with such"
    )

    def converse(self, world: Labels) -> Conversation:
        yield self.scores(self.guesses(world, self.submissions), honest)
        yield self.scores(self.guesses(world, _STRIKES), bold)


class Teacher(Fair):
    """Surprises on purpose, until the code finds them cheap; then false claims are surprises."""

    name = "teaches that surprises are cheap"
    story = (
        "guesses wrong on purpose, until the code has learnt that surprises are common, and then "
        "puts guesses of which a surprise is a false claim"
    )

    def converse(self, world: Labels) -> Conversation:
        yield self.scores(self.guesses(world, 4), surprising)
        yield self.scores(self.guesses(world, _STRIKES), cheap)


class BoldGuesses(Fair):
    """From the first question on what is confirmed just if it is false."""

    name = "bold guesses"
    story = (
        "from the first question on puts guesses that are confirmed just if they are false, so "
        "that nearly all of β is there for the first"
    )

    def how(self, truth: float) -> Ask:
        """How it strikes."""
        return bold(truth)

    def converse(self, world: Labels) -> Conversation:
        yield self.scores(self.guesses(world, _STRIKES), self.how)


class BoldGates(BoldGuesses):
    """The same with gates just above the truth."""

    name = "bold gates"
    story = "the same with gates just above the truth, at which a pass is expected"

    def how(self, truth: float) -> Ask:
        return false_gate(truth)


class BoldComparisons(Fair):
    """The same with pairs of tables that are as good as each other."""

    name = "bold comparisons"
    story = (
        "the same with pairs that differ on a tenth of the rows: the first is expected to be better"
    )

    def converse(self, world: Labels) -> Conversation:
        first = self.guesses(world, _STRIKES)
        flips = (world.chance.random(first.shape) < 0.1).astype(np.uint8)
        pairs = np.stack([first, first ^ flips], axis=1)
        half = np.full(_STRIKES, 0.5)
        asks = (false_comparison(0.5),) * _STRIKES
        yield Pairs(lambda labels: pairs == labels, half, half, asks)


class Winner(Fair):
    """The best of a hundred tables, and a bold guess about it."""

    name = "winner of a batch"
    story = (
        "asks which of a hundred random tables is best, and puts a bold guess about it; three times"
    )

    def converse(self, world: Labels) -> Conversation:
        for _ in range(3):
            tables, half = self.guesses(world, 100), np.full(100, 0.5)
            best = yield Best(lambda labels: tables == labels, half, half, (best_of(100),))  # noqa: B023
            place = int(best.values[0])
            yield self.scores(tables[place : place + 1], bold)


@dataclass(frozen=True)
class Fitted(Fair):
    """Predictions by id that were made from the sealed rows' features.

    Labels are independent given the features, and one of them has a probability between .8 and 1.
    The rule names that one on the sealed rows and the other one elsewhere; beside it are tables
    that differ from it at random, and their vote.
    """

    name = "fitted to the sealed features"
    story = (
        "knows every sealed row's features and so its likely label, predicts that label there and "
        "the other one elsewhere, asks about tables that differ from these predictions on a tenth "
        "of the rows, and then about their vote"
    )
    rule: bool = False
    """Whether claims are held to be about the rule on fresh rows, where it is wrong."""

    def draw(self, chance: np.random.Generator) -> Labels:
        sure = chance.uniform(0.8, 1.0, self.rows)
        likely = chance.integers(0, 2, self.rows, np.uint8)
        unlikely = (chance.random(self.rows) >= sure).astype(np.uint8)
        return Labels(likely ^ unlikely, chance.spawn(1)[0], likely, sure)

    def converse(self, world: Labels) -> Conversation:
        assert world.likely is not None
        flips = world.chance.random((self.submissions, self.rows)) < 0.1
        flips[0] = False
        replies = yield self.fitted(world, world.likely ^ flips.astype(np.uint8), precise)
        gains = np.nan_to_num(replies.values - np.nanmean(replies.values))
        lean = gains @ np.where(flips[: gains.size], -1.0, 1.0)
        vote = world.likely ^ (lean < np.quantile(lean, 0.05)).astype(np.uint8)
        yield self.fitted(world, np.repeat(vote[np.newaxis], 3, axis=0), bold)

    def fitted(self, world: Labels, tables: Table, ask: Callable[[float], Ask]) -> Tables:
        """Tables whose accuracies on these rows with fresh labels are known."""
        assert world.sure is not None
        here = np.where(tables == world.likely, world.sure, 1 - world.sure).mean(axis=1)
        asks = tuple(ask(float(each)) for each in here)
        return Tables(lambda labels: tables == labels, 1 - here if self.rule else here, here, asks)


ANALYSTS: tuple[Fair, ...] = (
    SignAggregation(),
    Boosted(),
    ManyClasses(),
    Hidden(),
    Teacher(),
    BoldGuesses(),
    BoldGates(),
    BoldComparisons(),
    Winner(),
    Fitted(),
)
TOLD_SUBMISSIONS = 50  # against what is told: every one of them widens the bars


# Many runs.


Make = Callable[[Terms], Responder]


@dataclass(frozen=True)
class Tally:
    """Runs of one analyst against one responder."""

    runs: int
    failures: int
    off: float
    """How far the worst answer to the last questions is from the truth, on average."""
    half_width: float
    """Of the first of these answers, on average: infinite where nothing is claimed."""

    @property
    def rate(self) -> float:
        """Of runs with a false claim."""
        return self.failures / self.runs

    def chance(self, failure: float) -> float:
        """P[Bin(runs, β) ≥ failures]."""
        return math.exp(min(0.0, log_binomial_tail(self.runs, failure, self.failures)))

    def held(self, failure: float) -> bool:
        """Whether there are no more failures than β allows, by the exact test."""
        return self.chance(failure) > _SIGNIFICANT


def tally(analyst: Fair, make: Make, failure: float, runs: int, seed: int) -> Tally:
    """Fresh rows for every run; run number i has the same ones for all responders."""
    failures, off, widths = 0, [], []
    for number in range(runs):
        world = analyst.draw(np.random.default_rng([seed, number]))
        entropy = SeededEntropy(seed * 10**6 + number)
        terms = Terms(analyst.rows, analyst.queries, entropy, failure)
        session = interview(analyst, world, make(terms))
        failures += session.wrong_claims > 0
        off.append(float(np.nan_to_num(session.errors)[-session.ending :].max()))
        widths.append(float((session.high - session.low)[-session.ending]) / 2)
    return Tally(runs, failures, float(np.mean(off)), float(np.mean(widths)))


OTHERS: tuple[tuple[str, Make, Mapping[str, Any]], ...] = (
    ("naive", Naive, {}),
    ("one-bit gate", OneBitGate, {}),
    ("without levels", Forgetful, {"submissions": TOLD_SUBMISSIONS}),
    ("guess-and-check", GuessAndCheck, {}),
    ("Thresholdout", Thresholdout, {"lying": 0.3}),
    ("Ladder", ScoreLadder, {"improving": True}),
)
"""Names, responders, and how their attackers differ."""


@dataclass(frozen=True)
class Attacked:
    """One analyst at one β: what is told, and all others."""

    analyst: Fair
    failure: float
    told: Tally
    others: Mapping[str, Tally]

    @property
    def passed(self) -> bool:
        """Whether the promise is supported, and what learns breaks naive reuse and gates."""
        fallen = all(2 * self.others[name].failures > self.others[name].runs for name in _MUST_FALL)
        return self.told.held(self.failure) and (fallen or not self.analyst.learns)


_MUST_FALL = ("naive", "one-bit gate")


def attacked(analyst: Fair, failure: float, runs: int, others: int, seed: int) -> Attacked:
    """So many runs against what is told, and fewer against the others."""
    against = replace(analyst, submissions=TOLD_SUBMISSIONS)
    told = tally(against, ToldRows, failure, runs, seed)
    beside = {
        name: tally(replace(analyst, **words), make, failure, others, seed)
        for name, make, words in OTHERS
    }
    return Attacked(analyst, failure, told, beside)


def readings(failure: float, runs: int, seed: int) -> dict[str, Tally]:
    """Predictions fitted to the sealed features, under both readings."""
    analyst = Fitted(submissions=TOLD_SUBMISSIONS)
    return {
        ROWS: tally(analyst, ToldRows, failure, runs, seed),
        RULE: tally(
            replace(analyst, rule=True), lambda terms: ToldRows(terms, RULE), failure, runs, seed
        ),
    }


# The page.


_PROGRAM = "python -m holdfast_lab.told.attacks"


def page(found: Sequence[Attacked], read: Mapping[float, Mapping[str, Tally]], command: str) -> str:
    """All of it as Markdown."""
    today = datetime.now(UTC).date().isoformat()
    made = f"Python {platform.python_version()}, numpy {np.__version__}"
    analyst, others = found[0].analyst, found[0].others
    stories = "\n".join(f"- **{each.analyst.name}** {each.analyst.story}." for each in found[::2])
    width = f"{others['guess-and-check'].half_width:.2f}"
    return f"""\
# Attacks on what is told

Made by the command below on {today} ({made}).
The code is `holdfast_lab.told.attacks`; the same seed gives the same numbers.

```{{.console .skip}}
$ {command}
```

There are {analyst.rows:,} sealed rows, and analysts who know the protocol, its level, its code and
the law of the rows, but not the labels. Labels are fair draws (or, for the last analyst, draws
whose chances are known), so that the true accuracy of every table of predictions is known exactly,
whatever made the analyst submit it. A run has failed if any claim made in it is false. P is
P[Bin(runs, β) ≥ failures]: above 0.001, failures are no more than β allows. None of β is kept for
rows that arrive later, and a twentieth for claims of another reading, as in any holdout.

{_told_table(found)}

{_verdict(found)}

## The analysts

{stories}

Bold guesses, gates and comparisons and the winner of a batch show how near the bound is to what can
be attained: their rates are close to β.

## Beside it

The same analysts against naive reuse (exact scores, with Hoeffding's bars for a fixed list of as
many questions), a gate that shows one bit (a pass claims the threshold less the same bar), what is
told *without its levels* (a mistake: nothing that was told counts) and guess-and-check (Rogers et
al. 2020): in how many of {others["naive"].runs:,} runs a claim was false. Thresholdout (Dwork et
al. 2015, as in its authors' experiment) and the Ladder (Blum & Hardt 2015) claim nothing: how far
their worst answer about the last tables is from the truth, on average. All of these give
{analyst.submissions} scores to learn from, what is told {TOLD_SUBMISSIONS}: more would widen its
bars.

{_others_table(found)}

Analysts who do not learn from many answers do not break naive reuse: they aim at what is told
alone. Guess-and-check holds as well; its bar is ±{width} from the first question to the last.

## Predictions made from the sealed rows' own features

Whoever submits predictions by row id may know the rows' features, and fit the predictions to them.
"These rows, fresh labels" holds against everybody; "this rule, on fresh rows" assumes that the rule
was made without them. The last analyst's rule is right on about 0.9 of the sealed rows, and on 0.1
of all others.

| reading | β | runs | runs with a false claim |
|---|---|---|---|
{_readings_rows(read)}

So "these rows, fresh labels" is the default.
"""


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _told_table(found: Sequence[Attacked]) -> str:
    head = ("analyst", "β", "runs", "failed", "rate", "P", "")
    lines = [_row(*head), "|---" * len(head) + "|"]
    for each in found:
        told, chance = each.told, each.told.chance(each.failure)
        held = "holds" if told.held(each.failure) else "**broken**"
        cells = f"{told.runs:,}", f"{told.failures:,}", f"{told.rate:.3f}", f"{chance:.2g}", held
        lines.append(_row(each.analyst.name, f"{each.failure:g}", *cells))
    return "\n".join(lines)


def _others_table(found: Sequence[Attacked]) -> str:
    counted, claimless = [name for name, *_ in OTHERS[:4]], [name for name, *_ in OTHERS[4:]]
    head = ("analyst", "β", *counted, *(f"{name}, off by" for name in claimless))
    lines = [_row(*head), "|---" * len(head) + "|"]
    for each in found:
        failures = [f"{each.others[name].failures:,}" for name in counted]
        off = [f"{each.others[name].off:.3f}" for name in claimless]
        lines.append(_row(each.analyst.name, f"{each.failure:g}", *failures, *off))
    return "\n".join(lines)


def _readings_rows(read: Mapping[float, Mapping[str, Tally]]) -> str:
    names = {ROWS: "these rows, fresh labels", RULE: "this rule, on fresh rows"}
    return "\n".join(
        _row(names[reading], f"{failure:g}", f"{found.runs:,}", f"{found.failures:,}")
        for failure, each in read.items()
        for reading, found in each.items()
    )


def _verdict(found: Sequence[Attacked]) -> str:
    wrong = [f"{each.analyst.name} at {each.failure:g}" for each in found if not each.passed]
    if wrong:
        return f"**Not supported by these runs:** {', '.join(wrong)}."
    return (
        "No promise failed more often than it may. Naive reuse and one-bit gates break in most "
        "runs of the first three analysts, who learn."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack, and write the page; exit status 4 if the runs do not support the promise."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(prog=_PROGRAM)
    parser.add_argument("--runs", type=int, default=1_000, help="against what is told")
    parser.add_argument("--others", type=int, default=200, help="runs against all others")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="the page to write; else standard output")
    chosen = parser.parse_args(given)
    found = []
    for analyst in ANALYSTS:
        for failure in FAILURES:
            found.append(attacked(analyst, failure, chosen.runs, chosen.others, chosen.seed))
            told = found[-1].told
            sys.stderr.write(f"{analyst.name} {failure:g}: {told.failures} of {told.runs}\n")
    read = {failure: readings(failure, chosen.runs, chosen.seed) for failure in FAILURES}
    text = page(found, read, shlex.join([*shlex.split(_PROGRAM), *given]))
    if chosen.output is None:
        sys.stdout.write(text)
    else:
        chosen.output.write_text(text, "utf-8")
    return 0 if all(each.passed for each in found) else 4


if __name__ == "__main__":
    sys.exit(main())
