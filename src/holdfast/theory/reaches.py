"""How far a coin reaches, as a smooth function: what the optimisers of plans work with.

Along the steepest coin of prices (rare, common) the log-odds x of an error move by a half step
Δ(x). So ∫ dx/Δ(x) counts half steps, and

    reach = Σ_e min(1, N·h(e)/β)  ≈  ∫ min(1, N·h/β) de

is an integral over x: a hundred values of Δ, found together, instead of a table of thousands.
Nothing certified rests on it: every plan is built in full and checked by the theorem.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["distance_of", "reach_of", "steps_of"]

_NODES = 48
_ROUNDS = 7
_BOTH_WAYS = np.array([[[1.0]], [[-1.0]]])


def reach_of(order: float, rare: float, common: float, slips: float) -> float:
    """Σ min(1, slips·h(e)) over whole counts e, for the steepest side whose error costs `rare`.

    Prices are exponents; `slips` is N/β.

    >>> reach_of(order=37, rare=3e-4, common=0.19, slips=2000 / 0.02)
    87.0...
    """
    lowest = -math.log(max(slips, 2.0)) - 14.0  # what lies beyond adds less than 1e-6 counts
    log_odds = np.linspace(0.0, lowest, _NODES)
    error = 1 / (1 + np.exp(-log_odds))
    density = np.minimum(1.0, slips * error) / steps_of(order, rare, common, error)
    return float(np.trapezoid(density, -log_odds)) / 2


def distance_of(order: float, rare: float, common: float, level: float) -> float:
    """Counts from the target to where the error is `level`, for the same side.

    >>> distance_of(order=37, rare=0.19, common=3e-4, level=1e-6)
    266.9...
    """
    log_odds = np.linspace(0.0, math.log(level) - math.log1p(-level), _NODES)
    error = 1 / (1 + np.exp(-log_odds))
    return float(np.trapezoid(1 / steps_of(order, rare, common, error), -log_odds)) / 2


def steps_of(
    order: float, rare: float, common: float, error: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The half step in log-odds that the prices allow at each error probability, to about 1e-4.

    Secant steps on ln(covered/cost) as a function of ln u. What a step costs grows at least with
    its square and what the prices cover hardly changes, so that the slope is about −2 or steeper.
    """
    a, last = order, math.log(200.0 / order)
    kept = np.array([[-math.expm1(-rare)], [-math.expm1(-common)]])
    log_u = np.full(error.shape, 0.5 * math.log(2 * min(rare, common) / (a * (a - 1))))
    slope = np.full(error.shape, -2.0)
    room = _log_room(a, kept, error, np.exp(log_u))
    for _ in range(_ROUNDS):
        step = np.minimum(np.maximum(-room / slope, -2.0), 2.0)
        moved = np.minimum(log_u + step, last)
        after = _log_room(a, kept, error, np.exp(moved))
        distance = moved - log_u
        far = np.abs(distance) > 1e-6
        measured = (after - room) / np.where(far, distance, 1.0)
        slope = np.where(far, np.minimum(np.maximum(measured, -2 - 400.0), -1.0), slope)
        log_u, room = moved, after
    u = np.exp(log_u)
    z = error * np.exp(-u)
    return np.asarray(u - np.log1p((z - error) / (1 - z)))


def _log_room(
    a: float, kept: NDArray[np.float64], error: NDArray[np.float64], u: NDArray[np.float64]
) -> NDArray[np.float64]:
    """ln of (what the prices cover)/(what the half step costs), in the dearer direction.

    Errors are in the first row of each table, what is no error in the second.
    """
    z = error * np.exp(-u)
    here, there = np.array([error, 1 - error]), np.array([z, 1 - z])
    steps = np.array([u, np.log1p((z - error) / there[1])])
    grown, (down_excess, up_excess) = np.exp(a * steps), _excess(a - 1, steps * _BOTH_WAYS)
    down = (kept * there * grown).sum(axis=0) / (there * down_excess).sum(axis=0)
    up = (kept * here / grown).sum(axis=0) / (here * up_excess).sum(axis=0)
    return np.asarray(np.log(np.minimum(down, up)))


def _excess(s: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """`numerics.moment_excess`, vectorised: e^((s+1)x) − 1 − (s+1)(eˣ − 1), to about 1e-6."""
    a = s + 1
    if a * float(np.abs(x).max()) > 0.01:
        return np.asarray(np.expm1(a * x) - a * np.expm1(x))
    # Σ_{n≥2} (aⁿ − a)·xⁿ/n!, for all of them are small
    high = x * ((a**4 - a) / 24 + x * (a**5 - a) / 120)
    return np.asarray(x * x * ((a * a - a) / 2 + x * ((a**3 - a) / 6 + high)))
