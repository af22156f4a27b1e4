"""What people write, as estimators that engines know: SQL text, callables, models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.engines.local import LocalEstimator, local_estimator
from holdfast.engines.sql import SqlEstimator, sql_condition, sql_estimator, sql_term
from holdfast.engines.store import Manifest
from holdfast.errors import InvalidInput
from holdfast.planning.shapes import BoundedMean

__all__ = ["Asked", "asked_estimator", "asked_mean"]

Ranges = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Asked:
    """An estimator, what it is called, and what is known of its values on every block."""

    estimator: Any
    identity: str | None
    about: dict[str, Any]
    range: tuple[float, float] | None = None
    shape: BoundedMean | None = None
    where: Any = None
    assumptions: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Whether it is Python."""
        return isinstance(self.estimator, LocalEstimator)


def asked_estimator(
    estimator: object, manifest: Manifest, ranges: Ranges, where: str | None, options: Any
) -> Asked:
    """An estimator of one block."""
    if isinstance(estimator, str):
        _refuse_options(options)
        sql = sql_estimator(estimator, manifest.schema, where)
        return _sql_asked(sql, manifest, ranges)
    _refuse_where(where)
    if isinstance(estimator, LocalEstimator):
        _refuse_options(options)
        return _local_asked(estimator, manifest)
    if not callable(estimator):
        hint = "Write SQL such as 'avg(x)', or a function of one block."
        raise InvalidInput("estimator", estimator, "SQL text or a callable", hint)
    return _local_asked(local_estimator(estimator, **options), manifest)


def asked_mean(
    term: object, manifest: Manifest, where: object, columns: Sequence[str] | None
) -> Asked:
    """A term of one unit, between 0 and 1, whose mean is asked for."""
    if isinstance(term, str):
        if where is not None and not isinstance(where, str):
            raise InvalidInput("where", where, "SQL text, like the term itself")
        sql = sql_term(term, manifest.schema)
        kept = None if where is None else sql_condition(where, manifest.schema)
        about = {"engine": "sql", "text": sql.text}
        if kept is not None:
            about["where"] = kept.text
        identity = f"sql mean {about}"
        return Asked(sql, identity, about, (0.0, 1.0), where=kept)
    if not callable(term) and not isinstance(term, LocalEstimator):
        hint = "Write SQL such as 'x > 3', or a function that gives one number a row."
        raise InvalidInput("term", term, "SQL text or a callable", hint)
    made = term if isinstance(term, LocalEstimator) else local_estimator(term, columns=columns)
    if where is None:
        return Asked(made, made.identity, _local_about(made), (0.0, 1.0))
    if not callable(where):
        raise InvalidInput("where", where, "a callable, like the term itself")
    kept_local = local_estimator(where, columns=columns)
    both = (made.identity, kept_local.identity)
    identity_or_none = None if None in both else f"{both[0]} where {both[1]}"
    about = {**_local_about(made), "where": kept_local.describe()}
    return Asked(made, identity_or_none, about, (0.0, 1.0), where=kept_local)


def _sql_asked(sql: SqlEstimator, manifest: Manifest, ranges: Ranges) -> Asked:
    about = {"engine": "sql", "text": sql.text}
    if sql.where is not None:
        about["where"] = sql.where
    mean = sql.bounded_mean(manifest.one_row_units)
    return Asked(
        sql,
        f"sql {about}",
        about,
        sql.range(ranges, manifest.block_units, manifest.one_row_units),
        None if mean is None else BoundedMean(*mean),
    )


def _local_asked(made: LocalEstimator, manifest: Manifest) -> Asked:
    mean = made.range if made.bounded_mean and manifest.one_row_units else None
    return Asked(
        made,
        made.identity,
        _local_about(made),
        made.range,
        # A model may fail on a block, and a row may have no target: only the lower end is sure.
        None if mean is None else BoundedMean(*mean, can_fail=not made.built_in),
    )


def _local_about(made: LocalEstimator) -> dict[str, Any]:
    return {"engine": "local", "text": made.describe()}


def _refuse_options(options: Mapping[str, object]) -> None:
    for name, value in options.items():
        hint = "It says how to call a Python function."
        raise InvalidInput(name, value, "left out here", hint)


def _refuse_where(where: object) -> None:
    if where is not None:
        hint = "Filter inside the function: it sees the whole block."
        raise InvalidInput("where", where, "left out for a callable", hint)


Estimator = str | Callable[..., object] | LocalEstimator
