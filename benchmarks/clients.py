"""Clients of a service, all in one process and as light as can be: each asks, waits, asks again.

python -m benchmarks.clients URL CLIENTS SECONDS FIRST [TOKEN]     prints one line of JSON

Every question is another one: `avg(x + NUMBER)`, numbers from FIRST on.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from benchmarks.holdouts import ROOT
from benchmarks.timing import Results

__all__ = ["asked_by"]


def asked_by(
    clients: int, seconds: float, url: str, *, first: int = 0, token: str | None = None
) -> Results:
    """How many answers came in how many seconds, and how long each of them took."""
    command = [sys.executable, "-m", "benchmarks.clients", url]
    command += [str(clients), str(seconds), str(first)] + ([] if token is None else [token])
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: Results = json.loads(run.stdout)
    return found


async def _client(
    url: str, token: str | None, numbers: Iterator[int], end: float, took: list[float]
) -> None:
    """One connection, used until the end; an answer that is none ends the whole run."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    head = (
        f"POST {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
    )
    head += "" if token is None else f"Authorization: Bearer {token}\r\n"
    while (start := time.perf_counter()) < end:
        body = json.dumps({"estimator": f"avg(x + {next(numbers)})", "grid": "0:1:0.05"})
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode("ascii"))
        said = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(said.split(b"content-length:")[1].split(b"\r\n")[0])
        answer = await reader.readexactly(length)
        took.append(time.perf_counter() - start)
        if b" 200 " not in said[:20]:
            raise RuntimeError(f"{said[:80]!r} {answer[:300]!r}")
    writer.close()


async def _crowd(url: str, clients: int, seconds: float, first: int, token: str | None) -> Results:
    took: list[float] = []
    numbers = itertools.count(first)
    start = time.perf_counter()
    each = [_client(url, token, numbers, start + seconds, took) for _ in range(clients)]
    await asyncio.gather(*each)
    spent = time.perf_counter() - start
    took.sort()
    return {
        "answers": len(took),
        "seconds": spent,
        "p50": took[len(took) // 2],
        "p99": took[len(took) * 99 // 100],
    }


def main() -> None:
    url, clients, seconds, first, *token = sys.argv[1:]
    crowd = _crowd(url, int(clients), float(seconds), int(first), token[0] if token else None)
    print(json.dumps(asyncio.run(crowd)))


if __name__ == "__main__":
    main()
