"""Writing: whole units, equal blocks, nothing lost uncounted, a random order, all or nothing."""

from __future__ import annotations

import itertools
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import Infeasible, InvalidInput
from holdfast.randomness import SeededEntropy, SystemEntropy
from holdfast.store import sealing
from holdfast.store.blocks import BlockStore, Contents
from holdfast.store.inputs import open_input
from holdfast.store.sealing import split_units, write_store
from tests.engines.store.tables import mixed, to_csv, to_parquet, written


def check_blocks(manifest: Contents, table: pa.Table, units: int) -> None:
    """Every block has t units, numbered one after the other; no unit is in two blocks."""
    frame = table.select(["__block", "__unit"]).to_pandas()
    found = frame.drop_duplicates()["__unit"]
    assert found.tolist() == list(range(units))
    assert frame["__unit"].is_monotonic_increasing
    assert (frame["__block"] == frame["__unit"] // manifest.block_units).all()


@pytest.mark.parametrize("unit", [None, "id"])
@pytest.mark.parametrize("share", [0.0, 0.32])
def test_blocks_have_t_units_and_the_rest_is_counted(
    unit: str | None, share: float, tmp_path: Path
) -> None:
    frame = mixed(1_000)
    manifest, store = written(tmp_path, frame, blocks=7, open_fraction=share, unit=unit)
    units = 1_000 if unit is None else 334
    split = split_units(units, 7, share)
    assert (manifest.rows, manifest.units) == (1_000, units)
    assert (manifest.block_units, manifest.open_units) == (split.block_units, split.open_units)
    assert (
        manifest.leftover_units
        == split.leftover_units
        == units - manifest.open_units - 7 * ((units - manifest.open_units) // 7)
    )
    assert manifest.leftover_units > 0  # the case is not trivial
    assert manifest.one_row_units is (unit is None)
    sealed = store.table(hidden=True)
    check_blocks(manifest, sealed, 7 * manifest.block_units)
    assert sealed.num_rows == manifest.block_rows
    rows = sealed["__row"].to_pylist()
    if share:
        opened = store.open_table(hidden=True)
        check_blocks(manifest, opened, manifest.open_units)
        assert opened.num_rows == manifest.open_rows
        rows += opened["__row"].to_pylist()
    assert len(set(rows)) == len(rows) == 1_000 - manifest.leftover_rows


def test_all_rows_of_one_id_are_in_one_block(tmp_path: Path) -> None:
    ids = np.repeat(np.arange(300), np.arange(300) % 5 + 1)[::-1]
    frame = pd.DataFrame({"who": ids % 300, "x": np.arange(ids.size)})
    shuffled = frame.sample(frac=1, random_state=1)
    _, store = written(tmp_path, shuffled, blocks=10, unit="who")
    sealed = store.table(hidden=True).to_pandas()
    who = shuffled["who"].to_numpy()[sealed["__row"]]
    together = sealed.assign(who=who).groupby("who").agg({"__unit": "nunique", "x": "size"})
    assert (together["__unit"] == 1).all()
    assert (together["x"] == frame.groupby("who").size().loc[together.index]).all()
    assert (
        sealed.groupby("__unit")["__row"].apply(lambda rows: rows.is_monotonic_increasing)
    ).all()


def test_ids_that_happen_to_differ_are_no_declaration(tmp_path: Path) -> None:
    """What follows from units of one row is public, so it is not looked up in the rows."""
    manifest, store = written(tmp_path, {"i": [3, 1, 2], "x": [1, 2, 3]}, blocks=3, unit="i")
    assert not manifest.one_row_units
    assert manifest.unit_column == "i"
    assert store.cuts(0, 3).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("units", "blocks", "share", "wanted"),
    [
        (10, 3, 0.0, (3, 0, 1)),
        (9, 3, 0.0, (3, 0, 0)),
        (100, 7, 0.29, (10, 29, 1)),
        (10, 10, 0.0, (1, 0, 0)),
        (1, 1, 0.99, (1, 0, 0)),
    ],
)
def test_the_split_of_units(
    units: int, blocks: int, share: float, wanted: tuple[int, int, int]
) -> None:
    split = split_units(units, blocks, share)
    assert (split.block_units, split.open_units, split.leftover_units) == wanted


def test_blocks_of_a_given_size_leave_more_over(tmp_path: Path) -> None:
    with open_input({"x": np.arange(100)}) as rows:
        manifest = write_store(
            tmp_path, rows, blocks=7, block_units=10, entropy=SeededEntropy(1), open_fraction=0.1
        )
    assert (manifest.block_units, manifest.leftover_units, manifest.leftover_rows) == (10, 20, 20)
    with pytest.raises(Infeasible, match=r"at least 91 units, 13 for each.*90 of 100"):
        split_units(100, 7, 0.1, block_units=13)


def test_more_blocks_than_units_is_infeasible(tmp_path: Path) -> None:
    with pytest.raises(Infeasible, match=r"at least 9 units.*8 of 10 units.*fewer questions"):
        written(tmp_path, {"x": np.arange(10)}, blocks=9, open_fraction=0.2)
    assert list(tmp_path.iterdir()) == []
    for share in (-0.1, 1.0, float("nan")):
        with pytest.raises(InvalidInput, match="open_fraction"):
            split_units(10, 2, share)


# Whether the order is random


STRATA = BLOCKS = 20
FALSE_ALARM = 1e-9  # by the chi-square law; cells expect 50 rows, so that it is 1e-6 with room


def is_uniform(rows: np.ndarray[Any, Any]) -> bool:
    """Chi-square of rows that are in 20 blocks, by the twentieth of the input they come from."""
    from scipy.special import chdtri

    assert rows.size % (STRATA * BLOCKS) == 0
    table = np.zeros((STRATA, BLOCKS))
    np.add.at(table, (rows * STRATA // rows.size, np.arange(rows.size) * BLOCKS // rows.size), 1)
    expected = rows.size / STRATA / BLOCKS
    statistic = float(((table - expected) ** 2 / expected).sum())
    freedom = (STRATA - 1) * (BLOCKS - 1)
    return bool(chdtri(freedom, 1 - FALSE_ALARM) < statistic < chdtri(freedom, FALSE_ALARM))


@pytest.mark.parametrize("unit", [None, "id"])
def test_every_row_may_come_into_every_block(unit: str | None, tmp_path: Path) -> None:
    """False alarm at most 1e-6 in each of four draws; the entropy is the system's."""
    size = 50 * STRATA * BLOCKS
    data = {"id": np.arange(size), "x": np.zeros(size)}
    orders = []
    for draw in range(2):
        folder = tmp_path / str(draw)
        folder.mkdir()
        _, store = written(folder, data, blocks=BLOCKS, unit=unit, entropy=SystemEntropy())
        orders.append(store.table(hidden=True)["__row"].to_numpy())
        assert is_uniform(orders[-1])
    assert (orders[0] != orders[1]).mean() > 0.99


def test_the_chi_square_sees_one_row_in_ten_that_stays() -> None:
    """The power of the test above: orders that are 10 % off, and one that is too even."""
    rows = np.random.Generator(np.random.Philox(1)).permutation(20_000)
    assert is_uniform(rows)
    stays = rows % 10 == 0
    places = np.arange(rows.size)
    partly = rows.copy()
    partly[places % 10 == 0] = np.sort(rows[stays])
    partly[places % 10 != 0] = rows[~stays]
    assert not is_uniform(partly)
    assert not is_uniform(np.arange(20_000))
    assert not is_uniform(np.arange(20_000).reshape(20, -1).T.ravel())


def test_the_same_entropy_gives_the_same_order(tmp_path: Path) -> None:
    orders = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        _, store = written(tmp_path / name, mixed(), blocks=4, entropy=SeededEntropy(seed))
        orders.append(store.table(hidden=True)["__row"].to_pylist())
    assert orders[0] == orders[1] != orders[2]


# Files


def groups(store: BlockStore) -> list[Any]:
    meta = pq.ParquetFile(store.place(store.shards[0])).metadata
    return [meta.row_group(i) for i in range(meta.num_row_groups)]


def test_row_groups_hold_whole_blocks_of_any_size(tmp_path: Path) -> None:
    for name in ("units", "large"):
        (tmp_path / name).mkdir()
    data = {"id": np.arange(450_000) // 3, "x": np.arange(450_000)}
    found = groups(written(tmp_path / "units", data, blocks=100, unit="id")[1])
    spans = [each.column(0).statistics for each in found]
    assert len(spans) == 3
    assert all(a.max < b.min for a, b in itertools.pairwise(spans))
    _, store = written(tmp_path / "large", {"x": np.arange(900_000)}, blocks=3)
    assert [each.num_rows for each in groups(store)] == [300_000] * 3


def test_a_wide_table_has_smaller_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "_GROUP_BYTES", 2**20)
    wide = {f"x{i}": np.arange(10_000) for i in range(40)}
    _, store = written(tmp_path, wide, blocks=100)
    sizes = [each.num_rows for each in groups(store)]
    assert max(sizes) <= 2**20 / 8 / 43
    assert [size % 100 for size in sizes] == [0] * len(sizes)


def test_files_are_private_written_once_and_nothing_else_is_left(tmp_path: Path) -> None:
    manifest, _ = written(tmp_path, mixed(), blocks=3, open_fraction=0.2)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["blocks.parquet", "open.parquet"]
    assert sorted(file.name for file in manifest.files) == ["blocks.parquet", "open.parquet"]
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = (tmp_path / "blocks.parquet").read_bytes()
    with pytest.raises(InvalidInput, match="written once"):
        written(tmp_path, mixed(), blocks=3)
    assert (tmp_path / "blocks.parquet").read_bytes() == before


class Stop(Exception):
    pass


@pytest.mark.parametrize("stage", ["reading", "counting units", "shuffling", "writing"])
def test_a_failed_creation_leaves_nothing_behind(stage: str, tmp_path: Path) -> None:
    def stop(name: str, fraction: float) -> None:
        if name == stage:
            raise Stop

    with open_input(mixed(1_000), unit="id", scratch=tmp_path) as rows, pytest.raises(Stop):
        write_store(
            tmp_path, rows, blocks=3, open_fraction=0.5, entropy=SeededEntropy(1), progress=stop
        )
    assert list(tmp_path.iterdir()) == []


def test_an_error_while_a_file_is_closed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: Path) -> None:
        raise OSError("no space")

    monkeypatch.setattr(sealing, "finished", fail)
    with pytest.raises(OSError, match="no space"):
        written(tmp_path, mixed(), blocks=3, open_fraction=0.5)
    assert list(tmp_path.iterdir()) == []


def test_data_that_change_between_two_readings_are_refused(tmp_path: Path) -> None:
    file = to_csv(mixed(), tmp_path / "data.csv")
    out = tmp_path / "out"
    out.mkdir()
    with open_input(file) as rows:
        rows.count()
        to_csv(mixed(50), file)
        with pytest.raises(Infeasible, match="do not change"):
            write_store(out, rows, blocks=3, entropy=SeededEntropy(1))
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("column", ["x", "id", "name"])
def test_data_of_the_same_size_are_not_taken_for_the_same(tmp_path: Path, column: str) -> None:
    """The fingerprint is that of what is sealed: of the ids of rows and units too."""
    file, out = tmp_path / "data.parquet", tmp_path / "out"
    frame = pd.DataFrame({"x": np.arange(60.0), "id": np.arange(60) // 2, "name": np.arange(60)})
    out.mkdir()
    for changed in (frame, frame.assign(**{column: frame[column] + 1})):
        frame.to_parquet(file)
        with open_input(file, unit="id", ids="name") as rows:
            rows.count()
            changed.to_parquet(file)
            if changed is frame:
                write_store(out, rows, blocks=3, entropy=SeededEntropy(1))
                continue
            with pytest.raises(Infeasible, match=r"do not change.*60 rows have other values"):
                write_store(tmp_path, rows, blocks=3, entropy=SeededEntropy(1))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data.parquet", "out"]


def test_progress_is_told_from_start_to_end(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    file, out = to_csv(mixed(), tmp_path / "data.csv"), tmp_path / "out"
    out.mkdir()

    def tell(stage: str, share: float) -> None:
        told.append((stage, share))

    with open_input(file, unit="id", progress=tell) as rows:
        write_store(out, rows, blocks=3, entropy=SeededEntropy(1), progress=tell)
    stages = list(dict.fromkeys(stage for stage, _ in told))
    assert stages == ["finding types", "reading", "counting units", "shuffling", "writing"]
    for stage in stages:
        steps = [fraction for name, fraction in told if name == stage]
        assert steps[0] == 0.0 or stage not in {"finding types", "reading"}
        assert steps[-1] == 1.0
        assert steps == sorted(steps)


# Any small table

COLUMNS = {
    "number": st.none() | st.integers(-(2**53), 2**53),
    "float": st.none() | st.floats(allow_nan=False),
    "text": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    "boolean": st.none() | st.booleans(),
    "day": st.none() | st.dates(),
    "at": st.none() | st.datetimes(),
}
TYPES = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.date32(), pa.timestamp("us")]


@st.composite
def small_tables(draw: st.DrawFn) -> tuple[pa.Table, int, float]:
    rows = draw(st.integers(1, 12))
    columns = {
        name: pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), kind)
        for (name, values), kind in zip(COLUMNS.items(), TYPES, strict=True)
    }
    ids = draw(st.lists(st.sampled_from("abcd"), min_size=rows, max_size=rows))
    blocks = draw(st.integers(1, len(set(ids))))
    share = draw(st.sampled_from([0.0, 0.2]))
    return pa.table({**columns, "who": ids}), blocks, share


@settings(max_examples=20)
@given(case=small_tables())
def test_any_small_table_comes_back(
    case: tuple[pa.Table, int, float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    table, blocks, share = case
    manifest, store = written(
        tmp_path_factory.mktemp("t"), table, blocks=blocks, open_fraction=share, unit="who"
    )
    parts = [store.table(hidden=True)]
    if manifest.open_units:
        parts.append(store.open_table(hidden=True))
    found = pa.concat_tables(parts).to_pylist()
    originals = table.to_pylist()
    for row in found:
        original = originals[row["__row"]]
        assert {key: row[key] for key in COLUMNS} == {key: original[key] for key in COLUMNS}
    assert len({row["__row"] for row in found}) == len(found)
    assert len(found) == table.num_rows - manifest.leftover_rows
    sealed = found[: manifest.block_rows]
    members = {(row["__block"], originals[row["__row"]]["who"]) for row in sealed}
    assert Counter(block for block, _ in members) == dict.fromkeys(
        range(blocks), manifest.block_units
    )


# Data larger than the memory limit, too little memory, and the widest table.


SIZE = 500_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = np.array([f"word number {i}" for i in range(50)])
    frame = pd.DataFrame({f"x{i}": np.arange(SIZE) * 0.5 + i for i in range(8)})
    frame = frame.assign(s=words[np.arange(SIZE) % 50], id=np.arange(SIZE) // 4)
    plain = {"compression": "none", "use_dictionary": False, "row_group_size": 20_000}
    return to_parquet(frame, tmp_path_factory.mktemp("large") / "data.parquet", **plain)


@pytest.mark.parametrize("unit", [None, "id"])
def test_data_larger_than_the_memory_limit(unit: str | None, large: Path, tmp_path: Path) -> None:
    assert large.stat().st_size > 40_000_000
    _, store = written(tmp_path, large, blocks=50, unit=unit, memory_limit="40MB", threads=1)
    stored = store.table(columns=["x0", "s"], hidden=True)
    assert np.array_equal(np.sort(stored["__row"].to_numpy()), np.arange(SIZE))
    assert np.array_equal(stored["x0"].to_numpy(), stored["__row"].to_numpy() * 0.5)


@pytest.mark.parametrize("limit", ["1MB", "10MB", "20MB"])
def test_too_little_memory_says_what_to_do(limit: str, tmp_path: Path) -> None:
    """Whether it runs out while it reads, sorts or hands out the rows."""
    data = {f"x{i}": np.arange(600_000) for i in range(4)}
    with pytest.raises(Infeasible, match=f"more memory.*{limit}.*Raise memory_limit"):
        written(tmp_path, data, blocks=3, unit="x0", memory_limit=limit, threads=2)
    assert list(tmp_path.iterdir()) == []


def test_two_thousand_columns_are_fine(tmp_path: Path) -> None:
    wide = np.arange(12.0).reshape(6, 2)[:, [0, 1] * 1_000]
    names = [f"x{i}" for i in range(2_000)]
    _, store = written(tmp_path, wide, blocks=3, columns=names)
    assert store.table(2, 3, ["x1999"]).num_rows == 2
