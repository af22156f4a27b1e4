"""Reading: a question's text becomes sqlglot's tree of it, or is refused.

The parser is sqlglot's for DuckDB with its knowledge of functions taken out: a call is a name and
arguments, and what the name means is looked up in one table, ours. sqlglot is pinned exactly, for
its trees change between releases; tests/engines/sql keeps a list of what is accepted and refused.
"""

from __future__ import annotations

import functools
from typing import Any

from holdfast.engines.sql.refusals import Refusal

__all__ = ["CHARACTERS_MAX", "keywords", "parse"]

CHARACTERS_MAX = 10_000


def parse(text: object) -> Any:
    """The tree of one expression; comments are gone."""
    import sqlglot.errors
    from sqlglot import exp

    checked = _characters(text)
    dialect, parser = _parser()
    try:
        trees = parser().parse_into(exp.Condition, dialect.tokenize(checked), checked)
    except sqlglot.errors.ParseError as error:
        raise Refusal(f"It cannot be read as SQL{_place(error)}.") from None
    except sqlglot.errors.SqlglotError:
        raise Refusal("It cannot be read as SQL: a quote or comment is not closed.") from None
    except RecursionError:
        raise Refusal("It is nested too deeply. Write it with fewer brackets.") from None
    if len(trees) != 1 or trees[0] is None:
        raise Refusal("Write one expression, without a semicolon.")
    return trees[0]


@functools.cache
def keywords() -> frozenset[str]:
    """Words that are not taken for a column unless they are quoted, in capitals."""
    from sqlglot.dialects.duckdb import DuckDB

    return frozenset(DuckDB.Tokenizer.KEYWORDS)


def _characters(text: object) -> str:
    if not isinstance(text, str):
        raise Refusal("Write it as a text.")
    if len(text) > CHARACTERS_MAX:
        raise Refusal(f"It has {len(text):,} characters, and {CHARACTERS_MAX:,} are allowed.")
    if not text.strip():
        raise Refusal("It is empty.")
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text):
        raise Refusal("It contains a character that is no text: a zero byte or half a character.")
    return text


@functools.cache
def _parser() -> tuple[Any, Any]:
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import ErrorLevel

    known: Any = DuckDB.Parser

    class Parser(known):  # type: ignore[misc]
        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012 - so it is there
        FUNCTION_PARSERS = {"EXTRACT": known.FUNCTION_PARSERS["EXTRACT"]}  # noqa: RUF012
        NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # noqa: RUF012
        NO_PAREN_FUNCTION_PARSERS = {"CASE": known.NO_PAREN_FUNCTION_PARSERS["CASE"]}  # noqa: RUF012

    dialect = DuckDB()
    return dialect, functools.partial(Parser, error_level=ErrorLevel.IMMEDIATE, dialect=dialect)


def _place(error: Any) -> str:
    """Where the parser stopped, as ' near character 7'."""
    first = error.errors[0] if error.errors else {}
    line, column = first.get("line"), first.get("col")
    if not isinstance(column, int) or line != 1:
        return ""
    return f" near character {column}"
