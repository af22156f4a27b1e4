"""Writing: the checked tree as the text that names the question, and as the SQL that runs.

Two spellings of one question have one text, which reads as the same question again. The SQL is
written for DuckDB with every type settled: numbers are DOUBLE, columns are quoted.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from holdfast.engines.sql.parse import keywords
from holdfast.engines.sql.tree import Aggregate, Call, Constant, Node, Reference

__all__ = ["KEPT", "double", "quoted", "to_sql", "to_text"]

KEPT = "__kept"
"""The column that says whether `where` holds of a row."""

_T = TypeVar("_T")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SQL_TYPES = {
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


def quoted(name: str) -> str:
    """A name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def double(value: float) -> str:
    """A number as SQL that is a DOUBLE, whatever stands beside it."""
    digits = repr(value)
    return f"({digits})" if "e" in digits else f"({digits}e0)"


def to_text(node: Node) -> str:
    """The one text of all spellings of a question."""
    if isinstance(node, Constant):
        return _constant_text(node)
    if isinstance(node, Reference):
        return node.name if _is_plain(node.name) else quoted(node.name)
    if isinstance(node, Aggregate):
        inside = ", ".join(to_text(each) for each in node.arguments)
        inside = inside or "*"
        distinct = "DISTINCT " if node.distinct else ""
        where = f" FILTER (WHERE {to_text(node.filter)})" if node.filter is not None else ""
        return f"{node.function.name}({distinct}{inside}){where}"
    if node.function.text == "{0}":  # a type that is implied is not written
        return to_text(node.arguments[0])
    if not node.function.text:
        return f"{node.function.name}({', '.join(to_text(each) for each in node.arguments)})"
    # The parts of an operator are bracketed if they are operators too; those of CASE need not be.
    write = to_text if node.function.name == "case" else _bracketed
    return _filled(node.function.text, node.arguments, write)


def _bracketed(node: Node) -> str:
    while isinstance(node, Call) and node.function.text == "{0}":
        (node,) = node.arguments
    operator = isinstance(node, Call) and node.function.text and node.function.name != "case"
    return f"({to_text(node)})" if operator else to_text(node)


def to_sql(node: Node, *, kept: bool = False) -> str:
    """The SQL of an expression. With `kept`, aggregates are over the rows where `KEPT` is true."""
    if isinstance(node, Constant):
        return _constant_sql(node)
    if isinstance(node, Reference):
        return quoted(node.name)
    arguments = [to_sql(each, kept=kept) for each in node.arguments]
    if isinstance(node, Call):
        return _filled(node.function.sql, arguments, str)
    own = [] if node.filter is None else [to_sql(node.filter)]
    conditions = ([KEPT] if kept else []) + own
    where = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
    everything = ", ".join(arguments)
    if node.distinct:
        everything, arguments = f"DISTINCT {everything}", [f"DISTINCT {arguments[0]}"]
    return node.function.sql.format(*arguments, all=everything, f=where)


def _filled(template: str, arguments: Sequence[_T], write: Callable[[_T], str]) -> str:
    parts = [write(each) for each in arguments]
    fields = {"all": ", ".join(parts), "rest": ", ".join(parts[1:])}
    if template.strip("()") == "{case}":
        fields["case"] = _case(arguments, parts)
    return template.format(
        *parts, **fields, **{"and": " AND ".join(parts), "or": " OR ".join(parts)}
    )


def _case(arguments: Sequence[object], parts: Sequence[str]) -> str:
    pairs = zip(parts[:-1:2], parts[1:-1:2], strict=True)
    branches = " ".join(f"WHEN {condition} THEN {result}" for condition, result in pairs)
    default = arguments[-1]
    null = isinstance(default, Constant) and default.value is None
    return f"CASE {branches} END" if null else f"CASE {branches} ELSE {parts[-1]} END"


def _constant_text(node: Constant) -> str:
    value = node.value
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return _constant_sql(node)


def _constant_sql(node: Constant) -> str:
    value = node.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return double(value)
    if isinstance(value, datetime.date | datetime.datetime):
        separated = value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else str(value)
        return f"{_SQL_TYPES[node.kind]} '{separated}'"
    return "'" + value.replace("'", "''") + "'"


def _is_plain(name: str) -> bool:
    return _PLAIN_NAME.fullmatch(name) is not None and name.upper() not in keywords()
