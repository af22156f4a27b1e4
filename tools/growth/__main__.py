"""`python -m tools.growth --sizes 1e6 1e7 1e8`: create and ask on a cluster, and try the model.

Every size has a process and a cluster of its own, so that its memory is its own. With --output the
page is written; the exit status is 4 if a gate fails.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.cluster import dask_cluster
from tools.growth.asking import asked
from tools.growth.creating import STUDY, created, peaks
from tools.growth.overhead import overhead
from tools.growth.page import failures, page

_FAILED = 4
_WORKERS = 2
_LONGEST = 2 * 3600.0  # seconds for one size


def one(rows: int, folder: Path) -> dict[str, Any]:
    """Everything about one size; for none, what a shard costs beside its rows."""
    os.environ["HOLDFAST_STATE"] = str(folder / "state")
    with dask_cluster(_WORKERS) as cluster:
        if not rows:
            return overhead(folder, cluster.url, _WORKERS)
        found = created(rows, cluster, folder)
        found |= asked(folder / STUDY, cluster.url)
        return {**found, "peak_bytes": peaks(cluster)}


def in_a_process(rows: int, parent: Path | None) -> dict[str, Any]:
    """The same in a process of its own, which leaves nothing behind."""
    print(f"{rows:,} rows …", file=sys.stderr, flush=True)
    folder = Path(tempfile.mkdtemp(prefix="growth-", dir=parent))
    command = [sys.executable, "-m", "tools.growth", "--one", str(rows), "--folder", str(folder)]
    try:
        run = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=_LONGEST)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def main() -> None:
    """Measure all sizes, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e6, 1e7, 1e8])
    parser.add_argument("--folder", type=Path, default=None, help="on a disk with room")
    parser.add_argument("--output", type=Path, default=None, help="the page to write")
    parser.add_argument("--one", type=int, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(one(given.one, given.folder)))
        return
    beside = in_a_process(0, given.folder)
    sizes = [in_a_process(int(rows), given.folder) for rows in sorted(given.sizes)]
    text = page(sizes, beside, _WORKERS)
    if given.output is None:
        print(text)
    else:
        given.output.write_text(text, "utf-8")
    wrong = failures(sizes)
    for each in wrong:
        print(each, file=sys.stderr)
    sys.exit(_FAILED if wrong else 0)


if __name__ == "__main__":
    main()
