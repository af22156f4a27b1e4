"""Where the paper's print and the truth differ: the demonstrations of deviations.md."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from holdfast.theory import paper
from holdfast.theory.bars import in_quantile_interval
from holdfast.theory.sizing import hoeffding_failure
from tests.theory.finite import exponential_law, one_look_search, two_look_search


def printed_iqr(queries: int, size: int, failure: float) -> float:
    root = math.sqrt(max(queries, 16) * math.log(256 / failure))
    return 640 * root * math.log(queries * size / failure)


def test_adaptive_iqr_needs_half_the_failure() -> None:
    for queries in (1, 100, 10**5):
        asked = paper.adaptive_iqr(queries, 32, 0.05)
        assert asked == math.ceil(printed_iqr(queries, 32, 0.025))
        assert asked > printed_iqr(queries, 32, 0.05)


def test_640_does_not_imply_2560() -> None:
    assert printed_iqr(1, 1, 0.9) < 2560 * math.log(2 / 0.9)
    for failure in (0.001, 0.3, 0.5):  # with β′ = β/2 ≤ 1/2 it does
        for queries, size in itertools.product((1, 2, 3, 100), (1, 2, 100)):
            assert printed_iqr(queries, size, failure) >= 2560 * math.log(2 * queries / failure)


def test_gen_adapt_needs_one_function_only() -> None:
    for failure in (0.001, 0.05, 0.5):
        assert paper.gen(1 / 16, 1 / 8, 1, failure).blocks <= 2560 * math.log(2 / failure)
        assert paper.gen_adapt(10**6, failure).blocks > 2 * 2560 * math.log(2 / failure)


def test_a_step_of_gen_fails_near_one_but_not_its_conclusion() -> None:
    assert math.log(2 * 1 + 1) > math.log(2 * 1 / 0.7)  # ln(ℓk + 1) ≤ ln(2k/β) at k = 1, β = 0.7
    for i, queries in itertools.product(range(1, 2_000), (1, 2, 3, 10, 10**6)):
        beta = i / 2_000
        copies = math.ceil(Fraction(2_000, i))
        fails = copies * queries + 1 > 2 * queries / beta * (1 + 1e-12)
        assert fails is (beta > 2 * queries / (2 * queries + 1) * (1 + 1e-12))
        # What the contradiction needs: α(1 − (1−β)^ℓ) ≥ 2/(εm)·ln(ℓk + 1) + 2δℓ, term by term.
        hit = 1 - (1 - beta) ** copies
        assert 2 * hit * math.log(2 * queries / beta) >= math.log(copies * queries + 1)
        assert 4 * hit / beta >= copies


# --- lem:MultiEx -----------------------------------------------------------------------------


def leak_law(data: tuple[int, ...], delta: Fraction) -> dict[tuple[int, int], Fraction]:
    """Each sample (of one element) is leaked with chance δ; the first leak is shown, else nothing.

    An outcome (j, z) means sample j and the function 2·1(· = z) − 1; (0, −1) the function 0.
    """
    law: dict[tuple[int, int], Fraction] = {}
    none = Fraction(1)
    for j, z in enumerate(data):
        law[j, z] = law.get((j, z), Fraction(0)) + none * delta
        none *= 1 - delta
    law[0, -1] = none
    return law


@pytest.mark.parametrize("samples", [2, 3, 4])
def test_multiex_is_false_with_m_and_true_with_l(samples: int) -> None:
    points, delta, m = 3, Fraction(1, 20), 1
    datasets = list(itertools.product(range(points), repeat=samples))
    outcomes = [(j, z) for j in range(samples) for z in range(points)] + [(0, -1)]
    for one, two in itertools.combinations(datasets, 2):
        if sum(x != y for x, y in zip(one, two, strict=True)) == 1:
            p, q = leak_law(one, delta), leak_law(two, delta)
            p_law = [float(p.get(o, Fraction(0))) for o in outcomes]
            q_law = [float(q.get(o, Fraction(0))) for o in outcomes]
            assert paper.smallest_delta(p_law, q_law, 0.0) <= float(delta) * (1 + 1e-12)
    gain = Fraction(0)
    for data in datasets:
        for (j, z), chance in leak_law(data, delta).items():
            if z >= 0:  # S^j[φ] − D[φ], φ = 2·1(· = z) − 1
                on_sample = 1 if data[j] == z else -1
                gain += chance * (on_sample - (Fraction(2, points) - 1)) / len(datasets)
    assert gain == (1 - (1 - delta) ** samples) * Fraction(4, 3)
    assert gain > 2 * delta * m  # the printed bound at ε = 0
    assert gain <= 2 * delta * samples  # the proof's
    assert float(gain) <= paper.selected_overfit(0.0, float(delta), samples, 1.0)


# --- medians ---------------------------------------------------------------------------------


def test_median2sq_writes_its_indicator_the_wrong_way_round() -> None:
    at_most, below = (4 / 6, 5 / 6, 1.0), (0.0, 4 / 6, 5 / 6)  # weights 4, 1, 1; the median is 0
    printed_at_most = (1.0, 2 / 6, 1 / 6)  # the mean of 1(v ≤ φ(z))
    printed_below = (2 / 6, 1 / 6, 0.0)  # the mean of 1(v < φ(z))
    assert abs(printed_at_most[0] - at_most[0]) > 0.3  # the proof says they are close
    assert two_look_search(at_most, below, 1 / 16) == 0
    assert two_look_search(printed_at_most, printed_below, 1 / 16) is None


def test_the_strict_tests_of_median2sq_can_reject_every_point() -> None:
    off = 0.25 / 4  # a fair coin on {0, 1}, responses exactly α/4 off
    assert two_look_search((0.5 - off, 1.0), (0.0, 0.5 + off), off) is None
    for error in (-off, off):
        found = one_look_search(2, (0.5 + error, 1.0).__getitem__)
        assert in_quantile_interval(found, [0, 1], 0.375, 0.625)


def test_accuracy_one_fifth_is_enough_for_one_look_but_not_for_median2sq() -> None:
    # The removed proof of the multiplicative-weights theorem. One look: tests/theory/test_paper.py.
    weights = (20, 0, 80)  # the median is 2; P[φ ≤ 1] = 0.2
    at_most = (0.4, 0.4, 1.2)  # an error of 1/5, which 1/8 would not allow
    wrong = two_look_search(at_most, (0.0, 0.2, 0.2), 1 / 8)
    right = one_look_search(3, at_most.__getitem__)
    assert wrong == 1
    assert not in_quantile_interval(wrong, [0, 1, 2], 0.25, 0.75, weights=weights)
    assert in_quantile_interval(right, [0, 1, 2], 0.25, 0.75, weights=weights)


def test_em_adapt_needs_the_union_over_questions() -> None:
    size, failure, queries, m = 200, 0.05, 100, 100
    data = [99.0] * (m // 2) + [100.0] * (m // 2)  # only 99 and 100 are interior
    grid = [float(v) for v in range(size)]

    def all_good(step: float) -> float:
        law = exponential_law(data, grid, step)
        return (law[99] + law[100]) ** queries

    assert all_good(4 * math.log(size / failure) / m) < 0.1  # promised: at least 0.95
    assert all_good(4 * math.log(queries * size / failure) / m) >= 1 - failure


def test_amp_med_at_three_eighths_has_exponent_l_over_32() -> None:
    for samples in (33, 81):
        p = Fraction(3, 8)
        half = (samples + 1) // 2
        worst = 2 * sum(
            math.comb(samples, i) * p**i * (1 - p) ** (samples - i)
            for i in range(half, samples + 1)
        )
        assert float(worst) > 2 * math.exp(-samples / 8)  # as printed in the removed proof
        assert float(worst) <= hoeffding_failure(samples, 0.375)
        assert hoeffding_failure(samples, 0.375) == pytest.approx(
            min(1.0, 2 * math.exp(-samples / 32))
        )


def test_the_last_line_of_the_removed_proof_is_reversed() -> None:
    for n, failure in itertools.product((10, 1_000, 10**6), (0.001, 0.05)):
        left = math.log(8 * n / failure) / math.sqrt(math.log(2 * n / failure))
        assert left > math.sqrt(math.log(8 * n / failure))


# --- thm:adaptive-simple-general --------------------------------------------------------------


def test_adaptive_simple_needs_k_in_the_logarithm() -> None:
    queries, size, failure = 1_000, 2, 0.05

    def printed(m: float) -> float:
        root = math.sqrt(2 * queries * math.log(10 * queries * m / failure))
        return 8 * math.log(2 * size / failure) * root

    m = 1.0
    for _ in range(100):
        m = printed(m)
    delta = failure / (10 * queries * m)
    step = 4 * math.log(2 * queries * size / failure) / m  # what EM-med needs for k questions
    assert paper.interactive_composition(queries, step, 0.0, delta)[0] > math.log(2)


def test_adaptive_simple_needs_a_tenth_not_a_quarter() -> None:
    # km(2ρe^ε + δ) ≤ β/2 fails for ρ = β/(4km) even at ε = 0, and holds for β/(10km) at e^ε = 2.
    queries, blocks, failure = 100, 10_000, 0.05
    km = queries * blocks
    delta = failure / (10 * km)
    assert km * paper.escape_probability(0.0, delta, failure / (4 * km)) > failure / 2
    tenth = km * paper.escape_probability(math.log(2), delta, failure / (10 * km))
    assert tenth == pytest.approx(failure / 2)


# --- corollaries and the introduction --------------------------------------------------------


def test_mad_range_has_one_grid_point_more() -> None:
    for precision in (1.0, 0.5, 0.01):
        size = paper.mad_range_grid_size(precision)
        assert 10 / precision < size <= 10 / precision + 1


def test_the_standard_deviation_in_the_introduction() -> None:
    # "2R·√t = R·k^(1/4)/√n" with n = t·√k: the right side is R/√t.
    loss, t, queries = 1.0, 100, 16
    n = t * math.sqrt(queries)
    right = loss * queries**0.25 / math.sqrt(n)
    assert right == pytest.approx(loss / math.sqrt(t))
    assert right != pytest.approx(2 * loss * math.sqrt(t))
    # Efron–Stein: Var φ ≤ ¼ Σ cᵢ² with cᵢ = 2R/t; reached by the mean of t signs ±R.
    assert math.sqrt(t * (2 * loss / t) ** 2 / 4) == pytest.approx(loss / math.sqrt(t))


def test_the_two_multiplicative_weights_theorems_differ_in_beta() -> None:
    def ratio(logs: float, nats: float) -> float:  # log K, log 1/β
        return logs * math.pow(nats, 1.5) / (math.sqrt(nats) * (logs + nats))

    assert ratio(10, 10) == pytest.approx(5)
    assert ratio(1_000, 1_000) == pytest.approx(500)  # unbounded: the introduction claims more


# --- verification ----------------------------------------------------------------------------


def noiseless_sparse_vector(shares: list[float], threshold: float, refusals: int) -> list[str]:
    """What `sv-emp` promises at its best: Yes, No, and ⊥ after the last refusal."""
    verdicts: list[str] = []
    for share in shares:
        if verdicts.count("N") == refusals:
            verdicts.append("⊥")
        else:
            verdicts.append("Y" if share > threshold else "N")
    return verdicts


def printed_reduction(looks: list[str]) -> list[str]:
    return [
        "⊥" if "⊥" in pair else "Y" if pair == ("Y", "Y") else "N"
        for pair in zip(looks[::2], looks[1::2], strict=True)
    ]


def test_sv_as_printed_swallows_its_last_refusal() -> None:
    # One refusal allowed; the first guess is far too small, so its first look says No.
    looks = noiseless_sparse_vector([0.0, 1.0], 0.2, refusals=1)
    assert looks == ["N", "⊥"]
    assert printed_reduction(looks) == ["⊥"]  # although no refusal has been given yet


def test_both_looks_of_a_guess_can_refuse_when_the_tail_is_above_a_half() -> None:
    # ρ = 0.9, α = 0.1, the middle of three equal values: both tails are 2/3 ≤ ρ − α.
    assert sum(y <= 1 for y in (0, 1, 2)) / 3 <= 0.9 - 0.1
    assert sum(y >= 1 for y in (0, 1, 2)) / 3 <= 0.9 - 0.1
    looks = noiseless_sparse_vector([2 / 3, 2 / 3, 1.0, 1.0], 0.9 - 0.1 / 3, refusals=2)
    assert printed_reduction(looks) == ["N", "⊥"]  # two refusals spent on one guess


def test_sv_emp_needs_bounded_functions() -> None:
    # ψ(z) = C·1(z = 1), u = α: all zeros must give No, a single one with C > αm must give Yes.
    failure, epsilon, delta = 0.05, 0.05, 1e-5
    assert not 1 - failure <= math.exp(epsilon) * failure + delta  # so no private algorithm can


def test_private_in_the_question_is_not_private_in_the_data() -> None:
    # interactive-composition asks for privacy "for every fixed s": showing the data has that.
    def law(data: int, question: int) -> list[float]:
        return [float(data == 0), float(data == 1)]

    assert all(paper.smallest_delta(law(s, 0), law(s, 1), 0.0) == 0 for s in (0, 1))
    assert all(paper.smallest_delta(law(0, q), law(1, q), 5.0) == 1 for q in (0, 1))
