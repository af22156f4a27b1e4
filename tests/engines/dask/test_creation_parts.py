"""Creation on a cluster, without one: pieces, cuts, places, and what is refused."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import itertools
import os
import pickle
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.engines.dask import sealing
from holdfast.engines.dask.shuffle import (
    SAMPLE,
    SHARDS,
    STAGING,
    Abandoned,
    Creation,
    Footer,
    Secret,
    SharedFiles,
    abandon,
    at_work,
    attempt,
    check_location,
    check_wanted,
    cut_files,
    found_files,
    open_cut,
    read_footer,
    row_bytes,
    sampled,
    shard_bounds,
    shard_cuts,
)
from holdfast.engines.dask.worker import versions
from holdfast.errors import Infeasible, InvalidInput
from holdfast.holdout import creation
from holdfast.holdout.holdout import Holdout
from holdfast.store.duckdb import DuckdbLimits, Session
from holdfast.store.inputs import choose
from holdfast.store.sealing import place_key, split_units
from holdfast.store.table import ROW
from tests.holdout import plans


@given(
    files=st.lists(st.lists(st.integers(0, 50), max_size=6), min_size=1, max_size=4),
    rows=st.integers(1, 40),
)
def test_pieces_hold_every_row_once_and_are_not_too_large(
    files: list[list[int]], rows: int
) -> None:
    names = [f"{number}.parquet" for number in range(len(files))]
    pieces = cut_files(names, [Footer(None, tuple(groups), {}) for groups in files], rows)
    assert all(0 < each.stop - each.start <= rows for each in pieces)
    numbers = [number for each in pieces for number in _numbers(each)]
    assert numbers == list(range(sum(sum(groups) for groups in files)))
    for name, groups in zip(names, files, strict=True):
        own = [each for each in pieces if each.file == name]
        assert [(a.stop, b.start) for a, b in itertools.pairwise(own) if a.stop != b.start] == []
        assert sum(each.stop - each.start for each in own) == sum(groups)


def _numbers(piece: Any) -> range:
    return range(piece.first, piece.first + piece.stop - piece.start)


@given(
    parts=st.lists(st.integers(0, 60), min_size=1, max_size=8),
    blocks=st.integers(1, 12),
    share=st.sampled_from([0.0, 0.1, 0.5]),
)
@example(parts=[5, 0, 5], blocks=1, share=0.0)
def test_shards_hold_every_block_once_near_the_ends_of_parts(
    parts: list[int], blocks: int, share: float
) -> None:
    try:
        split = split_units(sum(parts), blocks, share)
    except Infeasible:
        return
    bounds, cuts = shard_bounds(split, parts), shard_cuts(split, parts)
    assert [block for each in bounds for block in range(*each)] == list(range(blocks))
    ranks = [0, *itertools.accumulate(parts)]
    for cut, (first, stop) in zip(cuts, bounds, strict=True):
        size = split.block_units
        assert (cut.first, cut.block_units) == (first * size, size)
        assert (cut.start, cut.stop) == (
            split.open_units + cut.first,
            cut.start + size * (stop - first),
        )
        assert all(parts[n] for n, _ in cut.sources)  # an empty part has no file
        held = [r for n, rank in cut.sources for r in range(rank, rank + parts[n])]
        assert set(range(cut.start, cut.stop)) <= set(held)
        assert [rank for _, rank in cut.sources] == [ranks[n] for n, _ in cut.sources]
        ends = [
            rank for rank in ranks if split.open_units <= rank <= split.open_units + blocks * size
        ]
        if stop < blocks:
            assert min(abs(cut.stop - end) for end in ends) <= size / 2
    if split.open_units:
        opened = open_cut("open", split, parts)
        assert (opened.start, opened.stop, opened.first) == (0, split.open_units, 0)


FALSE_ALARM = 1e-9


@pytest.mark.parametrize("by_id", [False, True])
def test_every_row_may_come_to_every_place(by_id: bool) -> None:
    """Chi-square of six rows' places under 6,000 secrets; false alarm below 1e-6."""
    secrets, rows = 6_000, 6
    key = place_key("SECRET", by_id).replace("'SECRET:'", "secret || ':'")
    table = f"(SELECT i AS {ROW}, CAST(i AS VARCHAR) AS __id, hex(hash(s)) AS secret, s"
    table += f" FROM range({rows}) a(i), range({secrets}) b(s))"
    rank = f"row_number() OVER (PARTITION BY s ORDER BY {key}) - 1"
    found = duckdb.execute(f"SELECT {ROW}, {rank} FROM {table} ORDER BY s, 1").fetchnumpy()
    row, place = found.values()
    assert _is_uniform(row, place, rows)
    lazy = np.where(np.arange(place.size) < place.size // 10, row, place)
    assert not _is_uniform(row, lazy, rows)  # a tenth that stay where they are would be seen


def _is_uniform(row: Any, place: Any, count: int) -> bool:
    from scipy.special import chdtri

    table = np.zeros((count, count))
    np.add.at(table, (row, place), 1)
    expected = row.size / count**2
    statistic = float(((table - expected) ** 2 / expected).sum())
    return bool(statistic < chdtri((count - 1) ** 2, FALSE_ALARM))


def test_a_secret_is_not_shown() -> None:
    secret = Secret("0123456789abcdef")
    assert "0123" not in f"{secret} {secret!r} {[secret]}"
    assert pickle.loads(pickle.dumps(secret)).text == secret.text


def test_an_abandoned_creation_starts_nothing_and_is_waited_for() -> None:
    with at_work("one"):
        assert asyncio.run(abandon("one", 0.01)) is False
        with pytest.raises(Abandoned):
            check_wanted("one")
    assert asyncio.run(abandon("one", 10.0)) is True
    with pytest.raises(Abandoned), at_work("one"):
        raise AssertionError
    check_wanted("another")


def test_a_failed_task_tells_of_it_as_data(tmp_path: Path) -> None:
    job = Creation("a", DuckdbLimits(), versions(), SharedFiles.at(tmp_path, None))

    def refuse(_: Creation) -> None:
        raise InvalidInput("data", "this", "that", "Do so.")

    def fail(_: Creation) -> None:
        raise OSError("no disk")

    refusal = pickle.loads(pickle.dumps(attempt(refuse, job))).error()
    assert isinstance(refusal, InvalidInput)
    assert str(refusal) == "data must be that; got 'this'. Do so."
    assert "OSError: no disk" in str(attempt(fail, job).error())
    other = Creation("a", DuckdbLimits(), (("duckdb", "duckdb 0.0"),), job.shared)
    assert "duckdb 0.0 on every worker" in str(attempt(refuse, other).error())


def test_a_file_is_in_its_place_whole_or_not_at_all(tmp_path: Path) -> None:
    for shared in (
        SharedFiles.at(tmp_path, None),
        SharedFiles.at(tmp_path, f"file://{tmp_path}/there"),
    ):
        shared.prepare()
        name = f"{STAGING}/a"
        with pytest.raises(TypeError), shared.writing(name, tmp_path) as draft:
            draft.write_text(0)  # type: ignore[arg-type]
        with pytest.raises(FileNotFoundError), shared.reading(name):
            pass
        with shared.writing(name, tmp_path) as draft:
            assert draft.stat().st_mode & 0o077 == 0
            draft.write_text("whole")
        with shared.reading(name) as stream:
            assert stream.read() == b"whole"
        assert shared.folder is not None
        made = [shared.folder, *shared.folder.rglob("*")]
        assert len(made) == 4
        assert [each for each in made[1:] if each.stat().st_mode & 0o077] == []
        assert not shared.remote or shared.folder.stat().st_mode & 0o077 == 0
        shared.remove(STAGING)
        shared.remove(STAGING)
        assert not (shared.folder / STAGING).exists()
        shared.remove()
        assert not shared.folder.exists()


def test_a_folder_that_a_worker_does_not_see_is_refused(tmp_path: Path) -> None:
    shared = SharedFiles.at(tmp_path, None)
    shared.prepare()

    class Blind:
        def run(self, task: Any, *arguments: Any, on_error: str) -> dict[str, object]:
            return {"tcp://near": task(*arguments), "tcp://far": "FileNotFoundError"}

    with pytest.raises(InvalidInput, match=r"tcp://far does not see.*location="):
        shared.check_seen(Blind())


@pytest.mark.parametrize("location", ["plain", "s3://", "s3://key:secret@bucket/a", "no://a"])
def test_a_location_is_a_url_without_a_key(location: str) -> None:
    with pytest.raises(InvalidInput, match="location") as refused:
        check_location(location)
    assert "secret" not in str(refused.value)


def test_creations_at_one_location_have_nothing_in_common(tmp_path: Path) -> None:
    location = check_location(f"file://{tmp_path}/there/")
    assert location == f"file://{tmp_path}/there"
    one, other = (
        SharedFiles.at(tmp_path / f".a.creating-{end}", location) for end in ("0123", "4567")
    )
    for shared in (one, other):
        shared.prepare()
        with shared.writing(f"{SHARDS}/00000.parquet", tmp_path) as draft:
            draft.write_text(shared.root)
    one.remove()
    with other.reading(f"{SHARDS}/00000.parquet") as stream:
        assert stream.read().decode() == f"{location}/4567"
    assert [each.name for each in (tmp_path / "there").iterdir()] == ["4567"]
    with pytest.raises(FileExistsError):
        other.prepare()


def test_what_a_cluster_cannot_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "b.parquet")
    with pytest.raises(InvalidInput, match="convert them first"):
        found_files(tmp_path / "a.csv")
    with pytest.raises(InvalidInput, match=r"dict.*Write the table to Parquet"):
        found_files({"x": [1]})
    with pytest.raises(InvalidInput, match="The ending of the name"):
        found_files("s3://bucket/folder/")
    with pytest.raises(InvalidInput, match="data must be paths or URLs"):
        found_files("no://bucket/a.parquet")
    with pytest.raises(InvalidInput, match="fits this pattern"):
        found_files(f"file://{tmp_path}/c*.parquet")
    assert found_files(f"file://{tmp_path}/*.parquet") == (f"file://{tmp_path}/b.parquet",)
    assert found_files([tmp_path / "b.parquet"]) == (str(tmp_path / "b.parquet"),)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"location": "s3://bucket/a"}, "location must be left out without a cluster"),
        ({"engine": "spark://here"}, "engine must be left out, for this machine, or dask://"),
        ({"engine": "dask://127.0.0.1:9", "universe": {"x": [1]}}, "universe must be left out"),
    ],
)
def test_places_that_do_not_fit_are_refused(
    tmp_path: Path, options: dict[str, Any], what: str
) -> None:
    with pytest.raises(InvalidInput, match=what):
        Holdout.create(tmp_path / "a", {"x": [1.0]}, plans.estimates(), **options)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_creation_left_here_is_removed_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / f".a.creating-{'0123' * 4}"
    (left / ".spill-x").mkdir(parents=True)
    (left / ".spill-x" / "rows").touch()
    (left / "creating.json").write_text('{"engine": null, "location": null}')
    unknown = tmp_path / f".a.creating-{'4567' * 4}"  # its note may be written now
    unknown.mkdir()
    for name in ("0", "1"):  # killed before the note had its name, and after it was removed
        (old := tmp_path / f".a.creating-{name * 16}").mkdir()
        if name == "0":
            (old / "creating.json.draft").touch()
        an_hour_ago = time.time() - 3_600
        os.utime(old, (an_hour_ago, an_hour_ago))
    (tmp_path / ".a.creating-file").touch()
    other = tmp_path / f".b.creating-{'0123' * 4}"
    other.mkdir()
    (other / "creating.json").write_text('{"engine": null, "location": null}')
    stages: list[str] = []
    data = {"x": np.arange(400.0)}
    Holdout.create(
        tmp_path / "a", data, plans.estimates(), progress=lambda stage, _: stages.append(stage)
    ).close()
    assert stages[0] == "removing what an interrupted creation left"
    names = [unknown.name, ".a.creating-file", other.name, "a"]
    assert sorted(each.name for each in tmp_path.iterdir()) == names
    assert not (tmp_path / "a" / "creating.json").exists()


