"""The paper's bounds: exact enumeration where a case is small enough, then their properties."""

from __future__ import annotations

import ast
import importlib
import itertools
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.theory import paper
from holdfast.theory.bars import in_quantile_interval, is_approximate_median
from tests.theory.finite import exponential_law, neighbours, one_look_search

FAILURES = st.floats(1e-9, 0.9)
QUERIES = st.integers(1, 10**6)
SIZES = st.integers(1, 10**6)
TAILS = st.floats(0.002, 0.45)


# --- def:DP, thm:composition, thm:interactive-composition ------------------------------------


@given(
    st.lists(st.floats(0.01, 1), min_size=2, max_size=5),
    st.lists(st.floats(0.01, 1), min_size=5, max_size=5),
    st.floats(0, 2),
)
def test_smallest_delta_is_the_worst_event(
    one: list[float], two: list[float], epsilon: float
) -> None:
    p = [x / sum(one) for x in one]
    q = [x / sum(two[: len(one)]) for x in two[: len(one)]]
    events = itertools.product((0, 1), repeat=len(p))
    worst = 0.0
    for event in events:
        inside_p = sum(x for x, e in zip(p, event, strict=True) if e)
        inside_q = sum(x for x, e in zip(q, event, strict=True) if e)
        worst = max(worst, inside_p - math.exp(epsilon) * inside_q)
        worst = max(worst, inside_q - math.exp(epsilon) * inside_p)
    assert paper.smallest_delta(p, q, epsilon) == pytest.approx(worst, abs=1e-12)


def randomised_responses(queries: int, step: float) -> tuple[list[float], list[float]]:
    """k answers of the worst ε-private mechanism, counted: the two laws of a pair of neighbours."""
    yes = math.exp(step) / (1 + math.exp(step))
    ways = [math.comb(queries, i) for i in range(queries + 1)]
    one = [w * yes**i * (1 - yes) ** (queries - i) for i, w in enumerate(ways)]
    return one, one[::-1]


@pytest.mark.parametrize("queries", [1, 2, 5, 20, 100])
def test_composition_covers_the_worst_mechanism(queries: int) -> None:
    for step, slack in itertools.product((0.001, 0.05, 0.3, 1.0), (1e-9, 1e-3, 0.3)):
        found = paper.interactive_composition(queries, step, 0.0, slack)
        assert found[1] == pytest.approx(slack)
        one, two = randomised_responses(queries, step)
        assert paper.smallest_delta(one, two, found[0]) <= slack
        together = paper.composition([step] * queries, [0.0] * queries, slack)
        assert together == pytest.approx(found)


def test_composition_adds_up_the_deltas() -> None:
    epsilon, delta = paper.composition([0.1, 0.2], [0.01, 0.02], 0.001)
    assert delta == pytest.approx(0.031)
    assert epsilon == pytest.approx(0.025 + math.sqrt(2 * math.log(1000) * 0.05))


@given(QUERIES, st.floats(1e-6, 3), st.floats(1e-12, 0.5))
def test_query_epsilon_is_the_inverse(queries: int, total: float, slack: float) -> None:
    step = paper.query_epsilon(queries, total, slack)
    epsilon, _ = paper.interactive_composition(queries, step, 0.0, slack)
    assert total * (1 - 1e-9) <= epsilon <= total * (1 + 1e-14)


# --- thm:EM-med, cor SQ-med, thm:em-adapt -----------------------------------------------------


