"""The promise, checked on fresh blocks: the population is known, so they can be drawn at will.

An answer v about an estimator φ promises D[φ ≤ v] > tail and D[φ ≥ v] > tail, where D draws a fresh
block of t flights. Both shares are counted on fresh blocks, the same for all answers and drawn
after the last one. The values are computed here with NumPy, not by the engines that answered. A
bar is compared with the population's own value, which is known exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid
from holdfast.lab.worlds.flights import Flights, Rows
from holdfast.protocols.answers import Answer, Verdict

__all__ = [
    "FRESH_BLOCKS",
    "Checked",
    "Record",
    "check_records",
    "delays_of",
    "fresh_blocks",
    "joint_of",
    "share_of",
]

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
