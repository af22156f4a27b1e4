"""Check: everything that a holdout says of itself, computed again from what is on disk.

chain      every row follows the one before; nothing was changed, cut out or added
receipt    the ledger continues the history of the last receipt seen, and of one that you give
plan       every plan proves its promise again: coins, prices, failure classes, shares of β
prices     every reservation and every charge is what its question costs under the plan
budget     all charges together fit the budget, in the order in which they were made
answers    every answer was paid for before it was drawn, says what its question and the plan let it
           say, and no question has two of them; what weights learnt follows from what they had
           learnt before; a submission names its answer
data       the sealed files are those that were written
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.engines.source import open_store
from holdfast.engines.sql.estimator import sql_term
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.grids import Grid
from holdfast.holdout.books import Books, read_tally, written_tally
from holdfast.holdout.estimators import is_within
from holdfast.holdout.leaderboard import is_score, submission_fits
from holdfast.holdout.prices import (
    charged_parts,
    final_charge,
    final_tally,
    tally_fits,
    worst_charge,
    worst_tally,
)
from holdfast.holdout.questions import notes, without_open_note
from holdfast.holdout.records import read_result
from holdfast.holdout.spec import BlockSet, Charter
from holdfast.holdout.submissions import check_ids
from holdfast.holdout.universe import read_indices
from holdfast.ledger.ledger import Ledger, Receipt, Row, canonical, check_against
from holdfast.ledger.opening import has_ledger, open_ledger
from holdfast.ledger.witness import Witness
from holdfast.mechanisms.hypothesis import Hypothesis
from holdfast.planning.exact import ExactCorrections, ExactEstimates, ExactVerdicts, ExactWeights
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts import DirectPart, Part, SearchPart, VerdictPart, WeightsPart
from holdfast.planning.rounds import RoundsPlan
from holdfast.planning.shapes import shape_from_dict
from holdfast.planning.splits import SplitPlan
from holdfast.protocols import answers
from holdfast.protocols.answers import READINGS, Answer, Verdict, confidence_text
from holdfast.protocols.base import BAR_MAX
from holdfast.protocols.budget import Charge
from holdfast.protocols.guesses import Corrected
from holdfast.protocols.means import checked_bounds, direct_bar, median_bar, range_grid
from holdfast.protocols.source import UNIT, Bounds
from holdfast.store.user_state import first_seen, state_folder
from holdfast.theory.transcripts import learning_rate

__all__ = [
    "Checked",
    "Finding",
    "Wrong",
    "check_holdout",
    "check_key",
    "check_learnt",
    "check_recorded",
    "check_reserved",
    "check_said",
]


# Rules: what a row of the ledger may say, given its question, its plan and the rows before it.
#
# Whoever can write to the ledger can chain rows of their own. They still have to be rows that a
# holdout could have written: each question at its price, each refund earned by its answer.


WrittenAnswer = Mapping[str, Any]


class Wrong(Exception):
    """Something does not add up; the message says what."""


def check_key(row: Row) -> None:
    """A question in SQL has the key that its words have; that of a callable nobody can compute."""
    question = row.body["question"]
    about = question["estimator"]
    if about["engine"] != "sql":
        if about["engine"] != "local":
            raise Wrong(f"row {row.number} asks an engine that there is not: {about['engine']!r}")
        return
    words = {name: about[name] for name in ("engine", "text", "where") if name in about}
    identity = f"sql mean {words}" if question["verb"] == "mean" else f"sql {words}"
    text = canonical({**question, "estimator": identity})
    if words != about or row.question != hashlib.sha256(text.encode()).hexdigest():
        raise Wrong(f"row {row.number} has the key of another question")


def check_reserved(block_set: BlockSet, row: Row, books: Books) -> None:
    """A reservation is the worst case of its question, and fits what is left."""
    plan, question = block_set.plan, row.body["question"]
    if question["part"] not in block_set.protocols:
        raise Wrong(f"row {row.number} asks a part that its set does not have")
    if isinstance(plan, JointPlan):
        held = Charge.from_dict(row.body["charge"])
        if held.part not in charged_parts(plan, question):
            raise Wrong(f"row {row.number} charges another part than its question asks")
        if held != worst_charge(plan, question, held.part):
            raise Wrong(f"row {row.number} reserves another price than its question has")
    else:
        before = books.tally(block_set.name)
        # Compared as text: there is one way to write a count, and none below 0.
        if row.body["tally"] != written_tally(worst_tally(plan, before, question)):
            raise Wrong(f"row {row.number} reserves another tally than its question has")
        if not tally_fits(plan, before, question):
            raise Wrong(f"row {row.number} asks more than the plan has left")


def check_recorded(
    block_set: BlockSet,
    row: Row,
    reserved: Mapping[int, Row],
    before: Mapping[int, dict[str, int] | None],
) -> None:
    """An answer settles its own reservations, at what it says that it cost.

    `reserved` are the open reservations by number, `before` the tally before each of them.
    """
    plan, question, answer = block_set.plan, row.body["question"], row.body["answer"]
    numbers = row.body["reserves"]
    paid = [reserved.get(number) for number in numbers]
    if not paid or None in paid or len(set(numbers)) != len(numbers):
        raise Wrong(f"the answer in row {row.number} was not paid for, or twice")
    if any(each is None or each.body["question"] != question for each in paid):
        raise Wrong(f"row {row.number} is paid for by another question's reservation")
    if answer is not None:
        read_result(answer, "", cached=False)  # says what is wrong with it
    if isinstance(plan, JointPlan):
        held = [Charge.from_dict(each.body["charge"]) for each in paid if each is not None]
        _charges(plan, row, held)
    else:
        (number,) = numbers
        mine = [n for n, each in reserved.items() if each.body["set"] == block_set.name]
        if number != max(mine):
            raise Wrong(f"row {row.number} goes back behind a later question")
        final = final_tally(plan, before[number], question, row.body)
        if row.body["tally"] != written_tally(final):
            raise Wrong(f"row {row.number} leaves a tally that its answer does not leave")
        if isinstance(plan, ExactWeights) and final["refused"] > plan.updates:
            raise Wrong(f"row {row.number} was refused more often than can be")


def check_learnt(
    block_set: BlockSet, row: Row, hypotheses: dict[tuple[str, str], Hypothesis]
) -> None:
    """Each refused guess was the median of what weights had learnt before, and so is the answer.

    `hypotheses` are those of the rows before, by set and part; the row's lesson is added. A median
    is the same on every machine. A rate may differ in its last digits, and the recorded one counts.
    """
    plan, question, learnt = block_set.plan, row.body["question"], row.body["learnt"]
    if isinstance(plan, ExactWeights):
        universe, mass = plan.universe, plan.mass
    else:
        part = plan.part(question["part"]) if isinstance(plan, JointPlan) else None
        if not isinstance(part, WeightsPart) or not isinstance(plan, JointPlan):
            raise Wrong(f"row {row.number} teaches a part that learns nothing")
        universe, mass = part.universe, part.mass(plan.blocks)
    place = (block_set.name, question["part"])
    hypothesis = hypotheses.setdefault(place, Hypothesis(universe))
    grid = Grid.from_json(question["grid"])
    if learnt["size"] != grid.size:
        raise Wrong(f"row {row.number} was taught on another grid than its question's")
    histogram = hypothesis.histogram(read_indices(learnt["indices"], universe), grid.size)
    for guess, side, rate in learnt["steps"]:
        median = histogram.median()
        held = median.at_most if side == "at most" else median.at_least
        due = learning_rate(mass, held)
        if guess != median.guess or not math.isclose(rate, due, rel_tol=1e-9):
            raise Wrong(f"row {row.number} was refused a guess that weights did not make")
        histogram.shrink(guess, side, rate)
    answer = row.body["answer"]
    if answer is not None and answer["value"] != grid.point(histogram.median().guess):
        raise Wrong(f"row {row.number} answers what weights did not guess")


def _charges(plan: JointPlan, row: Row, held: list[Charge]) -> None:
    question, answer = row.body["question"], row.body["answer"]
    wanted = charged_parts(plan, question)
    parts = [each.part for each in held]
    several = isinstance(plan.part(question["part"]), WeightsPart)
    if answer is None:  # exhausted at the second of two steps: the first is given back
        wanted = wanted[:1]
    if parts != wanted and not (several and set(parts) == set(wanted)):
        raise Wrong(f"row {row.number} is not charged to the parts that answer it")
    if several:
        _weighed(plan, row, held)
        return
    for worst, data in zip(held, row.body["charges"], strict=True):
        charge = Charge.from_dict(data)
        if charge != _due(plan, worst, charge, answer):
            raise Wrong(f"row {row.number} charges another price than its answer has")
        step = _step(plan, worst, answer)
        if step is not None and step["price"] != float(charge.price):
            raise Wrong(f"row {row.number} shows another price than it charges")


def _weighed(plan: JointPlan, row: Row, held: list[Charge]) -> None:
    """Weights pay for every guess: for each that taught them something, and for the last."""
    steps = row.body["learnt"]["steps"] if "learnt" in row.body else ()
    # The second side is looked at only if the first says Yes.
    noes = [(1 if side == "at most" else 2, 1) for _, side, _ in steps]
    due = [
        final_charge(plan, worst, *drawn)
        for worst, drawn in zip(held, [*noes, (2, 0)], strict=True)
    ]
    if [Charge.from_dict(data) for data in row.body["charges"]] != due:
        raise Wrong(f"row {row.number} charges another price than its guesses have")
    if row.body["answer"]["price"] != sum(float(charge.price) for charge in due):
        raise Wrong(f"row {row.number} shows another price than it charges")


def _due(plan: JointPlan, worst: Charge, charge: Charge, answer: WrittenAnswer | None) -> Charge:
    """What the answer says that this reservation came to."""
    part, step = plan.part(worst.part), _step(plan, worst, answer)
    if step is None:  # nothing was drawn for it, and it may be given back
        return Charge(worst.part, worst.price * 0, 0)
    if not isinstance(part, VerdictPart):
        return worst
    if step["refused"] is False:
        return final_charge(plan, worst, worst.looks, 0)
    looks = min(max(charge.looks, 1), worst.looks)
    return final_charge(plan, worst, looks, 1)


def _step(plan: JointPlan, worst: Charge, answer: WrittenAnswer | None) -> WrittenAnswer | None:
    """What was said for this reservation; None if nothing was."""
    if answer is None or answer["type"] != "corrected":
        return answer
    found = "verdict" if isinstance(plan.part(worst.part), VerdictPart) else "correction"
    step: WrittenAnswer | None = answer[found]
    return step


# What an answer may say: everything in it that follows from its question and the charter.
#
# Only the draw itself cannot be computed again: which point of the grid, refused or not, and how
# much
# of a budget that others share was left. All the rest can, and is compared, field by field.


Fields = dict[str, Any]
Question = Mapping[str, Any]
_ASSUMING = "; assuming that "
_SEARCHES = {
    "ask": ("estimate", "simple", "amplified"),
    "correct": ("estimate",),
    "interval": ("interval",),
    "mean": ("mean", "estimate", "simple"),
    "verify": ("estimate", "simple"),
}


def check_said(charter: Charter, block_set: BlockSet, row: Row) -> None:
    """Compare a recorded answer with what its question and the charter let it say."""
    result = read_result(row.body["answer"], "", cached=False)
    saying = _Saying(charter, block_set, row)
    wanted = {"verify": Verdict, "correct": Corrected}.get(saying.question["verb"], Answer)
    if type(result) is not wanted:
        raise saying.wrong("type", type(result).__name__)
    if isinstance(result, Corrected):
        saying.verdict(result.verdict)
        if (result.correction is None) != (result.verdict.refused is False):
            raise saying.wrong("correction", result.correction)
        if result.correction is not None:
            saying.answer(result.correction, correction=True)
    elif isinstance(result, Verdict):
        saying.verdict(result)
    else:
        saying.answer(result)


@dataclass(frozen=True)
class _Saying:
    """One recorded answer, and all that decides what it may say."""

    charter: Charter
    set: BlockSet
    row: Row

    @property
    def question(self) -> Question:
        question: Question = self.row.body["question"]
        return question

    @property
    def units(self) -> int:
        return self.charter.manifest.block_units

    def wrong(self, field: str, found: object) -> Wrong:
        return Wrong(f"row {self.row.number} says what its question cannot: {field} {found!r}")

    def verdict(self, verdict: Verdict) -> None:
        """Compare a verdict."""
        if not isinstance(verdict.refused, bool):
            raise self.wrong("refused", verdict.refused)
        plan, question = self.set.plan, self.question
        tolerance = None
        if isinstance(plan, JointPlan):
            source: Any = plan.part(question["part"])
            if not isinstance(source, VerdictPart) and not _serves(source, "verify"):
                raise self.wrong("protocol", verdict.protocol)
            fields = self._shared(verdict)
            if isinstance(source, VerdictPart):
                fields["refusals_left"] = _within(verdict.refusals_left, source.refusals)
            else:
                tolerance = float(question.get("tolerance", 0.0))
                fields["refusals_left"] = None
        else:
            if not isinstance(plan, ExactVerdicts | ExactCorrections):
                raise self.wrong("protocol", verdict.protocol)
            left = _tally_left(plan, read_tally(self.row.body["tally"]))
            source, price = plan, float(verdict.refused)
            fields = {"price": price, "budget_left": left, "refusals_left": int(left)}
        guess, claim = float(question["guess"]), question.get("claim", "equals")
        tails = source.tail_low, source.tail_high
        fields |= {"protocol": "verify", "guess": guess, "claim": claim, "tolerance": tolerance}
        fields |= {"tail_low": tails[0], "tail_high": tails[1]}
        said = (verdict.refused, guess)
        if tolerance is None:
            promise = answers.verdict_promise(*said, claim, *tails, self.units)
        else:
            promise = answers.near_promise(*said, tolerance, *tails, self.units)
        self._compare(verdict, fields, promise)

    def answer(self, answer: Answer, *, correction: bool = False) -> None:
        """Compare an answer, which may be the one that took the place of a refused guess."""
        plan, question = self.set.plan, self.question
        if not isinstance(plan, JointPlan):
            fields, promise = self._tallied(answer, correction)
            fields["budget_left"] = _tally_left(plan, read_tally(self.row.body["tally"]))
        else:
            part = plan.part(question["part"])
            if correction:
                part = next(each for each in plan.parts if each.protocol == "estimate")
            fields, promise = self._by_looks(plan, part, answer)
            fields |= self._shared(answer)
        self._compare(answer, fields, promise)

    def _compare(self, result: Answer | Verdict, fields: Fields, promise: str) -> None:
        fields["confidence"] = self.charter.confidence
        fields["certified"] = self.charter.seed is None
        fields["block_units"] = self.units
        fields["reading"] = self._reading
        for name, wanted in fields.items():
            found = getattr(result, name)
            if isinstance(found, bool) != isinstance(wanted, bool) or found != wanted:
                raise self.wrong(name, found)
        told = {"value": isinstance(result, Answer)}
        if self._failures and self.question["verb"] != "mean":
            promise = answers.with_failures(promise, self._failures)
        promise += notes(self.question, self.set.plan, self.charter.manifest.schema, **told)
        said = without_open_note(result.promise)
        if said != promise and not said.startswith(promise + _ASSUMING):
            raise self.wrong("promise", result.promise)

    @property
    def _failures(self) -> str:
        return answers.failure_words(self.question["verb"], self.question["estimator"])

    @property
    def _reading(self) -> str | None:
        """The code of the question; a score of predictions cannot be without one."""
        estimator = self.question["estimator"]
        reading: str | None = estimator.get("reading")
        if reading not in READINGS and (reading is not None or is_score(estimator["text"])):
            raise self.wrong("reading", reading)
        return reading

    def _shared(self, result: Answer | Verdict) -> Fields:
        """What was left for all: between nothing and the whole budget, whoever asked meanwhile."""
        assert isinstance(self.set.plan, JointPlan)
        return {"budget_left": _within(result.budget_left, self.set.plan.budget)}

    def _by_looks(self, plan: JointPlan, part: Part, answer: Answer) -> tuple[Fields, str]:
        verb = self.question["verb"]
        if verb == "mean" and isinstance(part, DirectPart):
            return _direct(plan, part, answer, *self._range(), self._failures)
        if verb == "ask" and isinstance(part, WeightsPart):
            return self._weights("weights", part.tail, answer)
        if not isinstance(part, SearchPart) or not _serves(part, verb):
            raise self.wrong("protocol", answer.protocol)
        if verb == "mean":
            return self._median(part, answer)
        if verb == "interval":
            return self._interval(part, answer)
        tails = part.tail_low, part.tail_high
        if part.protocol == "amplified":
            tails = part.subblock_tail, part.subblock_tail
        fields, promise = self._on_grid(answer, tails)
        return {**fields, "protocol": part.protocol, "method": "search"}, promise

    def _tallied(self, answer: Answer, correction: bool) -> tuple[Fields, str]:
        plan = self.set.plan
        if isinstance(plan, ExactCorrections) and correction:
            fields, promise = self._on_grid(answer, (plan.tail_low, plan.tail_low))
            return {**fields, "protocol": "estimate", "method": "exact", "price": 0.0}, promise
        if self.question["verb"] == "ask":
            if isinstance(plan, ExactEstimates):
                fields, promise = self._on_grid(answer, (plan.tail_low, plan.tail_high))
                price = math.log(self._grid().size) / math.log(plan.grid)
                fields |= {"protocol": "estimate", "method": "exact", "price": price}
                return fields, promise
            if isinstance(plan, ExactWeights):
                fields, promise = self._weights("exact", plan.tail, answer)
                return {**fields, "price": 1.0}, promise
            if isinstance(plan, RoundsPlan):
                tail, price = plan.guesses.tail_low, float(answer.price > 0)
                return self._off_grid(answer, "rounds", (tail, tail), price)
            if isinstance(plan, SplitPlan):
                tails, price = (plan.tail_low, plan.tail_high), float(plan.blocks_per_question)
                return self._off_grid(answer, "split", tails, price)
        raise self.wrong("protocol", answer.protocol)

    def _grid(self) -> Grid:
        return Grid.from_json(self.question["grid"])

    def _on_grid(self, answer: Answer, tails: tuple[float, float]) -> tuple[Fields, str]:
        """A point of the grid, and the bar that it has under the question's shape."""
        grid = self._grid()
        index, fields = _point(grid, answer)
        low, high = self._bar(grid.cell(index), tails)
        fields |= {"low": low, "high": high, "tail_low": tails[0], "tail_high": tails[1]}
        has_bar = low is not None or high is not None
        cell = grid.cell(index)
        return fields, answers.search_promise(*tails, self.units, cell, has_bar=has_bar)

    def _off_grid(
        self, answer: Answer, protocol: str, tails: tuple[float, float], price: float
    ) -> tuple[Fields, str]:
        """Any value: it is one of a block's, as it came."""
        low, high, value = None, None, float(answer.value)
        if abs(value) < BAR_MAX:
            low, high = self._bar((value, value), tails)
        fields: Fields = {"low": low, "high": high, "at_grid_end": False, "price": price}
        fields |= {"value": value, "tail_low": tails[0], "tail_high": tails[1]}
        has_bar = low is not None or high is not None
        promise = answers.middle_promise(*tails, self.units, value, has_bar=has_bar)
        return {**fields, "protocol": protocol, "method": protocol}, promise

    def _bar(self, cell: Any, tails: tuple[float, float]) -> tuple[float | None, float | None]:
        shape = self.question.get("shape")
        return (
            (None, None) if shape is None else shape_from_dict(shape).bar(cell, self.units, *tails)
        )

    def _weights(self, method: str, tail: float, answer: Answer) -> tuple[Fields, str]:
        grid = self._grid()
        index, fields = _point(grid, answer)
        fields |= {"low": None, "high": None, "tail_low": tail, "tail_high": tail}
        fields |= {"protocol": "weights", "method": method}
        said = (tail, tail, self.units, grid.cell(index))
        return fields, answers.search_promise(*said, has_bar=False)

    def _range(self) -> tuple[Bounds, bool]:
        """The range of a term, and whether it could leave it: see `holdout.estimators`."""
        told, about = self.question.get("range"), self.question["estimator"]
        if told is not None:
            return checked_bounds(told), True
        if about["engine"] == "sql":
            with suppress(InvalidInput):  # with all its brackets it may be too long to be read
                term = sql_term(about["text"], self.charter.manifest.schema)
                if not is_within(term.range({}), UNIT):
                    raise self.wrong("range", None)
        return UNIT, False

    def _median(self, part: SearchPart, answer: Answer) -> tuple[Fields, str]:
        bounds, cut = self._range()
        grid = self._grid() if "grid" in self.question else range_grid(part, bounds)
        filtered = "where" in self.question["estimator"]
        index, fields = _point(grid, answer)
        bar = (None, None) if filtered else median_bar(part, grid, index, self.units, bounds)
        fields |= {"low": bar[0], "high": bar[1]}
        fields |= {"tail_low": part.tail_low, "tail_high": part.tail_high}
        fields |= {"protocol": "mean", "method": "median of block means"}
        said = (part.tail_low, part.tail_high, self.units, grid.cell(index))
        return fields, answers.mean_promise(
            *said, bounds, cut=cut, filtered=filtered, failures=self._failures
        )

    def _interval(self, part: SearchPart, answer: Answer) -> tuple[Fields, str]:
        """Two cells, in order; their edges say which."""
        grid, last = self._grid(), self._grid().size - 1
        first = 0 if answer.low is None else min(int(grid.ceiling(answer.low)) + 1, last)
        end = last if answer.high is None else int(grid.ceiling(answer.high))
        first, end = min(first, end), max(first, end)
        fields: Fields = {"value": (grid.point(first) + grid.point(end)) / 2}
        fields |= {"low": grid.cell(first)[0], "high": grid.cell(end)[1]}
        fields |= {"at_grid_end": first == 0 or end == last}
        fields |= {"tail_low": part.tail_low, "tail_high": part.tail_low}
        fields |= {"protocol": "interval", "method": "search"}
        ends = fields["low"], fields["high"]
        return fields, answers.interval_promise(part.tail_low, self.units, *ends)


