from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.mechanisms.looks import look
from holdfast.randomness import SeededEntropy
from holdfast.theory.coins import Coin, logistic_coin, probit_coin, steepest_coin
from tests.mechanisms.laws import LARGEST_WORD, Constant, Script

COINS = [
    steepest_coin(order=8, price=0.05, floor=1e-3),
    logistic_coin(slope=0.7, floor=1e-4),
    probit_coin(sigma=3.0, floor=1e-5),
]
WORDS = st.integers(0, LARGEST_WORD)
coins = pytest.mark.parametrize("coin", COINS, ids=lambda coin: coin.name)


@coins
def test_the_chance_of_yes_is_the_stored_number_to_the_last_bit(coin: Coin) -> None:
    for twice_offset in range(-2 * coin.halfsteps.size, 2 * coin.halfsteps.size):
        error = coin.halfsteps[min(abs(twice_offset), coin.halfsteps.size - 1)]
        whole, rest = divmod(int(error * 2.0**128), 2**64)  # 53 bits: nothing is rounded
        truth = twice_offset > 0
        # An infinite uniform number below the error errs: digits are compared one by one.
        assert look(twice_offset, coin, Script([whole - 1])) is not truth
        assert look(twice_offset, coin, Script([whole + 1])) is truth
        if rest:
            assert look(twice_offset, coin, Script([whole, rest - 1])) is not truth
            assert look(twice_offset, coin, Script([whole, rest + 1])) is truth


@given(st.sampled_from(COINS), st.lists(WORDS, min_size=1, max_size=20), st.data())
def test_an_array_is_as_many_single_looks(
    coin: Coin, words: list[int], data: st.DataObject
) -> None:
    offset = st.one_of(st.integers(-40, 40), st.integers(-(2**63), 2**63 - 1))
    offsets = data.draw(st.lists(offset, min_size=len(words), max_size=len(words)))
    single = [look(x, coin, Script([w])) for x, w in zip(offsets, words, strict=True)]
    together = look(np.array(offsets, np.int64), coin, Script(words))
    assert together.dtype == np.bool_
    assert together.tolist() == single


def test_shapes_and_types() -> None:
    coin, entropy = COINS[0], SeededEntropy(1)
    assert type(look(3, coin, entropy)) is bool
    assert type(look(np.int32(3), coin, entropy)) is bool
    assert look(np.zeros((2, 3), np.int16), coin, entropy).shape == (2, 3)
    assert look(np.zeros(0, np.int64), coin, entropy).shape == (0,)
    far = Constant(LARGEST_WORD)
    assert look(np.array([2**64 - 1], np.uint64), coin, far).tolist() == [True]
    assert look(10**30, coin, far) is True
    assert look(-(10**30), coin, far) is False


def test_offsets_are_whole_numbers_and_a_distance_is_not_negative() -> None:
    coin = COINS[0]
    for offset in (1.0, True, "1", None, np.array([0.5]), np.array([True])):
        with pytest.raises(InvalidInput, match="twice_offset must be whole numbers"):
            look(offset, coin, SeededEntropy(1))  # type: ignore[arg-type]
    assert coin.error(np.array([0, 1, 10**9], np.uint64))[-1] == coin.floor
    for wrong in (-1, -(2**63)):  # as an index it would count from the end
        with pytest.raises(InvalidInput, match="twice_distance must be distances of at least 0"):
            coin.error(np.array([0, wrong]))
