"""Files on the disk: private from the first byte, synced, known by their hash, and one's own."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.engines.store.manifest import StoredFile

__all__ = [
    "NotOwnError",
    "finished",
    "opened_own",
    "own_folder",
    "private",
    "remove_in",
    "sync_folder",
]

_UNLINKED = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # never through a link, never waiting


class NotOwnError(Exception):
    """Why a file or folder is not one that this account made for itself."""


def private(file: Path) -> Path:
    """An empty file that only its owner may read, before anything is in it."""
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return file


def finished(file: Path, name: str | None = None) -> StoredFile:
    """The file on the disk for good, and what it is; its own name unless it gets another."""
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return StoredFile(name or file.name, digest, file.stat().st_size)


def sync_folder(folder: Path) -> None:
    """Names in the folder on the disk for good."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def own_folder(folder: Path) -> Iterator[int]:
    """The folder itself, whatever its name leads to later, if nobody else can write to it.

    Raises `NotOwnError` if it is another account's, a link or no folder.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _UNLINKED)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotOwnError(f"it cannot be opened as a folder ({error.strerror}).") from None
    try:
        _check_own(os.fstat(descriptor), "it")
        yield descriptor
    finally:
        os.close(descriptor)


def opened_own(place: int, name: str) -> int:
    """A file of such a folder, to be read and written, under the same conditions."""
    try:
        descriptor = os.open(name, os.O_RDWR | _UNLINKED, dir_fd=place)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotOwnError(f"its {name} cannot be opened ({error.strerror}).") from None
    try:
        found = os.fstat(descriptor)
        _check_own(found, f"its {name}")
        if not stat.S_ISREG(found.st_mode):
            raise NotOwnError(f"its {name} is no file.")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_own(found: os.stat_result, what: str) -> None:
    if found.st_uid != os.geteuid():
        raise NotOwnError(f"{what} belongs to another account.")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotOwnError(f"others than its owner can write to {what}.")


def remove_in(place: int, kept: str) -> None:
    """Remove all that is in a folder, but for one file; what cannot be removed stays."""
    for name in os.listdir(place):
        if name == kept:
            continue
        try:
            os.unlink(name, dir_fd=place)
        except FileNotFoundError:
            continue
        except OSError:  # a folder
            shutil.rmtree(name, ignore_errors=True, dir_fd=place)
