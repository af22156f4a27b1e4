"""Jobs: questions that take long, answered while their asker does something else.

A job is a small file in a folder that all worker processes of a server share, so that any of them
can tell how it goes. It lives as long as the server does; its answer is in the ledger, and asked
again with the same key it comes from there. Its progress is that of the time which is planned for
it: how many blocks are done by then could depend on the data.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from holdfast.concurrency import Closing
from holdfast.server.errors import HttpError, facts_of, is_news, told_of
from holdfast.server.monitoring import log_event
from holdfast.server.settings import Settings

__all__ = ["Jobs", "StoredJob"]

_AT_ONCE = 4
_MOST = 2_000  # jobs that are remembered
_MOST_OF_ONE = 20  # that one asker may have unfinished
_UNFINISHED = ("queued", "running")
_STEPS = 10  # progress is told in tenths
Tick = Callable[[tuple[float, float] | None], None]
_TOLD = ("id", "verb", "state", "progress", "result", "error")


@dataclass(frozen=True)
class StoredJob:
    """One question that is answered in the background."""

    id: str
    holdout: str
    asker: str
    verb: str
    state: str = "queued"
    progress: float | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    started: float = 0.0
    question: str = ""
    worker: int = 0
    """The process that answers it."""
    planned: tuple[float, float] | None = None
    """From when to when it is answered, by the machine's monotonic clock."""

    def to_dict(self) -> dict[str, Any]:
        """What may be told of it."""
        told = {name: getattr(self, name) for name in _TOLD}
        if self.state == "running" and self.planned is not None:
            start, end = self.planned
            share = math.floor(_STEPS * (time.monotonic() - start) / (end - start))
            told["progress"] = min(share, _STEPS - 1) / _STEPS
        return told


class _Cancelled(Exception):
    """The asker wants no answer any more."""


class Jobs(Closing):
    """The jobs of one server."""

    def __init__(self, settings: Settings, closing: threading.Event) -> None:
        self._own = None if settings.state else tempfile.TemporaryDirectory(prefix="holdfast-")
        root = settings.state or Path(self._own.name if self._own else "")
        self._folder = root / "jobs"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._pool = ThreadPoolExecutor(_AT_ONCE, "holdfast-job")
        self._lock = threading.Lock()
        self._closing = closing
        self._running: set[Future[None]] = set()

    def start(
        self,
        holdout: str,
        asker: str,
        verb: str,
        question: str,
        request: str | None,
        work: Callable[[Tick], dict[str, Any]],
    ) -> StoredJob:
        """Begin a job; the same key of the same asker is the same job, of the same question."""
        name = (
            uuid4().hex if request is None else sha256(f"{holdout} {request}".encode()).hexdigest()
        )
        said = sha256(question.encode()).hexdigest()
        job = StoredJob(
            name[:24], holdout, asker, verb, started=time.time(), question=said, worker=os.getpid()
        )
        with self._lock:
            known = self._read(job.id)
            if known is not None and known.question != job.question:
                message = "This key has named another question. Use a new key for a new question."
                raise HttpError("conflict", message)
            if known is not None and known.state != "failed":
                return known
            self._make_room(holdout, asker)
            self._write(job)
        running = self._pool.submit(self._run, job, work)
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return job

    def get(self, holdout: str, identity: str, asker: str | None) -> StoredJob:
        """A job of this asker; with None, of anyone."""
        job = self._read(identity) if identity.isalnum() else None
        if job is None or job.holdout != holdout or asker not in (None, job.asker):
            raise HttpError("not_found", "There is no such job of yours here.")
        return job

    def all(self, holdout: str, asker: str | None) -> list[StoredJob]:
        """The jobs of this asker, or of all, the newest first."""
        jobs = [job for job in map(self._read, self._names()) if job is not None]
        mine = [job for job in jobs if job.holdout == holdout and asker in (None, job.asker)]
        return sorted(mine, key=lambda job: job.started, reverse=True)

    def cancel(self, job: StoredJob) -> StoredJob:
        """Stop it as soon as can be. What it has reserved stays paid."""
        if job.state in _UNFINISHED:
            (self._folder / f"{job.id}.cancel").touch()  # from now on `_read` says so
        return self._read(job.id) or job

    def end(self, patience: float) -> bool:
        """Begin no more, and wait for those that run; whether all of them have ended in time."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not wait(tuple(self._running), patience).not_done

    def close(self) -> None:
        """Stop all jobs of this process. Their keys find in the ledger what was answered."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._own is not None:
            self._own.cleanup()

    def _run(self, job: StoredJob, work: Callable[[Tick], dict[str, Any]]) -> None:
        told = replace(job, state="running", progress=0.0)

        def tick(planned: tuple[float, float] | None) -> None:
            """While it is answered: what is planned, and whether it is wanted still."""
            nonlocal told
            if self._closing.is_set() or self._cancelled(job.id):
                raise _Cancelled
            if planned is not None and planned != told.planned:
                told = replace(told, planned=planned)
                self._tell(told)

        try:
            tick(None)
            self._tell(told)
            ended = replace(job, state="done", progress=1.0, result=work(tick))
        except _Cancelled:
            ended = replace(job, state="cancelled")
        except Exception as error:  # told as anywhere else
            if is_news(error):
                log_event("job failed", job=job.id, holdout=job.holdout, **facts_of(error))
            kind, facts = told_of(error)
            ended = replace(job, state="failed", error={"kind": kind, **facts})
        self._tell(ended)

    def _tell(self, job: StoredJob) -> None:
        with self._lock:
            if not self._cancelled(job.id):
                self._write(job)

    def _cancelled(self, identity: str) -> bool:
        """Whether nobody waits for it: it was cancelled, and perhaps forgotten since."""
        known = (self._folder / f"{identity}.json").exists()
        return not known or (self._folder / f"{identity}.cancel").exists()

    def _names(self) -> list[str]:
        return [path.stem for path in self._folder.glob("*.json")]

    def _read(self, identity: str) -> StoredJob | None:
        try:
            job = StoredJob(**json.loads((self._folder / f"{identity}.json").read_text("utf-8")))
        except FileNotFoundError:
            return None
        if self._cancelled(identity):  # whatever its thread has written since: it was told so
            return replace(job, state="cancelled", result=None, error=None)
        if job.state in _UNFINISHED and not _is_alive(job.worker):
            message = "The process that answered it has ended. Ask again, with the same key."
            return replace(job, state="failed", error={"kind": "busy", "message": message})
        return job

    def _write(self, job: StoredJob) -> None:
        draft = self._folder / f"{job.id}.{os.getpid()}.{threading.get_ident()}.new"
        draft.write_text(json.dumps(asdict(job)), "utf-8")
        draft.replace(self._folder / f"{job.id}.json")

    def _make_room(self, holdout: str, asker: str) -> None:
        """Refuse too many of one asker; forget the oldest that have ended."""
        jobs = [job for job in map(self._read, self._names()) if job is not None]
        busy = [job for job in jobs if job.state in _UNFINISHED]
        if sum((job.holdout, job.asker) == (holdout, asker) for job in busy) >= _MOST_OF_ONE:
            raise HttpError("too_many", f"You have {_MOST_OF_ONE} unfinished jobs.", wait=10.0)
        ended = sorted((job for job in jobs if job not in busy), key=lambda job: job.started)
        for job in ended[: max(0, len(jobs) + 1 - _MOST)]:
            for ending in ("json", "cancel"):
                (self._folder / f"{job.id}.{ending}").unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