def _serves(part: Part, verb: str) -> bool:
    """Whether the part's searches answer such questions."""
    return isinstance(part, SearchPart) and part.protocol in _SEARCHES[verb]


def _point(grid: Grid, answer: Answer) -> tuple[int, Fields]:
    """The index of the point that the answer should be, and what that says."""
    index = int(grid.ceiling(answer.value))
    return index, {"value": grid.point(index), "at_grid_end": index in (0, grid.size - 1)}


def _direct(
    plan: JointPlan, part: DirectPart, answer: Answer, bounds: Bounds, cut: bool, failures: str
) -> tuple[Fields, str]:
    """One of the bars that the plan has proved."""
    bars = part.bars(plan.order, plan.budget, plan.blocks)
    cells = [direct_bar(*ends, bounds) for ends in zip(bars.low, bars.high, strict=True)]
    bar = answer.low, answer.high
    # If it is none of them, the first is not what was said, either.
    index = next((n for n, cell in enumerate(cells) if cell[1:] == bar), 0)
    value, low, high = cells[index]
    fields: Fields = {"value": value, "low": low, "high": high}
    fields |= {"at_grid_end": index in (0, len(cells) - 1), "tail_low": 0.0, "tail_high": 0.0}
    fields |= {"protocol": "mean", "method": "direct search"}
    said = answers.direct_promise(bounds, cut=cut, exact=part.exact, failures=failures)
    return fields, said


