"""Reading blocks back, and noticing when the files are not what was written."""

from __future__ import annotations

import pickle
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from holdfast.errors import Damaged, InvalidInput
from holdfast.store import sealing
from holdfast.store.blocks import BlockStore, Contents, check_files
from tests.engines.store.tables import mixed, to_parquet, written

ROWS, BLOCKS = 45_000, 90


@pytest.fixture(scope="module", params=[None, "id"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    """Several row groups, of units of one row and of one to five rows."""
    numbers = np.arange(ROWS)
    data = {"id": numbers // (numbers % 5 + 1), "x": numbers * 0.5, "Y": numbers % 3 == 0}
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing, "_GROUP_BYTES", 2**19)  # about 11,000 rows a group
        return written(folder, data, blocks=BLOCKS, open_fraction=0.01, unit=request.param)[1]


def test_blocks_are_found_whatever_the_row_groups(store: BlockStore) -> None:
    assert pq.ParquetFile(store.place(store.shards[0])).num_row_groups > 3
    everything = store.table(hidden=True)
    blocks = everything["__block"].to_numpy()
    assert store.blocks == BLOCKS
    offsets = store.cuts(0, BLOCKS)
    assert offsets.tolist() == np.searchsorted(blocks, np.arange(BLOCKS + 1)).tolist()
    spans = [(0, 1), (0, BLOCKS), (BLOCKS - 1, BLOCKS), (37, 41), (1, BLOCKS - 1)]
    for start, stop in [*spans, *((i, i + 1) for i in range(0, BLOCKS, 15))]:
        wanted = everything.slice(int(offsets[start]), int(offsets[stop] - offsets[start]))
        assert (store.cuts(start, stop) + offsets[start]).tolist() == offsets[
            start : stop + 1
        ].tolist()
        assert store.table(start, stop, hidden=True).equals(wanted)
        found = store.table(start, stop, hidden=True)["__unit"].to_numpy()
        assert np.unique(found).tolist() == list(range(start * store.units, stop * store.units))


def test_columns_are_chosen_by_name(store: BlockStore) -> None:
    names = ["Y", "x"]
    assert store.table(0, 1, ["y", "X"]).column_names == names
    assert store.table(0, 1, ["x"], hidden=True).column_names == ["__block", "__unit", "__row", "x"]
    assert store.table(0, 1).column_names == list(store.schema.names)
    empty = store.table(2, 3, [])
    assert (empty.num_rows, empty.num_columns) == (store.cuts(2, 3)[-1], 0)
    assert store.open_table(["y"]).num_rows == store.manifest.open_rows
    for name in ("z", "__block", "__row"):
        with pytest.raises(InvalidInput, match="x, Y"):
            store.table(0, 1, [name])


def test_blocks_that_do_not_exist(store: BlockStore) -> None:
    for start, stop in ((-1, 1), (1, 1), (2, 1), (0, BLOCKS + 1)):
        with pytest.raises(InvalidInput):
            store.table(start, stop)


def test_a_store_can_be_sent_to_another_process(store: BlockStore) -> None:
    store.table(0, 1)  # what it remembers does not travel
    copy = pickle.loads(pickle.dumps(store))
    assert copy.manifest == store.manifest
    assert copy.table(3, 4).equals(store.table(3, 4))


def test_without_an_open_part_there_is_none(tmp_path: Path) -> None:
    _, store = written(tmp_path, mixed(), blocks=3)
    assert store.open_path is None
    with pytest.raises(InvalidInput, match="open_fraction"):
        store.open_table()


@pytest.mark.parametrize("name", ["blocks.parquet", "open.parquet"])
def test_a_changed_file_is_noticed(name: str, tmp_path: Path) -> None:
    manifest, store = written(tmp_path, mixed(), blocks=3, open_fraction=0.3)
    store.check_files()
    file = tmp_path / name
    good = file.read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    for content in (bytes(flipped), good[:-1], good + b"\0", b""):
        file.write_bytes(content)
        with pytest.raises(Damaged, match=name):
            check_files(tmp_path, manifest.files)
    file.unlink()
    with pytest.raises(Damaged, match=name):
        store.check_files()
    file.write_bytes(good)
    store.check_files()


def test_a_file_that_is_another_or_cut_short_is_not_read(tmp_path: Path) -> None:
    for name, rows in (("a", 40), ("b", 80)):
        (tmp_path / name).mkdir()
        manifest, store = written(tmp_path / name, mixed(rows), blocks=4)
    file = store.place(store.shards[0])
    cut = file.read_bytes()[:-10]

    def refused(words: str) -> None:
        with pytest.raises(Damaged, match=words):
            BlockStore(store.folder, manifest).table()

    (tmp_path / "a" / "blocks.parquet").replace(file)
    refused("as many rows as were written")
    to_parquet(mixed(), file)
    refused("columns of the holdout")
    file.write_bytes(cut)
    refused(r"blocks\.parquet")
    file.unlink()
    refused(r"blocks\.parquet")


CHANGES: dict[str, dict[str, Any]] = {
    "unknown key": {"colour": 1},
    "text for a number": {"rows": "40"},
    "boolean for a number": {"blocks": True},
    "number for a text": {"unit_column": 1},
    "counts": {"leftover_units": 1000},
    "no blocks": {"blocks": 0},
    "kind": {"schema": [{"name": "x", "kind": "colour"}]},
    "schema": {"schema": {"x": "number"}},
    "files": {"files": ["blocks.parquet"]},
    "hash": {"files": [{"name": "blocks.parquet", "sha256": 1, "bytes": 1}]},
}


def test_a_changed_manifest_is_refused(tmp_path: Path) -> None:
    manifest, _ = written(tmp_path, mixed(), blocks=3)
    plain = manifest.to_dict()
    changed = [{**plain, **change} for change in CHANGES.values()]
    lacking = [{key: plain[key] for key in plain.keys() - {name}} for name in plain]
    accepted = []
    for values in (*changed, *lacking):
        with suppress(Damaged):
            accepted.append(Contents.from_dict(values))
    assert accepted == []
    for key in ("rows", "units", "blocks", "block_units", "block_rows", "open_rows"):
        with pytest.raises(Damaged, match="add up"):
            replace(manifest, **{key: getattr(manifest, key) + 1})
