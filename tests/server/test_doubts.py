"""Slips over HTTP and through the client: refused before anything is charged, unless meant."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.client.client import AsyncClient, Client
from holdfast.errors import Doubtful
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from tests.client.conftest import Served
from tests.holdout.registry import made
from tests.server.conftest import Serve, Study, ended, tokens_of

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


def test_every_verb_refuses_a_slip_and_asks_it_anyway(registry: Path, served: Serve) -> None:
    here = Study(served(registry), tokens_of(registry), "/api/holdouts/registry")
    before = here.get("status").json()
    for verb, body in BODIES.items():
        price = here.post("price", json={"verb": verb, **body}).json()
        (first, *_) = [each for each in price["doubts"] if each["refused"]]
        asked = here.post(verb, json=body), here.post("jobs", json={"verb": verb, **body})
        for response in asked:
            error = response.json()["error"]
            assert (response.status_code, error["kind"]) == (400, "doubtful")
            assert error["parameter"] == first["parameter"]
            assert error["message"].startswith(first["message"])
            assert "anyway=True" in error["hint"]
    assert here.get("status").json() == before
    for verb, body in BODIES.items():
        assert here.post(verb, json={**body, "anyway": True}).status_code == 200
        assert here.post(verb, json=body).status_code == 200  # recorded: free, nothing to refuse
    assert here.get("status").json()["answers"] == len(BODIES)
    meant = {"verb": "ask", **SLIP, "where": "race = 'White'", "anyway": True}
    place = f"jobs/{here.post('jobs', json=meant).json()['id']}"
    assert ended(lambda: here.get(place).json())["state"] == "done"
    columns = here.get("columns").json()["columns"]
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