def _within(found: float | None, most: float) -> float | None:
    """What was found, if it is between 0 and so much; else something that it is not."""
    return found if found is not None and 0 <= found <= most else most + 1


def _tally_left(plan: Any, tally: Mapping[str, int]) -> float:
    """What a tally leaves, in the protocol's own measure."""
    if isinstance(plan, ExactEstimates):
        room = tally["room"]
        return round(1 + math.log(room) / math.log(plan.grid), 9) if room else 0.0
    if isinstance(plan, RoundsPlan):
        return float(plan.sets - tally["thrown"])
    if isinstance(plan, SplitPlan):
        return float((plan.queries - tally["asked"]) * plan.blocks_per_question)
    if isinstance(plan, ExactWeights):
        return float(plan.queries - tally["asked"])
    return float(plan.refusals - tally["refused"] if tally["asked"] < plan.queries else 0)


_SKEW = timedelta(minutes=1)  # by which the clocks of several servers may differ
# What reading a row raises that is well chained and says something else than a row should.
_MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class Finding:
    """One thing that was checked."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Checked:
    """All findings, and the receipt of the ledger that they are about."""

    findings: tuple[Finding, ...]
    receipt: str

    @property
    def passed(self) -> bool:
        """Whether everything is as it should be."""
        return all(finding.passed for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"passed": self.passed, **asdict(self)}

    def __str__(self) -> str:
        marks = {True: "ok", False: "FAILED"}
        lines = [f"{marks[f.passed]:<8}{f.name:<10}{f.detail}" for f in self.findings]
        return "\n".join([*lines, f"{'':8}{'receipt':<10}{self.receipt}"])


def check_holdout(
    path: Path, receipt: str | None = None, *, progress: Callable[[str], None] | None = None
) -> Checked:
    """Check the holdout in a folder; with `receipt`, against that one too."""
    given = None if receipt is None else Receipt.parse(receipt)
    if not has_ledger(path):
        raise InvalidInput("path", str(path), "the folder of a holdout")
    findings: list[Finding] = []

    def run(name: str, step: Callable[[], str]) -> bool:
        if progress is not None:
            progress(name)
        try:
            findings.append(Finding(name, True, step()))
        except (HoldfastError, Wrong) as wrong:
            findings.append(Finding(name, False, str(wrong)))
        except _MALFORMED as wrong:
            findings.append(Finding(name, False, f"a row is not as Holdfast writes it: {wrong!r}"))
        return findings[-1].passed

    rows: list[Row] = []
    with open_ledger(path) as ledger:
        if run("chain", lambda: _chain(ledger, rows)):
            run("receipt", lambda: _receipts(ledger, given))
            made: list[Charter] = []
            if run("plan", lambda: _plan(ledger, rows[0], made)):
                (charter,) = made
                run("prices", lambda: _prices(charter, rows))
                run("budget", lambda: _budget(charter, rows))
                run("answers", lambda: _answers(charter, rows))
                run("data", lambda: _data(path, charter))
        return Checked(tuple(findings), str(ledger.head()) if findings[0].passed else "none")


def _chain(ledger: Ledger, rows: list[Row]) -> str:
    """Verify the chain, and read its rows."""
    number = ledger.verify().number
    rows += ledger.rows()
    return f"{number:,} rows, each linked to the one before{_set_back(rows)}"


def _set_back(rows: list[Row]) -> str:
    """A note of rows that are dated before an earlier one: that alone is no damage."""
    latest, first = datetime.min.replace(tzinfo=UTC), None
    count = 0
    for row in rows:
        at = datetime.fromisoformat(row.at)
        if latest - at > _SKEW:
            first = first or (row, latest)
            count += 1
        latest = max(latest, at)
    if first is None:
        return ""
    row, before = first
    told = f"row {row.number:,}, of {row.at[:10]}, follows one of {before.date().isoformat()}"
    more = f", and {count - 1:,} more are dated back" if count > 1 else ""
    return f"; a clock was set back: {told}{more}"


def _receipts(ledger: Ledger, given: Receipt | None) -> str:
    seen = Witness(state_folder() / "receipts").last(ledger.holdout)
    for receipt in (seen, given):
        if receipt is not None:
            check_against(ledger, receipt)
    if seen is None and given is None:
        return "none was seen here before: an older copy would not be noticed"
    return "the ledger continues " + ("the receipt given" if given else "the last receipt seen")


def _plan(ledger: Ledger, first: Row, made: list[Charter]) -> str:
    charter = Charter.from_dict(ledger.holdout, first.body)
    made.append(charter)
    names = ", ".join(name for each in charter.sets for name in each.protocols)
    sure = confidence_text(charter.confidence)
    return f"{names}: proved again, for all at once with confidence {sure}"


def _prices(charter: Charter, rows: list[Row]) -> str:
    sets = {each.name: each for each in charter.sets}
    books = Books(charter.sets)
    reserved: dict[int, Row] = {}
    before: dict[int, dict[str, int] | None] = {}
    for row in rows:
        if row.kind not in ("reserved", "recorded"):
            continue
        block_set = sets.get(row.body["set"])
        if block_set is None:
            raise Wrong(f"row {row.number} is about a set that the plan does not have")
        if row.kind == "reserved":
            check_reserved(block_set, row, books)
            reserved[row.number] = row
            if not isinstance(block_set.plan, JointPlan):
                before[row.number] = books.tally(block_set.name)
        else:
            check_recorded(block_set, row, reserved, before)
        books.read([row])
    return f"{len(reserved):,} reservations and their charges recomputed from their questions"


def _budget(charter: Charter, rows: list[Row]) -> str:
    books = Books(charter.sets)
    books.read(rows)  # refuses the first row that does not fit
    spent = []
    for each in charter.sets:
        if isinstance(each.plan, JointPlan):
            account = books.account(each.name)
            spent.append(f"{each.name} {account.spent:.4g} of {each.plan.budget:.4g}")
    return "; ".join(spent) + (" spent" if spent else "every tally follows from the one before")


def _answers(charter: Charter, rows: list[Row]) -> str:
    sets = {each.name: each for each in charter.sets}
    open_rows: dict[int, Row] = {}
    known: set[str] = set()
    hypotheses: dict[tuple[str, str], Hypothesis] = {}
    count = 0
    answered: dict[int, Row] = {}
    for row in rows:
        if row.kind == "reserved":
            check_key(row)
            open_rows[row.number] = row
        elif row.kind == "noted":
            _submitted(row, answered)
        elif row.kind == "recorded":
            check_key(row)
            _paid(row, open_rows)
            if "learnt" in row.body:
                check_learnt(sets[row.body["set"]], row, hypotheses)
            if row.body["answer"] is None:  # exhausted: nothing was said
                continue
            count += 1
            _asked_once(row, known)
            check_said(charter, sets[row.body["set"]], row)
            answered[row.number] = row
    lost = f"; {len(open_rows):,} reservations without one, charged in full" if open_rows else ""
    return f"{count:,}, each paid for first{lost}"


def _paid(row: Row, open_rows: dict[int, Row]) -> None:
    """Close the reservations that the row settles."""
    numbers = row.body["reserves"]
    paid = [open_rows.pop(number, None) for number in numbers]
    if not paid or None in paid:
        raise Wrong(f"the answer in row {row.number} was not paid for, or twice")
    if any(each is not None and each.question != row.question for each in paid):
        raise Wrong(f"row {row.number} is paid for by the reservation of another key")


def _submitted(row: Row, answered: dict[int, Row]) -> None:
    """A submission is a name for an answer that was recorded before, by the metric that it says."""
    note = row.body.get("submission")
    if note is not None and not submission_fits(row, answered.get(note["recorded"])):
        raise Wrong(f"row {row.number} is a submission without its answer")


def _asked_once(row: Row, known: set[str]) -> None:
    """Refuse a second answer, by its key, and by its words where they are the whole question."""
    question = row.body["question"]
    names = set() if row.question is None else {row.question}
    if question["estimator"]["engine"] == "sql":  # two callables may be described alike
        names.add(canonical(question))
    if names & known:
        raise Wrong(f"the question of row {row.number} has two answers")
    known |= names


def _data(path: Path, charter: Charter) -> str:
    store = open_store(path, charter.manifest)
    seen = first_seen(charter.identity, store.manifest)
    store.check_files()
    if charter.ids is not None:
        check_ids(path, charter.ids)
    public = "" if charter.ids is None else "; the ids of rows likewise"
    if seen is None:
        how = "fit the list beside them; this account has not seen them before"
    elif seen.made_here:
        how = "are as this account made them"
    else:
        how = f"are as this account first saw them, on {seen.date[:10]}; it did not make them"
    return f"the sealed files {how}{public}"
