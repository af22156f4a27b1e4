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


def linked(left: Path) -> None:
    left.rename(left.with_name("elsewhere"))
    left.symlink_to("elsewhere")


def note_replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(left: Path) -> None:
        (left / "creating.json").rename(left / "other.json")
        make(left / "creating.json")

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda left: owned_by(STRANGER, left, left / "creating.json"), "it belongs to another"),
        (
            lambda left: owned_by(STRANGER, left / "creating.json"),
            "its creating.json belongs to another account",
        ),
        (lambda left: left.chmod(0o770), "others than its owner can write to it"),
        (
            lambda left: (left / "creating.json").chmod(0o602),
            "others than its owner can write to its creating.json",
        ),
        (linked, "it cannot be opened as a folder"),
        (
            note_replaced(lambda note: note.symlink_to("other.json")),
            "its creating.json cannot be opened",
        ),
        (note_replaced(lambda note: note.mkdir()), "its creating.json cannot be opened"),
        (note_replaced(lambda note: os.mkfifo(note, 0o600)), "its creating.json is no file"),
    ],
    ids=["stranger", "note", "group", "anybody", "link", "linked note", "folder", "pipe"],
)
def test_what_is_not_ones_own_is_left_alone(
    tmp_path: Path, change: Callable[[Path], object], reason: str
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
