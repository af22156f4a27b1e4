"""What one prediction must be, and text as such.

A metric takes a label, a number, a probability or a score. A label is of the target's kind: text,
a number, or true and false, which are 1 and 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.metrics import NEEDS_LABEL, NEEDS_PROBABILITY, Metric
from holdfast.errors import InvalidInput
from holdfast.holdout.submissions.frames import pairs_of
from holdfast.holdout.submissions.pairs import Pairs, refused, some

__all__ = ["Wanted", "values_by_row", "wanted_for", "wanted_values"]

_LONGEST = 200
_NUMBER = r"^\s*[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,6})?\s*$"
_ZERO_ONE = (0.0, 1.0)


@dataclass(frozen=True)
class Wanted:
    """What predictions must be: text, or numbers of a kind."""

    text: bool = False
    label: bool = False  # whole numbers are integers then
    within: tuple[float, float] | None = None
    binary: bool = False

    def describe(self) -> str:
        """For errors."""
        if self.text:
            return f"text of at most {_LONGEST} characters"
        if self.binary:
            return "0 or 1"
        return "probabilities between 0 and 1" if self.within else "finite numbers"


def wanted_for(metric: Metric, kind: str, target: str) -> Wanted:
    """What a metric takes for a target of this kind; refused if it cannot be."""
    if kind not in ("boolean", "number", "text"):
        hint = "Seal the target as a number or as text."
        raise InvalidInput("target", target, "a column of numbers, text or truth values", hint)
    label = metric.predicted == NEEDS_LABEL
    if kind == "text" and (metric.binary or not label):
        hint = "For text labels use accuracy, error_rate, balanced_accuracy or f1_macro."
        raise InvalidInput("metric", metric.name, "one for labels that are text", hint)
    if metric.predicted == NEEDS_PROBABILITY:
        return Wanted(within=_ZERO_ONE)
    if not label:
        return Wanted()
    return Wanted(text=kind == "text", label=True, binary=metric.binary or kind == "boolean")


def values_by_row(array: NDArray[Any], wanted: Wanted) -> NDArray[Any]:
    """Predictions in the order of the rows, held to the same rules; rows are named by number."""
    import pyarrow as pa

    numbers = pa.array(np.arange(len(array)))
    if array.dtype.kind == "O":
        plain = [each.item() if isinstance(each, np.generic) else each for each in array]
        return wanted_values(Pairs(numbers, pairs_of([], plain).values), wanted)
    doubles = array.astype(np.float64) if array.dtype.kind == "f" else array
    return wanted_values(Pairs(numbers, pa.array(doubles)), wanted)


def wanted_values(pairs: Pairs, wanted: Wanted) -> NDArray[Any]:
    """The predictions as an array; refused, with a few ids, where they are something else."""
    import pyarrow as pa

    values, bad = pairs.values, np.asarray(pairs.values.is_null())
    is_text = pa.types.is_string(values.type)
    if wanted.text:
        if not is_text:
            raise refused(f"predictions of type {values.type}", wanted.describe())
        return _texts(pairs, bad)
    if is_text:
        values, bad = _numbers(values)
    array = np.asarray(values.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False))
    array = array + 0.0  # one zero
    bad = bad | ~np.isfinite(array)
    if wanted.binary:
        bad |= ~np.isin(array, _ZERO_ONE)
    elif wanted.within is not None:
        bad |= ~((array >= wanted.within[0]) & (array <= wanted.within[1]))
    _refuse(pairs, bad, wanted)
    whole = wanted.label and bool(np.all(array == np.rint(array)) and np.all(abs(array) < 2**53))
    return array.astype(np.int64) if whole else array


def _texts(pairs: Pairs, bad: NDArray[np.bool_]) -> NDArray[Any]:
    import pyarrow.compute as pc

    lengths = pc.utf8_length(pairs.values).fill_null(0).to_numpy(zero_copy_only=False)
    _refuse(pairs, bad | (lengths > _LONGEST), Wanted(text=True))
    found = np.empty(len(pairs), object)
    found[:] = pairs.values.to_pylist()
    return found


def _numbers(text: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Text as numbers, and where it is none; `true` and `false` are 1 and 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lower = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    text = pc.if_else(pc.equal(lower, "true"), "1", pc.if_else(pc.equal(lower, "false"), "0", text))
    good = pc.match_substring_regex(text, _NUMBER).fill_null(False)
    plain = pc.if_else(good, pc.replace_substring_regex(text, r"^\s*\+?", ""), "nan")
    numbers = pc.cast(pc.utf8_trim_whitespace(plain), pa.float64())
    return numbers, ~np.asarray(good.to_numpy(zero_copy_only=False), np.bool_)


def _refuse(pairs: Pairs, bad: NDArray[np.bool_], wanted: Wanted) -> None:
    if bad.any():
        places = np.flatnonzero(bad)
        ids = [pairs.ids[int(place)].as_py() for place in places[:4]]
        found = f"{len(places):,} other predictions (for {some(ids)})"
        raise refused(found, wanted.describe())
