"""The one framework: what is asked, evaluated, answered and judged; every responder by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput
from holdfast.protocols.answers import Corrected, Verdict
from holdfast.protocols.shapes import BoundedMean
from holdfast.protocols.source import BlockArray
from holdfast.randomness import SeededEntropy
from holdfast.theory.sizing import split_failure
from holdfast_lab.attacks import analysts, targets
from holdfast_lab.attacks.analysts import ANALYSTS
from holdfast_lab.attacks.conversation import (
    Conversation,
    Intervals,
    MeanResponder,
    Means,
    Medians,
    Replies,
    Responder,
    Terms,
    Verdicts,
    interview,
    listen,
)
from holdfast_lab.attacks.protocols import CorrectAttack, WeightsAttack
from holdfast_lab.attacks.targets import (
    HOLDFAST,
    Estimates,
    Guesses,
    HoldfastEstimate,
    HoldfastMean,
    HoldfastWeights,
    Labelled,
    Rows,
    joint_plan,
)
from holdfast_lab.attacks.textbook import (
    RESPONDERS,
    Ladder,
    Naive,
    SparseVector,
    Split,
    Thresholdout,
    Watched,
    binomial_limits,
    check_width,
    median_tail,
)
from holdfast_lab.flights import flights_of

NOTHING = float("nan")
ROWS = np.array([0.0, 0.25, 0.5, 1.0])


def terms(rows: int, queries: int, seed: int = 1, **more: Any) -> Terms:
    return Terms(rows, queries, SeededEntropy(seed), **more)


def bits(counts: list[int], rows: int) -> Any:
    """A line for each count: so many ones, then zeros."""
    return np.arange(rows) < np.array(counts)[:, np.newaxis]


# The conversation


class Honest(Responder):
    """The sample's mean ± 0.2 and its lower median, of which the rank is claimed to be 1/2."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, Any]] = []

    def means(self, values: NDArray[Any], guesses: Any) -> Replies:
        self.seen.append((values.tolist(), None if guesses is None else guesses.tolist()))
        return Replies.around(values.mean(axis=1), 0.2)

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        self.seen.append((values.tolist(), points))
        low = np.full(len(values), 0.5)
        return Replies(np.sort(values, axis=1)[:, 1].astype(np.float64), low, low)


class Silent(Responder):
    """Refuses everything."""

    def means(self, values: NDArray[Any], guesses: Any) -> Replies:
        return Replies.unclaimed(np.full(len(values), np.nan))

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        return self.means(values, None)


def script(told: list[list[float]]) -> Conversation:
    """Asks a mean, a median, and a mean made from both answers; keeps what it is told."""
    first = yield Means(lambda rows: np.stack([rows, 1 - rows]), np.array([0.4, 0.6]))
    told.append(first.values.tolist())
    law = np.array([[0.3, 0.6, 1.0]])
    second = yield Medians(lambda rows: (2 * rows).astype(np.int64)[np.newaxis], law)
    told.append(second.values.tolist())
    level = first.values[0] * second.values[0]
    yield Means(lambda rows: (rows > level)[np.newaxis], np.array([0.5]), np.array([0.125]))


def test_a_conversation_in_order() -> None:
    """Questions are evaluated on the rows, put in order, and answered to the analyst."""
    told: list[list[float]] = []
    responder = Honest()
    session = listen(script(told), ROWS, responder)
    assert told == [[0.4375, 0.5625], [0.0]]
    assert responder.seen == [
        ([[0.0, 0.25, 0.5, 1.0], [1.0, 0.75, 0.5, 0.0]], None),
        ([[0, 0, 1, 2]], 3),
        ([[False, True, True, True]], [0.125]),
    ]
    assert session.values.tolist() == [0.4375, 0.5625, 0.0, 0.75]
    assert session.reached.tolist() == [0.4, 0.6, 0.3, 0.5]
    np.testing.assert_allclose(session.errors, [0.0375, 0.0375, 0.2, 0.25])
    assert (session.asked, session.answered, session.worst_error) == (4, 4, 0.25)
    # The rank was said to be 1/2 and is 0.3; the last mean was said to be within 0.2 and is not.
    assert session.wrong_claims == 2


