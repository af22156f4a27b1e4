"""A holdout whose answers are told, questions to it, and what its rows must say.

Who asks knows all labels, and every guess is right: nothing is a surprise, and levels stay low.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.holdout.holdout import Holdout
from holdfast.ledger.ledger import Row
from holdfast.protocols.answers import Told
from holdfast.randomness import system_entropy

__all__ = ["ROWS", "amiss", "create_told", "predicted", "share_below", "tell", "told_in"]

ROWS = 400
_WRONG = 40  # at least so many predictions are
_CLOSE = 1e-9  # nats: sums are rounded up


def create_told(path: Path, **more: Any) -> None:
    """Rows that are all sealed; one column makes the table another one than all before."""
    x, other = np.arange(ROWS), system_entropy().words(ROWS).astype(np.float64)
    columns = {"id": x, "x": x, "y": x % 2, "other": other}
    words: dict[str, Any] = {"ids": "id", "target": "y", "labels": [0, 1], "open_fraction": 0}
    Holdout.create(path, columns, **words, **more).close()


def share_below(number: int) -> tuple[str, float]:
    """A condition that no other number has, and its share of the rows."""
    least = _WRONG + number % (ROWS // 2)
    return f"x < {least}.{1 + number % (10**9 - 1):09d}", (least + 1) / ROWS


def predicted(number: int) -> tuple[dict[int, int], float]:
    """Predictions that no other number has, and their accuracy."""
    right, wrong = np.arange(ROWS) % 2, _WRONG + number % 8
    right[np.random.default_rng(number).permutation(ROWS)[:wrong]] ^= 1
    return dict(enumerate(right.tolist())), 1 - wrong / ROWS


def tell(holdout: Any, number: int, request: str | None = None) -> Told:
    """What a holdout, or a client of one, tells of a mean, a score or a comparison, in turns."""
    kind, (given, right) = number // 3 % 3, predicted(number)
    if kind == 0:
        term, share = share_below(number)
        told = holdout.mean(term, guess=share, request=request)
    elif kind == 1:
        told = holdout.score(given, guess=right, request=request)
    else:
        other, less = predicted(number + 1)
        told = holdout.compare(given, other, guess=right - less, request=request)
    assert isinstance(told, Told)
    return told


def told_in(answer: Told) -> tuple[Any, ...]:
    """All that an answer tells: asked again, it is the same."""
    return (answer.letter, answer.told, answer.level, answer.low, answer.high, answer.told_so_far)


def amiss(path: Path, rows: Iterable[Row]) -> list[str]:
    """Rows that tell something twice, or whose nats are not what T is the sum of."""
    found: list[str] = []
    known: set[str | None] = set()
    nats: list[float] = []
    for row in rows:
        if row.kind != "recorded":
            continue
        if {row.question, row.request} & known:
            found.append(f"row {row.number} was told again")
        known |= {row.question, row.request} - {None}
        nats.append(row.body["drawn"]["nats"])
        if not math.isclose(row.body["drawn"]["so_far"], math.fsum(nats), abs_tol=_CLOSE):
            found.append(f"row {row.number} does not say what was told so far")
    try:
        with Holdout.open(path) as holdout:
            (only,) = holdout.status().sets
    except HoldfastError as wrong:
        return [*found, str(wrong)]
    if not math.isclose(only.spent, math.fsum(nats), abs_tol=_CLOSE):
        found.append(f"{only.spent} nats were told, and the letters cost {math.fsum(nats)}")
    return found
