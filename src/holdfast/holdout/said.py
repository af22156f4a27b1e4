"""What an answer may say: everything in it that follows from its question and the charter.

Only the draw itself cannot be computed again: which point of the grid, refused or not, and how much
of a budget that others share was left. All the rest can, and is compared, field by field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from holdfast.engines.sql.estimator import sql_term
from holdfast.errors import InvalidInput
from holdfast.grids import Grid
from holdfast.holdout.books import read_tally
from holdfast.holdout.charter import Charter
from holdfast.holdout.estimators import is_within
from holdfast.holdout.notes import notes, without_open_note
from holdfast.holdout.records import read_result
from holdfast.holdout.rules import Wrong
from holdfast.holdout.scores import is_score
from holdfast.holdout.sets import BlockSet
from holdfast.ledger.ledger import Row
from holdfast.planning.exact import ExactCorrections, ExactEstimates, ExactVerdicts, ExactWeights
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts.base import Part
from holdfast.planning.parts.direct import DirectPart
from holdfast.planning.parts.searches import SearchPart
from holdfast.planning.parts.verdicts import VerdictPart
from holdfast.planning.parts.weights import WeightsPart
from holdfast.planning.rounds import RoundsPlan
from holdfast.planning.shapes import shape_from_dict
from holdfast.planning.splits import SplitPlan
from holdfast.protocols import promises
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.asking import BAR_MAX
from holdfast.protocols.correct import Corrected
from holdfast.protocols.mean import checked_bounds, direct_bar, median_bar, range_grid
from holdfast.protocols.readings import READINGS
from holdfast.protocols.source import UNIT, Bounds

__all__ = ["check_said"]

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
            promise = promises.verdict_promise(*said, claim, *tails, self.units)
        else:
            promise = promises.near_promise(*said, tolerance, *tails, self.units)
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
            promise = promises.with_failures(promise, self._failures)
        promise += notes(self.question, self.set.plan, self.charter.manifest.schema, **told)
        said = without_open_note(result.promise)
        if said != promise and not said.startswith(promise + _ASSUMING):
            raise self.wrong("promise", result.promise)

    @property
    def _failures(self) -> str:
        return promises.failure_words(self.question["verb"], self.question["estimator"])

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
        return fields, promises.search_promise(*tails, self.units, cell, has_bar=has_bar)

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
        promise = promises.middle_promise(*tails, self.units, value, has_bar=has_bar)
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
        return fields, promises.search_promise(*said, has_bar=False)

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
        return fields, promises.mean_promise(
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
        return fields, promises.interval_promise(part.tail_low, self.units, *ends)


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
    said = promises.direct_promise(bounds, cut=cut, exact=part.exact, failures=failures)
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
