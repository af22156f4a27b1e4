"""Fresh splitting: the figures, the smallest size, and the bound by exact enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.theory.bars import in_quantile_interval
from holdfast.theory.paper import adaptive_iqr
from holdfast.theory.sizing import best_rank, fresh_blocks, fresh_split, split_failure

QUERIES = st.integers(1, 10**6)
FAILURES = st.floats(1e-9, 0.5)


@st.composite
def tails(draw: st.DrawFn) -> tuple[float, float]:
    low = draw(st.floats(0.001, 0.9))
    high = draw(st.floats(0.001, 0.9))
    total = low + high
    scale = min(1.0, 0.9 / total)
    return low * scale, high * scale


@pytest.mark.parametrize(
    ("tail", "figures"),
    [(0.25, (4_300, 57_000, 730_000)), (0.01, (500, 5_000, 70_000))],
)
def test_the_reference_figures(tail: float, figures: tuple[int, ...]) -> None:
    assert tuple(fresh_blocks(k, 0.05, tail) for k in (100, 1_000, 10_000)) == figures


def test_a_million_questions_take_no_time() -> None:
    assert fresh_blocks(10**6, 0.05, 0.25) == 103 * 10**6
    assert fresh_blocks(10**6, 1e-9, 0.49) > 10**9


def test_the_papers_constants_win_only_above_168_thousand_questions() -> None:
    # theory.md §9: r = 32, ρ = 1/4, β = 0.05. m₁ moves in steps: the sign settles from here on.
    assert adaptive_iqr(168_148, 32, 0.05) >= fresh_blocks(168_148, 0.05, 0.25)
    assert adaptive_iqr(168_149, 32, 0.05) < fresh_blocks(168_149, 0.05, 0.25)
    assert adaptive_iqr(200_000, 32, 0.05) < fresh_blocks(200_000, 0.05, 0.25)


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (Fraction(1, 4), Fraction(1, 4)),
        (Fraction(1, 2), Fraction(1, 8)),
        (Fraction(1, 16), Fraction(3, 4)),
    ],
)
def test_the_bound_is_reached(blocks: int, low: Fraction, high: Fraction) -> None:
    law = {-1: low, 0: 1 - low - high, 1: high}
    assert not in_quantile_interval(-1, list(law), low, 1 - high, weights=list(law.values()))
    assert in_quantile_interval(0, list(law), low, 1 - high, weights=list(law.values()))
    for rank in range(1, blocks + 1):
        outside = sum(
            math.prod((law[y] for y in draw), start=Fraction(1))
            for draw in itertools.product(law, repeat=blocks)
            if sorted(draw)[rank - 1] != 0
        )
        bound = split_failure(blocks, rank, float(low), float(high))
        assert Fraction(bound) == pytest.approx(outside, rel=1e-9)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 5),
    st.integers(1, 5),
    st.sampled_from([Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)]),
    st.sampled_from([Fraction(1, 20), Fraction(1, 4), Fraction(2, 5)]),
)
def test_no_law_exceeds_the_bound(
    weights: list[int], blocks: int, rank: int, low: Fraction, high: Fraction
) -> None:
    rank = min(rank, blocks)
    values = list(range(len(weights)))
    bad = [y for y in values if not in_quantile_interval(y, values, low, 1 - high, weights=weights)]
    outside = sum(
        (
            math.prod((Fraction(weights[y], sum(weights)) for y in draw), start=Fraction(1))
            for draw in itertools.product(values, repeat=blocks)
            if sorted(draw)[rank - 1] in bad
        ),
        Fraction(0),
    )
    assert outside <= Fraction(split_failure(blocks, rank, float(low), float(high)))


@given(st.integers(1, 60), tails())
def test_the_best_rank_is_the_best(blocks: int, pair: tuple[float, float]) -> None:
    found = split_failure(blocks, best_rank(blocks, *pair), *pair)
    best = min(split_failure(blocks, rank, *pair) for rank in range(1, blocks + 1))
    assert found == pytest.approx(best, rel=1e-8)


@given(st.integers(1, 200), tails())
def test_the_best_failure_is_one_minus_a_total_variation(
    blocks: int, pair: tuple[float, float]
) -> None:
    a, b = pair[0], 1 - pair[1]
    overlap = sum(
        math.comb(blocks, i) * min(p, q)
        for i, p, q in (
            (i, a**i * (1 - a) ** (blocks - i), b**i * (1 - b) ** (blocks - i))
            for i in range(blocks + 1)
        )
    )
    found = split_failure(blocks, best_rank(blocks, *pair), *pair)
    assert found == pytest.approx(min(1.0, overlap), rel=1e-7)
    more = split_failure(blocks + 1, best_rank(blocks + 1, *pair), *pair)
    assert more <= found * (1 + 1e-9)


@given(QUERIES, FAILURES, tails())
def test_the_split_passes_and_one_block_less_fails(
    queries: int, failure: float, pair: tuple[float, float]
) -> None:
    blocks, rank = fresh_split(queries, failure, *pair)
    assert split_failure(blocks, rank, *pair) <= failure / queries
    if 1 < blocks < 300:
        every = [split_failure(blocks - 1, other, *pair) for other in range(1, blocks)]
        assert min(every) > failure / queries * (1 - 1e-8)


@given(QUERIES, FAILURES, st.floats(0.001, 0.49))
def test_equal_tails_are_the_median(queries: int, failure: float, tail: float) -> None:
    blocks, rank = fresh_split(queries, failure, tail, tail)
    assert queries * blocks == fresh_blocks(queries, failure, tail)
    assert blocks % 2 == 1
    assert rank == (blocks + 1) // 2


@given(QUERIES, FAILURES, st.floats(0.5, 1.0), st.floats(0.001, 0.45), st.floats(0.5, 1.0))
def test_blocks_grow_with_queries_confidence_and_tail(
    queries: int, failure: float, stricter: float, tail: float, smaller: float
) -> None:
    base = fresh_blocks(queries, failure, tail)
    assert fresh_blocks(queries + 1, failure, tail) > base
    assert fresh_blocks(queries, failure * stricter, tail) >= base
    assert fresh_blocks(queries, failure, tail * smaller) <= base


def test_tails_of_zero_ask_for_one_side_only() -> None:
    # Only P[Bin(m₁, 1/4) ≥ m₁] = 4^−m₁ can go wrong, and only P[Bin(m₁, 1/2) ≥ m₁] = 2^−m₁.
    assert fresh_split(1, 0.01, 0.0, 0.25) == (4, 1)
    assert fresh_split(1, 0.01, 0.5, 0.0) == (7, 7)
    assert fresh_split(1, 0.01, 0.0, 0.0) == (1, 1)


@pytest.mark.parametrize(
    ("queries", "failure", "low", "high"),
    [(0, 0.1, 0.25, 0.25), (1, 0.0, 0.25, 0.25), (1, 0.1, 0.5, 0.5), (1, 0.1, 1.0, 0.0)],
)
def test_what_has_no_meaning_is_refused(
    queries: int, failure: float, low: float, high: float
) -> None:
    with pytest.raises(InvalidInput):
        fresh_split(queries, failure, low, high)
