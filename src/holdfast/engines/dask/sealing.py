"""Creation on a cluster: from Parquet files of any size to shards of whole blocks.

    reading     every piece of the files: how many rows, and the sums of the fingerprint
    shuffling   every row to its place in the random order, by Dask's own shuffle; the parts of the
                order are sorted, and staged where all workers can read them
    writing     the order is cut into the open part and the shards

The place of a unit is the one that it has on a single machine: the same secret gives the same
blocks. The driver sends pieces and ranges, and gets counts; it never holds a row.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.concurrency import Closing
from holdfast.engines.dask.engine import ClusterAddress, ClusterConnection, connect
from holdfast.engines.dask.shuffle import (
    NUMBER,
    SAMPLE,
    SHARDS,
    STAGING,
    Creation,
    Secret,
    SharedFiles,
    Staged,
    abandon,
    attempt,
    cut,
    cut_files,
    found_files,
    in_session,
    measure,
    open_cut,
    read_footer,
    read_parquet,
    results,
    row_bytes,
    sampled,
    shard_bounds,
    shard_cuts,
    shuffle,
)
from holdfast.engines.dask.worker import versions
from holdfast.errors import InvalidInput
from holdfast.randomness import Entropy
from holdfast.store.blocks import OPEN_FILE, Contents, Shard, finished, sync_folder
from holdfast.store.duckdb import DuckdbLimits, Progress, Session, no_progress
from holdfast.store.inputs import (
    RowSums,
    Survey,
    check_agreement,
    check_columns,
    check_types,
    choose,
    wanted_names,
)
from holdfast.store.sealing import check_unchanged, contents_of, drawn_secret, split_units
from holdfast.store.table import Column, Field, Schema

_PART_BYTES = 96 * 2**20  # of a piece that is read, and of a part of the random order
_TASK_MEMORY = "1GB"  # of DuckDB in one task
_ABANDON_SECONDS = 60.0  # until a task has seen that nobody waits
_GIVE_UP_SECONDS = 5.0  # for a scheduler that may be gone


class ClusterInput(Closing):
    """Parquet files that workers read; made by `open_on_cluster`, closed by `with`."""

    def __init__(
        self,
        connection: ClusterConnection,
        job: Creation,
        files: Sequence[str],
        folder: Path,
        secret: Secret,
        progress: Progress | None,
    ) -> None:
        self._connection, self._job = connection, job
        self._files, self._folder, self._secret = files, folder, secret
        self.limits = job.limits
        self._tell = progress or no_progress
        self._sums: RowSums | None = None
        self._staged: list[Staged] = []

    def look(self, unit: str | None, ids: str | None, columns: Sequence[str] | None) -> None:
        """Read what the files say of themselves; they must agree."""
        read = ((in_session, read_footer, each) for each in self._files)
        footers = self._in_order("footer", read)
        check_agreement([Path(each).name for each in self._files], [f.schema for f in footers])
        schema, types = footers[0].schema, footers[0].types
        names = wanted_names(schema.names, columns, unit, ids, self._files)
        for name in names:
            if name.casefold() == NUMBER:
                raise InvalidInput("column name", name, "another one", "DuckDB uses it itself.")
        check_types(names, unit, schema)
        for file, found in zip(self._files, footers, strict=True):
            for name in names:
                if found.types[name] != types[name]:
                    what = f"column {name!r}: {types[name]}, and {found.types[name]} in {file}"
                    raise InvalidInput("data", what, "files with the same types")
        self._chosen = choose(names, types, unit, ids)
        looked = sampled(cut_files(self._files, footers, SAMPLE))
        sizes = ((in_session, row_bytes, each, self._chosen) for each in looked)
        size = max(self._in_order("size", sizes), default=1)
        self._pieces = cut_files(self._files, footers, max(1, _PART_BYTES // size))
        rows = sum(each.stop - each.start for each in self._pieces)
        self._parts = max(1, -(-rows * size // _PART_BYTES))

    @property
    def schema(self) -> Schema:
        """The columns that will be stored: all but the ids of units and of rows."""
        return Schema(tuple(Column(each.name, str(each.kind)) for each in self._chosen.stored))

    @property
    def unit(self) -> Field | None:
        """The column whose equal values make one unit of several rows."""
        return self._chosen.unit

    @property
    def ids(self) -> Field | None:
        """The column that names every row."""
        return self._chosen.ids

    def attach(self, session: Session) -> str:
        """The rows as SQL names them after FROM, for ids: their readers hold them anyway."""
        return read_parquet(session, self._files)

    def fingerprint(self) -> str:
        """The same as on a single machine."""
        return self._measured().fingerprint(self._fields, self.unit)

    def count(self) -> tuple[int, int]:
        """How many rows and how many units there are; ids of units are counted by the shuffle."""
        self.fingerprint()  # which refuses what cannot be kept
        rows = self._measured().rows
        return rows, rows if self.unit is None else sum(each.units for each in self._shuffled())

    @property
    def _fields(self) -> tuple[Field, ...]:
        return (*self._chosen.stored, *(() if self.ids is None else (self.ids,)))

    def _measured(self) -> RowSums:
        if self._sums is None:
            calls = ((in_session, measure, each, self._chosen) for each in self._pieces)
            for found in self._in_order("measure", calls, "reading"):
                self._sums = found if self._sums is None else self._sums + found
        return self._sums or RowSums(0, 0, 0, 0, 0, ())

    def _shuffled(self) -> list[Staged]:
        """The parts of the random order, one after the other."""
        if not self._staged:
            how = (self._job, self._chosen, self._secret, self._pieces, self._parts, self._tell)
            self._staged = shuffle(self._connection, *how)
        return self._staged

    def write(
        self, *, blocks: int, open_fraction: float = 0.0, block_units: int | None = None
    ) -> Contents:
        """Write the shards, and `open.parquet` into the folder if there is an open part."""
        rows, units = self.count()
        found = Survey(rows, units, self.fingerprint(), self._measured().marks)
        split = split_units(units, blocks, open_fraction, block_units)
        staged = self._shuffled()
        parts = [each.units for each in staged]
        again = (sum(each.rows for each in staged), sum(parts))
        check_unchanged(found, *again, sum(each.marks for each in staged))
        shared = self._job.shared
        cuts = shard_cuts(split, parts)
        if split.open_units:
            # The open part is small, and stays in the folder wherever the shards are.
            name = f"{STAGING}/{OPEN_FILE}" if shared.remote else OPEN_FILE
            cuts.insert(0, open_cut(name, split, parts))
        made = self._in_order("cut", ((cut, each, self._chosen) for each in cuts), "writing")
        opened = made.pop(0)[1] if split.open_units else 0
        bounds = shard_bounds(split, parts)
        shards = tuple(
            Shard(file.name, first, stop, count)
            for (file, count), (first, stop) in zip(made, bounds, strict=True)
        )
        files = tuple(file for file, _ in made)
        if split.open_units:
            place = self._folder / OPEN_FILE
            if shared.remote:
                shared.fetch(f"{STAGING}/{OPEN_FILE}", place)
            files = (finished(place), *files)
        shared.remove(STAGING)
        for folder in (self._folder, *(() if shared.folder is None else (shared.folder / SHARDS,))):
            sync_folder(folder)
        sealed = sum(each.rows for each in shards)
        contents = contents_of(found, split, sealed, opened, self.schema, self.unit, files)
        return replace(contents, shards=shards, location=shared.root if shared.remote else None)

    def _in_order(
        self, name: str, calls: Iterable[tuple[Any, ...]], stage: str | None = None
    ) -> list[Any]:
        """What tasks give, one for each call; how far a stage has come is told."""
        client, batch = self._connection.client, uuid.uuid4().hex
        tasks = [
            client.submit(attempt, task, self._job, *rest, key=f"{name}-{batch}-{i}", pure=False)
            for i, (task, *rest) in enumerate(calls)
        ]
        found: dict[int, Any] = {}
        if stage is not None:
            self._tell(stage, 0.0)
        for number, each in results(self._connection, tasks):
            found[number] = each
            if stage is not None:
                self._tell(stage, len(found) / len(tasks))
        return [found[number] for number in range(len(tasks))]

    def close(self) -> None:
        """Let go of the cluster."""
        self._connection.release(self)


def open_on_cluster(
    data: object,
    folder: Path,
    engine: str,
    location: str | None,
    entropy: Entropy,
    *,
    unit: str | None = None,
    ids: str | None = None,
    columns: Sequence[str] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ClusterInput:
    """Open Parquet files that are to be sealed by the cluster at an address.

    Shards go into `folder`, which all workers share, or under `location`, a URL, into a folder of
    their own. Limits are those of one task. Whoever calls removes what is written, after an
    error, when `give_up` has returned.
    """
    check_columns(columns)
    connection = connect(ClusterAddress.read(engine))
    limits = DuckdbLimits(memory_limit or _TASK_MEMORY, threads or 1)
    shared = SharedFiles.at(folder, location)
    job = Creation(folder.name, limits, versions(), shared)
    files, secret = found_files(data), Secret(drawn_secret(entropy))
    connection.use(table := ClusterInput(connection, job, files, folder, secret, progress))
    try:
        shared.prepare()
        shared.check_seen(connection.client)
        table.look(unit, ids, columns)
    except BaseException:
        table.close()
        raise
    return table


def give_up(engine: str, folder: Path, location: str | None) -> None:
    """Wait until no worker writes for a creation any more, and remove what is not in its folder.

    If the cluster cannot be reached, none of its workers can be asked.
    """
    address = replace(ClusterAddress.read(engine), patience=_GIVE_UP_SECONDS)
    connection, user = connect(address), object()
    connection.use(user)
    with suppress(Exception):
        connection.client.run(abandon, folder.name, _ABANDON_SECONDS, on_error="ignore")
    connection.release(user)
    if location is not None:
        SharedFiles.at(folder, location).remove()
