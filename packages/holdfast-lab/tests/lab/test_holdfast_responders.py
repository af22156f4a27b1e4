"""Holdfast's responders: claims are the protocols' own, refusals are NaN, plans fit or say why."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput
from holdfast.planning.joint import joint_plan
from holdfast.planning.requests import Estimates, Guesses, Request, WeightedEstimates
from holdfast.planning.shapes import BoundedMean
from holdfast.protocols.answers import Verdict
from holdfast.protocols.guesses import Corrected
from holdfast.protocols.source import BlockArray
from holdfast.randomness import SeededEntropy
from holdfast_lab.attacks import protocols
from holdfast_lab.attacks.blocks import Rows
from holdfast_lab.attacks.conversation import Replies, Terms
from holdfast_lab.attacks.protocols import (
    HOLDFAST,
    HoldfastExactWeights,
    HoldfastMean,
    HoldfastSplit,
    HoldfastWeights,
    Labelled,
)
from holdfast_lab.protocol_attacks.means import TwoSidedAttack
from holdfast_lab.protocol_attacks.searches import CorrectAttack, WeightsAttack

QUERIES, ROWS = 4, 3_100
TRUTHS = np.array([0.2, 0.5, 0.65])
BY_MEANS = ("holdfast-mean", "holdfast-median-mean")
WITHOUT_UNIVERSE = [name for name in HOLDFAST if "weights" not in name]
SEARCHING = [name for name in WITHOUT_UNIVERSE if name not in BY_MEANS]


@pytest.fixture(autouse=True)
def _known_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans that take seconds to find: those of the attacks serve here."""

    def plan(*requests: Request, confidence: float, blocks: int | None = None) -> object:
        assert confidence == 0.95
        kinds = tuple(type(request) for request in requests)
        made: dict[Any, Any] = {
            (Guesses,): TwoSidedAttack,
            (Guesses, Estimates): CorrectAttack,
            (WeightedEstimates,): WeightsAttack,
        }
        if kinds in made:
            return made[kinds]().plan
        return joint_plan(*requests, confidence=confidence, blocks=blocks)

    monkeypatch.setattr(protocols, "joint_plan", plan)


def terms(**given: Any) -> Terms:
    return Terms(**{"rows": ROWS, "queries": QUERIES, "entropy": SeededEntropy(1), **given})


def mean_lines(seed: int = 1) -> NDArray[np.bool_]:
    return np.random.default_rng(seed).random((TRUTHS.size, ROWS)) < TRUTHS[:, np.newaxis]


def listened(responder: Any, told: list[Any]) -> Any:
    """The responder, whose protocol now also tells us every answer."""
    protocol = responder.desk.protocol if hasattr(responder, "desk") else responder.protocol
    ask = protocol.ask

    def wrapped(*arguments: Any, **named: Any) -> Any:
        told.append(ask(*arguments, **named))
        return told[-1]

    protocol.ask = wrapped
    return responder


def row_of(replies: Replies, place: int) -> tuple[float, float, float]:
    return float(replies.values[place]), float(replies.low[place]), float(replies.high[place])


def from_verdict(verdict: Verdict, units: int) -> tuple[float | None, ...]:
    tail, guess = verdict.tail_low, verdict.guess
    return guess, *BoundedMean().bar((guess, guess), units, tail, tail)


@pytest.mark.parametrize("name", WITHOUT_UNIVERSE)
def test_a_mean_claims_what_its_answer_certifies(name: str) -> None:
    responder: Any = HOLDFAST[name](terms())
    told: list[Any] = []
    lines = mean_lines()
    first = responder.means(lines[:1], TRUTHS[:1])
    replies = listened(responder, told).means(lines[1:], TRUTHS[1:])
    assert responder.certified
    assert len(told) == 2
    for place, answer in enumerate(told):
        if isinstance(answer, Corrected):
            answer = answer.verdict if answer.correction is None else answer.correction
        got = row_of(replies, place)
        if isinstance(answer, Verdict) and name == "holdfast-near":
            shape, units = BoundedMean(), responder.desk.units
            reach = shape.error(units, 0.25)
            ends = (
                math.nextafter(answer.guess - reach, -1),
                math.nextafter(answer.guess + reach, 2),
            )
            assert answer.refused is False
            assert got == (answer.guess, *shape.bar(ends, units, answer.tail_low, answer.tail_high))
        elif isinstance(answer, Verdict):
            assert answer.refused is False  # the guess is the truth
            assert got == from_verdict(answer, responder.desk.units)
        elif name == "holdfast-interval":
            units = responder.desk.units
            bar = BoundedMean().bar((answer.low, answer.high), units, 0.5, 0.5)
            assert got == (answer.value, *bar)
        else:
            assert got == (answer.value, answer.low, answer.high)
    low, high = np.append(first.low, replies.low), np.append(first.high, replies.high)
    assert np.all((low <= TRUTHS) & (high >= TRUTHS))


@pytest.mark.parametrize("name", SEARCHING)
def test_a_median_claims_the_open_interval_of_its_tails(name: str) -> None:
    values = np.random.default_rng(1).integers(0, 3, (3, ROWS))  # 1 is guessed, and is right
    responder: Any = HOLDFAST[name](terms(half_width=0.45))
    told: list[Any] = []
    responder.medians(values[:1], 3)
    replies = listened(responder, told).medians(values[1:], 3)
    for place, answer in enumerate(told):
        if isinstance(answer, Corrected):
            answer = answer.verdict if answer.correction is None else answer.correction
        tail = answer.tail_low
        value, low, high = row_of(replies, place)
        assert value == (1 if isinstance(answer, Verdict) else math.floor(answer.value))
        assert low == math.nextafter(tail, 1)
        assert high == math.nextafter(1 - tail, 0)
    if name not in ("holdfast-verify", "holdfast-correct"):  # those have the attacks' tails
        assert tail == 0.05


