"""Identity: the hash that says whether two Python functions ask the same question.

Two functions have the same identity only if what travels to a worker process is the same: code
(not its file name or line numbers), constants, defaults, closure, the values of the global names
that it uses, the versions of the packages that those come from, and Python's version. Whatever
cannot be read that way has no identity: each time it is asked it is a new question, and is charged.

A function of an installed package travels as a name; a user's own function or class travels with
its code and with the globals that the code names; any other object with what its own pickling
gives. So do they here.
"""

from __future__ import annotations

import ast
import copyreg
import datetime
import decimal
import dis
import enum
import fractions
import functools
import hashlib
import importlib.metadata
import importlib.util
import pathlib
import platform
import site
import struct
import sys
import sysconfig
import types
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import EllipsisType, ModuleType, NoneType, NotImplementedType
from typing import Any

import numpy as np

__all__ = ["Identity", "identify", "version"]

Write = Callable[["Encoder", Any], None]

_FORMAT = "holdfast callable 1"
_MOST_VALUES = 500_000  # beyond, hashing takes longer than asking: no identity


class Unhashable(Exception):
    """A value that may change what a function gives, and cannot be read."""


@dataclass(frozen=True)
class Identity:
    """A hash, or None; and the user's own modules whose functions and classes it has read."""

    digest: str | None
    modules: frozenset[str]


class Encoder:
    """Writes a value and all that it refers to into one hash, each with its type.

    The order is one that no address and no seed changes. A value that can be changed is written out
    when it is met first; when it is met again, the number of the first meeting is written. That
    ends every cycle, keeps the time linear, and tells one list used twice from two equal lists.
    Values that cannot be changed are always written out: whether Python shares them is an accident.
    """

    def __init__(self, outer: Encoder | None = None) -> None:
        self._hash = hashlib.sha256()
        self._met: dict[int, int] = {}
        self._kept: list[object] = []  # what is met stays alive, or its id would come again
        self._left: list[int] = [_MOST_VALUES] if outer is None else outer._left
        self.modules: set[str] = set() if outer is None else outer.modules

    def write(self, kind: str, *parts: str | bytes | int) -> None:
        """A kind and its parts, each with its length: no two lists of parts look the same."""
        self._left[0] -= 1
        if self._left[0] < 0:
            raise Unhashable(kind)
        for part in (kind, len(parts), *parts):
            data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
            self._hash.update(b"%d:" % len(data))
            self._hash.update(data)

    def add(self, value: object) -> None:
        """Any value; `Unhashable`, or what its own methods raise, if it cannot be read."""
        plain = PLAIN.get(type(value))
        if plain is not None:
            plain(self, value)
            return
        first = self._met.setdefault(id(value), len(self._met))
        if first < len(self._kept):
            self.write("again", first)
            return
        self._kept.append(value)
        add_object(self, value)

    def add_all(self, kind: str, values: Iterable[object]) -> None:
        """Values in their order."""
        listed = list(values)
        self._kept.append(listed)
        self._met.setdefault(id(listed), len(self._met))  # keep both of equal length
        self.write(kind, len(listed))
        if set(map(type, listed)) != {str}:
            for value in listed:
                self.add(value)
            return
        # What `add` writes of each: labels of a million rows are a million texts.
        self._left[0] -= len(listed)
        if self._left[0] < 0:
            raise Unhashable("str")
        encoded = (str(text).encode("utf-8", "surrogatepass") for text in listed)
        self._hash.update(b"".join(b"3:str1:1%d:%s" % (len(each), each) for each in encoded))

    def add_names(self, kind: str, values: dict[str, Any]) -> None:
        """Values by name; the order in which the names came is no part of it."""
        self.write(kind, len(values))
        for name in sorted(values):
            self.write("name", name)
            self.add(values[name])

    def add_set(self, kind: str, values: Iterable[object]) -> None:
        """Values without an order, sorted by what they hash to, each by itself."""
        digests = []
        for value in values:
            inner = Encoder(self)
            inner.add(value)
            digests.append(inner._hash.digest())
        self.write(kind, *sorted(digests))

    def digest(self) -> str:
        """The hash of everything written so far, in hexadecimal."""
        return self._hash.hexdigest()


