"""Many processes on one budget; many retries of one request."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tools.crash.account import Acknowledged, Subject
from tools.crash.writers import children

__all__ = ["Crowded", "Retried", "crowd", "retries"]


@dataclass(frozen=True)
class Crowded:
    """Requests of many processes at once, and how many of them were granted."""

    processes: int
    requests: int
    budget: int
    granted: int
    faults: list[str]


@dataclass(frozen=True)
class Retried:
    """Retries of the same requests from many processes, and the different answers of each."""

    processes: int
    keys: int
    retries: int
    answers: list[int]
    faults: list[str]


def crowd(subject: type[Subject], processes: int, requests: int, budget: int) -> Crowded:
    """Every process asks so many new questions, all at the same time."""
    with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as name:
        subject.create(Path(name), budget)
        asked = [[f"{p}-{i}" for i in range(requests)] for p in range(processes)]
        seen = _ask_all(subject, Path(name), asked)
        faults = subject.faults(Path(name), budget, seen)
    granted = sum(each.answer is not None for each in seen)
    return Crowded(processes, processes * requests, budget, granted, faults)


def retries(subject: type[Subject], processes: int, keys: int, times: int) -> Retried:
    """Every key is asked so many times, spread over the processes."""
    budget = 2 * keys
    share = -(-times // processes)
    with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as name:
        subject.create(Path(name), budget)
        asked = [[f"key-{i % keys}" for i in range(share * keys)]] * processes
        seen = _ask_all(subject, Path(name), asked)
        faults = subject.faults(Path(name), budget, seen)
    answers = [len({s.answer for s in seen if s.request == f"key-{i}"}) for i in range(keys)]
    return Retried(processes, keys, share * processes, answers, faults)


def _ask_all(subject: type[Subject], folder: Path, asked: list[list[str]]) -> list[Acknowledged]:
    """Ask lists of requests, each list in its own process."""

    def work(requests: list[str]) -> bytes:
        each = subject.open(folder)
        told = [f"{r} {each.ask(_question(r), r) or '-'}" for r in requests]
        each.close()
        return "\n".join(told).encode()

    said = children([lambda requests=requests: work(requests) for requests in asked])  # type: ignore[misc]
    lines = [line.split() for text in said for line in text.decode().splitlines()]
    return [
        Acknowledged(request, _question(request), None if answer == "-" else answer)
        for request, answer in lines
    ]


def _question(request: str) -> str:
    return sha256(request.encode()).hexdigest()
