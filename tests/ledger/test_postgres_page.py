"""The page about Postgres: what it prints is what happens, on a Postgres of the tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_docs_examples import compare, run_console, run_python
from tools.fences import fences

pytestmark = pytest.mark.cluster

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "postgres.md"


def test_examples_do_what_the_page_says(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, _, place = database.removeprefix("postgresql://").partition("@")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGUSER", user)
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = [
        replace(fence, text=fence.text.replace("db.example/holdouts", place))
        for fence in fences(PAGE.read_text("utf-8"))
    ]
    ran = 0
    for number, fence in enumerate(blocks):
        if "cluster" not in fence.words:
            continue
        ran += 1
        if fence.language == "console":
            run_console(fence, PAGE.name)
            continue
        printed = run_python(fence, names, PAGE)
        following = blocks[number + 1]
        if following.language == "text" and not following.gap:
            compare(following.text, printed, f"{PAGE.name}:{fence.first_line}")
    assert ran == 6
