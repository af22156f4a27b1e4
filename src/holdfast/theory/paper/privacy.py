"""Differential privacy as the paper uses it: `def:DP`, `composition`, `interactive-composition`.

Post-processing (`thm:post`) needs no function: it says that whatever is computed from a transcript
is as stable as the transcript.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from holdfast.arguments import real_number, whole_number
from holdfast.errors import InvalidInput
from holdfast.theory.numerics import ROUNDING

__all__ = ["composition", "interactive_composition", "query_epsilon", "smallest_delta"]


def smallest_delta(law: Sequence[float], other: Sequence[float], epsilon: float) -> float:
    """The smallest δ for which two laws on the same outcomes are (ε, δ)-indistinguishable.

    max over both directions of Σ_y max(0, p(y) − e^ε q(y)) (`def:DP`, the condition for one pair
    of neighbouring datasets). Evaluated as written: for outcomes that can be listed.

    >>> round(smallest_delta([0.6, 0.4], [0.4, 0.6], math.log(1.25)), 12)
    0.1
    """
    if len(law) != len(other):
        raise InvalidInput("other", other, f"a law on the same {len(law)} outcomes")
    factor = math.exp(real_number("epsilon", epsilon, 0))
    return max(
        math.fsum(max(0.0, p - factor * q) for p, q in pairs)
        for pairs in (list(zip(law, other, strict=True)), list(zip(other, law, strict=True)))
    )


def composition(
    epsilons: Sequence[float], deltas: Sequence[float], slack: float
) -> tuple[float, float]:
    """thm `composition`: (½ Σ εⱼ² + √(2 ln(1/δ′) Σ εⱼ²), δ′ + Σ δⱼ), δ′ = slack, rounded up.

    The paper asks for δⱼ > 0; its proof needs only δⱼ ≥ 0, and the paper uses δⱼ = 0.

    >>> [round(x, 6) for x in composition([0.01] * 100, [0.0] * 100, 1e-6)]
    [0.530652, 1e-06]
    """
    if len(epsilons) != len(deltas):
        raise InvalidInput("deltas", deltas, f"one for each of the {len(epsilons)} epsilons")
    squares = math.fsum(real_number("epsilon", e, 0) ** 2 for e in epsilons)
    spent = math.fsum(real_number("delta", d, 0, 1) for d in deltas)
    return _composed(squares, spent, _slack(slack))


def interactive_composition(
    queries: int, epsilon: float, delta: float, slack: float
) -> tuple[float, float]:
    """thm `interactive-composition`: (½ k ε² + ε √(2k ln(1/δ′)), δ′ + k δ), rounded up.

    >>> [round(x, 6) for x in interactive_composition(100, 0.01, 0.0, 1e-6)]
    [0.530652, 1e-06]
    """
    queries = whole_number("queries", queries, 1, 10**12)
    epsilon = real_number("epsilon", epsilon, 0)
    delta = real_number("delta", delta, 0, 1)
    return _composed(queries * epsilon**2, queries * delta, _slack(slack))


def query_epsilon(queries: int, total: float, slack: float) -> float:
    """The largest ε per question with ½ k ε² + ε √(2k ln(1/δ′)) ≤ total, rounded down.

    >>> round(query_epsilon(100, 0.530652, 1e-6), 6)
    0.01
    """
    queries = whole_number("queries", queries, 1, 10**12)
    total = real_number("total", total, 0)
    return step_epsilon(queries, total, -math.log(_slack(slack)))


def step_epsilon(queries: int, total: float, nats: float) -> float:
    """`query_epsilon` for arguments already checked, nats = ln(1/δ′)."""
    root = math.sqrt(2 * queries * nats)
    # The positive root of the quadratic, in the form that does not cancel.
    return 2 * total / (root + math.sqrt(root**2 + 2 * queries * total)) * (1 - ROUNDING)


def _slack(slack: float) -> float:
    return real_number("slack", slack, 0, 1, open_low=True, open_high=True)


def _composed(squares: float, spent: float, slack: float) -> tuple[float, float]:
    epsilon = squares / 2 + math.sqrt(2 * -math.log(slack) * squares)
    return epsilon * (1 + ROUNDING), (slack + spent) * (1 + ROUNDING)
