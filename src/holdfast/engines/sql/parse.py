"""Reading: a question's text becomes sqlglot's tree of it, or is refused.

The parser is sqlglot's for DuckDB with its knowledge of functions taken out: a call is a name and
arguments, and what the name means is looked up in one table, ours. sqlglot is pinned exactly, for
its trees change between releases; tests/engines/sql keeps a list of what is accepted and refused.

Some texts would keep sqlglot busy for hours, for it reads a part twice inside a part that it reads
twice. So its tokens are looked at first: those that no question can have are refused, and every
other word of SQL is a mere name. And its steps are counted, for whatever that does not catch.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from holdfast.engines.sql.reasons import TOKENS
from holdfast.engines.sql.refusals import Refusal
from holdfast.errors import Infeasible

__all__ = ["CHARACTERS_MAX", "keywords", "parse"]

CHARACTERS_MAX = 10_000
_STEPS, _STEPS_MORE = 5, 200  # for each token, and for all; questions take 1 to 2 for each
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_ALLOWED = """
VAR IDENTIFIER STRING NUMBER L_PAREN R_PAREN COMMA SEMICOLON PLUS DASH STAR SLASH MOD CARET DSTAR
EQ NEQ LT LTE GT GTE NULLSAFE_EQ AND OR NOT IS ISNULL NOTNULL IN BETWEEN LIKE CASE WHEN THEN ELSE
END NULL TRUE FALSE DISTINCT ALL FROM FILTER WHERE
"""


def parse(text: object) -> Any:
    """The tree of one expression; comments are gone."""
    import sqlglot.errors
    from sqlglot import exp

    checked = _characters(text)
    dialect, parser = _parser()
    words: list[str] = []
    try:
        tokens = dialect.tokenize(checked)
        words = _check_tokens(tokens)
        trees = parser(len(tokens)).parse_into(exp.Condition, tokens, checked)
    except sqlglot.errors.ParseError as error:
        reasons = [f" {TOKENS[word]}" for word in words if word in TOKENS]
        reason = "".join(reasons[:1])
        raise Refusal(f"It cannot be read as SQL{_place(error)}.{reason}") from None
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


@functools.cache
def _kinds() -> tuple[frozenset[Any], frozenset[Any], frozenset[Any]]:
    """The kinds of tokens that a question can have; those that can be a name; the types."""
    from sqlglot import TokenType
    from sqlglot.dialects.duckdb import DuckDB

    allowed = frozenset(TokenType[name] for name in _ALLOWED.split())
    dates = frozenset({TokenType.DATE, TokenType.TIMESTAMP, TokenType.TIMESTAMPNTZ})
    return allowed, frozenset(DuckDB.Parser.ID_VAR_TOKENS | DuckDB.Parser.FUNC_TOKENS), dates


def _check_tokens(tokens: list[Any]) -> list[str]:
    """Refuse what no question can have, and make every word without a meaning here a name.

    So `limit` is a column of that name, and never the clause. What comes back are those words, for
    the message if the text cannot be read.
    """
    from sqlglot import TokenType

    allowed, names, dates = _kinds()
    words = []
    kinds = [None, *(token.token_type for token in tokens), None]
    for before, token, after in zip(kinds, tokens, kinds[2:], strict=False):
        kind = token.token_type
        if kind in dates and (after == TokenType.STRING or before == TokenType.DCOLON):
            continue
        if kind in allowed or (kind == TokenType.DCOLON and after in dates):
            continue
        if kind == TokenType.DOT and after == TokenType.NUMBER:
            continue
        if kind not in names:
            raise Refusal(TOKENS.get(kind.name, f"{token.text.upper()[:40]} is not allowed."))
        words.append(kind.name)
        token.token_type = TokenType.VAR
    return words


@functools.cache
def _parser() -> tuple[Any, Any]:
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import ErrorLevel

    known: Any = DuckDB.Parser

    def started(self: Any, tokens: int) -> None:
        known.__init__(self, error_level=ErrorLevel.IMMEDIATE, dialect=dialect)
        self.steps_left = _STEPS * tokens + _STEPS_MORE

    def advance(self: Any, times: int = 1) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise Refusal("It takes too long to read. Write it with fewer brackets.")
        known._advance(self, times)

    ours = {
        "__init__": started,
        "_advance": advance,
        "FUNCTIONS": {},
        "FUNCTION_PARSERS": {"EXTRACT": known.FUNCTION_PARSERS["EXTRACT"]},
        "NO_PAREN_FUNCTIONS": {},
        "NO_PAREN_FUNCTION_PARSERS": {"CASE": known.NO_PAREN_FUNCTION_PARSERS["CASE"]},
    }
    dialect = DuckDB()
    try:
        made = type(known)("Parser", (known,), ours)
        made(0)
    except TypeError:  # of what is compiled nothing can be taken out
        needed, given = "sqlglot in Python alone", "its compiled form"
        raise Infeasible("SQL cannot be read", needed, given, "pip uninstall sqlglotc") from None
    return dialect, made


def _place(error: Any) -> str:
    """Where the parser stopped, as ' near character 7'."""
    first = error.errors[0] if error.errors else {}
    line, column = first.get("line"), first.get("col")
    if not isinstance(column, int) or line != 1:
        return ""
    return f" near character {column}"
