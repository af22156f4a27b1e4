"""What a question's text says by itself: constants, values that are known, and values that lack."""

from __future__ import annotations

import pytest

from holdfast.engines.sql.estimator import can_lack_value, comparisons, sql_estimator
from tests.engines.sql.tables import SCHEMA


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