def identify(value: object) -> Identity:
    """The identity of a function, or of anything else that may be part of a question.

    >>> offset = 1
    >>> first = identify(lambda x: x + offset)
    >>> first.digest == identify(lambda x: x + offset).digest
    True
    >>> offset = 2
    >>> first.digest == identify(lambda x: x + offset).digest
    False
    >>> identify(lambda x: x + next(iter(x for x in [1]))).digest is None
    False
    >>> numbers = (x for x in [1])
    >>> identify(lambda x: x + next(numbers)).digest is None
    True
    """
    encoder = Encoder()
    major, minor, _ = platform.python_version_tuple()
    encoder.write(_FORMAT, platform.python_implementation(), major, minor)
    try:
        encoder.add(value)
    except Exception:  # a value's own methods may raise anything: then it has no identity
        return Identity(None, frozenset(encoder.modules))
    return Identity(encoder.digest(), frozenset(encoder.modules))


_MOST_CELLS = 500_000  # of a table that is not numpy's: read one by one


def _spelled(kind: str, spell: Callable[[Any], str | bytes]) -> Write:
    return lambda encoder, value: encoder.write(kind, spell(value))


# Values that cannot be changed, by their exact type.
PLAIN: dict[type, Write] = {
    NoneType: _spelled("None", repr),
    EllipsisType: _spelled("Ellipsis", repr),
    NotImplementedType: _spelled("NotImplemented", repr),
    bool: _spelled("bool", repr),
    int: _spelled("int", lambda n: n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)),
    float: _spelled("float", partial(struct.pack, "<d")),  # tells -0.0 from 0.0, NaN from NaN
    complex: _spelled("complex", lambda value: struct.pack("<dd", value.real, value.imag)),
    str: _spelled("str", str),
    bytes: _spelled("bytes", bytes),
    range: _spelled("range", repr),
    slice: lambda encoder, value: encoder.add_all("slice", (value.start, value.stop, value.step)),
    tuple: lambda encoder, value: encoder.add_all("tuple", value),
    frozenset: lambda encoder, value: encoder.add_set("frozenset", value),
    np.dtype: lambda encoder, value: _dtype(encoder, value),
    datetime.date: _spelled("date", repr),
    datetime.timedelta: _spelled("timedelta", repr),
    decimal.Decimal: _spelled("decimal", str),
    fractions.Fraction: _spelled("fraction", str),
    pathlib.PurePosixPath: _spelled("path", str),
    pathlib.PosixPath: _spelled("path", str),
    uuid.UUID: _spelled("uuid", str),
}


def _dtype(encoder: Encoder, value: Any) -> None:
    encoder.write("dtype", repr(value.descr) if value.names else value.str)


def _array(encoder: Encoder, value: Any) -> None:
    encoder.write("array", *value.shape)
    # Order in memory and whether it may be written to, as pickle keeps them: an array that is
    # contiguous in neither order arrives as a copy, in C's order, and writeable.
    flags = value.flags
    whole = flags.c_contiguous or flags.f_contiguous
    order = "F" if whole and not flags.c_contiguous else "C"
    encoder.write("order", order, "fixed" if whole and not flags.writeable else "writeable")
    _dtype(encoder, value.dtype)
    if value.dtype.hasobject:
        encoder.add_all("items", value.ravel().tolist())
    else:
        encoder.write("bytes", np.ascontiguousarray(value).tobytes())


def _masked(encoder: Encoder, value: Any) -> None:
    _array(encoder, np.ma.getdata(value))
    _array(encoder, np.array(np.ma.getmaskarray(value)))
    encoder.write("fill")
    _array(encoder, np.array(value.fill_value))