def test_a_lock_that_cannot_be_had_is_an_error_unless_another_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network disk takes the lock for writing: only of files that are open for that."""
    (left := tmp_path / f".a.creating-{'0123' * 4}").mkdir()
    (left / "creating.json").write_text('{"engine": null, "location": null}')

    def lock(stream: Any, operation: int) -> None:
        if not stream.writable():
            raise OSError(errno.EBADF, "not open for writing")
        raise answers.pop(0)

    answers = [BlockingIOError(errno.EAGAIN, "held"), OSError(errno.ENOLCK, "no locks")]
    monkeypatch.setattr(fcntl, "flock", lock)
    creation.remove_leftovers(tmp_path / "a", None, None, None)
    assert left.exists()
    with pytest.raises(OSError, match="no locks"):
        creation.remove_leftovers(tmp_path / "a", None, None, None)
    monkeypatch.undo()
    creation.remove_leftovers(tmp_path / "a", None, None, None)
    assert not left.exists()


def test_a_folder_that_gets_no_note_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", fail)
    folder = creation.folder_beside(tmp_path / "a", "0123", None, None)
    with pytest.raises(OSError, match="no locks"), folder:
        raise AssertionError
    assert list(tmp_path.iterdir()) == []


def test_the_size_of_rows_is_looked_at_in_several_places(tmp_path: Path) -> None:
    """Long texts in the last quarter of one file, or in one of several."""
    texts = ["short"] * 60_000 + ["long " * 100] * 20_000
    pq.write_table(pa.table({"x": range(80_000), "t": texts}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [1], "t": ["short"]}), tmp_path / "b.parquet")
    files = [str(tmp_path / name) for name in ("b.parquet", "a.parquet", "b.parquet")]
    with Session(DuckdbLimits(), tmp_path) as session:
        footers = [read_footer(session, file) for file in files]
        chosen = choose(["x", "t"], footers[0].types, None, None)
        looked = sampled(cut_files(files, footers, SAMPLE))
        sizes = [row_bytes(session, piece, chosen) for piece in looked]
    assert len(looked) == 10
    assert (sizes[0], max(sizes)) == (61, 556)


def test_what_it_left_elsewhere_goes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "_GIVE_UP_SECONDS", 0.2)  # nobody is there
    name = "0123" * 4
    left, there = tmp_path / f".a.creating-{name}", tmp_path / "there"
    left.mkdir()
    for each in (f"{name}/shards", f"{name}/staging", "4567/shards", "shards"):
        (there / each).mkdir(parents=True)
        (there / each / "00000.parquet").touch()
    place = ("dask://127.0.0.1:9", f"file://{there}")
    (left / "creating.json").write_bytes(creation._written(*place))
    creation.remove_leftovers(tmp_path / "a", *place, None)
    kept = [each.relative_to(there).as_posix() for each in there.rglob("*.parquet")]
    assert sorted(kept) == ["4567/shards/00000.parquet", "shards/00000.parquet"]
    assert not (there / name).exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["there"]
