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

import datetime
import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.engines.sql import bounds
from holdfast.engines.sql.bounds import Bound, Interval, fixed, monotone, strict
from holdfast.errors import InvalidInput

__all__ = [
    "AGGREGATES",
    "AGGREGATE_ALIASES",
    "ALIASES",
    "CALLABLE",
    "CLASSES",
    "FUNCTIONS",
    "HINTS",
    "REFUSED",
    "TIME_PARTS",
    "TOKENS",
    "Aggregate",
    "AggregateBound",
    "AggregateFunction",
    "Call",
    "Constant",
    "Function",
    "Kind",
    "Node",
    "Reference",
    "Refusal",
    "Value",
    "aggregate_of",
    "as_kind",
    "call_of",
    "case_of",
    "children",
    "contains_aggregate",
    "fit",
    "like",
    "meant",
    "one_kind",
    "refused",
    "unknown",
    "walk",
]

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
    down, up = bounds.same_steps(math.floor), bounds.same_steps(math.ceil)
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
    _infix("+", "number number -> number", bounds.add),
    _infix("-", "number number -> number", bounds.subtract),
    _infix(
        "-",
        "date date -> number",
        fixed(-_INFINITY, _INFINITY),
        sql="CAST(({0} - {1}) AS DOUBLE)",
    ),
    _infix("*", "number number -> number", bounds.multiply),
    _infix("/", "number number -> number", bounds.divide, sql="({0} / nullif({1}, 0e0))"),
    _infix("%", "number number -> number", bounds.modulo, sql="({0} % nullif({1}, 0e0))"),
    _row("negative", "number -> number", "(-{0})", bounds.negate, "-{0}"),
    _infix("=", "same same -> boolean", _TRUTH),
    _infix("<>", "same same -> boolean", _TRUTH),
    _infix("<", "ordered ordered -> boolean", _TRUTH),
    _infix("<=", "ordered ordered -> boolean", _TRUTH),
    _infix(">", "ordered ordered -> boolean", _TRUTH),
    _infix(">=", "ordered ordered -> boolean", _TRUTH),
    _infix("IS DISTINCT FROM", "same same -> boolean", bounds.never_null(_TRUTH)),
    _infix("IS NOT DISTINCT FROM", "same same -> boolean", bounds.never_null(_TRUTH)),
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
        bounds.never_null(_TRUTH),
        "{0} IS NULL",
    ),
    _row("not", "boolean -> boolean", "(NOT {0})", _TRUTH, "NOT {0}"),
    _row("and", "boolean boolean … -> boolean", "({and})", _TRUTH, "{and}"),
    _row("or", "boolean boolean … -> boolean", "({or})", _TRUTH, "{or}"),
    _row("in", "same same … -> boolean", "({0} IN ({rest}))", _TRUTH, "{0} IN ({rest})"),
    _row("case", "boolean measured … -> same", "({case})", bounds.case, "{case}"),
)