def test_a_session_of_refusals() -> None:
    """A refusal is no answer: it has no error, and its claim cannot be false."""
    session = listen(script([]), ROWS, Silent())
    assert (session.asked, session.answered, session.worst_error) == (4, 0, 0)
    assert session.wrong_claims == 0
    with pytest.raises(InvalidInput, match="question must be of a kind"):
        Silent().verdicts(ROWS)


@pytest.mark.parametrize(
    ("question", "reply", "wrong"),
    [
        (Means(lambda rows: rows, np.array([0.5])), (0.5, 0.5, 0.5), False),
        (Means(lambda rows: rows, np.array([0.5])), (0.4, 0.4, 0.49), True),
        (Means(lambda rows: rows, np.array([0.5])), (0.4, -np.inf, np.inf), False),
        (Verdicts(lambda rows: rows, np.array([0.1])), (1.0, 0.11, 1.0), True),
        (Verdicts(lambda rows: rows, np.array([0.1])), (0.0, 0.0, 0.3), False),
        (Intervals(lambda rows: rows, np.array([0.2, 0.7, 1.0]), 0.05), (1.0, 0, 2), False),
        (Intervals(lambda rows: rows, np.array([0.2, 0.7, 1.0]), 0.05), (1.0, 2, 2), True),
        (Intervals(lambda rows: rows, np.array([0.97, 1.0]), 0.05), (0.5, 0, 1), True),
        (Intervals(lambda rows: rows, np.array([0.97, 1.0]), 0.01), (0.5, 0, 1), False),
        (Intervals(lambda rows: rows, np.array([0.97, 1.0]), 0.05), (NOTHING, 0, 1), False),
    ],
)
def test_a_claim_is_true_or_false(question: Any, reply: tuple[float, ...], wrong: bool) -> None:
    replies = Replies(*np.array(reply, np.float64).reshape(3, 1))
    assert question.wrong(replies, question.reached(replies.values)).tolist() == [wrong]


def test_ranks_of_medians() -> None:
    """The rank nearest to 1/2 among those that the answer has; NaN where there is none."""
    question = Medians(lambda rows: rows, np.array([[0.2, 0.7, 1.0]] * 4))
    ranks = question.reached(np.array([0.0, 1.0, 2.0, np.nan]))
    np.testing.assert_array_equal(ranks, [0.2, 0.5, 0.7, np.nan])


# Known remedies


class Exact(MeanResponder):
    def means(self, values: Any, guesses: Any) -> Replies:
        return Replies.unclaimed(values.mean(axis=1))


@given(st.integers(2, 9), st.integers(1, 12), st.data())
def test_exact_means_find_exact_medians(points: int, rows: int, data: st.DataObject) -> None:
    """The least value that at least half of the rows do not exceed: the lower median."""
    line = st.lists(st.integers(0, points - 1), min_size=rows, max_size=rows)
    values = np.array(data.draw(st.lists(line, min_size=1, max_size=4)))
    expected = Naive(terms(rows, 1)).medians(values, points)
    np.testing.assert_array_equal(Exact().medians(values, points).values, expected.values)


def test_a_refused_mean_leaves_no_median() -> None:
    class Forgetful(Exact):
        def means(self, values: Any, guesses: Any) -> Replies:
            told = values.mean(axis=1)
            told[0] = NOTHING
            return Replies.unclaimed(told)

    values = np.array([[3, 3, 3], [0, 0, 0], [1, 2, 3]])
    np.testing.assert_array_equal(Forgetful().medians(values, 4).values, [NOTHING, 0, 2])


def test_split_uses_every_row_once() -> None:
    """Three rows for each of three questions; then refused, and so is more in the same batch."""
    line = np.arange(10) / 10
    split = Split(terms(10, 3))
    first = split.means(line[np.newaxis], None)
    rest = split.means(np.stack([line] * 4), None)
    np.testing.assert_allclose(first.values, [0.1])
    np.testing.assert_allclose(rest.values, [0.4, 0.7, NOTHING, NOTHING])
    assert np.isinf(rest.low[2:]).all()
    np.testing.assert_allclose(first.high - first.values, math.sqrt(math.log(6 / 0.05) / 6))
    assert Split(terms(5, 6)).means(bits([3, 2], 5), None).refused
    assert Split(terms(5, 6)).medians(bits([3, 2], 5).astype(int), 2).refused


