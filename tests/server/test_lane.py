"""The lane changes nothing but the time that a question takes: with it and without it all is said
in the same words, and only what is plain takes it."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from holdfast.server import routes
from holdfast.server.middleware import Lane
from holdfast.server.service import Rates
from tests.server.conftest import auth

BASE = "/api/holdouts/study"
ASK = b'{"estimator": "avg(x)", "grid": "0:7:1"}'
JSON = ("Content-Type", "application/json")
KEY = "Idempotency-Key"

Sent = tuple[str, bytes, list[tuple[str, str]]]

PLAIN: dict[str, Sent] = {
    "ask": ("ask", ASK, [JSON]),
    "key": ("ask", ASK, [JSON, (KEY, "k-1")]),
    "list": ("ask", b'{"estimator": "avg(x)", "grid": [0, 1.5, 7e0]}', [JSON]),
    "interval": ("interval", b'{"estimator": "median(x)", "grid": "0:7:1"}', [JSON]),
    "verify": ("verify", b'{"estimator": "avg(x)", "guess": 3}', [JSON]),
    "UTF-16": ("ask", ASK.decode().encode("utf-16"), [JSON]),
    "no such part": ("mean", b'{"term": "x > 3", "by": "nothing"}', [JSON]),
    "no such column": ("ask", b'{"estimator": "avg(nothing)", "grid": "0:7:1"}', [JSON]),
    "bad grid": ("ask", b'{"estimator": "avg(x)", "grid": "7:0:1"}', [JSON]),
}
OTHER: dict[str, Sent] = {
    "key twice": ("ask", ASK, [JSON, (KEY, "k-1"), (KEY, "k-2")]),
    "bad key": ("ask", ASK, [JSON, (KEY, "a key")]),
    "empty key": ("ask", ASK, [JSON, (KEY, "")]),
    "no type": ("ask", ASK, []),
    "text": ("ask", ASK, [("Content-Type", "text/plain")]),
    "charset": ("ask", ASK, [("Content-Type", "application/json; charset=utf-8")]),
    "two types": ("ask", ASK, [JSON, JSON]),
    "nothing": ("ask", b"", [JSON]),
    "no JSON": ("ask", b'{"estimator": ', [JSON]),
    "a list": ("ask", b"[]", [JSON]),
    "deep": ("ask", b"[" * 60_000, [JSON]),
    "half a character": ("ask", rb'{"estimator": "avg(x) \ud800", "grid": "0:7:1"}', [JSON]),
    "word too many": ("ask", b'{"estimator": "avg(x)", "more": 1}', [JSON]),
    "word missing": ("verify", b'{"estimator": "avg(x)"}', [JSON]),
    "NaN": ("verify", b'{"estimator": "avg(x)", "guess": NaN}', [JSON]),
    "huge": ("verify", b'{"estimator": "avg(x)", "guess": 1' + b"0" * 400 + b"}", [JSON]),
    "bad name": ("../study!/ask", ASK, [JSON]),
    "no verb": ("tell", ASK, [JSON]),
    "slash": ("ask/", ASK, [JSON]),
}


def told(client: TestClient, sent: Sent, token: str | None) -> tuple[Any, ...]:
    """All that is said to a request, but for its number."""
    verb, body, headers = sent
    more = list(auth(token).items())
    got = client.post(f"{BASE}/{verb}", content=body, headers=[*headers, *more])
    said = got.json()
    if "error" in said:
        assert said["error"].pop("request") == got.headers["x-request-id"]
    kept = {name: value for name, value in got.headers.items() if name != "x-request-id"}
    return got.status_code, kept, said, "error" in said or got.content


@pytest.mark.parametrize("role", ["analyst", "viewer", None])
def test_all_is_said_in_the_same_words(
    client: TestClient,
    tokens: dict[str, str],
    role: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token = None if role is None else tokens[role]
    app: Any = client.app
    app.state.service._failures = Rates(1e6, 10**6)  # whoever has no token may try again
    every = {**PLAIN, **OTHER}
    for sent in every.values():  # what can be answered is then known, and free
        told(client, sent, token)
    with_it = {name: told(client, sent, token) for name, sent in every.items()}
    monkeypatch.setattr("holdfast.server.middleware._ADDRESS", re.compile("(?!)"))
    assert {name: told(client, sent, token) for name, sent in every.items()} == with_it
    statuses = {status for status, *_ in with_it.values()}
    assert (200 in statuses) == (role == "analyst")


async def _takes_the_lane(sent: Sent, pieces: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the app behind the lane is not asked; if it is, it gets the body as it was sent."""
    verb, body, headers = sent
    size = len(body) // pieces + 1
    parts = [body[i : i + size] for i in range(0, len(body), size)] or [b""]
    coming = iter(parts)
    left = len(parts)
    seen: list[bytes] = []
    answered: list[object] = []

    async def receive() -> Any:
        nonlocal left
        left -= 1
        return {"type": "http.request", "body": next(coming), "more_body": left > 0}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            message = await receive()
            seen.append(message["body"])
            more = message["more_body"]

    async def send(message: Any) -> None:
        answered.append(message)

    async def answer(request: Any, verb: str, words: Any, key: str | None) -> dict[str, Any]:
        return {"said": words.model_dump(exclude_none=True), "key": key}

    monkeypatch.setattr(routes, "answer", answer)
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"{BASE}/{verb}",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
    }
    await Lane(app)(scope, receive, send)
    assert bool(seen) != bool(answered)
    assert not seen or b"".join(seen) == body
    if answered:
        message: Any = answered[-1]
        said = json.loads(message["body"])
        assert said["said"].items() >= json.loads(body).items()
        assert said["key"] == dict(headers).get(KEY)
    return bool(answered)


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("name", [*PLAIN, *OTHER])
def test_only_what_is_plain_takes_it(
    name: str, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {**PLAIN, **OTHER}[name]
    assert asyncio.run(_takes_the_lane(sent, pieces, monkeypatch)) == (name in PLAIN)


def test_who_leaves_before_the_end_has_not_asked() -> None:
    """What has come so far may be a whole question, and is not the one that was to be sent."""
    sent = [{"type": "http.request", "body": ASK, "more_body": True}, {"type": "http.disconnect"}]
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.extend([await receive(), await receive()])

    async def visit() -> None:
        coming = iter(sent)

        async def receive() -> Any:
            return next(coming)

        async def send(message: Any) -> None:
            raise AssertionError("nothing was asked")

        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": f"{BASE}/ask", "headers": headers}
        await Lane(app)(scope, receive, send)

    asyncio.run(visit())
    assert seen == sent
