"""Tests for `holdfast token` and the start of `holdfast serve`."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.app import run
from tests.holdout.plans import crowd
from tests.holdout.tables import sealed


@pytest.fixture
def folder(tmp_path: Path) -> str:
    path = tmp_path / "study.holdfast"
    sealed(path, crowd()).close()
    return str(path)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_tokens_are_made_listed_and_revoked(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--role", "analyst", "--name", "Ann", "--expires", "30d", "--quota", "0.2")
    made = told(capsys, "token", "create", folder, *words)
    assert made["token"].startswith(f"hf_{made['id']}_")
    assert (made["name"], made["role"], made["quota"]) == ("Ann", "analyst", 0.2)
    (listed,) = told(capsys, "token", "list", folder)
    assert "token" not in listed
    assert listed["id"] == made["id"]
    assert listed["used"] == {"main": 0.0}
    assert told(capsys, "token", "quota", folder, made["id"], "0.5")["quota"] == 0.5
    assert told(capsys, "token", "revoke", folder, made["token"])["revoked"]
    assert run(["token", "list", folder]) == 0
    assert "revoked" in capsys.readouterr().out


def test_a_token_into_a_file_that_nobody_else_can_read(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ann.token"
    words = ["token", "create", folder, "--role", "analyst", "--output", str(file)]
    before = os.umask(0)
    try:
        assert run(words) == 0
    finally:
        os.umask(before)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert str(file) in shown.err
    token = file.read_text("ascii")
    assert re.fullmatch(r"hf_[a-z0-9]+_\S+\n", token)
    assert token.strip() not in shown.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run(words) == 2  # and makes no second one
    assert "does not exist yet" in capsys.readouterr().err
    assert file.read_text("ascii") == token
    assert len(told(capsys, "token", "list", folder)) == 1
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert run([*words[:-1], str(tmp_path / "link")]) == 2
    assert not (tmp_path / "target").exists()
    made = told(capsys, *words[:-1], str(tmp_path / "b.token"))
    assert made["output"] == str(tmp_path / "b.token")
    assert "token" not in made


def test_a_token_that_is_refused_leaves_no_file(folder: str, tmp_path: Path) -> None:
    file = tmp_path / "ann.token"
    assert run(["token", "create", folder, "--role", "king", "-o", str(file)]) == 2
    assert not file.exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--role", "king"), "viewer, analyst, custodian"),
        (("--role", "viewer", "--expires", "soon"), "30d"),
        (("--role", "viewer", "--expires", "2001-01-01"), "future"),
        (("--role", "viewer", "--quota", "7"), "quota"),
    ],
)
def test_bad_words_are_refused(
    folder: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: str
) -> None:
    assert run(["token", "create", folder, *words]) == 2
    assert expected in capsys.readouterr().err


def test_a_holdout_without_tokens_stays_on_this_machine(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", folder, "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "holdfast token create" in capsys.readouterr().err
    assert run(["serve", str(tmp_path / "nothing")]) == 2
    assert run(["serve", folder, "--tls-cert", str(tmp_path / "c.pem")]) == 2
    assert "tls_key" in capsys.readouterr().err
    assert run(["serve", folder, "--body-limit", "many"]) == 2
    assert run(["serve", folder, folder]) == 2
