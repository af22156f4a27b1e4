"""What happens to every request before and after the app sees it.

It gets a number; a body that is too large or too slow is refused while it comes in; every response
carries the headers that keep a browser strict; what nobody foresaw becomes an error without a word
about it; and one line of the log, and a count, say what was done.
"""

from __future__ import annotations

import asyncio
import re
import resource
import time
from typing import Any
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.server.errors import (
    HttpError,
    error_response,
    facts_of,
    is_news,
    told_of,
    too_large,
)
from holdfast.server.monitoring import log_request
from holdfast.server.service import Service
from holdfast.server.settings import Settings, is_loopback
from holdfast.verbs import SCORES

__all__ = ["PAGE_POLICY", "HeaderLimits", "Requests"]

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
_TLS = (b"strict-transport-security", b"max-age=31536000")
_NO_STORE = (b"cache-control", b"no-store")
_ASK_AGAIN = (b"cache-control", b"no-cache")  # the parts of a page are of one version
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")  # others are not counted
_HOLDOUT = re.compile(rf"/api/holdouts/([^/]+)(/(price/)?({'|'.join(SCORES)})$)?")
_SLOWEST = 2**16  # bytes a second of a body, after the first seconds
_FIRST_SECONDS = 30.0


class Requests:
    """An ASGI app around another."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        settings, counts = self._service.settings, self._service.counts
        found = _HOLDOUT.match(scope["path"])
        served = None if found is None else self._service.holdouts.get(found[1])
        holdout = "" if served is None else served.name
        large = found is not None and found[2] and scope["method"] == "POST"
        limit = settings.submission_limit if large else settings.body_limit
        scope["holdfast_limit"] = limit
        request = _Request(scope, receive, send, limit)
        number = counts.begin(holdout)
        try:
            await request.handle(self._app, settings)
        finally:
            facts = request.facts()
            if holdout:
                facts["holdout"] = holdout
            counts.end(number, holdout, facts)
            log_request(facts)


class _Request:
    """One request on its way."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        self._scope, self._receive, self._send, self._limit = scope, receive, send, limit
        self.id = scope["holdfast_request"] = uuid4().hex[:16]
        self._start = time.monotonic()
        self._got = 0
        self._refused: HttpError | None = None
        self._whole = False
        self._status = 0
        self._more: tuple[tuple[bytes, bytes], ...] = _HEADERS

    async def handle(self, app: ASGIApp, settings: Settings) -> None:
        """Let the app answer, or answer for it."""
        if settings.tls_cert is not None:
            self._more = (*_HEADERS, _TLS)
        try:
            self._check(settings)
            await app(self._scope, self.receive, self.send)
            if self._refused is not None:
                raise self._refused
        except Exception as error:
            told = self._refused or error
            if is_news(told):  # nothing of it may be shown
                self._scope["holdfast_error"] = facts_of(told)
            if not self._status:  # else it is too late, and the connection is cut instead
                kind, facts = told_of(told)
                response = error_response(kind, facts, self.id, getattr(told, "wait", None))
                await response(self._scope, self._receive, self._send_on)

    def _check(self, settings: Settings) -> None:
        headers = self._scope["headers"]
        length = dict(headers).get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18 or int(length) > self._limit:
            raise too_large(self._limit)
        # A page of another site can have its name lead to this machine, and then ask as if it
        # were at home. What is bound to loopback answers to its names only.
        hosts = [value for name, value in headers if name == b"host"]
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if settings.loopback and not is_loopback(name):
            raise HttpError("bad_question", "This server answers to localhost and 127.0.0.1 only.")

    async def receive(self) -> Message:
        """The next piece of the body, counted."""
        if self._whole:  # what else comes is that the client has left
            return await self._receive()
        late = self._start + _FIRST_SECONDS + self._got / _SLOWEST
        try:
            async with asyncio.timeout(late - time.monotonic()):
                message = await self._receive()
        except TimeoutError:
            self._refused = HttpError("bad_question", "The body came too slowly. Send it again.")
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
            more = [*self._more, (b"x-request-id", self.id.encode("ascii"))]
            more.append(_ASK_AGAIN if page else _NO_STORE)
            known = {name for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *(pair for pair in more if pair[0] not in known),
            ]
        await self._send(message)

    def facts(self) -> dict[str, Any]:
        """What the log may say of it."""
        route, method, peer = (self._scope.get(name) for name in ("route", "method", "client"))
        facts: dict[str, Any] = {
            "request": self.id,
            "method": method if method in _METHODS else "other",
            "route": getattr(route, "path", "none"),
            "status": self._status or 500,
            "seconds": round(time.monotonic() - self._start, 4),
            **self._scope.get("holdfast_facts", {}),
        }
        if self._status in (401, 429) and peer:
            facts["client"] = peer[0]
        return {**facts, **self._scope.get("holdfast_error", {})}


# The first lines of a request, bounded in size and time before anything is known of it.
#
# uvicorn bounds neither with its fast parser: one client could fill the memory with a header that
# never ends, or hold connections open by the thousand with one that never comes.


_MOST = 64 * 2**10  # bytes of address and headers
_SECONDS = 30.0  # until they are complete
_SPARE = 200  # descriptors that are not for connections


class HeaderLimits(HttpToolsProtocol):
    """A connection that is closed if a request's head is too large or too slow.

    Or at once, if there are so many that nothing else could be opened.
    """

    _head: int | None = 0  # bytes of the head so far; None while there is a body or a response
    _due = 0.0  # when the head must be complete, by the clock of the loop
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if len(self.connections) > max(descriptors - _SPARE, descriptors // 2):
            transport.abort()
            return
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
