"""Estimators in Python: a function of one block, or of many blocks at once.

local_estimator(function)                    function(frame of one block) -> one number
local_estimator(function, block="numpy")     function({column: array}) -> one number
local_estimator(function, vectorised=True)   function({column: (blocks, t) array}) -> (blocks,)
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.engines.local.identity.encoder import identify
from holdfast.engines.local.identity.modules import version
from holdfast.engines.local.jobs import pack
from holdfast.errors import InvalidInput

__all__ = [
    "ASSUMPTION_PREDICTIONS",
    "BLOCK_KINDS",
    "HIDDEN",
    "LocalEstimator",
    "checked_columns",
    "local_estimator",
    "make_estimator",
    "refuse_hidden",
]

BLOCK_KINDS = ("pandas", "polars", "arrow", "numpy")
HIDDEN = ("__unit", "__row")  # number of the unit in its block; number of the row in the input

ASSUMPTION_PREDICTIONS = (
    "the predictions were made row by row, by a rule that used neither the sealed rows nor their "
    "order"
)

_MODULES = {"arrow": "pyarrow"}
_SHOWN_DIGITS = 12


@dataclass(frozen=True, eq=False)
class LocalEstimator:
    """A Python function that is asked of every block. Made by `local_estimator`.

    `function` takes one block, `batched` many at once; one of them may be missing.
    """

    function: Callable[[Any], object] | None
    batched: Callable[[dict[str, Any]], object] | None
    columns: tuple[str, ...] | None
    """The columns that it gets; None for all."""
    block: str
    """What a block is given as: one of `BLOCK_KINDS`."""
    identity: str | None
    """The hash of all that its value can depend on; None if that cannot be told."""
    name: str
    """What the function is called."""
    payload: bytes = field(repr=False)
    """Both functions as they were when the identity was taken, pickled."""
    range: tuple[float, float] | None = None
    """Bounds of its value that hold whatever the data are, if known."""
    bounded_mean: bool = False
    """Whether its value on a block is the mean over rows of a term within `range`."""
    failure: float = math.nan
    """What it is on a block where it fails, if that is not the lowest value: for a loss, +∞; for a
    term, what every row of the block then counts as."""
    rows: int | None = None
    """How many rows the original data must have, for predictions; None for all others."""
    built_in: bool = False
    """Whether it is Holdfast's own code: it treats rows and blocks apart and never fails."""
    failing: str | None = None
    """What a failure counts as, as a code of `protocols.promises`; None for the lowest value."""
    reading: str | None = None
    """What a score is about, as a code of `protocols.readings`; None for what is no score."""
    notes: tuple[str, ...] = ()
    """What is taken for granted of it beside that."""
    examples: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """Values that made-up rows have in some columns."""
    tried: Callable[[], LocalEstimator] | None = None
    """Makes what is tried on public blocks before it: a model's predictions."""

    @property
    def vectorised(self) -> bool:
        """Whether it can take many blocks at once."""
        return self.batched is not None

    @property
    def fails_high(self) -> bool:
        """Whether a failure counts as a value above the lowest: as that of the worst loss."""
        return self.failure > (self.range or (-math.inf, math.inf))[0]

    @property
    def assumes(self) -> tuple[str, ...]:
        """What is taken for granted about it and can be checked on no block."""
        return (*(() if self.rows is None else (ASSUMPTION_PREDICTIONS,)), *self.notes)

    def describe(self) -> str:
        """Name, columns and hash for people and the ledger; nothing of the data."""
        columns = "all columns" if self.columns is None else ", ".join(self.columns)
        kind = "vectorised" if self.function is None else self.block
        known = "no identity" if self.identity is None else self.identity[:_SHOWN_DIGITS]
        return f"{self.name} of {columns} ({kind}, {known})"


def local_estimator(
    function: object,
    *,
    columns: Sequence[str] | None = None,
    block: str = "pandas",
    vectorised: bool = False,
) -> LocalEstimator:
    """A Python function as an estimator.

    >>> estimator = local_estimator(lambda frame: frame.x.mean(), columns=["x"])
    >>> estimator.vectorised, len(estimator.identity)
    (False, 64)
    >>> local_estimator("x")
    Traceback (most recent call last):
    holdfast.errors.InvalidInput: function must be a function of one block; got 'x'. ...
    """
    if not callable(function):
        hint = "SQL is text; a Python function takes a block and returns one number."
        raise InvalidInput("function", function, "a function of one block", hint)
    if block not in BLOCK_KINDS:
        raise InvalidInput("block", block, f"one of {', '.join(BLOCK_KINDS)}")
    kind = "numpy" if vectorised else block
    one, many = (None, function) if vectorised else (function, None)
    return make_estimator(one, many, checked_columns(columns), kind, _name(function))


def make_estimator(
    function: Callable[[Any], object] | None,
    batched: Callable[[dict[str, Any]], object] | None,
    columns: tuple[str, ...] | None,
    block: str,
    name: str,
    *,
    range: tuple[float, float] | None = None,  # noqa: A002 – as the field is called
    bounded_mean: bool = False,
    failure: float = math.nan,
    **more: Any,
) -> LocalEstimator:
    """An estimator from functions that are known to fit; `more` are other fields of it."""
    found = identify((function, batched))
    identity = None
    if found.digest is not None:
        package = version(_MODULES.get(block, block))
        parts: tuple[object, ...] = (found.digest, block, package, columns)
        if not math.isnan(failure):
            parts = (*parts, failure)
        identity = hashlib.sha256(repr(parts).encode("utf-8")).hexdigest()
    payload = pack((function, batched), found.modules)
    return LocalEstimator(
        *(function, batched, columns, block, identity, name, payload, range, bounded_mean),
        failure,
        **more,
    )


def checked_columns(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    """The names of columns, each once; None for all."""
    if columns is None:
        return None
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidInput("columns", columns, "names of columns, at least one")
    if len({name.casefold() for name in names}) < len(names):
        raise InvalidInput("columns", columns, "names of columns, each once")
    for name in names:
        refuse_hidden("columns", name)
    return names


def refuse_hidden(parameter: str, name: str) -> None:
    """Refuse the columns that the store has added to the data."""
    if name.casefold() in HIDDEN:
        hint = "Numbers of rows and units say nothing of fresh data."
        raise InvalidInput(parameter, name, "columns of the data", hint)


def _name(function: object) -> str:
    inner = getattr(function, "func", function)  # of a partial
    qualified = getattr(inner, "__qualname__", None)
    if not isinstance(qualified, str):
        inner = type(inner)
        qualified = inner.__qualname__
    module = getattr(inner, "__module__", None)
    named = qualified.replace(".<locals>", "").replace("<lambda>", "lambda")
    return f"{module}.{named}" if isinstance(module, str) and module != "__main__" else named
