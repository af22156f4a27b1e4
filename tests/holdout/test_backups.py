"""Backups: whole, of one moment, nobody else's to read at any time, or not there."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.cli.app import run
from holdfast.engines.source import open_store, store_of
from holdfast.errors import Damaged, InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.custody import back_up
from holdfast.holdout.holdout import Holdout
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.store.blocks import write_contents
from tests.holdout import plans
from tools.shards import sharded

GRID = hf.grid(0, 500, step=1)


@pytest.fixture(scope="module")
def holdout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holdout]:
    data = {"id": np.arange(500), "x": np.arange(500.0) + 0.25}
    made = Holdout.create(
        tmp_path_factory.mktemp("backups") / "a",
        data,
        plans.estimates(),
        ids="id",
        open_fraction=0.1,
        new_budget="the same test",
    )
    with made as holdout:
        holdout.ask("avg(x)", grid=GRID)
        yield holdout


def modes(folder: Path) -> dict[str, int]:
    found = [folder, *folder.rglob("*")]
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in found}


def test_a_copy_is_whole_and_of_this_moment(holdout: Holdout, tmp_path: Path) -> None:
    """Its owner has it open, and the last answer is in the log beside the ledger only."""
    made = holdout.backup(tmp_path / "b")
    assert made.receipt == str(holdout.receipt)
    assert made.left_out == ()
    names = sorted(each.name for each in (tmp_path / "b").iterdir())
    assert names == [
        "blocks.parquet",
        "contents.json",
        "ids.parquet",
        "ledger.sqlite",
        "open.parquet",
    ]
    assert sorted(made.files) == names
    assert made.size == sum(each.stat().st_size for each in (tmp_path / "b").iterdir())
    assert check_holdout(tmp_path / "b", made.receipt).passed
    with Holdout.open(tmp_path / "b") as copy:
        assert copy.transcript() == holdout.transcript()
        assert copy.ask("avg(x)", grid=GRID).cached


def test_an_older_copy_is_noticed(holdout: Holdout, tmp_path: Path) -> None:
    made = holdout.backup(tmp_path / "b")
    later = holdout.ask("max(x)", grid=GRID)
    assert not check_holdout(tmp_path / "b", str(later.receipt)).passed
    assert holdout.backup(tmp_path / "c").receipt != made.receipt
    assert check_holdout(tmp_path / "c", str(later.receipt)).passed


def test_nobody_else_can_read_it_at_any_time(
    holdout: Holdout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a umask that hides nothing, seen after every piece that reaches the disk."""
    seen: list[dict[str, int]] = []
    fsync = os.fsync

    def look(descriptor: int) -> None:
        fsync(descriptor)
        seen.extend(modes(each) for each in tmp_path.glob("*b*"))

    monkeypatch.setattr(os, "fsync", look)
    before = os.umask(0)
    try:
        holdout.backup(tmp_path / "b")
    finally:
        os.umask(before)
    assert set(modes(tmp_path / "b").values()) == {0o700, 0o600}
    assert max(map(len, seen)) >= 5
    assert not any(mode & 0o077 for each in seen for mode in each.values())


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_nothing_is_replaced(holdout: Holdout, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "b"
    if kind == "file":
        place.touch()
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to("nowhere")
    with pytest.raises(InvalidInput, match="a path where nothing is yet"):
        holdout.backup(place)
    assert [each.name for each in tmp_path.iterdir()] == ["b"]


def test_a_damaged_file_is_not_copied(holdout: Holdout, tmp_path: Path) -> None:
    blocks = holdout.path / "blocks.parquet"
    sound = blocks.read_bytes()
    content = bytearray(sound)
    content[len(content) // 2] ^= 1
    blocks.write_bytes(content)
    with pytest.raises(Damaged, match="Nothing was copied"):
        holdout.backup(tmp_path / "b")
    blocks.write_bytes(sound)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()], ids=repr)
def test_what_fails_leaves_nothing(
    holdout: Holdout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(_: object, path: Path) -> None:
        path.touch()
        raise error

    monkeypatch.setattr(SqliteLedger, "copy", fail)
    with pytest.raises(type(error)):
        holdout.backup(tmp_path / "b")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_backup_left_is_removed_by_the_next(holdout: Holdout, tmp_path: Path) -> None:
    left = tmp_path / ".b.creating-0123456789abcdef"
    left.mkdir(mode=0o700)
    (left / "creating.json").write_text(json.dumps({"engine": None, "location": None}))
    (left / "blocks.parquet").touch()
    holdout.backup(tmp_path / "b")
    assert [each.name for each in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_shards_are_copied_from_the_folder_and_named_elsewhere(
    holdout: Holdout, tmp_path: Path, elsewhere: bool
) -> None:
    store = sharded(open_store(holdout.path, holdout.spec.manifest), tmp_path / "s", (7, 12))
    manifest = store.manifest
    if elsewhere:
        manifest = replace(manifest, location=f"file://{store.folder}")
        store = store_of(holdout.path, manifest)
    else:
        write_contents(store.folder, manifest)
        (store.folder / "ids.parquet").write_bytes((holdout.path / "ids.parquet").read_bytes())
    charter = replace(holdout.spec, manifest=manifest.public)
    made = back_up(store, charter, holdout.journal.ledger, tmp_path / "b")
    shards = {name for name in made.files if name.startswith("shards/")}
    assert len(shards) == (0 if elsewhere else 3)
    assert all((tmp_path / "b" / name).is_file() for name in made.files)
    assert set(modes(tmp_path / "b").values()) == {0o700, 0o600}
    if elsewhere:
        assert "3 files of sealed rows" in made.left_out[0]
        assert f"file://{tmp_path}/s" in str(made)


def test_by_command(holdout: Holdout, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["backup", str(holdout.path), str(tmp_path / "b"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["receipt"] == str(holdout.receipt)
    assert told["path"] == str(tmp_path / "b")
    assert set(told) == {"path", "receipt", "files", "size", "left_out"}
    assert run(["backup", str(holdout.path), str(tmp_path / "c")]) == 0
    assert f"receipt   {told['receipt']}" in capsys.readouterr().out
    assert run(["backup", str(holdout.path), str(tmp_path / "b")]) == 2
    assert run(["backup", str(tmp_path), str(tmp_path / "d")]) == 2
    assert not (tmp_path / "d").exists()
