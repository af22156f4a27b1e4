"""`Client` and `AsyncClient`: a holdout on a server, asked like one in a folder."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast
from urllib.parse import quote

from holdfast.client import wire
from holdfast.client.http import (
    Address,
    Cancelled,
    HttpRequest,
    NoReply,
    Outcome,
    Patience,
    Pause,
    Steps,
    address_of,
    persistent,
    token_for,
)
from holdfast.client.wire import (
    ClientQuestion,
    JobStatus,
    data_of,
    read_job,
    read_page,
    read_price,
    read_standings,
    read_status,
    understood,
)
from holdfast.concurrency import Closing
from holdfast.errors import InvalidInput
from holdfast.verbs import SCORES, TOP, VERBS

if TYPE_CHECKING:
    import httpx2

    from holdfast.holdout.answering import Price
    from holdfast.holdout.leaderboard import Standings
    from holdfast.holdout.state import Status

__all__ = [
    "AsyncClient",
    "AsyncJob",
    "Client",
    "ClientCore",
    "Job",
    "as_method",
]


# Signatures: a question's own, as the method that asks it has it.
#
# The questions are written down once, and asked by two clients. What `help` and an editor show of
# a
# client's method is then the signature of `Holdout`'s.


def as_method(question: Callable[..., Any], method: Callable[..., Any]) -> None:
    """Give a method the question's signature: with `self`, and the answer that it returns.

    >>> def ask(estimator: str, *, protocol: str | None = None) -> Asked[Answer]: ...
    >>> def method(self, *words, **more): ...
    >>> as_method(ask, method)
    >>> inspect.signature(method)
    <Signature (self, estimator: 'str', *, protocol: 'str | None' = None) -> 'Answer'>
    """
    own = inspect.signature(question)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    answer = str(own.return_annotation).removeprefix("Asked[").removesuffix("]")
    method.__signature__ = own.replace(  # type: ignore[attr-defined]  # inspect looks for it
        parameters=[itself, *own.parameters.values()], return_annotation=answer
    )


def verb_question(verb: str) -> Callable[..., ClientQuestion[Any]]:
    """The function that makes a verb's question, with the signature of `Holdout`'s method."""
    schema = VERBS.get(verb) or SCORES[verb]

    def question(*given: Any, **words: Any) -> ClientQuestion[Any]:
        return wire.question(verb, *given, **words)

    question.__name__, question.__qualname__, question.__doc__ = verb, verb, schema.help
    question.__signature__ = schema.signature()  # type: ignore[attr-defined]
    return question


# Conversations with a server about one holdout, as steps that a client carries out.


_NOT_FOUND = 404
_PAGE = 1000  # rows of the transcript in one reply
_FIRST_LOOK, _LONGEST_LOOK = 0.05, 2.0  # seconds between two looks at a job


class ClientCore:
    """What a client has to say, and how it takes what it hears. Nothing here is sent."""

    def __init__(self, address: Address, patience: Patience) -> None:
        self.address = address
        self._patience = patience

    # Asking.

    def answer(self, asked: ClientQuestion[R]) -> Steps[R]:
        """The answer to a question."""
        call = self._call((yield from self._path(asked.verb)), asked, key=asked.key)
        data = yield from self._data(call)
        return self._read(lambda: asked.read(data))

    def _call(self, path: str, asked: ClientQuestion[Any], **more: Any) -> HttpRequest:
        """A question as a call: of predictions, with parameters and content in place of a body."""
        content = asked.content
        if content is None:
            return HttpRequest("POST", path, body=asked.body, **more)
        return HttpRequest("POST", path, asked.parameters, None, content.data, content.kind, **more)

    def price(self, asked: ClientQuestion[Any]) -> Steps[Price]:
        """What the question would cost. Nothing is charged, so that it may be asked again."""
        if asked.content is None:
            body = {"verb": asked.verb, **asked.body}
            call = HttpRequest("POST", (yield from self._path("price")), body=body, safe=True)
        else:
            if asked.verb == "enter":  # an entry is a score with a name
                words = {key: asked.parameters[key] for key in asked.parameters if key != "name"}
                asked = replace(asked, verb="score", parameters=words)
            call = self._call((yield from self._path("price", asked.verb)), asked, safe=True)
        data = yield from self._data(call)
        return self._read(lambda: read_price(data))

    # Jobs.

    def submit(self, asked: ClientQuestion[Any]) -> Steps[JobStatus]:
        """A job that asks the question."""
        if asked.content is not None:
            hint = "Predictions are scored at once."
            raise InvalidInput("verb", asked.verb, f"one of {', '.join(VERBS)}", hint)
        body = {"verb": asked.verb, **asked.body}
        call = HttpRequest("POST", (yield from self._path("jobs")), body=body, key=asked.key)
        return (yield from self._job(call))

    def look(self, job: str) -> Steps[JobStatus]:
        """The job as it is now."""
        path = yield from self._path("jobs", job)
        return (yield from self._job(HttpRequest("GET", path, safe=True)))

    def cancel(self, job: str) -> Steps[JobStatus]:
        """End the job. What its question had cost by then stays paid."""
        path = yield from self._path("jobs", job)
        return (yield from self._job(HttpRequest("DELETE", path, safe=True)))

    def wait(
        self, job: str, asked: ClientQuestion[R], progress: Callable[[float], object] | None
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

    def _followed(self, job: str, asked: ClientQuestion[Any]) -> Steps[JobStatus]:
        """The job as it is now. A server that was restarted knows none: it is submitted again.

        Its key is the same, so that an answer that was recorded comes back, paid once.
        """
        call = HttpRequest("GET", (yield from self._path("jobs", job)), safe=True)
        reply = yield from persistent(call, self._patience, str(self.address))
        if reply.status == _NOT_FOUND:
            return (yield from self.submit(asked))
        data = data_of(reply, call, str(self.address))
        return self._read(lambda: read_job(data, call, str(self.address)))

    # Looking back.

    def status(self) -> Steps[Status]:
        """What is spent, what is left, and what it still buys."""
        data = yield from self._data(
            HttpRequest("GET", (yield from self._path("status")), safe=True)
        )
        return self._read(lambda: read_status(data, str(self.address)))

    def transcript(self, after: int, limit: int | None) -> Steps[list[dict[str, Any]]]:
        """Rows of the transcript, page by page."""
        path = yield from self._path("transcript")
        rows: list[dict[str, Any]] = []
        place: int | None = after
        while place is not None and (limit is None or len(rows) < limit):
            size = _PAGE if limit is None else min(_PAGE, limit - len(rows))
            parameters = {"after": str(place), "limit": str(size)}
            data = yield from self._data(HttpRequest("GET", path, parameters, safe=True))
            page, later = self._read(partial(read_page, data))
            rows += page
            place = later if later is not None and later > place else None  # never back
        return rows

    def leaderboard(
        self, metric: str, top: int, max_level: float | None, *, neighbours: bool, price: bool
    ) -> Steps[Standings]:
        """The best submission of every name; neighbours once compared are free, asked again."""
        place, words = ["leaderboard"], {"metric": metric}
        if neighbours or price:
            place = ["price", "neighbours"] if price else ["neighbours"]
            words |= {"top": str(top)} | (
                {} if max_level is None else {"max_level": str(max_level)}
            )
        method = "GET" if place == ["leaderboard"] else "POST"
        call = HttpRequest(method, (yield from self._path(*place)), words, safe=True)
        data = yield from self._data(call)
        return self._read(lambda: read_standings(data))

    # What all of them need.

    def _path(self, *parts: str) -> Steps[str]:
        name = yield from self._holdout()
        return "/".join(["/api/holdouts", *(quote(part, safe="") for part in (name, *parts))])

    def _holdout(self) -> Steps[str]:
        """The holdout that the address names, or the only one that can be seen."""
        if self.address.holdout is not None:
            return self.address.holdout
        data = yield from self._data(HttpRequest("GET", "/api/holdouts", safe=True))
        names = self._read(lambda: [str(each["name"]) for each in data])
        if len(names) != 1:
            allowed = f"one of {', '.join(names)}" if names else "one that your token may see"
            hint = "Name it: Client(url, holdout=…), or http(s)://HOST/holdouts/NAME."
            raise InvalidInput("holdout", None, allowed, hint)
        self.address = Address(self.address.server, names[0], self.address.loopback)
        return names[0]

    def _job(self, call: HttpRequest) -> Steps[JobStatus]:
        data = yield from self._data(call)
        return self._read(lambda: read_job(data, call, str(self.address)))

    def _data(self, call: HttpRequest) -> Steps[Any]:
        url = str(self.address)
        return data_of((yield from persistent(call, self._patience, url)), call, url)

    def _read(self, read: Callable[[], T]) -> T:
        return understood(read, str(self.address))


T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


def _asked(question: Callable[P, ClientQuestion[R]]) -> Callable[Concatenate[Client, P], R]:
    """The method that asks a question and waits for its answer."""

    @wraps(question)
    def method(self: Client, /, *words: P.args, **more: P.kwargs) -> R:
        return self._run(self._core.answer(question(*words, **more)))

    as_method(question, method)
    return method


class Client(Closing):
    """A holdout on a server: the questions, signatures and answers of `holdfast.Holdout`.

    `url` names the server, and may name the holdout: http://127.0.0.1:8000/holdouts/flights. The
    token may come from the variable HOLDFAST_TOKEN instead. Every question has a key, `request` or
    a new one, and is repeated with it while no reply comes: at most `retries` times, each waiting
    up to `timeout` seconds, and for about `patience` seconds in all. It is paid for once. `on_lost`
    may be set to what is told the reason, each time that no reply came and it is tried again.

    Threads may share a client.
    """

    on_lost: Callable[[str], object] | None

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        holdout: str | None = None,
        timeout: float = 60.0,
        retries: int = 8,
        patience: float = 300.0,
        insecure: bool = False,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        from holdfast.client.wire import httpx_is_there

        httpx_is_there()
        from holdfast.client.http import Connection

        address = address_of(url, holdout)
        self._core = ClientCore(address, Patience(retries, patience))
        secret = token_for(address, token, insecure=insecure)
        self._connection = Connection(address, secret, timeout, transport)
        self.on_lost = None

    # Asking.

    ask = _asked(verb_question("ask"))
    verify = _asked(verb_question("verify"))
    correct = _asked(verb_question("correct"))
    mean = _asked(verb_question("mean"))
    interval = _asked(verb_question("interval"))
    score = _asked(verb_question("score"))
    compare = _asked(verb_question("compare"))
    gate = _asked(verb_question("gate"))
    best = _asked(verb_question("best"))
    scores = _asked(verb_question("scores"))
    enter = _asked(verb_question("enter"))

    def price(self, verb: str, estimator: object, *given: Any, **words: Any) -> Price:
        """What a question would cost, asked now: nothing is drawn, told or charged."""
        return self._run(self._core.price(wire.question(verb, estimator, *given, **words)))

    def submit(self, verb: str, estimator: str, *words: Any, **more: Any) -> Job[Any]:
        """Ask in the background: client.submit("ask", "avg(x)", grid=…).wait()."""
        asked = wire.question(verb, estimator, *words, **more)
        return Job(self, asked, self._run(self._core.submit(asked)))

    # Looking back.

    def status(self) -> Status:
        """What is spent, what is left, and what it still buys."""
        return self._run(self._core.status())

    def transcript(self, after: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
        """Questions and answers as plain data, those after a row of the ledger, oldest first."""
        return self._run(self._core.transcript(after, limit))

    def leaderboard(
        self,
        metric: str = "accuracy",
        *,
        neighbours: bool = False,
        top: int = TOP,
        max_level: float | None = None,
        price: bool = False,
    ) -> Standings:
        """The best submission of every name, with the ranks that their error bars allow.

        `neighbours` compares each of the first `top` entries with the next; `price` asks nothing.
        """
        asked = {"neighbours": neighbours, "price": price}
        return self._run(self._core.leaderboard(metric, top, max_level, **asked))

    def close(self) -> None:
        """Close all connections."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"Client({str(self._core.address)!r})"

    def _run(self, steps: Steps[T]) -> T:
        """Carry out a conversation."""
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Pause):
                if isinstance(outcome, NoReply) and self.on_lost is not None:
                    self.on_lost(outcome.reason)
                time.sleep(step.seconds)
                outcome = None
            else:
                outcome = self._connection.send(step)


