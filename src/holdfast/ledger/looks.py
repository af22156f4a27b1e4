"""Looking into a ledger: what several threads want to know is read in one go.

Every statement lets other threads of the process go first. A crowd that looks one after the other,
each with a lock in its hands, would spend its time waiting; so one looks for all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.combining import Combiner, Job
from holdfast.errors import HoldfastError
from holdfast.ledger.receipts import Receipt
from holdfast.ledger.rows import Row
from holdfast.ledger.tables import Table, recorded, requested, rows_after

__all__ = ["Looker"]

Reading = Callable[[], AbstractContextManager[tuple[Table, Receipt]]]


@dataclass(frozen=True)
class _Look:
    """What one thread wants to know: one of these."""

    after: int | None = None
    question: str | None = None
    request: str | None = None


class Looker:
    """Looks for all threads of a process. `reading` gives a table, and the head as of then.

    It is given each time, not kept: a ledger that nobody holds any more is closed at once.
    """

    def __init__(self) -> None:
        self._looks: Combiner[_Look, Any] = Combiner()

    def rows(self, reading: Reading, after: int) -> list[Row]:
        """The rows behind a number."""
        found: list[Row] = self._looks.do(partial(_look, reading), _Look(after=after))
        return found

    def recorded(self, reading: Reading, question: str) -> Row | None:
        """The last answer to a question."""
        found: Row | None = self._looks.do(partial(_look, reading), _Look(question=question))
        return found

    def requested(self, reading: Reading, request: str) -> list[Row]:
        """The rows of an idempotency key."""
        found: list[Row] = self._looks.do(partial(_look, reading), _Look(request=request))
        return found


def _look(reading: Reading, jobs: list[Job[_Look, Any]]) -> None:
    questions = {job.task.question for job in jobs if job.task.question is not None}
    requests = {job.task.request for job in jobs if job.task.request is not None}
    with reading() as (table, head):
        answers, keys = recorded(table, questions), requested(table, requests)
        _read_on(table, head, [job for job in jobs if job.task.after is not None])
    for job in jobs:
        if job.task.question is not None:
            job.succeed(answers.get(job.task.question))
        elif job.task.request is not None:
            job.succeed(keys.get(job.task.request, []))


def _read_on(table: Table, head: Receipt, jobs: list[Job[_Look, Any]]) -> None:
    """Read for all from where the one begins that has read least."""
    rows: list[Row] | None = None
    for job in sorted(jobs, key=lambda each: each.task.after or 0):
        after = job.task.after or 0
        try:
            if rows is None or not 0 < after <= head.number:
                rows = rows_after(table, head, after)
            job.succeed([row for row in rows if row.number > after])
        except HoldfastError as error:  # this one's: it has seen more than there is
            job.fail(error)
