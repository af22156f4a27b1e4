"""Tests for src/holdfast/server: questions, jobs, limits, errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.holdout.check import check_holdout
from tests.server.conftest import Serve, Study, ended

ASK: dict[str, object] = {"estimator": "avg(x)", "grid": "0:7:1"}


def test_every_verb_answers(study: Study, folder: Path) -> None:
    bodies: dict[str, dict[str, object]] = {
        "ask": ASK,
        "interval": ASK,
        "verify": {"estimator": "avg(x)", "guess": 5.0},
        "correct": {"estimator": "max(x)", "guess": 5.5, "grid": "0:7:1"},
    }
    for verb, body in bodies.items():
        priced = study.post("price", json={"verb": verb, **body})
        assert priced.json()["affordable"], priced.json()
        response = study.post(verb, json=body)
        assert response.status_code == 200, response.json()
        wanted = {"verify": "verdict", "correct": "corrected"}.get(verb, "answer")
        assert response.json()["type"] == wanted
    rows = study.get("transcript").json()["rows"]
    assert [row["question"]["verb"] for row in rows] == list(bodies)
    assert all(row["mine"] and "asker" not in row for row in rows)
    assert check_holdout(folder).passed


def test_a_key_asks_once(study: Study) -> None:
    key = {"Idempotency-Key": "k"}
    first, again = (study.post("ask", json=ASK, headers=key).json() for _ in range(2))
    assert again["cached"]
    assert again["receipt"] == first["receipt"]
    other = {**ASK, "estimator": "avg(c)"}
    clash = study.post("ask", json=other, headers=key)
    assert (clash.status_code, clash.json()["error"]["kind"]) == (409, "conflict")
    # Another token's key of the same name is another key.
    assert study.post("ask", "custodian", json=other, headers=key).status_code == 200


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({**ASK, "estimator": "avg(nothing)"}, "question"),
        ({**ASK, "grid": "7:0:1"}, "grid"),
        ({**ASK, "protocol": "nobody"}, "protocol"),
        ({**ASK, "surprise": 1}, "surprise"),
        ({"grid": "0:7:1"}, "estimator"),
    ],
)
def test_a_bad_question_is_free(shared: Study, body: dict[str, object], parameter: str) -> None:
    before = shared.get("status").json()["receipt"]
    response = shared.post("ask", json=body)
    error = response.json()["error"]
    assert (response.status_code, error["kind"]) == (400, "bad_question")
    assert error["parameter"] == parameter
    assert shared.get("status").json()["receipt"] == before


def test_a_job_ends_with_its_answer(study: Study) -> None:
    begun = study.post("jobs", json={"verb": "ask", **ASK}, headers={"Idempotency-Key": "job"})
    assert begun.status_code == 202
    place = f"jobs/{begun.json()['id']}"
    job = ended(lambda: study.get(place).json())
    assert job["state"] == "done", job
    direct = study.post("ask", json=ASK, headers={"Idempotency-Key": "job"}).json()
    assert direct["cached"]
    assert direct["receipt"] == job["result"]["receipt"]
    assert study.get(place, "viewer").status_code == 403
    assert study.get(place, "custodian").status_code == 200


def test_large_bodies_are_refused_as_they_come(
    folder: Path, tokens: dict[str, str], served: Serve
) -> None:
    here = Study(served(folder, body_limit=2000), tokens)
    assert here.post("ask", json={"estimator": "x" * 5000}).status_code == 413

    def pieces() -> Iterator[bytes]:
        yield from (b" " * 500 for _ in range(100))

    streamed = here.post("ask", content=pieces())
    assert (streamed.status_code, streamed.json()["error"]["kind"]) == (413, "too_large")


def test_the_audit_names_who_asked(study: Study) -> None:
    study.post("ask", json=ASK)
    response = study.get("audit", "custodian")
    asker = study.tokens["analyst"].split("_")[1]
    rows = [row for row in response.json()["rows"] if row["kind"] == "recorded"]
    assert [row["asker"] for row in rows] == [asker]
    assert "hash" not in response.text
    assert not any(token in response.text for token in study.tokens.values())
