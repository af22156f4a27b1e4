"""The rules of the layout, as a checker of one module's source; tests/test_architecture.py uses it.

A module may import from its own row or from an earlier one, never from a later one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["LAYERS", "problems"]

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("concurrency", "notebook"),
    ("grids", "randomness"),
    ("theory",),
    ("planning",),
    ("mechanisms",),
    ("protocols",),
    ("store",),
    ("engines",),
    ("ledger",),
    ("holdout",),
    ("report",),
    ("server", "client", "cli", "__main__"),
    ("holdfast_lab",),  # a package of its own, in packages/
)
_LAB = "holdfast_lab"
_ROW = {name: row for row, names in enumerate(LAYERS) for name in names}

_NOWHERE = {
    "random": "take an Entropy from holdfast.randomness",
    "secrets": "take an Entropy from holdfast.randomness",
    "scipy.stats": "it takes a second to import; use scipy.special",
}
# theory/ is pure: no randomness, no operating system, no files, no network, no clock.
_NOT_IN_THEORY = (
    *("holdfast.randomness", "numpy.random"),
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
    """Every rule that importing this name into this layer breaks."""
    if _within(name, "holdfast") or _within(name, _LAB):
        target = _layer(name)
        if own == _LAB:
            pass  # it may use all of Holdfast, as anybody may
        elif target not in _ROW:
            yield f"imports {name} from the top of the package; name the module instead"
        elif _ROW[target] > _ROW[own]:
            yield f"imports {name}, but {target} is a later layer than {own}"
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


def _layer(name: str) -> str:
    """The layer that a module is in; empty for the top of the package."""
    package, inner, *_ = *name.split("."), ""
    return package if package == _LAB else inner


def problems(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Every rule that a module breaks, as `module:line: what`; nothing for a good one.

    >>> problems("holdfast.theory.coins", "import holdfast.server")
    ['holdfast.theory.coins:1: imports holdfast.server, but server is a later layer than theory']
    """
    own = _layer(module)
    if own not in _ROW:
        return [f"{module}: {own} is in no layer; give it a row in tools/architecture.py"]
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