def _dict(encoder: Encoder, value: dict[Any, Any]) -> None:
    # In the order of insertion: what iterates over it sees that order.
    encoder.add_all("dict", (each for pair in value.items() for each in pair))


def _values(encoder: Encoder, values: Any) -> None:
    """The values of a pandas column or index, whatever holds them."""
    array = values.to_numpy()
    encoder.write("column", str(values.dtype))
    categories = getattr(values.dtype, "categories", None)
    if categories is not None:
        encoder.write("ordered", str(values.dtype.ordered))
        _values(encoder, categories)
    if array.dtype.hasobject:
        # The marks of a missing value, which are not plain, by their names.
        marks = {"NAType", "NaTType"}
        encoder.add_all(
            "items",
            [("missing", repr(x)) if type(x).__name__ in marks else x for x in array.tolist()],
        )
    else:
        _array(encoder, np.array(array))  # a copy: how the column lies in its frame is an accident


def _index(encoder: Encoder, index: Any) -> None:
    encoder.add_all("index", index.names)
    for level in range(index.nlevels):
        _values(encoder, index.get_level_values(level))


def _series(encoder: Encoder, series: Any) -> None:
    encoder.add(series.name)
    _index(encoder, series.index)
    _values(encoder, series)
    encoder.add(series.attrs)


def _frame(encoder: Encoder, frame: Any) -> None:
    encoder.write("frame", *frame.shape)
    _index(encoder, frame.columns)
    _index(encoder, frame.index)
    for place in range(frame.shape[1]):
        _values(encoder, frame.iloc[:, place])
    encoder.add(frame.attrs)


def _moment(encoder: Encoder, value: Any) -> None:
    encoder.write("moment", type(value).__name__, repr(value), str(getattr(value, "unit", "")))


def _table(encoder: Encoder, table: Any) -> None:
    """A table or a column of polars or Arrow."""
    rows = table.to_arrow() if hasattr(table, "to_arrow") else table
    cells = rows.num_rows * rows.num_columns if hasattr(rows, "num_columns") else len(rows)
    if cells > _MOST_CELLS:
        raise ValueError("too many cells to read one by one")
    encoder.write("table", str(getattr(rows, "schema", None) or rows.type))
    encoder.write("name", str(getattr(table, "name", "")))
    encoder.add(rows.to_pydict() if hasattr(rows, "to_pydict") else rows.to_pylist())


# Types of packages that may not be loaded: by module, then name.
_FOREIGN: dict[tuple[str, str], Write] = {
    ("pandas", "Index"): _index,
    ("pandas", "Series"): _series,
    ("pandas", "DataFrame"): _frame,
    ("pandas", "Timestamp"): _moment,
    ("pandas", "Timedelta"): _moment,
    ("polars", "Series"): _table,
    ("polars", "DataFrame"): _table,
    ("pyarrow", "Table"): _table,
    ("pyarrow", "RecordBatch"): _table,
    ("pyarrow", "Array"): _table,
    ("pyarrow", "ChunkedArray"): _table,
}

_CONTAINERS: dict[type, Write] = {
    list: lambda encoder, value: encoder.add_all("list", value),
    dict: _dict,
    set: lambda encoder, value: encoder.add_set("set", value),
    bytearray: lambda encoder, value: encoder.write("bytearray", bytes(value)),
    np.ndarray: _array,
}


def _data_writer(value: object) -> Write | None:
    """How a container, an array or a frame is written; None if value is none of these, exactly."""
    known = _CONTAINERS.get(type(value))
    if known is not None:
        return known
    if isinstance(value, np.generic):
        return lambda encoder, scalar: _array(encoder, np.asarray(scalar))
    if isinstance(value, np.dtype):  # each dtype has a class of its own
        return _dtype
    top = type(value).__module__.partition(".")[0]
    if top == "numpy" and type(value) is np.ma.MaskedArray:  # loaded where there is one
        return _masked
    for (package, name), write in _FOREIGN.items():
        if package == top and package in sys.modules:
            kind = getattr(sys.modules[package], name, None)
            if isinstance(kind, type) and isinstance(value, kind):
                return write
    return None


