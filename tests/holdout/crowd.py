"""Many processes at one holdout, and one that is killed on the way.

They are forked. Their blocks are a stub; door, ledger, locks and books are the real ones.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import holdfast as hf
from holdfast.errors import Exhausted
from holdfast.holdout.answering import _Pending
from holdfast.holdout.holdout import Holdout
from tests.holdout.tables import Still, sources
from tools.crash.writers import children

COIN = hf.grid(0, 1, points=2)
POINTS = hf.grid(0, 1, points=8)


def requests(folder: Path, processes: int, count: int) -> list[dict[str, int]]:
    """Every process asks so many questions of its own: how many were granted, how many refused."""

    def work(who: int) -> bytes:
        granted = refused = 0
        with Holdout.open(folder) as holdout:
            for number in range(count):
                try:
                    answer = holdout.ask(f"avg(x) + {who * count + number}", grid=COIN)
                    granted += not answer.cached
                except Exhausted:
                    refused += 1
        return json.dumps({"granted": granted, "refused": refused}).encode()

    def of(who: int) -> Callable[[], bytes]:
        return lambda: work(who)

    return _all([of(who) for who in range(processes)])


def retries(folder: Path, processes: int, keys: int, times: int) -> list[dict[str, Any]]:
    """Every process retries the same keys: what it was told, and how much it drew itself."""

    def work() -> bytes:
        told: dict[str, list[Any]] = {}
        drawn = 0
        with Holdout.open(folder) as holdout:
            for number in range(times):
                key = f"key {number % keys}"
                answer = holdout.ask(f"avg(x) + {number % keys}", grid=COIN, request=key)
                drawn += not answer.cached
                said = [answer.value, answer.receipt]
                assert told.setdefault(key, said) == said
        return json.dumps({"told": told, "drawn": drawn}).encode()

    return _all([work] * processes)


def killed(folder: Path, point: str, ask: Callable[[Holdout], object]) -> int:
    """Ask in a process that kills itself at this point; the signal that ended it."""
    process = os.fork()
    if process == 0:
        try:
            _die(folder, point, ask)
        finally:
            os._exit(1)
    return os.WTERMSIG(os.waitpid(process, 0)[1])


def _die(folder: Path, point: str, ask: Callable[[Holdout], object]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        places = {
            "in the reservation": (("_append", False),),
            "after the reservation": (("reserve", True),),
            "before the record": (("record", False),),
            "behind the record": (("record", True),),
        }
        for name, after in places.get(point, ()):
            patch.setattr(_Pending, name, _mine(getattr(_Pending, name), after=after))
        with Holdout.open(folder) as holdout, sources(_Deadly if point == "in the draw" else Still):
            ask(holdout)
            _end()  # after the record


def _mine(step: Callable[..., object], *, after: bool) -> Callable[..., NoReturn]:
    def deadly(*given: Any, **more: Any) -> NoReturn:
        if after:
            step(*given, **more)
        _end()

    return deadly


class _Deadly(Still):
    def values(self, estimator: Any, /) -> NoReturn:
        _end()

    def part(self, start: int, stop: int, /) -> Still:
        return _Deadly(stop - start)


def _end() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def _all(works: list[Callable[[], bytes]]) -> list[Any]:
    with sources():
        return [json.loads(said) for said in children(works)]
