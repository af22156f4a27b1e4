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
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from holdfast.engines.sql.language import (
    AGGREGATE_ALIASES,
    AGGREGATES,
    ALIASES,
    CALLABLE,
    CLASSES,
    FUNCTIONS,
    REFUSED,
    TOKENS,
    Aggregate,
    Constant,
    Kind,
    Node,
    Reference,
    Refusal,
    aggregate_of,
    as_kind,
    call_of,
    case_of,
    contains_aggregate,
    like,
    meant,
    unknown,
)
from holdfast.errors import Infeasible

__all__ = [
    "CHARACTERS_MAX",
    "DEPTH_MAX",
    "LIST_MAX",
    "NODES_MAX",
    "TEXT_MAX",
    "SchemaLike",
    "check",
    "keywords",
    "parse",
]

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


# Checking: sqlglot's tree of a text becomes the checked tree, or is refused.
#
# Every class of node that may occur is named in `_READERS`, with the parts it may have; every
# other
# class, every other part and every unknown name is refused. What comes out has a type at every
# node.


NODES_MAX = 500
DEPTH_MAX = 50
LIST_MAX = 1_000
TEXT_MAX = 1_000

_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_COMPARISONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_INFIX = {
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "Div": "/",
    "Mod": "%",
    "Pow": "power",
    "NullSafeEQ": "IS NOT DISTINCT FROM",
    "NullSafeNEQ": "IS DISTINCT FROM",
    **_COMPARISONS,
}
_EXTRACTED = {"dow": "dayofweek", "doy": "dayofyear"}
_DATES: dict[str, Kind] = {"DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMPNTZ": "timestamp"}


class SchemaLike(Protocol):
    """What is needed of a schema: the names, and the column of a name in any case."""

    @property
    def names(self) -> Sequence[str]:
        """The columns' names."""
        ...

    def find(self, name: str, /) -> Any:
        """The column of that name, or None."""
        ...


def check(tree: Any, schema: SchemaLike) -> Node:
    """The checked tree of sqlglot's tree."""
    return _Checker(schema).node(tree, 1)


