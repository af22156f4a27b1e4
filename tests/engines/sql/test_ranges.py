"""Ranges hold for every value a question can have, and means are granted only where certain."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.engines.sql.engine import SqlEngine
from holdfast.engines.sql.estimator import can_lack_value, comparisons, sql_estimator, to_text
from holdfast.engines.sql.language import (
    AGGREGATES,
    Aggregate,
    Bound,
    ValueRange,
    absolute,
    add,
    divide,
    greatest,
    least,
    modulo,
    multiply,
    power,
    subtract,
)
from holdfast.store.blocks import BlockStore
from holdfast.store.table import Schema
from tests.engines.sql.expressions import Questions
from tests.engines.sql.tables import SCHEMA, write

RANGES = {"x": (-3.0, 4.0), "w": (0.0, 1.0), "n": (0.0, 11.0)}
UNITS = 25


Ends = tuple[float, float] | None


def listed(text: str) -> list[tuple[str, Ends]]:
    """Questions and the ends of their ranges."""
    found: list[tuple[str, Ends]] = []
    for each in text.strip().replace("\n", " ¦ ").split(" ¦ "):
        question, ends = each.split(" -> ")
        low, _, high = ends.partition(", ")
        found.append((question, None if ends == "none" else (float(low), float(high))))
    return found


RANGES_OF = """
corr(y, w) -> -1, 1 ¦ regr_r2(y, w) -> 0, 1 ¦ avg(flag) -> 0, 1 ¦ avg(y > 3) -> 0, 1
count_if(y > 3) / count(*) -> 0, 1 ¦ count(*) FILTER (WHERE y > 3) / count(*) -> 0, 1
count(*) -> 0, 25 ¦ count(DISTINCT arm) -> 0, 25 ¦ avg(x) -> -3, 4 ¦ median(x) -> -3, 4
quantile_cont(x, 0.9) -> -3, 4 ¦ avg(x) FILTER (WHERE flag) -> -3, 4 ¦ max(x) - min(x) -> -7, 7
avg(2 * x + 1) -> -5, 9 ¦ sum(w) -> 0, 25 ¦ sum(n * w) / sum(w) -> 0, 11
sum(x * w) / sum(w) -> -3, 4 ¦ sum(x) / count(*) -> -3, 4 ¦ stddev_pop(x) -> 0, 3.5
var_pop(x) -> 0, 12.25 ¦ var_samp(x) -> 0, 24.5 ¦ covar_pop(x, w) -> -1.75, 1.75
mad(x) -> 0, 3.5 ¦ skewness(y) -> -5, 5 ¦ avg(month(born)) -> 1, 12 ¦ max(hour(seen)) -> 0, 23
avg(x) > avg(y) -> 0, 1 ¦ bool_or(y > 3) -> 0, 1 ¦ avg(abs(x)) -> 0, 4
avg(least(greatest(y, 0), 10)) -> 0, 10 ¦ avg(CASE WHEN y > 3 THEN 5 ELSE x END) -> -3, 5
avg(sin(y)) -> -1, 1 ¦ avg(x / (n + 1)) -> -3, 4 ¦ avg(y) -> none ¦ sum(x) / sum(y) -> none
regr_slope(x, y) -> none ¦ avg(length(arm)) -> none ¦ avg(1 / w) -> none
"""


@pytest.mark.parametrize(("question", "expected"), listed(RANGES_OF))
def test_ranges(question: str, expected: Ends) -> None:
    assert sql_estimator(question, SCHEMA).range(RANGES, UNITS, True) == expected


def test_ranges_of_library_functions_are_a_little_wider() -> None:
    low, high = sql_estimator("exp(avg(x))", SCHEMA).range(RANGES, UNITS, True) or (0.0, 0.0)
    assert math.exp(-3) * (1 - 1e-14) < low < math.exp(-3)
    assert math.exp(4) < high < math.exp(4) * (1 + 1e-14)


@pytest.mark.parametrize("question", ["count(*)", "sum(w)", "count(DISTINCT arm)", "skewness(y)"])
def test_rows_are_not_bounded_if_units_have_several(question: str) -> None:
    assert sql_estimator(question, SCHEMA).range(RANGES, UNITS, False) is None


# A declared range binds nobody, and what may be NULL is no term of a mean.
MEANS = """
avg(x IS NULL) -> 0, 1 ¦ avg(coalesce(x > 60, FALSE)) -> 0, 1 ¦ avg(coalesce(flag, FALSE)) -> 0, 1
avg(CASE WHEN x > 60 THEN 1 ELSE 0 END) -> 0, 1
avg(CASE WHEN x > 60 THEN 1 ELSE -2 END * 3) -> -6, 3
avg(least(greatest(coalesce(x, 0), 0), 100)) -> 0, 100 ¦ avg(least(greatest(x, 0), 100)) -> 0, 100
avg(x IS NOT DISTINCT FROM y) -> 0, 1 ¦ avg(x) -> none ¦ avg(flag) -> none ¦ avg(x > 60) -> none
avg(CASE WHEN x > 60 THEN 1 END) -> none ¦ avg(greatest(least(coalesce(x - y, 0), 1), 0)) -> 0, 1
avg(least(greatest(coalesce(x - y, 0), 0), 1)) -> 0, 1
avg(greatest(coalesce(x - y, 0), 0)) -> none
avg(greatest(coalesce(least(ln(x), 1), 0), 0)) -> 0, 1
avg(greatest(coalesce(ln(x), 0), 0)) -> none ¦ avg(nullif(coalesce(w, 0), 0.5)) -> none
avg(x IS NULL) FILTER (WHERE flag) -> none ¦ avg(x IS NULL) + 0 -> none
median(x IS NULL) -> none ¦ sum(x IS NULL) / count(*) -> none ¦ avg(1) -> none
"""


@pytest.mark.parametrize(("question", "expected"), listed(MEANS))
def test_bounded_means(question: str, expected: Ends) -> None:
    estimator = sql_estimator(question, SCHEMA)
    assert estimator.bounded_mean(True) == expected
    assert estimator.bounded_mean(False) is None  # units of several rows
    assert sql_estimator(question, SCHEMA, "flag").bounded_mean(True) is None


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    """Numbers within the declared ranges, often at their ends, and NULLs, but no NaN."""
    generator, blocks, rows = np.random.default_rng(8), 6, 30
    size = blocks * rows
    columns = {}
    for name, (low, high) in {
        "x": (-3, 4),
        "y": (-1e300, 1e300),
        "w": (0, 1),
        "n": (0, 11),
    }.items():
        drawn = generator.choice([low, high, 0.0, 1.0, (low + high) / 2], size)
        if name == "y":
            drawn[generator.random(size) < 0.2] = np.inf
        columns[name] = pa.array(drawn, mask=generator.random(size) < 0.1)
    columns["flag"] = pa.array(generator.random(size) < 0.5, mask=generator.random(size) < 0.2)
    columns["arm"] = pa.array(generator.choice(["", "A", "SECRET"], size))
    days = generator.integers(-700_000, 2_900_000, size)
    columns["born"] = pa.array(days.astype(np.int32)).cast(pa.date32())
    columns["seen"] = pa.array(days * 86_399_000_000).cast(pa.timestamp("us"))
    folder = tmp_path_factory.mktemp("bounded")
    return write(folder, columns, Schema(SCHEMA.columns[:8]), blocks)


@pytest.fixture(scope="module")
def bounded_engine(bounded: BlockStore) -> Iterator[SqlEngine]:
    engine = SqlEngine(bounded, threads=1)
    yield engine
    engine.close()


def test_values_lie_in_their_ranges(bounded: BlockStore, bounded_engine: SqlEngine) -> None:
    questions, checked = Questions(bounded.schema, 11), 0
    for _ in range(400):
        estimator = sql_estimator(to_text(questions.aggregate_question()), bounded.schema)
        found = estimator.range(RANGES, bounded.units, True)
        if found is None:
            continue
        checked += 1
        low, high = found
        slack = 1e-9 * (1 + abs(low) + abs(high))  # sums round
        values = bounded_engine.values(estimator)
        inside = values[~np.isnan(values)]
        assert np.all((inside >= low - slack) & (inside <= high + slack)), (estimator, found)
    assert checked > 100


def test_terms_of_means_are_never_null_nor_outside(
    bounded: BlockStore, bounded_engine: SqlEngine
) -> None:
    """Checked row by row, by their least, their greatest and their number."""
    questions, checked = Questions(bounded.schema, 12, depth=3), 0
    (average,) = AGGREGATES["avg"]
    for turn in range(800):
        term = questions.node("number" if turn % 2 else "boolean", 3, False)
        text = to_text(term)
        try:
            estimator = sql_estimator(f"avg({text})", bounded.schema)
        except ValueError:  # a constant is folded, and may be nested too deeply
            continue
        found = estimator.bounded_mean(True)
        if found is None:
            continue
        assert isinstance(estimator.tree, Aggregate)
        assert estimator.tree.function is average
        checked += 1
        least_, most, count, nans = (
            bounded_engine.values(sql_estimator(question, bounded.schema))
            for question in (
                f"min({text})",
                f"max({text})",
                f"count({text})",
                f"count_if(isnan({text}))" if term.kind == "number" else "count_if(FALSE)",
            )
        )
        assert least_.min() >= found[0], text
        assert most.max() <= found[1], text
        assert np.all(count == bounded.units), text
        assert np.all(nans == 0), text
    assert checked > 50


numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, math.inf, -math.inf, 1e308, 5e-324]),
    st.floats(allow_nan=False),
)


def spanned(ends: tuple[float, float]) -> ValueRange:
    return ValueRange(min(ends), max(ends), null=False, nan=False)


def fmod(a: float, b: float) -> float | None:
    if b == 0:
        return None
    return math.nan if math.isinf(a) else math.fmod(a, b)


def powered(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.power(np.float64(a), np.float64(b)))


OPERATIONS: dict[str, tuple[Bound, Callable[[float, float], float | None]]] = {
    "add": (add, lambda a, b: a + b),
    "subtract": (subtract, lambda a, b: a - b),
    "multiply": (multiply, lambda a, b: a * b),
    "divide": (divide, lambda a, b: None if b == 0 else a / b),
    "modulo": (modulo, fmod),
    "power": (power, powered),
    "least": (least, min),
    "greatest": (greatest, max),
}


@pytest.mark.parametrize("name", OPERATIONS)
@given(x=st.tuples(numbers, numbers), y=st.tuples(numbers, numbers))
@example(x=(0.0, -0.0), y=(0.0, -1.0))
@example(x=(-0.0, 1.0), y=(-3.0, -3.0))
def test_intervals_hold_the_values_of_their_ends(
    name: str, x: tuple[float, float], y: tuple[float, float]
) -> None:
    bound, operation = OPERATIONS[name]
    found = bound([spanned(x), spanned(y)])
    for a, b in itertools.product(x, y):
        value = operation(a, b)
        if value is None:
            assert found.null
        elif math.isnan(value):
            assert found.nan
        else:
            assert found.low <= value <= found.high


@given(x=st.tuples(numbers, numbers), value=st.floats(0, 1))
def test_absolute_values(x: tuple[float, float], value: float) -> None:
    inside = spanned(x)
    point = inside.low + value * (inside.high - inside.low) if inside.finite else inside.high
    if not math.isnan(point) and inside.holds(point):
        assert absolute([inside]).holds(abs(point))


def test_null_makes_the_least_of_two_either() -> None:
    some, one = (
        ValueRange(0.0, 5.0, null=True, nan=False),
        ValueRange(1.0, 1.0, null=False, nan=False),
    )
    assert least([some, one]) == ValueRange(0.0, 1.0, null=False, nan=False)
    assert greatest([some, one]) == ValueRange(1.0, 5.0, null=False, nan=False)


# What a question's text says by itself: constants, values that are known, and values that lack.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("arm = 'A'", [("arm", "=", "A")]),
        ("'A' = arm", [("arm", "=", "A")]),
        (
            "arm <> 'A' OR NOT arm IN ('B', 'C')",
            [("arm", "<>", "A"), *(("arm", "=", t) for t in "BC")],
        ),
        ("arm IS NOT DISTINCT FROM 'A'", [("arm", "IS NOT DISTINCT FROM", "A")]),
        ("avg(x) FILTER (WHERE arm = 'A')", [("arm", "=", "A")]),
        (
            "count_if(CASE WHEN arm = 'A' THEN x > 3 ELSE flag END)",
            [("arm", "=", "A"), ("x", ">", 3.0)],
        ),
        ('3 >= x AND -2 < "Arr Delay"', [("x", "<=", 3.0), ("Arr Delay", ">", -2.0)]),
        ("x + 1 > 3 AND x > y AND lower(arm) = 'A' AND flag = TRUE", []),
        ("born > '2020-01-01' AND arm LIKE 'A%'", []),
        ("arm LIKE 'A'", [("arm", "=", "A")]),
    ],
)
def test_comparisons(text: str, expected: list[tuple[str, str, object]]) -> None:
    found = comparisons(text, SCHEMA)
    assert [(each.column, each.operator, each.constant) for each in found] == expected


@pytest.mark.parametrize(
    ("text", "filtered", "lacks"),
    [
        ("avg(x)", False, False),  # nothing filters
        ("avg(x)", True, True),
        ("median(x) - 3", True, True),
        ("avg(x) FILTER (WHERE flag)", False, True),
        ("count(*)", True, False),  # 0, which is its value
        ("count_if(flag) + count(DISTINCT arm)", True, False),
        ("coalesce(avg(x), 0)", True, False),
        ("count(*) FILTER (WHERE flag) / count(*)", False, True),
        ("count(*) FILTER (WHERE arm = 'FILTER')", False, False),
        ("count_if(arm = 'FILTER')", False, False),
    ],
)
def test_a_filter_can_leave_no_value(text: str, filtered: bool, lacks: bool) -> None:
    assert can_lack_value(text, SCHEMA, filtered) is lacks


def test_a_text_that_has_become_too_long_is_taken_for_what_it_may_be() -> None:
    """Written anew, a question has brackets and spaces that it had not."""
    many = ",".join(f"'{number:06}'" for number in range(1000))
    text = sql_estimator(f"count(*)FILTER(WHERE arm IN({many}))", SCHEMA).text
    assert len(text) > 10_000
    assert can_lack_value(text, SCHEMA, False)
    assert comparisons(text, SCHEMA) == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("count(*)", 25.0),
        ("count(1)", 25.0),
        ("count(x IS NULL)", 25.0),
        ("2 * count(*) - 1", 49.0),
        ("count(x)", None),
        ("count(DISTINCT 1)", None),
        ("count(*) FILTER (WHERE flag)", None),
        ("count(*) + 0 * count(x)", 25.0),
        ("sum(x) / count(*)", None),
        ("avg(x)", None),
    ],
)
def test_values_that_are_known(text: str, value: float | None) -> None:
    assert sql_estimator(text, SCHEMA).known_value(25, True) == value
    assert sql_estimator(text, SCHEMA).known_value(25, False) is None
    assert sql_estimator(text, SCHEMA, "flag").known_value(25, True) is None
