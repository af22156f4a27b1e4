"""Over real connections: what is sent, what is lost, and what nobody else gets to read."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from holdfast.client.client import AsyncClient, Client
from holdfast.client.http import ServerFailed, Unreachable
from holdfast.errors import InvalidInput
from tests.client.test_wire import ANSWER

TOKEN = "hf_abcdefgh_" + "s3cr3t-_" * 5 + "xyz"
Act = Callable[[BaseHTTPRequestHandler], None]


def answer(visit: BaseHTTPRequestHandler) -> None:
    body = json.dumps({"type": "answer", **ANSWER.to_dict()}).encode()
    visit.send_response(200)
    visit.send_header("Content-Length", str(len(body)))
    visit.end_headers()
    visit.wfile.write(body)


def hang_up(visit: BaseHTTPRequestHandler) -> None:
    visit.close_connection = True


def cut_off(visit: BaseHTTPRequestHandler) -> None:
    visit.send_response(200)
    visit.send_header("Content-Length", "1000")
    visit.end_headers()
    visit.wfile.write(b'{"type"')
    visit.close_connection = True


def dawdle(visit: BaseHTTPRequestHandler) -> None:
    time.sleep(0.3)
    visit.close_connection = True


def send_away(visit: BaseHTTPRequestHandler) -> None:
    visit.send_response(307)
    visit.send_header("Location", f"http://localhost:{visit.server.server_port}/")  # type: ignore[attr-defined]
    visit.send_header("Content-Length", "0")
    visit.end_headers()


class Acting:
    """A server that does these things, one for each call, and then answers."""

    def __init__(self, *acts: Act) -> None:
        calls: list[tuple[str, str | None, str | None]] = []
        script, self.calls = iter(acts), calls

        class Visit(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                kept = self.headers["Idempotency-Key"], self.headers["Authorization"]
                calls.append((self.path, *kept))
                next(script, answer)(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Visit)
        self.url = f"http://127.0.0.1:{self._server.server_port}/holdouts/a"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


Start = Callable[..., Acting]


@pytest.fixture
def acting() -> Iterator[Start]:
    running: list[Acting] = []

    def start(*acts: Act) -> Acting:
        running.append(Acting(*acts))
        return running[-1]

    yield start
    for each in running:
        each.close()


def asked(server: Acting, **more: Any) -> Any:
    with Client(server.url, TOKEN, **more) as client:
        return client.ask("avg(x)")


def awaited(server: Acting, **more: Any) -> Any:
    async def ask() -> Any:
        async with AsyncClient(server.url, TOKEN, **more) as client:
            return await client.ask("avg(x)")

    return asyncio.run(ask())


@pytest.mark.parametrize("act", [hang_up, cut_off, dawdle])
@pytest.mark.parametrize("ask", [asked, awaited])
def test_a_lost_reply_is_asked_for_again_with_the_same_key(
    acting: Start, ask: Callable[..., Any], act: Act
) -> None:
    server = acting(act)
    assert ask(server, timeout=0.1 if act is dawdle else 10) == ANSWER
    assert len(server.calls) >= 2  # on a busy machine the second may have come too late as well
    assert len(set(server.calls)) == 1
    path, key, token = server.calls[0]
    assert path == "/api/holdouts/a/ask"
    assert key is not None
    assert token == f"Bearer {TOKEN}"


@pytest.mark.parametrize("ask", [asked, awaited])
def test_nobody_there(acting: Start, ask: Callable[..., Any]) -> None:
    server = Acting()
    server.close()
    with pytest.raises(Unreachable, match="Does the server run") as wrong:
        ask(server, retries=1)
    assert (wrong.value.tries, wrong.value.request) == (2, None)


def test_a_token_is_not_sent_on(acting: Start) -> None:
    server = acting(send_away)
    with pytest.raises(ServerFailed, match="status 307"):
        asked(server)
    assert len(server.calls) == 1


def test_no_proxy_reads_what_is_not_encrypted(
    acting: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert asked(acting(), retries=0) == ANSWER


def test_no_log_has_the_token(acting: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    asked(acting(hang_up))
    assert "HTTP Request: POST" in caplog.text  # they do log
    assert TOKEN not in caplog.text


def test_threads_share_a_client(acting: Start) -> None:
    server = acting(*[hang_up, answer] * 8)
    with Client(server.url) as client, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(client.ask, ["avg(x)"] * 8)) == [ANSWER] * 8
    assert len({key for _, key, _ in server.calls}) == 8


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "soon"])
def test_a_timeout_is_checked(timeout: float) -> None:
    with pytest.raises(InvalidInput, match="timeout"):
        Client("http://127.0.0.1", timeout=timeout)
