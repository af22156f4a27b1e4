"""Reception: what happens to every request before and after the app sees it.

It gets a number; a body that is too large is refused while it comes in; every response carries the
headers that keep a browser strict; what went wrong and nobody foresaw becomes an error without a
word about it; and one line of the log, and a count, say what was done.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, MutableMapping
from typing import Any, cast
from uuid import uuid4

from fastapi import Request
from pydantic import TypeAdapter
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.holdout.questions import Verb
from holdfast.server import routes
from holdfast.server.errors import Fault, fault_of, fault_response, is_news, where_raised
from holdfast.server.routes import KEY_PATTERN, NAME_PATTERN
from holdfast.server.schemas import WORDS, Words
from holdfast.server.settings import Settings, is_loopback

__all__ = [
    "PAGE_POLICY",
    "BoundedHeads",
    "Lane",
    "Reception",
]

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", PAGE_POLICY.encode("ascii")),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_NO_STORE = (b"cache-control", b"no-store")
_ASK_AGAIN = (b"cache-control", b"no-cache")  # the parts of a page are of one version
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")  # others are not counted
_LARGE = re.compile(r"/api/holdouts/[^/]+/(submissions|gate)")
_SLOWEST = 2**13  # bytes a second of a body, after the first seconds
_FIRST_SECONDS = 30.0

Done = Callable[[dict[str, Any]], None]


class Reception:
    """An ASGI app around another. `done` gets the facts of every request, without any data."""

    def __init__(self, app: ASGIApp, settings: Settings, done: Done) -> None:
        self._app, self._settings, self._done = app, settings, done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visit = _Visit(scope, receive, send, self._limit(scope))
        await visit.handle(self._app, self._settings)
        self._done(visit.facts())

    def _limit(self, scope: Scope) -> int:
        large = scope["method"] == "POST" and _LARGE.fullmatch(scope["path"])
        return self._settings.submission_limit if large else self._settings.body_limit


class _Visit:
    """One request on its way."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        self._scope, self._receive, self._send, self._limit = scope, receive, send, limit
        self.request = scope["holdfast_request"] = uuid4().hex[:16]
        self._start = time.monotonic()
        self._got = 0
        self._refused: Fault | None = None
        self._whole = False
        self._status = 0
        scope["holdfast_start"] = self._start

    async def handle(self, app: ASGIApp, settings: Settings) -> None:
        """Let the app answer, or answer for it."""
        headers = dict(self._scope["headers"])
        try:
            self._check(headers, settings)
            await app(self._scope, self.receive, self.send)
            if self._refused is not None:
                raise self._refused
        except Exception as error:
            if self._refused is None and is_news(error):  # nothing of it may be shown
                self._scope["holdfast_error"] = error
            await self._tell(self._refused or error)

    def _check(self, headers: MutableMapping[bytes, bytes], settings: Settings) -> None:
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18 or int(length) > self._limit:
            raise too_large(self._limit)
        # A page of another site can have its name lead to this machine, and then ask as if it
        # were at home. What is bound to loopback answers to its names only.
        hosts = [value for name, value in self._scope["headers"] if name == b"host"]
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if settings.loopback and not is_loopback(name):
            raise Fault("bad_question", "This server answers to localhost and 127.0.0.1 only.")

    async def _tell(self, error: BaseException) -> None:
        if self._status:  # too late: the connection is cut instead
            return
        kind, told = fault_of(error)
        response = fault_response(kind, told, self.request, getattr(error, "wait", None))
        await response(self._scope, self._receive, self._send_on)

    async def receive(self) -> Message:
        """The next piece of the body, counted."""
        if self._whole:  # what else comes is that the client has left
            return await self._receive()
        late = self._start + _FIRST_SECONDS + self._got / _SLOWEST
        try:
            async with asyncio.timeout(late - time.monotonic()):
                message = await self._receive()
        except TimeoutError:
            self._refused = Fault("bad_question", "The body came too slowly. Send it again.")
            raise
        if message["type"] == "http.request":
            self._got += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._got > self._limit:
                self._refused = too_large(self._limit)
                raise self._refused
        return message

    async def send(self, message: Message) -> None:
        """The response of the app, unless the body was refused: then it is not what it read."""
        if self._refused is None:
            await self._send_on(message)

    async def _send_on(self, message: Message) -> None:
        """The response, with the headers that every one has."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            page = self._scope["path"].startswith("/page/")
            more = [*_HEADERS, (b"x-request-id", self.request.encode("ascii"))]
            more.append(_ASK_AGAIN if page else _NO_STORE)
            known = {name for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *(pair for pair in more if pair[0] not in known),
            ]
        await self._send(message)

    def facts(self) -> dict[str, Any]:
        """What the log may say of it."""
        route, method = self._scope.get("route"), self._scope["method"]
        facts: dict[str, Any] = {
            "request": self.request,
            "method": method if method in _METHODS else "other",
            "route": getattr(route, "path", "none"),
            "status": self._status or 500,
            "seconds": round(time.monotonic() - self._start, 4),
            **self._scope.get("holdfast_facts", {}),
        }
        if "holdfast_error" in self._scope:
            facts["error"] = where_raised(self._scope["holdfast_error"])
        return facts


def too_large(limit: int) -> Fault:
    """What a body that is too large is told."""
    return Fault("too_large", f"A body here may have at most {limit:,} bytes.")


# The lane: the shortest way for questions that are well formed, which are nearly all requests.
#
# FastAPI goes through what a route declares anew for every request: a third of the work that a
# question makes in Python. So a question in its plain form is read here, and goes to the service
# at
# once. Whatever is not plain (another address, a header twice, words that are refused) the app
# gets
# as if it had not been looked at: what is allowed, what is documented and what an error says is
# declared in one place.


_ADDRESS = re.compile(rf"/api/holdouts/({NAME_PATTERN})/({'|'.join(WORDS)})")
_KEY = re.compile(KEY_PATTERN)
_ROUTES = {route.name: route for route in cast(list[Route], routes.asking_router.routes)}
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
        told = await routes.answer(Request(scope), verb, words, headers.get("idempotency-key"))
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


# Heads: the first lines of a request, bounded in size and time before anything is known of it.
#
# uvicorn bounds neither with its fast parser: one client could fill the memory with a header that
# never ends, or hold connections open by the thousand with one that never comes.


_MOST = 64 * 2**10  # bytes of address and headers
_SECONDS = 30.0  # until they are complete


class BoundedHeads(HttpToolsProtocol):
    """A connection that is closed if a request's head is too large or too slow."""

    _head: int | None = 0  # bytes of the head so far; None while there is a body or a response
    _due = 0.0  # when the head must be complete, by the clock of the loop
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)  # with what came before it in the same piece
            if self._head > _MOST and not self.transport.is_closing():
                self.send_400_response("The headers are too large.")

    def on_message_begin(self) -> None:
        self._begin()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = None
        super().on_headers_complete()

    def _begin(self) -> None:
        self._head, self._due = 0, self.loop.time() + _SECONDS

    def _watch(self) -> None:
        """Close what is late, or look again: one timer a connection, not one a request."""
        now = self.loop.time()
        if self._head is not None and self._due <= now:
            self.transport.close()
        else:
            due = now + _SECONDS if self._head is None else self._due
            self._timer = self.loop.call_at(due, self._watch)
