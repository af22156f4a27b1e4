"""Flat prices: what one use of a noise mechanism costs in centred stability, rounded up.

Centred: against the law with the count half a count away (see `holdfast.theory.transfer`). Between
neighbouring datasets the shift is a whole count: pass `shift=1`.
"""

from __future__ import annotations

import math

from holdfast.arguments import real_number
from holdfast.theory.numerics import ROUNDING, exp_beyond_linear
from holdfast.theory.renyi import ORDER_MAX

__all__ = ["exponential_price", "gaussian_price", "laplace_price"]


def _order(order: float) -> float:
    return real_number("order", order, 1, ORDER_MAX, open_low=True)


def gaussian_price(order: float, sigma: float, shift: float = 0.5) -> float:
    """a·shift²/(2σ²): a count with Gaussian noise (Mironov 2017, prop. 7).

    >>> gaussian_price(10, sigma=100)
    0.000125...
    """
    sigma = real_number("sigma", sigma, 0, open_low=True)
    return _order(order) * shift**2 / (2 * sigma**2) * (1 + ROUNDING)


def laplace_price(order: float, scale: float, shift: float = 0.5) -> float:
    """(ln(a·e^((a−1)x) + (a−1)·e^(−ax)) − ln(2a−1)) / (a−1), x = shift/scale.

    Mironov 2017, prop. 6. Written without cancellation: the sum is 2a−1 plus a·e₂((a−1)x) +
    (a−1)·e₂(−ax), where e₂(u) = eᵘ − 1 − u ≥ 0.

    >>> laplace_price(10, scale=100)
    0.000124...
    """
    a = _order(order)
    scale = real_number("scale", scale, 0, open_low=True)
    x = shift / scale
    if a * x > 600:
        return x  # D_a never exceeds the pure differential privacy ε = x
    excess = a * exp_beyond_linear((a - 1) * x) + (a - 1) * exp_beyond_linear(-a * x)
    return math.log1p(excess / (2 * a - 1)) / (a - 1) * (1 + ROUNDING)


def exponential_price(order: float, epsilon: float, shift: float = 0.5) -> float:
    """a·(shift·ε)²/8: one exponential-mechanism median (thm `EM-med`).

    Scores move by at most `shift`, so the log-likelihood ratio has range shift·ε, and bounded
    range η costs a·η²/8 (Cesar & Rogers 2021), not the a·η²/2 of pure differential privacy.

    >>> exponential_price(10, epsilon=0.01)
    3.125...e-05
    """
    epsilon = real_number("epsilon", epsilon, 0, open_low=True)
    return _order(order) * (shift * epsilon) ** 2 / 8 * (1 + ROUNDING)
