"""How long a text is read: the steps of sqlglot's parser are counted, so that nothing is timed.

sqlglot reads some parts twice, and a part inside another one four times: such a text of 265
characters took ten minutes, in the process that answers everybody.
"""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parser import Parser

from holdfast.engines.sql import parser as parsing
from holdfast.engines.sql.estimator import sql_estimator
from holdfast.engines.sql.language import Refusal
from holdfast.errors import InvalidInput
from holdfast.store.table import Column, Schema
from tests.engines.sql.tables import SCHEMA
from tests.engines.sql.test_golden import entries

STALL = "f(x LIMIT " * 24 + "1" + ")" * 24
TYPES = ["decimal(", "timestamp(", "struct(", "row(", "json(", "array[", "CAST(x AS decimal("]
LEVELS = 8
MOST, MORE = 5, 200
WORDS = [
    *sorted(DuckDB.Tokenizer.KEYWORDS),
    *sorted(DuckDB.Tokenizer.SINGLE_TOKENS),
    *("AT TIME ZONE", "WITHIN GROUP", "IGNORE NULLS", "EXTRACT", "x", "1", "'a'", '"x"'),
]
FORMS = [
    *("f(x {} ", "f(x, {} ", "f({} ", "f(x) {} (", "f(x) FILTER (WHERE {} (", "{}(", "({} ", "{} "),
    *("x {} ", "x {} (", "x IN ({} ", "x BETWEEN {} ( ", "x.{}(", "CASE {} ", "CASE WHEN x {} "),
    *("EXTRACT(year FROM {} (", "count(DISTINCT {} ", "DATE '2020-01-01' {} ("),
]


class Steps:
    """What sqlglot's parser has done for one text."""

    taken = 0
    most = 0
    refused = ""

    def of(self, text: str) -> float:
        """The steps for each token; too many end the test at once."""
        try:
            tokens = len(DuckDB().tokenize(text))
        except Exception:  # such a text is never parsed
            tokens = 1
        self.taken, self.most = 0, MOST * tokens + MORE
        self.refused = ""
        try:
            parsing.parse(text)
        except Refusal as refusal:
            self.refused = str(refusal)
        return self.taken / tokens


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    counted, advance = Steps(), Parser._advance

    def one(self: Any, times: int = 1) -> None:
        counted.taken += 1
        if counted.taken > counted.most:
            pytest.fail(f"more than {counted.most} steps")
        advance(self, times)

    monkeypatch.setattr(Parser, "_advance", one)
    return counted


@pytest.mark.parametrize("text", [STALL, f"avg({STALL})", f"sum(x) + {STALL}"], ids=len)
def test_the_text_that_stalled_the_server_is_refused_at_once(steps: Steps, text: str) -> None:
    assert steps.of(text) <= 2
    with pytest.raises(InvalidInput, match="ORDER BY and LIMIT are not allowed"):
        sql_estimator(text, SCHEMA)


@pytest.mark.parametrize("form", FORMS)
def test_no_nested_word_takes_long(
    steps: Steps, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the word: the check of tokens alone sees to that, without the limit of steps."""
    monkeypatch.setattr(parsing, "_STEPS", 10**9)
    for word in WORDS:
        opening = form.format(word)
        brackets = opening.count("(")
        for text in (
            opening * LEVELS + "1",
            opening * LEVELS + "1" + ")" * brackets * LEVELS,
            f"avg({opening * LEVELS}x{' END)' * LEVELS}",
        ):
            assert steps.of(text) < 4, text


@pytest.mark.parametrize("opening", TYPES)
def test_types_in_types_do_not_take_long(steps: Steps, opening: str) -> None:
    text = f"avg({opening * 50}x{')' * 50})"
    assert steps.of(text) < 4
    with pytest.raises(InvalidInput):
        sql_estimator(text, SCHEMA)


@pytest.mark.parametrize("opening", ["f(x LIMIT ", "decimal(", "struct("])
@pytest.mark.parametrize("levels", [12, 24, 40])
def test_the_limit_of_steps_alone_would_do(
    steps: Steps, opening: str, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the next such text, which the check of tokens lets through."""
    monkeypatch.setattr(parsing, "_check_tokens", lambda tokens: [])
    text = opening * levels + "1" + ")" * levels
    assert steps.of(text) <= MOST + MORE
    assert "takes too long to read" in steps.refused


def test_questions_are_far_from_the_limit(steps: Steps) -> None:
    questions = [
        question.removeprefix("where: ") for question, mark, _ in entries() if mark == "->"
    ]
    questions += ["sum(" + " + ".join(["x"] * 600) + ")"]
    questions += [f"count_if(x IN ({', '.join(map(str, range(1000)))}))"]
    assert max(map(steps.of, questions)) <= 2


@pytest.mark.parametrize("name", ["limit", "offset", "over", "date", "interval", "first", "range"])
def test_a_column_may_be_named_like_a_word_of_sql(name: str) -> None:
    schema = Schema((Column(name, "number"),))
    assert sql_estimator(f"avg({name})", schema) == sql_estimator(f'avg("{name}")', schema)
