"""A folder in which a holdout is being made, and what is left of one that was never finished.

    .study.holdfast.creating-1a2b3c4d/
        creating.json   locked by whoever makes the holdout: where else its files are

When the note is there and nobody holds its lock, its process has died. The next creation at the
same path then removes the folder, and what is elsewhere: under the location that the note names, in
a folder of this creation's own. A folder that has had no note for minutes never got one.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["folder_beside", "remove_leftovers"]

_NOTE = "creating.json"
_DRAFT = f"{_NOTE}.draft"
_NOTE_SECONDS = 600.0  # until a folder surely has its note
_REMOVED = "removing what an interrupted creation left"
_TRIES, _PAUSE = 50, 0.1  # a worker that writes its last file may be in the way


@contextmanager
def folder_beside(
    path: Path, identity: str, engine: str | None, location: str | None
) -> Iterator[Path]:
    """A new folder on the same disk, to be renamed; after an error it is removed.

    So is all that is in it, and what a creation on a cluster has written under `location`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.with_name(f".{path.name}.creating-{identity}")
    folder.mkdir(mode=0o700)
    note = {"engine": engine, "location": location}
    draft = folder / _DRAFT
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, json.dumps(note).encode("utf-8"))
        os.fsync(descriptor)
        draft.rename(folder / _NOTE)  # under its name it is whole, and locked
        yield folder
        # After the rename: until then, whoever comes next has to know what to remove.
        (path / _NOTE).unlink(missing_ok=True)
    except BaseException:
        if (folder / _NOTE).exists():
            with suppress(Exception):  # what remains, the next creation removes
                _discard(folder)
        _discard_unnoted(folder)
        raise
    finally:
        os.close(descriptor)


def remove_leftovers(path: Path, progress: Callable[[str, float], None] | None) -> None:
    """Remove what creations at this path have left that were killed."""
    for folder in path.parent.glob(f".{glob.escape(path.name)}.creating-*"):
        try:
            # To be written, though nothing is: some network disks give no other an exclusive lock.
            stream = (folder / _NOTE).open("r+b")
        except PermissionError:  # somebody else's
            continue
        except (FileNotFoundError, NotADirectoryError):
            with suppress(FileNotFoundError):
                if time.time() - folder.stat().st_mtime > _NOTE_SECONDS:
                    _discard_unnoted(folder)
            continue
        with stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # it is being made now
                continue
            if progress is not None:
                progress(_REMOVED, 0.0)
            with suppress(FileNotFoundError):  # another one has just removed it
                _discard(folder)
            if progress is not None:
                progress(_REMOVED, 1.0)


def _discard_unnoted(folder: Path) -> None:
    """Remove a folder whose process was killed before its note was there, or after."""
    with suppress(OSError):  # gone, or there is something in it of which nothing is known
        (folder / _DRAFT).unlink(missing_ok=True)
        folder.rmdir()


def _discard(folder: Path) -> None:
    note = json.loads((folder / _NOTE).read_text("utf-8"))
    if note["engine"] is not None:
        from holdfast.engines.dask.creation import give_up

        give_up(note["engine"], folder, note["location"])
    for _ in range(_TRIES):
        # The note goes last: as long as anything is there, somebody knows.
        for each in folder.iterdir():
            if each.name != _NOTE:
                _remove(each)
        with suppress(OSError):
            (folder / _NOTE).unlink()
            folder.rmdir()
            return
        time.sleep(_PAUSE)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
