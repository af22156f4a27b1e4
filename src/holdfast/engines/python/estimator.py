"""Estimators in Python: a function of one block, or of many blocks at once.

local_estimator(function)                    function(frame of one block) -> one number
local_estimator(function, block="numpy")     function({column: array}) -> one number
local_estimator(function, vectorised=True)   function({column: (blocks, t) array}) -> (blocks,)
"""

from __future__ import annotations

import hashlib
import itertools
import math
import pickletools
import pkgutil
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.identity import identify, version
from holdfast.errors import InvalidInput
from holdfast.grids import floats_up
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds, unit_terms
from holdfast.store.table import plain_array

__all__ = ["LocalEstimator", "local_estimator"]

BLOCK_KINDS = ("pandas", "polars", "arrow", "numpy")
HIDDEN = ("__unit", "__row")  # number of the unit in its block; number of the row in the input

ASSUMPTION_PREDICTIONS = (
    "the predictions were made row by row, by a rule that used neither the sealed rows nor their "
    "order"
)

_MODULES = {"arrow": "pyarrow"}
_SHOWN_DIGITS = 12
_MOST_STEPS = 200_000  # of a pickle, read for the names of packages
_packing = threading.Lock()


@dataclass(frozen=True)
class FunctionCall:
    """How one function of a question is called."""

    kind: str
    """What its blocks are given as."""
    columns: tuple[str, ...]
    vectorised: bool


@dataclass(frozen=True)
class FunctionJob:
    """What a worker must know to evaluate one question, apart from the blocks."""

    payloads: tuple[bytes | None, ...]
    """The functions, pickled."""
    calls: tuple[FunctionCall | None, ...]
    """Of values: the function. Of sums: the term and the filter, each of which may be missing."""
    sums: bool
    units: int
    grouped: bool
    """Whether units may have several rows."""
    block_seconds: float
    """For one block."""
    batch_seconds: float
    """For one call with many blocks."""
    load_seconds: float
    """Until the function and the modules that it needs are loaded."""
    memory: int
    """Bytes, above what the process has when it starts."""
    path: tuple[str, ...]
    folder: str
    packages: tuple[str, ...]
    explain: bool = False
    """Whether the first failure may be told: on public data only."""
    bounds: Bounds = UNIT
    """Of sums: what the terms are cut to, and scaled from."""
    failure: float = 0.0
    """Of sums: what a row counts as on which the term fails: 0 the low bound, 1 the high one."""
    outside: bool = False
    """Whether, in place of a block's sum, the term is wanted that leaves the bounds by most."""
    strict: bool = False
    """Whether a block fails on most of whose rows a term fails: on public data only."""
    terms: bool = False
    """Of sums: whether, in place of a block's sum, what it adds up is wanted, of every unit."""

    @property
    def width(self) -> int:
        """How many numbers every block has."""
        return self.units if self.terms else 1

    @property
    def vectorised(self) -> bool:
        """Whether the functions are written for many blocks at once."""
        return all(call is None or call.vectorised for call in self.calls)

    @property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """The columns that the functions get, by the kind of their blocks."""
        found: dict[str, dict[str, None]] = {}
        for call in self.calls:
            if call is not None:
                found.setdefault(call.kind, {}).update(dict.fromkeys(call.columns))
        return {kind: tuple(names) for kind, names in found.items()}


def pack(functions: Iterable[object], modules: Iterable[str]) -> bytes:
    """Functions as bytes; those of the user's own modules with their code.

    By their code they bring their globals along, as they are now and new for every block. Where
    that fails they travel by name, and the worker imports their modules.
    """
    import cloudpickle

    everything = tuple(functions)
    own = [sys.modules[name] for name in sorted(modules) if name in sys.modules]
    with _packing:
        known = cloudpickle.list_registry_pickle_by_value()
        new = [module for module in own if module.__name__ not in known]
        for module in new:
            cloudpickle.register_pickle_by_value(module)
        try:
            return bytes(cloudpickle.dumps(everything))
        except Exception:
            pass
        finally:
            for module in new:
                cloudpickle.unregister_pickle_by_value(module)
        try:
            return bytes(cloudpickle.dumps(everything))
        except Exception as error:
            hint = f"It cannot be sent to another process ({type(error).__name__}: {error})."
            allowed = "a function that can be pickled"
            function = next(each for each in everything if each is not None)
            raise InvalidInput("function", function, allowed, hint) from None


