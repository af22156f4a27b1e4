"""Questions: from what people ask, verb by verb, to the part of the plan and the question for it.

Two questions are the same if they mean the same thing: the same estimator and filter, range, grid,
guess and options. Then they have the same key, and the second is answered from the ledger, free. An
estimator without an identity (a callable that cannot be hashed) makes every question new.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from holdfast.engines.python.estimator import LocalEstimator, local_estimator
from holdfast.engines.sql.estimator import (
    SqlTerm,
    sql_condition,
    sql_estimator,
    sql_term,
)
from holdfast.errors import InvalidInput, real_number
from holdfast.holdout.spec import BlockSet
from holdfast.ledger.ledger import canonical
from holdfast.protocols.base import Protocol, Question
from holdfast.protocols.means import checked_bounds
from holdfast.protocols.shapes import BoundedMean
from holdfast.protocols.source import UNIT, Bounds, is_within
from holdfast.store.blocks import Manifest

__all__ = [
    "Asked",
    "Estimand",
    "Estimator",
    "estimand_of_block",
    "estimand_of_rows",
    "question_key",
    "same_number",
]

Ranges = Mapping[str, tuple[float, float]]
Estimator = str | Callable[..., object] | LocalEstimator
_FREE = "Nothing was charged."


@dataclass(frozen=True)
class Asked:
    """A question, who answers it, of which blocks, and what it is about."""

    set: BlockSet
    protocol: Protocol[Any]
    question: Question
    estimand: Estimand
    assumptions: tuple[str, ...] = ()
    others: tuple[Estimand, ...] = ()
    """The other rules, where it is about several."""
    expects: Any = None
    """What is public of the answer, where that decides what it costs."""
    max_level: float | None = None
    """The level above which it is not wanted, where others have asked meanwhile."""

    @property
    def estimands(self) -> tuple[Estimand, ...]:
        """All rules that it is about."""
        return (self.estimand, *self.others)

    @cached_property
    def key(self) -> str | None:
        """What identifies the question; None if it cannot be told from others."""
        identity = self.estimand.identity
        if self.others:
            identities = [each.identity for each in self.estimands]
            identity = None if None in identities else canonical(identities)
        return None if identity is None else question_key(self.question.facts, identity)

    def assuming(self, what: str) -> Asked:
        """The same question, whose answer's promise assumes one thing more."""
        return replace(self, assumptions=(*self.assumptions, what))


def question_key(facts: Mapping[str, Any], identity: str) -> str:
    """The key of a question about an estimator of this identity."""
    return hashlib.sha256(canonical({**facts, "estimator": identity}).encode()).hexdigest()


def same_number(name: str, value: object, low: float = -math.inf) -> float:
    """One spelling for one number: 7, 7.0 and NumPy's 7 are the same question, 0 and −0 too."""
    return real_number(name, value, low) + 0.0