class Job(Generic[R]):
    """A question that is answered in the background; `request` is its key."""

    def __init__(self, client: Client, asked: ClientQuestion[R], submitted: JobStatus) -> None:
        self._client, self._asked = client, asked
        self.id, self.verb, self.request = submitted.id, asked.verb, asked.key

    def status(self) -> JobStatus:
        """The job as it is now."""
        return self._client._run(self._client._core.look(self.id))

    def wait(self, progress: Callable[[float], object] | None = None) -> R:
        """The answer, when there is one. `progress` is told the share that is done, from 0 to 1."""
        return self._client._run(self._client._core.wait(self.id, self._asked, progress))

    def cancel(self) -> JobStatus:
        """End it. What its question had cost by then stays paid."""
        return self._client._run(self._client._core.cancel(self.id))

    def __repr__(self) -> str:
        return f"<Job {self.id}: {self.verb}>"


# `AsyncClient`: what `Client` does, awaited.


def _asynchronous_asked(
    question: Callable[P, ClientQuestion[R]],
) -> Callable[Concatenate[AsyncClient, P], Awaitable[R]]:
    """The method that asks a question; its answer is awaited."""

    @wraps(question)
    async def method(self: AsyncClient, /, *words: P.args, **more: P.kwargs) -> R:
        return await self._run(self._core.answer(question(*words, **more)))

    as_method(question, method)
    return method


