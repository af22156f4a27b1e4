"""How an analyst should divide its looks, and where it should win: a model of its attack.

An analyst who knows the coin can compute what learning is worth. Each look at a fair sign agrees
with a block's own sign more often than not by a small margin a, so that after n of them the score
of a block of the holdout is N(a·√n, 1), that of a fresh one N(0, 1). The event {score > z_ρ} then
holds a share f = Φ(a·√n − z_ρ) of the holdout's blocks, a binomial count of them, and each of the
N − n looks that are left slips with the probability of the coin at that count.

The model decides how an analyst plays, never what an audit reports: that is played and counted.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.theory.coins import Coin

__all__ = ["best_learning", "expected_breaking", "expected_failure", "margin"]

_SHARES = np.arange(0.02, 0.99, 0.02)
_MOST_BLOCKS = 10**7


def margin(coin: Coin, blocks: int) -> float:
    """How much more often than not a look at a fair sign agrees with the sign of one block: a.

    The other blocks' count is binomial; a block moves it by one, and P[Yes] by the coin's slope.

    >>> from holdfast.theory.coins import probit_coin
    >>> round(margin(probit_coin(sigma=100.0, floor=1e-9), 400), 6)  # 1/√(2π(100² + 100))
    0.00397
    """
    others = np.arange(blocks)
    gained = _yes(coin, 2 * others + 2 - blocks) - _yes(coin, 2 * others - blocks)
    return float(_binomial(blocks - 1, 0.5) @ gained)


def expected_failure(coin: Coin, blocks: int, looks: int, learnt: int, tail: float) -> float:
    """The modelled rate of failure, if so many of the looks are spent on learning."""
    return _failure(coin, blocks, looks, learnt, tail, margin(coin, blocks))


def best_learning(coin: Coin, blocks: int, looks: int, tail: float) -> float:
    """The share of the looks to be spent on learning."""
    return _best(coin, blocks, looks, tail)[1]


@lru_cache(maxsize=64)
def expected_breaking(coin: Coin, looks: int, tail: float, failure: float) -> int:
    """The fewest blocks at which the modelled rate of failure is at most `failure`.

    >>> from holdfast.planning.solve import plan
    >>> made = plan(queries=100, grid=32, tail=0.01)
    >>> made.blocks, expected_breaking(made.coin(), made.looks, 0.01, 0.05)
    (110, 80)
    """
    low, high = 1, 2
    while high < _MOST_BLOCKS and _best(coin, high, looks, tail)[0] > failure:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        kept = _best(coin, middle, looks, tail)[0] <= failure
        low, high = (low, middle) if kept else (middle, high)
    return high


@lru_cache(maxsize=1024)
def _best(coin: Coin, blocks: int, looks: int, tail: float) -> tuple[float, float]:
    a = margin(coin, blocks)
    rates = [_failure(coin, blocks, looks, round(q * looks), tail, a) for q in _SHARES]
    return max(zip(rates, _SHARES.tolist(), strict=True))


def _failure(coin: Coin, blocks: int, looks: int, learnt: int, tail: float, a: float) -> float:
    from scipy.special import ndtr, ndtri

    share = float(ndtr(a * np.sqrt(learnt) + ndtri(tail)))
    slip = _yes(coin, 2 * np.arange(blocks + 1) - blocks)
    with np.errstate(divide="ignore"):
        fails = -np.expm1((looks - learnt) * np.log1p(-slip))
    return float(_binomial(blocks, share) @ fails)


def _yes(coin: Coin, twice_offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    wrong = coin.error(np.abs(twice_offsets))
    return np.where(twice_offsets > 0, 1 - wrong, wrong)


def _binomial(trials: int, share: float) -> NDArray[np.float64]:
    """The probabilities of all counts."""
    from scipy.special import gammaln, xlog1py, xlogy

    counts = np.arange(trials + 1)
    ways = gammaln(trials + 1) - gammaln(counts + 1) - gammaln(trials - counts + 1)
    law = np.exp(ways + xlogy(counts, share) + xlog1py(trials - counts, -share))
    return np.asarray(law / law.sum())
