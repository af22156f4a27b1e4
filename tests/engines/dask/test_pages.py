"""The pages about Dask: what they print is what happens, on a cluster of the tests."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.test_docs_examples import compare, run_python
from tools.cluster import dask_cluster
from tools.fences import fences

pytestmark = pytest.mark.cluster

PAGES = Path(__file__).parents[3] / "docs" / "how-to"


@pytest.mark.parametrize(
    ("name", "address", "shown"),
    [
        ("dask.md", "dask://127.0.0.1:8786", 3),
        ("create-on-a-cluster.md", "dask://scheduler.example:8786", 2),
    ],
)
def test_examples_do_what_the_page_says(
    name: str, address: str, shown: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    ran = compared = 0
    with dask_cluster(2, nanny=True) as cluster:
        for fence, following in pairwise(fences((PAGES / name).read_text("utf-8"))):
            if "cluster" not in fence.words:
                continue
            text = fence.text.replace(address, cluster.url)
            printed = run_python(replace(fence, text=text), names, PAGES / name)
            if following.language == "text" and not following.gap:
                compare(following.text, printed, f"{name}:{fence.first_line}")
                compared += 1
            ran += 1
    assert (ran, compared) == (3, shown)
