"""A store whose shards are elsewhere, under any URL that fsspec knows, and are fetched when needed.

    s3://…/shards/00017.parquet ──▶ <name>.parquet in a folder here, and beside it <name>.lock

The name is a hash of where the shard is stored, and nothing of what is in it. Whoever reads it
holds its lock; to make room, those go first that nobody holds and nobody has used for longest.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from holdfast.errors import Damaged, InvalidInput
from holdfast.store.blocks import BlockStore, Contents, Shard, StoredFile, private
from holdfast.store.user_state import verify_once

__all__ = ["SHARDS", "SHARDS_BYTES", "RemoteStore", "file_system"]

SHARDS = "HOLDFAST_SHARDS"
SHARDS_BYTES = "HOLDFAST_SHARDS_BYTES"
_USUAL_BYTES = 50 * 2**30
_PIECE = 2**22  # bytes read at once
_DRAFT = ".draft"
_DRAFT_SECONDS = 86_400.0  # a draft that nobody has written to for so long is nobody's
_RESTORE = "Put the file back as it was; answers from another one would not be certified."


def file_system(location: str) -> tuple[Any, str]:
    """The file system of a URL and the path in it; who may read it is fsspec's configuration."""
    try:
        import fsspec
    except ImportError:
        hint = "Install it: pip install fsspec."
        raise InvalidInput("location", location, "used where fsspec is installed", hint) from None
    try:
        system, path = fsspec.core.url_to_fs(location)
    except (ImportError, ValueError) as error:
        allowed = "a URL that fsspec can open, such as s3://bucket/folder"
        raise InvalidInput("location", location, allowed, f"{error}.") from None
    return system, str(path)


class RemoteStore(BlockStore):
    """The sealed blocks of a holdout whose manifest has a location."""

    def __init__(self, folder: Path, manifest: Contents) -> None:
        super().__init__(folder, manifest)
        names = {shard.name for shard in self.shards}
        self.kept_files = tuple(file for file in manifest.files if file.name not in names)

    def place(self, shard: Shard) -> Path:
        name = hashlib.sha256(f"{self.manifest.location}/{shard.name}".encode()).hexdigest()
        return _cache_folder() / f"{name}.parquet"

    @contextmanager
    def held(self, shard: Shard) -> Iterator[None]:
        file, lock = self._file(shard), self.place(shard).with_suffix(".lock")
        lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened(lock) as descriptor:
            # From one lock to the other there is a moment without any: look again each time.
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            while not self._is_sound(shard, file):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if not self._is_sound(shard, file):
                    self._fetch(shard, file)
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            os.utime(lock)  # the last use
            yield

    def check_files(self) -> None:
        super().check_files()
        for shard in self.shards:
            self._copy(shard, self._file(shard), None)

    def _file(self, shard: Shard) -> StoredFile:
        return next(file for file in self.manifest.files if file.name == shard.name)

    def _is_sound(self, shard: Shard, file: StoredFile) -> bool:
        place = self.place(shard)
        if not place.exists():
            return False
        try:
            fetched = StoredFile(place.name, file.sha256, file.bytes)
            verify_once(place.parent, (fetched,), place.stem)
        except Damaged:  # on this disk: where it came from, it may be sound
            return False
        return True

    def _fetch(self, shard: Shard, file: StoredFile) -> None:
        place = self.place(shard)
        draft = place.with_suffix(f".{uuid.uuid4().hex}{_DRAFT}")
        _make_room(place.parent, file.bytes)
        try:
            with private(draft).open("wb") as stream:
                self._copy(shard, file, stream)
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)

    def _copy(self, shard: Shard, file: StoredFile, target: BinaryIO | None) -> None:
        """Read a shard where it is stored; raise `Damaged` unless it is as it was written."""
        location = f"{self.manifest.location}/{shard.name}"
        system, path = file_system(location)
        digest, size = hashlib.sha256(), 0
        try:
            with system.open(path, "rb") as source:
                while piece := source.read(_PIECE):
                    digest.update(piece)
                    size += len(piece)
                    if target is not None:
                        target.write(piece)
        except FileNotFoundError:
            raise Damaged(location, "a file", "nothing", _RESTORE) from None
        if (size, digest.hexdigest()) != (file.bytes, file.sha256):
            raise Damaged(location, "the bytes that were written", "others", _RESTORE)


@contextmanager
def _opened(lock: Path) -> Iterator[int]:
    """A lock file. It is never removed, and nothing but its lock and its time of change counts."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _cache_folder() -> Path:
    """`$HOLDFAST_SHARDS`, else `holdfast/shards` in `$XDG_CACHE_HOME` or `~/.cache`."""
    own, shared = os.environ.get(SHARDS), os.environ.get("XDG_CACHE_HOME")
    usual = Path(shared) if shared and Path(shared).is_absolute() else Path.home() / ".cache"
    return (Path(own).expanduser() if own else usual / "holdfast" / "shards").resolve()


def _make_room(folder: Path, needed: int) -> None:
    """Remove what was used longest ago and is not held, until so many bytes more may be kept."""
    given = os.environ.get(SHARDS_BYTES, str(_USUAL_BYTES))
    if not given.isdigit():
        raise InvalidInput(SHARDS_BYTES, given, "a number of bytes")
    limit = int(given)
    kept = _sizes(folder.glob("*.parquet"))
    total = sum(kept.values()) + sum(_drafts(folder).values()) + needed
    for file in sorted(kept, key=_last_use):
        if total <= limit:
            return
        with _opened(file.with_suffix(".lock")) as descriptor, suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.unlink(missing_ok=True)
            total -= kept[file]


def _sizes(files: Iterable[Path]) -> dict[Path, int]:
    """The bytes of each file that is still there: others make room too."""
    found = {}
    for file in files:
        with suppress(FileNotFoundError):
            found[file] = file.stat().st_size
    return found


def _drafts(folder: Path) -> dict[Path, int]:
    """What is being fetched; what a killed process has left of it is removed."""
    for file in folder.glob(f"*{_DRAFT}"):
        with suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime > _DRAFT_SECONDS:
                file.unlink()
    return _sizes(folder.glob(f"*{_DRAFT}"))


def _last_use(file: Path) -> float:
    try:
        return file.with_suffix(".lock").stat().st_mtime
    except OSError:
        return 0.0
