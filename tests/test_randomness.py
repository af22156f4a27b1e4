"""Coins and indices: exactly by scripted words and rational arithmetic, then by statistics."""

from __future__ import annotations

import copy
import itertools
import math
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast import randomness
from holdfast.errors import InvalidInput
from holdfast.randomness import (
    Entropy,
    SeededEntropy,
    SystemEntropy,
    flip,
    system_entropy,
    uniform_index,
)

WORD = 2**64
SMALLEST = math.ulp(0.0)
FALSE_ALARM = 1e-6


class ScriptedEntropy(Entropy):
    """Gives the words of a script; asking for more is an error."""

    def __init__(self, script: Sequence[int]) -> None:
        self.left = list(script)

    def words(self, count: int) -> NDArray[np.uint64]:
        if count > len(self.left):
            raise AssertionError("asked for more words than the script has")
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, np.uint64)


def digits(p: float) -> list[int]:
    """The base-2^64 digits of p in [0, 1) until the rest is 0, at least one, by fractions."""
    rest, result = Fraction(p), list[int]()
    while rest or not result:
        scaled = rest * WORD
        result.append(scaled.numerator // scaled.denominator)
        rest = scaled - result[-1]
    return result


def decision(p: float, script: Sequence[int]) -> tuple[bool, int]:
    """What the coin of p says to a script, and how many words it uses."""
    entropy = ScriptedEntropy(script)
    answer = bool(flip(p, entropy))
    among_others = ScriptedEntropy(script)  # the same law, written for arrays
    assert flip([p], among_others).tolist() == [answer]
    assert among_others.left == entropy.left
    return answer, len(script) - len(entropy.left)


def implemented_probability(p: float) -> Fraction:
    """The probability that the code says yes, read off the code and not off p.

    For a prefix of ties, the words that say yes are those below a threshold (the tests below
    check that there is one); bisection finds it. A tie either decides or asks for a next word.
    """
    total, prefix = Fraction(0), list[int]()
    while True:
        low, high = 0, WORD  # yes below low, not yes from high on
        while low < high:
            middle = (low + high) // 2
            try:
                yes = decision(p, [*prefix, middle])[0]
            except AssertionError:  # a tie: no yes yet
                yes = False
            low, high = (middle + 1, high) if yes else (low, middle)
        total += Fraction(low, WORD ** (len(prefix) + 1))
        if low == WORD:
            return total
        try:
            decision(p, [*prefix, low])
        except AssertionError:
            prefix.append(low)
        else:
            return total


INTERESTING = [
    *(0.0, 1.0, 0.5, 0.25, 1 / 3, 0.1, 2.0**-53, 1 - 2.0**-53, 2.0**-63, 2.0**-64, 2.0**-65),
    *(3 * 2.0**-65, 2.0**-70 * 12345677, 2.0**-70 * 3, 2.0**-64 * (1 + 2.0**-52), 2.0**-128),
    *(sys.float_info.min, sys.float_info.min - SMALLEST, SMALLEST, 7 * SMALLEST),
    *(2.0**-12 + 2.0**-64, 2.0**-20 - 2.0**-72),
]


# Exactly.


@pytest.mark.parametrize("p", INTERESTING)
def test_the_probability_of_yes_is_p_exactly(p: float) -> None:
    assert implemented_probability(p) == Fraction(p)


@st.composite
def coins_and_scripts(draw: st.DrawFn) -> tuple[float, list[int]]:
    """A probability, and words that follow its digits up to a place and then may leave them."""
    p = draw(st.one_of(st.sampled_from(INTERESTING[:1] + INTERESTING[2:]), st.floats(0, 1)))
    p = 0.5 if p == 1 else p
    own = digits(p)
    place = draw(st.integers(0, len(own)))
    near = own[min(place, len(own) - 1)]
    step = draw(st.sampled_from([-1, 0, 1, WORD // 3]))
    script = [*own[:place], (near + step) % WORD, *draw(st.lists(st.integers(0, WORD - 1)))]
    return p, script + [0] * 20  # enough words for every coin


@given(coins_and_scripts())
def test_a_coin_says_yes_just_when_the_uniform_number_is_below_p(
    case: tuple[float, list[int]],
) -> None:
    p, script = case
    own = digits(p)
    answer, used = decision(p, script)
    # Whatever words follow those that were used, U is in [shortest, shortest + width].
    shortest = sum((Fraction(w, WORD**k) for k, w in enumerate(script[:used], 1)), Fraction(0))
    width = Fraction(1, WORD**used)
    if answer:
        assert shortest + width <= Fraction(p)
    else:
        assert shortest >= Fraction(p)
    agreeing = next((k for k, (w, d) in enumerate(zip(script, own, strict=False)) if w != d), None)
    assert used == (len(own) if agreeing is None else agreeing + 1)


def test_the_smallest_float_takes_seventeen_zeros_and_a_small_word() -> None:
    digit = 2 ** (17 * 64 - 1074)
    assert digits(SMALLEST) == [0] * 16 + [digit]
    assert decision(SMALLEST, [0] * 16 + [digit - 1]) == (True, 17)
    assert decision(SMALLEST, [0] * 16 + [digit]) == (False, 17)
    assert decision(SMALLEST, [0] * 15 + [1]) == (False, 16)


def test_never_and_always_are_so_and_take_a_word_like_any_other() -> None:
    for word in (0, 1, WORD - 1):
        assert decision(0.0, [word]) == (False, 1)
        assert decision(-0.0, [word]) == (False, 1)
        assert decision(1.0, [word]) == (True, 1)


def test_only_the_tied_coins_of_an_array_draw_again() -> None:
    p = np.array([[0.5, 2.0**-64 * 1.5], [2.0**-64 * 1.5, 1.0]])
    first_round = [2**63 - 1, 1, 1, WORD - 1]
    entropy = ScriptedEntropy([*first_round, 2**63 - 1, 2**63, 99])
    assert flip(p, entropy).tolist() == [[True, True], [False, True]]
    assert entropy.left == [99]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (2, 3)])
def test_the_result_has_the_shape_of_the_probabilities(shape: tuple[int, ...]) -> None:
    result = flip(np.full(shape, 0.5), SeededEntropy(0))
    assert isinstance(result, np.ndarray)
    assert result.shape == shape
    assert result.dtype == np.bool_


def test_what_is_no_probability_is_refused_before_a_word_is_drawn() -> None:
    read_only = np.array([0.5, 1], np.float32)
    read_only.flags.writeable = False
    for exact in ([0, 1], [False, True], read_only):  # other types that lose nothing
        assert flip(exact, ScriptedEntropy([WORD // 2, 0])).tolist() == [False, True]
    numbers = [math.nan, math.inf, -SMALLEST, 1 + 2.0**-52, -1, 0.5j, np.longdouble(1) / 3]
    for wrong in (*numbers, [0.5, math.nan], [[0.5], [2]], "0.5", None, [0.5, None]):
        with pytest.raises(InvalidInput, match=r"probabilities must be numbers in \[0, 1\]; got "):
            flip(wrong, ScriptedEntropy([]))


# Indices.


@pytest.mark.parametrize("size", [1, 2, 3, 6, 2**32, 2**61 + 1, 2**62 - 1, 2**62])
def test_an_index_is_uniform_and_the_incomplete_run_is_rejected(size: int) -> None:
    runs = WORD // size
    accepted = runs * size
    for word in {0, 1, size - 1, size, accepted - 1} - {WORD}:
        if word < accepted:
            assert uniform_index(size, ScriptedEntropy([word])) == word % size
    if accepted < WORD:
        assert uniform_index(size, ScriptedEntropy([accepted, WORD - 1, 1])) == 1
    assert Fraction(WORD - accepted, WORD) < Fraction(1, 4)


def test_wrong_sizes_seeds_and_counts_are_refused() -> None:
    for size in (0, -1, 2**62 + 1, 1.5, math.nan, None, True, "6"):
        with pytest.raises(InvalidInput, match="size must be a whole number from 1 to"):
            uniform_index(size, ScriptedEntropy([]))  # type: ignore[arg-type]
    for seed in (-1, 2**64, True, (), (1, -1), (1, 0.5), "7"):
        with pytest.raises(InvalidInput, match="seed must be a whole number"):
            SeededEntropy(seed)  # type: ignore[arg-type]
    for entropy, count in itertools.product((SystemEntropy(), SeededEntropy(1)), (-1, 0.5, None)):
        with pytest.raises(InvalidInput, match="count must be a whole number"):
            entropy.words(count)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        SystemEntropy(1)  # type: ignore[call-arg]


# By statistics. For a coin of probability p, P[n·kl(p̂, p) ≥ x] ≤ 2·e^(−x) (Chernoff, two sides).


def rejects(yes: int, n: int, p: float) -> bool:
    """A test of 'each of n coins has probability p' with false alarm at most 1e-6."""
    q = yes / n
    kl = q * math.log(q / p) if q else 0.0
    kl += (1 - q) * math.log((1 - q) / (1 - p)) if q < 1 else 0.0
    return n * kl > math.log(2 / FALSE_ALARM)


Flip = Callable[[NDArray[np.float64], Entropy], NDArray[np.bool_]]
MUTANTS: dict[str, Flip] = {
    "10 % too often": lambda p, entropy: flip(np.minimum(1.1 * p, 1), entropy),
    "10 % too seldom": lambda p, entropy: flip(0.9 * p, entropy),
    "complement": lambda p, entropy: ~flip(p, entropy),
    "signed words": lambda p, entropy: np.asarray(
        entropy.words(p.size).view(np.int64) < (p * 2.0**63).astype(np.int64)
    ),
    "words of 32 bits": lambda p, entropy: np.asarray(
        entropy.words(p.size) >> np.uint64(32) < (p * 2.0**31).astype(np.uint64)
    ),
}
CASES = [(0.02, 400_000), (0.3, 50_000), (0.7, 50_000), (0.9, 50_000)]


@pytest.mark.parametrize(("p", "n"), CASES)
def test_coins_come_up_as_often_as_they_should_and_mutants_do_not(p: float, n: int) -> None:
    assert not rejects(int(flip(np.full(n, p), SeededEntropy(11)).sum()), n, p)
    for name, mutant in MUTANTS.items():
        assert rejects(int(mutant(np.full(n, p), SeededEntropy(12)).sum()), n, p), name


def test_neighbouring_coins_are_independent() -> None:
    """The parity of neighbours is a fair coin if and only if they are uncorrelated."""
    n = 100_000
    coins = flip(np.full(n, 0.5), SeededEntropy(13))
    for lag in (1, 2, 64):
        assert not rejects(int((coins[lag:] ^ coins[:-lag]).sum()), n - lag, 0.5)
    reused = flip(np.full(n, 0.5), SeededEntropy(13)) ^ flip(np.full(n, 0.5), SeededEntropy(13))
    assert rejects(int(reused.sum()), n, 0.5)  # the power: noise used twice is seen


def test_indices_are_uniform_by_statistics() -> None:
    n, size = 30_000, 6
    entropy = SeededEntropy(14)
    counts = Counter(uniform_index(size, entropy) for _ in range(n))
    # Bonferroni: six tests, each with false alarm 1e-6 / 6, at most 1e-6 together.
    for face in range(size):
        q = counts[face] / n
        kl = q * math.log(q * size) + (1 - q) * math.log((1 - q) / (1 - 1 / size))
        assert n * kl <= math.log(2 * size / FALSE_ALARM)


def test_every_bit_of_the_system_words_is_fair() -> None:
    """The only test without a seed: a fair source fails it with probability at most 1e-9."""
    n = 50_000
    words = SystemEntropy().words(n)
    for bit in range(64):
        yes = int(((words >> np.uint64(bit)) & np.uint64(1)).sum())
        # Hoeffding, two sides, 64 bits; a bit that is 10 % off is 2,500 away, the limit 800.
        assert abs(yes - n / 2) <= math.sqrt(n / 2 * math.log(2 * 64 / 1e-9))


# Sources.


def test_system_words_are_never_given_twice() -> None:
    entropy = SystemEntropy()
    counts = [0, 1, 5, 4096, 4095, 2, 10_000, 4097, 3]
    drawn = [entropy.words(count) for count in counts]
    assert [words.size for words in drawn] == counts
    everything = np.concatenate(drawn)
    assert everything.dtype == np.uint64
    # 28,000 words have a pair in common with probability below 2^-35.
    assert np.unique(everything).size == everything.size


def test_system_words_are_read_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = bytes(range(256)) * 1024
    monkeypatch.setattr(os, "urandom", lambda count: stream[:count])
    entropy = SystemEntropy()
    expected = np.frombuffer(stream[: 8 * 4096], np.uint64)
    drawn = np.concatenate([entropy.words(1000), entropy.words(3000), entropy.words(96)])
    assert np.array_equal(drawn, expected)


def test_used_words_are_wiped_and_the_caller_owns_the_result() -> None:
    entropy = SystemEntropy()
    entropy.words(1)
    buffer = entropy._reserve.words
    base = buffer[:10]
    taken = entropy.words(10)
    assert not base.any()
    assert taken.any()
    taken[:] = 7  # writable, and no window into the buffer
    assert not np.any(entropy.words(10) == 7)


def test_threads_share_a_system_entropy_without_sharing_words() -> None:
    entropy = SystemEntropy()
    start = threading.Barrier(8)

    def draw(_: int) -> list[NDArray[np.uint64]]:
        start.wait()
        return [entropy.words(37) for _ in range(500)]

    with ThreadPoolExecutor(8) as pool:
        drawn = np.concatenate([w for words in pool.map(draw, range(8)) for w in words])
    assert drawn.size == 8 * 500 * 37
    assert np.unique(drawn).size == drawn.size


def test_a_thread_waits_while_another_draws() -> None:
    entropy = SystemEntropy()
    drawn = list[NDArray[np.uint64]]()
    thread = threading.Thread(target=lambda: drawn.append(entropy.words(1)))
    with entropy._reserve.lock:
        thread.start()
        thread.join(0.05)
        assert not drawn
    thread.join(120)
    assert len(drawn) == 1


FORK = """
import os, sys
import numpy as np
from holdfast.randomness import SystemEntropy, system_entropy
shared = SystemEntropy()
for entropy in (shared, system_entropy()):
    entropy.words(10)  # the buffer is full when the process forks
if "held" in sys.argv:
    shared._reserve.lock.acquire()  # as by a thread that the child does not have
{unhook}
read, write = os.pipe()
child = os.fork()
if child == 0:
    inner_read, inner_write = os.pipe()
    grandchild = os.fork()
    words = np.concatenate([e.words(50) for e in (shared, system_entropy())])
    if grandchild == 0:
        os.write(inner_write, words.tobytes())
        os._exit(0)
    os.waitpid(grandchild, 0)
    os.write(write, words.tobytes() + os.read(inner_read, 800))
    os._exit(0)
os.waitpid(child, 0)
theirs = np.frombuffer(os.read(read, 1600), np.uint64)
if "held" in sys.argv:
    shared._reserve.lock.release()
ours = np.concatenate([e.words(50) for e in (shared, system_entropy())])
everything = np.concatenate([theirs, ours])
print(theirs.size, np.unique(everything).size)
"""


# Each of the two defences alone: as if C code had forked, as if a process id had come again.
NO_HOOK = "from holdfast import randomness; randomness._forked.__code__ = (lambda: None).__code__"
NO_PROCESS_ID = """
os.getpid = lambda: 1
for entropy in (shared, system_entropy()):
    entropy._reserve.process = (0, 1)
"""


def words_after_fork(unhook: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-c", FORK.format(unhook=unhook), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return run.stdout.split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("held", [[], ["held"]], ids=["free", "held"])
@pytest.mark.parametrize("unhook", ["", NO_HOOK, NO_PROCESS_ID], ids=["both", "id", "hook"])
def test_forks_draw_different_words(unhook: str, held: list[str]) -> None:
    assert words_after_fork(unhook, *held) == ["200", "300"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_without_both_defences_forks_would_draw_the_same_words() -> None:
    assert words_after_fork(NO_HOOK + NO_PROCESS_ID) == ["200", "100"]


def _first_words(entropy: Entropy) -> list[int]:
    return [int(word) for word in entropy.words(20)]


def test_copies_and_pickles_of_a_system_entropy_start_afresh() -> None:
    entropy = SystemEntropy()
    entropy.words(1)
    copies = [copy.copy(entropy), copy.deepcopy(entropy), pickle.loads(pickle.dumps(entropy))]
    drawn = [word for source in [entropy, *copies] for word in _first_words(source)]
    assert len(set(drawn)) == len(drawn)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(_first_words, (entropy,))
    assert not set(there) & set(drawn)


def test_the_process_has_one_system_entropy_made_in_one_place() -> None:
    assert system_entropy() is system_entropy()
    assert type(system_entropy()) is SystemEntropy
    made = re.compile(r"(?<!class )(?<!>>> )\bSystemEntropy\(")
    source = Path(randomness.__file__).parent
    places = [p.name for p in source.rglob("*.py") for _ in made.findall(p.read_text("utf-8"))]
    assert places == ["randomness.py"]


def test_only_the_system_can_be_certified() -> None:
    assert SystemEntropy().certifiable
    assert not SeededEntropy(1).certifiable
    assert not ScriptedEntropy([]).certifiable  # nor what somebody makes


@pytest.mark.parametrize("entropy", [SystemEntropy(), SeededEntropy(987654321)])
def test_what_is_shown_of_an_entropy_tells_nothing(entropy: Entropy) -> None:
    entropy.words(3)
    assert repr(entropy) == str(entropy) == f"<{type(entropy).__name__}>"
    with pytest.raises(TypeError):
        vars(entropy)


def test_a_seed_repeats_and_calls_divide_the_stream_as_they_like() -> None:
    whole = SeededEntropy(5).words(100)
    entropy = SeededEntropy(5)
    parts = [entropy.words(n) for n in (0, 1, 7, 0, 64, 28)]
    assert np.array_equal(whole, np.concatenate(parts))


def test_different_seeds_are_different_streams() -> None:
    seeds: list[int | tuple[int, ...]] = [0, 1, 2**32, 2**32 + 1, 2**64 - 1, (0, 0), (1, 0), (0, 1)]
    seeds += [(5 + 7 * 2**32, 3), (5, 7 + 3 * 2**32), (0, 0, 0)]
    drawn = [word for seed in seeds for word in _first_words(SeededEntropy(seed))]
    assert len(set(drawn)) == len(drawn)
    assert _first_words(SeededEntropy(3)) == _first_words(SeededEntropy([3]))
    assert _first_words(SeededEntropy(3)) == _first_words(SeededEntropy([np.int64(3)]))  # type: ignore[list-item]
