"""What the page says of a holdout, read from the rows of its ledger and from nothing else.

The same rows give the same story, and the same story the same page, byte for byte.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, cast

from holdfast.engines.python.metrics import listed as listed_labels
from holdfast.grids import Grid
from holdfast.holdout.records import answer_in, empty_note
from holdfast.holdout.spec import BlockSet, HoldoutSpec
from holdfast.holdout.state import HoldoutState, SetStatus, Status, status_of
from holdfast.ledger.ledger import Receipt, Row, verify_chain
from holdfast.protocols.answers import (
    Answer,
    Result,
    Told,
    Verdict,
    reading_words,
    unit_words,
)
from holdfast.protocols.plans import Charge, JointPlan, LookPart, SetPlan
from holdfast.report.html import count, listed, number, outwards, percent, typeset
from holdfast.theory.privacy import (
    Allowance,
    UnitPrivacy,
    largest_total,
    unit_privacy,
)

__all__ = [
    "AnsweredQuestion",
    "LooksUsed",
    "LostReservation",
    "Planned",
    "SetPrivacy",
    "Spending",
    "Story",
    "assumed",
    "declared",
    "delta_for",
    "details",
    "odds",
    "paying",
    "planned",
    "read_story",
    "sentence",
    "set_privacy",
    "verdict_line",
]


_VERBS = {"mean": "mean of", "interval": "interval for", "verify": "", "ask": "", "correct": ""}
# How the ledger names a score: accuracy of predictions for y of y, __row (vectorised, 910235c97955)
_SCORE = re.compile(r"^(\w+ of predictions) for .*\(\w+, ([0-9a-f]{8})[0-9a-f]*\)$", re.DOTALL)


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question that was answered. `share` is what it took of its set's budget."""

    number: int
    row: Row
    set: str
    question: dict[str, Any]
    grid: Grid | None
    result: Result
    charges: tuple[Charge, ...]
    share: float
    notes: tuple[str, ...]
    """What is said of blocks that a filter leaves empty, and of units of several rows."""

    @property
    def text(self) -> str:
        """The estimator, as people read it; a score in short."""
        return _SCORE.sub(r"\1 \2", str(self.question["estimator"].get("text", "")))

    @property
    def verb(self) -> str:
        """What was asked of it, with the threshold or the names of those that were compared."""
        verb, names = str(self.question["verb"]), self.question["estimator"].get("names", ())
        if verb == "gate" and not names and "threshold" in self.question:
            return f"gate {self.question['claim']} {number(self.question['threshold'], 6)}:"
        if verb == "compare" or (verb == "gate" and names):
            return f"{verb} {' against '.join(names)}:"
        if verb in ("best", "scores"):
            return f"{verb} of {self.question['candidates']:,}:"
        return _VERBS.get(verb, verb)

    @property
    def where(self) -> str | None:
        """The filter."""
        kept = self.question["estimator"].get("where")
        return None if kept is None else str(kept)

    @property
    def answer(self) -> Answer | None:
        """The value that was given, if one was."""
        return cast("Answer | None", self._step("answer"))

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that was given, if one was."""
        return cast("Verdict | None", self._step("verdict"))

    @property
    def told(self) -> Told | None:
        """What was told over single rows, if it was."""
        return cast("Told | None", self._step("told"))

    def _step(self, kind: str) -> Any:
        return next((each for each in self.result.steps if each.kind == kind), None)

    @property
    def word(self) -> str | None:
        """The word of the verdict."""
        said = self.verdict or self.told
        return None if said is None else said.verdict

    @property
    def value_text(self) -> str:
        """The value to a tenth of its grid's step: what lies beyond is not the answer's."""
        assert self.answer is not None
        value = self.answer.value
        if self.grid is None or self.grid.size < 2 or not math.isfinite(value):
            return number(value)
        index = max(1, int(self.grid.ceiling(value)))
        step = float(self.grid.point(index) - self.grid.point(index - 1))
        decimals = math.ceil(-math.log10(step)) + 1
        size = math.floor(math.log10(abs(value))) + 1 if value else 1
        return number(value, min(15, max(3, size + decimals)))

    @property
    def bar_text(self) -> str:
        """The error bar as an interval, rounded outwards; empty where none is certified."""
        assert self.answer is not None
        low, high = self.answer.low, self.answer.high
        if low is None and high is None:
            return ""
        width = None if low is None or high is None else high - low
        return f"[{outwards(low, width, up=False)}, {outwards(high, width, up=True)}]"

    @property
    def said(self) -> str:
        """Value and bar."""
        return f"{self.value_text} {self.bar_text}".strip()


@dataclass(frozen=True)
class LostReservation:
    """A reservation without a record: charged in full, its answer never seen."""

    row: Row
    set: str
    place: float  # on the axis of question numbers


@dataclass
class LooksUsed:
    """Looks of one part, and how many of them said No; lost ones at their worst."""

    looks: int = 0
    noes: int = 0


@dataclass
class Spending:
    """One set's budget over its questions: (question number, share spent), rising."""

    points: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 0.0)])
    uses: dict[str, LooksUsed] = field(default_factory=dict)
    charged: Fraction = Fraction(0)