class _Checker:
    def __init__(self, schema: SchemaLike) -> None:
        self._schema = schema
        self._count = 0

    def node(self, tree: Any, depth: int) -> Node:
        """The checked node, with all below it."""
        tree = _bare(tree)
        self._count += 1
        if self._count > NODES_MAX:
            raise Refusal(f"It has more than {NODES_MAX} parts. Ask for less at once.")
        if depth > DEPTH_MAX:
            raise Refusal(f"It is nested more than {DEPTH_MAX} deep. Write it with fewer brackets.")
        name = type(tree).__name__
        if name not in _READERS:
            raise Refusal(CLASSES.get(name, f"{name.upper()} is not allowed."))
        reader, parts = _READERS[name]
        _only(tree, parts)
        return reader(self, tree, depth)

    def column(self, tree: Any, _: int) -> Node:
        if type(tree.this).__name__ != "Identifier":
            raise Refusal(CLASSES.get(type(tree.this).__name__, CLASSES["Identifier"]))
        name = tree.this.this
        column = None if name.startswith("__") else self._schema.find(name)
        if column is not None:
            return Reference(column.kind, column.name)
        if not tree.this.args.get("quoted") and name.lower() in REFUSED:
            raise Refusal(f"{name} is not allowed: {REFUSED[name.lower()]}.")
        raise Refusal(f"There is no column {name[:40]!r}.{meant(name, self._schema.names)}")

    def literal(self, tree: Any, _: int) -> Node:
        text = tree.this
        if tree.args.get("is_string"):
            if len(text) > TEXT_MAX:
                raise Refusal(f"A text constant may have {TEXT_MAX:,} characters at most.")
            return Constant("text", text)
        value = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(value):
            raise Refusal(f"{text[:40]} is no number that a float can hold.")
        return Constant("number", value)

    def boolean(self, tree: Any, _: int) -> Node:
        return Constant("boolean", bool(tree.this))

    def null(self, _tree: Any, _: int) -> Node:
        raise Refusal("NULL is allowed as a result of CASE alone. For a test write x IS NULL.")

    def date(self, tree: Any, _: int) -> Node:
        """DATE '…' and TIMESTAMP '…', which sqlglot reads as casts of a text constant."""
        kind = _DATES.get(getattr(tree.args["to"].this, "name", ""))
        text = tree.this
        if kind is None or type(text).__name__ != "Literal" or not text.args.get("is_string"):
            raise Refusal(CLASSES["Cast"])
        node = as_kind(kind, self.literal(text, 0))
        if node is None:
            raise Refusal(f"{text.this[:40]!r} is no {kind}. Write {kind.upper()} '2024-12-31'.")
        return node

    def negative(self, tree: Any, depth: int) -> Node:
        node = self.node(tree.this, depth + 1)
        if isinstance(node, Constant) and isinstance(node.value, float):
            return Constant("number", 0.0 - node.value)
        return call_of("negative", [node])

    def negation(self, tree: Any, depth: int) -> Node:
        return call_of("not", [self.node(tree.this, depth + 1)])

    def infix(self, tree: Any, depth: int) -> Node:
        name = type(tree).__name__
        sides = tree.this, tree.expression
        if name in _COMPARISONS and any(type(side).__name__ in _COMPARISONS for side in sides):
            raise Refusal("Comparisons cannot be chained. Write a < b AND b < c.")
        return call_of(_INFIX[name], [self.node(side, depth + 1) for side in sides])

    def connective(self, tree: Any, depth: int) -> Node:
        """AND and OR of any number: a AND (b AND c) is a AND b AND c."""
        kind, parts, left = type(tree), [], [tree]
        while left:
            each = _bare(left.pop())
            if type(each) is kind:
                left += [each.expression, each.this]
            else:
                parts.append(self.node(each, depth + 1))
        return call_of(kind.__name__.lower(), parts)

    def is_(self, tree: Any, depth: int) -> Node:
        node = self.node(tree.this, depth + 1)
        right = _bare(tree.expression)
        if type(right).__name__ == "Null":
            return call_of("is null", [node])
        if type(right).__name__ == "Boolean":
            return call_of("IS NOT DISTINCT FROM", [node, self.boolean(right, 0)])
        raise Refusal("After IS write NULL, NOT NULL, TRUE or FALSE.")

    def between(self, tree: Any, depth: int) -> Node:
        parts = tree.this, tree.args["low"], tree.args["high"]
        return call_of("between", [self.node(each, depth + 1) for each in parts])

    def in_(self, tree: Any, depth: int) -> Node:
        if len(tree.expressions) > LIST_MAX:
            raise Refusal(f"IN takes {LIST_MAX:,} constants at most.")
        parts = [self.node(tree.this, depth + 1)]
        count = self._count
        for each in tree.expressions:
            parts.append(self.node(each, depth + 1))
            if not isinstance(parts[-1], Constant):
                raise Refusal("IN takes constants: x IN (1, 2, 3).")
            self._count = count  # a list has a limit of its own
        return call_of("in", parts)

    def like(self, tree: Any, depth: int) -> Node:
        node, pattern = self.node(tree.this, depth + 1), self.node(tree.expression, depth + 1)
        if node.kind != "text" or not isinstance(pattern, Constant) or pattern.kind != "text":
            raise Refusal("LIKE compares a text with a constant pattern: name LIKE 'A%'.")
        found = like(node, str(pattern.value), call_of)
        return call_of("not", [found]) if tree.args.get("negate") else found

    def case(self, tree: Any, depth: int) -> Node:
        operand = tree.args.get("this")
        parts: list[Node] = []
        for each in tree.args["ifs"]:
            _only(each, frozenset({"this", "true"}))
            condition = self.node(each.this, depth + 1)
            if operand is not None:
                condition = call_of("=", [self.node(operand, depth + 1), condition])
            parts += [condition, self._result(each.args["true"], depth)]
        return case_of([*parts, self._result(tree.args.get("default"), depth)])

    def _result(self, tree: Any, depth: int) -> Node:
        if tree is None or type(_bare(tree)).__name__ == "Null":
            return Constant("number", None)
        return self.node(tree, depth + 1)

    def extract(self, tree: Any, depth: int) -> Node:
        part = str(tree.this.this).lower()
        name = _EXTRACTED.get(part, part)
        if name not in FUNCTIONS or FUNCTIONS[name][0].takes not in (("moment",), ("timestamp",)):
            raise Refusal(f"EXTRACT takes year, month, day, hour, dow, … and not {part[:40]!r}.")
        return call_of(name, [self.node(tree.expression, depth + 1)])

    def function(self, tree: Any, depth: int) -> Node:
        if not isinstance(tree.this, str):
            raise Refusal("A function's name is written without quotes.")
        name = tree.this.lower()
        name = AGGREGATE_ALIASES.get(name, ALIASES.get(name, name))
        if name in AGGREGATES:
            return self.aggregate(name, tree.expressions, depth)
        if name in ("if", "iff") and len(tree.expressions) == 3:
            condition = self.node(tree.expressions[0], depth + 1)
            results = [self._result(each, depth) for each in tree.expressions[1:]]
            return case_of([condition, *results])
        if name not in CALLABLE:
            raise unknown(name)
        return call_of(name, [self.node(each, depth + 1) for each in tree.expressions])

    def aggregate(self, name: str, trees: Sequence[Any], depth: int) -> Aggregate:
        distinct = len(trees) == 1 and type(trees[0]).__name__ == "Distinct"
        if distinct:
            _only(trees[0], frozenset({"expressions"}))
            trees = trees[0].expressions
            if name != "count" or len(trees) != 1:
                raise Refusal(CLASSES["Distinct"])
        elif name == "count" and len(trees) == 1 and type(trees[0]).__name__ == "Star":
            _only(trees[0], frozenset())
            trees = []
        arguments = [self.node(each, depth + 1) for each in trees]
        return aggregate_of(name, arguments, distinct=distinct)

    def filter(self, tree: Any, depth: int) -> Node:
        node = self.node(tree.this, depth + 1)
        if not isinstance(node, Aggregate) or node.filter is not None:
            raise Refusal("FILTER follows an aggregate: avg(x) FILTER (WHERE y > 0).")
        condition = self.node(tree.expression.this, depth + 1)
        if condition.kind != "boolean" or contains_aggregate(condition):
            raise Refusal("FILTER takes a condition on one row: avg(x) FILTER (WHERE y > 0).")
        return Aggregate(node.kind, node.function, node.arguments, node.distinct, condition)


