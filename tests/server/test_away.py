"""A ledger whose database is away for a while: ask again, and nobody is told where it is."""

from __future__ import annotations

import errno
import json
import logging
from typing import Any, NoReturn

import pytest
from fastapi.testclient import TestClient

from holdfast.engines.sql.engine import SqlEngine
from holdfast.errors import Damaged, Unavailable
from holdfast.ledger.sqlite import SqliteLedger
from tests.server.conftest import auth

ASK: dict[str, object] = {"estimator": "avg(x)", "grid": "0:7:1"}


@pytest.mark.parametrize("number", [errno.ECONNRESET, errno.ECONNREFUSED, errno.EAGAIN])
def test_whoever_asks_meanwhile_can_ask_again(
    client: TestClient, tokens: dict[str, str], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {**auth(tokens["analyst"]), "Idempotency-Key": "k"}
    assert client.post("/api/holdouts/study/ask", json=ASK, headers=headers).status_code == 200

    def away(_: SqliteLedger) -> None:
        raise OSError(number, "no route", "postgresql://secret.example/holdouts")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteLedger, "_reach", away)
        replies = [
            client.post("/api/holdouts/study/ask", json=ASK, headers=headers),
            client.get("/api/holdouts/study/transcript", headers=headers),
        ]
    for reply in replies:
        assert (reply.status_code, reply.json()["error"]["kind"]) == (503, "busy")
        assert "with the same key" in reply.json()["error"]["message"]
        assert "secret" not in reply.text
    again = client.post("/api/holdouts/study/ask", json=ASK, headers=headers)
    assert again.json()["cached"]


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (RuntimeError("row 17 is 4711"), 500, "internal"),
        (OSError(errno.EACCES, "row 17 is 4711"), 500, "internal"),
        (Damaged("row 17", "4711", "none", "restore"), 500, "damaged"),
        (Unavailable("Evaluating", "a disk", "none", "look"), 500, "unavailable"),
        (TimeoutError("row 17 is 4711"), 503, "busy"),
        (ConnectionResetError("row 17 is 4711"), 503, "busy"),
        (InterruptedError("row 17 is 4711"), 503, "busy"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else str(each),
)
def test_one_body_and_one_line_for_what_nobody_asked_for(
    client: TestClient,
    tokens: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    status: int,
    kind: str,
) -> None:
    """On the short way and on the long one, which every other route goes too."""

    def broken(_: SqliteLedger) -> None:
        raise error

    monkeypatch.setattr(logging.getLogger("holdfast.server"), "propagate", True)
    caplog.set_level(logging.INFO, "holdfast.server")
    monkeypatch.setattr(SqliteLedger, "_reach", broken)
    body, headers = json.dumps(ASK), auth(tokens["analyst"])
    for content in ("application/json", "application/json; charset=utf-8"):
        caplog.clear()
        typed = {**headers, "Content-Type": content}
        reply = client.post("/api/holdouts/study/ask", content=body, headers=typed)
        assert (reply.status_code, reply.json()["error"]["kind"]) == (status, kind)
        assert "4711" not in reply.text
        [line] = [record for record in caplog.records if record.getMessage() == "request"]
        facts = line.facts  # type: ignore[attr-defined]
        assert facts["error"].startswith(type(error).__name__)
        assert "4711" not in json.dumps(facts)


def test_what_the_machine_does_to_a_question_is_no_bad_question(
    client: TestClient, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was charged first, and asked again it is charged again: nothing may say otherwise."""
    headers, base = auth(tokens["analyst"]), "/api/holdouts/study"

    def left() -> Any:
        [main, *_] = client.get(f"{base}/status", headers=headers).json()["sets"]
        return main["spent"]

    def broken(*_: Any, **__: Any) -> NoReturn:
        raise Unavailable("Evaluating SQL", "a disk", "there is none", "Look at the machine.")

    keyed = {**headers, "Idempotency-Key": "once"}
    before = left()
    with monkeypatch.context() as patch:
        patch.setattr(SqlEngine, "values", broken)
        reply = client.post(f"{base}/ask", json=ASK, headers=keyed)
    assert reply.status_code == 500
    assert reply.json()["error"]["kind"] == "unavailable"
    assert "Whatever was charged stays charged." in reply.json()["error"]["message"]
    charged = left() - before
    assert charged > 0
    reply = client.post(f"{base}/ask", json=ASK, headers=keyed)
    assert reply.status_code == 200
    assert left() - before == pytest.approx(2 * charged)
