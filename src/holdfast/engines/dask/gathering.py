"""One question on a cluster: what becomes of its tasks when workers die, or are not there.

a worker dies             Dask runs its tasks elsewhere: the values are the same
workers die of a task     its blocks are asked one at a time; one that still ends workers has failed
workers die without one   an error: no block has failed if a control that does nothing ends too
a task does not end       an error: the engine on the worker would have ended it
no worker, no scheduler   an error, after as many seconds as the user has patience
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from holdfast.engines.dask.connection import Connection, Task
from holdfast.engines.dask.questions import Question, versions
from holdfast.engines.dask.replies import Numbers, numbers_of
from holdfast.engines.dask.rounds import TICK, Round, Tick
from holdfast.engines.dask.tasks import control
from holdfast.engines.dask.trials import TRIAL_BLOCKS
from holdfast.engines.source import Limits

__all__ = ["Gathering", "Piece", "longest"]

_TRIES = 3  # of one block, while other tasks of this process may have ended its worker
_SLACK = 1200.0  # for the starts of processes, and a file that comes from afar


class Piece(NamedTuple):
    """The blocks start, …, stop − 1, all of one shard."""

    start: int
    stop: int


def longest(limits: Limits, blocks: int) -> float:
    """The seconds that a task can take if its engine keeps to its limits."""
    alone = 4 * blocks * (limits.block_seconds + 120.0)
    return limits.seconds * (1 + blocks // 1024) + alone + _SLACK


class Gathering:
    """One question, asked of pieces of a store on a cluster."""

    def __init__(self, connection: Connection, question: Question, task: Task) -> None:
        self._connection, self._question, self._task = connection, question, task
        self._versions = versions(question.packages)
        self._limits = question.own_limits()

    def answers(
        self, pieces: Sequence[Piece], tick: Tick
    ) -> Generator[tuple[Piece, Numbers | None]]:
        """Every piece with its numbers, as they come; None for blocks that end their workers."""
        suspects = []
        with closing(self._run(self._round(pieces, tick), pieces)) as found:
            for piece, numbers in found:
                if numbers is None:
                    suspects.append(piece)
                else:
                    yield piece, numbers
        for suspect in suspects:
            for block in range(suspect.start, suspect.stop):
                alone = Piece(block, block + 1)
                yield alone, self._alone(alone, tick)

    def _alone(self, piece: Piece, tick: Tick) -> Numbers | None:
        """One block, while no other suspect is asked from here."""
        lock = self._connection.isolation
        while not lock.acquire(timeout=TICK):
            tick()
        try:
            for _ in range(_TRIES):
                tried, began = self._round([piece], tick), time.monotonic()
                [(_, numbers)] = self._run(tried, [piece])
                if numbers is not None:
                    return numbers
                if not tried.shared:
                    self._control(time.monotonic() - began, tick)
                    return None
        finally:
            lock.release()
        raise self._connection.unstable()

    def _control(self, seconds: float, tick: Tick) -> None:
        """Raise if workers die as well while one of them does nothing for so long.

        Then they are killed by others, and a block that ended with them has not failed. What
        becomes of a control does not depend on the data.
        """
        line, token = self._connection, uuid.uuid4().hex
        seconds = min(seconds, longest(self._limits, 1))
        tries = Round(line, seconds + _SLACK, tick)
        told = {"seconds": seconds, "token": token}
        [(_, reply)] = tries.replies(lambda _: line.submit(control, 0, 1, **told), 1)
        if reply is None or line.starts(token) > 1:
            raise line.unstable()

    def _round(self, pieces: Sequence[Piece], tick: Tick) -> Round:
        most = max(piece.stop - piece.start for piece in pieces)
        return Round(self._connection, longest(self._limits, most + TRIAL_BLOCKS), tick)

    def _run(
        self, tries: Round, pieces: Sequence[Piece]
    ) -> Generator[tuple[Piece, Numbers | None]]:
        line, text = self._connection, self._connection.send(self._question)

        def submit(number: int) -> Any:
            told = {"versions": self._versions, "question": text}
            return line.submit(self._task, *pieces[number], **told)

        with closing(tries.replies(submit, len(pieces))) as replies:
            for number, reply in replies:
                piece, numbers = pieces[number], None
                if reply is not None:
                    blocks = piece.stop - piece.start
                    numbers = numbers_of(reply, blocks, integers=self._question.sums)
                yield piece, numbers
