"""Reading: a question's text becomes the checked tree, with a type at every node, or is refused.

The parser is sqlglot's for DuckDB with its knowledge of functions taken out: a call is a name and
arguments, and what the name means is looked up in one table, ours. sqlglot is pinned exactly, for
its trees change between releases; tests/engines/sql keeps a list of what is accepted and refused.

Some texts would keep sqlglot busy for hours, for it reads a part twice inside a part that it reads
twice. So its tokens are looked at first: those that no question can have are refused, and every
other word of SQL is a mere name. And its steps are counted, for whatever that does not catch.

Every class of node that may then occur is named in `_READERS`, with the parts it may have; every
other class, every other part and every unknown name is refused. Types are settled before anything
runs. Three things become another type by themselves: a text constant that is compared with a date
or timestamp, a date that is compared with a timestamp, and a boolean that is averaged or summed.
"""

from __future__ import annotations

import datetime
import functools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from holdfast.engines.sql.language import (
    AGGREGATE_ALIASES,
    AGGREGATES,
    ALIASES,
    CALLABLE,
    CLASSES,
    FUNCTIONS,
    HINTS,
    REFUSED,
    TIME_PARTS,
    TOKENS,
    Aggregate,
    AggregateFunction,
    Call,
    Constant,
    Function,
    Kind,
    Node,
    Reference,
    meant,
)
from holdfast.errors import Infeasible, InvalidInput

__all__ = [
    "ParsedSql",
    "Refusal",
    "SchemaLike",
    "aggregate_of",
    "call_of",
    "case_of",
    "keywords",
    "parse",
    "read",
    "reread",
]

_CHARACTERS_MAX = 10_000
_NODES_MAX = 500
_DEPTH_MAX = 50
_LIST_MAX = 1_000
_TEXT_MAX = 1_000
_DIGITS_MAX = 15
_STEPS, _STEPS_MORE = 5, 200  # for each token, and for all; questions take 1 to 2 for each
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_TOKENS = """
VAR IDENTIFIER STRING NUMBER L_PAREN R_PAREN COMMA SEMICOLON PLUS DASH STAR SLASH MOD CARET DSTAR
EQ NEQ LT LTE GT GTE NULLSAFE_EQ AND OR NOT IS ISNULL NOTNULL IN BETWEEN LIKE CASE WHEN THEN ELSE
END NULL TRUE FALSE DISTINCT ALL FROM FILTER WHERE
"""
_ALLOWED = {
    "question": "an SQL aggregate of the columns, as avg(x) or sum(x * w) / sum(w)",
    "term": "an SQL expression of one row, a truth value or a number from 0 to 1",
    "where": "an SQL condition on one row, as x > 60 AND group = 'A'",
}
_WANTED = {"question": "a number", "term": "a truth value or a number", "where": "a condition"}
_NO_AGGREGATE = {
    "term": "It is averaged over the units already: leave the aggregate out.",
    "where": "An aggregate cannot stand in it: it is about one row.",
}
_Row = TypeVar("_Row", Function, AggregateFunction)


class SchemaLike(Protocol):
    """What is needed of a schema: the names, and the column of a name in any case."""

    @property
    def names(self) -> Sequence[str]:
        """The columns' names."""
        ...

    def find(self, name: str, /) -> Any:
        """The column of that name, or None."""
        ...


class Refusal(Exception):
    """Some part of the text is not allowed; the message, which depends on it alone, says why."""


class ParsedSql(NamedTuple):
    """What was read: the tree, the columns in it, and whether it counts distinct values."""

    tree: Node
    columns: frozenset[str]
    distinct: bool


def read(what: str, text: object, schema: SchemaLike) -> ParsedSql:
    """What a `question`, a mean's `term` or a condition, `where`, says."""
    reader = _Reader(schema)
    try:
        tree = reader.node(parse(text), 1)
        if what == "question":
            if not tree.aggregated:
                raise Refusal(f"It has no aggregate. Known are {', '.join(AGGREGATES)}.")
            left = [tree]
            while left:
                each = left.pop()
                if isinstance(each, Reference):
                    raise Refusal(
                        f"The column {each.name!r} stands outside an aggregate, and has no one"
                        f" value for a block. Write avg({each.name}) or the like."
                    )
                if isinstance(each, Call):
                    left += reversed(each.arguments)
        elif tree.aggregated:
            raise Refusal(_NO_AGGREGATE[what])
        if tree.kind != "boolean" and (what == "where" or tree.kind != "number"):
            raise Refusal(f"It is a {tree.kind}, not {_WANTED[what]}.")
    except Refusal as refusal:
        name = "question" if what == "term" else what
        raise InvalidInput(name, text, _ALLOWED[what], str(refusal)) from None
    return ParsedSql(tree, frozenset(reader.columns), reader.distinct)