class AsyncClient:
    """A holdout on a server, for programs that do something else while they wait.

    The arguments are those of `Client`.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        holdout: str | None = None,
        timeout: float = 60.0,
        retries: int = 8,
        patience: float = 300.0,
        insecure: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        from holdfast.client.wire import httpx_is_there

        httpx_is_there()
        from holdfast.client.http import AsyncConnection

        address = address_of(url, holdout)
        self._core = ClientCore(address, Patience(retries, patience))
        secret = token_for(address, token, insecure=insecure)
        self._connection = AsyncConnection(address, secret, timeout, transport)

    # Asking.

    ask = _asynchronous_asked(verb_question("ask"))
    verify = _asynchronous_asked(verb_question("verify"))
    correct = _asynchronous_asked(verb_question("correct"))
    mean = _asynchronous_asked(verb_question("mean"))
    interval = _asynchronous_asked(verb_question("interval"))
    score = _asynchronous_asked(verb_question("score"))
    compare = _asynchronous_asked(verb_question("compare"))
    gate = _asynchronous_asked(verb_question("gate"))
    best = _asynchronous_asked(verb_question("best"))
    scores = _asynchronous_asked(verb_question("scores"))
    enter = _asynchronous_asked(verb_question("enter"))

    async def price(self, verb: str, estimator: object, *given: Any, **words: Any) -> Price:
        """What a question would cost, asked now: nothing is drawn, told or charged."""
        return await self._run(self._core.price(wire.question(verb, estimator, *given, **words)))

    async def submit(self, verb: str, estimator: str, *words: Any, **more: Any) -> AsyncJob[Any]:
        """Ask in the background: await (await client.submit("ask", "avg(x)", grid=…)).wait()."""
        asked = wire.question(verb, estimator, *words, **more)
        return AsyncJob(self, asked, await self._run(self._core.submit(asked)))

    # Looking back.

    async def status(self) -> Status:
        """What is spent, what is left, and what it still buys."""
        return await self._run(self._core.status())

    async def transcript(self, after: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
        """Questions and answers as plain data, those after a row of the ledger, oldest first."""
        return await self._run(self._core.transcript(after, limit))

    async def leaderboard(
        self,
        metric: str = "accuracy",
        *,
        neighbours: bool = False,
        top: int = TOP,
        max_level: float | None = None,
        price: bool = False,
    ) -> Standings:
        """The best submission of every name, with the ranks that their error bars allow.

        `neighbours` compares each of the first `top` entries with the next; `price` asks nothing.
        """
        asked = {"neighbours": neighbours, "price": price}
        return await self._run(self._core.leaderboard(metric, top, max_level, **asked))

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({str(self._core.address)!r})"

    async def _run(self, steps: Steps[T]) -> T:
        """Carry out a conversation."""
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                outcome = None
            else:
                outcome = await self._connection.send(step)


class AsyncJob(Generic[R]):
    """A question that is answered in the background; `request` is its key."""

    def __init__(self, client: AsyncClient, asked: ClientQuestion[R], submitted: JobStatus) -> None:
        self._client, self._asked = client, asked
        self.id, self.verb, self.request = submitted.id, asked.verb, asked.key

    async def status(self) -> JobStatus:
        """The job as it is now."""
        return await self._client._run(self._client._core.look(self.id))

    async def wait(self, progress: Callable[[float], object] | None = None) -> R:
        """The answer, when there is one. `progress` is told the share that is done, from 0 to 1."""
        return await self._client._run(self._client._core.wait(self.id, self._asked, progress))

    async def cancel(self) -> JobStatus:
        """End it. What its question had cost by then stays paid."""
        return await self._client._run(self._client._core.cancel(self.id))

    def __repr__(self) -> str:
        return f"<AsyncJob {self.id}: {self.verb}>"