@dataclass(frozen=True)
class Estimand:
    """An estimator, what it is called, and what is known of its values on every block."""

    estimator: Any
    identity: str | None
    about: dict[str, Any]
    range: tuple[float, float] | None = None
    shape: BoundedMean | None = None
    cut: bool = False
    """Of a mean's term: whether its values could leave the range, and are then cut to it."""
    where: Any = None
    assumptions: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Whether it is Python."""
        return isinstance(self.estimator, LocalEstimator)


def estimand_of_block(
    estimator: object, manifest: Manifest, ranges: Ranges, where: str | None, options: Any
) -> Estimand:
    """An estimator of one block."""
    if options and isinstance(estimator, str | LocalEstimator):
        name, value = next(iter(options.items()))
        hint = "It says how to call a Python function."
        raise InvalidInput(name, value, "left out here", hint)
    if isinstance(estimator, str):
        sql = sql_estimator(estimator, manifest.schema, where)
        about = {"engine": "sql", "text": sql.text}
        if sql.where is not None:
            about["where"] = sql.where
        units, single = manifest.block_units, manifest.unit_column is None
        known = sql.known_value(units, single)
        if known is not None:
            rows = f"a block has {units:,} rows"
            hint = f"It is {known:.12g} on every block, whatever the data: {rows}. {_FREE}"
            allowed = "one whose answer is not known already"
            raise InvalidInput("question", sql.text, allowed, hint)
        if single and not sql.columns:
            _refuse_constant(sql.text)
        mean = sql.bounded_mean(single)
        shape = None if mean is None else BoundedMean(*mean)
        return Estimand(sql, f"sql {about}", about, sql.range(ranges, units, single), shape)
    if where is not None:
        hint = "Filter inside the function: it sees the whole block."
        raise InvalidInput("where", where, "left out for a callable", hint)
    if not callable(estimator) and not isinstance(estimator, LocalEstimator):
        hint = "Write SQL such as 'avg(x)', or a function of one block."
        raise InvalidInput("estimator", estimator, "SQL text or a callable", hint)
    if isinstance(estimator, LocalEstimator):
        made = estimator
    else:
        made = local_estimator(estimator, **options)
    shape = None
    if made.range is not None and made.bounded_mean and manifest.one_row_units:
        # A model may fail on a block, and a row may have no target: only one end is sure.
        fails = not made.built_in
        shape = BoundedMean(*made.range, can_fail=fails, fails_high=fails and made.fails_high)
    return Estimand(made, made.identity, _local_about(made), made.range, shape)


def estimand_of_rows(
    term: object,
    manifest: Manifest,
    ranges: Ranges,
    where: object,
    columns: Sequence[str] | None,
    bounds: Bounds | None = None,
) -> Estimand:
    """A term of one unit, within its bounds or else within [0, 1], whose mean is asked for."""
    declared = None if bounds is None else checked_bounds(bounds)
    if isinstance(term, str):
        if where is not None and not isinstance(where, str):
            raise InvalidInput("where", where, "SQL text, like the term itself")
        sql = sql_term(term, manifest.schema)
        kept = None if where is None else sql_condition(where, manifest.schema)
        if not sql.columns:
            _refuse_constant(sql.text)
        about = {"engine": "sql", "text": sql.text}
        if kept is not None:
            about["where"] = kept.text
        identity = f"sql mean {about}"
        within, cut = _sql_range(sql, ranges, declared)
        return Estimand(sql, identity, about, within, cut=cut, where=kept)
    if not callable(term) and not isinstance(term, LocalEstimator):
        hint = "Write SQL such as 'x > 3', or a function that gives one number a row."
        raise InvalidInput("term", term, "SQL text or a callable", hint)
    made = term if isinstance(term, LocalEstimator) else local_estimator(term, columns=columns)
    within, cut = _local_range(made, declared)
    if where is None:
        return Estimand(made, made.identity, _local_about(made), within, cut=cut)
    if not callable(where):
        raise InvalidInput("where", where, "a callable, like the term itself")
    kept_local = local_estimator(where, columns=columns)
    both = (made.identity, kept_local.identity)
    identity_or_none = None if None in both else f"{both[0]} where {both[1]}"
    about = {**_local_about(made), "where": kept_local.describe()}
    return Estimand(made, identity_or_none, about, within, cut=cut, where=kept_local)


def _sql_range(sql: SqlTerm, ranges: Ranges, declared: Bounds | None) -> tuple[Bounds, bool]:
    """The range of a term in SQL, and whether it could leave it.

    One that follows from the declared ranges of columns is as if it were declared itself. These are
    only declared: a sealed row may leave them, and its term is then cut.
    """
    if declared in (None, UNIT) and is_within(sql.range({}), UNIT):
        return UNIT, False
    if declared is not None:
        return declared, True
    found = sql.range(ranges)
    if is_within(found, UNIT):
        return UNIT, True
    with suppress(InvalidInput):  # nothing is known, or only that it is a float
        ends = [0.0 if abs(end) < 1e-300 else float(f"{end:.12g}") for end in found]
        return checked_bounds(ends), True
    hint = "Nothing public bounds it: declare its range, as range=(-1, 1) or --range -1:1; or ask "
    hint += "for a term that stays in [0, 1], as (1 + b - a)/2 does if a and b are declared to "
    hint += "(--range a=0:1)."
    allowed = "between 0 and 1 by its form and the declared ranges of its columns"
    raise InvalidInput("term", sql.text, allowed, hint)


def _local_range(made: LocalEstimator, declared: Bounds | None) -> tuple[Bounds, bool]:
    """The range of a Python term, which must be declared: nothing is known of what it gives."""
    if declared in (None, UNIT) and made.range == UNIT:  # Holdfast's own, as an accuracy's
        return UNIT, False
    if declared is None:
        hint = (
            "Nothing is known of what a Python function gives: range=(0, 1) is for true and false. "
            "What leaves the range is cut, and the promise says so."
        )
        allowed = "a pair (low, high) between which the term of every row lies"
        raise InvalidInput("range", None, allowed, hint)
    return declared, True


def _refuse_constant(text: str | None) -> None:
    hint = f"It names no column: its value is the same whatever the data. {_FREE}"
    raise InvalidInput("question", text, "one that depends on a column", hint)


def _local_about(made: LocalEstimator) -> dict[str, Any]:
    codes = {"failure": made.failing, "reading": made.reading}
    about = {"engine": "local", "text": made.describe()}
    return about | {name: code for name, code in codes.items() if code is not None}
