"""`Client`: a holdout on a server, asked like one in a folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from holdfast.client import questions, scores
from holdfast.client.address import address_of, token_for
from holdfast.client.questions import Asked
from holdfast.client.results import JobStatus
from holdfast.client.retries import Patience
from holdfast.client.signatures import as_method
from holdfast.client.steps import Outcome, Pause, Steps
from holdfast.client.talk import Talk
from holdfast.concurrency import Closing

if TYPE_CHECKING:
    import httpx2

    from holdfast.holdout.leaderboard import Standings
    from holdfast.holdout.pricing import Price
    from holdfast.holdout.status import Status

__all__ = ["Client", "Job"]

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


def _asked(question: Callable[P, Asked[R]]) -> Callable[Concatenate[Client, P], R]:
    """The method that asks a question and waits for its answer."""

    @wraps(question)
    def method(self: Client, /, *words: P.args, **more: P.kwargs) -> R:
        return self._run(self._talk.answer(question(*words, **more)))

    as_method(question, method)
    return method


class Client(Closing):
    """A holdout on a server: the questions, signatures and answers of `holdfast.Holdout`.

    `url` names the server, and may name the holdout: http://127.0.0.1:8000/holdouts/flights. The
    token may come from the variable HOLDFAST_TOKEN instead. Every question has a key, `request` or
    a new one, and is repeated with it while no reply comes: at most `retries` times, each waiting
    up to `timeout` seconds, and for about `patience` seconds in all. It is paid for once.

    Threads may share a client.
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
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        from holdfast.client.library import httpx_is_there

        httpx_is_there()
        from holdfast.client.transport import Connection

        address = address_of(url, holdout)
        self._talk = Talk(address, Patience(retries, patience))
        secret = token_for(address, token, insecure=insecure)
        self._connection = Connection(address, secret, timeout, transport)

    # Asking.

    ask = _asked(questions.ask)
    verify = _asked(questions.verify)
    correct = _asked(questions.correct)
    mean = _asked(questions.mean)
    interval = _asked(questions.interval)
    score = _asked(scores.score)
    gate = _asked(scores.gate)
    enter = _asked(scores.enter)

    def price(self, verb: str, estimator: str, **words: Any) -> Price:
        """What a question would cost, asked now: nothing is drawn, and nothing charged."""
        return self._run(self._talk.price(questions.question(verb, estimator, **words)))

    def submit(self, verb: str, estimator: str, *words: Any, **more: Any) -> Job[Any]:
        """Ask in the background: client.submit("ask", "avg(x)", grid=…).wait()."""
        asked = questions.question(verb, estimator, *words, **more)
        return Job(self, asked, self._run(self._talk.submit(asked)))

    # Looking back.

    def status(self) -> Status:
        """What is spent, what is left, and what it still buys."""
        return self._run(self._talk.status())

    def transcript(self, after: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
        """Questions and answers as plain data, those after a row of the ledger, oldest first."""
        return self._run(self._talk.transcript(after, limit))

    def leaderboard(self, metric: str = "accuracy") -> Standings:
        """The best submission of every name, with the ranks that their error bars allow."""
        return self._run(self._talk.leaderboard(metric))

    def close(self) -> None:
        """Close all connections."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"Client({str(self._talk.address)!r})"

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
                time.sleep(step.seconds)
                outcome = None
            else:
                outcome = self._connection.send(step)


class Job(Generic[R]):
    """A question that is answered in the background; `request` is its key."""

    def __init__(self, client: Client, asked: Asked[R], submitted: JobStatus) -> None:
        self._client, self._asked = client, asked
        self.id, self.verb, self.request = submitted.id, asked.verb, asked.key

    def status(self) -> JobStatus:
        """The job as it is now."""
        return self._client._run(self._client._talk.look(self.id))

    def wait(self, progress: Callable[[float], object] | None = None) -> R:
        """The answer, when there is one. `progress` is told the share that is done, from 0 to 1."""
        return self._client._run(self._client._talk.wait(self.id, self._asked, progress))

    def cancel(self) -> JobStatus:
        """End it. What its question had cost by then stays paid."""
        return self._client._run(self._client._talk.cancel(self.id))

    def __repr__(self) -> str:
        return f"<Job {self.id}: {self.verb}>"