@pytest.mark.parametrize(("size", "m"), [(2, 6), (3, 4)])
def test_the_exponential_median_is_private(size: int, m: int) -> None:
    grid = range(size)
    for epsilon, target in itertools.product((0.2, 4.0), (0.5, 0.3)):
        for one, two in neighbours(grid, m):
            p = exponential_law(one, grid, epsilon, target)
            q = exponential_law(two, grid, epsilon, target)
            assert max(x / y for x, y in zip(p, q, strict=True)) <= math.exp(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize(("m", "size"), [(3, 5), (4, 3), (7, 2)])
@pytest.mark.parametrize("failure", [0.02, 0.4])
def test_the_exponential_median_is_accurate(m: int, size: int, failure: float) -> None:
    grid = range(size)
    for alpha in (1.0, 0.5):
        epsilon = paper.exponential_median_epsilon(m, size, failure, alpha)
        assert paper.exponential_median_blocks(size, failure, epsilon * (1 + 1e-9), alpha) <= m
        for data in itertools.combinations_with_replacement(grid, m):
            law = exponential_law(data, grid, epsilon)
            bad = [not is_approximate_median(v, data, alpha) for v in grid]
            assert math.fsum(p for p, b in zip(law, bad, strict=True) if b) <= failure


@pytest.mark.parametrize("m", [4, 7])
@pytest.mark.parametrize("target", [0.2, 0.5, 0.85])
def test_the_recentred_exponential_median_is_accurate(m: int, target: float) -> None:
    # Step 1 of adaptive_tails: w = 2 ln(r/β)/(ε̃ m) on each side of the target.
    size, failure, width = 4, 0.1, 0.3
    epsilon = 2 * math.log(size / failure) / (width * m)
    grid = range(size)
    for data in itertools.combinations_with_replacement(grid, m):
        law = exponential_law(data, grid, epsilon, target)
        good = [
            sum(y <= v for y in data) > (target - width) * m
            and sum(y >= v for y in data) > (1 - target - width) * m
            for v in grid
        ]
        assert math.fsum(p for p, g in zip(law, good, strict=True) if not g) <= failure


def test_equal_scores_form_m_plus_one_runs_or_one_more() -> None:
    grid = range(9)
    for m in (1, 2, 3, 4):
        most = 0
        for data in itertools.combinations(grid, m):
            law = exponential_law(data, grid, 1.0)
            runs = 1 + sum(not math.isclose(x, y) for x, y in itertools.pairwise(law))
            most = max(most, runs)
        assert most == (m + 1 if m % 2 == 0 else m + 2)


@given(
    st.integers(2, 2**40),
    st.floats(1e-9, 0.49),
    st.floats(0.001, 0.49),
    st.floats(1e-12, 0.49),
    st.floats(0.01, 0.49),
)
def test_the_noisy_search_has_its_constant(
    size: int, failure: float, epsilon: float, delta: float, alpha: float
) -> None:
    m = paper.noisy_search_blocks(size, failure, epsilon, delta, alpha)
    counts = 2 * math.ceil(math.log2(size))
    sigma = alpha / (4 * math.sqrt(2 * math.log(counts / failure)))
    assert counts * math.erfc(alpha / 4 / sigma / math.sqrt(2)) <= failure
    z = counts / (2 * (m * sigma) ** 2)
    assert z + 2 * math.sqrt(z * math.log(1 / delta)) <= epsilon
    assert paper.noisy_search_blocks(1, failure, epsilon, delta, alpha) == 1  # nothing to count


@given(QUERIES, SIZES, FAILURES, st.floats(0.1, 1), st.floats(1e-12, 0.5))
def test_many_medians_compose(
    queries: int, size: int, failure: float, alpha: float, slack: float
) -> None:
    blocks = 10**6
    together = paper.exponential_medians_epsilon(queries, blocks, size, failure, alpha, slack)
    step = 4 * math.log(queries * size / failure) / (blocks * alpha)
    expected = queries * step**2 / 2 + step * math.sqrt(2 * queries * math.log(1 / slack))
    assert together == pytest.approx(expected, rel=1e-9)


# --- lem:median2sq ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_one_response_a_step_finds_an_approximate_median(size: int) -> None:
    # Any responses within an error below α/2 = 1/4, here the worst: ±1/5 at every step.
    for weights in itertools.product(range(4), repeat=size):
        total = sum(weights)
        if not total:
            continue
        for signs in itertools.product((-1, 0, 1), repeat=size):
            asked: list[int] = []

            def share(
                i: int,
                weights: Sequence[int] = weights,
                signs: Sequence[int] = signs,
                total: int = total,
                asked: list[int] = asked,
            ) -> float:
                asked.append(i)
                return sum(weights[: i + 1]) / total + signs[i] / 5

            found = one_look_search(size, share)
            assert in_quantile_interval(found, list(range(size)), 0.25, 0.75, weights=weights)
            assert len(asked) <= math.ceil(math.log2(size))


# --- lem:DPEX, lem:MultiEx, thm:gen-simp: random finite mechanisms ----------------------------


@given(
    st.lists(
        st.tuples(st.floats(-1, 1), st.floats(0.01, 1), st.floats(0.01, 1)), min_size=2, max_size=6
    ),
    st.floats(-0.5, 0.5),
    st.floats(0, 1.5),
)
def test_expectations_of_close_laws_are_close(
    atoms: list[tuple[float, float, float]], mu: float, epsilon: float
) -> None:
    values = [x for x, _, _ in atoms]
    p = np.array([a for _, a, _ in atoms]) / sum(a for _, a, _ in atoms)
    q = np.array([b for _, _, b in atoms]) / sum(b for _, _, b in atoms)
    assume(len(set(values)) == len(values))
    delta = paper.smallest_delta(p.tolist(), q.tolist(), epsilon)
    deviation = float(p @ np.abs(np.array(values) - mu))
    half_width = max(abs(x - mu) for x in values)
    bound = paper.expectation_gap(epsilon, delta, deviation, half_width)
    assert abs(float(p @ values) - float(q @ values)) <= bound + 1e-12


def test_the_bound_on_expectations_is_nearly_reached() -> None:
    # X is 0 or 1 with chances near 1/2 and 0: both terms of the bound are needed.
    p, q = [1 - 0.01, 0.01], [1 - 0.01 * math.exp(0.1) - 0.05, 0.01 * math.exp(0.1) + 0.05]
    delta = paper.smallest_delta(p, q, 0.1)
    assert delta == pytest.approx(0.05)
    gap = q[1] - p[1]
    assert gap == pytest.approx(math.expm1(0.1) * 0.01 + delta)
    assert gap <= paper.expectation_gap(0.1, delta, 0.01, 1.0) <= 2 * gap


def tiny_mechanism(
    seed: int, datasets: int, outcomes: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """A random law for each dataset, not far from each other."""
    rng = np.random.default_rng(seed)
    laws = np.exp(rng.normal(0, 0.6, (datasets, outcomes)))
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


def privacy_of(
    datasets: Sequence[tuple[int, ...]], laws: np.ndarray[tuple[int, int], np.dtype[np.float64]]
) -> dict[float, float]:
    """The least δ for some ε, over all datasets that differ in one place."""
    pairs = [
        (laws[one].tolist(), laws[two].tolist())
        for one, two in itertools.combinations(range(len(datasets)), 2)
        if sum(x != y for x, y in zip(datasets[one], datasets[two], strict=True)) == 1
    ]
    return {
        epsilon: max(paper.smallest_delta(*pair, epsilon) for pair in pairs)
        for epsilon in (0.0, 0.1, 0.5, 2.0)
    }


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("samples", [1, 2])
def test_a_private_choice_among_samples_cannot_overfit(seed: int, samples: int) -> None:
    """lem `MultiEx` with m = 1, ℓ = 1 or 2, three data points, four (sample, function) outcomes."""
    rng = np.random.default_rng([seed, 1])
    population = rng.dirichlet(np.ones(3))
    choices = [(int(rng.integers(samples)), rng.uniform(-1, 1, 3)) for _ in range(4)]
    datasets = list(itertools.product(range(3), repeat=samples))
    laws = tiny_mechanism(seed, len(datasets), len(choices))
    gain = magnitude = 0.0
    for data, law in zip(datasets, laws, strict=True):
        chance = math.prod(population[z] for z in data)
        for (k, phi), p in zip(choices, law, strict=True):
            gain += chance * p * (phi[data[k]] - population @ phi)
            magnitude += chance * p * float(population @ np.abs(phi))
    for epsilon, delta in privacy_of(datasets, laws).items():
        assert gain <= paper.selected_overfit(epsilon, delta, samples, min(1.0, magnitude))


@pytest.mark.parametrize("seed", range(12))
def test_values_on_the_sample_rarely_leave_the_interval(seed: int) -> None:
    """thm `gen-simp` with two elements of three points and five functions."""
    rng = np.random.default_rng([seed, 2])
    weights = rng.integers(1, 20, 3).tolist()
    population = np.array(weights) / sum(weights)
    functions = [rng.integers(0, 3, 3).tolist() for _ in range(5)]
    datasets = list(itertools.product(range(3), repeat=2))
    laws = tiny_mechanism(seed, len(datasets), len(functions))
    private = privacy_of(datasets, laws)
    for tail in (0.05, 0.2, 0.4):
        for i in range(2):
            out = 0.0
            for data, law in zip(datasets, laws, strict=True):
                chance = population[data[0]] * population[data[1]]
                for phi, p in zip(functions, law, strict=True):
                    if not in_quantile_interval(
                        phi[data[i]], phi, Fraction(tail), 1 - Fraction(tail), weights=weights
                    ):
                        out += chance * p
            for epsilon, delta in private.items():
                assert out <= paper.escape_probability(epsilon, delta, tail)


# --- thm:gen, thm:gen-adapt ------------------------------------------------------------------


@given(st.floats(0.001, 0.9), st.floats(0.001, 6), QUERIES, FAILURES)
def test_both_forms_of_gen_agree(alpha: float, gamma: float, queries: int, failure: float) -> None:
    epsilon, delta, blocks = paper.gen(alpha, gamma, queries, failure)
    back_alpha, back_gamma = paper.gen_error(epsilon, delta, blocks, queries, failure)
    assert alpha * (1 - 1 / blocks) <= back_alpha <= alpha * (1 + 1e-14)
    assert gamma * (1 - 1e-9) <= back_gamma <= gamma * (1 + 1e-14)


@given(QUERIES, FAILURES)
def test_gen_adapt_is_an_instance_of_gen(queries: int, failure: float) -> None:
    asked = paper.gen(1 / 16, 1 / 8, queries, failure)
    adapt = paper.gen_adapt(queries, failure)
    assert adapt.epsilon <= asked.epsilon
    assert adapt.delta == pytest.approx(asked.delta)
    assert adapt.blocks >= asked.blocks
    # 1/16 + MAD/8 ≤ 1/8: from more than 3/8 in the sample to more than 1/4 in the population.
    assert 1 / 16 + paper.indicator_deviation(0.5) / 8 == 1 / 8


def test_the_deviation_of_an_indicator() -> None:
    for i in range(21):
        p = Fraction(i, 20)
        assert paper.indicator_deviation(float(p)) == pytest.approx(
            float(p * (1 - p) + (1 - p) * p)
        )


# --- thm:adaptive-iqr and its corollaries ----------------------------------------------------


def test_the_reference_figures() -> None:
    figures = [paper.adaptive_iqr(k, 32, 0.05) for k in (100, 1_000, 10_000)]
    assert figures == [228_705, 864_839, 3_182_667]


@given(QUERIES, SIZES, FAILURES)
def test_adaptive_iqr_meets_what_its_proof_asks(queries: int, size: int, failure: float) -> None:
    blocks = paper.adaptive_iqr(queries, size, failure)
    half = failure / 2
    asked = paper.gen_adapt(queries, half)
    assert blocks >= asked.blocks
    spent = paper.exponential_medians_epsilon(queries, blocks, size, half, 0.25, asked.delta)
    assert spent <= asked.epsilon


def recheck(
    found: paper.TailSize, queries: int, size: int, failure: float, tails: tuple[float, float]
) -> None:
    """Every inequality that certifies `adaptive_tails`, written out again."""
    half = failure / 2
    assert 0 < found.epsilon < 1
    assert found.epsilon <= math.log1p(found.gamma) / 2
    assert found.delta <= found.alpha * half / 16
    assert found.blocks >= 8 / (found.epsilon * found.alpha) * math.log(2 * queries / half)
    step = found.query_epsilon
    spent = queries / 2 * step**2 + step * math.sqrt(2 * queries * math.log(1 / found.delta))
    assert spent <= found.epsilon
    width = 2 * math.log(queries * size / half) / (step * found.blocks)
    for tail, sample in zip(tails, (found.target - width, 1 - found.target - width), strict=True):
        for i in range(101):  # no p ≤ tail can show a sample share above `sample`
            p = tail * i / 100
            assert p + found.alpha + found.gamma * 2 * p * (1 - p) <= sample * (1 + 1e-9)


@given(QUERIES, SIZES, FAILURES, TAILS)
def test_adaptive_tails_meets_what_its_proof_asks(
    queries: int, size: int, failure: float, tail: float
) -> None:
    found = paper.adaptive_tails(queries, size, failure, tail, tail)
    assert found.target == pytest.approx(0.5)
    recheck(found, queries, size, failure, (tail, tail))


@pytest.mark.parametrize("tails", [(0.85, 0.05), (0.02, 0.9), (0.001, 0.4), (0.6, 0.39)])
def test_adaptive_tails_covers_unequal_tails(tails: tuple[float, float]) -> None:
    found = paper.adaptive_tails(1_000, 32, 0.05, *tails)
    assert tails[0] < found.target < 1 - tails[1]
    recheck(found, 1_000, 32, 0.05, tails)
    mirror = paper.adaptive_tails(1_000, 32, 0.05, tails[1], tails[0])
    assert mirror.blocks == pytest.approx(found.blocks, rel=1e-6)
    assert mirror.target == pytest.approx(1 - found.target, rel=1e-4)


@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 20)), min_size=1, max_size=6),
)
def test_the_interquartile_interval_is_near_the_mean(atoms: list[tuple[int, int]]) -> None:
    values, weights = [y for y, _ in atoms], [w for _, w in atoms]
    total = sum(weights)
    mean = Fraction(sum(y * w for y, w in atoms), total)
    mad = sum((abs(y - mean) * w for y, w in atoms), Fraction(0)) / total
    variance = sum(((y - mean) ** 2 * w for y, w in atoms), Fraction(0)) / total
    for v in range(-21, 22):
        if in_quantile_interval(v, values, Fraction(1, 4), Fraction(3, 4), weights=weights):
            assert abs(v - mean) <= 4 * mad  # eq iq2mad
            assert (v - mean) ** 2 <= 4 * variance  # intro-var, by Chebyshev