def packages(payloads: Iterable[bytes | None]) -> tuple[str, ...]:
    """The modules of installed packages that pickles name: a worker may load them once.

    Of those that are not loaded here, the packages: a function may import them when it is called.
    """
    found = set()
    for payload in payloads:
        steps = itertools.islice(pickletools.genops(payload or b"N."), _MOST_STEPS)
        texts = {argument for _, argument, _ in steps if isinstance(argument, str)}
        found |= texts & set(sys.modules)
        tops = {text.partition(".")[0] for text in texts}
        found |= tops & _importable(tuple(sys.path)) - sys.stdlib_module_names
    return tuple(sorted(name for name in found - {"__main__"} if _versioned(name)))


@cache
def _importable(path: tuple[str, ...]) -> frozenset[str]:
    """What can be imported from this path; nothing is."""
    return frozenset(each.name for each in pkgutil.iter_modules(path))


def _versioned(name: str) -> bool:
    try:
        return version(name) is not None
    except Exception:
        return False


def surroundings() -> tuple[tuple[str, ...], str]:
    """Where the user's modules are found: the path of imports, and the folder of work."""
    try:
        folder = str(Path.cwd())
    except OSError:
        folder = "/"
    return tuple(each or folder for each in sys.path), folder


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
    packed: bytes | None = field(repr=False)
    """Both functions as they were when the identity was taken, pickled; None if `own`."""
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
    """Whether nothing of a user's runs in it: rows and blocks are treated apart."""
    failing: str | None = None
    """What a failure counts as, as a code of `protocols.answers`; None for the lowest value."""
    reading: str | None = None
    """What a score is about, as a code of `protocols.answers`; None for what is no score."""
    notes: tuple[str, ...] = ()
    """What is taken for granted of it beside that."""
    examples: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """Values that made-up rows have in some columns."""
    tried: Callable[[], LocalEstimator] | None = None
    """Makes what is tried on public blocks before it: a model's predictions."""
    sealed_only: bool = False
    """Whether open rows have no predictions: then nothing is known of it there."""

    @property
    def vectorised(self) -> bool:
        """Whether it can take many blocks at once."""
        return self.batched is not None

    @property
    def own(self) -> bool:
        """Whether it is all Holdfast's own code, which needs no process of its own."""
        return self.packed is None

    @property
    def payload(self) -> bytes:
        """Both functions, pickled."""
        return pack((self.function, self.batched), ()) if self.packed is None else self.packed

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
    own: bool = False,
    known_by: object = None,
    **more: Any,
) -> LocalEstimator:
    """An estimator from functions that are known to fit; `more` are other fields of it.

    `known_by` is what its value depends on, if that is less than all that the functions hold.
    """
    found = identify((function, batched) if known_by is None else known_by)
    identity = None
    if found.digest is not None:
        package = version(_MODULES.get(block, block))
        parts: tuple[object, ...] = (found.digest, block, package, columns)
        if not math.isnan(failure):
            parts = (*parts, failure)
        identity = hashlib.sha256(repr(parts).encode("utf-8")).hexdigest()
    packed = None if own else pack((function, batched), found.modules)
    return LocalEstimator(
        *(function, batched, columns, block, identity, name, packed, range, bounded_mean),
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


def stored_columns(estimator: LocalEstimator, store: Any) -> tuple[str, ...]:
    """The columns that it gets; refused unless they exist and its blocks can be made."""
    manifest, schema = store.manifest, store.schema
    hidden = HIDDEN if estimator.rows is not None else ()  # predictions are found by row
    for name in estimator.columns or ():
        column = None if name in hidden else schema.find(name)
        if name not in hidden and (column is None or column.name != name):  # case counts in Python
            names = ", ".join(schema.names[:12]) + (", …" if len(schema.names) > 12 else "")
            hint = "" if column is None else f"Did you mean {column.name!r}?"
            if estimator.reading is not None:
                hint = f"The model was fitted with {name}, which the holdout lacks. {hint}".strip()
            raise InvalidInput("columns", name, f"columns of the holdout: {names}", hint)
    if estimator.rows is not None and estimator.rows != store.data_rows:
        allowed = f"{store.data_rows:,} predictions, one for each row of the data"
        raise InvalidInput("model", f"{estimator.rows:,} predictions", allowed)
    if estimator.function is None and not manifest.one_row_units:
        hint = "Here units have several rows: write it for one block, and leave vectorised out."
        allowed = "a function of one block where units have several rows"
        raise InvalidInput("estimator", estimator.name, allowed, hint)
    return tuple(schema.names) if estimator.columns is None else estimator.columns


def _name(function: object) -> str:
    inner = getattr(function, "func", function)  # of a partial
    qualified = getattr(inner, "__qualname__", None)
    if not isinstance(qualified, str):
        inner = type(inner)
        qualified = inner.__qualname__
    module = getattr(inner, "__module__", None)
    named = qualified.replace(".<locals>", "").replace("<lambda>", "lambda")
    named = f"{module}.{named}" if isinstance(module, str) and module != "__main__" else named
    return named if re.fullmatch(r"[\w.]+", named) else "function"  # a name that was made up


def block_value(result: object) -> float:
    """One number, rounded up to a float; NaN for what is none.

    >>> block_value(2), block_value("2"), block_value([2.0])
    (2.0, nan, nan)
    """
    if type(result) is float or type(result) is np.float64:
        return float(result)
    return float(floats_up([result])[0])


def block_values(result: object, blocks: int) -> NDArray[np.float64]:
    """One number for each of many blocks; `TypeError` if the result has another shape."""
    numbers = floats_up(_several(result))
    if numbers.shape != (blocks,):
        raise TypeError(f"the result must have shape ({blocks},)")
    return numbers


def row_numbers(result: object, rows: int) -> NDArray[np.float64]:
    """One number for each row, NaN where there is none; `TypeError` if there are not as many."""
    numbers = floats_up(_several(result)).reshape(-1)
    if numbers.shape != (rows,):
        raise TypeError(f"the result must be {rows} numbers, one for each row")
    return numbers


def row_terms(result: object, rows: int, bounds: Bounds = UNIT) -> NDArray[np.float64]:
    """For each row its term, scaled to [0, 1]; one that is no number is 0."""
    return unit_terms(row_numbers(result, rows), bounds)


def farthest_outside(numbers: NDArray[np.float64], bounds: Bounds) -> float:
    """The number that leaves the bounds by most; NaN if none does.

    >>> farthest_outside(np.array([0.5, -2.0, 1.5, np.nan]), (0.0, 1.0))
    -2.0
    """
    beyond = np.fmax(bounds[0] - numbers, numbers - bounds[1])
    out = np.flatnonzero(beyond > 0)
    return float(numbers[out[np.argmax(beyond[out])]]) if len(out) else math.nan


def failed_share(function: Any) -> float:
    """What a row counts as on which a term fails: 0 for its low bound, 1 for its high one."""
    failure = getattr(function, "failure", math.nan)
    return 0.0 if math.isnan(failure) else float(failure)


def failed_sum(function: Any, units: int) -> int:
    """What the sum of so many units is if a function fails on their block: each is its failure."""
    return int(failed_share(function) * WEIGHT_SCALE) * units


def column_array(column: Any) -> NDArray[Any]:
    """One Arrow column as an array of its own: float64, datetime64 or text and None."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_dictionary(kind):
        column = column.cast(pa.string())
    array = plain_array(column)
    wanted = array.dtype if array.dtype.kind in "fM" else np.dtype(object)
    result = np.empty(len(array), np.float64 if wanted.kind == "f" else wanted)
    result[:] = array
    return result


def _several(result: object) -> object:
    """An array or a list; an iterator is read to its end."""
    if isinstance(result, np.ndarray | list | tuple) or hasattr(result, "__array__"):
        return result
    if isinstance(result, str | bytes | dict):
        return []
    return list(cast(Iterable[object], result))


def unit_parts(
    terms: NDArray[np.float64],
    kept: NDArray[np.float64] | None = None,
    unit: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """⌊2¹⁶·term + 1/2⌋ of every unit: whole numbers, whose sums are exact.

    Without numbers of the rows' units every row is one. A unit's term is the average over its kept
    rows; if there is none it counts as nothing.

    >>> unit_parts(np.array([1.0, 0.0, 1.0]), unit=np.array([0, 0, 1])) / WEIGHT_SCALE
    array([0.5, 1. ])
    """
    keep = None if kept is None else kept * WEIGHT_SCALE >= 0.5
    if unit is not None:
        keep = np.ones(len(terms), np.bool_) if keep is None else keep
        counts: NDArray[Any] = np.bincount(unit, keep)
        totals = np.bincount(unit, terms * keep)
        terms, keep = totals / np.maximum(counts, 1), counts > 0
    parts = np.floor(terms * WEIGHT_SCALE + 0.5)
    return parts if keep is None else parts * keep
