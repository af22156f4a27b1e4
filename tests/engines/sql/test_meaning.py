"""A question means what it means in DuckDB: precedence, LIKE, and one text for one meaning."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pytest

from holdfast.engines.sql.engine import SqlEngine
from holdfast.engines.sql.estimator import sql_condition, sql_estimator, sql_term, to_text, value_of
from holdfast.engines.sql.language import (
    AGGREGATES,
    FUNCTIONS,
    Aggregate,
    AggregateFunction,
    Call,
    Function,
    walk,
)
from holdfast.engines.sql.worker import Query
from holdfast.errors import InvalidInput
from holdfast.store.blocks import BlockStore
from tests.engines.sql.expressions import Questions
from tests.engines.sql.tables import HOSTILE_SCHEMA, SCHEMA, path_of, worker

ROWS = """
    SELECT x::DOUBLE AS x, y::DOUBLE AS y, w::DOUBLE AS w, flag, arm FROM (VALUES
        (2, 3, 0.5, TRUE, 'A'), (-1, 4, 0.25, FALSE, 'AB'), (7, -2, 1, NULL, ''),
        (NULL, 1, 0, TRUE, NULL), (0, 0, 2, FALSE, 'BAB'), (3, 3, 3, TRUE, 'ABA')
    ) AS t(x, y, w, flag, arm)
