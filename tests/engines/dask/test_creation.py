"""Creation on a cluster: the blocks of one machine, all rows, nothing left after an end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from holdfast.engines.dask import sealing
from holdfast.engines.dask.sealing import open_on_cluster
from holdfast.engines.dask.shuffle import STAGING, SharedFiles
from holdfast.engines.source import Engines, open_store
from holdfast.engines.sql.estimator import sql_estimator
from holdfast.errors import Infeasible, InvalidInput
from holdfast.grids import grid
from holdfast.holdout.holdout import Holdout
from holdfast.randomness import SeededEntropy
from holdfast.store.blocks import BlockStore, Contents, Manifest
from holdfast.store.sealing import drawn_secret
from tests.engines.store.tables import mixed, written
from tests.holdout import plans
from tools.cluster import Cluster, dask_cluster

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket of a stand-in for S3, on loopback."""
    import s3fs  # type: ignore[import-untyped]
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "nobody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem().mkdir("bucket")
        yield "s3://bucket"
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.fixture(scope="module")
def cluster(bucket: str) -> Iterator[Cluster]:
    del bucket  # it is in the environment of all processes
    with dask_cluster(2) as found:
        yield found


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few thousand rows make several pieces and parts."""
    monkeypatch.setattr(sealing, "_PART_BYTES", 80_000)


def saved(frame: pd.DataFrame, folder: Path, files: int = 3) -> str:
    """The rows in several files of several groups; a pattern of them."""
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), files)):
        part = frame.iloc[rows].reset_index(drop=True)
        part.to_parquet(folder / f"in{number}.parquet", row_group_size=700)
    return str(folder / "in*.parquet")


def numbers(rows: int, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame({"x": generator.normal(size=rows), "k": np.arange(rows)})


def made(
    cluster: Cluster, folder: Path, data: Any, seed: int = 3, **options: Any
) -> tuple[Contents, BlockStore]:
    folder.mkdir()
    sizes = {name: options.pop(name, 0) for name in ("blocks", "open_fraction")}
    with open_on_cluster(data, folder, cluster.url, None, SeededEntropy(seed), **options) as rows:
        manifest = rows.write(**sizes)
    return manifest, BlockStore(folder, manifest)


def create(cluster: Cluster, folder: Path, data: Any, **options: Any) -> Holdout:
    """A holdout named "a" in this folder."""
    return Holdout.create(folder / "a", data, plans.estimates(), engine=cluster.url, **options)


def inputs_alone(folder: Path) -> bool:
    """Whether nothing is left there but the three files of `saved`."""
    return {each.name for each in folder.iterdir()} == {f"in{i}.parquet" for i in range(3)}


@pytest.mark.parametrize(("unit", "share"), [(None, 0.1), ("id", 0.0)])
def test_the_blocks_are_those_of_one_machine(
    cluster: Cluster, tmp_path: Path, unit: str | None, share: float
) -> None:
    frame = mixed(5_000)
    data = saved(frame, tmp_path)
    (tmp_path / "one").mkdir()
    how: dict[str, Any] = {"blocks": 37, "open_fraction": share, "unit": unit}
    expected, one = written(tmp_path / "one", data, entropy=SeededEntropy(3), **how)
    manifest, many = made(cluster, tmp_path / "many", data, **how)
    assert len(manifest.shards) > 2
    places: dict[str, Any] = {"files": [], "shards": []}
    assert manifest.to_dict() | places == expected.to_dict() | places
    assert many.table(hidden=True).equals(one.table(hidden=True))
    many.check_files()
    sealed = many.table(hidden=True).to_pandas()
    rows = sealed["__row"].tolist()
    assert (sealed.groupby("__block")["__unit"].nunique() == manifest.block_units).all()
    if share:
        opened = many.open_table(hidden=True)
        assert opened.equals(one.open_table(hidden=True))
        rows += opened["__row"].to_pylist()
    assert manifest.leftover_units > 0
    assert len(set(rows)) == len(rows) == 5_000 - manifest.leftover_rows
    source = frame.iloc[sealed["__row"]].reset_index(drop=True)
    assert sealed["arm"].fillna("?").tolist() == source["arm"].fillna("?").tolist()
    assert np.array_equal(sealed["x"], source["x"], equal_nan=True)
    left = {path.name for path in (tmp_path / "many").iterdir()}
    assert left == ({"shards", "open.parquet"} if share else {"shards"})


def test_few_large_units_leave_parts_of_the_order_empty(cluster: Cluster, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    frame = numbers(20_000).assign(id=generator.integers(0, 12, 20_000))
    data = saved(frame, tmp_path)
    (tmp_path / "one").mkdir()
    one = written(tmp_path / "one", data, blocks=4, entropy=SeededEntropy(3), unit="id")[1]
    manifest, many = made(cluster, tmp_path / "many", data, blocks=4, unit="id")
    assert manifest.units == 12
    assert many.table(hidden=True).equals(one.table(hidden=True))


def test_a_file_that_is_replaced_after_it_was_read_is_refused(
    cluster: Cluster, tmp_path: Path
) -> None:
    frame = numbers(3_000, seed=12)
    data, other = saved(frame, tmp_path), frame.iloc[:1_000].assign(x=frame["x"] + 1)

    def replace_one(stage: str, share: float) -> None:
        if (stage, share) == ("reading", 1.0):
            other.to_parquet(tmp_path / "in0.parquet", row_group_size=700)

    with pytest.raises(Infeasible, match=r"do not change.*3,000 rows have other values"):
        create(cluster, tmp_path, data, progress=replace_one)
    assert inputs_alone(tmp_path)


def test_files_hold_whole_blocks_and_no_place_of_a_unit(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        SharedFiles, "remove", lambda *_: None
    )  # so that what is staged can be seen
    data = saved(mixed(3_000), tmp_path)
    manifest, store = made(cluster, tmp_path / "a", data, blocks=20, unit="id")
    first = 0
    for shard in store.shards:
        meta = pq.ParquetFile(store.place(shard)).metadata
        for group in range(meta.num_row_groups):
            blocks = meta.row_group(group).column(0).statistics
            assert blocks.min == first
            first = blocks.max + 1
    assert first == manifest.blocks
    secret = drawn_secret(SeededEntropy(3)).encode()
    staged = list((tmp_path / "a" / STAGING).glob("*.parquet"))
    assert len(staged) > 2
    for file in staged:
        assert pq.read_schema(file).names == ["__unit", "__row", *(f"c{i}" for i in range(5))]
    for file in [*(tmp_path / "a").rglob("*"), *cluster.folder.rglob("*")]:
        if file.is_file():
            assert secret not in file.read_bytes()
            assert file.stat().st_mode & 0o077 == 0 or cluster.folder in file.parents


def test_a_holdout_is_made_and_asked(cluster: Cluster, tmp_path: Path) -> None:
    frame = numbers(4_500, seed=8).assign(name=[f"row {i}" for i in range(4_500)])
    seen: list[tuple[str, float]] = []
    data, plan = saved(frame, tmp_path), lambda units: plans.estimates()
    what: dict[str, Any] = {"ids": "name", "columns": ["x", "k"], "target": "k"}
    what |= {"ranges": {"x": (-9, 9)}, "block_units": 10, "open_fraction": 0.1, "seed": 1}
    what |= {"engine": cluster.url, "progress": lambda *told: seen.append(told)}
    with Holdout.create(tmp_path / "study", data, plan, **what) as holdout:
        answer = holdout.ask("avg(x)", grid=grid(-2, 2, step=0.01))
        manifest = holdout.spec.manifest
    stages = list(dict.fromkeys(stage for stage, _ in seen))
    assert stages == ["reading", "shuffling", "writing"]
    for stage in stages:
        told = [share for each, share in seen if each == stage]
        assert told[0] == 0.0
        assert told[-1] == 1.0
        assert told == sorted(told)
    assert (manifest.block_units, manifest.leftover_units) == (10, 50)
    assert manifest.schema.names == ("x", "k")
    sealed = open_store(tmp_path / "study", manifest).table(hidden=True).to_pandas()
    means = frame["x"].to_numpy()[sealed["__row"]].reshape(400, 10).mean(axis=1)
    assert np.quantile(means, 0.02) <= answer.value <= np.quantile(means, 0.98)
    found = values(tmp_path / "study", manifest, "avg(x)")
    np.testing.assert_allclose(found, means, rtol=1e-12)
    ids = pq.read_table(tmp_path / "study" / "ids.parquet")["id"].to_pylist()
    assert ids == frame["name"].tolist()


def values(folder: Path, manifest: Manifest, text: str) -> NDArray[np.float64]:
    """What the engine of one machine says of all blocks."""
    engines = Engines(open_store(folder, manifest))
    try:
        return engines.values(sql_estimator(text, manifest.schema), 0, manifest.blocks)
    finally:
        engines.close()


def test_what_the_files_say_is_checked_as_on_one_machine(cluster: Cluster, tmp_path: Path) -> None:
    def refused(match: str, data: Any, **options: Any) -> None:
        with pytest.raises(InvalidInput, match=match):
            create(cluster, tmp_path, data, **options)

    good = saved(numbers(100), tmp_path)
    refused("unit must be among the columns", good, unit="who")
    refused("columns must be a list of names", good, columns="x")
    pq.write_table(pa.table({"x": [2**60]}), tmp_path / "large.parquet")
    refused("integers beyond", tmp_path / "large.parquet")
    pq.write_table(pa.table({"x": [1.0], "file_row_number": [1]}), tmp_path / "named.parquet")
    refused("column name must be another", tmp_path / "named.parquet")
    refused("only in named.parquet", [tmp_path / "large.parquet", tmp_path / "named.parquet"])
    pq.write_table(pa.table({"x": pa.array([], pa.int64())}), tmp_path / "empty.parquet")
    refused("0 rows", tmp_path / "empty.parquet")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    refused("readable by every worker", tmp_path / "torn.parquet")
    with pytest.raises(Infeasible, match="at least 400 units"):
        create(cluster, tmp_path, good)
    assert sorted(each.suffix for each in tmp_path.iterdir()) == [".parquet"] * 7


@pytest.mark.parametrize("stage", ["reading", "shuffling", "writing"])
def test_an_interrupted_creation_leaves_nothing(
    cluster: Cluster, tmp_path: Path, stage: str
) -> None:
    data = saved(numbers(6_000, seed=len(stage)), tmp_path)

    def interrupt(told: str, share: float) -> None:
        if told == stage and share > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create(cluster, tmp_path, data, progress=interrupt)
    time.sleep(0.5)  # what a worker could still write
    assert inputs_alone(tmp_path)


CHILD = """
import sys
from holdfast.engines.dask import sealing
from holdfast.holdout import Holdout
from tests.holdout import plans

