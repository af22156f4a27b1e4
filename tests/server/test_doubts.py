"""Slips over HTTP and through the client: refused before anything is charged, unless meant."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import holdfast as hf
from holdfast.client.client import AsyncClient, Client
from holdfast.errors import Doubtful
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from tests.client.conftest import Served
from tests.holdout.registry import made
from tests.server.conftest import auth, tokens_of

SLIP: dict[str, object] = {"estimator": "avg(age)", "where": "sex = 'Male'", "grid": "18:102:12"}
BODIES: dict[str, dict[str, object]] = {
    "ask": SLIP,
    "interval": SLIP,
    "mean": {"term": "died = 1", "grid": "0:800:10"},
    "verify": {"estimator": "avg(age)", "guess": 600},
    "correct": {"estimator": "avg(age)", "guess": 62, "grid": "0:10:1"},
}
AGES = hf.grid(18, 102, step=12)


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    path = tmp_path / "registry.holdfast"
    texts = {"race": ["black", "rare", "white", "other"]}
    made(path, ranges={"age": (18, 102)}, categories=texts).close()
    return path


def test_every_verb_refuses_a_slip_and_asks_it_anyway(
    registry: Path, served: Callable[..., TestClient]
) -> None:
    headers = auth(tokens_of(registry)["analyst"])
    client, base = served(registry), "/api/holdouts/registry"

    def post(verb: str, body: dict[str, object]) -> Any:
        return client.post(f"{base}/{verb}", json=body, headers=headers)

    before = client.get(f"{base}/status", headers=headers).json()
    for verb, body in BODIES.items():
        price = post("price", {"verb": verb, **body}).json()
        (first, *_) = [each for each in price["doubts"] if each["refused"]]
        for response in (post(verb, body), post("jobs", {"verb": verb, **body})):
            error = response.json()["error"]
            assert (response.status_code, error["kind"]) == (400, "doubtful")
            assert error["parameter"] == first["parameter"]
            assert error["message"].startswith(first["message"])
            assert "anyway=True" in error["hint"]
    assert client.get(f"{base}/status", headers=headers).json() == before
    for verb, body in BODIES.items():
        assert post(verb, {**body, "anyway": True}).status_code == 200
        assert post(verb, body).status_code == 200  # recorded: free, and nothing to refuse
    assert client.get(f"{base}/status", headers=headers).json()["answers"] == len(BODIES)
    job = post("jobs", {"verb": "ask", **SLIP, "where": "race = 'White'", "anyway": True}).json()
    while job["state"] in ("queued", "running"):
        time.sleep(0.02)
        job = client.get(f"{base}/jobs/{job['id']}", headers=headers).json()
    assert job["state"] == "done"
    columns = client.get(f"{base}/columns", headers=headers).json()["columns"]
    told = {each["name"]: each["categories"] for each in columns}
    assert told["race"] == ["black", "rare", "white", "other"]
    assert told["sex"] is None
    assert check_holdout(registry).passed


def test_the_client_refuses_as_the_holdout_does(registry: Path) -> None:
    transport = Served(registry)
    words: dict[str, Any] = {"where": "sex = 'Male'", "grid": AGES}
    try:
        with Client("http://127.0.0.1", transport=transport) as client:
            with pytest.raises(Doubtful) as there:
                client.ask("avg(age)", **words)
            with Holdout.open(registry) as holdout:
                with pytest.raises(Doubtful) as here:
                    holdout.ask("avg(age)", **words)
                assert client.price("ask", "avg(age)", **words) == holdout.price(
                    "ask", "avg(age)", **words
                )
            assert str(there.value) == str(here.value)
            assert there.value.parameter == here.value.parameter == "where"
            assert client.ask("avg(age)", anyway=True, **words).value == 18
            assert client.status().answers == 1

        async def later() -> None:
            async with AsyncClient("http://127.0.0.1", transport=transport) as other:
                with pytest.raises(Doubtful):
                    await other.mean("sex = 'Male'")
                await other.mean("sex = 'Male'", anyway=True)

        asyncio.run(later())
    finally:
        transport.end()
