from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.baselines.description_blocks import median_blocks, verdict_blocks
from holdfast.errors import Infeasible, InvalidInput
from holdfast.theory.amplification import median_samples
from holdfast.theory.binomial import binomial_tail
from holdfast.theory.splitting import fresh_blocks


@given(
    st.integers(1, 60),
    st.integers(1, 200),
    st.sampled_from([0.01, 0.1, 0.25, 0.4]),
    st.floats(1e-6, 0.5),
)
def test_medians_are_those_of_the_union_bound(
    queries: int, grid_size: int, tail: float, failure: float
) -> None:
    questions = sum(grid_size**i for i in range(queries))
    blocks = median_blocks(queries, grid_size, tail, failure)
    assert questions * 2 * binomial_tail(blocks, tail, (blocks + 1) // 2) <= failure * (1 + 1e-9)
    # N is rounded up to r^(k−1)·r/(r−1), by less than a factor of 2: a step of blocks at most.
    assert blocks <= median_samples(failure / questions / 2, tail)


def test_one_question_is_the_fresh_median() -> None:
    assert median_blocks(1, 1, 0.25, 0.05) == median_samples(0.05, 0.25)


def test_few_questions_need_fewer_blocks_than_fresh_splitting() -> None:
    for queries, tail in product((5, 20, 80), (0.25, 0.05)):
        assert median_blocks(queries, 32, tail, 0.05) < fresh_blocks(queries, 0.05, tail)


def test_the_promise_holds_for_the_best_analyst_on_a_tiny_population() -> None:
    """Exactly: four equally likely blocks, all samples, all first questions, all second ones.

    A question is a set of blocks, answered by the exact median of its indicator. The second may
    depend on the first answer; the worst choice is found for each answer on its own.
    """
    tail, failure = 0.25, 0.9
    blocks = median_blocks(2, 2, tail, failure)
    assert blocks == 5
    samples = np.array(list(product(range(4), repeat=blocks)))
    sets = [np.array(members, bool) for members in product((0, 1), repeat=4)]
    answers = [members[samples].sum(axis=1) > blocks / 2 for members in sets]
    wrong = [
        np.where(answer, members.mean() <= tail, members.mean() >= 1 - tail)
        for members, answer in zip(sets, answers, strict=True)
    ]
    worst = max(
        bad.mean()
        + max((~bad & ~answer & second).mean() for second in wrong)
        + max((~bad & answer & second).mean() for second in wrong)
        for bad, answer in zip(wrong, answers, strict=True)
    )
    assert 0.15 < worst <= failure


@given(
    st.integers(1, 2_000),
    st.integers(1, 20),
    st.sampled_from([(0.05, 0.25), (0.01, 0.1), (0.2, 0.4)]),
    st.floats(1e-6, 0.5),
)
def test_verdicts_meet_the_union_bound(
    queries: int, refusals: int, tails: tuple[float, float], failure: float
) -> None:
    refusals = min(refusals, queries)
    blocks, count = verdict_blocks(queries, refusals, *tails, failure)
    questions = sum(math.comb(queries, j + 1) for j in range(refusals))
    share = failure / questions * (1 + 1e-9)
    assert binomial_tail(blocks, tails[0], count) <= share
    assert 2 * binomial_tail(blocks, 1 - tails[1], blocks - count + 1) <= share


def test_verdicts_near_the_fewest() -> None:
    """No smaller number of blocks has any count that would do."""
    blocks, _ = verdict_blocks(1_000, 1, 0.05, 0.25, 0.05)
    share = 0.05 / 1_000
    for fewer in range(blocks - 12, blocks):
        assert not any(
            binomial_tail(fewer, 0.05, c) <= share
            and 2 * binomial_tail(fewer, 0.75, fewer - c + 1) <= share
            for c in range(fewer + 1)
        )


@pytest.mark.parametrize(
    "call",
    [
        lambda: median_blocks(0, 32, 0.25, 0.05),
        lambda: median_blocks(1, 0, 0.25, 0.05),
        lambda: median_blocks(1, 32, 0.5, 0.05),
        lambda: median_blocks(1, 32, 0.25, 0.0),
        lambda: verdict_blocks(10, 1, 0.25, 0.05, 0.05),
        lambda: verdict_blocks(10, 1, 0.05, 0.5, 0.05),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any) -> None:
    with pytest.raises(InvalidInput):
        call()


def test_too_long_a_description_is_refused_politely() -> None:
    with pytest.raises(Infeasible, match="nats"):
        median_blocks(1_000, 32, 0.25, 0.05)
