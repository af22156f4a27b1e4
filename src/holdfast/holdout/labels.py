"""Labels of a target: declared at creation, or seen in the open part. Sealed rows say nothing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from holdfast.engines.python.metrics import Labels, listed, plain
from holdfast.errors import HoldfastWarning, InvalidInput
from holdfast.store.blocks import BlockStore
from holdfast.store.table import Schema

__all__ = ["check_open_part", "checked_labels", "public_labels"]

_MOST = 1_000
_LONGEST = 200


def checked_labels(
    labels: Sequence[object] | None, target: str | None, schema: Schema
) -> tuple[object, ...] | None:
    """The labels in one spelling, if they can be all that a target has."""
    if labels is None:
        return None
    if target is None:
        hint = "Name the column that they are labels of: target='y', --target y."
        raise InvalidInput("labels", labels, "left out without a target", hint)
    kind = schema.kind(target)
    if kind not in ("number", "text"):
        hint = "The labels of truth values are known." if kind == "boolean" else ""
        raise InvalidInput("labels", labels, f"left out for a target of kind {kind}", hint)
    allowed = f"1 to {_MOST:,} different labels, each a {kind}, as {target} is"
    found = () if isinstance(labels, str) else tuple(_label(each, kind) for each in labels)
    if not 1 <= len(found) <= _MOST or None in found or len({*found}) < len(found):
        raise InvalidInput("labels", labels, allowed)
    return found


def _label(value: object, kind: str) -> object:
    """A label in one spelling; None for what is none."""
    if kind == "text":
        good = isinstance(value, str) and 0 < len(value) <= _LONGEST
        return str(value) if good else None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number + 0.0 if math.isfinite(number) else None


def public_labels(
    store: BlockStore, target: str, kind: str, declared: Sequence[object] | None
) -> Labels:
    """What is public of a target's labels."""
    if declared is not None:
        return Labels(kind, tuple(plain(each) for each in declared))
    seen, given, _ = _open_targets(store, target)
    return Labels(kind, None, seen, given)


def check_open_part(store: BlockStore, target: str, labels: Sequence[object] | None) -> None:
    """Warn of targets that are missing in the open part; refuse labels that leave one of it out.

    No sealed row is looked at.
    """
    seen, given, rows = _open_targets(store, target)
    if labels is not None:
        others = [each for each in seen if each not in labels]
        if others:
            hint = f"The open part has {listed(others)} too. Nothing was sealed."
            raise InvalidInput("labels", list(labels), f"all labels that {target} has", hint)
    if given < rows:
        told = (
            f"{rows - given:,} of the {rows:,} open rows have no {target}, and so perhaps as many "
            "of the sealed ones: such a row counts as wrong in every score. Leave them out before "
            "you seal."
        )
        warnings.warn(told, HoldfastWarning, stacklevel=5)


def _open_targets(store: BlockStore, target: str) -> tuple[tuple[object, ...], int, int]:
    """The labels of the open part, how many of its rows have one, and how many rows it has."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if store.open_path is None:
        return (), 0, 0
    column = store.open_table([target]).column(0)
    present = column.is_valid()
    if pa.types.is_floating(column.type):
        present = pc.and_(present, pc.is_finite(column.fill_null(math.nan)))
    given = column.filter(present)
    kept = pa.types.is_temporal(column.type)  # no labels: only how many are missing is asked
    seen = () if kept else tuple(plain(each) for each in given.unique().to_pylist())
    return seen, len(given), len(column)