_NUMBERS = (
    _plain("abs", "number -> number", bounds.absolute),
    _plain("ceil", "number -> number", bounds.same_steps(math.ceil)),
    _plain("floor", "number -> number", bounds.same_steps(math.floor)),
    _plain("trunc", "number -> number", bounds.same_steps(math.trunc)),
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
    _plain("power", "number number -> number", bounds.power),
    _row("mod", "number number -> number", "({0} % nullif({1}, 0e0))", bounds.modulo),
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
    _plain("coalesce", "same … -> same", bounds.coalesce),
    _plain("nullif", "measured measured -> same", bounds.nullable(lambda both: both[0])),
    _plain("least", "measured measured … -> same", bounds.least),
    _plain("greatest", "measured measured … -> same", bounds.greatest),
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


# The aggregates that a question may use, and the better known ones that it may not, with reasons.
#
# In `sql`, {0}, {1} are the arguments and {f} is the FILTER. Every value is a function of the
# block's
# rows alone, the same on every run and however many blocks are evaluated at once; none can fail.
# `number` arguments may be booleans: true counts as 1, false as 0.


AggregateBound = Callable[[Sequence[Interval], float], Interval]
"""The arguments' intervals on a row, and the most rows a block can have (∞ if unknown)."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One row of the table; the types are written as in `functions`."""

    name: str
    takes: tuple[str, ...]
    gives: str
    sql: str
    bound: AggregateBound


def _aggregates_row(name: str, types: str, sql: str, bound: AggregateBound) -> AggregateFunction:
    takes, gives = types.split("->")
    return AggregateFunction(name, tuple(takes.split()), gives.strip(), sql, bound)


def _aggregates_plain(name: str, types: str, bound: AggregateBound) -> AggregateFunction:
    return _aggregates_row(name, types, f"{name}({{all}}){{f}}", bound)


def _inside(arguments: Sequence[Interval], _: float) -> Interval:
    """Between the least and the greatest of the rows' values."""
    return Interval(arguments[0].low, arguments[0].high)


def _sum(arguments: Sequence[Interval], rows: float) -> Interval:
    """Of one to `rows` terms."""
    x = arguments[0]
    low = x.low if x.low >= 0 else x.low * rows
    high = x.high if x.high <= 0 else x.high * rows
    return Interval(low, high)


def _count(_: Sequence[Interval], rows: float) -> Interval:
    return Interval(0.0, rows, null=False, nan=False)


def _spread(power: int, factor: float) -> AggregateBound:
    """From 0 to factor·(width of the interval)^power."""

    def bound(arguments: Sequence[Interval], _: float) -> Interval:
        width = arguments[0].high - arguments[0].low
        return Interval(0.0, factor * width if power == 1 else factor * width * width)

    return bound


def _covariance(factor: float) -> AggregateBound:
    def bound(arguments: Sequence[Interval], _: float) -> Interval:
        x, y = arguments
        if not (x.finite and y.finite):
            return Interval()
        most = factor * (x.high - x.low) * (y.high - y.low)
        return Interval(-most, most)

    return bound


def _always(low: float, high: float) -> AggregateBound:
    return lambda _arguments, _rows: Interval(low, high)


def _skewness(_: Sequence[Interval], rows: float) -> Interval:
    """|G₁| ≤ √n, attained when all values but one agree."""
    return Interval(-math.sqrt(rows), math.sqrt(rows))


def _anything(_arguments: Sequence[Interval], _rows: float) -> Interval:
    return Interval()


# From sums of powers as DuckDB's own, which fail where these give NaN: "SKEW is out of range!".
_N = "CAST(count({0}){f} AS DOUBLE)"
_S1, _S2, _S3, _S4 = (f"sum({'*'.join(['{0}'] * k)}){{f}}" for k in (1, 2, 3, 4))
_MEAN = f"({_S1} / nullif({_N}, 0e0))"
_M2 = f"({_S2} / nullif({_N}, 0e0) - {_MEAN} * {_MEAN})"
_M3 = (
    f"({_S3} / nullif({_N}, 0e0) - 3e0 * {_MEAN} * {_S2} / nullif({_N}, 0e0)"
    f" + 2e0 * {_MEAN} * {_MEAN} * {_MEAN})"
)
_M4 = (
    f"({_S4} / nullif({_N}, 0e0) - 4e0 * {_MEAN} * {_S3} / nullif({_N}, 0e0)"
    f" + 6e0 * {_MEAN} * {_MEAN} * {_S2} / nullif({_N}, 0e0)"
    f" - 3e0 * {_MEAN} * {_MEAN} * {_MEAN} * {_MEAN})"
)
_G1 = f"({_M3} / nullif(power({_M2}, 1.5e0), 0e0))"
_G2 = f"({_M4} / nullif({_M2} * {_M2}, 0e0) - 3e0)"
_SKEWNESS = f"({_G1} * sqrt({_N} * ({_N} - 1e0)) / nullif({_N} - 2e0, 0e0))"
_KURTOSIS = (
    f"((({_N} + 1e0) * {_G2} + 6e0) * ({_N} - 1e0) / nullif(({_N} - 2e0) * ({_N} - 3e0), 0e0))"
)

_ROWS = (
    _aggregates_plain("avg", "number -> number", _inside),
    _aggregates_plain("sum", "number -> number", _sum),
    _aggregates_row("count", "-> number", "CAST(count(*){f} AS DOUBLE)", _count),
    _aggregates_row("count", "any -> number", "CAST(count({0}){f} AS DOUBLE)", _count),
    # Not DuckDB's count_if, which is NULL where there is nothing to count.
    _aggregates_row(
        "count_if",
        "boolean -> number",
        "CAST(count(CASE WHEN {0} THEN 1 END){f} AS DOUBLE)",
        _count,
    ),
    _aggregates_plain("min", "number -> number", _inside),
    _aggregates_plain("min", "moment -> same", _anything),
    _aggregates_plain("max", "number -> number", _inside),
    _aggregates_plain("max", "moment -> same", _anything),
    _aggregates_plain("median", "number -> number", _inside),
    _aggregates_plain("quantile_cont", "number fraction -> number", _inside),
    _aggregates_plain("quantile_disc", "number fraction -> number", _inside),
    _aggregates_plain("stddev_samp", "number -> number", _spread(1, math.sqrt(0.5))),
    _aggregates_plain("stddev_pop", "number -> number", _spread(1, 0.5)),
    _aggregates_plain("var_samp", "number -> number", _spread(2, 0.5)),
    _aggregates_plain("var_pop", "number -> number", _spread(2, 0.25)),
    _aggregates_plain("mad", "number -> number", _spread(1, 0.5)),
    _aggregates_row("skewness", "number -> number", _SKEWNESS, _skewness),
    _aggregates_row("kurtosis", "number -> number", _KURTOSIS, _anything),
    _aggregates_row("kurtosis_pop", "number -> number", _G2, _anything),
    _aggregates_plain("corr", "number number -> number", _always(-1.0, 1.0)),
    _aggregates_plain("covar_samp", "number number -> number", _covariance(0.5)),
    _aggregates_plain("covar_pop", "number number -> number", _covariance(0.25)),
    _aggregates_plain("regr_slope", "number number -> number", _anything),
    _aggregates_plain("regr_intercept", "number number -> number", _anything),
    _aggregates_plain("regr_r2", "number number -> number", _always(0.0, 1.0)),
    _aggregates_plain("bool_and", "boolean -> boolean", _always(0.0, 1.0)),
    _aggregates_plain("bool_or", "boolean -> boolean", _always(0.0, 1.0)),
)

AGGREGATES = {each.name: tuple(row for row in _ROWS if row.name == each.name) for each in _ROWS}

AGGREGATE_ALIASES = {
    "mean": "avg",
    "countif": "count_if",
    "quantile": "quantile_disc",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "variance": "var_samp",
    "logical_and": "bool_and",
    "logical_or": "bool_or",
    "every": "bool_and",
}

_ORDER = "its value depends on the order of the rows, which is arbitrary"
_APPROXIMATE = "its value is an approximation that may change from run to run"
_BUILDER = "it builds a list, a map or a text, which can grow without bound"
_REGULAR = "a regular expression can take very long on some texts"
_CHANGES = "its value depends on more than the block: the time, the machine, the session or chance"
_CAST = "a cast can fail on some values, and a failure tells of the data"

REFUSED = {
    **dict.fromkeys(["first", "last", "any_value", "arbitrary", "arg_max", "arg_min"], _ORDER),
    **dict.fromkeys(["argmax", "argmin", "max_by", "min_by", "mode", "first_value"], _ORDER),
    **dict.fromkeys(["last_value", "nth_value", "row_number", "rank", "lag", "lead"], _ORDER),
    **dict.fromkeys(["approx_count_distinct", "approx_quantile", "approx_top_k"], _APPROXIMATE),
    **dict.fromkeys(["reservoir_quantile", "approx_median"], _APPROXIMATE),
    **dict.fromkeys(["list", "array_agg", "string_agg", "group_concat", "listagg"], _BUILDER),
    **dict.fromkeys(["histogram", "map", "concat", "concat_ws", "repeat", "lpad"], _BUILDER),
    **dict.fromkeys(["rpad", "replace", "format", "printf", "bitstring_agg"], _BUILDER),
    **dict.fromkeys(["list_value", "range", "generate_series", "unnest", "struct_pack"], _BUILDER),
    **dict.fromkeys(["regexp_matches", "regexp_full_match", "regexp_replace"], _REGULAR),
    **dict.fromkeys(["regexp_extract", "regexp_like"], _REGULAR),
    **dict.fromkeys(["random", "now", "today", "uuid", "gen_random_uuid", "getenv"], _CHANGES),
    **dict.fromkeys(["setseed", "current_setting", "version", "current_user"], _CHANGES),
    **dict.fromkeys(["current_date", "current_timestamp", "current_time", "nextval"], _CHANGES),
    **dict.fromkeys(["cast", "try_cast", "to_date", "strptime", "make_date"], _CAST),
}


# Why a part of SQL is refused, and what to write instead, by sqlglot's name of it.


_SUBQUERY = "Subqueries are not allowed: a question is one expression over the columns."
_LIST = "Lists, structs and maps are not allowed: they can grow without bound."
_NAMED = "Columns are written by their names alone, without a table or a field."
_PARAMETER = "Parameters are not allowed. Write the value itself."
_REASONS_REGULAR = "Regular expressions are not allowed: some take very long. Write x LIKE 'A%'."
_REASONS_ORDER = (
    "ORDER BY and LIMIT are not allowed in an aggregate. For a quantile write median(x)."
)
_BITS = "Operators on bits are not allowed: numbers are floats here."
_REASONS_TEXT = "Texts cannot be joined or built: they could grow without bound."
_STRING = "Text constants are written in plain single quotes."
_REASONS_CAST = (
    "Casts are not allowed: they can fail on some values, and a failure tells of the data."
    " Dates are written DATE '2024-12-31'."
)

CLASSES = {
    "All": _SUBQUERY,
    "Tuple": _LIST,
    **dict.fromkeys(["Dot", "Identifier"], _NAMED),
    "WithinGroup": _REASONS_ORDER,
    "Star": "A star is allowed in count(*) alone.",
    "Concat": _REASONS_TEXT,
    "Alias": "Names for results are not allowed.",
    "AtTimeZone": "Time zones are not allowed: timestamps are in UTC.",
    "Cast": _REASONS_CAST,
    "Distinct": "DISTINCT is allowed in count(DISTINCT x) alone.",
    **dict.fromkeys(
        ["IgnoreNulls", "RespectNulls"],
        "Aggregates leave NULL out by themselves. Leave the words out.",
    ),
}
"""sqlglot's class → why it is refused. A class that is not here is refused by its name."""

TOKENS = {
    **dict.fromkeys(["SELECT", "UNION", "EXCEPT", "INTERSECT", "WITH", "VALUES"], _SUBQUERY),
    **dict.fromkeys(["L_BRACKET", "L_BRACE"], _LIST),
    **dict.fromkeys(["DOT", "HASH"], _NAMED),
    **dict.fromkeys(["PLACEHOLDER", "PARAMETER"], _PARAMETER),
    **dict.fromkeys(["TILDE", "RLIKE", "IRLIKE", "SIMILAR_TO", "GLOB"], _REASONS_REGULAR),
    **dict.fromkeys(["ORDER_BY", "LIMIT", "OFFSET", "FETCH"], _REASONS_ORDER),
    **dict.fromkeys(["AMP", "PIPE", "XOR"], _BITS),
    **dict.fromkeys(["RAW_STRING", "HEX_STRING", "BYTE_STRING", "UNICODE_STRING"], _STRING),
    **dict.fromkeys(["BIT_STRING", "NATIONAL_STRING", "HEREDOC_STRING"], _STRING),
    **dict.fromkeys(["COLON_EQ", "FARROW"], "Arguments have no names here."),
    "ALIAS": f"Names for results are not allowed. {_REASONS_CAST}",
    "ARROW": "Lambdas are not allowed.",
    "COLLATE": "Collations are not allowed.",
    "DCOLON": _REASONS_CAST,
    "DIV": "// is not allowed. Write floor(x / y).",
    "DPIPE": _REASONS_TEXT,
    "ESCAPE": "LIKE takes no ESCAPE.",
    "ILIKE": "ILIKE is not allowed. Write lower(x) LIKE 'a%'.",
    "INTERVAL": "Intervals are not allowed. Write date_diff('day', a, b) or compare with a DATE.",
    "OVER": "Window functions are not allowed: a question is one value for each block.",
}
"""sqlglot's kind of token → why it is refused, or what was meant by a text that cannot be read."""

HINTS = {
    "max": " Write greatest(x, y) for the greater of two.",
    "min": " Write least(x, y) for the lesser of two.",
    "mode": " Ask for count_if(x = 1) / count(*) of the value that you mean.",
    "percentile_cont": " Write quantile_cont(x, 0.9).",
    "percentile_disc": " Write quantile_disc(x, 0.9).",
    "product": " Write exp(sum(ln(x))).",
    "geomean": " Write exp(avg(ln(x))).",
    "geometric_mean": " Write exp(avg(ln(x))).",
    "sem": " Write stddev_samp(x) / sqrt(count(x)).",
    "fsum": " Write sum(x).",
    "favg": " Write avg(x).",
    "approx_count_distinct": " Write count(DISTINCT x).",
    "approx_quantile": " Write quantile_cont(x, 0.9).",
    "=": " Types must agree; for NULL write x IS NULL.",
    "avg": " A text or a date has no average.",
    "sum": " A text or a date has no sum.",
    "starts_with": " The second argument is a constant text.",
    "ends_with": " The second argument is a constant text.",
    "contains": " The second argument is a constant text.",
    "+": " Dates cannot be added to; true and false are counted by count_if(x) or avg(x).",
    "-": " For times write date_diff('hour', a, b).",
    "date_diff": " The parts are year, quarter, month, week, day, hour, minute and second.",
    "quantile_cont": " The second argument is a constant from 0 to 1.",
    "quantile_disc": " The second argument is a constant from 0 to 1.",
    "round": " The digits are a whole constant from -15 to 15.",
}
"""Function or operator → what to do, when its arguments do not fit or it is not there."""


# Refusals: what is wrong with a text, in words that depend on it and the schema alone.


ALLOWED = {
    "question": "an SQL aggregate of the columns, as avg(x) or sum(x * w) / sum(w)",
    "term": "an SQL expression of one row, a truth value or a number from 0 to 1",
    "where": "an SQL condition on one row, as x > 60 AND group = 'A'",
}


class Refusal(Exception):
    """Some part of the text is not allowed; the message says which, why, and what to do."""


def refused(parameter: str, text: object, refusal: Refusal) -> InvalidInput:
    """The error that a user sees; a mean's term is the question too."""
    name = "question" if parameter == "term" else parameter
    return InvalidInput(name, text, ALLOWED[parameter], str(refusal))


def meant(name: str, known: Iterable[str]) -> str:
    """' Did you mean …?' if a known name is close, else nothing.

    >>> meant("arr_dely", ["dep_delay", "arr_delay"])
    " Did you mean 'arr_delay'?"
    """
    spelled = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower()[:100], spelled, n=1)
    return f" Did you mean {spelled[close[0]]!r}?" if close else ""