def reread(text: str, schema: SchemaLike) -> Node | None:
    """The tree that the text was written from; None if it has become too long."""
    try:
        return _Reader(schema).node(parse(text), 1)
    except Refusal:
        return None


def parse(text: object) -> Any:
    """sqlglot's tree of one expression; comments are gone."""
    import sqlglot.errors
    from sqlglot import exp
    from sqlglot.errors import ErrorLevel

    if not isinstance(text, str):
        raise Refusal("Write it as a text.")
    if len(text) > _CHARACTERS_MAX:
        raise Refusal(f"It has {len(text):,} characters, and {_CHARACTERS_MAX:,} are allowed.")
    if not text.strip():
        raise Refusal("It is empty.")
    if _NO_TEXT.search(text):
        raise Refusal("It contains a character that is no text: a zero byte or half a character.")
    dialect, parser = _parser()
    words: list[str] = []
    try:
        tokens = dialect.tokenize(text)
        words = _check_tokens(tokens)
        reader = parser(error_level=ErrorLevel.IMMEDIATE, dialect=dialect)
        reader.steps_left = _STEPS * len(tokens) + _STEPS_MORE
        trees = reader.parse_into(exp.Condition, tokens, text)
    except sqlglot.errors.ParseError as error:
        reason = next((f" {TOKENS[word]}" for word in words if word in TOKENS), "")
        first = error.errors[0] if error.errors else {}
        line, column = first.get("line"), first.get("col")
        place = f" near character {column}" if isinstance(column, int) and line == 1 else ""
        raise Refusal(f"It cannot be read as SQL{place}.{reason}") from None
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


@functools.cache
def _kinds() -> tuple[frozenset[Any], frozenset[Any], frozenset[Any]]:
    """The kinds of tokens that a question can have; those that can be a name; the types."""
    from sqlglot import TokenType
    from sqlglot.dialects.duckdb import DuckDB

    allowed = frozenset(TokenType[name] for name in _TOKENS.split())
    dates = frozenset({TokenType.DATE, TokenType.TIMESTAMP, TokenType.TIMESTAMPNTZ})
    return allowed, frozenset(DuckDB.Parser.ID_VAR_TOKENS | DuckDB.Parser.FUNC_TOKENS), dates


def _check_tokens(tokens: list[Any]) -> list[str]:
    """Refuse what no question can have, and make every word without a meaning here a name.

    So `limit` is a column of that name, and never the clause. What comes back are those words, for
    the message if the text cannot be read.
    """
    from sqlglot import TokenType

    allowed, names, dates = _kinds()
    words: list[str] = []
    before: Any = None
    for place, token in enumerate(tokens, 1):
        kind, earlier = token.token_type, before
        before = kind
        after = tokens[place].token_type if place < len(tokens) else None
        if kind in dates and (after == TokenType.STRING or earlier == TokenType.DCOLON):
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

    known: Any = DuckDB.Parser

    def advance(self: Any, times: int = 1) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise Refusal("It takes too long to read. Write it with fewer brackets.")
        known._advance(self, times)

    ours = {
        "_advance": advance,
        "FUNCTIONS": {},
        "FUNCTION_PARSERS": {"EXTRACT": known.FUNCTION_PARSERS["EXTRACT"]},
        "NO_PAREN_FUNCTIONS": {},
        "NO_PAREN_FUNCTION_PARSERS": {"CASE": known.NO_PAREN_FUNCTION_PARSERS["CASE"]},
    }
    dialect = DuckDB()
    try:
        made = type(known)("Parser", (known,), ours)
        made(dialect=dialect)
    except TypeError:  # of what is compiled nothing can be taken out
        needed, given = "sqlglot in Python alone", "its compiled form"
        raise Infeasible("SQL cannot be read", needed, given, "pip uninstall sqlglotc") from None
    return dialect, made


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


