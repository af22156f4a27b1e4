"""A ledger whose database is away for a while: ask again, and nobody is told where it is."""

from __future__ import annotations

import errno
import json
import logging
from typing import Any, NoReturn

import pytest

from holdfast.engines.sql.engine import SqlEngine
from holdfast.errors import Damaged, Unavailable
from holdfast.ledger.sqlite import SqliteLedger
from tests.server.conftest import Study

ASK: dict[str, object] = {"estimator": "avg(x)", "grid": "0:7:1"}


@pytest.mark.parametrize("number", [errno.ECONNRESET, errno.ECONNREFUSED, errno.EAGAIN])
def test_whoever_asks_meanwhile_can_ask_again(
    shared: Study, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"Idempotency-Key": "k"}
    assert shared.post("ask", json=ASK, headers=key).status_code == 200

    def away(_: SqliteLedger) -> None:
        raise OSError(number, "no route", "postgresql://secret.example/holdouts")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteLedger, "_reach", away)
        replies = [shared.post("ask", json=ASK, headers=key), shared.get("transcript", headers=key)]
    for reply in replies:
        assert (reply.status_code, reply.json()["error"]["kind"]) == (503, "busy")
        assert "with the same key" in reply.json()["error"]["message"]
        assert "secret" not in reply.text
    assert shared.post("ask", json=ASK, headers=key).json()["cached"]


def test_a_holdout_that_needs_no_token_needs_none_while_it_is_away(
    shared: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    authenticator = shared.app.state.service.authenticator
    monkeypatch.setattr(authenticator, "_open", True)
    monkeypatch.setattr(authenticator, "_opened", {"study"})

    def away(_: SqliteLedger) -> None:
        raise ConnectionResetError("no route")

    monkeypatch.setattr(SqliteLedger, "_reach", away)
    reply = shared.post("ask", None, json=ASK)
    assert (reply.status_code, reply.json()["error"]["kind"]) == (503, "busy")
    authenticator._opened.clear()  # it needed one when that could last be read
    assert shared.post("ask", None, json=ASK).status_code == 401


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (RuntimeError("row 17 is 4711"), 500, "internal"),
        (OSError(errno.EACCES, "row 17 is 4711"), 500, "internal"),
        (OSError(errno.ENOSPC, "row 17 is 4711"), 503, "busy"),
        (OSError(errno.EMFILE, "row 17 is 4711"), 503, "busy"),
        (MemoryError("row 17 is 4711"), 503, "busy"),
        (Damaged("ledger.sqlite", "its digest", "another", "restore"), 500, "damaged"),
        (Unavailable("Evaluating", "a disk", "none", "look"), 500, "unavailable"),
        (TimeoutError("row 17 is 4711"), 503, "busy"),
        (ConnectionResetError("row 17 is 4711"), 503, "busy"),
        (InterruptedError("row 17 is 4711"), 503, "busy"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else str(each),
)
def test_one_body_and_one_line_for_what_nobody_asked_for(
    study: Study,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    status: int,
    kind: str,
) -> None:
    def broken(_: SqliteLedger) -> None:
        raise error

    monkeypatch.setattr(logging.getLogger("holdfast.server"), "propagate", True)
    caplog.set_level(logging.INFO, "holdfast.server")
    monkeypatch.setattr(SqliteLedger, "_reach", broken)
    reply = study.post("ask", json=ASK)
    assert (reply.status_code, reply.json()["error"]["kind"]) == (status, kind)
    assert "4711" not in reply.text
    assert "digest" not in reply.text
    lines = {each.getMessage(): each.facts for each in caplog.records}  # type: ignore[attr-defined]
    assert lines["holdout away"]["holdout"] == "study"
    for facts in lines.values():
        assert facts["error"].startswith(type(error).__name__)
        assert "4711" not in json.dumps(facts)
        if isinstance(error, Damaged | Unavailable):  # Holdfast's own words, which hold no row
            assert facts["reason"] == str(error)
        elif isinstance(error, OSError) and error.errno is not None:
            assert facts["reason"] == errno.errorcode[error.errno]


def test_what_the_machine_does_to_a_question_is_no_bad_question(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was charged first, and asked again it is charged again: nothing may say otherwise."""
    key = {"Idempotency-Key": "once"}

    def left() -> Any:
        return study.get("status").json()["sets"][0]["spent"]

    def broken(*_: Any, **__: Any) -> NoReturn:
        raise Unavailable("Evaluating SQL", "a disk", "there is none", "Look at the machine.")

    before = left()
    with monkeypatch.context() as patch:
        patch.setattr(SqlEngine, "values", broken)
        reply = study.post("ask", json=ASK, headers=key)
    assert (reply.status_code, reply.json()["error"]["kind"]) == (500, "unavailable")
    assert "Whatever was charged stays charged." in reply.json()["error"]["message"]
    charged = left() - before
    assert charged > 0
    assert study.post("ask", json=ASK, headers=key).status_code == 200
    assert left() - before == pytest.approx(2 * charged)
