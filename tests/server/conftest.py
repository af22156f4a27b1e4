"""A small holdout, its tokens, and an app that serves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from holdfast.holdout.holdout import Holdout
from holdfast.server.app import create_app
from holdfast.server.settings import Settings
from tests.holdout.plans import mixed
from tests.holdout.tables import sealed

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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A holdout for six estimates, two intervals and twelve guesses."""
    return made(tmp_path / "study.holdfast")


@pytest.fixture
def tokens(folder: Path) -> dict[str, str]:
    """One token of every role for it."""
    return tokens_of(folder)


@pytest.fixture
def served() -> Iterator[Callable[..., TestClient]]:
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
def client(folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]) -> TestClient:
    """A client of an app that serves the holdout; every request needs a token."""
    return served(folder)
