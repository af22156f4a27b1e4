"""Files that every worker can reach: in a folder on a shared disk, or under a URL."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.engines.store.files import private
from holdfast.engines.store.remote import file_system
from holdfast.errors import InvalidInput

__all__ = ["SHARDS", "STAGING", "Depot", "check_location"]

SHARDS, STAGING = "shards", "staging"


@dataclass(frozen=True)
class Depot:
    """Where a creation keeps its files. Only the driver makes and removes folders.

    Nobody else has files under its root: what is removed there was written by this creation.
    """

    root: str
    remote: bool

    @classmethod
    def at(cls, folder: Path, location: str | None) -> Depot:
        """In the folder, or under the URL if there is one, by the random end of the folder's name.

        >>> Depot.at(Path(".study.creating-1a2b3c4d"), "s3://bucket/studies").root
        's3://bucket/studies/1a2b3c4d'
        """
        if location is None:
            return cls(str(folder.absolute()), remote=False)
        return cls(f"{location}/{folder.name.rpartition('-')[2]}", remote=True)

    @property
    def folder(self) -> Path | None:
        """The root as a folder of a disk, also behind file://; None if it is none."""
        if not self.remote:
            return Path(self.root)
        system, path = file_system(self.root)
        names = (system.protocol,) if isinstance(system.protocol, str) else system.protocol
        return Path(path) if "file" in names else None

    def prepare(self) -> None:
        """Make the folders, where there are such things."""
        folder = self.folder
        if self.remote and folder is not None:
            folder.mkdir(mode=0o700, parents=True)
        for name in (SHARDS, STAGING):
            if folder is not None:
                (folder / name).mkdir(mode=0o700)
                continue
            system, path = file_system(f"{self.root}/{name}")
            system.makedirs(path, exist_ok=True)

    @contextmanager
    def writing(self, name: str, scratch: Path) -> Iterator[Path]:
        """A file on a disk, which is in its place, whole, when the block has ended well."""
        place = None if self.folder is None else self.folder / name
        draft = (scratch if place is None else place.parent) / f".draft-{uuid.uuid4().hex}"
        private(draft)
        try:
            yield draft
            if place is None:
                system, path = file_system(f"{self.root}/{name}")
                system.put_file(str(draft), path)
            else:
                draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)

    @contextmanager
    def reading(self, name: str) -> Iterator[Any]:
        """A file as a stream of bytes that can be read at any place."""
        if self.folder is not None:
            with (self.folder / name).open("rb") as stream:
                yield stream
            return
        system, path = file_system(f"{self.root}/{name}")
        with system.open(path, "rb") as stream:
            yield stream

    def fetch(self, name: str, target: Path) -> None:
        """Copy a file to a disk."""
        with self.reading(name) as source, private(target).open("wb") as copy:
            shutil.copyfileobj(source, copy, 2**22)

    def remove(self, name: str = "") -> None:
        """Remove a folder with all that is in it; without a name, everything."""
        if self.folder is not None:
            shutil.rmtree(self.folder / name, ignore_errors=True)
            return
        system, path = file_system(f"{self.root}/{name}".rstrip("/"))
        system.invalidate_cache()
        with suppress(FileNotFoundError):
            system.rm(path, recursive=True)

    def check_seen(self, client: Any) -> None:
        """Refuse a cluster with a worker that does not reach the files that are written here."""
        name, text = f"{STAGING}/probe", uuid.uuid4().hex
        with tempfile.TemporaryDirectory() as scratch, self.writing(name, Path(scratch)) as draft:
            draft.write_text(text, "ascii")
        seen = client.run(_read, self, name, on_error="return")
        for worker, found in seen.items():
            if found != text:
                hint = f"{worker} does not see what is written there ({found}). "
                hint += "Use a path on a disk that is mounted on every machine, or location=URL."
                name = "location" if self.remote else "path"
                raise InvalidInput(name, self.root, "where every worker reads and writes", hint)


def _read(depot: Depot, name: str) -> str:
    try:
        with depot.reading(name) as stream:
            return bytes(stream.read()).decode("ascii", "replace")
    except OSError as error:
        return type(error).__name__


def check_location(location: str) -> str:
    """A URL that can be kept; every creation has a folder of its own under it."""
    allowed = "a URL that fsspec can open, such as s3://bucket/folder"
    scheme, _, rest = location.partition("://")
    if not scheme or not rest.strip("/"):
        raise InvalidInput("location", location, allowed)
    if "@" in rest.split("/")[0]:
        hint = "It is kept with the holdout: put no key into it, but into fsspec's configuration."
        raise InvalidInput("location", "a URL with a user", allowed, hint)
    location = location.rstrip("/")
    file_system(location)
    return location
