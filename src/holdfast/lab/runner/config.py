"""An experiment's config file, read strictly: what is not understood is an error, not a guess."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from holdfast.errors import InvalidInput, whole_number

__all__ = ["GROUPS", "MODES", "Config", "Mode", "Scalar", "nearest", "read_config"]

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