# The checked tree of a question: what is left of its text once every part of it is known.
#
# Four kinds of node, each with its type. Operators, CASE, IN and LIKE are calls of functions too.
# The
# tree knows nothing of the text it came from: the SQL that runs is written from the tree alone.


Kind = Literal["number", "boolean", "text", "date", "timestamp"]
Value = float | bool | str | datetime.date | datetime.datetime | None


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a text, a date, …; None is NULL of that type."""

    kind: Kind
    value: Value


@dataclass(frozen=True, slots=True)
class Reference:
    """A column, by the name it has in the schema."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function of one row's values, or of aggregates."""

    kind: Kind
    function: Function
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of all rows of a block, or of those for which `filter` is true."""

    kind: Kind
    function: AggregateFunction
    arguments: tuple[Node, ...]
    distinct: bool = False
    filter: Node | None = None


Node = Constant | Reference | Call | Aggregate


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below; an aggregate's filter comes last."""
    if isinstance(node, Constant | Reference):
        return ()
    if isinstance(node, Aggregate) and node.filter is not None:
        return (*node.arguments, node.filter)
    return node.arguments


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)


# Signatures: whether arguments fit what a function takes, and what becomes of them if they do.
#
# Types are settled before anything runs. Three things become another type by themselves: a text
# constant that is compared with a date or timestamp, a date that is compared with a timestamp,
# and a
# boolean that is averaged, summed or counted up.


