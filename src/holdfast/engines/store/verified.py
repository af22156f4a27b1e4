"""Which files were found to be as they were written, so that they are not read through each time.

A changed file would give failures, or other values, and nobody would see it in an answer. So the
files are hashed before the first question, and again whenever the file system says that anything
about them has changed.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from holdfast import waiting
from holdfast.engines.store.manifest import StoredFile
from holdfast.engines.store.reader import check_files
from holdfast.engines.store.state import keyed, state_folder

__all__ = ["verify_once"]


_found: dict[tuple[str, str], list[tuple[object, ...]]] = {}  # by folder and name: sound so


def verify_once(folder: Path, files: Sequence[StoredFile], name: str) -> None:
    """Raise `Damaged` unless the files are as they were written; `name` is theirs, together."""
    key, quick = (str(folder), name), _quick_marks(folder, files)
    if quick is not None and _found.get(key) == quick:
        return
    _found.pop(key, None)
    sound = waiting.elsewhere(partial(_verify_noted, folder, files, name))
    if sound and quick == _quick_marks(folder, files):
        assert quick is not None
        _found[key] = quick


def _verify_noted(folder: Path, files: Sequence[StoredFile], name: str) -> bool:
    """Whether the files are sound and stayed so while they were looked at."""
    note = state_folder() / "verified" / name
    seen = _marks(folder, files)
    if seen is not None and _noted(note) == seen:
        return True
    check_files(folder, files)
    if seen is None or seen != _marks(folder, files):
        return False  # it changed while it was read: look again next time
    note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = note.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    draft.write_text(seen, "ascii")
    draft.replace(note)
    return True


def _marks(folder: Path, files: Sequence[StoredFile]) -> str | None:
    """What the file system says of each file; its owner cannot set back the time of change."""
    found: list[list[object]] = []
    for file in files:
        path = folder / file.name
        try:
            state = path.stat()
        except OSError:
            return None
        times = [state.st_mtime_ns, state.st_ctime_ns]
        found.append([str(path.resolve()), state.st_ino, state.st_size, *times, file.sha256])
    return keyed(json.dumps(found))  # sizes and hashes are functions of the rows


def _quick_marks(folder: Path, files: Sequence[StoredFile]) -> list[tuple[object, ...]] | None:
    """The same for whoever has looked at these very files before, in less time."""
    try:
        states = [((folder / file.name).stat(), file.sha256) for file in files]
    except OSError:
        return None
    return [
        (each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns, digest)
        for each, digest in states
    ]


def _noted(note: Path) -> str | None:
    try:
        return note.read_text("ascii")
    except (OSError, ValueError):
        return None
