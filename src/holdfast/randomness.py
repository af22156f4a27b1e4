"""The one source of entropy, and the exact coins and indices that are drawn from it.

    Entropy           uniform 64-bit words; an argument of whatever draws, never global state
    ├── SystemEntropy     the operating system's; the only one that a certificate may rest on
    └── SeededEntropy     repeatable, for tests and the lab

Nothing here compares a float with a float: a coin of probability p says yes with probability p,
not with the nearest multiple of 2^-53, so that the price computed for p is the price paid.
"""

from __future__ import annotations

import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, whole_number

__all__ = [
    "Entropy",
    "SeededEntropy",
    "SystemEntropy",
    "flip",
    "flip_one",
    "system_entropy",
    "uniform_index",
]

_WORD_BITS = 64
_WORD_BYTES = 8
_BUFFERED_WORDS = 4096
_MOST_WORDS = 2**32  # in one call: 32 GiB

_forks = 0  # how many forks lie between this process and the first one that loaded the module


def _forked() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=_forked)


class Entropy(ABC):
    """A stream of independent words, each uniform on 0 … 2**64 − 1."""

    __slots__ = ()

    certifiable: ClassVar[bool] = False
    """Whether answers drawn from it may be certified."""

    @abstractmethod
    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words of the stream: 64 fair bits each, never given out before."""

    def __repr__(self) -> str:  # what an entropy will say next is nobody's business
        return f"<{type(self).__name__}>"


class _Reserve:
    """Words that the operating system has given and nobody has used; of one process only."""

    __slots__ = ("lock", "process", "words")

    def __init__(self, process: tuple[int, int]) -> None:
        self.process = process
        self.lock = threading.Lock()
        self.words = np.empty(0, np.uint64)


def _from_system(count: int) -> NDArray[np.uint64]:
    return np.frombuffer(bytearray(os.urandom(_WORD_BYTES * count)), np.uint64)


@final
class SystemEntropy(Entropy):
    """The operating system's generator (`os.urandom`), read a buffer at a time.

    Safe to share between threads. A fork, a copy and a pickle each start with an empty buffer, so
    that no two processes ever draw the same words; only a snapshot of a whole virtual machine,
    started twice, could repeat what was left in the buffer. There is no seed.

    >>> SystemEntropy().words(3).dtype
    dtype('uint64')
    """

    __slots__ = ("_reserve",)
    certifiable: ClassVar[bool] = True

    def __init__(self) -> None:
        self._reserve = _Reserve((_forks, os.getpid()))

    def words(self, count: int) -> NDArray[np.uint64]:
        """Words that nobody has seen."""
        if type(count) is not int or not 0 <= count <= _MOST_WORDS:
            count = whole_number("count", count, 0, _MOST_WORDS)
        reserve = self._reserve
        # The count of forks sees those that Python made, the process id those of C code. The
        # lock goes too: in the child it may be held for ever by a thread that did not survive.
        process = (_forks, os.getpid())
        if reserve.process != process:
            self._reserve = reserve = _Reserve(process)
        with reserve.lock:
            if count > reserve.words.size:
                # What is left is dropped: no word is ever part of two answers.
                reserve.words = _from_system(max(count, _BUFFERED_WORDS))
            taken = reserve.words[:count].copy()
            reserve.words[:count] = 0  # what was used cannot be read back from memory
            reserve.words = reserve.words[count:]
        return taken

    def __reduce__(self) -> tuple[type[SystemEntropy], tuple[()]]:
        return SystemEntropy, ()


@cache
def system_entropy() -> SystemEntropy:
    """The entropy of this process: what every holdout that is not a test draws from.

    The only place that makes one outside of tests.
    """
    return SystemEntropy()


def _is_seed(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return 0 <= int(value) < 2**64


@final
class SeededEntropy(Entropy):
    """The same words for the same seed (Philox, numpy): for tests and the lab, never certified.

    A seed may be several numbers, such as (seed, trial): different ones give independent streams.

    >>> SeededEntropy(1).words(2)
    array([14895600803673721366,  2961464874935675902], dtype=uint64)
    """

    __slots__ = ("_generator",)
    certifiable: ClassVar[bool] = False

    def __init__(self, seed: int | Sequence[int]) -> None:
        parts = [seed] if isinstance(seed, int | np.integer) else list(seed)
        if not parts or not all(_is_seed(x) for x in parts):
            raise InvalidInput("seed", seed, "a whole number from 0 to 2**64 − 1, or several")
        # Two 32-bit words for each and their number first: numpy alone takes 5 for (5, 0).
        halves = [half for x in parts for half in (int(x) % 2**32, int(x) >> 32)]
        self._generator = np.random.Philox([len(parts), *halves])

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words of the stream, the same however the calls divide it."""
        count = whole_number("count", count, 0, _MOST_WORDS)
        return np.asarray(self._generator.random_raw(count), np.uint64)


