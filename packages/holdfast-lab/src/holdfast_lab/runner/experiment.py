"""An experiment's config file, read strictly: what is not understood is an error, not a guess."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast.errors import InvalidInput, whole_number

Scalar = str | int | float | bool
Values = dict[str, tuple[Scalar, ...]]

GROUPS = ("attacks", "comparison", "scaling")  # the sections of the page, in their order
MODES = ("full", "quick")

_NEEDED = ("name", "title", "group", "about", *MODES)
_OPTIONAL = ("order", "headlines", "sources", "seed", "parameters")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PARAMETER = re.compile(r"[a-z][a-z0-9_]*")
_LAST = 1_000  # the place on the page of an experiment that names none
_MOST_VALUES, _MOST_REPEATS = 10_000, 1_000_000


@dataclass(frozen=True)
class Mode:
    """One extent of an experiment: full or quick."""

    repeats: int
    parameters: Values


@dataclass(frozen=True)
class Config:
    """What a config file says. Every parameter has one or more values; all are combined.

    `headlines` are parts of the text of those findings that open the page.
    """

    path: Path
    name: str
    title: str
    group: str
    order: int
    about: str
    headlines: tuple[str, ...]
    sources: tuple[str, ...]
    seed: int
    modes: Mapping[str, Mode]

    @property
    def place(self) -> tuple[int, int, str]:
        """Sorts experiments as the page shows them."""
        return GROUPS.index(self.group), self.order, self.name


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint if the word looks like one that is known.

    >>> nearest("leaderbord", ["leaderboard", "freedman"])
    "Did you mean 'leaderboard'?"
    """
    found = get_close_matches(word, list(known), 1)
    return f"Did you mean {found[0]!r}?" if found else ""


def read_config(path: Path) -> Config:
    """Read and check a config file."""
    try:
        said = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise InvalidInput("config", str(path), "a TOML file", f"{wrong}.") from None
    return _Reader(path.name).config(path, said)


