"""What a question may be made of: this table of functions and operators is the whole list.

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

Bounds are intervals: between which numbers an expression's value lies, whatever the data. NaN sorts
above all numbers, as in DuckDB. +, −, ·, / and rounding are monotone in floating point as they are
over the reals, so the ends are exact; where a library computes (exp, ln, powers) the ends are moved
outwards by a few units in the last place.
"""

from __future__ import annotations

import datetime
import difflib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

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
    "AggregateFunction",
    "Bound",
    "Call",
    "Constant",
    "Function",
    "Kind",
    "Node",
    "Reference",
    "Value",
    "ValueRange",
    "hull",
    "meant",
    "walk",
]

# The checked tree of a question: what is left of its text once every part of it is known.
# Operators, CASE, IN and LIKE are calls too. The SQL that runs is written from it alone.

Kind = Literal["number", "boolean", "text", "date", "timestamp"]
Value = float | bool | str | datetime.date | datetime.datetime | None


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a text, a date, …; None is NULL of that type."""

    kind: Kind
    value: Value
    aggregated: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Reference:
    """A column, by the name it has in the schema."""

    kind: Kind
    name: str
    aggregated: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function of one row's values, or of aggregates."""

    kind: Kind
    function: Function
    arguments: tuple[Node, ...]

    @property
    def aggregated(self) -> bool:
        """Whether some part of it is an aggregate."""
        return any(each.aggregated for each in self.arguments)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of all rows of a block, or of those for which `filter` is true."""

    kind: Kind
    function: AggregateFunction
    arguments: tuple[Node, ...]
    distinct: bool = False
    filter: Node | None = None
    aggregated: ClassVar[bool] = True


Node = Constant | Reference | Call | Aggregate


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the text; a filter comes after its aggregate."""
    left = [node]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, Aggregate) and node.filter is not None:
            left.append(node.filter)
        if isinstance(node, Aggregate | Call):
            left += reversed(node.arguments)


def meant(name: str, known: Iterable[str]) -> str:
    """' Did you mean …?' if a known name is close, else nothing.

    >>> meant("arr_dely", ["dep_delay", "arr_delay"])
    " Did you mean 'arr_delay'?"
    """
    spelled = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower()[:100], spelled, n=1)
    return f" Did you mean {spelled[close[0]]!r}?" if close else ""


# Intervals, and how functions move them.

_LIBRARY_ULPS = 4  # more than any of glibc's functions is off