def _bare(tree: Any) -> Any:
    """What stands in the brackets."""
    while type(tree).__name__ == "Paren":
        tree = tree.this
    return tree


def _only(tree: Any, parts: frozenset[str]) -> None:
    """Refuse what a node has beyond the parts that are read."""
    for part, value in tree.args.items():
        if part not in parts and value not in (None, False, []):
            what = part.strip("_").upper()
            raise Refusal(CLASSES.get(type(value).__name__, f"{what} is not allowed here."))


_Reader = Callable[[_Checker, Any, int], Node]
_TWO = frozenset({"this", "expression"})
_READERS: dict[str, tuple[_Reader, frozenset[str]]] = {
    "Anonymous": (_Checker.function, frozenset({"this", "expressions"})),
    "Column": (_Checker.column, frozenset({"this"})),
    "Literal": (_Checker.literal, frozenset({"this", "is_string"})),
    "Boolean": (_Checker.boolean, frozenset({"this"})),
    "Null": (_Checker.null, frozenset()),
    "Cast": (_Checker.date, frozenset({"this", "to"})),
    "Neg": (_Checker.negative, frozenset({"this"})),
    "Not": (_Checker.negation, frozenset({"this"})),
    "And": (_Checker.connective, _TWO),
    "Or": (_Checker.connective, _TWO),
    "Is": (_Checker.is_, _TWO),
    "In": (_Checker.in_, frozenset({"this", "expressions"})),
    "Between": (_Checker.between, frozenset({"this", "low", "high"})),
    "Like": (_Checker.like, frozenset({"this", "expression", "negate"})),
    "Case": (_Checker.case, frozenset({"this", "ifs", "default"})),
    "Extract": (_Checker.extract, _TWO),
    "Filter": (_Checker.filter, _TWO),
    **dict.fromkeys(_INFIX, (_Checker.infix, _TWO)),
}
"""The whole list of sqlglot's classes that are read, and of the parts that they may have."""