class _Reader:
    """Checks; each error says in which file and under which key."""

    def __init__(self, file: str) -> None:
        self._file = file

    def _wrong(self, key: str, value: object, allowed: str, hint: str = "") -> InvalidInput:
        return InvalidInput(f"{self._file}: {key}", value, allowed, hint)

    def config(self, path: Path, said: dict[str, Any]) -> Config:
        self._known("key", said, (*_NEEDED, *_OPTIONAL))
        for key in _NEEDED:
            if key not in said:
                raise self._wrong(key, None, "given")
        common = self._parameters("[parameters]", said.get("parameters", {}))
        return Config(
            path=path,
            name=self._name(said["name"], path.stem),
            title=self._text("title", said["title"]),
            group=self._group(said["group"]),
            order=self._whole("order", said.get("order", _LAST), 0, 10**6),
            about=self._text("about", said["about"]),
            headlines=self._texts("headlines", said.get("headlines", [])),
            sources=self._texts("sources", said.get("sources", [])),
            seed=self._whole("seed", said.get("seed", 1), 0, 2**63 - 1),
            modes={mode: self._mode(mode, said[mode], common) for mode in MODES},
        )

    def _known(self, what: str, said: Iterable[str], known: Iterable[str]) -> None:
        known = list(known)
        for key in said:
            if key not in known:
                hint = nearest(key, known)
                raise self._wrong(what, key, f"one of {', '.join(known) or 'none'}", hint)

    def _text(self, key: str, value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(key, value, "text that is not empty")
        return value.strip()

    def _texts(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self._wrong(key, value, "a list of texts")
        return tuple(self._text(key, each) for each in value)

    def _whole(self, key: str, value: object, low: int, high: int) -> int:
        return whole_number(f"{self._file}: {key}", value, low, high)

    def _name(self, value: object, stem: str) -> str:
        name = self._text("name", value)
        if not _NAME.fullmatch(name):
            raise self._wrong("name", name, "lower-case words joined by hyphens")
        if name.replace("-", "_") != stem:
            hint = f"Rename the file to {name.replace('-', '_')}.toml, or change the name."
            raise self._wrong("name", name, "the file's own, with hyphens for underscores", hint)
        return name

    def _group(self, value: object) -> str:
        if value not in GROUPS:
            hint = nearest(str(value), GROUPS)
            raise self._wrong("group", value, f"one of {', '.join(GROUPS)}", hint)
        return str(value)

    def _mode(self, mode: str, said: object, common: Values) -> Mode:
        if not isinstance(said, dict):
            raise self._wrong(f"[{mode}]", said, "a table")
        self._known(f"key of [{mode}]", said, ("repeats", "parameters"))
        if "repeats" not in said:
            raise self._wrong(f"[{mode}] repeats", None, "given")
        repeats = self._whole(f"[{mode}] repeats", said["repeats"], 1, _MOST_REPEATS)
        where = f"[{mode}.parameters]"
        own = self._parameters(where, said.get("parameters", {}))
        self._known(f"parameter of {where}", own, common)
        return Mode(repeats, {**common, **own})

    def _parameters(self, where: str, said: object) -> Values:
        if not isinstance(said, dict):
            raise self._wrong(where, said, "a table")
        return {name: self._values(where, name, value) for name, value in said.items()}

    def _values(self, where: str, name: str, value: object) -> tuple[Scalar, ...]:
        key = f"{where} {name}"
        if not _PARAMETER.fullmatch(name) or name == "repeat":
            raise self._wrong(f"{where} name", name, "lower-case with underscores, not 'repeat'")
        values: list[Any] = value if isinstance(value, list) else [value]
        if not 1 <= len(values) <= _MOST_VALUES:
            raise self._wrong(key, value, f"from 1 to {_MOST_VALUES:,} values")
        kinds = {self._kind(key, each) for each in values}
        if kinds == {int, float}:  # one column has one type
            values, kinds = [float(each) for each in values], {float}
        if len(kinds) > 1:
            raise self._wrong(key, value, "values of one type: text, numbers or booleans")
        if len(set(values)) < len(values):
            raise self._wrong(key, value, "values that differ")
        return tuple(values)

    def _kind(self, key: str, value: object) -> type:
        if not isinstance(value, bool | int | float | str):
            raise self._wrong(key, value, "text, a number, a boolean, or a list of them")
        if isinstance(value, float) and not abs(value) < float("inf"):
            raise self._wrong(key, value, "finite")
        return type(value)


# Where experiments are found: in the package by name, or anywhere by the path of a config file.


_PACKAGE = "holdfast_lab.experiments"
_CATALOGUE_NEEDED = ("measure", "draw", "findings")


@dataclass(frozen=True)
class Experiment:
    """A config file and the module beside it. `called` is what a command line names it by."""

    config: Config
    called: str

    @property
    def name(self) -> str:
        """The config's name."""
        return self.config.name

    @property
    def source(self) -> Path:
        """The module's file."""
        return self.config.path.with_suffix(".py")

    def module(self) -> ModuleType:
        """The module, loaded and checked."""
        return load_module(self.source)


def _folder() -> Path:
    return Path(str(files(_PACKAGE)))


def known_experiments() -> tuple[list[Experiment], dict[str, InvalidInput]]:
    """The package's experiments in the page's order; and by name those whose config is wrong."""
    found, wrong = [], {}
    for path in sorted(_folder().glob("*.toml")):
        try:
            config = read_config(path)
        except InvalidInput as problem:
            wrong[path.stem.replace("_", "-")] = problem
        else:
            found.append(Experiment(config, config.name))
    return sorted(found, key=lambda each: each.config.place), wrong


def find_experiments(names: Iterable[str]) -> list[Experiment]:
    """The experiments of these names and paths, each once; in the order given."""
    found: dict[str, Experiment] = {}
    for name in names:
        one = _by_path(name) if name.endswith(".toml") else _by_name(name)
        known = found.setdefault(one.name, one)
        if known.config.path != one.config.path:
            raise InvalidInput("name", one.name, "the name of one experiment", f"See {name}.")
    return list(found.values())


def _by_path(name: str) -> Experiment:
    path = Path(name)
    if not path.is_file():
        raise InvalidInput("name", name, "a config file that exists")
    return Experiment(read_config(path.resolve()), name)


def _by_name(name: str) -> Experiment:
    path = _folder() / f"{name.replace('-', '_')}.toml"
    if path.is_file() and path.parent == _folder():
        config = read_config(path)
        return Experiment(config, config.name)
    known = [each.stem.replace("_", "-") for each in sorted(_folder().glob("*.toml"))]
    listed = "See `holdfast lab list`; an experiment of your own is named by its file, x.toml."
    hint = f"{nearest(name, known)} {listed}".strip()
    raise InvalidInput("name", name, "the name of an experiment", hint)


def load_module(source: Path) -> ModuleType:
    """The module of an experiment: of the package by its name, any other from its file."""
    if not source.is_file():
        hint = f"It has {', '.join(_CATALOGUE_NEEDED)}."
        raise InvalidInput("module", str(source), "a file beside the config file", hint)
    own = source.parent == _folder()
    try:
        module = importlib.import_module(f"{_PACKAGE}.{source.stem}") if own else _from_file(source)
    except Exception as wrong:
        hint = f"{type(wrong).__name__}: {wrong}"
        raise InvalidInput("module", str(source), "one that can be imported", hint) from wrong
    for name in _CATALOGUE_NEEDED:
        if not callable(getattr(module, name, None)):
            raise InvalidInput("module", str(source), f"a module with a function {name}")
    return module


def _from_file(source: Path) -> ModuleType:
    digest = sha256(str(source).encode() + source.read_bytes()).hexdigest()[:16]
    name = f"holdfast_experiment_{source.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


# The code that a measurement rests on, as one digest: comments, docstrings, pictures left out.
#
# Starting from an experiment's `measure`, names are followed through its module and through all of
# `holdfast_lab`. Whoever changes a picture or a finding keeps the results; whoever changes what is
# measured does not. The rest of Holdfast is known by its version; other libraries are not looked
# at.


_FOLLOWED = "holdfast_lab"
_ROOT = Path(__file__).parents[2]  # of the package
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
