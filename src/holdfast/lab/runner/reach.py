"""The code that a measurement rests on, as one digest: comments, docstrings, pictures left out.

Starting from an experiment's `measure`, names are followed through its module and through all of
`holdfast.lab`. Whoever changes a picture or a finding keeps the results; whoever changes what is
measured does not. The rest of Holdfast is known by its version; other libraries are not looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

__all__ = ["digest_of"]

_FOLLOWED = "holdfast.lab"
_ROOT = Path(__file__).parents[3]  # of the package holdfast
_ALL = "*"  # instead of a name: the whole module

Place = tuple[str, str]  # a module's file, a name in it


def digest_of(path: Path, name: str = "measure") -> str:
    """A digest of what the name in the file reaches.

    A change that no name leads to (through `getattr`, or in a file that is read) goes unseen.
    """
    seen: set[Place] = set()
    waiting: list[Place] = [(str(path), name)]
    texts: set[str] = set()
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        file = Path(place[0])
        module = _parsed(file, file.read_text("utf-8"))
        for statement in module.bearing(place[1]):
            texts.add(ast.dump(statement))
            waiting.extend(module.leads(statement))
    whole = "\n".join([version("holdfast"), *sorted(texts)])
    return sha256(whole.encode()).hexdigest()[:16]


class _Module:
    """A module's top-level statements, by the names that they bind."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        tree = _Bare().visit(ast.parse(text))
        self._all: list[ast.stmt] = tree.body
        self._by_name: dict[str, list[ast.stmt]] = {}
        self._always: list[ast.stmt] = []  # what binds nothing may still do something
        for statement in self._all:
            names = set(_bound(statement))
            for name in names:
                self._by_name.setdefault(name, []).append(statement)
            if not names:
                self._always.append(statement)

    def bearing(self, name: str) -> list[ast.stmt]:
        """The statements that make the name."""
        if name == _ALL:
            return self._all
        return [*self._by_name.get(name, []), *self._always]

    def leads(self, statement: ast.stmt) -> Iterator[Place]:
        """What a statement refers to: names of this module, names of others."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in self._by_name:
                yield str(self._path), node.id
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    yield from _imported(node.module or "", alias.name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    yield from _imported(alias.name, _ALL)


@cache
def _parsed(path: Path, text: str) -> _Module:
    return _Module(path, text)


class _Bare(ast.NodeTransformer):
    """Drops docstrings, which are not measured."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names that a top-level statement binds, in branches too, but not inside of functions."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield (alias.asname or alias.name).split(".")[0]


def _imported(module: str, name: str) -> Iterator[Place]:
    """Where an imported name is made, if it is one of the lab's."""
    if not f"{module}.".startswith(f"{_FOLLOWED}."):
        return
    inner = _file(f"{module}.{name}") if name != _ALL else None
    if inner is not None:
        yield str(inner), _ALL  # `from package import module`
        return
    path = _file(module)
    if path is not None:
        yield str(path), name


def _file(module: str) -> Path | None:
    """Found without an import: a neighbour that does not run must not stop this experiment."""
    plain = _ROOT.joinpath(*module.split("."))
    for path in (plain.with_suffix(".py"), plain / "__init__.py"):
        if path.is_file():
            return path
    return None