def test_grids_of_the_corollaries() -> None:
    for precision in ("1", "0.5", "0.3", "0.07", "7"):
        step = Fraction(precision)
        multiples = [i * step for i in range(-200, 201) if abs(i * step) <= 5]
        assert paper.mad_range_grid_size(float(precision)) == len(multiples)
        inner = [y for y in multiples if abs(y) <= 1]
        assert paper.intro_var_grid_size(float(precision)) == len(inner)


def test_errors_of_the_corollaries() -> None:
    assert paper.mad_range_error(0.5, 0.01) == pytest.approx(2.01)
    assert paper.intro_var_error(0.5, 0.01) == pytest.approx(1.01)
    assert paper.intro_sq_error(0.5, 100, 0.01) == pytest.approx(0.11)


# --- thm:adaptive-simple-general --------------------------------------------------------------


@given(QUERIES, SIZES, FAILURES)
def test_adaptive_simple_meets_what_its_proof_asks(queries: int, size: int, failure: float) -> None:
    blocks, tail = paper.adaptive_simple(queries, size, failure)

    def asked(m: int) -> float:
        root = math.sqrt(2 * queries * math.log(10 * queries * m / failure))
        return 8 * math.log(2 * queries * size / failure) * root

    assert blocks >= asked(blocks) * (1 - 1e-9)
    assert blocks - 1 < asked(blocks - 1) * (1 + 1e-9)
    delta = failure / (10 * queries * blocks)
    step = 4 * math.log(2 * queries * size / failure) / blocks
    epsilon, _ = paper.interactive_composition(queries, step, 0.0, delta)
    assert epsilon <= math.log(2)
    escape = paper.escape_probability(epsilon, delta, tail)
    assert queries * blocks * escape <= failure / 2
    assert paper.adaptive_simple(queries + 1, size, failure).blocks >= blocks
    assert paper.adaptive_simple(queries, size + 1, failure).blocks >= blocks


