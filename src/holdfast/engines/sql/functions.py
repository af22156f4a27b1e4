"""The functions and operators that a question may use: this table is the whole list.

A row says the name, what it takes and gives, the SQL it becomes, and its bounds. None of them can
fail at run time in DuckDB 2, whatever the data: numbers are DOUBLE, a domain error is NaN, overflow
is ∞, a division by zero is NULL (by `nullif`), dates outside the years 1 to 9999 are NULL.

    number boolean text date timestamp    an expression of that type
    moment                                a date or a timestamp
    any                                   an expression of any type
    same                                  all of one type, whichever; a result `same` has that type
    ordered                               as `same`, but no booleans
    measured                              as `same`, but no booleans and no texts
    digits pattern part                   constants: -15 … 15, a text, the name of a unit of time
    …                                     the one before, again and again
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.engines.sql import intervals
from holdfast.engines.sql.intervals import Bound, Interval, fixed, monotone, strict

__all__ = ["ALIASES", "FUNCTIONS", "TIME_PARTS", "Function"]

TIME_PARTS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")

_INFINITY = math.inf


@dataclass(frozen=True, slots=True)
class Function:
    """One row of the table. In `sql`, {0}, {1}, … are the arguments and {all} is all of them."""

    name: str
    takes: tuple[str, ...]
    gives: str
    sql: str
    bound: Bound
    text: str = ""  # how it is written in a question, if not as name(…)


def _row(name: str, types: str, sql: str, bound: Bound, text: str = "") -> Function:
    takes, gives = types.split("->")
    return Function(name, tuple(takes.split()), gives.strip(), sql, bound, text)


def _plain(name: str, types: str, bound: Bound) -> Function:
    """A function of DuckDB that already gives what it should."""
    return _row(name, types, f"{name}({{all}})", bound)


def _counted(name: str, types: str, bound: Bound) -> Function:
    """A function of DuckDB that gives an integer."""
    return _row(name, types, f"CAST({name}({{all}}) AS DOUBLE)", bound)


def _infix(symbol: str, types: str, bound: Bound, sql: str = "") -> Function:
    text = f"{{0}} {symbol} {{1}}"
    return _row(symbol, types, sql or f"({text})", bound, text)


def _whole(arguments: Sequence[Interval]) -> Interval:
    down, up = intervals.same_steps(math.floor), intervals.same_steps(math.ceil)
    return replace(down(arguments), high=up(arguments).high)


def _rounded(arguments: Sequence[Interval]) -> Interval:
    x, digits = arguments
    step = 10.0**-digits.low
    return replace(x, low=x.low - step, high=x.high + step)


_TRUTH = fixed(0.0, 1.0)
_TEXT = fixed(-_INFINITY, _INFINITY)
_ANYTHING = strict(-_INFINITY, _INFINITY, nan=True)
_POSITIVE = (0.0, _INFINITY)
_UNIT = strict(-1.0, 1.0, nan=True)

_OPERATORS = (
    _infix("+", "number number -> number", intervals.add),
    _infix("-", "number number -> number", intervals.subtract),
    _infix(
        "-",
        "date date -> number",
        fixed(-_INFINITY, _INFINITY),
        sql="CAST(({0} - {1}) AS DOUBLE)",
    ),
    _infix("*", "number number -> number", intervals.multiply),
    _infix("/", "number number -> number", intervals.divide, sql="({0} / nullif({1}, 0e0))"),
    _infix("%", "number number -> number", intervals.modulo, sql="({0} % nullif({1}, 0e0))"),
    _row("negative", "number -> number", "(-{0})", intervals.negate, "-{0}"),
    _infix("=", "same same -> boolean", _TRUTH),
    _infix("<>", "same same -> boolean", _TRUTH),
    _infix("<", "ordered ordered -> boolean", _TRUTH),
    _infix("<=", "ordered ordered -> boolean", _TRUTH),
    _infix(">", "ordered ordered -> boolean", _TRUTH),
    _infix(">=", "ordered ordered -> boolean", _TRUTH),
    _infix("IS DISTINCT FROM", "same same -> boolean", intervals.never_null(_TRUTH)),
    _infix("IS NOT DISTINCT FROM", "same same -> boolean", intervals.never_null(_TRUTH)),
    _row(
        "between",
        "ordered ordered ordered -> boolean",
        "({0} BETWEEN {1} AND {2})",
        _TRUTH,
        "{0} BETWEEN {1} AND {2}",
    ),
    _row(
        "is null",
        "any -> boolean",
        "({0} IS NULL)",
        intervals.never_null(_TRUTH),
        "{0} IS NULL",
    ),
    _row("not", "boolean -> boolean", "(NOT {0})", _TRUTH, "NOT {0}"),
    _row("and", "boolean boolean … -> boolean", "({and})", _TRUTH, "{and}"),
    _row("or", "boolean boolean … -> boolean", "({or})", _TRUTH, "{or}"),
    _row("in", "same same … -> boolean", "({0} IN ({rest}))", _TRUTH, "{0} IN ({rest})"),
    _row("case", "boolean measured … -> same", "({case})", intervals.case, "{case}"),
)

_NUMBERS = (
    _plain("abs", "number -> number", intervals.absolute),
    _plain("ceil", "number -> number", intervals.same_steps(math.ceil)),
    _plain("floor", "number -> number", intervals.same_steps(math.floor)),
    _plain("trunc", "number -> number", intervals.same_steps(math.trunc)),
    _plain("round", "number -> number", _whole),
    _row("round", "number digits -> number", "round({0}, CAST({1} AS INTEGER))", _rounded),
    _counted("sign", "number -> number", fixed(-1.0, 1.0)),
    _plain("sqrt", "number -> number", monotone(math.sqrt, _POSITIVE, _POSITIVE)),
    _plain("cbrt", "number -> number", monotone(math.cbrt)),
    _plain("exp", "number -> number", monotone(math.exp, image=_POSITIVE)),
    _plain("ln", "number -> number", monotone(math.log, _POSITIVE)),
    _plain("log", "number -> number", monotone(math.log10, _POSITIVE)),
    _plain("log", "number number -> number", _ANYTHING),
    _plain("log2", "number -> number", monotone(math.log2, _POSITIVE)),
    _plain("log10", "number -> number", monotone(math.log10, _POSITIVE)),
    _plain("power", "number number -> number", intervals.power),
    _row("mod", "number number -> number", "({0} % nullif({1}, 0e0))", intervals.modulo),
    _plain("sin", "number -> number", _UNIT),
    _plain("cos", "number -> number", _UNIT),
    _plain("tan", "number -> number", _ANYTHING),
    _plain("asin", "number -> number", monotone(math.asin, (-1.0, 1.0))),
    _plain("acos", "number -> number", strict(0.0, 4.0, nan=True)),
    _plain("atan", "number -> number", monotone(math.atan)),
    _plain("atan2", "number number -> number", strict(-4.0, 4.0, nan=True)),
    _plain("sinh", "number -> number", monotone(math.sinh)),
    _plain("cosh", "number -> number", strict(1.0, _INFINITY)),
    _plain("tanh", "number -> number", monotone(math.tanh, image=(-1.0, 1.0))),
    _plain("degrees", "number -> number", monotone(math.degrees)),
    _plain("radians", "number -> number", monotone(math.radians)),
    _plain("pi", "-> number", strict(3.0, 4.0)),
    _plain("isnan", "number -> boolean", _TRUTH),
    _plain("isinf", "number -> boolean", _TRUTH),
    _plain("isfinite", "number -> boolean", _TRUTH),
)

# None of these chooses between texts, but for coalesce, and nor does CASE: a comparison with a text
# that is always NULL, as nullif('', ''), is an error of DuckDB 2.0 while it plans.
_CHOICES = (
    _plain("coalesce", "same … -> same", intervals.coalesce),
    _plain("nullif", "measured measured -> same", intervals.nullable(lambda both: both[0])),
    _plain("least", "measured measured … -> same", intervals.least),
    _plain("greatest", "measured measured … -> same", intervals.greatest),
)

_TEXTS = (
    _counted("length", "text -> number", fixed(0.0, _INFINITY)),
    _plain("lower", "text -> text", _TEXT),
    _plain("upper", "text -> text", _TEXT),
    _plain("trim", "text -> text", _TEXT),
    _plain("starts_with", "text pattern -> boolean", _TRUTH),
    _plain("ends_with", "text pattern -> boolean", _TRUTH),
    _plain("contains", "text pattern -> boolean", _TRUTH),
)

_MOMENTS = (
    _counted("year", "moment -> number", fixed(1, 9999)),
    _counted("quarter", "moment -> number", fixed(1, 4)),
    _counted("month", "moment -> number", fixed(1, 12)),
    _counted("week", "moment -> number", fixed(1, 53)),
    _counted("day", "moment -> number", fixed(1, 31)),
    _counted("dayofweek", "moment -> number", fixed(0, 6)),
    _counted("isodow", "moment -> number", fixed(1, 7)),
    _counted("dayofyear", "moment -> number", fixed(1, 366)),
    _counted("hour", "timestamp -> number", fixed(0, 23)),
    _counted("minute", "timestamp -> number", fixed(0, 59)),
    _counted("second", "timestamp -> number", fixed(0, 59)),
    _plain("epoch", "moment -> number", fixed(-_INFINITY, _INFINITY)),
    _counted("date_diff", "part date date -> number", fixed(-_INFINITY, _INFINITY)),
    _counted("date_diff", "part timestamp timestamp -> number", fixed(-_INFINITY, _INFINITY)),
)

# What the checker adds where a type is meant to become another: they cannot be written, and are
# left out of the text.
_IMPLIED = (
    _row("as number", "boolean -> number", "CAST({0} AS DOUBLE)", _TRUTH, "{0}"),
    _row("as timestamp", "date -> timestamp", "CAST({0} AS TIMESTAMP)", _TEXT, "{0}"),
)

ALIASES = {
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "datediff": "date_diff",
    "dayofmonth": "day",
    "day_of_week": "dayofweek",
    "weekday": "dayofweek",
    "weekofyear": "week",
    "ifnull": "coalesce",
    "len": "length",
    "lcase": "lower",
    "ucase": "upper",
    "pow": "power",
    "prefix": "starts_with",
    "suffix": "ends_with",
}


def _table(*groups: Sequence[Function]) -> dict[str, tuple[Function, ...]]:
    rows = [row for group in groups for row in group]
    return {each.name: tuple(row for row in rows if row.name == each.name) for each in rows}


FUNCTIONS = _table(_OPERATORS, _NUMBERS, _CHOICES, _TEXTS, _MOMENTS, _IMPLIED)
