"""The rules of the layout, as a checker of one module's source; tests/test_architecture.py uses it.

A module may import from its own package, from those that its package builds on, and from theirs.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

__all__ = ["BUILDS_ON", "class_names", "problems", "repeated_classes", "type_tests"]

_LAB = "holdfast_lab"  # a package of its own, in packages/

# The graph of the packages, which CONTRIBUTING.md draws: those that each builds on.
BUILDS_ON: dict[str, tuple[str, ...]] = {
    "errors": (),
    "concurrency": ("errors",),
    "grids": ("errors",),
    "randomness": ("errors",),
    "verbs": ("grids",),
    "theory": ("errors",),
    "mechanisms": ("grids", "randomness", "theory"),
    "protocols": ("mechanisms",),
    "planning": ("protocols",),
    "store": ("concurrency", "randomness"),
    "ledger": ("concurrency",),
    "engines": ("store", "protocols"),
    "holdout": ("engines", "ledger", "planning"),
    "report": ("holdout",),
    "server": ("holdout", "verbs"),
    "client": ("holdout", "verbs"),
    "cli": ("client", "report", "server"),
    _LAB: ("cli",),
}


def _below(name: str) -> set[str]:
    return {name}.union(*(_below(each) for each in BUILDS_ON[name]))


_MAY_IMPORT = {name: _below(name) for name in BUILDS_ON}

_NOWHERE = {
    "random": "take an Entropy from holdfast.randomness",
    "secrets": "take an Entropy from holdfast.randomness",
    "scipy.stats": "it takes a second to import; use scipy.special",
}
# theory/ is pure: no randomness, no operating system, no files, no network, no clock.
_NOT_IN_THEORY = (
    "numpy.random",
    *("glob", "io", "os", "pathlib", "pickle", "shutil", "sqlite3", "sys", "tempfile"),
    *("http", "logging", "socket", "urllib"),
    *("multiprocessing", "signal", "subprocess", "threading", "time"),
)
_NOT_CALLED_IN_THEORY = frozenset({"eval", "exec", "input", "open", "print"})

_Import = ast.Import | ast.ImportFrom


def _within(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def _names(node: _Import, module: str, *, is_package: bool) -> list[str]:
    """What one import statement names; in `from a import b` the b may be a module, so: a.b."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:  # relative: climb from the package that the module is in
        parts = module.split(".")
        climbed = parts[: len(parts) - node.level + is_package]
        base = ".".join([*climbed, base] if base else climbed)
    return [f"{base}.{alias.name}" for alias in node.names]


def _imports(node: ast.AST, *, inside_function: bool = False) -> Iterator[tuple[_Import, bool]]:
    """Every import statement, and whether a function has to be called before it runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Import):
            yield child, inside_function
        function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _imports(child, inside_function=inside_function or function)


def _wrong_import(name: str, own: str, *, inside_function: bool) -> Iterator[str]:
    """Every rule that importing this name into this package breaks."""
    if _within(name, "holdfast") or _within(name, _LAB):
        target = _package(name)
        if own == _LAB:
            pass  # it may use all of Holdfast, as anybody may
        elif target not in BUILDS_ON:
            yield f"imports {name} from the top of the package; name the module instead"
        elif target not in _MAY_IMPORT[own]:
            yield f"imports {name}, but {own} does not build on {target}"
    if _within(name, "scipy") and not inside_function:
        yield f"imports {name} at its top; do it inside the function that needs it"
    for module, reason in _NOWHERE.items():
        if _within(name, module):
            yield f"imports {name}; {reason}"
    if own == "theory" and any(_within(name, module) for module in _NOT_IN_THEORY):
        yield f"imports {name}, but theory is pure"


def _wrong_use(node: ast.AST, own: str) -> Iterator[str]:
    """Every rule that an expression breaks."""
    if isinstance(node, ast.Attribute):
        name = ast.unparse(node)
        if name == "os.urandom" and own != "randomness":
            yield "uses os.urandom; take an Entropy from holdfast.randomness"
        if name in {"np.random", "numpy.random"} and own == "theory":
            yield "uses numpy.random, but theory is pure"
    if own == "theory" and isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name in _NOT_CALLED_IN_THEORY:
            yield f"calls {name}, but theory is pure"


def _package(name: str) -> str:
    """The package of the graph that a module is in; empty for the top."""
    package, inner, *_ = *name.split("."), ""
    return package if package == _LAB else inner


def problems(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Every rule that a module breaks, as `module:line: what`; nothing for a good one.

    >>> problems("holdfast.theory.coins", "import holdfast.server")
    ['holdfast.theory.coins:1: imports holdfast.server, but theory does not build on server']
    """
    own = _package(module)
    if own not in BUILDS_ON:
        return [f"{module}: {own} is not in the graph; give it a line in tools/architecture.py"]
    tree = ast.parse(source)
    found = [
        (node.lineno, what)
        for node, inside_function in _imports(tree)
        for name in _names(node, module, is_package=is_package)
        for what in _wrong_import(name, own, inside_function=inside_function)
    ]
    found += [
        (node.lineno, what)
        for node in ast.walk(tree)
        if isinstance(node, ast.expr)
        for what in _wrong_use(node, own)
    ]
    return [f"{module}:{line}: {what}" for line, what in sorted(found)]


@cache
def _nodes(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


def class_names(source: str) -> list[str]:
    """The classes that a module defines, wherever in it."""
    return [node.name for node in _nodes(source) if isinstance(node, ast.ClassDef)]


def repeated_classes(sources: Iterable[str]) -> dict[str, int]:
    """The class names that mean several things, and how many.

    >>> repeated_classes(["class A: pass", "class A: pass", "class B: pass"])
    {'A': 2}
    """
    found = Counter(name for source in sources for name in class_names(source))
    return {name: count for name, count in sorted(found.items()) if count > 1}


def type_tests(source: str, kinds: set[str]) -> int:
    """How often a module asks, by `isinstance`, which of these classes something is.

    >>> type_tests("isinstance(x, Plan | int) or isinstance(x, plans.Plan)", {"Plan"})
    2
    """
    asked = [
        node.args[1]
        for node in _nodes(source)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
    ]
    return sum(bool(kinds & set(_last_names(types))) for types in asked)


def _last_names(types: ast.expr) -> Iterator[str]:
    for node in ast.walk(types):
        if isinstance(node, ast.Name):
            yield node.id
        if isinstance(node, ast.Attribute):
            yield node.attr