# Modules of Python and of installed packages have a version, which stands for a whole package. Of a
# user's own module every byte counts, and so do those of the modules that it uses: an edit is a new
# question.

_OURS = "holdfast"
_MOST_FILES = 5_000
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}  # the common ones: to find the others takes a while


@cache
def _package_roots() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    roots = [paths["purelib"], paths["platlib"], *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        roots.append(site.getusersitepackages())
    return tuple({Path(root).resolve(): None for root in roots})


@cache
def _python_roots() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple({Path(paths[name]).resolve(): None for name in ("stdlib", "platstdlib")})


def _place(name: str) -> Path | None:
    """The file of a module, or the folder of one without; None if it is part of Python itself."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None) or _found(name)
    origin = getattr(module, "__file__", None) or getattr(spec, "origin", None)
    if origin in {"built-in", "frozen"} or (origin is None and name in sys.builtin_module_names):
        return None
    if origin is not None:
        return Path(origin)
    for folder in getattr(spec, "submodule_search_locations", None) or ():
        return Path(folder)
    raise Unhashable(name)  # made by hand, or nowhere to be found


def _found(name: str) -> object:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None


@cache
def version(name: str) -> str | None:
    """The package and version that a module comes from; None for a user's own module."""
    top = name.partition(".")[0]
    if top == _OURS:
        return f"{_OURS} {importlib.metadata.version(_OURS)}"
    place = _place(name)
    if place is None:
        return _python()
    place = place.resolve()
    if any(place.is_relative_to(root) for root in _package_roots()):
        return f"{top} {_installed(top) or _file_hash(place)}"
    if any(place.is_relative_to(root) for root in _python_roots()):
        return _python()
    return None


def _python() -> str:
    return "python " + ".".join(platform.python_version_tuple()[:2])


_distributions = cache(importlib.metadata.packages_distributions)


def _installed(top: str) -> str | None:
    """The version that the installation states: the same whether or not the package is loaded."""
    try:
        return importlib.metadata.version(_DISTRIBUTIONS.get(top, top))
    except importlib.metadata.PackageNotFoundError:
        names = _distributions().get(top, [])
    return " ".join(importlib.metadata.version(each) for each in sorted(set(names))) or None


def _file_hash(place: Path) -> str:
    return hashlib.sha256(place.read_bytes()).hexdigest()


def is_own(name: object) -> bool:
    """Whether functions of this module are the user's own: read, and sent, by value."""
    if not isinstance(name, str) or name not in sys.modules or name == "__main__":
        return False
    try:
        return version(name) is None
    except Unhashable:
        return False


def by_name(value: object) -> tuple[str, str, str] | None:
    """Module, name and version, if value is what an installed module has under its own name."""
    module, qualified = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(qualified, str) or module == "__main__":
        return None
    found: object = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    stated = version(module) if found is value else None
    return None if stated is None else (module, qualified, stated)


def add_module(encoder: Encoder, module: ModuleType) -> None:
    """A module that a function uses."""
    if sys.modules.get(module.__name__) is not module:
        raise Unhashable(module.__name__)  # made by hand: no file, and no version
    add_module_name(encoder, module.__name__)


def add_module_name(encoder: Encoder, name: str) -> None:
    """A module by name, imported already or to be imported by the function itself."""
    if name == "__main__":
        raise Unhashable(name)
    if name not in sys.modules and _found(name) is None:
        encoder.write("no module", name)
        return
    stated = version(name)
    if stated is not None:
        encoder.write("module", name, stated)
        return
    own = sorted(_used(name.partition(".")[0], set()))
    encoder.write("own module", name, *(part for each in own for part in (each, _sources(each))))


def _used(top: str, found: set[str]) -> set[str]:
    """A user's own module or package, and those of the user's own that its files import."""
    if top in found:
        return found
    found.add(top)
    for file in _files(top):
        for other in _imported(file):
            known = other in sys.modules or _found(other) is not None
            if known and other != "__main__" and version(other) is None:
                _used(other, found)
    return found


def _imported(file: Path) -> set[str]:
    """The packages that a file imports, by their first names."""
    if file.suffix != ".py":
        return set()
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module).partition(".")[0])
    return names


