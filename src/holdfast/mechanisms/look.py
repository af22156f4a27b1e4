"""The look: one biased coin, all that an analyst ever learns from the data (theory §2).

A count C is compared with a target c*; the answer is Yes with probability g(C − c*), where g is
the coin. Offsets are integers, twice C − c*, so that nothing is rounded before the coin is chosen.
"""

from __future__ import annotations

import operator
from typing import overload

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.randomness import Entropy, flip
from holdfast.theory.coin import Coin

__all__ = ["look"]


@overload
def look(twice_offset: int | np.integer, coin: Coin, entropy: Entropy) -> bool: ...
@overload
def look(twice_offset: NDArray[np.integer], coin: Coin, entropy: Entropy) -> NDArray[np.bool_]: ...
def look(
    twice_offset: int | np.integer | NDArray[np.integer], coin: Coin, entropy: Entropy
) -> bool | NDArray[np.bool_]:
    """Yes with probability h for offsets ≤ 0 and 1 − h above, h = coin error at |offset|: exactly.

    The stored number h is flipped on both sides and the verdict complemented above the target:
    the float 1 − h, which is rounded, never appears, and the price of the lower side is the
    price of the upper one. One offset gives a bool, an array of them an array of its shape.

    >>> from holdfast.randomness import SeededEntropy
    >>> from holdfast.theory.coin import logistic_coin
    >>> coin, entropy = logistic_coin(slope=0.1, floor=1e-6), SeededEntropy(1)
    >>> look(2 * 560 - 1000, coin, entropy)
    True
    >>> look(np.array([-200, -1, 0, 1, 200]), coin, entropy)
    array([False, False,  True,  True,  True])
    """
    if isinstance(twice_offset, np.ndarray) and twice_offset.ndim > 0:
        return _looks(twice_offset, coin, entropy)
    try:
        offset = operator.index(twice_offset)
    except TypeError:
        raise InvalidInput("twice_offset", twice_offset, _ALLOWED) from None
    if isinstance(twice_offset, bool):
        raise InvalidInput("twice_offset", twice_offset, _ALLOWED)
    wrong = flip(coin.halfsteps[min(abs(offset), coin.halfsteps.size - 1)], entropy)
    return bool(wrong) != (offset > 0)


_ALLOWED = "whole numbers: twice the count minus twice the target"


def _looks(twice_offset: NDArray[np.integer], coin: Coin, entropy: Entropy) -> NDArray[np.bool_]:
    if twice_offset.dtype.kind not in "iu":
        raise InvalidInput("twice_offset", twice_offset, _ALLOWED)
    far = coin.halfsteps.size - 1
    # Clip before the absolute value: that of the lowest int64 is no int64.
    if twice_offset.dtype.kind == "i":
        near = np.clip(twice_offset.astype(np.int64), -far, far)
    else:
        near = np.minimum(twice_offset, np.uint64(far)).astype(np.int64)
    return np.asarray(flip(coin.error(np.abs(near)), entropy) != (near > 0))
