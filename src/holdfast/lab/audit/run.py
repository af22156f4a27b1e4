"""The audit of a plan for estimates: every analyst at the certified size, and below it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.lab.audit.analysts import ANALYSTS, about, analyst_named, left_out
from holdfast.lab.audit.breaking import SHARES, Breaking, Measured, find_breaking
from holdfast.lab.audit.pool import Pool, processes
from holdfast.lab.audit.result import Audit, AuditRow, Point
from holdfast.lab.audit.sessions import Sessions, batches, gathered, play
from holdfast.lab.audit.subject import Subject, planned
from holdfast.randomness import system_entropy

__all__ = ["audit", "audit_subject", "chosen_seed", "workers_at_hand"]

_BELOW = 150  # sessions at a size below the certified one, or half of all if that is more
_FEWER = {"collector": 30}  # slow, and weak against looks: it is there for the naive holdout

Progress = Callable[[str, int], None]
"""Called with what is being played, and how many sessions of it are over."""

_NOT_BROKEN = "No analyst broke the promise at a tenth of the blocks."


def workers_at_hand() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


def chosen_seed(seed: int | None) -> int:
    """The seed that was given, or one from the operating system."""
    if seed is None:
        return int(system_entropy().words(1)[0])
    return whole_number("seed", seed, 0, 2**64 - 1)


def audit(
    queries: int,
    tail: float,
    confidence: float = 0.95,
    sessions: int = 300,
    *,
    grid: int = 32,
    analyst: str | None = None,
    seed: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Audit:
    """Attack the plan for this promise, and say how often it failed and how tight it is.

    >>> result = audit(20, 0.05, sessions=20, analyst="tuned", seed=1)
    >>> result.certified, result.worst.failures, 1.1 < result.strongest.tightness < 1.8
    (107, 0, True)
    """
    real_number("tail", tail, 0, 0.5, open_low=True, open_high=True)
    subject = planned(queries, grid, tail, confidence)
    return audit_subject(
        subject,
        sessions,
        analyst=analyst,
        seed=seed,
        workers=workers,
        progress=progress,
    )


def audit_subject(
    subject: Subject,
    sessions: int = 300,
    *,
    analyst: str | None = None,
    seed: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Audit:
    """The same for any coin on any number of blocks, certified or not."""
    sessions = whole_number("sessions", sessions, 1, 10**6)
    workers = whole_number("workers", workers, 1, 1024)
    names, idle = _names(analyst, subject)
    with processes(workers) as pool:
        table = _Table(subject, sessions, chosen_seed(seed), pool, progress)
        measured = {name: table.measured(name) for name in names}
        played = {name: at.at(subject.blocks) for name, at in measured.items()}
        found = {
            name: find_breaking(at, subject.blocks, subject.failure)
            for name, at in measured.items()
        }
        rows = tuple(_row(name, subject, played[name], found[name]) for name in names)
        strongest = max(rows, key=lambda row: (row.breaks_below or 0, row.rate or 0)).analyst
        curve = tuple(_curve(measured[strongest], subject.blocks))
    return Audit(
        protocol="estimate",
        plan={
            "queries": subject.queries,
            "grid": subject.grid,
            "tail": subject.tail,
            "confidence": subject.confidence,
            "looks": subject.looks,
        },
        certified=subject.blocks,
        failure=subject.failure,
        seed=table.seed,
        rows=rows,
        left_out=idle,
        curve=curve,
        tightness_note="" if any(found.values()) else _NOT_BROKEN,
    )


def _names(analyst: str | None, subject: Subject) -> tuple[list[str], dict[str, str]]:
    """Who is to attack, and who is left out for a reason."""
    if analyst is not None and analyst not in ANALYSTS:
        raise InvalidInput("analyst", analyst, "one of " + ", ".join(ANALYSTS))
    reasons = {name: left_out(name, subject) for name in ANALYSTS}
    if analyst is not None:
        return [analyst], {}
    idle = {name: reason for name, reason in reasons.items() if reason}
    return [name for name in ANALYSTS if name not in idle], idle


def _row(name: str, subject: Subject, played: Sessions, breaking: Breaking | None) -> AuditRow:
    described = about(analyst_named(name, subject))
    return AuditRow.of(name, described, played, subject.blocks, breaking)


def _curve(measured: Measured, certified: int) -> Iterable[Point]:
    for share in SHARES:
        blocks = max(1, round(share * certified))
        yield Point.of(share, blocks, measured.at(blocks))


@dataclass(frozen=True)
class _Table:
    """Plays sessions of any analyst at any size."""

    subject: Subject
    sessions: int
    seed: int
    pool: Pool
    progress: Progress | None

    def measured(self, name: str) -> Measured:
        """The sessions of one analyst, as they are asked for."""
        return Measured(lambda blocks: self._play(name, blocks))

    def _play(self, name: str, blocks: int) -> Sessions:
        subject = self.subject.on(blocks)
        below = _FEWER.get(name, max(_BELOW, self.sessions // 2))
        certified = blocks == self.subject.blocks
        sessions = self.sessions if certified else min(self.sessions, below)
        analyst = analyst_named(name, subject)
        cut = batches(subject, analyst, self.seed, self.pool.cut(sessions))
        parts = []
        for part in self.pool.run(play, cut):
            parts.append(part)
            if self.progress is not None:
                self.progress(f"{name} on {blocks:,} blocks", part.count)
        return gathered(parts)
