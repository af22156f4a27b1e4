"""A folder in which a holdout is being made, and what is left of one that was never finished.

    .study.holdfast.creating-0123456789abcdef/
        creating.json   locked by whoever makes the holdout: where else its files are

When the note is there and nobody holds its lock, its process has died. The next creation at the
same path then removes the folder, and what is elsewhere: under the location, in a folder of this
creation's own. A folder that has had no note for minutes never got one.

Others may be able to write where the holdout is to be, and to put such a folder there. So nothing
is done to one that is not this account's own, and nothing is done because a note says so: what it
says is compared with what the present creation was told, and if it differs, a person has to look.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.store.blocks import NotOwnError, opened_own, own_folder, remove_in

__all__ = ["folder_beside", "remove_leftovers"]

_NOTE = "creating.json"
_DRAFT = f"{_NOTE}.draft"
_NOTE_BYTES = 2**16
_NOTE_SECONDS = 600.0  # until a folder surely has its note
_REMOVED = "removing what an interrupted creation left"
_TRIES, _PAUSE = 50, 0.1  # a worker that writes its last file may be in the way


@contextmanager
def folder_beside(
    path: Path, identity: str, engine: str | None, location: str | None
) -> Iterator[Path]:
    """A new folder on the same disk, to be renamed; after an error it is removed.

    So is all that is in it, and what a creation on a cluster has written under `location`. Its name
    ends with `identity`, 16 hexadecimal digits.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.with_name(f".{path.name}.creating-{identity}")
    folder.mkdir(mode=0o700)
    draft = folder / _DRAFT
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, _written(engine, location))
        os.fsync(descriptor)
        draft.rename(folder / _NOTE)  # under its name it is whole, and locked
        yield folder
        # After the rename: until then, whoever comes next has to know what to remove.
        (path / _NOTE).unlink(missing_ok=True)
    except BaseException:
        with suppress(Exception), own_folder(folder) as place:  # what remains, the next removes
            if (folder / _NOTE).exists():
                _discard(folder, place, engine, location)
            else:
                _discard_unnoted(folder, place)
        raise
    finally:
        os.close(descriptor)


def remove_leftovers(
    path: Path,
    engine: str | None,
    location: str | None,
    progress: Callable[[str, float], None] | None,
) -> None:
    """Remove what creations at this path have left that were killed.

    Only what this account made, for this engine and location; a warning names what is left alone.
    """
    ours = re.compile(rf"\.{re.escape(path.name)}\.creating-[0-9a-f]{{16}}")
    for folder in sorted(path.parent.glob(".*.creating-*")):
        if not ours.fullmatch(folder.name):
            continue
        try:
            with own_folder(folder) as place:
                _remove_leftover(folder, place, engine, location, progress)
        except FileNotFoundError:  # another one has just removed it
            continue
        except NotOwnError as reason:
            text = f"{folder} was left alone: {reason} If it is no longer needed, remove it."
            warnings.warn(text, stacklevel=2)


def _remove_leftover(
    folder: Path,
    place: int,
    engine: str | None,
    location: str | None,
    progress: Callable[[str, float], None] | None,
) -> None:
    try:
        # To be written, though nothing is: some network disks give no other an exclusive lock.
        descriptor = opened_own(place, _NOTE)
    except FileNotFoundError:
        if time.time() - os.fstat(place).st_mtime > _NOTE_SECONDS:
            _discard_unnoted(folder, place)
        return
    with os.fdopen(descriptor, "r+b", buffering=0) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # it is being made now
            return
        said = _said(stream.read(_NOTE_BYTES), engine, location)
        if progress is not None:
            progress(_REMOVED, 0.0)
        _discard(folder, place, *said)
        if progress is not None:
            progress(_REMOVED, 1.0)


def _written(engine: str | None, location: str | None) -> bytes:
    return json.dumps({"engine": engine, "location": location}).encode("utf-8")


def _said(text: bytes, engine: str | None, location: str | None) -> tuple[str | None, str | None]:
    """Engine and location of the note: none, or those of this creation."""
    for each in ((None, None), (engine, location)):
        if text == _written(*each):
            return each
    try:
        note = json.loads(text)
        said = f"{note['engine']!r:.200} and {note['location']!r:.200}"
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NotOwnError(f"its {_NOTE} is not whole.") from None
    raise NotOwnError(f"its {_NOTE} speaks of another engine and location, {said}.")


def _discard_unnoted(folder: Path, place: int) -> None:
    """Remove a folder whose process was killed before its note was there, or after."""
    with suppress(OSError):  # gone, or there is something in it of which nothing is known
        with suppress(FileNotFoundError):
            os.unlink(_DRAFT, dir_fd=place)
        folder.rmdir()


def _discard(folder: Path, place: int, engine: str | None, location: str | None) -> None:
    if engine is not None:
        from holdfast.engines.dask.sealing import give_up

        give_up(engine, folder, location)
    for _ in range(_TRIES):
        remove_in(place, _NOTE)  # which goes last: as long as anything is there, somebody knows
        with suppress(OSError):
            with suppress(FileNotFoundError):
                os.unlink(_NOTE, dir_fd=place)
            folder.rmdir()
            return
        time.sleep(_PAUSE)
