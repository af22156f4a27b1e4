"""Functions by what they do, classes by what they define, other objects by what pickle takes along.

Only what travels to a worker process can change what a function gives there. A function of an
installed package travels as a name; a user's own function or class travels with its code and with
the globals that the code names; any other object with what its own pickling gives. So do they here.
"""

from __future__ import annotations

import copyreg
import dis
import enum
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

from holdfast.engines.local.identity.data import add_data
from holdfast.engines.local.identity.encoder import Encoder, Unhashable
from holdfast.engines.local.identity.modules import add_module, add_module_name, by_name, is_own

__all__ = ["add_object"]

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


def add_object(encoder: Encoder, value: object) -> None:
    """Anything that is not plain."""
    if add_data(encoder, value):
        return
    if isinstance(value, types.ModuleType):
        add_module(encoder, value)
        return
    named = by_name(value)
    if named is not None:
        encoder.write("named", *named)
    elif isinstance(value, type):
        _add_class(encoder, value)
    elif not _add_callable(encoder, value):
        _add_reduced(encoder, value)


def _add_callable(encoder: Encoder, value: Any) -> bool:
    """Functions in every form that Python has for them; False for anything else."""
    if isinstance(value, types.FunctionType):
        _add_function(encoder, value)
    elif isinstance(value, types.CodeType):
        _add_code(encoder, value)
    elif isinstance(value, types.CellType):
        _add_cell(encoder, value)
    elif isinstance(value, types.MethodType):
        encoder.add_all("method", (value.__func__, value.__self__))
    elif isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
        encoder.write("built-in", value.__name__)
        encoder.add(value.__self__)
    elif isinstance(value, _DESCRIPTORS):
        encoder.write("descriptor", value.__name__)
        encoder.add(value.__objclass__)  # int.__abs__ is not float.__abs__
    elif isinstance(value, functools.partial):
        encoder.add_all("partial", (value.func, value.args))
        encoder.add_names("keywords", value.keywords)
        encoder.add_names("attributes", vars(value))
    else:
        return _add_wrapper(encoder, value)
    return True


def _add_wrapper(encoder: Encoder, value: Any) -> bool:
    if isinstance(value, staticmethod | classmethod):
        encoder.write(type(value).__name__)
        encoder.add(value.__func__)
    elif isinstance(value, property):
        encoder.add_all("property", (value.fget, value.fset, value.fdel))
    elif isinstance(value, functools.cached_property):
        encoder.write("cached property", str(value.attrname))
        encoder.add(value.func)
    elif isinstance(value, functools._lru_cache_wrapper):
        encoder.write("cached")
        encoder.add(value.__wrapped__)
    else:
        return False
    return True


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
    _add_state(encoder, parts[2])
    encoder.add_all("items", parts[3] or ())
    encoder.add_all("pairs", (each for pair in parts[4] or () for each in pair))


def _add_state(encoder: Encoder, state: Any) -> None:
    if type(state) is dict and all(type(name) is str for name in state):
        encoder.add_names("state", state)  # attributes: their order is an accident
    else:
        encoder.write("state")
        encoder.add(state)


def _add_global(encoder: Encoder, value: object, name: str) -> None:
    """What pickle finds again by its name alone, such as a ufunc."""
    for module in (getattr(value, "__module__", None), "numpy", "scipy.special"):
        found = sys.modules.get(module) if isinstance(module, str) else None
        if found is not None and getattr(found, name, None) is value:
            encoder.write("global", name)
            add_module(encoder, found)
            return
    raise Unhashable(name)
