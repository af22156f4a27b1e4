"""What killed creations left, and folders that somebody has made look like that."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from holdfast.cli.app import run
from holdfast.holdout.holdout import Holdout
from tests.holdout import plans

NAME = "0123456789abcdef"
LOCAL = {"engine": None, "location": None}
STRANGER = 54321


def create(path: Path) -> None:
    data = {"x": np.arange(400.0) + 0.125}
    Holdout.create(path, data, plans.estimates(), new_budget="the same test").close()


def planted(folder: Path, note: object, name: str = NAME) -> Path:
    left = folder / f".a.creating-{name}"
    left.mkdir(mode=0o700)
    (left / "creating.json").write_text(json.dumps(note), "utf-8")
    (left / "rows").write_text("rows", "utf-8")
    return left


def owned_by(uid: int, *paths: Path) -> None:
    try:
        for path in paths:
            os.chown(path, uid, uid, follow_symlinks=False)
    except PermissionError:
        pytest.skip("only root can give files to another account")


def test_a_planted_note_is_not_obeyed(tmp_path: Path) -> None:
    """Nothing is connected to, and nothing deleted, whatever the folder's name ends with."""
    (tmp_path / "victim" / "victimdir").mkdir(parents=True)
    (tmp_path / "victim" / NAME).mkdir()
    for kept in ("victimdir", NAME):
        (tmp_path / "victim" / kept / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.0)
        engine = f"dask://127.0.0.1:{listener.getsockname()[1]}"
        note = {"engine": engine, "location": f"file://{tmp_path / 'victim'}"}
        for name in ("victimdir", NAME):
            left = planted(tmp_path, note, name)
            left.chmod(0o777)
            (left / "creating.json").chmod(0o666)
        with pytest.warns(UserWarning, match=f"{NAME} was left alone: others than its owner"):
            create(tmp_path / "a")
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert len(list((tmp_path / "victim").rglob("file"))) == 2


def test_a_note_of_ones_own_is_not_obeyed_either(tmp_path: Path) -> None:
    (tmp_path / "there" / NAME).mkdir(parents=True)
    left = planted(
        tmp_path, {"engine": "dask://127.0.0.1:9", "location": f"file://{tmp_path}/there"}
    )
    with pytest.warns(UserWarning, match=r"another engine and location, 'dask://127.0.0.1:9' and"):
        create(tmp_path / "a")
    assert (tmp_path / "there" / NAME).exists()
    assert (left / "rows").exists()


def to_a_stranger(left: Path) -> None:
    owned_by(STRANGER, left, left / "creating.json")


def note_to_a_stranger(left: Path) -> None:
    owned_by(STRANGER, left / "creating.json")


def group_writes(left: Path) -> None:
    left.chmod(0o770)


def anybody_writes_the_note(left: Path) -> None:
    (left / "creating.json").chmod(0o602)


def linked(left: Path) -> None:
    left.rename(left.with_name("elsewhere"))
    left.symlink_to("elsewhere")


def note_linked(left: Path) -> None:
    (left / "creating.json").rename(left / "other.json")
    (left / "creating.json").symlink_to("other.json")


def note_a_folder(left: Path) -> None:
    (left / "creating.json").unlink()
    (left / "creating.json").mkdir()


def note_a_pipe(left: Path) -> None:
    (left / "creating.json").unlink()
    os.mkfifo(left / "creating.json", 0o600)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (to_a_stranger, "it belongs to another account"),
        (note_to_a_stranger, "its creating.json belongs to another account"),
        (group_writes, "others than its owner can write to it"),
        (anybody_writes_the_note, "others than its owner can write to its creating.json"),
        (linked, "it cannot be opened as a folder"),
        (note_linked, "its creating.json cannot be opened"),
        (note_a_folder, "its creating.json cannot be opened"),
        (note_a_pipe, "its creating.json is no file"),
    ],
)
def test_what_is_not_ones_own_is_left_alone(
    tmp_path: Path, change: Callable[[Path], None], reason: str
) -> None:
    left = planted(tmp_path, LOCAL)
    change(left)
    with pytest.warns(UserWarning, match=f"left alone: {reason}"):
        create(tmp_path / "a")
    assert (left / "rows").read_text("utf-8") == "rows"


def test_a_name_that_no_creation_gives_is_not_looked_at(tmp_path: Path) -> None:
    names = ["victimdir", "0123", NAME.upper(), f"{NAME}-{NAME}", f"x-{NAME}"]
    left = [planted(tmp_path, LOCAL, name) for name in names]
    create(tmp_path / "a")
    assert all((each / "rows").exists() for each in left)


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", "3", '{"engine": null}', "[" * 60_000, "\0" * 10, "\ud800", '{"a": 1}'],
    ids=lambda text: text[:12].encode("unicode_escape").decode(),
)
def test_a_note_that_is_not_whole_is_named_and_left_alone(tmp_path: Path, text: str) -> None:
    left = planted(tmp_path, LOCAL)
    (left / "creating.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.warns(UserWarning, match=r"creating-0123456789abcdef was left alone.*not whole"):
        create(tmp_path / "a")
    assert (left / "rows").exists()


def test_what_a_killed_creation_left_is_removed(tmp_path: Path) -> None:
    left = planted(tmp_path, LOCAL)
    (left / "link").symlink_to(tmp_path / "target")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").touch()
    create(tmp_path / "a")
    assert not left.exists()
    assert (tmp_path / "target" / "file").exists()


@pytest.mark.filterwarnings("default")
def test_the_command_line_says_it_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "".join(f"{i}\n" for i in range(4_000)), "utf-8")
    left = planted(tmp_path, LOCAL)
    (left / "creating.json").write_text("{", "utf-8")
    words = ["create", str(tmp_path / "a"), "--data", str(tmp_path / "a.csv"), "--queries", "5"]
    assert run([*words, "--new-budget", "the same test", "--json"]) == 0
    wanted = f"holdfast: {left} was left alone: its creating.json is not whole."
    said = [line for line in capsys.readouterr().err.splitlines() if "left alone" in line]
    assert [line[: len(wanted)] for line in said] == [wanted]
