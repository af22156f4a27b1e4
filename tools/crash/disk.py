"""A disk that forgets, when the power is cut, some or all of what was not synced.

SQLite writes to it through a file system of its own (apsw's VFS), which keeps every file twice: as
the program sees it, and as it would be found afterwards. What lies between is a list of pieces of
one sector; at a cut each of them may have reached the disk or not, in any combination. So may names
of files that were made or deleted without a sync of the folder.

A sector itself is written whole or not at all, and no other is harmed by it: that is what SQLite's
own file system assumes of disks by default ("powersafe overwrite").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from holdfast.ledger.sqlite import SqlConnection
from holdfast.randomness import Entropy, uniform_index

__all__ = ["Disk", "connector"]

SECTOR = 512
_POWERSAFE_OVERWRITE = 0x1000
_SYNCS_FOLDER = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL


@dataclass
class _Content:
    """One file, now and on the disk."""

    now: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    pieces: list[tuple[int, bytes | None]] = field(default_factory=list)  # None: cut off here

    def write(self, offset: int, data: bytes) -> None:
        _put(self.now, offset, data)
        for start, stop in _sectors(offset, offset + len(data)):
            self.pieces.append((start, data[start - offset : stop - offset]))

    def truncate(self, size: int) -> None:
        del self.now[size:]
        self.pieces.append((size, None))

    def sync(self) -> None:
        self.durable, self.pieces = bytes(self.now), []

    def survivor(self, keep: Iterator[bool]) -> bytes:
        left = bytearray(self.durable)
        for offset, data in self.pieces:
            if next(keep):
                if data is None:
                    del left[offset:]
                else:
                    _put(left, offset, data)
        return bytes(left)


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if offset > len(content):
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _sectors(start: int, stop: int) -> Iterator[tuple[int, int]]:
    while start < stop:
        end = min(stop, (start // SECTOR + 1) * SECTOR)
        yield start, end
        start = end


class Disk:
    """Files in one folder, and a number of writes and syncs after which the power is cut."""

    def __init__(self, files: dict[str, bytes], entropy: Entropy) -> None:
        self.files = files  # as they are found when the computer starts
        self.names = {name: _Content(bytearray(data), data) for name, data in files.items()}
        self.durable_names = dict(self.names)
        self._entropy = entropy
        self.left: int | None = None  # how many more operations until the cut

    @property
    def cut(self) -> bool:
        """Whether the power is gone."""
        return self.left is not None and self.left <= 0

    def operate(self) -> None:
        """Count an operation; there is none without power."""
        if self.cut:
            raise apsw.IOError("no power")
        if self.left is not None:
            self.left -= 1

    def sync_folder(self) -> None:
        """Make the names durable."""
        self.durable_names = dict(self.names)

    def start_again(self) -> None:
        """Find of the files nothing unsynced, everything, or anything in between.

        What the old process still does, closing its connection, is of no account.
        """
        keep = _chances((0, 4, 2, 1)[uniform_index(4, self._entropy)], self._entropy)
        names = self.names if next(keep) else self.durable_names
        self.files = {name: content.survivor(keep) for name, content in names.items()}
        self.left = None


def _chances(one_in: int, entropy: Entropy) -> Iterator[bool]:
    """Yes once in so many times; 0: never."""
    while True:
        yield bool(one_in) and uniform_index(one_in, entropy) == 0


class _File:
    """An open file; SQLite's names for what can be done with it."""

    def __init__(self, disk: Disk, content: _Content, syncs_folder: bool) -> None:
        self._disk, self._content, self._syncs_folder = disk, content, syncs_folder

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self._content.now[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.operate()
        self._content.write(offset, bytes(data))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.operate()
        self._content.truncate(size)

    def xSync(self, _flags: int) -> None:  # noqa: N802
        self._disk.operate()
        self._content.sync()
        if self._syncs_folder:  # the first sync of a new log or journal, as on Unix
            self._disk.sync_folder()
            self._syncs_folder = False

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._content.now)

    def xLock(self, _level: int) -> None:  # noqa: N802
        """One connection: nobody to lock out."""

    def xUnlock(self, _level: int) -> None:  # noqa: N802
        """See `xLock`."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, _operation: int, _pointer: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return SECTOR

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return _POWERSAFE_OVERWRITE

    def xClose(self) -> None:  # noqa: N802
        """Closing syncs nothing."""


class _FileSystem(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        self._disk = disk
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        key = "" if name is None else Path(_text(name)).name
        new = key not in self._disk.names
        if new:
            self._disk.operate()
            self._disk.names[key] = _Content()
        flags[1] = flags[0]
        content = self._disk.names[key]
        return _File(self._disk, content, new and bool(flags[0] & _SYNCS_FOLDER))

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802
        self._disk.operate()
        self._disk.names.pop(Path(name).name, None)
        if sync:
            self._disk.sync_folder()

    def xAccess(self, name: str, _flags: int) -> bool:  # noqa: N802
        return Path(name).name in self._disk.names

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name


def _text(name: Any) -> str:
    return name if isinstance(name, str) else str(name.filename())


class _Connection:
    """A connection through the file system, which is kept as long as the connection."""

    def __init__(self, disk: Disk, path: Path) -> None:
        name = f"forgetful-{id(self)}"
        self._system = _FileSystem(name, disk)
        self._inner = apsw.Connection(str(path), vfs=name)
        self._inner.execute("PRAGMA locking_mode = EXCLUSIVE")  # no shared memory is needed then
        self._inner.execute("PRAGMA wal_autocheckpoint = 12")  # pages; so that a run has some

    def execute(self, statement: str, values: Any = ()) -> Any:
        return self._inner.execute(statement, values)

    def close(self) -> None:
        self._inner.close()


def connector(disk: Disk) -> Any:
    """What makes connections of a ledger to the disk."""

    def connect(path: Path) -> SqlConnection:
        return _Connection(disk, path)

    return connect
