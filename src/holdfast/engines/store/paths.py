"""Paths and patterns of files, as a list of files of one format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import InvalidInput

__all__ = ["data_files", "is_paths"]

_FORMATS = {
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst"),
    "parquet": (".parquet", ".pq"),
}
_ALLOWED = "paths of CSV files (.csv, .tsv, also .gz or .zst) or of Parquet files (.parquet, .pq)"


def is_paths(data: object) -> bool:
    """Whether the data are given as a path or a list of paths."""
    if isinstance(data, str | os.PathLike):
        return True
    return (
        isinstance(data, Sequence)
        and len(data) > 0
        and all(isinstance(each, str | os.PathLike) for each in data)
    )


def data_files(data: Any) -> tuple[str, tuple[Path, ...]]:
    """The format, "csv" or "parquet", and the files in the order given; a pattern's are sorted."""
    given: Iterable[Any] = [data] if isinstance(data, str | os.PathLike) else data
    files = tuple(file for each in given for file in _expanded(os.fspath(each)))
    formats = {_format(file) for file in files}
    if len(formats) > 1:
        hint = "Create a holdout from files of one format."
        raise InvalidInput("data", [file.name for file in files], "files of one format", hint)
    return formats.pop(), files


def _expanded(text: str) -> list[Path]:
    path = Path(text).expanduser()
    if path.is_dir():
        hint = f"Name its files, for example by the pattern {str(path / '*.parquet')!r}."
        raise InvalidInput("data", text, _ALLOWED, hint)
    if path.exists():  # a name with * or [ in it is a name before it is a pattern
        return [path]
    if "://" in text:
        hint = "Download the file first, or let a cluster read it: engine='dask://…'."
        raise InvalidInput("data", text, _ALLOWED, hint)
    pattern = path.relative_to(path.anchor)
    found = sorted(each for each in Path(path.anchor).glob(str(pattern)) if each.is_file())
    if not found:
        raise InvalidInput("data", text, _ALLOWED, "No file has this name or fits this pattern.")
    return found


def _format(file: Path) -> str:
    name = file.name.lower()
    for each, endings in _FORMATS.items():
        if name.endswith(endings):
            return each
    raise InvalidInput("data", str(file), _ALLOWED, "The ending of the name says the format.")
