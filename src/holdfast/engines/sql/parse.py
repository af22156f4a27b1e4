"""Reading: a question's text becomes sqlglot's tree of it, or is refused.

The parser is sqlglot's for DuckDB with its knowledge of functions taken out: a call is a name and
arguments, and what the name means is looked up in one table, ours. sqlglot is pinned exactly, for
its trees change between releases; tests/engines/sql keeps a list of what is accepted and refused.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import Any

from holdfast.engines.sql.refusals import Refusal
from holdfast.errors import Infeasible

__all__ = ["CHARACTERS_MAX", "keywords", "parse"]

CHARACTERS_MAX = 10_000
_TYPES_MAX = 6
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def parse(text: object) -> Any:
    """The tree of one expression; comments are gone."""
    import sqlglot.errors
    from sqlglot import exp

    checked = _characters(text)
    dialect, parser = _parser()
    try:
        tokens = dialect.tokenize(checked)
        _check_types(tokens)
        trees = parser().parse_into(exp.Condition, tokens, checked)
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
    if _NO_TEXT.search(text):
        raise Refusal("It contains a character that is no text: a zero byte or half a character.")
    return text


def _check_types(tokens: list[Any]) -> None:
    """Refuse what sqlglot would read for hours.

    A type with a bracket may be a call as well, and it tries both: twice the time for each such
    type inside another. No function that may be called here has the name of a type.
    """
    if len(tokens) <= 2 * _TYPES_MAX:  # a type and a bracket each
        return
    from sqlglot import TokenType
    from sqlglot.dialects.duckdb import DuckDB

    types, brackets = DuckDB.Parser.TYPE_TOKENS, (TokenType.L_PAREN, TokenType.L_BRACKET)
    pairs = itertools.pairwise(token.token_type for token in tokens)
    if sum(first in types and second in brackets for first, second in pairs) > _TYPES_MAX:
        raise Refusal("It names types, such as DECIMAL(…), too often.")


@functools.cache
def _parser() -> tuple[Any, Any]:
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import ErrorLevel

    known: Any = DuckDB.Parser
    ours = {
        "FUNCTIONS": {},
        "FUNCTION_PARSERS": {"EXTRACT": known.FUNCTION_PARSERS["EXTRACT"]},
        "NO_PAREN_FUNCTIONS": {},
        "NO_PAREN_FUNCTION_PARSERS": {"CASE": known.NO_PAREN_FUNCTION_PARSERS["CASE"]},
    }
    dialect = DuckDB()
    try:
        made = type(known)("Parser", (known,), ours)
        parser = functools.partial(made, error_level=ErrorLevel.IMMEDIATE, dialect=dialect)
        parser()
    except TypeError:  # of what is compiled nothing can be taken out
        needed, given = "sqlglot in Python alone", "its compiled form"
        raise Infeasible("SQL cannot be read", needed, given, "pip uninstall sqlglotc") from None
    return dialect, parser


def _place(error: Any) -> str:
    """Where the parser stopped, as ' near character 7'."""
    first = error.errors[0] if error.errors else {}
    line, column = first.get("line"), first.get("col")
    if not isinstance(column, int) or line != 1:
        return ""
    return f" near character {column}"
