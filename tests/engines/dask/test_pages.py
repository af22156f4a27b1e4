"""The pages about Dask: what they print is what happens, on a cluster of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_docs_examples import compare, run_console, run_python
from tools.cluster import dask_cluster
from tools.fences import fences

pytestmark = pytest.mark.cluster

PAGES = Path(__file__).parents[3] / "docs" / "how-to"


def run_page(name: str, address: str, place: str) -> tuple[int, int]:
    """How many blocks marked `cluster` ran, here and not there, and how many were compared."""
    names: dict[str, object] = {"__name__": "__main__"}
    ran = compared = 0
    blocks = fences((PAGES / name).read_text("utf-8").replace(address, place))
    for fence, following in zip(blocks, [*blocks[1:], None], strict=True):
        if "cluster" not in fence.words:
            continue
        ran += 1
        if fence.language == "console":
            run_console(fence, name)
            continue
        printed = run_python(fence, names, PAGES / name)
        if following and following.language == "text" and not following.gap:
            compare(following.text, printed, following, f"{name}:{fence.first_line}")
            compared += 1
    return ran, compared


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
    with dask_cluster(2, nanny=True) as cluster:
        assert run_page(name, address, cluster.url) == (3, shown)