_SIGNATURES_MOMENTS = ("date", "timestamp")
_SHARED = {
    "same": ("number", "boolean", "text", *_SIGNATURES_MOMENTS),
    "ordered": ("number", "text", *_SIGNATURES_MOMENTS),
    "measured": ("number", *_SIGNATURES_MOMENTS),
}
_DIGITS_MAX = 15


def fit(
    takes: Sequence[str], arguments: Sequence[Node], *, counts_booleans: bool = False
) -> tuple[tuple[Node, ...], Kind | None] | None:
    """The arguments, made to fit, and the type of `same`; None if they do not fit."""
    tokens = _tokens(takes, len(arguments))
    if tokens is None:
        return None
    shared = [x for token, x in zip(tokens, arguments, strict=True) if token in _SHARED]
    same = one_kind(shared) if shared else None
    if any(token in _SHARED and same not in _SHARED[token] for token in tokens):
        return None
    fitted = []
    for token, argument in zip(tokens, arguments, strict=True):
        each = _fitted(same if token in _SHARED else token, argument, counts_booleans)
        if each is None:
            return None
        fitted.append(each)
    if same is None and "moment" in tokens:
        same = fitted[0].kind
    return tuple(fitted), same


def _tokens(takes: Sequence[str], count: int) -> list[str] | None:
    if takes and takes[-1] == "…":
        fixed = list(takes[:-1])
        return None if count < len(fixed) else fixed + [fixed[-1]] * (count - len(fixed))
    return list(takes) if count == len(takes) else None


