"""A small holdout, its tokens, and an app that serves it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from fastapi.testclient import TestClient
from uvicorn.server import ServerState

from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.server.app import create_app
from holdfast.server.middleware import HeaderLimits
from holdfast.server.service import Rates
from holdfast.server.settings import Settings
from tests.holdout.plans import mixed
from tests.holdout.tables import sealed

if TYPE_CHECKING:  # other tests do without a browser
    from playwright.sync_api import Browser, Page

    from tests.server.browsing import Visiting, Visitor

ROLES = ("viewer", "analyst", "custodian")
FAST = {"slot": 0.001, "rate": 1e6, "burst": 10**6}  # tests do not wait for slots or rates


def auth(token: str | None) -> dict[str, str]:
    """The header that shows a token."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def made(path: Path, plan: Any = None, **more: Any) -> Path:
    """A holdout in a new folder, closed again."""
    sealed(path, mixed() if plan is None else plan, **more).close()
    return path


def tokens_of(path: Path) -> dict[str, str]:
    """One token of every role."""
    with Holdout.open(path) as holdout:
        return {role: holdout.access.grant(role, name=role)[1] for role in ROLES}  # type: ignore[arg-type]


Serve = Callable[..., TestClient]


@dataclass(frozen=True)
class Study:
    """A client of an app that serves a holdout, and a token of every role for it."""

    client: TestClient
    tokens: dict[str, str]
    base: str = "/api/holdouts/study"

    @property
    def app(self) -> Any:
        """The app behind the client."""
        return self.client.app

    def send(self, method: str, place: str, role: str | None = "analyst", **more: Any) -> Any:
        """A request about the holdout, or of an address, by a role (or token, or nobody)."""
        token = None if role is None else self.tokens.get(role, role)
        address = place if place.startswith("/") else f"{self.base}/{place}"
        headers = {**auth(token), **more.pop("headers", {})}
        return self.client.request(method, address, headers=headers, **more)

    def get(self, place: str, role: str | None = "analyst", **more: Any) -> Any:
        """What is there."""
        return self.send("GET", place, role, **more)

    def post(self, place: str, role: str | None = "analyst", **more: Any) -> Any:
        """What comes of it."""
        return self.send("POST", place, role, **more)


def until(ready: Callable[[], bool]) -> None:
    """Wait for something that must happen."""
    for _ in range(12_000):
        if ready():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen within two minutes")


def ended(job: Callable[[], Any]) -> Any:
    """What is told of a job once it has ended."""
    until(lambda: job()["state"] not in ("queued", "running"))
    return job()


def listening(connect: Callable[..., Coroutine[Any, Any, Any]]) -> Any:
    """What comes of connecting to a place where nothing is ever asked of an app."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("there is no request")

    async def listen() -> Any:
        config = uvicorn.Config(app, log_config=None, lifespan="off")
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: HeaderLimits(config, state, {}), "127.0.0.1", 0
        )
        async with server:
            return await connect(*server.sockets[0].getsockname())

    return asyncio.run(listen())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A holdout for six estimates, two intervals and twelve guesses."""
    return made(tmp_path / "study.holdfast")


@pytest.fixture
def tokens(folder: Path) -> dict[str, str]:
    """One token of every role for it."""
    return tokens_of(folder)


@pytest.fixture
def served() -> Iterator[Serve]:
    """Apps in this process: served(folder, …) is a client of one."""
    open_clients: list[TestClient] = []

    def serve(*folders: Path, **settings: Any) -> TestClient:
        app = create_app(Settings(folders=folders, **{**FAST, **settings}))
        client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=True)
        client.__enter__()
        open_clients.append(client)
        return client

    yield serve
    for client in open_clients:
        client.__exit__(None, None, None)


@pytest.fixture
def study(folder: Path, tokens: dict[str, str], served: Serve) -> Study:
    """An app that serves the holdout; every request needs a token."""
    return Study(served(folder), tokens)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    """One for the tests of a module that leave it as it was."""
    path = made(tmp_path_factory.mktemp("shared") / "study")
    app = create_app(Settings(folders=(path,), **FAST))  # type: ignore[arg-type]
    app.state.service._failures = Rates(1e6, 10**6)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield Study(client, tokens_of(path))
    assert check_holdout(path).passed


@pytest.fixture
def client(study: Study) -> TestClient:
    """A client of it."""
    return study.client


# A browser, for the modules that have a `site` with an address.


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests of a module."""
    from tests.server.browsing import one_browser

    with one_browser() as found:
        yield found


@pytest.fixture
def visit(browser: Browser, site: Any) -> Visiting:
    """Visit the page as somebody new."""
    from tests.server.browsing import visiting

    return partial(visiting, browser, site.url)


@pytest.fixture
def visitor(visit: Visiting, site: Any) -> Iterator[Visitor]:
    """Somebody new; what the page did that it should not fails the test in the end."""
    with visit() as found:
        found.site = site
        yield found


@pytest.fixture
def page(visitor: Visitor) -> Page:
    """What the visitor sees."""
    return visitor.page
