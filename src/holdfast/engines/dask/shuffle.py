"""The tasks of a creation on a cluster: rows of files are read, shuffled and staged, shards cut.

A task that fails says so in its result: an exception would be logged with the task's arguments.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from holdfast.engines.dask.engine import ClusterConnection, Tasks
from holdfast.engines.dask.worker import Versions, check_versions
from holdfast.errors import HoldfastError, Infeasible, InvalidInput, Unavailable
from holdfast.store.blocks import StoredFile, finished, private
from holdfast.store.duckdb import DuckdbLimits, Progress, Session, no_progress
from holdfast.store.inputs import (
    MARK,
    Chosen,
    RowSums,
    added_marks,
    data_files,
    is_paths,
    row_mark,
    sums_of,
)
from holdfast.store.remote import file_system
from holdfast.store.sealing import RowGroups, UnitRun, UnitSplit, group_rows, place_key, row_schema
from holdfast.store.table import ID, ROW, UNIT, quoted, quoted_text

__all__ = ["check_location"]

NUMBER = "file_row_number"  # what DuckDB calls the number of a row in its file
SAMPLE = 10_000  # rows that tell how long texts are, in each of several places
_PLACES = 16
_ALLOWED = "paths or URLs of Parquet files (.parquet, .pq), as workers see them"


@dataclass(frozen=True)
class FileRows:
    """The rows start, …, stop − 1 of a file; in the whole input, `start` has the number `first`."""

    file: str
    start: int
    stop: int
    first: int

    def attach(self, session: Session) -> str:
        """The rows as SQL names them after FROM."""
        table = read_parquet(session, [self.file], numbered=True)
        between = f"{NUMBER} >= {self.start} AND {NUMBER} < {self.stop}"
        return f"(SELECT * FROM {table} WHERE {between})"


@dataclass(frozen=True)
class Footer:
    """What a file says of itself."""

    schema: Any
    groups: tuple[int, ...]
    """The rows of each of its groups."""
    types: dict[str, str]
    """The columns as DuckDB reads them."""


def found_files(data: object) -> tuple[str, ...]:
    """The files of paths, patterns and URLs, in the order given; a pattern's are sorted."""
    if not is_paths(data):
        hint = "Write the table to Parquet files that every worker can read."
        raise InvalidInput("data", type(data).__name__, _ALLOWED, hint)
    given: Any = data if isinstance(data, Sequence) and not isinstance(data, str) else [data]
    return tuple(file for each in given for file in _expanded(each))


def _expanded(given: Any) -> Iterator[str]:
    text = str(given)
    if "://" not in text:
        form, files = data_files(given)
        if form != "parquet":
            hint = "A cluster reads Parquet files: convert them first."
            raise InvalidInput("data", text, _ALLOWED, hint)
        yield from (str(Path(file).absolute()) for file in files)
        return
    if not text.lower().endswith((".parquet", ".pq")):
        hint = "The ending of the name says the format; a pattern is s3://bucket/*.parquet."
        raise InvalidInput("data", text, _ALLOWED, hint)
    try:
        system, path = file_system(text)
    except InvalidInput as error:
        raise InvalidInput("data", text, _ALLOWED, error.hint) from None
    system.invalidate_cache()
    found = [path] if system.exists(path) else sorted(system.glob(path))
    if not found:
        raise InvalidInput("data", text, _ALLOWED, "No file has this name or fits this pattern.")
    yield from (str(system.unstrip_protocol(each)) for each in found)


def read_parquet(session: Session, files: Iterable[str], *, numbered: bool = False) -> str:
    """The files as SQL names them after FROM; URLs are opened by fsspec."""
    files = list(files)
    for file in files:
        if "://" in file:
            system, _ = file_system(file)
            name = system.protocol if isinstance(system.protocol, str) else system.protocol[0]
            if not session.connection.filesystem_is_registered(name):
                session.connection.register_filesystem(system)
    names = ", ".join(quoted_text(file) for file in files)
    number = f", {NUMBER} = true" if numbered else ""
    return f"read_parquet([{names}], hive_partitioning = false{number})"