"""


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    connection = duckdb.connect()
    connection.execute("SET error_on_division_by_zero = false")
    connection.execute("SET ieee_floating_point_ops = false")  # a division by zero is NULL
    connection.execute(f"CREATE TABLE t AS {ROWS}")
    yield connection
    connection.close()


def one(connection: Any, sql: str) -> float | None:
    (value,) = connection.execute(f"SELECT CAST({sql} AS DOUBLE) FROM t").fetchone()
    return None if value is None or math.isnan(value) else value


def flat_number(random: np.random.Generator) -> str:
    """Operators in a row, without a bracket."""
    parts = [str(random.choice(["x", "y", "w", "2", "-3", "-x", "0.5"]))]
    for _ in range(random.integers(1, 5)):
        parts += [str(random.choice(["+", "-", "*", "/", "%"]))]
        parts += [str(random.choice(["x", "y", "w", "2", "-3", "- y", "4"]))]
    return " ".join(parts)


def flat_condition(random: np.random.Generator) -> str:
    def one_part() -> str:
        kind = random.integers(0, 7)
        if kind == 0:
            return "flag"
        if kind == 1:
            return f"{flat_number(random)} BETWEEN {flat_number(random)} AND y"
        if kind == 2:
            return f"{flat_number(random)} IS NULL"
        if kind == 3:
            return f"{flat_number(random)} NOT IN (1, 2, -3)"
        if kind == 4:
            return "arm LIKE 'A%'"
        sign = random.choice(["=", "<>", "<", ">=", "!=", "=="])
        return f"{flat_number(random)} {sign} {flat_number(random)}"

    parts = [one_part()]
    for _ in range(random.integers(1, 5)):
        parts += [str(random.choice(["AND", "OR", "AND NOT", "OR NOT"])), one_part()]
    return " ".join([str(random.choice(["NOT", ""])), *parts])


@pytest.mark.parametrize("seed", range(4))
def test_operators_bind_as_in_duckdb(connection: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(60):
        number, condition = flat_number(random), flat_condition(random)
        for text in (f"sum({number})", f"count(*) FILTER (WHERE {condition})"):
            mine = one(connection, sql_estimator(text, SCHEMA).aggregate)
            theirs = one(connection, text)
            assert mine == pytest.approx(theirs, rel=1e-12), text


def test_powers_bind_as_in_duckdb_and_a_division_by_zero_is_null(connection: Any) -> None:
    for text in ("-x ** 2", "2 ** x ** 2", "- x % 2", "x - -y", "2 * x ** 2 * y"):
        mine = one(connection, sql_estimator(f"sum({text})", SCHEMA).aggregate)
        assert mine == pytest.approx(one(connection, f"sum({text})")), text


def test_patterns_match_as_in_duckdb(connection: Any) -> None:
    random, allowed = np.random.default_rng(1), 0
    for _ in range(400):
        pattern = "".join(random.choice(["A", "B", "%", "AB", "_", "%%"], random.integers(0, 5)))
        text = f"count_if(arm LIKE '{pattern}')"
        try:
            mine = one(connection, sql_estimator(text, SCHEMA).aggregate)
        except InvalidInput:
            continue
        allowed += 1
        assert mine == one(connection, f"count(*) FILTER (WHERE arm LIKE '{pattern}')"), pattern
    assert allowed > 100

    assert one(connection, sql_estimator("sum(x / 0)", SCHEMA).aggregate) is None
    assert one(connection, sql_estimator("sum(x % 0)", SCHEMA).aggregate) is None
    assert one(connection, sql_estimator("count(1 / w)", SCHEMA).aggregate) == 5


def test_the_text_of_a_question_is_a_question_with_that_text() -> None:
    questions = Questions(HOSTILE_SCHEMA, 21)
    for _ in range(400):
        first = sql_estimator(
            to_text(questions.aggregate_question()), HOSTILE_SCHEMA, to_text(questions.condition())
        )
        second = sql_estimator(first.text, HOSTILE_SCHEMA, first.where)
        assert second == first
        assert (second.aggregate, second.filter) == (first.aggregate, first.filter)
        loud = sql_estimator(f"  ( {first.text}\n) /* again */ ", HOSTILE_SCHEMA, first.where)
        assert loud == first


# 3,000 random typed questions on the worst data: DuckDB reports not one error.


EACH = 500


def signature(row: Function | AggregateFunction) -> str:
    return f"{row.name}({', '.join(row.takes)})"


@pytest.mark.parametrize("seed", range(6))
def test_no_question_makes_duckdb_fail(hostile: BlockStore, seed: int) -> None:
    questions, asked = Questions(HOSTILE_SCHEMA, seed), []
    path, blocks = path_of(hostile), hostile.blocks
    for turn in range(EACH):
        text = to_text(questions.aggregate_question())
        where = to_text(questions.condition()) if turn % 5 == 0 else None
        number = value_of(sql_estimator(text, HOSTILE_SCHEMA, where))
        asked.append(Query(number, path, 0, blocks, whole=True))
    reply = worker(hostile)(asked)
    lengths = np.frombuffer(reply, np.uint64, EACH)
    assert [asked[k].number for k in np.flatnonzero(lengths != 8 * blocks)] == []  # have failed
    values = np.frombuffer(reply, np.float64, EACH * blocks, 8 * EACH)
    assert np.count_nonzero(~np.isnan(values)) > EACH  # the values are not all NaN


def test_no_term_makes_the_engine_fail(hostile_engine: SqlEngine) -> None:
    questions = Questions(HOSTILE_SCHEMA, 99)
    before = hostile_engine.fallbacks
    for turn in range(200):
        kind = questions.node("number" if turn % 2 else "boolean", 2, False)
        term = sql_term(to_text(kind), HOSTILE_SCHEMA)
        where = sql_condition(to_text(questions.condition()), HOSTILE_SCHEMA)
        sums = hostile_engine.sums(term, where)
        counts = hostile_engine.sums(None, where)
        assert hostile_engine.fallbacks == before, term
        assert np.all((sums >= 0) & (sums <= counts))
        terms = hostile_engine.sums(term, where, terms=True)
        assert hostile_engine.fallbacks == before, term
        assert terms.reshape(len(sums), -1).sum(axis=1).tolist() == sums.tolist()


def test_the_random_questions_use_every_function_and_aggregate() -> None:
    questions, used = Questions(HOSTILE_SCHEMA, 0), set[str]()
    for _ in range(EACH):
        for node in walk(questions.aggregate_question()):
            if isinstance(node, Aggregate | Call):
                used.add(signature(node.function))
    every = {signature(row) for rows in FUNCTIONS.values() for row in rows}
    every |= {signature(row) for rows in AGGREGATES.values() for row in rows}
    assert every - used == set()
