"""Modules: those of Python and of installed packages have a version, the user's own have files.

A version stands for a whole package. Of a user's own module every byte counts, and so do those of
the modules that it uses: an edit is a new question.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import platform
import site
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import ModuleType

from holdfast.engines.local.identity.encoder import Encoder, Unhashable

__all__ = ["add_module", "add_module_name", "by_name", "is_own", "version"]

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


def _installed(top: str) -> str | None:
    """The version that the installation states: the same whether or not the package is loaded."""
    try:
        return importlib.metadata.version(_DISTRIBUTIONS.get(top, top))
    except importlib.metadata.PackageNotFoundError:
        names = _distributions().get(top, [])
    return " ".join(importlib.metadata.version(each) for each in sorted(set(names))) or None


@cache
def _distributions() -> dict[str, list[str]]:
    return {top: list(names) for top, names in importlib.metadata.packages_distributions().items()}


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