def one_kind(nodes: Sequence[Node]) -> Kind | None:
    """The one type that all of them have or can take."""
    kinds = {node.kind for node in nodes if not _is_null(node)}
    if "timestamp" in kinds or "date" in kinds:
        wanted: Kind = "timestamp" if "timestamp" in kinds else "date"
        return wanted if all(as_kind(wanted, node) is not None for node in nodes) else None
    return kinds.pop() if len(kinds) == 1 else None


def as_kind(kind: Kind, node: Node) -> Node | None:
    """The node as an expression of that type, if it is one or becomes one by itself."""
    if _is_null(node):
        return Constant(kind, None)
    if node.kind == kind:
        return node
    if isinstance(node, Constant) and kind in ("date", "timestamp"):
        return _moment(kind, node)
    if (node.kind, kind) == ("date", "timestamp"):
        return Call(kind, FUNCTIONS["as timestamp"][0], (node,))
    return None


def _is_null(node: Node) -> bool:
    return isinstance(node, Constant) and node.value is None


def _moment(kind: Kind, node: Constant) -> Constant | None:
    """A constant text, or date, as a date or timestamp."""
    value = node.value
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = value.isoformat()
    if not isinstance(value, str):
        return None
    try:
        if kind == "date":
            return Constant(kind, datetime.date.fromisoformat(value))
        moment = datetime.datetime.fromisoformat(value)
    except ValueError:
        return None
    return None if moment.tzinfo else Constant(kind, moment)