def test_split_claims_exactly() -> None:
    """Binomial limits for bits, and for a median the tail at which exactly β/k is spent."""
    split = Split(terms(100, 2, failure=0.1))
    replies = split.means(bits([40], 100), None)
    assert replies.values.tolist() == [0.8]
    assert (replies.low, replies.high) == binomial_limits(np.array([40]), 50, 0.05)
    median = split.medians(np.tile(np.arange(100) % 3, (1, 1)), 3)
    tail = median_tail(50, 0.05)
    assert (median.low.tolist(), median.high.tolist()) == ([tail], [1 - tail])
    assert split_failure(50, 25, tail, tail) <= 0.05 < split_failure(50, 25, tail + 1e-6, tail)


@given(st.integers(1, 60), st.floats(0.01, 0.99), st.floats(0.01, 0.5))
def test_binomial_limits_cover(rows: int, share: float, failure: float) -> None:
    """The probability that the limits miss, summed over all counts."""
    counts = np.arange(rows + 1)
    low, high = binomial_limits(counts, rows, failure)
    chances = [math.comb(rows, c) * share**c * (1 - share) ** (rows - c) for c in counts.tolist()]
    missed = (share < low) | (share > high)
    assert np.array(chances)[missed].sum() <= failure * (1 + 1e-9)


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_noise_has_its_scale(name: str) -> None:
    """Mean and standard deviation of 20,000 noises, each within 5.5 standard errors.

    Together the two are missed with probability below 1e-7; a scale 5 % off is always caught.
    """
    sigma = RESPONDERS["gaussian"](terms(1_000, 20_000))._sigma  # type: ignore[attr-defined]
    replies = RESPONDERS[name](terms(1_000, 20_000)).means(np.zeros((20_000, 1)), None)
    assert abs(replies.values.mean()) < 5.5 * sigma / math.sqrt(20_000)
    error = 0.005 if name == "gaussian" else math.sqrt(5 / 80_000)
    assert abs(replies.values.std() / sigma - 1) < 5.5 * error < 0.05
    assert np.isfinite(replies.high).all() == (name == "gaussian")


def test_thresholdout_confirms_or_corrects() -> None:
    """T = 4/√n = 0.04, τ = 0.01: guesses 0 and 30 τ away, with ten τ to spare on either side.

    On a scale of 8 units T is 4/(8√n) = 0.005 of [0, 1]: 0.03 away is far.
    """
    values = bits([5_000, 5_000, 2_000], 10_000)
    said = Thresholdout(terms(10_000, 3)).means(values, np.array([0.5, 0.8, NOTHING])).values
    assert said[0] == 0.5
    assert abs(said[1] - 0.5) < 0.1
    assert said[1] not in (0.5, 0.8)
    assert abs(said[2] - 0.2) < 0.1  # without a guess it is 1/2
    near = Thresholdout(terms(10_000, 1)).means(values[:1], np.array([0.515]))
    far = Thresholdout(terms(10_000, 1), span=8.0).means(values[:1], np.array([0.53]))
    assert near.values[0] == 0.515
    assert abs(far.values[0] - 0.5) < 0.0125


def test_the_ladder_goes_down_only() -> None:
    said = Ladder(terms(100, 9), step=0.05).means(bits([48, 44, 90, 42, 30], 100), None).values
    np.testing.assert_allclose(said, [0.5, 0.45, 0.45, 0.45, 0.3])
    free = Ladder(terms(100, 9)).means(bits([50, 49, 40], 100), None).values
    # One row of a hundred is a step of exactly s/√n: not more. Ten are.
    np.testing.assert_allclose(free, [0.5, 0.5, 0.4])


