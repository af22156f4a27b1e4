"""3,000 random typed questions on the worst data: DuckDB reports not one error.

An error would depend on the data. None means that no evaluation was ever done again block by block.
"""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.engines.sql.engine import SqlEngine
from holdfast.engines.sql.estimator import sql_estimator, sql_term, to_text
from holdfast.engines.sql.language import (
    AGGREGATES,
    FUNCTIONS,
    Aggregate,
    AggregateFunction,
    Call,
    Function,
    walk,
)
from tests.engines.sql.expressions import Questions
from tests.engines.sql.tables import HOSTILE_SCHEMA

EACH = 500


def signature(row: Function | AggregateFunction) -> str:
    return f"{row.name}({', '.join(row.takes)})"


@pytest.mark.parametrize("seed", range(6))
def test_no_question_makes_the_engine_fail(hostile_engine: SqlEngine, seed: int) -> None:
    questions = Questions(HOSTILE_SCHEMA, seed)
    before, numbers = hostile_engine.fallbacks, 0
    for turn in range(EACH):
        text = to_text(questions.aggregate_question())
        where = to_text(questions.condition()) if turn % 5 == 0 else None
        estimator = sql_estimator(text, HOSTILE_SCHEMA, where)
        values = hostile_engine.values(estimator)
        assert hostile_engine.fallbacks == before, (text, where)
        numbers += int(np.count_nonzero(~np.isnan(values)))
    assert numbers > EACH  # the values are not all NaN


def test_no_term_makes_the_engine_fail(hostile_engine: SqlEngine) -> None:
    questions = Questions(HOSTILE_SCHEMA, 99)
    before = hostile_engine.fallbacks
    for turn in range(200):
        kind = questions.node("number" if turn % 2 else "boolean", 2, False)
        term = sql_term(to_text(kind), HOSTILE_SCHEMA, to_text(questions.condition()))
        sums = hostile_engine.sums(term)
        counts = hostile_engine.sums(sql_term(None, HOSTILE_SCHEMA, term.where))
        assert hostile_engine.fallbacks == before, term
        assert np.all((sums >= 0) & (sums <= counts))


def test_the_random_questions_use_every_function_and_aggregate() -> None:
    questions, used = Questions(HOSTILE_SCHEMA, 0), set[str]()
    for _ in range(EACH):
        for node in walk(questions.aggregate_question()):
            if isinstance(node, Aggregate | Call):
                used.add(signature(node.function))
    every = {signature(row) for rows in FUNCTIONS.values() for row in rows}
    every |= {signature(row) for rows in AGGREGATES.values() for row in rows}
    assert every - used == set()
