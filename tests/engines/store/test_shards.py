"""Blocks in several files, here and elsewhere: the same blocks."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from holdfast.engines.source import Engines, store_of
from holdfast.engines.sql.estimator import sql_estimator
from holdfast.errors import Damaged, InvalidInput
from holdfast.store.blocks import BlockStore, Contents, Shard
from holdfast.store.remote import SHARDS, SHARDS_BYTES, RemoteStore
from tests.engines.store.tables import written
from tools.shards import sharded

BLOCKS = 20
CUTS = (1, 7, 12)
SPANS = ((0, 20), (0, 1), (1, 2), (6, 8), (3, 5), (11, 20), (19, 20))


@pytest.fixture(scope="module")
def stores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[BlockStore, BlockStore]:
    """In one file, and in four."""
    numbers = np.arange(4_000)
    data = {"id": numbers // (numbers % 5 + 1), "x": numbers * 0.1, "y": numbers % 7}
    folder = tmp_path_factory.mktemp("store")
    whole = written(
        folder, data, blocks=BLOCKS, open_fraction=0.05, unit=getattr(request, "param", "id")
    )[1]
    return whole, sharded(whole, tmp_path_factory.mktemp("sharded") / "s", CUTS)


def elsewhere(store: BlockStore, folder: Path) -> RemoteStore:
    """The same behind a URL, whose open part is in this folder."""
    (folder / "open.parquet").write_bytes((store.folder / "open.parquet").read_bytes())
    found = store_of(folder, replace(store.manifest, location=f"file://{store.folder}"))
    assert isinstance(found, RemoteStore)
    return found


@pytest.fixture
def remote(
    stores: tuple[BlockStore, BlockStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> RemoteStore:
    """The second of them behind a URL, with a cache of its own."""
    monkeypatch.setenv(SHARDS, str(tmp_path / "cache"))
    return elsewhere(stores[1], tmp_path)


either = pytest.mark.parametrize("stores", [None, "id"], indirect=True)


@either
def test_the_blocks_are_the_same(stores: tuple[BlockStore, BlockStore]) -> None:
    whole, several = stores
    for start, stop in SPANS:
        assert several.table(start, stop, hidden=True).equals(whole.table(start, stop, hidden=True))
        assert several.cuts(start, stop).tolist() == whole.cuts(start, stop).tolist()
    names = [shard.name for shard in several.overlapping(6, 8)]
    assert names == ["shards/00001.parquet", "shards/00002.parquet"]
    assert whole.overlapping(6, 8) == [Shard("blocks.parquet", 0, 20, whole.manifest.block_rows)]


@either
def test_a_manifest_says_where_its_blocks_are(stores: tuple[BlockStore, BlockStore]) -> None:
    whole, several = (store.manifest for store in stores)
    assert "shards" not in whole.to_dict()  # as it always was
    for manifest in (whole, several, replace(several, location="s3://bucket/folder")):
        assert Contents.from_dict(json.loads(json.dumps(manifest.to_dict()))) == manifest


@pytest.mark.parametrize(
    "change",
    [
        {"first": 2},
        {"stop": 6},
        {"stop": 8},
        {"rows": 0},
        {"rows": "7"},
        {"name": "../blocks.parquet"},
        {"name": "/blocks.parquet"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_manifest_whose_shards_do_not_fit(
    stores: tuple[BlockStore, BlockStore], change: dict[str, object]
) -> None:
    values = stores[1].manifest.to_dict()
    values["shards"][1] |= change
    with pytest.raises(Damaged, match="manifest"):
        Contents.from_dict(values)


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_shard_that_is_damaged_is_no_failure(
    stores: tuple[BlockStore, BlockStore], tmp_path: Path, damage: str
) -> None:
    several = sharded(stores[0], tmp_path / "s", CUTS)
    engines, path = Engines(several), several.place(several.shards[2])
    estimator = sql_estimator("avg(x)", several.schema)
    engines.verify("h")
    path.write_bytes(path.read_bytes()[:-1]) if damage == "cut" else path.unlink()
    try:
        assert engines.values(estimator, 0, 7).size == 7
        with pytest.raises(Damaged, match="00002"):
            engines.values(estimator, 0, 20)
        with pytest.raises(Damaged, match="00002"):
            engines.verify("h")
    finally:
        engines.close()


@either
def test_what_is_elsewhere_is_fetched_when_it_is_needed(
    stores: tuple[BlockStore, BlockStore], remote: RemoteStore
) -> None:
    estimator = sql_estimator("sum(x * y)", remote.schema)
    here, there = Engines(stores[0]), Engines(pickle.loads(pickle.dumps(remote)))
    try:
        found = there.values(estimator, 1, 8)
        assert sorted(_cached(remote)) == sorted(
            remote.place(shard).name for shard in remote.shards[1:3]
        )
        assert found.tobytes() == here.values(estimator, 1, 8).tobytes()
        assert there.values(estimator, 0, 20).tobytes() == here.values(estimator, 0, 20).tobytes()
        there.verify("h")
        remote.check_files()
    finally:
        here.close()
        there.close()


def _cached(store: RemoteStore) -> list[str]:
    return [file.name for file in store.place(store.shards[0]).parent.glob("*.parquet")]


def test_the_cache_is_bounded_but_for_what_is_held(
    remote: RemoteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three, _ = remote.shards
    sizes = {file.name: file.bytes for file in remote.manifest.files}
    monkeypatch.setenv(SHARDS_BYTES, str(sizes[two.name] + sizes[three.name]))
    with remote.held(two):
        with remote.held(one):
            pass
        with remote.held(three):  # the first goes, though the second was used before it
            assert set(_cached(remote)) == {remote.place(each).name for each in (two, three)}
    monkeypatch.setenv(SHARDS_BYTES, "much")
    with pytest.raises(InvalidInput, match="number of bytes"), remote.held(one):
        pass


def test_what_another_has_removed_is_no_error(
    remote: RemoteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, *_ = remote.shards
    with remote.held(one):
        pass
    gone = remote.place(one).with_name("gone.parquet")
    found = Path.glob

    def late(folder: Path, pattern: str) -> Iterator[Path]:
        return itertools.chain(found(folder, pattern), [gone] if pattern == "*.parquet" else [])

    monkeypatch.setattr(Path, "glob", late)
    with remote.held(two):
        assert remote.place(two).exists()


def test_what_a_killed_process_was_fetching_is_counted_and_in_time_removed(
    remote: RemoteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three, _ = remote.shards
    sizes = {file.name: file.bytes for file in remote.manifest.files}
    with remote.held(one):
        pass
    old, young = (remote.place(one).with_name(f"{name}.draft") for name in ("old", "young"))
    for draft in (old, young):
        draft.write_bytes(bytes(1_000))
    two_days_ago = time.time() - 2 * 86_400
    os.utime(old, (two_days_ago, two_days_ago))
    monkeypatch.setenv(SHARDS_BYTES, str(sizes[one.name] + sizes[two.name] + 1_000))
    with remote.held(two):
        assert (old.exists(), young.exists()) == (False, True)
        assert len(_cached(remote)) == 2
    monkeypatch.setenv(SHARDS_BYTES, str(sizes[two.name] + sizes[three.name] + 999))
    with remote.held(three):
        assert set(_cached(remote)) == {remote.place(three).name}


def test_a_copy_that_was_changed_is_fetched_again(remote: RemoteStore) -> None:
    shard = remote.shards[1]
    with remote.held(shard):
        sound = remote.place(shard).read_bytes()
    remote.place(shard).write_bytes(sound[:-1] + b"?")
    with remote.held(shard):
        assert remote.place(shard).read_bytes() == sound
    assert remote.place(shard).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_what_is_not_as_it_was_written_is_never_kept(
    stores: tuple[BlockStore, BlockStore],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: str,
) -> None:
    monkeypatch.setenv(SHARDS, str(tmp_path / "cache"))
    several = sharded(stores[0], tmp_path / "s", CUTS)
    store = elsewhere(several, tmp_path)
    path = several.place(several.shards[0])
    path.write_bytes(path.read_bytes()[:-1] + b"?") if damage == "changed" else path.unlink()
    with pytest.raises(Damaged, match="00000"), store.held(store.shards[0]):
        pass
    with pytest.raises(Damaged, match="00000"):
        store.check_files()
    assert _cached(store) == []
    assert list(store.place(store.shards[0]).parent.glob("*.draft")) == []


def test_several_that_need_a_shard_fetch_it_once(
    remote: RemoteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    fetch = RemoteStore._fetch

    def counted(self: RemoteStore, shard: Shard, file: object) -> None:
        fetched.append(shard.name)
        fetch(self, shard, file)  # type: ignore[arg-type]

    monkeypatch.setattr(RemoteStore, "_fetch", counted)
    start = threading.Barrier(6)

    def use(shard: Shard) -> None:
        start.wait()
        with remote.held(shard):
            assert remote.place(shard).exists()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(use, [remote.shards[0]] * 6))
    assert fetched == ["shards/00000.parquet"]


@pytest.mark.parametrize("location", ["nowhere://bucket", "s4://bucket/x"])
def test_a_location_that_nothing_can_open(remote: RemoteStore, location: str) -> None:
    store = RemoteStore(remote.folder, replace(remote.manifest, location=location))
    with pytest.raises(InvalidInput, match="fsspec can open"), store.held(store.shards[0]):
        pass