def test_guess_and_check_corrects_and_falls_silent() -> None:
    """With exactly 20 corrections before it the last question is still corrected."""
    holdout = RESPONDERS["guess-and-check"](terms(10_000, 100, half_width=0.05))
    replies = holdout.means(bits([4_000, 4_000], 10_000), np.array([0.41, 0.7]))
    assert replies.values[0] == 0.41
    assert abs(replies.values[1] - 0.4) < 0.05
    np.testing.assert_allclose(replies.high - replies.low, 0.1)
    narrow = RESPONDERS["guess-and-check"](terms(100, 2, half_width=0.01))
    assert narrow.means(bits([50, 50], 100), np.array([0.9, 0.5])).refused
    plain = RESPONDERS["guess-and-check"](terms(20_000, 21))
    said = plain.means(bits([10_000] * 21, 20_000), np.zeros(21)).values
    np.testing.assert_allclose(said, 0.5, atol=check_width(20_000, 21, 0.05))


def test_sparse_vector_gives_verdicts_and_medians() -> None:
    """1,000,000 rows: the noise, of scale 80 rows at most, hides nothing here."""
    rows = 10**6
    values = np.zeros((4, rows), np.bool_)
    values[:, : rows // 2] = True
    vector = SparseVector(terms(rows, 2, half_width=0.01))
    said = vector.means(values, np.array([0.505, 0.4, 0.52, 0.5])).values
    np.testing.assert_array_equal(said, [0.505, NOTHING, NOTHING, NOTHING])  # two times No
    values[0, : rows // 2 - 10_000] = False
    halves = SparseVector(terms(rows, 9)).means(np.stack([values[0], ~values[0]]), None)
    assert halves.values.tolist() == [0.25, 0.75]
    table = np.tile(np.repeat(np.arange(4), [10_000, 20_000, 40_000, 30_000]), (2, 1))
    vector = SparseVector(terms(100_000, 3))
    assert vector.medians(table, 4).values.tolist() == [2, 2]
    assert np.isnan(vector.medians(table, 4).values).any()  # only as long as it may say No


@pytest.mark.parametrize("kind", ["gaussian-median", "exponential-median"])
def test_noisy_medians_claim_nothing(kind: str) -> None:
    responder = RESPONDERS[kind](terms(400, 5, half_width=0.45))
    replies = responder.medians(np.random.default_rng(1).integers(0, 9, (5, 400)), 9)
    assert np.all(np.abs(replies.values - 4) <= 1)
    assert np.all(np.isinf(replies.high))
    assert responder.fewest is not None
    assert 10 < responder.fewest < 400
    with pytest.raises(InvalidInput, match=f"that {kind} answers"):
        responder.means(ROWS, None)


def test_watched_passes_on_and_keeps() -> None:
    watched = Watched(Split(terms(4, 2)))
    replies = watched.means(bits([1, 4], 4), np.array([0.3, 0.4]))
    watched.means(bits([2], 4), None)
    assert replies.values.tolist() == [0.5, 1.0]
    assert watched.sample.tolist() == [0.25, 1.0, 0.5]
    np.testing.assert_array_equal(watched.guesses, [0.3, 0.4, NOTHING])
    assert watched.medians(np.array([[0, 1, 1, 1]]), 2).refused


# Every protocol of Holdfast. Plans that take seconds to find: those of the attacks serve here.


QUERIES, MANY = 4, 3_100
TRUTHS = np.array([0.2, 0.5, 0.65])
BY_MEANS = ("holdfast-mean", "holdfast-median-mean")
SEARCHING = [name for name in HOLDFAST if name not in BY_MEANS]


@pytest.fixture
def quick_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(*requests: Any, confidence: float, blocks: int | None = None) -> object:
        if tuple(map(type, requests)) == (Guesses, Estimates):
            return CorrectAttack().plan
        return joint_plan(*requests, confidence=confidence, blocks=blocks)

    monkeypatch.setattr(targets, "joint_plan", plan)


def ours(name: str, **given: Any) -> Any:
    return HOLDFAST[name](terms(**{"rows": MANY, "queries": QUERIES, **given}))


def mean_lines() -> NDArray[np.bool_]:
    return np.random.default_rng(1).random((TRUTHS.size, MANY)) < TRUTHS[:, np.newaxis]


def listened(responder: Any, told: list[Any]) -> Any:
    """The responder, whose holdout now also tells us every answer."""

    def telling(verb: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            answer = verb(*arguments, **named)
            if isinstance(answer, Corrected):
                told.append(answer.verdict if answer.correction is None else answer.correction)
            else:
                told.append(answer)
            return answer

        return wrapped

    for verb in ("ask", "interval", "mean", "verify", "correct"):
        setattr(responder.holdout, verb, telling(getattr(responder.holdout, verb)))
    return responder


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.parametrize("name", HOLDFAST)
def test_a_mean_claims_what_its_answer_certifies(name: str) -> None:
    told: list[Any] = []
    responder, lines = ours(name), mean_lines()
    first = responder.means(lines[:1], TRUTHS[:1])
    replies = listened(responder, told).means(lines[1:], TRUTHS[1:])
    assert responder.certified
    assert len(told) == 2
    for place, answer in enumerate(told):
        got = tuple(float(each[place]) for each in (replies.values, replies.low, replies.high))
        if not isinstance(answer, Verdict):
            assert got == (answer.value, answer.low, answer.high)
            continue
        assert answer.refused is False  # the guess is the truth
        tails = answer.tail_low, answer.tail_low
        bar = BoundedMean().bar((answer.guess, answer.guess), responder.units, *tails)
        assert got == (answer.guess, *bar)
    low, high = np.append(first.low, replies.low), np.append(first.high, replies.high)
    assert np.all((low <= TRUTHS) & (high >= TRUTHS))
    # Exhausted, every value is NaN; a guess that is refused uses a refusal up.
    many = np.repeat(lines[:1], 150, axis=0)
    replies = responder.means(many, np.full(150, 0.9))
    refused = np.isnan(replies.values)
    assert refused[-1]
    assert np.all(np.isinf(replies.low[refused]) & np.isinf(replies.high[refused]))
    before = responder.spent()
    assert responder.means(many, None).refused
    assert responder.spent() == before


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.parametrize("name", SEARCHING)
def test_a_median_claims_the_open_interval_of_its_tails(name: str) -> None:
    values = np.random.default_rng(1).integers(0, 3, (3, MANY))  # 1 is guessed, and is right
    told: list[Any] = []
    responder = ours(name, half_width=0.45)
    responder.medians(values[:1], 3)
    replies = listened(responder, told).medians(values[1:], 3)
    for place, answer in enumerate(told):
        tail = answer.tail_low
        expected = 1 if isinstance(answer, Verdict) else math.floor(answer.value)
        assert replies.values[place] == expected
        assert replies.low[place] == math.nextafter(tail, 1)
        assert replies.high[place] == math.nextafter(1 - tail, 0)
    if name != "holdfast-correct":  # it has the attack's tails
        assert tail == 0.05


def test_plans_fit_the_rows_or_say_what_would() -> None:
    lines = mean_lines()
    with pytest.raises(Infeasible, match=r"Not enough rows: this needs [\d,]+ rows"):
        ours("holdfast-estimate", rows=2, half_width=0.45).medians(np.zeros((1, 2), np.int64), 3)
    for made, width in ((HoldfastMean, 0.01), (HoldfastEstimate, 0.1)):
        with pytest.raises(Infeasible, match=r"[\d,]+ rows, but 3,100 give a half-width"):
            made(terms(MANY, QUERIES, half_width=width)).means(lines, None)
    estimate = ours("holdfast-estimate", half_width=0.4)
    assert np.isfinite(estimate.means(lines, None).values).all()
    with pytest.raises(InvalidInput, match="about means, as the first"):
        estimate.medians(np.zeros((1, MANY), np.int64), 2)
    values = np.random.default_rng(2).integers(0, 9, (3, MANY)) // 2
    for name in BY_MEANS:  # which search for medians
        replies = ours(name, queries=3).medians(values, 5)
        assert np.all(np.abs(replies.values - 2) <= 1)
        assert np.all(np.isinf(replies.low))
    said = [ours("holdfast-estimate").means(lines, None).values.tolist() for _ in range(2)]
    assert said[0] == said[1]


@pytest.mark.parametrize("units", [1, 3])
def test_rows_are_the_source_that_block_arrays_are(units: int) -> None:
    rng = np.random.default_rng(3)
    for line in (rng.random(31), rng.random(31) < 0.5, rng.integers(0, 2, 31)):
        rows, known = Rows(31 // units, units), BlockArray(line[: 31 // units * units], 31 // units)
        expected = known.values(lambda block: float(np.mean(block)))
        assert rows.values(line).tolist() == pytest.approx(expected, abs=1e-15)
        for ours, theirs in ((rows, known), (rows.part(2, 7), known.part(2, 7))):
            assert ours.sums(line).tolist() == theirs.sums(lambda block: block).tolist()


def test_weights_answer_medians_of_labelled_rows() -> None:
    attack = WeightsAttack()
    size, tail = attack.universe, attack.tail
    world = Labelled(np.random.default_rng(4).integers(0, size // 2, attack.blocks), size)
    placed = HoldfastWeights.placed(attack.plan, world, SeededEntropy(1))
    responder = HoldfastWeights.on(placed)
    cuts = np.array([size // 20, size // 10, size // 4, size * 9 // 20])
    values = (world.holdout >= cuts[:, np.newaxis]).astype(np.int64)
    replies = responder.medians(values, 2)
    for cut, value in zip(cuts, replies.values, strict=True):
        below = cut / (size // 2)  # of the law, which is uniform on one half of the universe
        assert (1 - below if value else below) > tail
    assert replies.low[0] == math.nextafter(tail, 1)
    with pytest.raises(InvalidInput, match="of a kind"):
        responder.means(values, None)


# Everybody with everybody


TINY: dict[str, dict[str, Any]] = {
    "freedman": {"variables": 3},
    "variable-selection": {"variables": 3, "sizes": (2,)},
    "boosting": {"submissions": 3},
    "quadratic": {"queries": 4},
    "sign-aggregation": {"questions": 3},
    "subgroups": {"queries": 4},
}
MEDIANS_ONLY = ("gaussian-median", "exponential-median")


@pytest.fixture
def tiny_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans that are found at once, and a population of a hundred flights, read in no time."""
    kept: Callable[..., Any] = targets._kept
    number = np.arange(100)
    frame = {
        "carrier": np.where(number % 3 == 0, "UA", "AA"),
        "origin": np.where(number % 2 == 0, "JFK", "LGA"),
        "arr_delay": np.where(number % 4 == 0, 60.0, 0.0),
        "month": 1 + number % 12,
        "hour": 5 + number % 18,
    }
    same = {"dest": "BOS", "tailnum": "N1", "dep_delay": 0.0, "year": 2013, "day": 1}
    few = flights_of(pd.DataFrame({**frame, **same}))

    def found(kind: Any, asked: Any, blocks: int | None) -> Any:
        if kind.name == "holdfast-correct":  # the attack's: to find one takes seconds
            return CorrectAttack().plan
        return kept(kind, asked, blocks)

    monkeypatch.setattr(targets, "_kept", found)
    monkeypatch.setattr(analysts, "load_flights", lambda: few)


@pytest.mark.usefixtures("tiny_worlds")
@pytest.mark.parametrize("responder", RESPONDERS)
def test_every_analyst_talks_to_every_responder(responder: str) -> None:
    """To the end, with a finite error for every answer and a claim around it."""
    assert sorted(TINY) == sorted(ANALYSTS)
    assert RESPONDERS[responder].name == responder  # type: ignore[attr-defined]
    for name, small in TINY.items():
        asking = ANALYSTS[name](rows=700, **small)
        assert asking.queries == QUERIES
        medians = name == "sign-aggregation"
        told = terms(700, QUERIES, failure=0.5, half_width=0.49 if medians else None)
        if responder in MEDIANS_ONLY and not medians:
            with pytest.raises(InvalidInput, match="of a kind"):
                interview(
                    asking, asking.draw(np.random.default_rng(1)), RESPONDERS[responder](told)
                )
            continue
        session = interview(
            asking, asking.draw(np.random.default_rng(1)), RESPONDERS[responder](told)
        )
        assert 2 <= session.asked <= QUERIES
        answered = ~np.isnan(session.values)
        assert np.isfinite(session.errors[answered]).all()
        assert ((session.reached[answered] >= 0) & (session.reached[answered] <= 1)).all()
        assert (session.low <= session.high).all()
        assert session.worst_error <= (1 if session.answered == 0 else 2)
