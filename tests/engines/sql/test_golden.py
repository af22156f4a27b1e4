"""The list of accepted and refused questions, and that a question has one text."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from holdfast.engines.sql import parser as parsing
from holdfast.engines.sql.estimator import sql_condition, sql_estimator, sql_term
from holdfast.engines.sql.language import AGGREGATE_ALIASES, AGGREGATES, ALIASES, CALLABLE, REFUSED
from holdfast.errors import Infeasible, InvalidInput
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


def test_terms_may_be_truth_values_numbers_or_the_constant_one() -> None:
    assert sql_term("X > 60", SCHEMA, where="arm = 'A'").text == "x > 60"
    assert sql_term("x", SCHEMA).text == "x"
    assert sql_term(None, SCHEMA, where="flag").text is None


def test_conditions_are_truth_values() -> None:
    assert sql_condition("X > 60", SCHEMA).boolean
    for where in ("x", "avg(x) > 0", None):
        with pytest.raises(InvalidInput) as caught:
            sql_condition(where, SCHEMA)
        assert caught.value.parameter == "where"


def test_estimators_are_equal_if_the_question_is() -> None:
    one, other = sql_estimator("AVG(x)", SCHEMA, "flag"), sql_estimator('avg("X")', SCHEMA, "FLAG")
    assert one == other
    assert hash(one) == hash(other)
    assert one != sql_estimator("avg(x)", SCHEMA)
    assert one.columns == ("flag", "x")


def test_no_name_is_both_allowed_and_refused() -> None:
    names = [*AGGREGATES, *AGGREGATE_ALIASES, *CALLABLE, *ALIASES]
    assert set(names) & set(REFUSED) == set()
    assert set(AGGREGATES) & set(CALLABLE) == set()
    assert len(names) == len(set(names))


def test_the_page_names_every_function() -> None:
    page = PAGE.read_text("utf-8")
    names = [*AGGREGATES, *AGGREGATE_ALIASES, *CALLABLE, *ALIASES]
    assert [name for name in names if f"`{name}" not in page and f"{name}(" not in page] == []


def test_a_compiled_sqlglot_is_refused_in_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlglot.dialects.duckdb import DuckDB

    known: type = DuckDB.Parser

    class Compiled(known):  # type: ignore[misc]
        def __new__(cls, *_: object, **__: object) -> None:  # type: ignore[misc]
            raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr(DuckDB, "Parser", Compiled)
    monkeypatch.setattr(parsing, "_parser", functools.cache(parsing._parser.__wrapped__))
    with pytest.raises(Infeasible, match="pip uninstall sqlglotc"):
        parsing.parse("avg(x)")