@dataclass(frozen=True)
class Story:
    """Everything that the page shows."""

    spec: HoldoutSpec
    status: Status
    head: Receipt
    first: Row
    last: Row
    asked: tuple[AnsweredQuestion, ...]
    lost: tuple[LostReservation, ...]
    spending: dict[str, Spending]


def read_story(holdout: str, rows: Sequence[Row]) -> Story:
    """Follow the rows; a broken chain, or a plan that no longer proves itself, is refused."""
    head = verify_chain(holdout, rows)
    spec = HoldoutSpec.from_dict(holdout, rows[0].body)
    state = HoldoutState(spec.sets)
    plans = {each.name: each.plan for each in spec.sets}
    spending = {name: Spending() for name in plans}
    asked: list[AnsweredQuestion] = []
    lost: list[LostReservation] = []
    settled = {n for row in rows if row.kind == "recorded" for n in row.body.get("reserves", ())}

    def status() -> Status:
        return status_of(spec, Path(), state, head)

    def spend(name: str, charges: Sequence[Charge], place: float) -> float:
        """Add charges to a set's curve; what other questions hold at the moment is not in it."""
        curve, plan = spending[name], plans[name]
        for charge in charges:
            use = curve.uses.setdefault(charge.part, LooksUsed())
            use.looks += charge.looks
            use.noes += charge.noes
            curve.charged += charge.price
        share = float(curve.charged / plan.limit)
        taken = share - curve.points[-1][1]
        curve.points.append((place, share))
        return max(0.0, taken)

    for row in rows:
        state.read([row])
        if row.kind == "recorded":
            name, question, place = row.body["set"], row.body["question"], len(asked) + 1
            charges = tuple(Charge.from_dict(each) for each in row.body.get("charges", ()))
            grid = None if question.get("grid") is None else Grid.from_json(question["grid"])
            receipt = str(Receipt(spec.identity, row.number, row.digest))
            result = answer_in(spec, row, receipt, cached=False)
            share = spend(name, charges, float(place))
            unit = spec.manifest.unit_column if question["verb"] == "mean" else None
            said = (empty_note(spec, row), None if unit is None else unit_words(unit))
            notes = tuple(filter(None, said))
            asked.append(
                AnsweredQuestion(place, row, name, question, grid, result, charges, share, notes)
            )
        elif row.kind == "reserved" and row.number not in settled:
            charge = row.body.get("charge")
            lost.append(LostReservation(row, row.body["set"], len(asked) + 0.5))
            held = () if charge is None else (Charge.from_dict(charge),)
            spend(lost[-1].set, held, lost[-1].place)
    told = tuple(asked), tuple(lost), spending
    return Story(spec, status(), head, rows[0], rows[-1], *told)


# A plan in plain words: what can be asked, how often, and what is then true.


class Planned(NamedTuple):
    """One thing that can be asked: its name, how it is limited, what is promised of it."""

    name: str
    limits: str
    promise: str


def planned(block_set: BlockSet) -> list[Planned]:
    """What a set's plan is for, part by part."""
    return [Planned(part.name, *part.words()) for part in block_set.plan.parts]


def paying(plan: SetPlan, currency: str) -> str:
    """What limits the questions of a plan."""
    return f"{plan.paying(currency)} Kept with confidence {percent(float(plan.confidence))}."


# The unit-level privacy that a budget implies: what is spent of it, and all of it.
#
# Only sets that answer by looks have any (docs/explanation/theory/unit-privacy.md). Sets are
# disjoint, so each has a figure of its own: a unit is in one of them.


@dataclass(frozen=True)
class SetPrivacy:
    """One set's figures; None where exact answers leave no privacy, or nothing was said yet."""

    name: str
    exact: bool
    said: bool
    spent: UnitPrivacy | None
    whole: UnitPrivacy | None


def delta_for(units: int) -> float:
    """The δ of the figures: the largest power of ten that is at most a tenth of 1/units.

    >>> delta_for(336_776), delta_for(1)
    (1e-07, 0.1)
    """
    return float(f"1e-{math.ceil(math.log10(units)) + 1}")


def set_privacy(story: Story) -> list[SetPrivacy]:
    """The figures of every set."""
    delta = delta_for(story.spec.manifest.units)
    return [_figures(story.spending[each.name], each, delta) for each in story.spec.sets]