# --- thm:sv, thm:sv-emp -----------------------------------------------------------------------


def test_verification_with_the_printed_constants() -> None:
    found = paper.sv(1_000, 10, 0.25, 0.2, 0.05)
    assert found.blocks == found.sparse_vector == 1_046_522  # theory.md §6: about 1.04 million
    assert found.generalization == 127_679


@given(QUERIES, st.floats(0.01, 0.49), st.floats(0.05, 0.95), FAILURES)
def test_sv_uses_gen_as_its_proof_says(
    queries: int, tail: float, part: float, failure: float
) -> None:
    alpha = tail * part
    epsilon, delta, blocks = paper.sv_stability(queries, tail, alpha, failure)
    assert epsilon == pytest.approx(math.log1p(alpha / (8 * tail)) / 2)
    assert epsilon >= alpha / (18 * tail)
    assert delta == pytest.approx(alpha * failure / 384)
    assert blocks == pytest.approx(96 / (epsilon * alpha) * math.log(16 * queries / failure), abs=2)


@given(st.floats(0.01, 0.49), st.floats(0.05, 0.95), st.floats(0, 1), st.floats(-1, 1))
def test_the_two_sided_bound_separates_good_from_bad_guesses(
    tail: float, part: float, population: float, error: float
) -> None:
    # eqn multadd implies eqn suff
    alpha = tail * part
    sample = population + error * (alpha / (4 * tail) * population + alpha / 12)
    if population > tail:
        assert sample > tail - alpha / 3 - 1e-12
    if population <= tail - alpha:
        assert sample <= tail - 2 * alpha / 3 + 1e-12


