"""A real server with two worker processes: on the wire, side by side, and told to end."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from tests.server.conftest import auth, made, tokens_of, until
from tests.server.processes import Running, serving

PLACE = "/api/holdouts/study"
Served = tuple[Running, dict[str, str], Path]
SLOT = 1.5  # seconds, long enough to be told to end in the middle of a question


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("two")
    path = made(folder / "study")
    tokens = tokens_of(path)
    options = ("--workers", "2", "--slot", str(SLOT), "--rate", "1e6", "--burst", "100000")
    with serving(path, log=folder / "log", options=options) as server:
        until(lambda: reached(server))
        yield server, tokens, path


def reached(server: Running) -> bool:
    """Whether it answers."""
    try:
        return httpx2.get(f"{server.url}/health", timeout=5).status_code == 200
    except httpx2.TransportError:
        return False


def kinds(holdout: Holdout) -> Counter[str]:
    """How many rows of each kind the ledger has."""
    return Counter(row.kind for row in holdout.journal.ledger.rows())


def get(server: Running, place: str, token: str) -> Any:
    """By a new connection, which either worker may take."""
    return httpx2.get(f"{server.url}{place}", headers=auth(token), timeout=120)


def post(server: Running, place: str, token: str, body: dict[str, str]) -> Any:
    """The same."""
    place = f"{server.url}{PLACE}/{place}"
    return httpx2.post(place, json=body, headers=auth(token), timeout=120)


def wire(server: Running, data: bytes, *, closes: bool = True) -> bytes:
    """What comes back for these bytes."""
    with connected(server) as connection:
        found = b""
        try:
            connection.sendall(data)
            while closes and (piece := connection.recv(65536)):
                found += piece
        except (BrokenPipeError, ConnectionResetError):
            pass
        return found


def connected(server: Running) -> socket.socket:
    """A connection to it."""
    return socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=120)


HOST = b"Host: 127.0.0.1\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"GET /health HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 2**22,
        b"GET /" + b"a" * 2**22,
        b"GET /health HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: y\r\n" % n for n in range(200_000)),
        b"POST /api/holdouts/study/ask HTTP/1.1\r\n"
        + HOST
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"\x16\x03\x01\x02\x00\x01",
        b"GET /page/\x00 HTTP/1.1\r\n\r\n",
    ],
    ids=["header", "address", "headers", "smuggled", "lengths", "tls", "nul"],
)
def test_what_is_no_request_ends_the_connection(running: Served, data: bytes) -> None:
    told = wire(running[0], data)
    assert told == b"" or told.startswith(b"HTTP/1.1 400 ")
    assert told.count(b"HTTP/1.1") <= 1
    health = b"GET /health HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    assert b'{"status":"ok"}' in wire(running[0], health)


def test_whoever_hangs_up_has_asked(running: Served) -> None:
    server, tokens, path = running
    token = b"Authorization: Bearer " + tokens["analyst"].encode() + b"\r\n"
    body = json.dumps({"estimator": "avg(y)", "grid": "0:7:1"}).encode()
    head = b"POST /api/holdouts/study/ask HTTP/1.1\r\n" + HOST + token
    kind = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    wire(server, head + kind + body[:10], closes=False)  # half a question is none
    with connected(server) as connection, Holdout.open(path) as holdout:
        connection.sendall(head + kind + body)
        until(lambda: kinds(holdout)["reserved"] > 0)  # it is paid for, and not answered yet
    look = b"GET /api/holdouts/study/transcript HTTP/1.1\r\n" + HOST + token

    def rows() -> Any:
        told = wire(server, look + b"Connection: close\r\n\r\n")
        return json.loads(told.partition(b"\r\n\r\n")[2])["rows"]

    until(lambda: bool(rows()))
    (row,) = rows()
    assert "avg(y)" in json.dumps(row["question"])
    assert datetime.fromisoformat(row["at"]) <= datetime.now(UTC)
    log = server.log.read_text("utf-8")
    assert all(json.loads(line) for line in log.splitlines())
    assert "avg(y)" not in log
    assert tokens["analyst"] not in log


def test_workers_share_holdouts_jobs_and_counts(running: Served) -> None:
    server, tokens, _ = running
    body = {"verb": "ask", "estimator": "avg(c)", "grid": "0:7:1"}
    begun = post(server, "jobs", tokens["analyst"], body)
    assert begun.status_code == 202
    place = f"{PLACE}/jobs/{begun.json()['id']}"
    states = set()

    def done() -> bool:
        found = get(server, place, tokens["analyst"])
        assert found.status_code == 200  # whichever worker was asked
        states.add(found.json()["state"])
        return "done" in states

    until(done)
    assert states <= {"queued", "running", "done"}
    receipts = {
        get(server, f"{PLACE}/status", tokens["viewer"]).json()["receipt"] for _ in range(20)
    }
    assert len(receipts) == 1
    counted = get(server, "/metrics", tokens["viewer"]).text
    line = 'holdfast_answers_total{cached="false",holdout="study",verb="ask"} 2.0'
    assert line in counted  # of both workers


def test_it_ends_in_the_middle_of_questions(running: Served) -> None:
    """Each is answered, or its price stays; the status is 0 and nobody is left behind."""
    server, tokens, path = running
    told: list[Any] = []

    def ask(number: int) -> None:
        body = {"estimator": f"avg(c) + {number}", "grid": "0:7:1"}
        try:
            told.append(post(server, "ask", tokens["analyst"], body).json())
        except httpx2.TransportError as error:
            told.append(error)

    with Holdout.open(path) as holdout:
        before = kinds(holdout)
    askers = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
    for each in askers:
        each.start()
    with Holdout.open(path) as holdout:
        # All are paid for, and none can be answered yet.
        until(lambda: kinds(holdout)["reserved"] == before["reserved"] + 3)
        assert server.stop() == 0
        for each in askers:
            each.join(120)
        after = kinds(holdout)
    answered = [each for each in told if isinstance(each, dict) and "receipt" in each]
    assert len(told) == len(answered) == 3  # there was time enough for all of them
    assert after == before + Counter(reserved=3, recorded=3)
    assert check_holdout(path).passed
    assert not reached(server)
    log = server.log.read_text("utf-8")
    assert "Traceback" not in log
    assert "avg(c)" not in log