def _figures(spending: Spending, block_set: BlockSet, delta: float) -> SetPrivacy:
    said, joint = len(spending.points) > 1, block_set.plan
    if not joint.by_looks:
        return SetPrivacy(block_set.name, True, said, None, None)
    joint = cast(JointPlan, joint)

    def spent(order: float) -> float:
        told = []
        for part, use in spending.uses.items():
            yeses = use.looks - use.noes
            no, yes = joint.part(part).divergences(joint, order, use.noes, yeses)
            told.append(use.noes * no + yeses * yes)
        return math.fsum(told)

    def whole(order: float) -> float:
        allowances = [each for part in joint.parts for each in _allowances(joint, part, order)]
        return largest_total(allowances, joint.budget)

    figures = unit_privacy(spent, delta) if said else None
    return SetPrivacy(block_set.name, False, said, figures, unit_privacy(whole, delta))


def _allowances(plan: JointPlan, part: LookPart, order: float) -> list[Allowance]:
    """How often each verdict of a part can be drawn, at its price in the plan's own currency."""
    most = part.most_refusals
    prices = part.prices(plan.order)
    if most is None:
        _, told = part.divergences(plan, order, 0, part.looks)
        return [Allowance(part.looks, prices.worst, told)]
    no, yes = part.divergences(plan, order, most, part.looks - most)
    return [Allowance(most, prices.no, no), Allowance(part.looks, prices.yes, yes)]


def odds(epsilon: float) -> str:
    """What a figure allows, in words."""
    if epsilon > 12:
        return "odds about one unit could change beyond any practical limit"
    return f"odds about one unit change by a factor of at most {number(math.exp(epsilon), 2)}"


# Sentences whose words depend on what happened.


def verdict_line(story: Story) -> str:
    """What was answered, what that is worth, and what is left."""
    status, lines = story.status, [line for each in story.status.sets if (line := _left(each))]
    if any(each.told is not None for each in status.sets):
        left = "Any number of questions can be asked: bars widen with what is told."
    elif not lines:
        left = "The budget is used up: nothing more can be asked."
    elif len(status.sets) == 1:
        left = f"{percent(1 - status.sets[0].used)} of the budget is left, for {lines[0]}."
    else:
        left = f"What is left is enough for {listed(lines)}."
    answered, sure = count(status.answers, "question"), percent(status.confidence)
    if not status.certified:
        return f"{answered} answered with seeded coins: nothing on this page is certified."
    if not status.answers:
        return f"Nothing was asked yet. {left}"
    held = "; all answers hold at once" if status.answers > 1 else ""
    return f"{answered} answered{held} with confidence {sure}. {left}"


def _left(each: SetStatus) -> str:
    """What the rest of a set's budget buys: so many of one kind, or so many of another."""
    kinds = [
        f"{part.questions_left:,} by {part.name}" for part in each.parts if part.questions_left
    ]
    if kinds:
        return "up to " + listed(kinds, "or").replace(" by ", " more questions by ", 1)
    return listed([part.still_possible for part in each.parts if part.still_possible] or [""], "or")


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def assumed(questions: Sequence[AnsweredQuestion]) -> dict[str, list[int]]:
    """Assumptions that some answers name, and the numbers of those answers."""
    found: dict[str, list[int]] = {}
    for asked in questions:
        said = asked.verdict or asked.answer
        for text in [] if said is None else said.promise.split("; assuming that ")[1:]:
            found.setdefault(text, []).append(asked.number)
    return found


def declared(spec: HoldoutSpec, column: str) -> str:
    """What was declared of a column."""
    pair, texts = spec.ranges.get(column), spec.categories.get(column)
    if pair is not None:
        return f"({number(pair[0], 6)} to {number(pair[1], 6)})"
    if spec.labels is not None and spec.values.get(column) is spec.labels:
        return f"(labels {listed_labels(spec.labels, 10)})"
    return "" if texts is None else f"({', '.join(texts)})"


def details(asked: AnsweredQuestion) -> list[str]:
    """The guess, the range, the grid, the reading, and what became of empty blocks, in words."""
    question = asked.question
    lines = [] if asked.told else [f"by {question['part']}"]
    guess, tolerance, gate = (question.get(name) for name in ("guess", "tolerance", "threshold"))
    if guess is not None:
        claim = "equals" if gate is not None else question.get("claim", "equals")
        words = "guess" if claim == "equals" else f"guess: {claim}"
        within = f" ± {number(tolerance)}" if tolerance and gate is None else ""
        lines.append(f"{words} {number(guess, 6)}{within}")
    if gate is not None and tolerance:
        lines.append(f"tolerance {number(tolerance)}")
    if question.get("margin") is not None:
        lines.append(f"margin {number(question['margin'])}")
    if question.get("precise"):
        lines.append("precise")
    if "range" in question:
        low, high = (number(end, 6) for end in question["range"])
        lines.append(f"cut to [{low}, {high}]")
    if asked.grid is not None:
        lines.append(typeset(asked.grid.describe()))
    reading = reading_words(question["estimator"].get("reading"))
    if reading is not None:
        lines.append(f"score of {reading}")
    return [*lines, *(asked.notes if asked.answer or asked.verdict else ())]
