"""What a holdout's files hold lies beside them: on which account it is trusted, and how far."""

from __future__ import annotations

import json
import re
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

from holdfast.errors import Damaged
from holdfast.grids import grid
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.randomness import SeededEntropy
from holdfast.store.inputs import open_input
from holdfast.store.user_state import known
from tests.engines.store.tables import written
from tests.holdout.plans import mixed
from tests.holdout.tables import refusing, sealed, table

GRID = grid(0, 7, step=1)


def data_finding(path: Path) -> tuple[bool, str]:
    found = check_holdout(path).findings[-1]
    assert found.name == "data"
    return found.passed, found.detail


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sealed(tmp_path / "h", mixed()).close()
    return tmp_path / "h"


@pytest.fixture
def elsewhere(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another account than the one that made it."""
    del folder
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "another state"))


def other_blocks(folder: Path, scratch: Path) -> None:
    """Put other rows in the place of the sealed ones, with contents that fit them."""
    scratch.mkdir()
    blocks = mixed().blocks
    contents, _ = written(scratch, table(blocks), blocks=blocks, entropy=SeededEntropy(5))
    shutil.copy(scratch / "blocks.parquet", folder / "blocks.parquet")
    (folder / "contents.json").write_text(contents.text(), "utf-8")


def test_the_file_is_as_private_as_the_rows(folder: Path) -> None:
    for name in ("contents.json", "blocks.parquet"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    kept = json.loads((folder / "contents.json").read_text("utf-8"))
    assert "fingerprint" not in kept
    assert kept["files"][0]["bytes"] == (folder / "blocks.parquet").stat().st_size


def test_who_made_a_holdout_says_so(folder: Path) -> None:
    assert data_finding(folder) == (True, "the sealed files are as this account made them")


@pytest.mark.usefixtures("elsewhere")
def test_who_did_not_make_it_keeps_what_was_first_seen(folder: Path, tmp_path: Path) -> None:
    passed, told = data_finding(folder)
    assert (passed, told.partition("; ")[2]) == (True, "this account has not seen them before")
    with Holdout.open(folder) as holdout:
        assert holdout.ask("avg(x)", grid=GRID).certified
    passed, told = data_finding(folder)
    assert passed
    assert re.search(r"first saw them, on \d{4}-\d\d-\d\d; it did not make them", told)
    other_blocks(folder, tmp_path / "scratch")
    with pytest.raises(Damaged, match=r"contents\.json"):
        Holdout.open(folder)
    assert not data_finding(folder)[0]


def test_other_rows_with_contents_that_fit_are_noticed_by_their_maker(
    folder: Path, tmp_path: Path
) -> None:
    other_blocks(folder, tmp_path / "scratch")
    with pytest.raises(Damaged, match=r"contents\.json"):
        Holdout.open(folder)
    assert not data_finding(folder)[0]


@pytest.mark.usefixtures("elsewhere")
def test_and_elsewhere_if_they_do_not_fit_the_ledger(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    contents, _ = written(tmp_path / "scratch", table(mixed().blocks + 1), blocks=mixed().blocks)
    (folder / "contents.json").write_text(contents.text(), "utf-8")
    with pytest.raises(Damaged, match="the ledger was made for"):
        Holdout.open(folder)


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"rows": 4711}', b"\xff", b"[" * 10**5])
def test_a_file_that_is_not_what_was_written(folder: Path, content: bytes | None) -> None:
    path = folder / "contents.json"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(Damaged) as caught:
        Holdout.open(folder)
    assert "4711" not in str(caught.value)
    assert not data_finding(folder)[0]


def test_no_message_tells_sizes_or_hashes(folder: Path) -> None:
    """Of a file that is shorter, longer, changed or gone, as of one of another holdout."""
    kept = json.loads((folder / "contents.json").read_text("utf-8"))
    (file,) = kept["files"]
    good = (folder / "blocks.parquet").read_bytes()
    with Holdout.open(folder) as holdout:
        for content in (good[:-1], good + b"0", good[:-1] + b"?", None):
            path = folder / "blocks.parquet"
            path.unlink() if content is None else path.write_bytes(content)
            with refusing(holdout, r"blocks\.parquet", Damaged):
                holdout.ask(lambda frame: frame.x.mean(), grid=GRID)
            with refusing(holdout, r"blocks\.parquet", Damaged) as caught:
                holdout.ask("avg(x)", grid=GRID)
            told = f"{caught.value} {data_finding(folder)}".replace(",", "")
            assert file["sha256"][:8] not in told
            assert str(file["bytes"]) not in told
            path.write_bytes(good)


def test_what_was_not_made_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data are remembered before the folder is there, and forgotten if it never is."""
    frame, rename = table(mixed().blocks), Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if ".creating-" in self.name and target == tmp_path / "h":
            with open_input(frame) as rows:
                assert len(known(rows.fingerprint())) == 1
            raise OSError(39, "Directory not empty")
        return rename(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        with pytest.raises(OSError, match="not empty"):
            Holdout.create(tmp_path / "h", frame, mixed())
    assert list(tmp_path.iterdir()) == []
    Holdout.create(tmp_path / "h", frame, mixed()).close()


def test_rows_a_unit_change_no_behaviour(tmp_path: Path) -> None:
    """What units of one row allow follows from the declaration, and is not looked up."""
    number = np.arange(2 * mixed().blocks)
    ways = {"one": number, "several": np.repeat(number, 2)}
    told = set()
    for name, ids in ways.items():
        with Holdout.create(
            tmp_path / name,
            {"id": ids, "x": ids % 7 + 0.5},
            mixed(),
            unit="id",
            ranges={"x": (0, 9)},
        ) as holdout:
            price, answer = holdout.price("ask", "avg(x)"), holdout.ask("avg(x)")
            said = re.sub(r"give (more than )?[\d.]+", "give …", answer.promise)  # what was drawn
            told.add(json.dumps([price.to_dict(), answer.low, answer.high, said]))
    assert len(told) == 1
