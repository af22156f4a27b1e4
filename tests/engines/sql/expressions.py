"""Random typed questions, drawn from the tables of what is allowed: every row of them occurs."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from holdfast.engines.sql.language import (
    AGGREGATES,
    FUNCTIONS,
    TIME_PARTS,
    Aggregate,
    AggregateFunction,
    Constant,
    Function,
    Kind,
    Node,
    Reference,
    Value,
)
from holdfast.engines.sql.parser import aggregate_of, call_of, case_of
from holdfast.store.table import Schema

__all__ = ["Questions"]

_T = TypeVar("_T")
KINDS: tuple[Kind, ...] = ("number", "boolean", "text", "date", "timestamp")
_ORDERED: tuple[Kind, ...] = ("number", "text", "date", "timestamp")
_MEASURED: tuple[Kind, ...] = ("number", "date", "timestamp")
_TIMES: tuple[Kind, ...] = ("date", "timestamp")
_NUMBERS = (0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 60.0, 1e300, -1e300, 5e-324, 1e19, 0.1, 1e-300)
_TEXTS = ("", "A", "a", "SECRET-4711", "it's", "%", "ß", "{0}", "x" * 300, '"')
_DATES = (datetime.date(1, 1, 1), datetime.date(2020, 2, 29), datetime.date(9999, 12, 31))
_MOMENTS = tuple(datetime.datetime(d.year, d.month, d.day, 23, 59, 59, 999999) for d in _DATES)


class Questions:
    """A stream of random questions."""

    def __init__(self, schema: Schema, seed: int, depth: int = 2) -> None:
        self._schema = schema
        self._depth = depth
        self._random = np.random.default_rng(seed)
        self._rows = [row for rows in FUNCTIONS.values() for row in rows if row.name != "case"]
        self._rows = [row for row in self._rows if not row.name.startswith("as ")]
        self._aggregates = [row for rows in AGGREGATES.values() for row in rows]
        self._turn = 0

    def question(self) -> Node:
        """A number or truth value of aggregates; the aggregates of the table take turns."""
        self._turn += 1
        while self._random.random() < 0.6:
            row = self._aggregates[self._turn % len(self._aggregates)]
            if row.gives != "same":
                return self._aggregate(row, self._depth)
            self._turn += 1
        kind: Kind = "number" if self._random.random() < 0.8 else "boolean"
        return self.node(kind, self._depth, True)

    def aggregate_question(self) -> Node:
        """A question that is one, and not a constant."""
        while not (found := self.question()).aggregated:
            pass
        return found

    def condition(self) -> Node:
        """A truth value of one row."""
        return self.node("boolean", self._depth, False)

    def node(self, kind: Kind, depth: int, aggregated: bool) -> Node:
        """An expression of that type, of one row or of aggregates."""
        if depth == 0 or self._random.random() < 0.15:
            return self._leaf(kind, aggregated)
        if kind != "text" and self._random.random() < 0.15:
            return self._case(kind, depth, aggregated)
        fitting = [row for row in self._rows if row.gives == kind or kind in _passed(row)]
        if not fitting:
            return self._leaf(kind, aggregated)
        row = self._one(fitting)
        shared = kind if row.gives == "same" else self._one(_shared(row))
        takes = self._repeated(row.takes)
        arguments = [
            self._constant_of(token)
            or self.node(self._kind_of(token, shared), depth - 1, aggregated)
            for token in takes
        ]
        if row.name == "in":
            arguments[1:] = [self._constant(shared) for _ in arguments[1:]]
        if row.name == "negative" and isinstance(arguments[0], Constant):
            return arguments[0]  # it would be folded
        return call_of(row.name, arguments)

    def _kind_of(self, token: str, shared: Kind) -> Kind:
        if token in ("same", "ordered", "measured"):
            return shared
        if token == "moment":
            return self._one(_TIMES)
        return self._one(KINDS) if token == "any" else token  # type: ignore[return-value]

    def _constant_of(self, token: str) -> Constant | None:
        if token == "digits":
            return Constant("number", float(self._random.integers(-15, 16)))
        if token == "fraction":
            return Constant("number", self._one((0.0, 0.1, 0.5, 0.9, 1.0)))
        if token == "pattern":
            return Constant("text", self._one(_TEXTS))
        return Constant("text", self._one(TIME_PARTS)) if token == "part" else None

    def _repeated(self, takes: Sequence[str]) -> list[str]:
        if not takes or takes[-1] != "…":
            return list(takes)
        return [*takes[:-1], *[takes[-2]] * int(self._random.integers(0, 3))]

    def _case(self, kind: Kind, depth: int, aggregated: bool) -> Node:
        parts = [
            self.node(each, depth - 1, aggregated)
            for _ in range(self._random.integers(1, 3))
            for each in ("boolean", kind)
        ]
        last = self.node(kind, depth - 1, aggregated)
        return case_of([*parts, last if self._random.random() < 0.7 else Constant(kind, None)])

    def _leaf(self, kind: Kind, aggregated: bool) -> Node:
        if self._random.random() < 0.3:
            return self._constant(kind)
        if not aggregated:
            if kind == "timestamp" and self._random.random() < 0.2:
                kind = "date"  # it becomes one by itself
            names = [each.name for each in self._schema.columns if each.kind == kind]
            return Reference(kind, self._one(names))
        wanted = "same" if kind in _TIMES else kind
        fitting = [row for row in self._aggregates if row.gives == wanted]
        return self._aggregate(self._one(fitting), 1, kind) if fitting else self._constant(kind)

    def _aggregate(self, row: AggregateFunction, depth: int, kind: Kind | None = None) -> Aggregate:
        arguments = []
        for token in row.takes:
            constant = self._constant_of(token)
            wanted = self._kind_of(token, "number")
            if token == "moment" and kind in _TIMES:
                wanted = kind
            if token == "number" and self._random.random() < 0.2:
                wanted = "boolean"
            arguments.append(constant or self.node(wanted, depth, False))
        distinct = row.name == "count" and bool(arguments) and self._random.random() < 0.5
        made = aggregate_of(row.name, arguments, distinct=distinct)
        if self._random.random() < 0.3:
            condition = self.node("boolean", 2, False)
            return Aggregate(made.kind, made.function, made.arguments, made.distinct, condition)
        return made

    def _constant(self, kind: Kind) -> Constant:
        values: dict[Kind, Sequence[Value]] = {
            "number": _NUMBERS,
            "boolean": (True, False),
            "text": _TEXTS,
            "date": _DATES,
            "timestamp": _MOMENTS,
        }
        return Constant(kind, self._one(values[kind]))

    def _one(self, values: Sequence[_T]) -> _T:
        return values[int(self._random.integers(0, len(values)))]


def _shared(row: Function) -> Sequence[Kind]:
    """The types that its shared arguments may have."""
    if "measured" in row.takes:
        return _MEASURED
    return _ORDERED if "ordered" in row.takes else KINDS


def _passed(row: Function) -> Sequence[Kind]:
    """The types that it gives, if that of its arguments."""
    return _shared(row) if row.gives == "same" else ()
