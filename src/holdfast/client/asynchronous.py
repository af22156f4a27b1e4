"""`AsyncClient`: what `Client` does, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from holdfast.client import questions, scores
from holdfast.client.address import address_of, token_for
from holdfast.client.questions import Asked
from holdfast.client.results import JobStatus
from holdfast.client.retries import Patience
from holdfast.client.signatures import as_method
from holdfast.client.steps import Outcome, Pause, Steps
from holdfast.client.talk import Talk

if TYPE_CHECKING:
    import httpx2

    from holdfast.holdout.leaderboard import Standings
    from holdfast.holdout.pricing import Price
    from holdfast.holdout.status import Status

__all__ = ["AsyncClient", "AsyncJob"]

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


def _asked(
    question: Callable[P, Asked[R]],
) -> Callable[Concatenate[AsyncClient, P], Awaitable[R]]:
    """The method that asks a question; its answer is awaited."""

    @wraps(question)
    async def method(self: AsyncClient, /, *words: P.args, **more: P.kwargs) -> R:
        return await self._run(self._talk.answer(question(*words, **more)))

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
        from holdfast.client.library import httpx_is_there

        httpx_is_there()
        from holdfast.client.transport import AsyncConnection

        address = address_of(url, holdout)
        self._talk = Talk(address, Patience(retries, patience))
        secret = token_for(address, token, insecure=insecure)
        self._connection = AsyncConnection(address, secret, timeout, transport)

    # Asking.

    ask = _asked(questions.ask)
    verify = _asked(questions.verify)
    correct = _asked(questions.correct)
    mean = _asked(questions.mean)
    interval = _asked(questions.interval)
    score = _asked(scores.score)
    gate = _asked(scores.gate)
    enter = _asked(scores.enter)

    async def price(self, verb: str, estimator: str, **words: Any) -> Price:
        """What a question would cost, asked now: nothing is drawn, and nothing charged."""
        return await self._run(self._talk.price(questions.question(verb, estimator, **words)))

    async def submit(self, verb: str, estimator: str, *words: Any, **more: Any) -> AsyncJob[Any]:
        """Ask in the background: await (await client.submit("ask", "avg(x)", grid=…)).wait()."""
        asked = questions.question(verb, estimator, *words, **more)
        return AsyncJob(self, asked, await self._run(self._talk.submit(asked)))

    # Looking back.

    async def status(self) -> Status:
        """What is spent, what is left, and what it still buys."""
        return await self._run(self._talk.status())

    async def transcript(self, after: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
        """Questions and answers as plain data, those after a row of the ledger, oldest first."""
        return await self._run(self._talk.transcript(after, limit))

    async def leaderboard(self, metric: str = "accuracy") -> Standings:
        """The best submission of every name, with the ranks that their error bars allow."""
        return await self._run(self._talk.leaderboard(metric))

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
        return f"AsyncClient({str(self._talk.address)!r})"

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

    def __init__(self, client: AsyncClient, asked: Asked[R], submitted: JobStatus) -> None:
        self._client, self._asked = client, asked
        self.id, self.verb, self.request = submitted.id, asked.verb, asked.key

    async def status(self) -> JobStatus:
        """The job as it is now."""
        return await self._client._run(self._client._talk.look(self.id))

    async def wait(self, progress: Callable[[float], object] | None = None) -> R:
        """The answer, when there is one. `progress` is told the share that is done, from 0 to 1."""
        return await self._client._run(self._client._talk.wait(self.id, self._asked, progress))

    async def cancel(self) -> JobStatus:
        """End it. What its question had cost by then stays paid."""
        return await self._client._run(self._client._talk.cancel(self.id))

    def __repr__(self) -> str:
        return f"<AsyncJob {self.id}: {self.verb}>"