def tell(stage, share):
    if stage == "shuffling" and share > 0:
        print("shuffling", flush=True)

sealing._PART_BYTES = 80_000
path, data, engine = sys.argv[1:]
Holdout.create(path, data, plans.estimates(), engine=engine, progress=tell)
"""


def test_what_a_killed_driver_left_is_removed_by_the_next(cluster: Cluster, tmp_path: Path) -> None:
    data = saved(numbers(15_000, seed=5), tmp_path)
    root = Path(__file__).parents[3]
    words = [sys.executable, "-c", CHILD, str(tmp_path / "a"), data, cluster.url]
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=root) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"shuffling\n"
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.read()
    [left] = tmp_path.glob(".a.creating-*")
    assert not (tmp_path / "a").exists()
    stages: list[str] = []
    create(cluster, tmp_path, data, progress=lambda stage, _: stages.append(stage)).close()
    assert stages[0] == "removing what an interrupted creation left"
    assert not left.exists()
    made_there = {each.name for each in (tmp_path / "a").iterdir()}
    assert made_there <= {"contents.json", "shards", "ledger.sqlite", "locks"}
    (tmp_path / "a").rename(tmp_path.with_suffix(".a"))
    assert inputs_alone(tmp_path)


def test_a_creation_under_way_is_left_alone(cluster: Cluster, tmp_path: Path) -> None:
    """Two at one path: the second to end finds the place taken."""
    data = saved(numbers(3_000, seed=6), tmp_path)
    inner: list[Holdout] = []

    def again(stage: str, share: float) -> None:
        if stage == "writing" and not inner:
            (first,) = tmp_path.glob(".a.creating-*")
            inner.append(create(cluster, tmp_path, data))
            assert first.exists()

    with pytest.raises(OSError, match="not empty"):
        create(cluster, tmp_path, data, progress=again)
    inner[0].close()
    assert list(tmp_path.glob(".a.*")) == []


def test_a_worker_killed_in_the_shuffle_does_not_matter(tmp_path: Path) -> None:
    data = saved(numbers(16_000, seed=7), tmp_path)
    with dask_cluster(2, nanny=True) as cluster:
        killed = threading.Event()

        def kill(stage: str, share: float) -> None:
            if stage == "shuffling" and share > 0 and not killed.is_set():
                killed.set()
                cluster.kill(0)

        with suppress(Infeasible):  # Dask recovers, or says that it cannot
            with create(cluster, tmp_path, data, progress=kill) as holdout:
                store = open_store(tmp_path / "a", holdout.spec.manifest)
                store.check_files()
                rows = store.table(hidden=True)["__row"].to_numpy()
            assert np.array_equal(np.sort(rows), np.arange(16_000))
        assert killed.is_set()
    assert list(tmp_path.glob(".a.*")) == []


def test_no_workers_and_no_scheduler_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "_GIVE_UP_SECONDS", 0.5)
    data = saved(numbers(500), tmp_path)
    with dask_cluster(0) as cluster:
        url = f"{cluster.url}?patience=4"
        with pytest.raises(TimeoutError, match=r"no worker for 4 seconds.*Nothing was created"):
            Holdout.create(tmp_path / "a", data, plans.estimates(), engine=url)
    with pytest.raises(ConnectionError, match="There is no Dask scheduler"):
        Holdout.create(tmp_path / "a", data, plans.estimates(), engine=url)
    assert list(tmp_path.glob(".a.*")) == []


def test_data_and_shards_may_be_elsewhere(bucket: str, cluster: Cluster, tmp_path: Path) -> None:
    import s3fs

    data = saved(numbers(2_400, seed=9), tmp_path, files=2)
    system = s3fs.S3FileSystem()
    for file in tmp_path.glob("in*.parquet"):
        system.put_file(str(file), f"bucket/data/{file.name}")
    (tmp_path / "one").mkdir()
    expected, one = written(
        tmp_path / "one", data, blocks=400, open_fraction=0.2, entropy=SeededEntropy(4)
    )

    def interrupt(stage: str, share: float) -> None:
        if stage == "writing" and share > 0:
            raise KeyboardInterrupt

    location = f"{bucket}/study"
    system.pipe_file("bucket/study/shards/00000.parquet", b"another's")

    what: dict[str, Any] = {"open_fraction": 0.2, "seed": 4, "location": location}
    there = f"{bucket}/data/*.parquet"
    with pytest.raises(KeyboardInterrupt):
        create(cluster, tmp_path, there, progress=interrupt, **what)
    system.invalidate_cache()
    assert system.find("bucket/study") == ["bucket/study/shards/00000.parquet"]
    assert not list(tmp_path.glob(".a.*"))
    with create(cluster, tmp_path, there, **what) as holdout:
        manifest = holdout.spec.manifest
        answer = holdout.ask("avg(x)", grid=grid(-2, 2, step=0.01))
    assert abs(answer.value) < 1
    system.invalidate_cache()
    store = open_store(tmp_path / "a", manifest)
    names = [shard.name for shard in store.shards]
    assert len(names) > 1
    assert manifest.location is not None
    own = manifest.location.removeprefix("s3://")
    assert own.startswith("bucket/study/")
    assert system.find(own) == [f"{own}/{name}" for name in names]
    assert len(system.find("bucket/study")) == len(names) + 1
    assert manifest == replace(expected, location=manifest.location).public
    store.check_files()
    assert store.open_table(hidden=True).equals(one.open_table(hidden=True))
    found = []
    for shard in store.shards:
        with store.held(shard):
            found.append(pq.read_table(store.place(shard)))
    assert pa.concat_tables(found).equals(one.table(hidden=True))
    sealed = one.table(hidden=True).to_pandas()
    means = sealed.groupby("__block")["x"].mean()
    np.testing.assert_allclose(values(tmp_path / "a", manifest, "avg(x)"), means, rtol=1e-12)
