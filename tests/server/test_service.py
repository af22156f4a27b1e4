"""Tests for src/holdfast/server: questions, jobs, limits, errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from holdfast.holdout.check import check_holdout
from tests.server.conftest import auth

ASK: dict[str, object] = {"estimator": "avg(x)", "grid": "0:7:1"}


def test_every_verb_answers(client: TestClient, tokens: dict[str, str], folder: Path) -> None:
    headers = auth(tokens["analyst"])
    base = "/api/holdouts/study"
    bodies: dict[str, dict[str, object]] = {
        "ask": ASK,
        "interval": ASK,
        "verify": {"estimator": "avg(x)", "guess": 5.0},
        "correct": {"estimator": "max(x)", "guess": 5.5, "grid": "0:7:1"},
    }
    for verb, body in bodies.items():
        priced = client.post(f"{base}/price", json={"verb": verb, **body}, headers=headers)
        assert priced.json()["affordable"], priced.json()
        response = client.post(f"{base}/{verb}", json=body, headers=headers)
        assert response.status_code == 200, response.json()
        wanted = {"verify": "verdict", "correct": "corrected"}.get(verb, "answer")
        assert response.json()["type"] == wanted
    rows = client.get(f"{base}/transcript", headers=headers).json()["rows"]
    assert [row["question"]["verb"] for row in rows] == list(bodies)
    assert all(row["mine"] and "asker" not in row for row in rows)
    assert check_holdout(folder).passed


def test_a_key_asks_once(client: TestClient, tokens: dict[str, str], folder: Path) -> None:
    headers = {**auth(tokens["analyst"]), "Idempotency-Key": "k"}
    first = client.post("/api/holdouts/study/ask", json=ASK, headers=headers).json()
    again = client.post("/api/holdouts/study/ask", json=ASK, headers=headers).json()
    assert again["cached"]
    assert again["receipt"] == first["receipt"]
    other = {**ASK, "estimator": "avg(c)"}
    clash = client.post("/api/holdouts/study/ask", json=other, headers=headers)
    assert clash.status_code == 409
    assert clash.json()["error"]["kind"] == "conflict"
    # Another token's key of the same name is another key.
    theirs = {**auth(tokens["custodian"]), "Idempotency-Key": "k"}
    assert client.post("/api/holdouts/study/ask", json=other, headers=theirs).status_code == 200


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({"estimator": "avg(nothing)", "grid": "0:7:1"}, "question"),
        ({"estimator": "avg(x)", "grid": "7:0:1"}, "grid"),
        ({"estimator": "avg(x)", "grid": "0:7:1", "protocol": "nobody"}, "protocol"),
        ({"estimator": "avg(x)", "grid": "0:7:1", "surprise": 1}, "surprise"),
        ({"grid": "0:7:1"}, "estimator"),
    ],
)
def test_a_bad_question_is_free(
    client: TestClient, tokens: dict[str, str], body: dict[str, object], parameter: str
) -> None:
    headers = auth(tokens["analyst"])
    before = client.get("/api/holdouts/study/status", headers=headers).json()["receipt"]
    response = client.post("/api/holdouts/study/ask", json=body, headers=headers)
    assert response.status_code == 400
    assert response.json()["error"]["kind"] == "bad_question"
    assert response.json()["error"]["parameter"] == parameter
    assert client.get("/api/holdouts/study/status", headers=headers).json()["receipt"] == before


def test_a_job_ends_with_its_answer(client: TestClient, tokens: dict[str, str]) -> None:
    headers = {**auth(tokens["analyst"]), "Idempotency-Key": "job"}
    begun = client.post("/api/holdouts/study/jobs", json={"verb": "ask", **ASK}, headers=headers)
    assert begun.status_code == 202
    place = f"/api/holdouts/study/jobs/{begun.json()['id']}"
    job = begun.json()
    for _ in range(6000):  # two minutes, on a busy machine
        job = client.get(place, headers=headers).json()
        if job["state"] not in ("queued", "running"):
            break
        time.sleep(0.02)
    assert job["state"] == "done", job
    direct = client.post("/api/holdouts/study/ask", json=ASK, headers=headers).json()
    assert direct["cached"]
    assert direct["receipt"] == job["result"]["receipt"]
    assert client.get(place, headers=auth(tokens["viewer"])).status_code == 403
    assert client.get(place, headers=auth(tokens["custodian"])).status_code == 200


def test_large_bodies_are_refused_as_they_come(
    folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]
) -> None:
    client = served(folder, body_limit=2000)
    body = {"estimator": "x" * 5000}
    response = client.post("/api/holdouts/study/ask", json=body, headers=auth(tokens["analyst"]))
    assert response.status_code == 413

    def pieces() -> Iterator[bytes]:
        yield from (b" " * 500 for _ in range(100))

    streamed = client.post(
        "/api/holdouts/study/ask",
        content=pieces(),
        headers=auth(tokens["analyst"]),
    )
    assert streamed.status_code == 413
    assert streamed.json()["error"]["kind"] == "too_large"


def test_the_audit_names_who_asked(client: TestClient, tokens: dict[str, str]) -> None:
    client.post("/api/holdouts/study/ask", json=ASK, headers=auth(tokens["analyst"]))
    response = client.get("/api/holdouts/study/audit", headers=auth(tokens["custodian"]))
    rows = response.json()["rows"]
    asker = tokens["analyst"].split("_")[1]
    assert [row["asker"] for row in rows if row["kind"] == "recorded"] == [asker]
    assert "hash" not in response.text
    assert not any(token in response.text for token in tokens.values())