def _files(top: str) -> list[Path]:
    """A module's file, or every Python file below a package."""
    place = _place(top)
    if place is None:
        raise Unhashable(top)
    package = place.parent if place.name == "__init__.py" else place
    if not package.is_dir():
        return [place]
    files = sorted(package.rglob("*.py"))
    if len(files) > _MOST_FILES:
        raise Unhashable(top)
    return files


def _sources(top: str) -> bytes:
    """The hash of a module's file, or of every Python file below a package."""
    place, total = _place(top), hashlib.sha256()
    for file in _files(top):
        name = file.name if place is None else str(file.relative_to(place.parent))
        total.update(f"{name}\0{_file_hash(file)}\0".encode())
    return total.digest()


_GLOBAL_OPERATIONS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})
# Of a class: where it was written, and what Python or a decorator derives from the rest.
_DERIVED = frozenset(
    {
        "__abstractmethods__",
        "__annotate_func__",
        "__annotations__",
        "__annotations_cache__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__dict__",
        "__doc__",
        "__firstlineno__",
        "__module__",
        "__qualname__",
        "__static_attributes__",
        "__weakref__",
        "_abc_impl",
    }
)
_DESCRIPTORS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)


def add_object(encoder: Encoder, value: Any) -> None:
    """Anything that is not plain."""
    write = _data_writer(value)
    if write is not None:
        encoder.write("data", type(value).__module__, type(value).__qualname__)
        write(encoder, value)
        return
    if isinstance(value, types.ModuleType):
        add_module(encoder, value)
        return
    named = by_name(value)
    if named is not None:
        encoder.write("named", *named)
        return
    for kinds, add in _CODE:
        if isinstance(value, kinds):
            add(encoder, value)
            return
    _add_reduced(encoder, value)


def _wrapping(inner: str, kind: str, name: str = "") -> Write:
    """What is written by its kind, by its own name if it has one, and by what it wraps."""

    def add(encoder: Encoder, value: Any) -> None:
        encoder.write(kind, *([str(getattr(value, name))] if name else []))
        encoder.add(getattr(value, inner))

    return add


def _add_partial(encoder: Encoder, value: Any) -> None:
    encoder.add_all("partial", (value.func, value.args))
    encoder.add_names("keywords", value.keywords)
    encoder.add_names("attributes", vars(value))


def _add_static(encoder: Encoder, value: Any) -> None:
    encoder.write(type(value).__name__)
    encoder.add(value.__func__)


def _add_function(encoder: Encoder, function: types.FunctionType) -> None:
    if is_own(function.__module__):
        encoder.modules.add(function.__module__)
    encoder.write("function")
    encoder.add(function.__code__)
    encoder.add(function.__defaults__)
    encoder.add_names("keyword defaults", function.__kwdefaults__ or {})
    encoder.add_all("closure", function.__closure__ or ())
    encoder.add_names("attributes", function.__dict__)
    known = function.__globals__
    names = sorted(set(_global_names(function.__code__)))
    encoder.write("globals", *(name for name in names if name not in known))
    encoder.add_names("globals", {name: known[name] for name in names if name in known})
    for name in sorted(set(_imports(function.__code__, known))):
        add_module_name(encoder, name)


def _add_cell(encoder: Encoder, cell: types.CellType) -> None:
    try:
        content = cell.cell_contents
    except ValueError:
        encoder.write("empty cell")
        return
    encoder.write("cell")
    encoder.add(content)


