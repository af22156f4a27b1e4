"""The same search on a holdout: every answer is charged, drawn, recorded, and promised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import Grid, grid
from holdfast.holdout.holdout import Holdout
from holdfast_lab.attacks.targets import Answer, Plan, Verdict, plan
from holdfast_lab.demo.search import LATE, Finding, Hunt, cell_sql, cell_words, hunt, list_sql
from holdfast_lab.flights import Cell, Flights, Rows

# The promise, checked on fresh blocks: the population is known, so they can be drawn at will.
#
# An answer v about an estimator φ promises D[φ ≤ v] > tail and D[φ ≥ v] > tail, where D draws a
# fresh block of t flights. Both shares are counted on fresh blocks, the same for all answers and
# drawn after the last one. The values are computed here with NumPy, not by the engines that
# answered. A bar is compared with the population's own value, which is known exactly.


FRESH_BLOCKS = 2_000

Values = NDArray[np.float64]
Phi = Callable[[Rows], Values]
"""An estimator on blocks of row numbers, one block in a row; NaN where it fails."""


@dataclass(frozen=True, eq=False)
class Record:
    """One question to the holdout: what was said, and how to say it of other blocks."""

    text: str
    result: Answer | Verdict
    phi: Phi
    grid: Grid | None = None  # of an answer
    tolerance: float = 0.0  # of a verdict
    truth: float | None = None  # what the bar should contain


@dataclass(frozen=True)
class Checked:
    """How many promises were kept; `least` is the smallest share of fresh blocks on a side."""

    blocks: int
    tail: float
    answers: int
    kept: int
    least: float
    bars: int
    contained: int

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return asdict(self)


def fresh_blocks(
    flights: Flights, units: int, chance: np.random.Generator, blocks: int = FRESH_BLOCKS
) -> Rows:
    """Row numbers of fresh blocks, one block in a row."""
    return flights.sample(blocks * units, chance).reshape(blocks, units)


def check_records(
    records: Sequence[Record],
    fresh: Rows,
    progress: Callable[[int, int], None] | None = None,
) -> Checked:
    """Check every answer and every bar."""
    kept, least, bars, contained = 0, 1.0, 0, 0
    for done, record in enumerate(records, start=1):
        below, above = _sides(record, record.phi(fresh))
        tails = record.result.tail_low, record.result.tail_high
        kept += below > tails[0] and above > tails[1]
        least = min(least, below, above)
        if record.truth is not None and isinstance(record.result, Answer):
            low, high = record.result.low, record.result.high
            bars += 1
            contained += low is not None and high is not None and low <= record.truth <= high
        if progress is not None:
            progress(done, len(records))
    tail = max(record.result.tail for record in records)
    return Checked(len(fresh), tail, len(records), int(kept), least, bars, int(contained))


def _sides(record: Record, values: Values) -> tuple[float, float]:
    """The shares of fresh blocks at or below, and at or above, what was said."""
    result = record.result
    if isinstance(result, Answer):
        assert record.grid is not None
        indices = record.grid.ceiling(values)  # as answers are: upwards, failures to the lowest
        said = int(record.grid.ceiling([result.value])[0])
        return float(np.mean(indices <= said)), float(np.mean(indices >= said))
    failed = np.where(np.isnan(values), -np.inf, values)
    low, high = result.guess - record.tolerance, result.guess + record.tolerance
    if not result.refused:
        return float(np.mean(failed <= high)), float(np.mean(failed >= low))
    beyond = max(float(np.mean(failed < low)), float(np.mean(failed > high)))
    return beyond, beyond  # refused: on one side of it there is more than a tail


def share_of(flights: Flights, rows: Rows) -> Phi:
    """The share of late flights among a block's flights in these rows."""
    packed = _packed(flights, rows)

    def share(blocks: Rows) -> Values:
        sums = packed[blocks].sum(axis=1)
        late, count = sums >> 32, sums & (2**32 - 1)
        return np.where(count > 0, late / np.maximum(count, 1), np.nan)

    return share


def joint_of(flights: Flights, rows: Rows) -> Phi:
    """The share of flights that are in these rows and late, among all of a block."""
    packed = _packed(flights, rows)

    def joint(blocks: Rows) -> Values:
        return np.asarray((packed[blocks].sum(axis=1) >> 32) / blocks.shape[1])

    return joint


def delays_of(flights: Flights, rows: Rows, statistic: Callable[[Values], float]) -> Phi:
    """A statistic of the known delays of a block's flights in these rows."""
    delay = np.full(flights.count, np.nan)
    delay[rows] = flights.delay[rows]

    def values(blocks: Rows) -> Values:
        return np.array([_of_known(delay[block], statistic) for block in blocks])

    return values


def _of_known(delay: Values, statistic: Callable[[Values], float]) -> float:
    known = delay[~np.isnan(delay)]
    return float(statistic(known)) if known.size else np.nan


def _packed(flights: Flights, rows: Rows) -> NDArray[np.int64]:
    """1 for a flight in these rows, and 2³² more if it is late: one sum counts both."""
    packed = np.zeros(flights.count, np.int64)
    packed[rows] = 1 + (flights.late[rows].astype(np.int64) << 32)
    return packed


NAME = "flights"
POINTS = 32
TAIL = 0.01
_MORE = 20  # questions that are planned beside those of the search
_CONFIDENCE = 0.95
_SHARES = grid(0, "0.775", step="0.025")
_MINUTES = grid(-20, 135, step=5)
_LONG = grid(0, 310, step=10)
_BAR_POINTS = 256
_SHARE_SQL = f"avg(CASE WHEN {LATE} THEN 1 ELSE 0 END)"


