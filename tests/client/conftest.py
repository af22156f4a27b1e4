"""An app in this process, and transports that lead to it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from holdfast.client.http import HttpRequest, NoReply, Pause, Reply
from holdfast.engines.python.engine import Admission, LocalEngine
from holdfast.server.app import create_app
from holdfast.server.settings import Settings
from tests.holdout import plans
from tests.holdout.tables import sealed, sources

NO_PACE: Any = SimpleNamespace(
    admit=lambda _: None, begin=lambda: None, wait=lambda: None, again=lambda _: None
)


class Served(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """An app on an event loop of its own, reached by waiting and by awaiting."""

    def __init__(self, *folders: Path, **more: Any) -> None:
        settings = {"slot": 0.001, "rate": 1e6, "burst": 10**6, **more}
        app = create_app(Settings(folders=folders, **settings))
        self._asgi = httpx2.ASGITransport(app)
        self._life = app.router.lifespan_context(app)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._wait(self._life.__aenter__())

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _handled(self, request: httpx2.Request, body: bytes) -> httpx2.Response:
        copy = httpx2.Request(request.method, request.url, headers=request.headers, content=body)
        response = await self._asgi.handle_async_request(copy)
        content = await response.aread()
        return httpx2.Response(response.status_code, headers=response.headers, content=content)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response: httpx2.Response = self._wait(self._handled(request, request.read()))
        return response

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        work = self._handled(request, await request.aread())
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def end(self) -> None:
        self._wait(self._life.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def carried(
    steps: Generator[Any, Any, Any], outcomes: Iterable[Any]
) -> tuple[Any, list[HttpRequest], list[float]]:
    """The result of a conversation in which this comes back, the calls made, and the pauses."""
    calls, pauses, following, outcome = [], [], list(outcomes), None
    try:
        while True:
            step = steps.send(outcome)
            outcome = None
            if isinstance(step, Pause):
                pauses.append(step.seconds)
                continue
            calls.append(step)
            outcome = following.pop(0)
            if not isinstance(outcome, Reply | NoReply):
                outcome = Reply(200, {}, json.dumps(outcome).encode())
    except StopIteration as end:
        return end.value, calls, pauses


Make = Callable[..., Path]
Serve = Callable[..., Served]


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have one."""
    monkeypatch.delenv("HOLDFAST_TOKEN", raising=False)


@pytest.fixture
def served() -> Iterator[Serve]:
    """served(folder, …) is a transport to an app that serves them."""
    running: list[Served] = []

    def start(*folders: Path, **more: Any) -> Served:
        running.append(Served(*folders, **more))
        return running[-1]

    yield start
    for each in running:
        each.end()


@pytest.fixture
def serve(served: Serve) -> Iterator[Serve]:
    """The same; blocks are stubs."""
    with sources():
        yield served


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """made("a") is a seeded holdout: two of them draw the same."""

    def make(name: str, *more: Any) -> Path:
        path = tmp_path / f"{name}.holdfast"
        sealed(path, [plans.mixed(), *more], seed=7).close()
        return path

    return make


@pytest.fixture
def admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python function is admitted without a trial."""

    def admit(*_: object, **__: object) -> Admission:
        return Admission(False, 0)

    monkeypatch.setattr(LocalEngine, "admit", admit)