@given(QUERIES, st.integers(1, 100), st.floats(1e-4, 1), FAILURES)
def test_the_textbook_sparse_vector_is_accurate(
    queries: int, refusals: int, epsilon: float, failure: float
) -> None:
    # One AboveThreshold at ε̃ = ε: noise Lap(2/ε̃) on the threshold, Lap(4/ε̃) on each count.
    counts = 8 * (math.log(queries) + math.log(2 * refusals / failure)) / epsilon
    threshold = math.exp(-counts / 2 * epsilon / 2)
    looks = queries * math.exp(-counts / 2 * epsilon / 4)
    assert refusals * (threshold + looks) <= failure * (1 + 1e-9)


# --- what has no meaning ----------------------------------------------------------------------


def test_what_has_no_meaning_is_refused() -> None:
    wrong: dict[Callable[..., object], list[tuple[object, ...]]] = {
        paper.adaptive_iqr: [(0, 32, 0.05), (1, 0, 0.05), (1, 32, 0.0)],
        paper.adaptive_tails: [(1, 32, 0.05, 0.5, 0.5), (1, 32, 0.05, 0.0, 0.5)],
        paper.gen: [(0.1, 7.0, 1, 0.05)],
        paper.composition: [([0.1], [], 0.1), ([0.1], [0.0], 0.0)],
        paper.smallest_delta: [([1.0], [0.5, 0.5], 0.1)],
        paper.noisy_search_blocks: [(32, 0.5, 0.1, 0.1, 0.1)],
        paper.sv: [(1, 1, 0.25, 0.25, 0.05)],
        paper.mad_range_grid_size: [(0.0,)],
        paper.mad_range_error: [(2.0, 0.1)],
    }
    for function, cases in wrong.items():
        for arguments in cases:
            with pytest.raises(InvalidInput):
                function(*arguments)