@dataclass(frozen=True, slots=True)
class ValueRange:
    """All numbers from low to high; perhaps NULL, perhaps NaN."""

    low: float = -math.inf
    high: float = math.inf
    null: bool = True
    nan: bool = True

    @property
    def finite(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    def holds(self, number: float) -> bool:
        return self.low <= number <= self.high


Bound = Callable[[Sequence[ValueRange]], ValueRange]


def _any_null(arguments: Sequence[ValueRange]) -> bool:
    return any(each.null for each in arguments)


def _any_nan(arguments: Sequence[ValueRange]) -> bool:
    return any(each.nan for each in arguments)


def between(low: float, high: float, *, nan: bool | None = False, null: bool = True) -> Bound:
    """Always between low and high; NULL perhaps of NULL; NaN perhaps of NaN if `nan` is None."""

    def bound(arguments: Sequence[ValueRange]) -> ValueRange:
        some = _any_nan(arguments) if nan is None else nan
        return ValueRange(low, high, null and _any_null(arguments), some)

    return bound


def _around(ends: Sequence[float], null: bool, nan: bool) -> ValueRange:
    """The interval of these ends; what is no number (∞ − ∞) bounds nothing."""
    low = min(-math.inf if math.isnan(x) else x for x in ends)
    high = max(math.inf if math.isnan(x) else x for x in ends)
    return ValueRange(low, high, null, nan)


def hull(intervals: Sequence[ValueRange]) -> ValueRange:
    """The smallest interval that holds all of them."""
    low, high = min(x.low for x in intervals), max(x.high for x in intervals)
    return ValueRange(low, high, _any_null(intervals), _any_nan(intervals))


def negate(arguments: Sequence[ValueRange]) -> ValueRange:
    """−x"""
    (x,) = arguments
    return replace(x, low=-x.high, high=-x.low)


def absolute(arguments: Sequence[ValueRange]) -> ValueRange:
    """|x|"""
    (x,) = arguments
    ends = abs(x.low), abs(x.high)
    return replace(x, low=0.0 if x.holds(0.0) else min(ends), high=max(ends))


def add(arguments: Sequence[ValueRange]) -> ValueRange:
    """x + y"""
    x, y = arguments
    nan = _any_nan(arguments) or not (x.finite or y.finite)
    low, high = x.low + y.low, x.high + y.high
    low = -math.inf if math.isnan(low) else low
    high = math.inf if math.isnan(high) else high
    return ValueRange(low, high, _any_null(arguments), nan)


def subtract(arguments: Sequence[ValueRange]) -> ValueRange:
    """x − y"""
    x, y = arguments
    return add([x, negate([y])])


def multiply(arguments: Sequence[ValueRange]) -> ValueRange:
    """x·y"""
    x, y = arguments
    nan = (not x.finite and y.holds(0.0)) or (not y.finite and x.holds(0.0))
    # 0·∞ is NaN as a value; as an end of values that are numbers it is 0.
    ends = [
        0.0 if 0.0 in (a, b) else a * b
        for a, b in itertools.product((x.low, x.high), (y.low, y.high))
    ]
    return _around(ends, _any_null(arguments), nan or _any_nan(arguments))


def divide(arguments: Sequence[ValueRange]) -> ValueRange:
    """x / y, where a division by 0 is NULL."""
    x, y = arguments
    null = _any_null(arguments) or y.holds(0.0)
    nan = _any_nan(arguments) or not (x.finite or y.finite)
    if not y.holds(0.0):
        ends = [a / b for a, b in itertools.product((x.low, x.high), (y.low, y.high))]
        return _around(ends, null, nan)
    same_sign = (x.low >= 0 and y.low >= 0) or (x.high <= 0 and y.high <= 0)
    return ValueRange(0.0 if same_sign else -math.inf, math.inf, null, nan)


def modulo(arguments: Sequence[ValueRange]) -> ValueRange:
    """The remainder has the sign of x and is smaller than |y|; of 0 it is NULL."""
    x, y = arguments
    most = max(abs(y.low), abs(y.high))
    low, high = (0.0 if x.low >= 0 else -most), (0.0 if x.high <= 0 else most)
    nan = _any_nan(arguments) or not x.finite
    return ValueRange(low, high, _any_null(arguments) or y.holds(0.0), nan)


def power(arguments: Sequence[ValueRange]) -> ValueRange:
    """For x ≥ 0 monotone in x and in y, so that the corners bound it; else whole powers alone."""
    x, y = arguments
    null, nan = _any_null(arguments), _any_nan(arguments)
    if x.low >= 0:
        corners = itertools.product((x.low, x.high), (y.low, y.high))
        ends = [_power(a, b) for a, b in corners]
        if x.low == 0 and y.low < 0 and (y.low < y.high or y.low % 2 == 1):
            ends.append(-math.inf)  # of −0, which is no lower than 0: power(−0, −1) is −∞
        return _outwards(_around(ends, null, nan))
    if y.low == y.high and y.low >= 0 and y.low.is_integer():
        ends = [_power(x.low, y.low), _power(x.high, y.low)]
        if y.low % 2 == 0 and x.holds(0.0):
            ends.append(0.0)
        if y.low == 0:
            ends = [1.0]
        return _outwards(_around(ends, null, nan))
    return ValueRange(null=null, nan=True)


def _power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:  # 0 to a negative power
        return math.inf


def _outwards(x: ValueRange) -> ValueRange:
    low, high = x.low, x.high
    for _ in range(_LIBRARY_ULPS):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return replace(x, low=low, high=high)


def monotone(
    function: Callable[[float], float],
    domain: tuple[float, float] = (-math.inf, math.inf),
    image: tuple[float, float] = (-math.inf, math.inf),
) -> Bound:
    """An increasing function of a library; NaN outside its domain, and inside its image always."""

    def at(end: float, otherwise: float) -> float:
        try:
            return function(end)
        except OverflowError:
            return math.inf if end > 0 else -math.inf
        except ValueError:  # an end of the domain, as ln 0
            return otherwise

    def bound(arguments: Sequence[ValueRange]) -> ValueRange:
        (x,) = arguments
        low, high = max(x.low, domain[0]), min(x.high, domain[1])
        nan = x.nan or x.low < domain[0] or x.high > domain[1]
        if low > high:
            return ValueRange(*image, x.null, nan)
        wide = _outwards(ValueRange(at(low, image[0]), at(high, image[1]), x.null, nan))
        return replace(wide, low=max(wide.low, image[0]), high=min(wide.high, image[1]))

    return bound


def same_steps(function: Callable[[float], float]) -> Bound:
    """Rounding to steps: increasing, the same everywhere, and infinity stays as it is."""

    def at(end: float) -> float:
        return end if math.isinf(end) else float(function(end))

    return lambda arguments: replace(
        arguments[0], low=at(arguments[0].low), high=at(arguments[0].high)
    )


def least(arguments: Sequence[ValueRange]) -> ValueRange:
    """The least of those that are not NULL; NaN is above all numbers."""
    every = hull(arguments)
    solid = [x for x in arguments if not x.null and not x.nan]
    high = min([every.high, *(x.high for x in solid)])
    null = all(x.null for x in arguments)
    return ValueRange(every.low, high, null, every.nan and not solid)


def greatest(arguments: Sequence[ValueRange]) -> ValueRange:
    """The greatest of those that are not NULL; NaN is above all numbers."""
    every = hull(arguments)
    low = max([every.low, *(x.low for x in arguments if not x.null)])
    return ValueRange(low, every.high, all(x.null for x in arguments), every.nan)


def coalesce(arguments: Sequence[ValueRange]) -> ValueRange:
    """The first that is not NULL."""
    last = next((n for n, x in enumerate(arguments) if not x.null), len(arguments) - 1)
    return replace(hull(arguments[: last + 1]), null=arguments[last].null)


def case(arguments: Sequence[ValueRange]) -> ValueRange:
    """CASE: condition, value, condition, value, …, and the value of ELSE."""
    values = [*arguments[1:-1:2], arguments[-1]]
    return hull(values)


# The functions and operators.

TIME_PARTS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


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


def _whole(arguments: Sequence[ValueRange]) -> ValueRange:
    down, up = same_steps(math.floor), same_steps(math.ceil)
    return replace(down(arguments), high=up(arguments).high)


def _rounded(arguments: Sequence[ValueRange]) -> ValueRange:
    x, digits = arguments
    step = 10.0**-digits.low
    return replace(x, low=x.low - step, high=x.high + step)


_TRUTH = between(0.0, 1.0)
_SURE = between(0.0, 1.0, null=False)
_TEXT = between(-math.inf, math.inf)
_ANYTHING = between(-math.inf, math.inf, nan=True)
_POSITIVE = (0.0, math.inf)
_UNIT = between(-1.0, 1.0, nan=True)

_OPERATORS = (
    _infix("+", "number number -> number", add),
    _infix("-", "number number -> number", subtract),
    _infix(
        "-", "date date -> number", between(-math.inf, math.inf), sql="CAST(({0} - {1}) AS DOUBLE)"
    ),
    _infix("*", "number number -> number", multiply),
    _infix("/", "number number -> number", divide, sql="({0} / nullif({1}, 0e0))"),
    _infix("%", "number number -> number", modulo, sql="({0} % nullif({1}, 0e0))"),
    _row("negative", "number -> number", "(-{0})", negate, "-{0}"),
    _infix("=", "same same -> boolean", _TRUTH),
    _infix("<>", "same same -> boolean", _TRUTH),
    _infix("<", "ordered ordered -> boolean", _TRUTH),
    _infix("<=", "ordered ordered -> boolean", _TRUTH),
    _infix(">", "ordered ordered -> boolean", _TRUTH),
    _infix(">=", "ordered ordered -> boolean", _TRUTH),
    _infix("IS DISTINCT FROM", "same same -> boolean", _SURE),
    _infix("IS NOT DISTINCT FROM", "same same -> boolean", _SURE),
    _row(
        "between",
        "ordered ordered ordered -> boolean",
        "({0} BETWEEN {1} AND {2})",
        _TRUTH,
        "{0} BETWEEN {1} AND {2}",
    ),
    _row("is null", "any -> boolean", "({0} IS NULL)", _SURE, "{0} IS NULL"),
    _row("not", "boolean -> boolean", "(NOT {0})", _TRUTH, "NOT {0}"),
    _row("and", "boolean boolean … -> boolean", "({and})", _TRUTH, "{and}"),
    _row("or", "boolean boolean … -> boolean", "({or})", _TRUTH, "{or}"),
    _row("in", "same same … -> boolean", "({0} IN ({rest}))", _TRUTH, "{0} IN ({rest})"),
    _row("case", "boolean measured … -> same", "({case})", case, "{case}"),
)

_NUMBERS = (
    _plain("abs", "number -> number", absolute),
    _plain("ceil", "number -> number", same_steps(math.ceil)),
    _plain("floor", "number -> number", same_steps(math.floor)),
    _plain("trunc", "number -> number", same_steps(math.trunc)),
    _plain("round", "number -> number", _whole),
    _row("round", "number digits -> number", "round({0}, CAST({1} AS INTEGER))", _rounded),
    _counted("sign", "number -> number", between(-1.0, 1.0)),
    _plain("sqrt", "number -> number", monotone(math.sqrt, _POSITIVE, _POSITIVE)),
    _plain("cbrt", "number -> number", monotone(math.cbrt)),
    _plain("exp", "number -> number", monotone(math.exp, image=_POSITIVE)),
    _plain("ln", "number -> number", monotone(math.log, _POSITIVE)),
    _plain("log", "number -> number", monotone(math.log10, _POSITIVE)),
    _plain("log", "number number -> number", _ANYTHING),
    _plain("log2", "number -> number", monotone(math.log2, _POSITIVE)),
    _plain("log10", "number -> number", monotone(math.log10, _POSITIVE)),
    _plain("power", "number number -> number", power),
    _row("mod", "number number -> number", "({0} % nullif({1}, 0e0))", modulo),
    _plain("sin", "number -> number", _UNIT),
    _plain("cos", "number -> number", _UNIT),
    _plain("tan", "number -> number", _ANYTHING),
    _plain("asin", "number -> number", monotone(math.asin, (-1.0, 1.0))),
    _plain("acos", "number -> number", between(0.0, 4.0, nan=True)),
    _plain("atan", "number -> number", monotone(math.atan)),
    _plain("atan2", "number number -> number", between(-4.0, 4.0, nan=True)),
    _plain("sinh", "number -> number", monotone(math.sinh)),
    _plain("cosh", "number -> number", between(1.0, math.inf, nan=None)),
    _plain("tanh", "number -> number", monotone(math.tanh, image=(-1.0, 1.0))),
    _plain("degrees", "number -> number", monotone(math.degrees)),
    _plain("radians", "number -> number", monotone(math.radians)),
    _plain("pi", "-> number", between(3.0, 4.0, nan=None)),
    _plain("isnan", "number -> boolean", _TRUTH),
    _plain("isinf", "number -> boolean", _TRUTH),
    _plain("isfinite", "number -> boolean", _TRUTH),
)

# None of these chooses between texts, but for coalesce, and nor does CASE: a comparison with a text
# that is always NULL, as nullif('', ''), is an error of DuckDB 2.0 while it plans.
_CHOICES = (
    _plain("coalesce", "same … -> same", coalesce),
    _plain("nullif", "measured measured -> same", lambda both: replace(both[0], null=True)),
    _plain("least", "measured measured … -> same", least),
    _plain("greatest", "measured measured … -> same", greatest),
)

_TEXTS = (
    _counted("length", "text -> number", between(0.0, math.inf)),
    _plain("lower", "text -> text", _TEXT),
    _plain("upper", "text -> text", _TEXT),
    _plain("trim", "text -> text", _TEXT),
    _plain("starts_with", "text pattern -> boolean", _TRUTH),
    _plain("ends_with", "text pattern -> boolean", _TRUTH),
    _plain("contains", "text pattern -> boolean", _TRUTH),
)

_MOMENTS = (
    _counted("year", "moment -> number", between(1, 9999)),
    _counted("quarter", "moment -> number", between(1, 4)),
    _counted("month", "moment -> number", between(1, 12)),
    _counted("week", "moment -> number", between(1, 53)),
    _counted("day", "moment -> number", between(1, 31)),
    _counted("dayofweek", "moment -> number", between(0, 6)),
    _counted("isodow", "moment -> number", between(1, 7)),
    _counted("dayofyear", "moment -> number", between(1, 366)),
    _counted("hour", "timestamp -> number", between(0, 23)),
    _counted("minute", "timestamp -> number", between(0, 59)),
    _counted("second", "timestamp -> number", between(0, 59)),
    _plain("epoch", "moment -> number", between(-math.inf, math.inf)),
    _counted("date_diff", "part date date -> number", between(-math.inf, math.inf)),
    _counted("date_diff", "part timestamp timestamp -> number", between(-math.inf, math.inf)),
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
CALLABLE = frozenset(name for name, rows in FUNCTIONS.items() if not rows[0].text)
"""Functions that are written name(…); the others are operators."""


# The aggregates. Every value is a function of the block's rows alone, the same on every run and
# however many blocks are evaluated at once; none can fail. `number` arguments may be booleans: true
# counts as 1, false as 0.

AggregateBound = Callable[[Sequence[ValueRange], float], ValueRange]
"""The arguments' intervals on a row, and the most rows a block can have (∞ if unknown)."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One row of the table. In `sql`, {0}, {1} are the arguments and {f} is the FILTER."""

    name: str
    takes: tuple[str, ...]
    gives: str
    sql: str
    bound: AggregateBound


def _aggregate(name: str, types: str, sql: str, bound: AggregateBound) -> AggregateFunction:
    takes, gives = types.split("->")
    return AggregateFunction(name, tuple(takes.split()), gives.strip(), sql, bound)


def _aggregated(name: str, types: str, bound: AggregateBound) -> AggregateFunction:
    return _aggregate(name, types, f"{name}({{all}}){{f}}", bound)


def _inside(arguments: Sequence[ValueRange], _: float) -> ValueRange:
    """Between the least and the greatest of the rows' values."""
    return ValueRange(arguments[0].low, arguments[0].high)


def _sum(arguments: Sequence[ValueRange], rows: float) -> ValueRange:
    """Of one to `rows` terms."""
    x = arguments[0]
    low = x.low if x.low >= 0 else x.low * rows
    high = x.high if x.high <= 0 else x.high * rows
    return ValueRange(low, high)


def _count(_: Sequence[ValueRange], rows: float) -> ValueRange:
    return ValueRange(0.0, rows, null=False, nan=False)


def _spread(power: int, factor: float) -> AggregateBound:
    """From 0 to factor·(width of the interval)^power."""

    def bound(arguments: Sequence[ValueRange], _: float) -> ValueRange:
        width = arguments[0].high - arguments[0].low
        return ValueRange(0.0, factor * width if power == 1 else factor * width * width)

    return bound


def _covariance(factor: float) -> AggregateBound:
    def bound(arguments: Sequence[ValueRange], _: float) -> ValueRange:
        x, y = arguments
        if not (x.finite and y.finite):
            return ValueRange()
        most = factor * (x.high - x.low) * (y.high - y.low)
        return ValueRange(-most, most)

    return bound


def _always(low: float, high: float) -> AggregateBound:
    return lambda _arguments, _rows: ValueRange(low, high)


def _skewness(_: Sequence[ValueRange], rows: float) -> ValueRange:
    """|G₁| ≤ √n, attained when all values but one agree."""
    return ValueRange(-math.sqrt(rows), math.sqrt(rows))


_anything = _always(-math.inf, math.inf)
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
    _aggregated("avg", "number -> number", _inside),
    _aggregated("sum", "number -> number", _sum),
    _aggregate("count", "-> number", "CAST(count(*){f} AS DOUBLE)", _count),
    _aggregate("count", "any -> number", "CAST(count({0}){f} AS DOUBLE)", _count),
    # Not DuckDB's count_if, which is NULL where there is nothing to count.
    _aggregate(
        "count_if",
        "boolean -> number",
        "CAST(count(CASE WHEN {0} THEN 1 END){f} AS DOUBLE)",
        _count,
    ),
    _aggregated("min", "number -> number", _inside),
    _aggregated("min", "moment -> same", _anything),
    _aggregated("max", "number -> number", _inside),
    _aggregated("max", "moment -> same", _anything),
    _aggregated("median", "number -> number", _inside),
    _aggregated("quantile_cont", "number fraction -> number", _inside),
    _aggregated("quantile_disc", "number fraction -> number", _inside),
    _aggregated("stddev_samp", "number -> number", _spread(1, math.sqrt(0.5))),
    _aggregated("stddev_pop", "number -> number", _spread(1, 0.5)),
    _aggregated("var_samp", "number -> number", _spread(2, 0.5)),
    _aggregated("var_pop", "number -> number", _spread(2, 0.25)),
    _aggregated("mad", "number -> number", _spread(1, 0.5)),
    _aggregate("skewness", "number -> number", _SKEWNESS, _skewness),
    _aggregate("kurtosis", "number -> number", _KURTOSIS, _anything),
    _aggregate("kurtosis_pop", "number -> number", _G2, _anything),
    _aggregated("corr", "number number -> number", _always(-1.0, 1.0)),
    _aggregated("covar_samp", "number number -> number", _covariance(0.5)),
    _aggregated("covar_pop", "number number -> number", _covariance(0.25)),
    _aggregated("regr_slope", "number number -> number", _anything),
    _aggregated("regr_intercept", "number number -> number", _anything),
    _aggregated("regr_r2", "number number -> number", _always(0.0, 1.0)),
    _aggregated("bool_and", "boolean -> boolean", _always(0.0, 1.0)),
    _aggregated("bool_or", "boolean -> boolean", _always(0.0, 1.0)),
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


# Why the rest is refused, and what to write instead, by sqlglot's name of it.

_SUBQUERY = "Subqueries are not allowed: a question is one expression over the columns."
_LIST = "Lists, structs and maps are not allowed: they can grow without bound."
_NAMED = "Columns are written by their names alone, without a table or a field."
_PARAMETER = "Parameters are not allowed. Write the value itself."
_NO_REGULAR = "Regular expressions are not allowed: some take very long. Write x LIKE 'A%'."
_NO_ORDER = "ORDER BY and LIMIT are not allowed in an aggregate. For a quantile write median(x)."
_BITS = "Operators on bits are not allowed: numbers are floats here."
_NO_TEXT = "Texts cannot be joined or built: they could grow without bound."
_STRING = "Text constants are written in plain single quotes."
_NO_CAST = (
    "Casts are not allowed: they can fail on some values, and a failure tells of the data."
    " Dates are written DATE '2024-12-31'."
)

CLASSES = {
    "All": _SUBQUERY,
    "Tuple": _LIST,
    **dict.fromkeys(["Dot", "Identifier"], _NAMED),
    "WithinGroup": _NO_ORDER,
    "Star": "A star is allowed in count(*) alone.",
    "Concat": _NO_TEXT,
    "Alias": "Names for results are not allowed.",
    "AtTimeZone": "Time zones are not allowed: timestamps are in UTC.",
    "Cast": _NO_CAST,
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
    **dict.fromkeys(["TILDE", "RLIKE", "IRLIKE", "SIMILAR_TO", "GLOB"], _NO_REGULAR),
    **dict.fromkeys(["ORDER_BY", "LIMIT", "OFFSET", "FETCH"], _NO_ORDER),
    **dict.fromkeys(["AMP", "PIPE", "XOR"], _BITS),
    **dict.fromkeys(["RAW_STRING", "HEX_STRING", "BYTE_STRING", "UNICODE_STRING"], _STRING),
    **dict.fromkeys(["BIT_STRING", "NATIONAL_STRING", "HEREDOC_STRING"], _STRING),
    **dict.fromkeys(["COLON_EQ", "FARROW"], "Arguments have no names here."),
    "ALIAS": f"Names for results are not allowed. {_NO_CAST}",
    "ARROW": "Lambdas are not allowed.",
    "COLLATE": "Collations are not allowed.",
    "DCOLON": _NO_CAST,
    "DIV": "// is not allowed. Write floor(x / y).",
    "DPIPE": _NO_TEXT,
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
