"""Widths: half-widths by method, at a point and along a curve, for the planner."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.server.methods import LONGEST, METHODS, Study, Width, direct, half_steps, shown
from holdfast.theory.means import scaled_direct
from holdfast.theory.sizing import QUERIES_MAX

__all__ = ["compare_widths", "start"]

_POINTS = 12  # of a curve
_CURVE = 5e4  # half steps of all coins that a curve is drawn with


def compare_widths(
    rows: int, queries: int, tail: float, confidence: float, *, curve: bool = True
) -> dict[str, Any]:
    """Every method's half-width; with a curve also for fewer and for more questions.

    >>> found = compare_widths(10_000, 50, 0.25, 0.95, curve=False)
    >>> {each["name"]: round(each["half_width"], 3) for each in found["methods"]}
    {'mean': 0.087, 'median': 0.291, 'split': 0.138, 'bassily': 0.361, 'rogers': 0.154, \
'jung': 0.232, 'naive': 0.019}
    """
    study = Study(rows, queries, tail, confidence)
    methods = [method.told(study) for method in METHODS]
    told = {"rows": rows, "queries": queries, "tail": tail, "confidence": confidence}
    drawn = _curve(study) if curve else []
    return {**told, "methods": methods, "curve": drawn}


def start(_: object) -> Callable[[tuple[int, int, float, float, bool]], bytes]:
    """What a process of its own does with a message; see `holdfast.engines.process`."""

    def handle(message: tuple[int, int, float, float, bool]) -> bytes:
        rows, queries, tail, confidence, curve = message
        found = compare_widths(rows, queries, tail, confidence, curve=curve)
        return json.dumps(found, allow_nan=False).encode()

    return handle


def _curve(study: Study) -> list[dict[str, Any]]:
    """Half-widths for about twelve numbers of questions, the last ten times as many."""
    numbers = _numbers(study.queries)
    lines = {
        method.name: _line(map(method.width, map(study.at, numbers))) for method in METHODS[1:]
    }
    means = _means(study, numbers)
    return [
        {
            "queries": queries,
            "mean": means.get(queries),
            **{name: line[i] for name, line in lines.items()},
        }
        for i, queries in enumerate(numbers)
    ]


def _numbers(queries: int) -> list[int]:
    """1, 2, 5, 10, … up to ten times as many, and the number itself.

    >>> _numbers(3)
    [1, 2, 3, 5, 10, 20]
    >>> _numbers(1_000)
    [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]
    """
    most = min(10 * queries, QUERIES_MAX)
    steps = [step * 10**power for power in range(9) for step in (1, 2, 5)]
    return sorted({queries, *[k for k in steps if k <= most][-_POINTS:]})


def _line(found: Iterable[Width]) -> list[float | None]:
    """Half-widths that never fall: what holds for more questions holds for fewer."""
    least, line = math.inf, []
    for width in reversed([*found]):
        least = min(least, math.inf if width.half_width is None else width.half_width)
        line.append(None if least == math.inf else least)
    return line[::-1]


def _means(study: Study, numbers: list[int]) -> dict[int, float | None]:
    """Means at as many of the numbers as can be computed soon, scaled from the study's own plan."""
    if METHODS[0].width(study).half_width is None:
        return {}
    total = sum(half_steps(study.at(k)) for k in numbers)
    stride = max(1, min(math.ceil(total / _CURVE), len(numbers) // 3))
    place = numbers.index(study.queries)
    kept = [k for k in numbers[place % stride :: stride] if half_steps(study.at(k)) <= LONGEST]
    plan = direct(study.rows, study.queries, study.confidence)
    found = [plan if k == study.queries else scaled_direct(plan, k) for k in kept]
    return dict(zip(kept, _line(map(shown, found)), strict=True))