@dataclass
class _Reader:
    schema: SchemaLike
    columns: set[str] = field(default_factory=set)
    distinct: bool = False
    count: int = 0  # of nodes so far

    def node(self, tree: Any, depth: int) -> Node:
        """The checked node, with all below it."""
        tree = _bare(tree)
        self.count += 1
        if self.count > _NODES_MAX:
            raise Refusal(f"It has more than {_NODES_MAX} parts. Ask for less at once.")
        if depth > _DEPTH_MAX:
            raise Refusal(
                f"It is nested more than {_DEPTH_MAX} deep. Write it with fewer brackets."
            )
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
        column = None if name.startswith("__") else self.schema.find(name)
        if column is not None:
            self.columns.add(column.name)
            return Reference(column.kind, column.name)
        if not tree.this.args.get("quoted") and name.lower() in REFUSED:
            raise Refusal(f"{name} is not allowed: {REFUSED[name.lower()]}.")
        raise Refusal(f"There is no column {name[:40]!r}.{meant(name, self.schema.names)}")

    def literal(self, tree: Any, _: int) -> Node:
        text = tree.this
        if tree.args.get("is_string"):
            if len(text) > _TEXT_MAX:
                raise Refusal(f"A text constant may have {_TEXT_MAX:,} characters at most.")
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
        node = _as_kind(kind, self.literal(text, 0))
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
        if len(tree.expressions) > _LIST_MAX:
            raise Refusal(f"IN takes {_LIST_MAX:,} constants at most.")
        parts = [self.node(tree.this, depth + 1)]
        count = self.count
        for each in tree.expressions:
            parts.append(self.node(each, depth + 1))
            if not isinstance(parts[-1], Constant):
                raise Refusal("IN takes constants: x IN (1, 2, 3).")
            self.count = count  # a list has a limit of its own
        return call_of("in", parts)

    def like(self, tree: Any, depth: int) -> Node:
        node, pattern = self.node(tree.this, depth + 1), self.node(tree.expression, depth + 1)
        if node.kind != "text" or not isinstance(pattern, Constant) or pattern.kind != "text":
            raise Refusal("LIKE compares a text with a constant pattern: name LIKE 'A%'.")
        found = _like(node, str(pattern.value))
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
        trees = tree.expressions
        if name in AGGREGATES:
            distinct = len(trees) == 1 and type(trees[0]).__name__ == "Distinct"
            if distinct:
                _only(trees[0], frozenset({"expressions"}))
                trees = trees[0].expressions
                if name != "count" or len(trees) != 1:
                    raise Refusal(CLASSES["Distinct"])
                self.distinct = True
            elif name == "count" and len(trees) == 1 and type(trees[0]).__name__ == "Star":
                _only(trees[0], frozenset())
                trees = []
            arguments = [self.node(each, depth + 1) for each in trees]
            return aggregate_of(name, arguments, distinct=distinct)
        if name in ("if", "iff") and len(trees) == 3:
            condition = self.node(trees[0], depth + 1)
            results = [self._result(each, depth) for each in trees[1:]]
            return case_of([condition, *results])
        if name not in CALLABLE:
            raise _unknown(name)
        return call_of(name, [self.node(each, depth + 1) for each in trees])

    def filter(self, tree: Any, depth: int) -> Node:
        node = self.node(tree.this, depth + 1)
        if not isinstance(node, Aggregate) or node.filter is not None:
            raise Refusal("FILTER follows an aggregate: avg(x) FILTER (WHERE y > 0).")
        condition = self.node(tree.expression.this, depth + 1)
        if condition.kind != "boolean" or condition.aggregated:
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


_Read = Callable[[_Reader, Any, int], Node]
_TWO = frozenset({"this", "expression"})
_READERS: dict[str, tuple[_Read, frozenset[str]]] = {
    "Anonymous": (_Reader.function, frozenset({"this", "expressions"})),
    "Column": (_Reader.column, frozenset({"this"})),
    "Literal": (_Reader.literal, frozenset({"this", "is_string"})),
    "Boolean": (_Reader.boolean, frozenset({"this"})),
    "Null": (_Reader.null, frozenset()),
    "Cast": (_Reader.date, frozenset({"this", "to"})),
    "Neg": (_Reader.negative, frozenset({"this"})),
    "Not": (_Reader.negation, frozenset({"this"})),
    "And": (_Reader.connective, _TWO),
    "Or": (_Reader.connective, _TWO),
    "Is": (_Reader.is_, _TWO),
    "In": (_Reader.in_, frozenset({"this", "expressions"})),
    "Between": (_Reader.between, frozenset({"this", "low", "high"})),
    "Like": (_Reader.like, frozenset({"this", "expression", "negate"})),
    "Case": (_Reader.case, frozenset({"this", "ifs", "default"})),
    "Extract": (_Reader.extract, _TWO),
    "Filter": (_Reader.filter, _TWO),
    **dict.fromkeys(_INFIX, (_Reader.infix, _TWO)),
}
"""The whole list of sqlglot's classes that are read, and of the parts that they may have."""


# Signatures: whether arguments fit what a function takes, and what becomes of them if they do.

