"""The list of accepted and refused questions, and that a question has one text."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parser import Parser

from holdfast.engines.sql import parser as parsing
from holdfast.engines.sql.estimator import sql_condition, sql_estimator, sql_term
from holdfast.engines.sql.language import AGGREGATE_ALIASES, AGGREGATES, ALIASES, CALLABLE, REFUSED
from holdfast.engines.sql.parser import Refusal
from holdfast.errors import Infeasible, InvalidInput
from holdfast.store.table import Column, Schema
from tests.engines.sql.tables import SCHEMA

GOLDEN = Path(__file__).with_name("golden.txt")
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "sql.md"


def entries() -> list[tuple[str, str, str]]:
    found = []
    for line in GOLDEN.read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        mark = " -> " if " -> " in line and " !! " not in line else " !! "
        question, expected = line.split(mark)
        found.append((question.strip(), mark.strip(), expected.strip()))
    return found


def one_text(question: str) -> str:
    if question.startswith("where: "):
        where = sql_estimator("count(*)", SCHEMA, question.removeprefix("where: ")).where
        assert where is not None
        return where
    return sql_estimator(question, SCHEMA).text


def listed(mark: str, least: int) -> list[tuple[str, str]]:
    found = [(question, rest) for question, each, rest in entries() if each == mark]
    assert len(found) > least
    return found


@pytest.mark.parametrize(("question", "text"), listed("->", 80), ids=lambda each: each[:60])
def test_accepted(question: str, text: str) -> None:
    assert one_text(question) == text
    prefix = "where: " if question.startswith("where: ") else ""
    assert one_text(prefix + text) == text  # the text is itself a question, and the same one


@pytest.mark.parametrize(("question", "words"), listed("!!", 90), ids=lambda each: each[:60])
def test_refused(question: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        one_text(question)
    assert words in str(caught.value)
    assert caught.value.parameter == ("where" if question.startswith("where: ") else "question")
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("question", [None, 3, b"avg(x)", ["avg(x)"]], ids=repr)
def test_what_is_no_text_is_refused(question: object) -> None:
    with pytest.raises(InvalidInput, match="Write it as a text"):
        sql_estimator(question, SCHEMA)


@pytest.mark.parametrize(
    ("term", "words"),
    [
        ("avg(x)", "averaged over the units already"),
        ("arm", "It is a text"),
        ("born", "It is a date"),
        ("z", "There is no column 'z'"),
    ],
)
def test_terms_are_of_one_row(term: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        sql_term(term, SCHEMA)
    assert caught.value.parameter == "question"


def test_terms_may_be_truth_values_or_numbers_and_conditions_are_truth_values() -> None:
    assert sql_term("X > 60", SCHEMA).text == "x > 60"
    assert sql_term("x", SCHEMA).text == "x"
    assert sql_condition("X > 60", SCHEMA).boolean
    for where in ("x", "avg(x) > 0", "arm = 5", "TRUE; DROP TABLE blocks", None):
        with pytest.raises(InvalidInput) as caught:
            sql_condition(where, SCHEMA)
        assert caught.value.parameter == "where"


def test_estimators_are_equal_if_the_question_is() -> None:
    one, other = sql_estimator("AVG(x)", SCHEMA, "flag"), sql_estimator('avg("X")', SCHEMA, "FLAG")
    assert one == other
    assert hash(one) == hash(other)
    assert one != sql_estimator("avg(x)", SCHEMA)
    assert one.columns == ("flag", "x")


def test_no_name_is_both_allowed_and_refused_and_the_page_has_all() -> None:
    names = [*AGGREGATES, *AGGREGATE_ALIASES, *CALLABLE, *ALIASES]
    assert set(names) & set(REFUSED) == set()
    assert set(AGGREGATES) & set(CALLABLE) == set()
    assert len(names) == len(set(names))
    page = PAGE.read_text("utf-8")
    assert [name for name in names if f"`{name}" not in page and f"{name}(" not in page] == []


def test_a_compiled_sqlglot_is_refused_in_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    known: type = DuckDB.Parser

    class Compiled(known):  # type: ignore[misc]
        def __new__(cls, *_: object, **__: object) -> None:  # type: ignore[misc]
            raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr(DuckDB, "Parser", Compiled)
    monkeypatch.setattr(parsing, "_parser", functools.cache(parsing._parser.__wrapped__))
    with pytest.raises(Infeasible, match="pip uninstall sqlglotc"):
        parsing.parse("avg(x)")


# How long a text is read: the steps of sqlglot's parser are counted, so that nothing is timed.


STALL = "f(x LIMIT " * 24 + "1" + ")" * 24
TYPES = ["decimal(", "timestamp(", "struct(", "row(", "json(", "array[", "CAST(x AS decimal("]
LEVELS = 5  # what is read twice at each takes 6 to 14 steps for a token
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
