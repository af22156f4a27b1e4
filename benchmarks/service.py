"""A service under load: answers a second, each charged, recorded and durable, for many clients.

Beside it, in turns, the same framework with two bare SQLite commits a request. Server, peer and
clients are processes of their own, with as many workers on either side.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

import holdfast as hf
from benchmarks.clients import asked_by
from benchmarks.comparing import compared
from benchmarks.holdouts import ROOT, scratch
from benchmarks.tables import milliseconds, table
from benchmarks.timing import Results
from holdfast.planning.joint import joint_plan
from holdfast.protocols.searches import Estimates

__all__ = ["comparisons", "measure", "section", "served"]

OURS, BARE = "`holdfast serve`", "bare SQLite, 2 commits, FULL, same framework"
CLIENTS = 64
SHARE = 0.6  # of what the bare commits reach, or else …
ENOUGH = 200  # … answers a second
WORKERS = os.cpu_count() or 1
FIRSTS = itertools.count(1, 10**7)  # every run asks questions of its own


def measure(quick: bool) -> Results:
    turns, seconds = (1, 3.0) if quick else (3, 15.0)
    folder = scratch() / "service"
    folder.mkdir()
    holdout = folder / "h"
    plan = _seal(holdout, queries=20_000 if quick else 50_000)
    runs: dict[str, list[Results]] = {OURS: [], BARE: []}
    with served(holdout, WORKERS) as (ours, token), _bare(folder / "bare.sqlite") as bare:
        for turn in range(-1, turns):
            for name, url, key in ((OURS, ours, token), (BARE, bare, None)):
                wanted = seconds if turn >= 0 else 2.0  # to warm up
                found = asked_by(CLIENTS, wanted, url, first=next(FIRSTS), token=key)
                if turn >= 0:
                    runs[name].append(found)
    return {
        "clients": CLIENTS,
        "workers": WORKERS,
        "blocks": plan.blocks,
        "questions": plan.parts[0].queries,
        "runs": runs,
    }


def comparisons(results: Results) -> list[Results]:
    ours, bare = (_answers(results["runs"][name]) for name in (OURS, BARE))
    what = f"durable answers a second, {results['clients']} clients"
    row = compared(what, ours, BARE, bare, unit="a second", at_least=SHARE)
    row["target"] = f"≥ {SHARE:g}, or {ENOUGH:,} a second"
    row["met"] = bool(row["met"]) or ours["median"] >= ENOUGH
    return [row]


def section(results: Results) -> str:
    rows = [
        [
            name,
            f"{_answers(runs)['median']:,.0f}",
            f"{_answers(runs)['best']:,.0f}",
            milliseconds(statistics.median(run["p50"] for run in runs)),
            milliseconds(statistics.median(run["p99"] for run in runs)),
        ]
        for name, runs in results["runs"].items()
    ]
    return (
        f"## A service under load: {results['clients']} clients, {results['workers']} workers\n\n"
        "Every question is another one, `avg(x + …)` on a grid of 21 points, to a holdout of "
        f"{results['blocks']:,} blocks planned for {results['questions']:,}; answers leave at the "
        "end of slots of 50 ms. None has a filter, so that those that wait together share a "
        "statement of DuckDB's. Bare: two commits of rows of the same size, and nothing else.\n\n"
        + table(["", "answers a second", "best", "p50", "p99"], rows)
    )


def _answers(runs: list[Results]) -> Results:
    rates = [run["answers"] / run["seconds"] for run in runs]
    return {"median": statistics.median(rates), "best": max(rates)}


def _seal(path: Path, queries: int) -> hf.JointPlan:
    import pandas as pd

    plan = joint_plan(Estimates(queries, grid=21, tail_low=0.05, tail_high=0.05))
    values = np.random.default_rng(1).random((plan.blocks, 2))
    hf.Holdout.create(path, pd.DataFrame(values, columns=["x", "y"]), plan).close()
    return plan


@contextmanager
def served(holdout: Path, workers: int, *options: str) -> Iterator[tuple[str, str]]:
    """The address for questions to a holdout that is being served, and an analyst's token."""
    program = [str(Path(sys.executable).with_name("holdfast"))]
    token = [*program, "token", "create", str(holdout), "--role", "analyst", "--json"]
    made = subprocess.run(token, check=True, capture_output=True, text=True)
    command = [*program, "serve", str(holdout), "--port", "0", "--json", "--log-level", "warning"]
    command += ["--workers", str(workers), "--rate", "1e6", "--burst", "1000000", *options]
    with _process(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        told = json.loads(server.stdout.readline())
        url = f"{told['url']}/api/holdouts/{told['holdouts'][0]}/ask"
        _wait_for(url)
        yield url, json.loads(made.stdout)["token"]


@contextmanager
def _bare(file: Path) -> Iterator[str]:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.peer", str(file), str(port), str(WORKERS)]
    with _process(command):
        url = f"http://127.0.0.1:{port}/ask"
        _wait_for(url)
        yield url


@contextmanager
def _process(command: list[str], **more: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, cwd=ROOT, text=True, **more) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def _wait_for(url: str, seconds: float = 60.0) -> None:
    """Until something listens there."""
    place, end = url.split("/")[2].split(":"), time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((place[0], int(place[1])), 1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