_MOMENTS = ("date", "timestamp")
_SHARED = {
    "same": ("number", "boolean", "text", *_MOMENTS),
    "ordered": ("number", "text", *_MOMENTS),
    "measured": ("number", *_MOMENTS),
}


def _fit(
    takes: Sequence[str], arguments: Sequence[Node], counts_booleans: bool
) -> tuple[tuple[Node, ...], Kind | None] | None:
    """The arguments, made to fit, and the type of `same`; None if they do not fit."""
    tokens = list(takes)
    if tokens[-1:] == ["…"]:  # the one before, as often as there are arguments for it
        tokens[-1:] = tokens[-2:-1] * (len(arguments) - len(tokens) + 1)
    if len(tokens) != len(arguments):
        return None
    same: Kind | None = None
    if not _SHARED.keys().isdisjoint(tokens):
        same = _one_kind(
            [x for token, x in zip(tokens, arguments, strict=True) if token in _SHARED]
        )
        if any(token in _SHARED and same not in _SHARED[token] for token in tokens):
            return None
    fitted = []
    for token, argument in zip(tokens, arguments, strict=True):
        each = _fitted(same if token in _SHARED else token, argument, counts_booleans)
        if each is None:
            return None
        fitted.append(each)
    if same is None and "moment" in tokens:
        same = fitted[0].kind
    return tuple(fitted), same


def _one_kind(nodes: Sequence[Node]) -> Kind | None:
    """The one type that all of them have or can take."""
    kinds = {node.kind for node in nodes if not _is_null(node)}
    if "timestamp" in kinds or "date" in kinds:
        wanted: Kind = "timestamp" if "timestamp" in kinds else "date"
        return wanted if all(_as_kind(wanted, node) is not None for node in nodes) else None
    return kinds.pop() if len(kinds) == 1 else None


def _as_kind(kind: Kind, node: Node) -> Node | None:
    """The node as an expression of that type, if it is one or becomes one by itself."""
    if _is_null(node):
        return Constant(kind, None)
    if node.kind == kind:
        return node
    if isinstance(node, Constant) and kind in ("date", "timestamp"):
        return _moment(kind, node)
    if (node.kind, kind) == ("date", "timestamp"):
        return Call(kind, FUNCTIONS["as timestamp"][0], (node,))
    return None


def _is_null(node: Node) -> bool:
    return isinstance(node, Constant) and node.value is None


def _moment(kind: Kind, node: Constant) -> Constant | None:
    """A constant text, or date, as a date or timestamp."""
    value = node.value
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = value.isoformat()
    if not isinstance(value, str):
        return None
    try:
        if kind == "date":
            return Constant(kind, datetime.date.fromisoformat(value))
        moment = datetime.datetime.fromisoformat(value)
    except ValueError:
        return None
    return None if moment.tzinfo else Constant(kind, moment)


def _fitted(token: str | None, argument: Node, counts_booleans: bool) -> Node | None:
    if _is_null(argument):
        return None
    if token == "any":
        return argument
    if token == "moment":
        return argument if argument.kind in _MOMENTS else None
    if token in ("digits", "fraction", "pattern", "part"):
        return _constant(token, argument)
    if token == "number" and argument.kind == "boolean" and counts_booleans:
        return Call("number", FUNCTIONS["as number"][0], (argument,))
    return _as_kind(token, argument) if token is not None else None  # type: ignore[arg-type]


def _constant(token: str, argument: Node) -> Constant | None:
    """The argument if it is a constant of that sort."""
    value = argument.value if isinstance(argument, Constant) else None
    if token == "part":
        part = value.lower() if isinstance(value, str) else None
        return Constant("text", part) if part in TIME_PARTS else None
    if token == "pattern":
        fits = isinstance(value, str)
    elif isinstance(value, bool) or not isinstance(value, float):
        fits = False
    else:
        whole = abs(value) <= _DIGITS_MAX and value == int(value)
        fits = whole if token == "digits" else 0.0 <= value <= 1.0
    return argument if fits and isinstance(argument, Constant) else None


# Calls: which row of the tables a name and its arguments mean, or why none.


def call_of(name: str, arguments: Sequence[Node]) -> Call:
    """The function of that name which takes these arguments."""
    return Call(*_row(name, FUNCTIONS[name], arguments, counts_booleans=False))


def aggregate_of(name: str, arguments: Sequence[Node], *, distinct: bool) -> Aggregate:
    """The aggregate of that name which takes these arguments; booleans may count as numbers."""
    for each in arguments:
        if each.aggregated:
            raise Refusal(f"{name} is taken of an aggregate. Aggregates cannot be nested.")
    return Aggregate(*_row(name, AGGREGATES[name], arguments, counts_booleans=True), distinct)


