"""The page about Dask: what it prints is what happens, on a cluster of the tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_docs_examples import compare, run_python
from tools.cluster import dask_cluster
from tools.fences import fences

pytestmark = pytest.mark.cluster

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "dask.md"


def test_examples_do_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    with dask_cluster(2, nanny=True) as cluster:
        blocks = [
            replace(fence, text=fence.text.replace("dask://127.0.0.1:8786", cluster.url))
            for fence in fences(PAGE.read_text("utf-8"))
        ]
        ran = 0
        for number, fence in enumerate(blocks):
            if "cluster" not in fence.words:
                continue
            ran += 1
            printed = run_python(fence, names, PAGE)
            compare(blocks[number + 1].text, printed, f"{PAGE.name}:{fence.first_line}")
    assert ran == 3
