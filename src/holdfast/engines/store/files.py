"""Files of a store on the disk: private from the first byte, synced, and known by their hash."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from holdfast.engines.store.manifest import StoredFile

__all__ = ["finished", "private", "sync_folder"]


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