def _row(
    name: str, rows: Sequence[_Row], arguments: Sequence[Node], *, counts_booleans: bool
) -> tuple[Kind, _Row, tuple[Node, ...]]:
    """The type of the result, the row of the table that fits, and the arguments made to fit it."""
    for row in rows:
        fitted = _fit(row.takes, arguments, counts_booleans)
        if fitted is not None:
            nodes, same = fitted
            return same if row.gives == "same" else row.gives, row, nodes  # type: ignore[return-value]
    tokens = {token for one in rows for token in one.takes}
    if len(arguments) > 1 and tokens <= {"same", "ordered", "…"}:
        few = "numbers, texts or dates" if "ordered" in tokens else "values"
        given = ", ".join(f"{_named(each)} is {_SPOKEN[each.kind]}" for each in arguments)
        raise Refusal(f"{name} takes {few} of one type: {given}.{HINTS.get(name, '')}")
    given = ", ".join(each.kind for each in arguments)
    taken = " or ".join(dict.fromkeys(f"({', '.join(row.takes)})" for row in rows))
    raise Refusal(f"{name} takes {taken} and was given ({given}).{HINTS.get(name, '')}")


_SPOKEN: dict[Kind, str] = {
    "number": "a number",
    "boolean": "true or false",
    "text": "text",
    "date": "a date",
    "timestamp": "a time",
}


def _named(node: Node) -> str:
    """What a value is called in an error."""
    if isinstance(node, Reference):
        return node.name
    if not isinstance(node, Constant):
        return "an expression"
    plain = isinstance(node.value, float)
    return f"{node.value:.12g}" if plain else repr(node.value)[:40]


def case_of(parts: Sequence[Node]) -> Call:
    """CASE of condition, result, …, and the result of ELSE; NULL takes the results' type."""
    conditions, results = parts[:-1:2], [*parts[1:-1:2], parts[-1]]
    if any(each.kind != "boolean" for each in conditions):
        raise Refusal("After WHEN write a condition: CASE WHEN x > 0 THEN 1 ELSE 0 END.")
    kind = _one_kind(results)
    typed = [_as_kind(kind, each) if kind else None for each in results]
    whole = [each for each in typed if each is not None]
    if kind is None or len(whole) < len(results):
        raise Refusal("The results of a CASE must have one type, and not all be NULL.")
    if kind == "text":
        raise Refusal("The results of a CASE cannot be texts. Compare the texts in its conditions.")
    mixed = [each for pair in zip(conditions, whole, strict=False) for each in pair]
    return Call(kind, FUNCTIONS["case"][0], (*mixed, whole[-1]))


def _unknown(name: str) -> Refusal:
    """Why there is no such function here."""
    hint = HINTS.get(name, "")
    if name in REFUSED:
        return Refusal(f"{name} is not allowed: {REFUSED[name]}.{hint}")
    known = [*AGGREGATES, *AGGREGATE_ALIASES, *sorted(CALLABLE), *ALIASES]
    return Refusal(f"There is no function {name[:40]!r} here.{hint or meant(name, known)}")


_PATTERNS = (
    "LIKE takes the patterns 'A%', '%A', '%A%', 'A%Z' and 'A', without _ and \\."
    " Join several with AND or OR."
)


def _like(text: Node, pattern: str) -> Node:
    """The comparison that the pattern stands for: those with one gap take linear time.

    A pattern with several can take time that grows like a power of the text's length, so it is
    refused. 'A%' is starts_with, '%A' ends_with, '%A%' contains, 'A%Z' both ends, 'A' equality.
    """
    while "%%" in pattern:
        pattern = pattern.replace("%%", "%")
    parts = pattern.split("%")
    if "_" in pattern or "\\" in pattern or len(parts) > 3 or (len(parts) == 3 and any(parts[::2])):
        raise Refusal(_PATTERNS)
    if len(parts) == 1:
        return call_of("=", [text, Constant("text", pattern)])
    if len(parts) == 3:
        return call_of("contains", [text, Constant("text", parts[1])])
    start, end = (Constant("text", part) for part in parts)
    first, last = call_of("starts_with", [text, start]), call_of("ends_with", [text, end])
    if not start.value or not end.value:
        return first if start.value or not end.value else last
    length = Constant("number", float(len(pattern) - 1))  # the two ends must not overlap
    return call_of("and", [first, last, call_of(">=", [call_of("length", [text]), length])])