@pytest.mark.parametrize("name", BY_MEANS)
def test_means_find_medians_by_binary_search(name: str) -> None:
    values = np.random.default_rng(2).integers(0, 9, (3, ROWS)) // 2
    replies = HOLDFAST[name](terms(queries=3)).medians(values, 5)
    assert np.all(np.abs(replies.values - 2) <= 1)
    assert np.all(np.isinf(replies.low))


@pytest.mark.parametrize("name", WITHOUT_UNIVERSE)
def test_when_it_is_exhausted_every_value_is_nan(name: str) -> None:
    responder = HOLDFAST[name](terms())
    many = np.repeat(mean_lines()[:1], 150, axis=0)
    wrong = np.full(150, 0.9)  # a guess that is refused uses a refusal up
    replies = responder.means(many, wrong)
    refused = np.isnan(replies.values)
    assert refused[-1]
    assert np.all(np.isinf(replies.low[refused]) & np.isinf(replies.high[refused]))
    guessed = "verify" in name or name == "holdfast-near"
    assert guessed == bool(refused[:QUERIES].any())
    assert np.isnan(responder.means(many, None).values).all()


@pytest.mark.parametrize("name", ["holdfast-interval", "holdfast-exact", "holdfast-rounds"])
def test_too_few_rows_say_how_many_would_do(name: str) -> None:
    responder = HOLDFAST[name](terms(rows=2, half_width=0.45))
    with pytest.raises(Infeasible, match=r"Not enough rows: this needs [\d,]+ rows"):
        responder.medians(np.zeros((1, 2), np.int64), 3)


def test_a_claim_that_is_too_narrow_says_how_many_rows_would_do() -> None:
    lines = mean_lines()
    with pytest.raises(Infeasible, match=r"this needs [\d,]+ rows, but 3,100 give a half-width"):
        HoldfastMean(terms(half_width=0.01)).means(lines, None)
    with pytest.raises(Infeasible, match=r"this needs [\d,]+ rows, but 3,100 give a half-width"):
        HoldfastSplit(terms(half_width=0.03)).means(lines, None)
    assert np.isfinite(HoldfastSplit(terms(half_width=0.3)).means(lines, None).values).all()


def test_rows_serve_questions_of_one_kind() -> None:
    responder = HoldfastSplit(terms())
    responder.means(mean_lines(), None)
    with pytest.raises(InvalidInput, match="about means, as the first"):
        responder.medians(np.zeros((1, ROWS), np.int64), 2)


def test_a_seed_gives_the_same_replies() -> None:
    def replies() -> Replies:
        return HOLDFAST["holdfast-estimate"](terms()).means(mean_lines(), None)

    assert replies().values.tolist() == replies().values.tolist()


@pytest.mark.parametrize("units", [1, 3])
def test_rows_are_the_source_that_block_arrays_are(units: int) -> None:
    rng = np.random.default_rng(3)
    for line in (rng.random(31), rng.random(31) < 0.5, rng.integers(0, 2, 31)):
        ours, known = Rows(31 // units, units), BlockArray(line[: 31 // units * units], 31 // units)
        expected = known.values(lambda block: float(np.mean(block)))
        assert ours.values(line).tolist() == pytest.approx(expected, abs=1e-15)
        assert ours.sums(line).tolist() == known.sums(lambda block: block).tolist()
        part, other = ours.part(2, 7), known.part(2, 7)
        assert part.sums(line).tolist() == other.sums(lambda block: block).tolist()


class TestWeights:
    @pytest.mark.parametrize("kind", [HoldfastWeights, HoldfastExactWeights])
    def test_without_a_universe_it_refuses(self, kind: Any) -> None:
        with pytest.raises(InvalidInput, match=f"known for {kind.name}"):
            kind(terms())

    @pytest.mark.parametrize("kind", [HoldfastWeights, HoldfastExactWeights])
    def test_medians_of_labelled_rows_keep_their_promise(self, kind: Any) -> None:
        attack = WeightsAttack()
        size, tail = attack.universe, attack.tail
        labels = np.random.default_rng(4).integers(0, size // 2, attack.plan.blocks)
        world = Labelled(labels, size)
        responder = kind(terms(queries=attack.queries, half_width=0.5 - tail), world)
        cuts = np.array([size // 20, size // 10, size // 4, size * 9 // 20])
        values = (world.holdout >= cuts[:, np.newaxis]).astype(np.int64)
        replies = responder.medians(values, 2)
        for cut, value in zip(cuts, replies.values, strict=True):
            below = cut / (size // 2)  # of the law, which is uniform on one half of the universe
            assert (1 - below if value else below) > tail
        assert replies.low[0] == math.nextafter(tail, 1)
        assert world.rows == attack.plan.blocks
        with pytest.raises(InvalidInput, match="medians for"):
            responder.means(values, None)

    def test_exhausted_weights_refuse(self) -> None:
        world = Labelled(np.random.default_rng(5).integers(0, 4, 400), 4)
        responder = HoldfastExactWeights(terms(queries=2), world)
        values = np.tile(world.holdout >= 2, (3, 1)).astype(np.int64)
        assert np.isnan(responder.medians(values, 2).values).tolist() == [False, False, True]

    def test_too_few_rows_say_how_many_would_do(self) -> None:
        with pytest.raises(Infeasible, match=r"[\d,]+ rows"):
            HoldfastExactWeights(terms(), Labelled(np.zeros(5, np.int64), 4))
