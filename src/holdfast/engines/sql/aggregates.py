"""The aggregates that a question may use, and the better known ones that it may not, with reasons.

In `sql`, {0}, {1} are the arguments and {f} is the FILTER. Every value is a function of the block's
rows alone, the same on every run and however many blocks are evaluated at once; none can fail.
`number` arguments may be booleans: true counts as 1, false as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.engines.sql.intervals import Interval

__all__ = ["AGGREGATES", "AGGREGATE_ALIASES", "REFUSED", "AggregateBound", "AggregateFunction"]

AggregateBound = Callable[[Sequence[Interval], float], Interval]
"""The arguments' intervals on a row, and the most rows a block can have (∞ if unknown)."""

_INFINITY = math.inf


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One row of the table; the types are written as in `functions`."""

    name: str
    takes: tuple[str, ...]
    gives: str
    sql: str
    bound: AggregateBound


def _row(name: str, types: str, sql: str, bound: AggregateBound) -> AggregateFunction:
    takes, gives = types.split("->")
    return AggregateFunction(name, tuple(takes.split()), gives.strip(), sql, bound)


def _plain(name: str, types: str, bound: AggregateBound) -> AggregateFunction:
    return _row(name, types, f"{name}({{all}}){{f}}", bound)


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
    _plain("avg", "number -> number", _inside),
    _plain("sum", "number -> number", _sum),
    _row("count", "-> number", "CAST(count(*){f} AS DOUBLE)", _count),
    _row("count", "any -> number", "CAST(count({0}){f} AS DOUBLE)", _count),
    # Not DuckDB's count_if, which is NULL where there is nothing to count.
    _row(
        "count_if",
        "boolean -> number",
        "CAST(count(CASE WHEN {0} THEN 1 END){f} AS DOUBLE)",
        _count,
    ),
    _plain("min", "number -> number", _inside),
    _plain("min", "moment -> same", _anything),
    _plain("max", "number -> number", _inside),
    _plain("max", "moment -> same", _anything),
    _plain("median", "number -> number", _inside),
    _plain("quantile_cont", "number fraction -> number", _inside),
    _plain("quantile_disc", "number fraction -> number", _inside),
    _plain("stddev_samp", "number -> number", _spread(1, math.sqrt(0.5))),
    _plain("stddev_pop", "number -> number", _spread(1, 0.5)),
    _plain("var_samp", "number -> number", _spread(2, 0.5)),
    _plain("var_pop", "number -> number", _spread(2, 0.25)),
    _plain("mad", "number -> number", _spread(1, 0.5)),
    _row("skewness", "number -> number", _SKEWNESS, _skewness),
    _row("kurtosis", "number -> number", _KURTOSIS, _anything),
    _row("kurtosis_pop", "number -> number", _G2, _anything),
    _plain("corr", "number number -> number", _always(-1.0, 1.0)),
    _plain("covar_samp", "number number -> number", _covariance(0.5)),
    _plain("covar_pop", "number number -> number", _covariance(0.25)),
    _plain("regr_slope", "number number -> number", _anything),
    _plain("regr_intercept", "number number -> number", _anything),
    _plain("regr_r2", "number number -> number", _always(0.0, 1.0)),
    _plain("bool_and", "boolean -> boolean", _always(0.0, 1.0)),
    _plain("bool_or", "boolean -> boolean", _always(0.0, 1.0)),
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
