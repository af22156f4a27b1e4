"""The folder that a server has while it runs, for jobs and counts, in the temporary folder.

    holdfast-server-…/
        in-use   locked by every process of the server

A server that is killed leaves it behind, with answers in it. The next one of the same account finds
that nobody holds the lock, and removes it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.store.blocks import NotOwnError, opened_own, own_folder, remove_in

__all__ = ["scratch_folder", "use"]

_PREFIX = "holdfast-server-"
_LOCK = "in-use"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder, until the block ends; before that, those of servers that were killed go."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError, NotOwnError):
            _remove_unused(left)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as made:
        draft = Path(made, f"{_LOCK}.draft")
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        lock = _locked(draft)
        try:
            draft.rename(Path(made, _LOCK))  # under its name it is locked
            yield Path(made)
        finally:
            os.close(lock)


def use(folder: Path) -> int:
    """Hold the lock of such a folder together with others, until the descriptor is closed."""
    return _locked(folder / _LOCK)


def _locked(file: Path) -> int:
    descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _remove_unused(folder: Path) -> None:
    """Remove a folder of this account's, unless somebody holds its lock or it has none yet."""
    with own_folder(folder) as place:
        descriptor = opened_own(place, _LOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_in(place, _LOCK)
            os.unlink(_LOCK, dir_fd=place)
            folder.rmdir()
        finally:
            os.close(descriptor)