def demo_plan(questions: int) -> Plan:
    """A plan for the search and what comes after it."""
    return plan(queries=questions + _MORE, grid=POINTS, tail=TAIL, confidence=_CONFIDENCE)


class Sealed:
    """A holdout made of the sample, and a record of all that it said."""

    def __init__(self, flights: Flights, holdout: Holdout) -> None:
        self._flights, self.holdout = flights, holdout
        self.records: list[Record] = []

    @classmethod
    def create(
        cls,
        folder: Path,
        flights: Flights,
        sample: Rows,
        made: Plan,
        seed: int | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> Sealed:
        """Seal the sample. One that a seed draws again is known already, and says so."""
        again = None if seed is None else "a seeded demo draws the same flights every time"
        table = flights.table(sample)
        holdout = Holdout.create(
            folder, table, made, name=NAME, seed=seed, new_budget=again, progress=progress
        )
        return cls(flights, holdout)

    @property
    def units(self) -> int:
        """Flights in a block."""
        return self.holdout.spec.manifest.block_units

    @property
    def size(self) -> int:
        """Flights in the sample."""
        return self.holdout.spec.manifest.units

    def search(self, questions: int, progress: Callable[[int, int], None] | None = None) -> Hunt:
        """The analyst's hunt on this holdout."""
        return hunt(self.share, self._flights, self.size, questions, progress)

    def share(self, cell: Cell) -> float:
        """The share of late flights in a cell: a ratio, promised as a quantile."""
        answer = self.holdout.mean(LATE, where=cell_sql(cell), grid=_SHARES)
        phi = share_of(self._flights, self._flights.rows(cell))
        self._note(f"share of late flights, {cell_words(cell)}", answer, phi, grid=_SHARES)
        return answer.value

    def delays(self, cell: Cell) -> dict[str, Answer]:
        """Delays have heavy tails: their average and median in SQL, a high quantile in Python."""
        where, rows = cell_sql(cell), self._flights.rows(cell)
        answers: dict[str, Answer] = {}

        def note(name: str, answer: Answer, points: Grid, statistic: Callable[[Any], Any]) -> None:
            answers[name] = answer
            phi = delays_of(self._flights, rows, statistic)
            self._note(f"{name} of delays, {cell_words(cell)}", answer, phi, grid=points)

        ask = self.holdout.ask
        note("average", ask("avg(arr_delay)", where=where, grid=_MINUTES), _MINUTES, np.mean)
        note("median", ask("median(arr_delay)", where=where, grid=_MINUTES), _MINUTES, np.median)
        columns = ["arr_delay", *(column for column, _ in cell)]
        high = ask(ninetieth(cell), grid=_LONG, columns=columns, block="numpy")
        note("90 % quantile", high, _LONG, lambda known: np.quantile(known, 0.9))
        return answers

    def finding(self, cells: Sequence[Cell]) -> Finding:
        """A list of cells with its bar.

        Asked is the share of flights that are on the list and late: a mean over all units, which
        has a certified bar. The schedule says how many flights are on the list, so that the bar can
        be divided by that.
        """
        rows = self._flights.listed(cells) if cells else np.arange(self._flights.count)
        listed = rows.size / self._flights.count
        points = grid(0, listed, points=_BAR_POINTS)
        term = f"({LATE}) AND ({list_sql(cells)})" if cells else LATE
        answer = self.holdout.mean(term, grid=points)
        joint = float(self._flights.late[rows].sum()) / self._flights.count
        phi = joint_of(self._flights, rows)
        self._note(f"on a list of {len(cells)} and late", answer, phi, grid=points, truth=joint)
        assert answer.low is not None  # a mean without a filter has a bar
        assert answer.high is not None
        return Finding(
            tuple(cells),
            flights=round(listed * self.size),
            value=answer.value / listed,
            low=answer.low / listed,
            high=min(1.0, answer.high / listed),
            truth=joint / listed,
        )

    def verify(self, cells: Sequence[Cell], guess: float, tolerance: float) -> Verdict:
        """Whether the share of late flights on a list is what somebody guesses."""
        where = list_sql(cells)
        verdict = self.holdout.verify(_SHARE_SQL, guess, tolerance=tolerance, where=where)
        phi = share_of(self._flights, self._flights.listed(cells))
        self._note(f"is it {guess:g} on the list", verdict, phi, tolerance=tolerance)
        return verdict

    def again(self, cell: Cell) -> Answer:
        """A question that was asked before, in other words."""
        spaced = cell_sql(cell).replace(" = ", "=")
        return self.holdout.mean(f"({LATE})", where=spaced, grid=_SHARES)

    def refused(self) -> str:
        """What is said to a question that may not be asked."""
        try:
            self.holdout.ask("max(tailnum)", grid=_MINUTES)
        except InvalidInput as wrong:
            return str(wrong)
        raise AssertionError("text has no place in an answer")

    def _note(self, text: str, result: Answer | Verdict, phi: Any, **more: Any) -> None:
        self.records.append(Record(text, result, phi, **more))


def ninetieth(cell: Cell) -> Callable[[dict[str, Any]], float]:
    """The 90 % quantile of known delays in a cell, as a Python function of one block.

    Where a block has no such flight it is 0, the lowest point of the grid: a function that failed
    there would fail on most made-up blocks, and be refused.
    """

    def quantile(block: dict[str, Any]) -> float:
        kept = np.ones(len(block["arr_delay"]), dtype=bool)
        for column, value in cell:
            kept &= block[column] == value
        known = block["arr_delay"][kept & ~np.isnan(block["arr_delay"])]
        return float(np.quantile(known, 0.9)) if known.size else 0.0

    return quantile
