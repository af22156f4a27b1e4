"""What a custodian does with a holdout: check it, report on it, hand out tokens, serve it."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from holdfast.holdout.holdout import Holdout
from tests.cli.conftest import Cli
from tests.holdout.plans import crowd
from tests.holdout.tables import sealed

GRID = ("--grid", "0:0.875:0.125")


def test_a_folder_that_is_none(tmp_path: Path, cli: Cli) -> None:
    for words in (["ask", tmp_path, "avg(x)"], ["status", tmp_path], ["check", tmp_path]):
        cli(*words, "--json").refuses("folder of a holdout")


def test_check_is_status_6_when_something_is_wrong(folder: Path, cli: Cli) -> None:
    receipt = cli("ask", folder, "avg(x)", *GRID, "--json").json["receipt"]
    other = receipt[:-1] + ("0" if receipt[-1] != "0" else "1")
    assert cli("check", folder, "--receipt", receipt).status == 0
    cli("check", folder, "--receipt", "nonsense", "--json").refuses("receipt")
    said = cli("check", folder, "--receipt", other, "--json")
    assert (said.status, said.json["passed"]) == (6, False)
    (folder / "blocks.parquet").write_bytes(b"other")
    said = cli("check", folder)
    assert said.status == 6
    assert "FAILED" in said.out


def test_an_older_copy_is_status_6(folder: Path, tmp_path: Path, cli: Cli) -> None:
    older = shutil.copytree(folder, tmp_path / "older")
    assert cli("ask", folder, "avg(x)", *GRID).status == 0
    for words in (["ask", older, "avg(c)", *GRID], ["status", older]):
        cli(*words, "--json").refuses("older copy", 6, "damaged")
    assert cli("check", older).status == 6


def test_a_report_is_written_and_replaces_nothing(
    folder: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "report.html"
    assert str(output) in cli("report", folder, "-o", output).out
    first = output.read_bytes()
    assert first.startswith(b"<!DOCTYPE html>")
    output.write_text("something else")
    cli("report", folder, "-o", output).refuses("--force")
    monkeypatch.chdir(tmp_path)
    assert cli("report", folder).out.startswith("a.html: ")
    cli("report", folder).refuses("--force")
    assert output.read_text() == "something else"
    said = cli("report", folder, "-o", output, "--force", "--json").json
    assert output.read_bytes() == first
    with Holdout.open(folder) as holdout:
        receipt = str(holdout.receipt)
    facts = {"output": str(output), "questions": 0, "bytes": len(first), "receipt": receipt}
    assert said == facts


# Tokens.


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.holdfast"
    sealed(path, crowd()).close()
    return path


def test_tokens_are_made_listed_and_revoked(study: Path, cli: Cli) -> None:
    words = ("--role", "analyst", "--name", "Ann", "--expires", "30d", "--quota", 0.2)
    made = cli("token", "create", study, *words, "--json").json
    assert made["token"].startswith(f"hf_{made['id']}_")
    assert (made["name"], made["role"], made["quota"]) == ("Ann", "analyst", 0.2)
    (listed,) = cli("token", "list", study, "--json").json
    assert "token" not in listed
    assert (listed["id"], listed["used"]) == (made["id"], {"main": 0.0})
    assert cli("token", "quota", study, made["id"], 0.5, "--json").json["quota"] == 0.5
    assert cli("token", "revoke", study, made["token"], "--json").json["revoked"]
    assert "revoked" in cli("token", "list", study).out


def test_how_much_a_token_may_be_told(told: Path, cli: Cli) -> None:
    made = cli("token", "create", told, "--role", "analyst", "--json").json
    assert made["nats"] == 5
    few = cli("token", "create", told, "--role", "analyst", "--nats", 2.5, "--json").json
    assert few["nats"] == 2.5
    said = cli("token", "create", told, "--role", "analyst", "--nats", 2.5)
    assert "asks until it was told 2.5 nats, and its last answer may go beyond" in said.err
    words = ("token", "quota", told, made["id"])
    assert cli(*words, "--nats", 7, "--json").json["nats"] == 7
    whose = f"{made['id']} (id {made['id']}): it"
    assert cli(*words, "--nats", "inf").out == f"{whose} may be told any number of nats.\n"
    listed = cli("token", "list", told, "--json").json
    assert [each["told"] for each in listed] == [0, 0, 0]
    for wrong in ("0", "-1", "nan", "many"):
        cli(*words, "--nats", wrong).refuses("nats")


def test_a_share_of_the_budget_only_where_there_is_one(told: Path, study: Path, cli: Cli) -> None:
    create = ("token", "create", told, "--role", "analyst")
    way_out = "no budget of looks: limit what is told with nats (--nats 20)"
    cli(*create, "--quota", 0.5).refuses(way_out)
    made = cli(*create, "--json").json
    cli("token", "quota", told, made["id"], 0.5, "--nats", 20).refuses(way_out)
    assert [each["nats"] for each in cli("token", "list", told, "--json").json] == [5]
    said = cli("token", "create", study, "--role", "analyst", "--name", "Ann", "--quota", 0.5)
    assert said.err.endswith(
        ", without an end, for 50% of the budget. Keep it: it is not shown again.\n"
    )
    (ann,) = cli("token", "list", study, "--json").json
    words = ("token", "quota", study, ann["id"])
    cli(*words, 0.4, "--nats", 0).refuses("nats")
    assert cli("token", "list", study, "--json").json[0]["quota"] == 0.5
    assert cli(*words, 0.4).out == f"Ann (id {ann['id']}): it has 40.0% of the budget.\n"


def test_a_token_into_a_file_that_nobody_else_can_read(
    study: Path, tmp_path: Path, cli: Cli
) -> None:
    def create(name: str, *more: str, role: str = "analyst") -> Any:
        return cli("token", "create", study, "--role", role, "--output", tmp_path / name, *more)

    file = tmp_path / "ann.token"
    create("ann.token", role="king").refuses("viewer, analyst, custodian")
    assert not file.exists()
    before = os.umask(0)
    try:
        shown = create("ann.token")
    finally:
        os.umask(before)
    assert (shown.status, shown.out) == (0, "")
    assert str(file) in shown.err
    token = file.read_text("ascii")
    assert re.fullmatch(r"hf_[a-z0-9]+_\S+\n", token)
    assert token.strip() not in shown.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    create("ann.token").refuses("does not exist yet")  # and makes no second one
    assert file.read_text("ascii") == token
    assert len(cli("token", "list", study, "--json").json) == 1
    (tmp_path / "link").symlink_to(tmp_path / "target")
    create("link").refuses("does not exist yet")
    assert not (tmp_path / "target").exists()
    made = create("b.token", "--json").json
    assert made["output"] == str(tmp_path / "b.token")
    assert "token" not in made


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("token", "create", "--role", "king"), "viewer, analyst, custodian"),
        (("token", "create", "--role", "viewer", "--expires", "soon"), "30d"),
        (("token", "create", "--role", "viewer", "--expires", "2001-01-01"), "future"),
        (("token", "create", "--role", "viewer", "--quota", "7"), "quota"),
        (("serve", "--host", "0.0.0.0", "--port", "0"), "holdfast token create"),
        (("serve", "--tls-cert", "c.pem"), "tls_key"),
        (("serve", "--body-limit", "many"), "many"),
        (("serve", "nothing"), "nothing"),
    ],
)
def test_bad_words_are_refused(
    study: Path, cli: Cli, words: tuple[str, ...], expected: str
) -> None:
    cli(*words, study).refuses(expected)


def test_one_holdout_is_served_once(study: Path, cli: Cli) -> None:
    cli("serve", study, study).refuses("study")
