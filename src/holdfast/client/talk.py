"""Conversations with a server about one holdout, as steps that a client carries out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote

from holdfast.client.address import Address
from holdfast.client.errors import Cancelled
from holdfast.client.questions import Asked
from holdfast.client.replies import data_of
from holdfast.client.results import (
    JobStatus,
    read_job,
    read_page,
    read_price,
    read_standings,
    read_status,
    understood,
)
from holdfast.client.retries import Patience, persistent
from holdfast.client.steps import Call, Pause, Steps
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.holdout.leaderboard import Standings
    from holdfast.holdout.pricing import Price
    from holdfast.holdout.status import Status

__all__ = ["Talk"]

T = TypeVar("T")
R = TypeVar("R")

_NOT_FOUND = 404
_PAGE = 1000  # rows of the transcript in one reply
_FIRST_LOOK, _LONGEST_LOOK = 0.05, 2.0  # seconds between two looks at a job


class Talk:
    """What a client has to say, and how it takes what it hears. Nothing here is sent."""

    def __init__(self, address: Address, patience: Patience) -> None:
        self.address = address
        self._patience = patience

    # Asking.

    def answer(self, asked: Asked[R]) -> Steps[R]:
        """The answer to a question."""
        content = asked.content
        call = Call(
            "POST",
            (yield from self._path(asked.verb)),
            asked.parameters,
            asked.body if content is None else None,
            None if content is None else content.data,
            None if content is None else content.kind,
            asked.key,
        )
        data = yield from self._data(call)
        return self._read(lambda: asked.read(data))

    def price(self, asked: Asked[Any]) -> Steps[Price]:
        """What the question would cost. Nothing is charged, so that it may be asked again."""
        body = {"verb": asked.verb, **asked.body}
        call = Call("POST", (yield from self._path("price")), body=body, safe=True)
        data = yield from self._data(call)
        return self._read(lambda: read_price(data))

    # Jobs.

    def submit(self, asked: Asked[Any]) -> Steps[JobStatus]:
        """A job that asks the question."""
        body = {"verb": asked.verb, **asked.body}
        call = Call("POST", (yield from self._path("jobs")), body=body, key=asked.key)
        return (yield from self._job(call))

    def look(self, job: str) -> Steps[JobStatus]:
        """The job as it is now."""
        path = yield from self._path("jobs", job)
        return (yield from self._job(Call("GET", path, safe=True)))

    def cancel(self, job: str) -> Steps[JobStatus]:
        """End the job. What its question had cost by then stays paid."""
        path = yield from self._path("jobs", job)
        return (yield from self._job(Call("DELETE", path, safe=True)))

    def wait(
        self, job: str, asked: Asked[R], progress: Callable[[float], object] | None
    ) -> Steps[R]:
        """The answer of a job, when it has one; until then its progress."""
        pause, told = _FIRST_LOOK, None
        while True:
            now = yield from self._followed(job, asked)
            job = now.id
            if progress is not None and now.progress not in (None, told):
                progress(now.progress)
                told = now.progress
            if now.error is not None:
                raise now.error
            if now.result is not None:
                return cast(R, now.result)  # that of the same question
            if now.ended:
                raise Cancelled(job, "it has no answer.")
            yield Pause(pause)
            pause = min(2 * pause, _LONGEST_LOOK)

    def _followed(self, job: str, asked: Asked[Any]) -> Steps[JobStatus]:
        """The job as it is now. A server that was restarted knows none: it is submitted again.

        Its key is the same, so that an answer that was recorded comes back, paid once.
        """
        call = Call("GET", (yield from self._path("jobs", job)), safe=True)
        reply = yield from persistent(call, self._patience, str(self.address))
        if reply.status == _NOT_FOUND:
            return (yield from self.submit(asked))
        data = data_of(reply, call, str(self.address))
        return self._read(lambda: read_job(data, call, str(self.address)))

    # Looking back.

    def status(self) -> Steps[Status]:
        """What is spent, what is left, and what it still buys."""
        data = yield from self._data(Call("GET", (yield from self._path("status")), safe=True))
        return self._read(lambda: read_status(data, str(self.address)))

    def transcript(self, after: int, limit: int | None) -> Steps[list[dict[str, Any]]]:
        """Rows of the transcript, page by page."""
        path = yield from self._path("transcript")
        rows: list[dict[str, Any]] = []
        place: int | None = after
        while place is not None and (limit is None or len(rows) < limit):
            size = _PAGE if limit is None else min(_PAGE, limit - len(rows))
            parameters = {"after": str(place), "limit": str(size)}
            data = yield from self._data(Call("GET", path, parameters, safe=True))
            page, later = self._read(partial(read_page, data))
            rows += page
            place = later if later is not None and later > place else None  # never back
        return rows

    def leaderboard(self, metric: str) -> Steps[Standings]:
        """The best submission of every name."""
        path = yield from self._path("leaderboard")
        data = yield from self._data(Call("GET", path, {"metric": metric}, safe=True))
        return self._read(lambda: read_standings(data))

    # What all of them need.

    def _path(self, *parts: str) -> Steps[str]:
        name = yield from self._holdout()
        return "/".join(["/api/holdouts", *(quote(part, safe="") for part in (name, *parts))])

    def _holdout(self) -> Steps[str]:
        """The holdout that the address names, or the only one that can be seen."""
        if self.address.holdout is not None:
            return self.address.holdout
        data = yield from self._data(Call("GET", "/api/holdouts", safe=True))
        names = self._read(lambda: [str(each["name"]) for each in data])
        if len(names) != 1:
            allowed = f"one of {', '.join(names)}" if names else "one that your token may see"
            hint = "Name it: Client(url, holdout=…), or http(s)://HOST/holdouts/NAME."
            raise InvalidInput("holdout", None, allowed, hint)
        self.address = Address(self.address.server, names[0], self.address.loopback)
        return names[0]

    def _job(self, call: Call) -> Steps[JobStatus]:
        data = yield from self._data(call)
        return self._read(lambda: read_job(data, call, str(self.address)))

    def _data(self, call: Call) -> Steps[Any]:
        url = str(self.address)
        return data_of((yield from persistent(call, self._patience, url)), call, url)

    def _read(self, read: Callable[[], T]) -> T:
        return understood(read, str(self.address))
