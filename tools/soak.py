"""Run a server for long, under questions of every sort, and watch the memory that it takes.

    make soak                                                        30 minutes
    python -m tools.soak --minutes 8 --output PAGE.md                shorter

The resident memory of the server and of all processes that it has started is noted every ten
seconds. After a warm-up of a sixth of the time it may grow by less than 5 %: the last minute beside
the first. Writes a page, and fails if it grew more, or if an answer was not as it should be.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import itertools
import os
import platform
import statistics
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import numpy as np

import holdfast as hf
from benchmarks.holdouts import scratch
from benchmarks.service import served
from holdfast.client.wire import Content, content_of, contents_of
from holdfast.planning.joint import joint_plan
from holdfast.protocols.searches import Estimates
from tools.crash.told import create_told, predicted, share_below

__all__ = ["MOST_GROWTH", "Watched", "page", "resident", "watched"]

MOST_GROWTH = 0.05
CLIENTS = 16
RATE = 40.0  # requests a second, of all clients together
_EVERY = 10.0  # seconds
_WARM_UP = 1 / 6  # of the time
_MEGABYTE = 2**20
_WIDTH = 99


@dataclass
class Watched:
    """What was asked of a server, and what it took."""

    minutes: float
    moments: list[float] = field(default_factory=list)  # seconds since the start
    bytes: list[int] = field(default_factory=list)
    processes: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    rows: int = 0

    def settled(self) -> list[int]:
        """The memory after the warm-up."""
        start = self.minutes * 60 * _WARM_UP
        return [size for at, size in zip(self.moments, self.bytes, strict=True) if at >= start]

    def ends(self) -> tuple[float, float]:
        """The median of the first minute after the warm-up, and that of the last."""
        sizes = self.settled()
        window = max(1, min(6, len(sizes) // 3))
        return statistics.median(sizes[:window]), statistics.median(sizes[-window:])

    @property
    def growth(self) -> float:
        """By which share the memory grew after the warm-up."""
        first, last = self.ends()
        return last / first - 1

    @property
    def passed(self) -> bool:
        """Whether it grew little, and every answer was as it should be."""
        return self.growth < MOST_GROWTH and not self.wrong


def resident(process: int) -> tuple[int, int]:
    """The bytes in memory of a process and all that it has started, and how many those are."""
    parents: dict[int, list[int]] = {}
    for each in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            number = int(each.name)
            after_name = (each / "stat").read_text("ascii", "replace").rpartition(")")[2]
            parents.setdefault(int(after_name.split()[1]), []).append(number)
    found, total, count = [process], 0, 0
    while found:
        one = found.pop()
        found += parents.get(one, [])
        with suppress(OSError):
            pages = int(Path(f"/proc/{one}/statm").read_text("ascii").split()[1])
            total, count = total + pages * os.sysconf("SC_PAGESIZE"), count + 1
    return total, count


_Request = tuple[str, str, dict[str, Any] | Content | None, int]
"""Method, address, body and expected status."""


def _requests() -> Iterator[_Request]:
    """Without end: mostly new questions, those of every fourth round to the holdout that tells."""
    for n in itertools.count():
        yield from _told(n) if n % 4 == 3 else _looks(n)


def _looks(n: int) -> Iterator[_Request]:
    grid = "0:1:0.05"
    new = ("POST", "soak/ask", {"estimator": f"avg(x + {n})", "grid": grid}, 200)
    yield new
    product = {"estimator": f"avg(y * {n})", "where": "x > 0.5", "grid": grid}
    yield "POST", "soak/ask", product, 200
    yield new  # asked before: from the ledger
    guess = {"estimator": f"avg(x - {n})", "guess": 0.5, "tolerance": 0.1}
    yield "POST", "soak/verify", guess, 200
    yield "POST", "soak/price", {"verb": "ask", "estimator": f"max(x) + {n}", "grid": grid}, 200
    yield "GET", "soak/status", None, 200
    yield "GET", f"soak/transcript?after={5 * n}&limit=20", None, 200
    yield "POST", "soak/ask", {"estimator": f"avg(nobody_{n})", "grid": grid}, 400


def _told(n: int) -> Iterator[_Request]:
    """Guesses are right, and few winners are new: all else would make every later bar wider."""
    (given, right), (other, less), (term, share) = predicted(n), predicted(n + 1), share_below(n)
    (old, known), several = predicted(n // 256), contents_of({"b": given, "a": other})
    score = ("POST", f"told/score?guess={right}", content_of(given), 200)
    yield score
    yield "POST", f"told/compare?guess={right - less}", several, 200
    yield "POST", "told/gate?at_least=0.5", content_of(given), 200
    yield "POST", "told/best", contents_of({"old": old, "flat": dict.fromkeys(old, 1)}), 200
    yield score  # told before
    yield "POST", "told/mean", {"term": term, "guess": share}, 200
    yield "POST", f"told/price/score?guess={less}", content_of(other), 200
    yield "POST", f"told/enter?name=n{n // 256}&guess={known}", content_of(old), 200
    yield "GET", "told/leaderboard", None, 200
    yield "GET", "told/status", None, 200
    yield "POST", f"told/score?guess={7 + n}", content_of(given), 400


async def _client(
    http: httpx2.AsyncClient,
    tokens: dict[str, str],
    requests: Iterator[_Request],
    end: float,
    seen: Watched,
) -> None:
    while (start := time.monotonic()) < end:
        method, place, body, expected = next(requests)
        try:
            sent: dict[str, Any] = {"json": body}
            headers = {"Authorization": f"Bearer {tokens[place.partition('/')[0]]}"}
            if isinstance(body, Content):
                sent, headers["Content-Type"] = {"content": body.data}, body.kind
            answer = await http.request(method, place, headers=headers, **sent)
            seen.answers[f"{method} {place.split('?')[0]}"] += 1
            if answer.status_code != expected:
                seen.wrong.append(f"{method} {place}: {answer.status_code} {answer.text[:200]}")
        except httpx2.HTTPError as error:
            seen.wrong.append(f"{method} {place}: {type(error).__name__}")
        await asyncio.sleep(max(0.0, CLIENTS / RATE - (time.monotonic() - start)))


async def _look(process: int, end: float, seen: Watched) -> None:
    start = time.monotonic()
    for moment in itertools.count(0.0, _EVERY):
        await asyncio.sleep(max(0.0, start + moment - time.monotonic()))
        if time.monotonic() >= end:
            return
        size, seen.processes = resident(process)
        seen.moments.append(moment)
        seen.bytes.append(size)


async def _soak(url: str, tokens: dict[str, str], process: int, minutes: float) -> Watched:
    seen, end = Watched(minutes), time.monotonic() + minutes * 60
    base, requests = url.removesuffix("soak/ask"), _requests()
    async with httpx2.AsyncClient(base_url=base, timeout=60) as http:
        clients = [_client(http, tokens, requests, end, seen) for _ in range(CLIENTS)]
        await asyncio.gather(_look(process, end, seen), *clients)
    return seen


def _listener(url: str) -> int:
    """The process that was started to listen there: a child of this one."""
    port = urlsplit(url).port
    for each in Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split():
        if b"serve" in Path(f"/proc/{each}/cmdline").read_bytes():
            return int(each)
    raise RuntimeError(f"no process of ours listens at port {port}")


def watched(minutes: float) -> Watched:
    """A new holdout, served and asked for so long."""
    import pandas as pd

    plan = joint_plan(
        Estimates(int(minutes * 60 * RATE) + 1_000, grid=21, tail_low=0.05, tail_high=0.05)
    )
    values = np.random.default_rng(1).random((plan.blocks, 2))
    paths = scratch() / "soak", scratch() / "told"
    hf.Holdout.create(paths[0], pd.DataFrame(values, columns=["x", "y"]), plan).close()
    create_told(paths[1])
    with hf.Holdout.open(paths[1]) as holdout:
        _, told = holdout.access.grant("analyst", nats=None)
    with served(paths[0], 1, str(paths[1])) as (url, token):
        tokens = {"soak": token, "told": told}
        seen = asyncio.run(_soak(url, tokens, _listener(url), minutes))
    for path in paths:
        with hf.Holdout.open(path) as holdout:
            seen.rows += holdout.receipt.number
    return seen


def page(seen: Watched, command: str, date: str) -> str:
    """Markdown."""
    first, last = seen.ends()
    verdict = "It passed." if seen.passed else "**It failed.**"
    head = (
        f"Made by the command below on {date} (Python {platform.python_version()}). {verdict} The "
        "code is in `tools/soak.py`."
    )
    asked = (
        f"{CLIENTS} clients sent {RATE:g} requests a second together for {seen.minutes:g} minutes: "
        "mostly new questions, with a filter or without, and among them questions asked before, "
        "guesses, prices, status, transcript, and questions that must be refused. Every fourth "
        "round of them goes to a second holdout, which tells: scores, comparisons, gates, winners, "
        "means, entries, prices and the leaderboard. "
        f"{sum(seen.answers.values()):,} were answered, {len(seen.wrong):,} of them not as "
        f"expected; the ledgers have {seen.rows:,} rows."
    )
    memory = (
        f"The server and what it had started were {seen.processes} processes. After a warm-up of "
        f"{60 * seen.minutes * _WARM_UP:.0f} seconds they took {first / _MEGABYTE:,.0f} MB of "
        f"resident memory (the median of the first minute), at the end {last / _MEGABYTE:,.0f} MB "
        f"(that of the last), at most {max(seen.settled()) / _MEGABYTE:,.0f} MB: a growth of "
        f"{100 * seen.growth:.1f} %, where {100 * MOST_GROWTH:g} % are allowed."
    )
    step = max(1, len(seen.bytes) // 15)
    lines = [
        f"| {at / 60:.1f} | {size / _MEGABYTE:,.0f} |"
        for at, size in list(zip(seen.moments, seen.bytes, strict=True))[::step]
    ]
    return "\n\n".join(
        [
            "# A server that runs for long",
            textwrap.fill(head, _WIDTH),
            f"```console\n$ {command}\n```",
            textwrap.fill(asked, _WIDTH),
            textwrap.fill(memory, _WIDTH),
            "| minute | MB |\n|---|---|\n" + "\n".join(lines) + "\n",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--output", type=Path, help="the page to write")
    given = parser.parse_args()
    seen = watched(given.minutes)
    where = "" if given.output is None else f" --output {given.output}"
    command = f"python -m tools.soak --minutes {given.minutes:g}{where}"
    text = page(seen, command, datetime.date.today().isoformat())
    print(text)
    if given.output is not None:
        given.output.write_text(text, "utf-8")
    for each in seen.wrong[:20]:
        print(each, file=sys.stderr)
    return 0 if seen.passed else 1


if __name__ == "__main__":
    sys.exit(main())
