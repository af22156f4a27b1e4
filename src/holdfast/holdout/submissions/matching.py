"""Matching: ids in any order, each once, with the rows that they name."""

from __future__ import annotations

from heapq import nsmallest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.holdout.ids import RowIds
from holdfast.holdout.submissions.pairs import Pairs, refused, some

__all__ = ["row_places"]

_INTEGER = r"^\s*[+-]?[0-9]{1,18}\s*$"


def row_places(pairs: Pairs, ids: RowIds) -> NDArray[np.int64]:
    """The row of every pair; refused unless every id is there, once, and no other."""
    import pyarrow.compute as pc

    allowed = f"one prediction for each of the {len(ids):,} ids in {ids.about.column}"
    if not len(pairs):
        raise refused("none", allowed)
    if len(pairs) > 2 * len(ids) + 1000:
        raise refused(f"{len(pairs):,} rows", allowed)
    keys = _keys(pairs.ids, ids.about.kind == "integer", allowed)
    places = pc.index_in(keys, value_set=ids.values)
    if places.null_count:
        unknown = np.flatnonzero(np.asarray(places.is_null()))
        named = some([pairs.ids[int(place)].as_py() for place in unknown[:4]])
        raise refused(f"{len(unknown):,} unknown ids ({named})", allowed)
    rows: NDArray[np.int64] = places.to_numpy(zero_copy_only=False).astype(np.int64)
    counts = np.bincount(rows, minlength=len(ids))
    for found, what in ((counts > 1, "that come twice"), (counts == 0, "without a prediction")):
        if found.any():
            which = np.flatnonzero(found)
            # By their own order: that of the rows is sealed, and can tell of what is in them.
            named = some(nsmallest(4, ids.values.take(which).to_pylist()))
            raise refused(f"{len(which):,} ids {what} ({named})", allowed)
    return rows


def _keys(given: Any, integer: bool, allowed: str) -> Any:
    """The ids in the type that the holdout's have."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_text = pa.types.is_string(given.type)
    if pa.types.is_boolean(given.type):
        raise refused("true and false for ids", allowed)
    if pa.types.is_floating(given.type):
        given = _whole(given, allowed)
    if not integer:
        return given if is_text else given.cast(pa.string())
    if not is_text:
        return given
    good = pc.match_substring_regex(given, _INTEGER)
    wrong = np.flatnonzero(~np.asarray(good.fill_null(False).to_numpy(zero_copy_only=False)))
    if len(wrong):
        named = some([given[int(place)].as_py() for place in wrong[:4]])
        raise refused(f"{len(wrong):,} ids that are no integers ({named})", allowed)
    plain = pc.replace_substring_regex(given, r"^\s*\+?", "")
    return pc.cast(pc.utf8_trim_whitespace(plain), pa.int64())


def _whole(given: Any, allowed: str) -> Any:
    import pyarrow as pa

    try:
        return given.cast(pa.int64())
    except pa.ArrowException:
        raise refused("ids that are fractions", allowed) from None