def _fitted(token: str | None, argument: Node, counts_booleans: bool) -> Node | None:
    if _is_null(argument):
        return None
    if token == "any":
        return argument
    if token == "moment":
        return argument if argument.kind in _SIGNATURES_MOMENTS else None
    if token in ("digits", "fraction", "pattern", "part"):
        return _constant(token, argument)
    if token == "number" and argument.kind == "boolean" and counts_booleans:
        return Call("number", FUNCTIONS["as number"][0], (argument,))
    return as_kind(token, argument) if token is not None else None  # type: ignore[arg-type]


def _constant(token: str, argument: Node) -> Constant | None:
    """The argument if it is a constant of that sort."""
    value = argument.value if isinstance(argument, Constant) else None
    if token == "part":
        part = value.lower() if isinstance(value, str) else None
        return Constant("text", part) if part in TIME_PARTS else None
    if token == "pattern":
        fits = isinstance(value, str)
    elif isinstance(value, bool) or not isinstance(value, float):
        fits = False
    else:
        whole = abs(value) <= _DIGITS_MAX and value == int(value)
        fits = whole if token == "digits" else 0.0 <= value <= 1.0
    return argument if fits and isinstance(argument, Constant) else None


# Calls: which row of the tables a name and its arguments mean, or why none.


CALLABLE = frozenset(name for name, rows in FUNCTIONS.items() if not rows[0].text)
"""Functions that are written name(…); the others are operators."""


def call_of(name: str, arguments: Sequence[Node]) -> Call:
    """The function of that name which takes these arguments."""
    for function in FUNCTIONS[name]:
        fitted = fit(function.takes, arguments)
        if fitted is not None:
            nodes, same = fitted
            kind = same if function.gives == "same" else function.gives
            return Call(kind, function, nodes)  # type: ignore[arg-type]
    raise _misfit(name, [row.takes for row in FUNCTIONS[name]], arguments)


