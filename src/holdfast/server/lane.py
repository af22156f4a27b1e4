"""The lane: the shortest way for questions that are well formed, which are nearly all requests.

FastAPI goes through what a route declares anew for every request: a third of the work that a
question makes in Python. So a question in its plain form is read here, and goes to the service at
once. Whatever is not plain (another address, a header twice, words that are refused) the app gets
as if it had not been looked at: what is allowed, what is documented and what an error says is
declared in one place.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from fastapi import Request
from pydantic import TypeAdapter
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.holdout.questions import Verb
from holdfast.server.questions import WORDS, Words
from holdfast.server.routes import asking
from holdfast.server.routes.common import KEY_PATTERN, NAME_PATTERN

__all__ = ["Lane"]

_ADDRESS = re.compile(rf"/api/holdouts/({NAME_PATTERN})/({'|'.join(WORDS)})")
_KEY = re.compile(KEY_PATTERN)
_ROUTES = {route.name: route for route in cast(list[Route], asking.router.routes)}
_NAMES = (b"content-type", b"idempotency-key")
_dumped = TypeAdapter(dict[str, Any]).dump_json  # as FastAPI does, to the byte


class Lane:
    """An ASGI app around another."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        post = scope["type"] == "http" and scope["method"] == "POST"
        found = _ADDRESS.fullmatch(scope["path"]) if post else None
        headers = None if found is None else _plain_headers(scope)
        if found is None or headers is None:
            await self._app(scope, receive, send)
            return
        messages = [await receive()]
        while messages[-1].get("more_body", False):
            messages.append(await receive())
        name, verb = found[1], cast(Verb, found[2])
        words = _words(verb, messages)
        if words is None:
            await self._app(scope, _again(messages, receive), send)
            return
        scope["path_params"], scope["route"] = {"holdout": name}, _ROUTES[verb]
        told = await asking.answer(Request(scope), verb, words, headers.get("idempotency-key"))
        await _send(send, _dumped(told))


def _plain_headers(scope: Scope) -> dict[str, str] | None:
    """The headers that matter here, if each of them is there once, and as it should be."""
    given = [(n.decode(), v.decode("latin-1")) for n, v in scope["headers"] if n in _NAMES]
    headers = dict(given)
    key = headers.get("idempotency-key")
    plain = headers.get("content-type") == "application/json" and len(headers) == len(given)
    return headers if plain and (key is None or _KEY.fullmatch(key)) else None


def _words(verb: Verb, messages: list[Message]) -> Words | None:
    """The words of a question; None if the app must say what is wrong with them."""
    if messages[-1]["type"] != "http.request":  # whoever sent it has left before its end
        return None
    try:
        return WORDS[verb].model_validate(
            json.loads(b"".join(each.get("body", b"") for each in messages))
        )
    except (ValueError, RecursionError):
        return None


def _again(messages: list[Message], receive: Receive) -> Receive:
    """What was received, from its start."""
    seen = iter(messages)

    async def receive_again() -> Message:
        message = next(seen, None)
        return await receive() if message is None else message

    return receive_again


async def _send(send: Send, body: bytes) -> None:
    length = str(len(body)).encode("ascii")
    headers = [(b"content-length", length), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
