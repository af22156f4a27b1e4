"""Heads: the first lines of a request, bounded in size and time before anything is known of it.

uvicorn bounds neither with its fast parser: one client could fill the memory with a header that
never ends, or hold connections open by the thousand with one that never comes.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["BoundedHeads"]

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