# --- docs/explanation/paper-map.md has a row for every label, and every row is true ------------


ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "paper-map.md"

# Every label of the LaTeX source, in the order of its first appearance, removed parts too.
LABELS = re.findall(
    r"\S+",
    """
    thm:intro-sq thm:intro-var thm:intro-iqr thm:intro-rh thm:intro-iqr-mwu fig:interact def:DP
    def:DP2 thm:post thm:composition thm:interactive-composition lem:amp-med eqn:rho1 eqn:rho0
    thm:EM-med eqn:EMacc lem:median2sq thm:SQ-med thm:em-adapt sec:mad-generalization eq:def-mad
    thm:gen thm:gen-adapt eqn:empacc thm:adaptive-iqr fig:median-strong eqn:emp-pf eqn:comp-dp
    cor:mad-range eq:iq2mad thm:gen-simp thm:adaptive-simple-general eqn:emp-int-point
    fig:median-strong-simp sec:extensions sec:reusable thm:sv thm:sv-emp thm:sv-sq eqn:suff
    eqn:multadd eqn:gne thm:adaptive-sq-mwu thm:adaptive-general-mwu app:mad-proof lem:DPEX
    lem:MultiEx eqn:EM eqn:MultiExUB eqn:ContraLB
    """,
)


def rows() -> list[list[str]]:
    lines = PAGE.read_text("utf-8").splitlines()
    return [[c.strip() for c in line.strip("|").split("|")] for line in lines if line[:3] == "| `"]


ROWS = rows()


def resolve(name: str) -> object:
    """The module, or the attribute of a module, that a dotted name stands for."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)


@cache
def functions_of(file: str) -> frozenset[str]:
    found = sorted((ROOT / "tests").rglob(file))
    assert len(found) == 1, f"{file}: {found}"
    tree = ast.parse(found[0].read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_label_has_one_row_in_the_order_of_the_paper() -> None:
    assert len(set(LABELS)) == len(LABELS) == 50
    assert [row[0].strip("`") for row in ROWS] == LABELS
    assert {len(row) for row in ROWS} == {4}
    assert all(all(cell for cell in row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("`"))
def test_every_function_and_test_exists_or_the_row_says_why_not(row: list[str]) -> None:
    names = re.findall(r"`((?:theory|mechanisms)\.[\w.]+)`", row[2])
    assert names or "no function" in row[2]
    for name in names:
        assert resolve(f"holdfast.{name}") is not None
    tests = re.findall(r"`(test_\w+\.py)::(\w+)`", row[3])
    assert tests or row[3].startswith("no test: ")
    for file, name in tests:
        assert name in functions_of(file), f"{file} has no {name}"


def test_names_that_do_not_exist_are_noticed() -> None:
    with pytest.raises(AttributeError):
        resolve("holdfast.theory.paper.no_such_function")
    with pytest.raises(AssertionError):
        functions_of("test_no_such_file.py")
    assert "test_no_such_test" not in functions_of("test_paper.py")