def read_footer(session: Session, file: str) -> Footer:
    """Read the end of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if "://" in file:
            system, path = file_system(file)
            with system.open(path, "rb") as stream:
                meta = pq.ParquetFile(stream).metadata
        else:
            meta = pq.read_metadata(file)
        schema = meta.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split(".")[0]
        raise InvalidInput("data", file, "readable by every worker", f"{reason}.") from None
    groups = tuple(meta.row_group(i).num_rows for i in range(meta.num_row_groups))
    return Footer(schema, groups, session.described(read_parquet(session, [file])))


def sampled(pieces: Sequence[FileRows]) -> list[FileRows]:
    """Some of the pieces, the first, the last and others between, at equal distances.

    >>> [piece.start for piece in sampled([FileRows("a", n, n + 1, n) for n in range(31)])]
    [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
    """
    places = min(_PLACES, len(pieces))
    return [pieces[i * (len(pieces) - 1) // max(1, places - 1)] for i in range(places)]


def row_bytes(session: Session, piece: FileRows, chosen: Chosen) -> int:
    """About how many bytes a row takes on its way: eight for a number, and the length of texts."""
    texts = [each.stored for each in chosen.stored if each.kind == "text"]
    if chosen.unit is not None:
        texts.append(chosen.unit.identity)
    names = {each.name for each in (*chosen.stored, *([chosen.unit] if chosen.unit else []))}
    columns = ", ".join(quoted(name) for name in sorted(names))
    table = f"(SELECT {columns} FROM {piece.attach(session)})"
    lengths = " + ".join(["0 * count(*)", *(f"coalesce(avg(strlen({each})), 0)" for each in texts)])
    (length,) = session.row(f"SELECT {lengths} FROM {table}", "reading", lambda *_: None)
    return 8 * (len(chosen.stored) + len(texts) + 4) + math.ceil(float(length))


def cut_files(files: Sequence[str], footers: Sequence[Footer], rows: int) -> tuple[FileRows, ...]:
    """Pieces of about so many rows, whole row groups where these are not larger."""
    found: list[FileRows] = []
    first = 0
    for file, footer in zip(files, footers, strict=True):
        start = 0
        for stop in _ends(footer.groups, rows):
            found.append(FileRows(file, start, stop, first + start))
            start = stop
        first += start
    return tuple(found)


def _ends(groups: Sequence[int], rows: int) -> Iterator[int]:
    end = waiting = 0
    for size in groups:
        if waiting and waiting + size > rows:
            yield end
            waiting = 0
        parts = max(1, math.ceil(size / rows))
        for part in range(1, parts):
            yield end + size * part // parts
        end, waiting = end + size, waiting + size if parts == 1 else rows
    if waiting:
        yield end


SHARDS, STAGING = "shards", "staging"


@dataclass(frozen=True)
class SharedFiles:
    """Files that every worker can reach: in a folder on a shared disk, or under a URL.

    Only the driver makes and removes folders.

    Nobody else has files under its root: what is removed there was written by this creation.
    """

    root: str
    remote: bool

    @classmethod
    def at(cls, folder: Path, location: str | None) -> SharedFiles:
        """In the folder, or under the URL if there is one, by the random end of the folder's name.

        >>> SharedFiles.at(Path(".study.creating-1a2b3c4d"), "s3://bucket/studies").root
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


def _read(shared: SharedFiles, name: str) -> str:
    try:
        with shared.reading(name) as stream:
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


_PAUSE = 0.05
_lock = threading.Lock()
_running: Counter[str] = Counter()
_given_up: set[str] = set()  # creations: a task ends before its files are removed


class Abandoned(Exception):
    """Nobody wants what the task makes."""


@contextmanager
def at_work(creation: str) -> Iterator[None]:
    """Around everything that a task does for a creation."""
    with _lock:
        check_wanted(creation)
        _running[creation] += 1
    try:
        yield
    finally:
        with _lock:
            _running[creation] -= 1


def check_wanted(creation: str) -> None:
    """Raise `Abandoned` if a creation was given up; asked before each file, and now and then."""
    if creation in _given_up:
        raise Abandoned


async def abandon(creation: str, seconds: float) -> bool:
    """Give up a creation on this worker, and wait for its tasks; whether all have ended."""
    _given_up.add(creation)
    deadline = time.monotonic() + seconds
    while _running[creation] > 0 and time.monotonic() < deadline:
        await asyncio.sleep(_PAUSE)
    return _running[creation] <= 0


_FACTS: dict[type[HoldfastError], tuple[str, ...]] = {
    InvalidInput: ("parameter", "value", "allowed", "hint"),
    Infeasible: ("constraint", "needed", "given", "remedy"),
    Unavailable: ("what", "needed", "given", "remedy"),
}


@dataclass(frozen=True)
class Creation:
    """What all tasks of one creation know."""

    creation: str
    limits: DuckdbLimits
    versions: Versions
    shared: SharedFiles


@dataclass(frozen=True)
class Failure:
    """An error as data."""

    kind: type[HoldfastError]
    facts: tuple[Any, ...]

    def error(self) -> HoldfastError:
        """The error, to be raised."""
        return self.kind(*self.facts)


def attempt(task: Callable[..., Any], job: Creation, *arguments: Any) -> Any:
    """What a task gives, or a `Failure`."""
    try:
        check_versions(job.versions)
        with at_work(job.creation):
            return task(job, *arguments)
    except Abandoned:
        return _other("a creation that was given up")
    except HoldfastError as error:
        for kind, names in _FACTS.items():
            if isinstance(error, kind):
                return Failure(kind, tuple(getattr(error, name) for name in names))
        return _other(str(error))
    except Exception as error:
        return _other(f"{type(error).__name__}: {error}")


def _other(what: str) -> Failure:
    remedy = "Look at the worker's machine: memory, disk, and whether it sees the files."
    needed = "workers that can read and write the files"
    return Failure(Infeasible, ("Creating on the cluster", needed, f"one met {what[:300]}", remedy))


def scratch() -> Path:
    """The worker's own folder."""
    from distributed import get_worker

    return Path(get_worker().local_directory)


def in_session(job: Creation, task: Callable[..., Any], *arguments: Any) -> Any:
    """What a task reads by DuckDB."""
    with Session(job.limits, scratch()) as session:
        return task(session, *arguments)


def measure(session: Session, rows: FileRows, chosen: Chosen) -> RowSums:
    """Counts and sums of some rows."""
    fields = (*chosen.stored, *(() if chosen.ids is None else (chosen.ids,)))
    return sums_of(session, rows.attach(session), fields, chosen.unit, no_progress)


HIGH, LOW = "__high", "__low"  # the halves of a unit's place
_LOW_BITS = 2**64 - 1
_SIGN = np.uint64(2**63)
_STAGED_GROUP = 2**16  # rows


class Secret:
    """What the places of units depend on; it is in no log and no message."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "<Secret>"


class Staged(NamedTuple):
    """A part of the random order, sorted and stored: so many units, rows and bytes.

    `marks` is the sum of its rows' marks, as in a `Survey`.
    """

    units: int
    rows: int
    bytes: int
    marks: int


def placed(piece: FileRows, job: Creation, chosen: Chosen, secret: Secret) -> Any:
    """The rows of a piece as they are stored, each with its number and the place of its unit."""
    from distributed import get_worker

    try:
        check_versions(job.versions)
        with at_work(job.creation):
            found = in_session(job, _placed, piece, chosen, secret)
        get_worker().log_event(job.creation, "read")
        return found
    except HoldfastError as error:
        raise RuntimeError(str(error)) from None  # others cannot be pickled


def _placed(session: Session, piece: FileRows, chosen: Chosen, secret: Secret) -> Any:
    unit = chosen.unit
    everything = [each for each in (*chosen.stored, chosen.unit, chosen.ids) if each]
    # Of what is read here, not when it was surveyed: a file may have been replaced since.
    stored = [f"{row_mark(everything)} AS {MARK}"]
    stored += [f"{each.stored} AS {name}" for each, name in _columns(chosen)]
    stored.append(f"{NUMBER} + {piece.first - piece.start} AS {ROW}")
    stored += [f"{unit.identity} AS {ID}"] if unit else []
    inner = f"SELECT {', '.join(stored)} FROM {piece.attach(session)}"
    # The key is a column of a subquery: written twice, it would be computed twice.
    keyed = f"SELECT *, {place_key(secret.text, bool(unit))} AS __key FROM ({inner})"
    low = f"CAST(__key & {_LOW_BITS} AS UBIGINT) AS {LOW}"
    halves = f"CAST(__key >> 64 AS UBIGINT) AS {HIGH}, {low}"
    sql = f"SELECT * EXCLUDE (__key), {halves} FROM ({keyed})"
    found = session.watched(
        lambda: session.connection.sql(sql).to_arrow_table(), "reading", no_progress
    )
    return _frame(found, chosen)


def _columns(chosen: Chosen) -> Iterator[tuple[Any, str]]:
    """The stored columns under names that mean nothing to Dask."""
    return ((each, f"c{number}") for number, each in enumerate(chosen.stored))


def _types(chosen: Chosen) -> Any:
    """The columns on their way, without the halves of the place."""
    import pyarrow as pa

    names = [ROW, *(name for _, name in _columns(chosen))]
    fields = [pa.field(*each) for each in zip(names, row_schema(chosen.stored).types, strict=True)]
    return pa.schema([*fields, *([pa.field(ID, pa.string())] if chosen.unit else [])])


def _frame(table: Any, chosen: Chosen) -> Any:
    import pandas as pd
    import pyarrow as pa

    def dtype(arrow_type: Any) -> Any:
        if pa.types.is_string(arrow_type):
            return pd.StringDtype("pyarrow")
        # A missing number is NaN, which Arrow takes for missing again: none other is stored.
        return None if pa.types.is_float64(arrow_type) else pd.ArrowDtype(arrow_type)

    schema = _types(chosen)
    columns = [table.column(each.name).cast(each.type) for each in schema]
    frame = pa.Table.from_arrays(columns, schema=schema).to_pandas(types_mapper=dtype)
    frame[ROW] = table.column(ROW).to_numpy().astype(np.int64)
    for half in (HIGH, LOW):  # signed, as Dask sorts them, in the same order
        frame[half] = (table.column(half).to_numpy() ^ _SIGN).view(np.int64)
    frame[MARK] = table.column(MARK).to_numpy()
    return frame


def empty_frame(chosen: Chosen) -> Any:
    """What `placed` makes of no rows."""
    import pyarrow as pa

    halves = [pa.field(half, pa.uint64()) for half in (HIGH, LOW)]
    fields = [*_types(chosen), *halves, pa.field(MARK, pa.float64())]
    return _frame(pa.schema(fields).empty_table(), chosen)


def stage(job: Creation, frame: Any, number: int, chosen: Chosen) -> Staged:
    """Sort one part of the random order, number its units, and store it without their places."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not len(frame):
        return Staged(0, 0, 0, 0)
    by_id = [ID] if chosen.unit else []
    marks = added_marks(frame[MARK].to_numpy())
    table = pa.Table.from_pandas(frame, preserve_index=True).replace_schema_metadata(None)
    table = table.sort_by([(name, "ascending") for name in (HIGH, LOW, *by_id, ROW)])
    schema = _types(chosen)
    units = _numbered(table, (HIGH, LOW, *by_id) if by_id else (ROW,))
    kept = [each for each in schema if each.name != ID]
    columns = [table.column(each.name).cast(each.type) for each in kept]
    fields = [pa.field(UNIT, pa.int64()), *kept]
    table = pa.Table.from_arrays([pa.array(units), *columns], schema=pa.schema(fields))
    check_wanted(job.creation)
    with job.shared.writing(staged_name(number), scratch()) as draft:
        pq.write_table(table, draft, row_group_size=_STAGED_GROUP, compression="lz4")
        size = draft.stat().st_size
        check_wanted(job.creation)
    return Staged(int(units[-1]) + 1, table.num_rows, size, marks)


def _numbered(table: Any, names: tuple[str, ...]) -> Any:
    """The number of each row's unit: a new one wherever one of these columns changes."""
    import pyarrow.compute as pc

    new = np.zeros(table.num_rows, np.bool_)
    for name in names:
        column = table.column(name)
        changed = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
        new[1:] |= changed.to_numpy()
    return np.cumsum(new, dtype=np.int64)


def staged_name(number: int) -> str:
    """The file of a part of the random order."""
    return f"{STAGING}/{number:05d}.parquet"


_BATCH = 2**15  # rows


@dataclass(frozen=True)
class Cut:
    """A file to be cut from the random order: the units start, …, stop − 1.

    `first` is the number that its first unit gets; `sources` are numbers of staged parts, with the
    rank of the first unit of each.
    """

    name: str
    start: int
    stop: int
    first: int
    block_units: int
    sources: tuple[tuple[int, int], ...]


def shard_bounds(split: UnitSplit, parts: Sequence[int]) -> list[tuple[int, int]]:
    """The first block of each shard, and the block after its last.

    `parts` are the units of each staged part. A shard ends where a block does, next to the end of
    a part, so that it is made of one part and the edges of its neighbours.

    >>> split = UnitSplit(blocks=7, block_units=10, open_units=20, leftover_units=4)
    >>> shard_bounds(split, [30, 34, 30])
    [(0, 1), (1, 4), (4, 7)]
    """
    size = split.block_units
    ends = [end - split.open_units for end in accumulate(parts)]
    near = [(2 * end + size) // (2 * size) for end in ends]
    cuts = sorted({0, split.blocks, *(each for each in near if 0 < each < split.blocks)})
    return list(pairwise(cuts))


def shard_cuts(split: UnitSplit, parts: Sequence[int]) -> list[Cut]:
    """What to write into the shards, which are about as large as the staged parts."""
    size, begin = split.block_units, split.open_units
    cuts = []
    for number, (first, stop) in enumerate(shard_bounds(split, parts)):
        name, units = f"{SHARDS}/{number:05d}.parquet", (begin + first * size, begin + stop * size)
        cuts.append(_cut(name, *units, first * size, split, parts))
    return cuts


def open_cut(name: str, split: UnitSplit, parts: Sequence[int]) -> Cut:
    """What to write into the open part."""
    return _cut(name, 0, split.open_units, 0, split, parts)


def _cut(
    name: str, start: int, stop: int, first: int, split: UnitSplit, parts: Sequence[int]
) -> Cut:
    ranks = [0, *accumulate(parts)]
    sources = tuple(
        (number, low)
        for number, (low, high) in enumerate(pairwise(ranks))
        if max(low, start) < min(high, stop)  # an empty part has no file
    )
    return Cut(name, start, stop, first, split.block_units, sources)


def cut(job: Creation, wanted: Cut, chosen: Chosen) -> tuple[StoredFile, int]:
    """Write the open part, or a shard: whole blocks, in row groups of whole blocks."""
    part, schema = UnitRun(wanted.start, wanted.stop), row_schema(chosen.stored)
    with job.shared.writing(wanted.name, scratch()) as draft:
        groups = RowGroups(draft, schema, wanted.block_units, group_rows(chosen.stored))
        with groups:
            for number, rank in wanted.sources:
                for batch in _batches(job, number, wanted.start - rank, wanted.stop - rank):
                    check_wanted(job.creation)
                    units = batch.column(0).to_numpy() + rank
                    rows, own = part.of(batch.select(batch.schema.names[1:]), units)
                    groups.add(rows.rename_columns(schema.names), own + wanted.first)
        stored = finished(draft, wanted.name)
        check_wanted(job.creation)
    return stored, groups.rows


def _batches(job: Creation, number: int, start: int, stop: int) -> Iterator[Any]:
    """The rows of a staged part, of the row groups with some of the units start, …, stop − 1."""
    import pyarrow.parquet as pq

    with job.shared.reading(staged_name(number)) as stream, pq.ParquetFile(stream) as file:
        meta = file.metadata
        bounds = [meta.row_group(i).column(0).statistics for i in range(meta.num_row_groups)]
        groups = [i for i, each in enumerate(bounds) if each.min < stop and start <= each.max]
        if groups:
            yield from file.iter_batches(_BATCH, row_groups=groups)


class CreationTasks(Tasks):
    """Tasks of a creation: one that fails ends it."""

    again = "Nothing was created."

    def failed(self, error: Exception) -> HoldfastError:
        given = f"a task has met {type(error).__name__}: {str(error)[:300]}"
        remedy = f"Look at the logs of the workers. {self.again}"
        return Infeasible("Creating on the cluster", "tasks that end", given, remedy)

    def look(self) -> None:
        try:
            super().look()
        except ConnectionError:
            raise self._connection.lost(self.again) from None


def results(
    connection: ClusterConnection, futures: Sequence[Any], tick: Callable[[], None] = lambda: None
) -> Iterator[tuple[int, Any]]:
    """The number of each future with its result, as they come; a failure is raised.

    `tick` is called while none comes. Whatever ends it early takes back the tasks that are left.
    """
    tasks = CreationTasks(connection, tick)
    with closing(tasks.replies(futures.__getitem__, len(futures), at_once=True)) as replies:
        for number, found in replies:
            if found is None:
                needed, given = "workers that stay alive", "one task has ended several workers"
                remedy = f"Give workers more memory, or fewer threads. {tasks.again}"
                raise Infeasible("Creating on the cluster", needed, given, remedy)
            if isinstance(found, Failure):
                raise found.error()
            yield number, found


_KEYS = 2**64  # places that the upper half of a key tells apart


def shuffle(
    connection: ClusterConnection,
    job: Creation,
    chosen: Chosen,
    secret: Secret,
    pieces: Sequence[FileRows],
    parts: int,
    progress: Progress,
) -> list[Staged]:
    """Bring every row to its place by Dask's own shuffle, and stage the order in so many parts.

    A part is a range of places, one after the other.
    """
    import dask
    import dask.dataframe as dd
    from dask.delayed import delayed

    from_map: Any = dd.from_map
    bounds = [part * _KEYS // parts - _KEYS // 2 for part in range(parts)]
    given = {"job": job, "chosen": chosen, "secret": secret}
    with dask.config.set({"dataframe.convert-string": False}):
        rows = from_map(placed, pieces, **given, meta=empty_frame(chosen))
        ordered = rows.set_index(HIGH, divisions=(*bounds, _KEYS // 2 - 1), shuffle_method="p2p")
        frames = ordered.to_delayed()
    staged = delayed(attempt, pure=False)
    client = connection.client
    tasks = client.compute(
        [staged(stage, job, part, number, chosen) for number, part in enumerate(frames)]
    )
    read, found = Counter[str](), dict[int, Staged]()

    def tell() -> None:
        share = min(1.0, read["pieces"] / len(pieces))
        progress("shuffling", (share + len(found) / parts) / 2)

    client.subscribe_topic(job.creation, lambda _: read.update(["pieces"]))
    try:
        tell()
        for number, each in results(connection, tasks, tell):
            found[number] = each
            tell()
    finally:
        client.unsubscribe_topic(job.creation)
    return [found[number] for number in range(parts)]
