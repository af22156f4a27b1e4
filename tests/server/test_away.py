"""A ledger whose database is away for a while: ask again, and nobody is told where it is."""

from __future__ import annotations

import errno

import pytest
from fastapi.testclient import TestClient

from holdfast.ledger import SqliteLedger
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
