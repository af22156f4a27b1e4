"""Predictions in Python: a dictionary, a table of pandas, Polars or Arrow, a pandas Series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.holdout.submissions.pairs import PREDICTION, Pairs, check_columns, refused

__all__ = ["is_keyed", "pairs_of", "read_frame"]

_ALLOWED = "integers or text, and predictions that are numbers, text, true or false"


def is_keyed(given: object) -> bool:
    """Whether these are predictions with their ids, and not a plain list in the rows' order."""
    if isinstance(given, Mapping):
        return True
    library = type(given).__module__.partition(".")[0]
    named = any(hasattr(given, name) for name in ("columns", "column_names", "index"))
    return library in ("pandas", "polars", "pyarrow") and named


def read_frame(given: Any, column: str) -> Pairs:
    """The pairs of a table with the two columns, or of a mapping from ids to predictions."""
    if isinstance(given, Mapping):
        return pairs_of([*given.keys()], [*given.values()])
    if getattr(given, "ndim", 2) == 1 and hasattr(given, "index"):  # a Series by its index
        return pairs_of(given.index.tolist(), given.tolist())
    names = getattr(given, "column_names", None)  # Arrow's; the others have columns
    names = list(given.columns if names is None else names)
    check_columns(names, column)
    found = (_listed(given[name]) for name in (column, PREDICTION))
    return pairs_of(*found)


def _listed(column: Any) -> list[Any]:
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def pairs_of(ids: Sequence[Any], values: Sequence[Any]) -> Pairs:
    """Python values as two Arrow arrays, each of one kind."""
    return Pairs(_array(ids, "ids"), _array(values, "predictions"))


def _array(values: Sequence[Any], what: str) -> Any:
    """Integers, floats, truth values or text; integers among floats are floats."""
    import pyarrow as pa

    kinds = {type(value) for value in values}
    if kinds <= {bool}:
        return pa.array(values, pa.bool_())
    if kinds <= {int, bool} and all(abs(value) < 2**63 for value in values):
        return pa.array([int(value) for value in values], pa.int64())
    if kinds <= {int, float, bool}:
        try:
            return pa.array([float(value) for value in values], pa.float64())
        except OverflowError:
            raise refused(f"{what} beyond every float", _ALLOWED) from None
    if kinds <= {str}:
        try:
            return pa.array(values, pa.string())
        except (UnicodeError, pa.ArrowException):  # half a pair of surrogates
            raise refused(f"{what} that are not Unicode", _ALLOWED) from None
    if what == "ids" and kinds <= {int, str}:
        return pa.array([str(value) for value in values], pa.string())
    others = kinds - {bool, int, float, str}
    hint = "Missing ones are not allowed." if type(None) in others else ""
    raise refused(f"{what} of several kinds" if not others else f"other {what}", _ALLOWED, hint)
