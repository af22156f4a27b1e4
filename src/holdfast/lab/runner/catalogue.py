"""Where experiments are found: in the package by name, or anywhere by the path of a config file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from types import ModuleType

from holdfast.errors import InvalidInput
from holdfast.lab.runner.config import Config, nearest, read_config

__all__ = ["Experiment", "find_experiments", "known_experiments", "load_module"]

_PACKAGE = "holdfast.lab.experiments"
_NEEDED = ("measure", "draw", "findings")


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
        hint = f"It has {', '.join(_NEEDED)}."
        raise InvalidInput("module", str(source), "a file beside the config file", hint)
    own = source.parent == _folder()
    try:
        module = importlib.import_module(f"{_PACKAGE}.{source.stem}") if own else _from_file(source)
    except Exception as wrong:
        hint = f"{type(wrong).__name__}: {wrong}"
        raise InvalidInput("module", str(source), "one that can be imported", hint) from wrong
    for name in _NEEDED:
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