def _probabilities(values: object) -> NDArray[np.float64]:
    array = np.asarray(values)
    allowed = "numbers in [0, 1]"
    if array.dtype.kind not in "biuf":
        raise InvalidInput("probabilities", values, allowed)
    result = array.astype(np.float64)
    wrong = ~((result >= 0) & (result <= 1) & (result == array))  # NaN; a longdouble rounded
    if wrong.any():
        raise InvalidInput("probabilities", array[wrong].flat[0].item(), allowed)
    return result


def flip(probabilities: object, entropy: Entropy) -> NDArray[np.bool_]:
    """One coin per probability p, True with probability exactly p: for every float64 in [0, 1].

    *Proof.* Let U = Σ_k w_k·2^(−64k) with w_1, w_2, … the words drawn for this coin: U is uniform
    on [0, 1], hence P[U < p] = p. Write p = 0.p_1 p_2 … in base 2^64, p < 1; a float is a dyadic
    fraction, so that p_k = 0 from some k on (k ≤ 18, for p is a multiple of 2^-1074). At the first
    k with w_k ≠ p_k, U < p if w_k < p_k, and U > p, or U = p with probability 0, if w_k > p_k.
    If all digits agree until the rest of p is 0, U ≥ p. The code draws w_k only while all words
    before it agreed, and says True in just the first case. Its arithmetic does not round: scaling
    by 2^64 changes the exponent alone (and makes a subnormal normal), the digit p_k is the integer
    part, below 2^64, of a number of 53 bits, and the rest is what remains of those bits. ∎

    Every coin takes one word, whatever its p; another with probability at most 2^-64. The result
    has the shape of `probabilities`.

    >>> flip([0.0, 1.0, 0.5, 0.5], SeededEntropy(1))
    array([False,  True, False,  True])
    """
    p = _probabilities(probabilities)
    sure = p == 1  # its first digit would be 2^64, which is no digit
    flat = np.where(sure, 0.0, p).ravel()
    yes = np.zeros(flat.size, np.bool_)
    undecided, rest = np.arange(flat.size), flat
    while undecided.size:
        scaled = np.ldexp(rest, _WORD_BITS)
        whole = np.floor(scaled)
        digits, words = whole.astype(np.uint64), entropy.words(undecided.size)
        yes[undecided[words < digits]] = True
        again = (words == digits) & (scaled > whole)
        undecided, rest = undecided[again], (scaled - whole)[again]
    return np.asarray(yes.reshape(p.shape) | sure)


def flip_one(p: float, entropy: Entropy) -> bool:
    """`flip` for one coin, word for word, in plain numbers: a tenth of the time.

    >>> flip_one(0.5, SeededEntropy(1))
    False
    """
    if not 0 <= p <= 1:
        raise InvalidInput("probabilities", p, "numbers in [0, 1]")
    rest = 0.0 if p == 1 else p
    while True:
        scaled = math.ldexp(rest, _WORD_BITS)
        digit, word = math.floor(scaled), int(entropy.words(1)[0])
        if word < digit:
            return True
        if word > digit or scaled == digit:
            return p == 1
        rest = scaled - digit


def uniform_index(size: int, entropy: Entropy) -> int:
    """A number from 0 to size − 1, each with probability exactly 1/size.

    Words from the last incomplete run of `size` are rejected; fewer than one in four is.

    >>> uniform_index(6, SeededEntropy(1))
    4
    """
    size = whole_number("size", size, 1, 2**62)
    complete = 2**_WORD_BITS - 2**_WORD_BITS % size
    while True:
        word = int(entropy.words(1)[0])
        if word < complete:
            return word % size