def _add_code(encoder: Encoder, code: types.CodeType) -> None:
    """What runs: not the file, the lines or the name."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    encoder.write("code", *counts, code.co_code, code.co_exceptiontable)
    for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
        encoder.write("names", *names)
    encoder.add_all("constants", code.co_consts)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _global_names(code: types.CodeType) -> Iterator[str]:
    for each in _codes(code):
        for step in dis.get_instructions(each):
            if step.opname in _GLOBAL_OPERATIONS:
                yield str(step.argval)


def _imports(code: types.CodeType, names: dict[str, Any]) -> Iterator[str]:
    """The modules that a function imports when it is called."""
    package = str(names.get("__package__") or "").split(".")
    for each in _codes(code):
        pushed: list[Any] = [0, None]  # before an import: how far it climbs, and what it takes
        for step in dis.get_instructions(each):
            if step.opname == "IMPORT_NAME":
                climbed = package[: len(package) - pushed[-2] + 1] if pushed[-2] else []
                yield ".".join(part for part in (*climbed, str(step.argval)) if part)
            elif step.opname.startswith("LOAD_"):
                pushed.append(step.argval)


def _add_class(encoder: Encoder, kind: type) -> None:
    if is_own(kind.__module__):
        encoder.modules.add(kind.__module__)
    encoder.write("class", kind.__name__)
    encoder.add_all("bases", kind.__bases__)
    if type(kind) is not type:
        encoder.add(type(kind))
    if issubclass(kind, enum.Enum):
        members: dict[str, Any] = {name: each.value for name, each in kind.__members__.items()}
        encoder.add_names("members", members)
    content = {name: each for name, each in vars(kind).items() if name not in _DERIVED}
    if issubclass(kind, enum.Enum):
        content = {k: v for k, v in content.items() if isinstance(v, types.FunctionType | property)}
    encoder.add_names("content", content)


# Classes, and functions in every form that Python has for them.
_CODE: tuple[tuple[Any, Write], ...] = (
    (type, _add_class),
    (types.FunctionType, _add_function),
    (types.CodeType, _add_code),
    (types.CellType, _add_cell),
    (types.MethodType, lambda to, value: to.add_all("method", (value.__func__, value.__self__))),
    (
        types.BuiltinFunctionType | types.MethodWrapperType,
        _wrapping("__self__", "built-in", "__name__"),
    ),
    (_DESCRIPTORS, _wrapping("__objclass__", "descriptor", "__name__")),  # int's is not float's
    (functools.partial, _add_partial),
    (staticmethod | classmethod, _add_static),
    (property, lambda to, value: to.add_all("property", (value.fget, value.fset, value.fdel))),
    (functools.cached_property, _wrapping("func", "cached property", "attrname")),
    (functools._lru_cache_wrapper, _wrapping("__wrapped__", "cached")),
)


def _add_reduced(encoder: Encoder, value: Any) -> None:
    """Another object, by what pickle would take along: its class, arguments, state and items."""
    if isinstance(value, enum.Enum):
        encoder.write("member", value.name)
        encoder.add(type(value))
        return
    reduce = copyreg.dispatch_table.get(type(value))
    reduced: Any = reduce(value) if reduce is not None else value.__reduce_ex__(4)
    if isinstance(reduced, str):
        _add_global(encoder, value, reduced)
        return
    parts: list[Any] = [*reduced, None, None, None]
    encoder.write("object")
    encoder.add(parts[0])
    encoder.add_all("arguments", parts[1])
    state = parts[2]
    if type(state) is dict and all(type(name) is str for name in state):
        encoder.add_names("state", state)  # attributes: their order is an accident
    else:
        encoder.write("state")
        encoder.add(state)
    encoder.add_all("items", parts[3] or ())
    encoder.add_all("pairs", (each for pair in parts[4] or () for each in pair))


def _add_global(encoder: Encoder, value: object, name: str) -> None:
    """What pickle finds again by its name alone, such as a ufunc."""
    for module in (getattr(value, "__module__", None), "numpy", "scipy.special"):
        found = sys.modules.get(module) if isinstance(module, str) else None
        if found is not None and getattr(found, name, None) is value:
            encoder.write("global", name)
            add_module(encoder, found)
            return
    raise Unhashable(name)