def aggregate_of(name: str, arguments: Sequence[Node], *, distinct: bool) -> Aggregate:
    """The aggregate of that name which takes these arguments; booleans may count as numbers."""
    if any(contains_aggregate(each) for each in arguments):
        raise Refusal(f"{name} is taken of an aggregate. Aggregates cannot be nested.")
    for row in AGGREGATES[name]:
        fitted = fit(row.takes, arguments, counts_booleans=True)
        if fitted is not None:
            nodes, same = fitted
            kind = same if row.gives == "same" else row.gives
            return Aggregate(kind, row, nodes, distinct)  # type: ignore[arg-type]
    raise _misfit(name, [row.takes for row in AGGREGATES[name]], arguments)


def case_of(parts: Sequence[Node]) -> Call:
    """CASE of condition, result, …, and the result of ELSE; NULL takes the results' type."""
    conditions, results = parts[:-1:2], [*parts[1:-1:2], parts[-1]]
    if any(each.kind != "boolean" for each in conditions):
        raise Refusal("After WHEN write a condition: CASE WHEN x > 0 THEN 1 ELSE 0 END.")
    kind = one_kind(results)
    typed = [as_kind(kind, each) if kind else None for each in results]
    whole = [each for each in typed if each is not None]
    if kind is None or len(whole) < len(results):
        raise Refusal("The results of a CASE must have one type, and not all be NULL.")
    if kind == "text":
        raise Refusal("The results of a CASE cannot be texts. Compare the texts in its conditions.")
    mixed = [each for pair in zip(conditions, whole, strict=False) for each in pair]
    return Call(kind, FUNCTIONS["case"][0], (*mixed, whole[-1]))


def contains_aggregate(node: Node) -> bool:
    """Whether some part of it is an aggregate."""
    return any(isinstance(below, Aggregate) for below in walk(node))


def unknown(name: str) -> Refusal:
    """Why there is no such function here."""
    hint = HINTS.get(name, "")
    if name in REFUSED:
        return Refusal(f"{name} is not allowed: {REFUSED[name]}.{hint}")
    known = [*AGGREGATES, *AGGREGATE_ALIASES, *sorted(CALLABLE), *ALIASES]
    return Refusal(f"There is no function {name[:40]!r} here.{hint or meant(name, known)}")


def _misfit(name: str, signatures: Sequence[Sequence[str]], arguments: Sequence[Node]) -> Refusal:
    given = ", ".join(each.kind for each in arguments)
    taken = " or ".join(dict.fromkeys(f"({', '.join(takes)})" for takes in signatures))
    return Refusal(f"{name} takes {taken} and was given ({given}).{HINTS.get(name, '')}")


# LIKE without LIKE: patterns with one gap become comparisons that take linear time.
#
# A pattern with several gaps can take time that grows like a power of the text's length, so it is
# refused. 'A%' is starts_with, '%A' ends_with, '%A%' contains, 'A%Z' both ends, 'A' equality.


_ALLOWED = (
    "LIKE takes the patterns 'A%', '%A', '%A%', 'A%Z' and 'A', without _ and \\."
    " Join several with AND or OR."
)


def like(text: Node, pattern: str, call: Callable[[str, Sequence[Node]], Node]) -> Node:
    """The comparison that the pattern stands for."""
    while "%%" in pattern:
        pattern = pattern.replace("%%", "%")
    parts = pattern.split("%")
    if "_" in pattern or "\\" in pattern or len(parts) > 3 or (len(parts) == 3 and any(parts[::2])):
        raise Refusal(_ALLOWED)
    if len(parts) == 1:
        return call("=", [text, Constant("text", pattern)])
    if len(parts) == 3:
        return call("contains", [text, Constant("text", parts[1])])
    start, end = (Constant("text", part) for part in parts)
    first, last = call("starts_with", [text, start]), call("ends_with", [text, end])
    if not start.value or not end.value:
        return first if start.value or not end.value else last
    length = Constant("number", float(len(pattern) - 1))  # the two ends must not overlap
    return call("and", [first, last, call(">=", [call("length", [text]), length])])
