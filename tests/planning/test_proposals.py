"""Proposals and recommendations: every figure certified, and the cheapest named."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import pytest

from holdfast.errors import Infeasible, InvalidInput
from holdfast.planning import proposals
from holdfast.planning.compare import recommend
from holdfast.planning.joint import joint_from, joint_plan
from holdfast.planning.solve import plan
from holdfast.protocols.guesses import Guesses
from holdfast.protocols.means import DirectMeans
from holdfast.protocols.plans import Setting
from holdfast.protocols.searches import Estimates
from holdfast.protocols.shapes import BoundedMean, KnownSd

verify, estimate = cache(proposals.propose_verify), cache(proposals.propose_estimate)


def others(proposal: object) -> dict[str, int | None]:
    return {a.method: a.blocks for a in proposal.alternatives}  # type: ignore[attr-defined]


def test_means_beat_the_reference_figures() -> None:
    made = proposals.propose_mean(1_000, half_width=0.1)
    assert made.plan.verify()
    assert made.predicted["rows"] <= 30_000  # the reference is 87,503
    assert made.predicted["rows"] == made.blocks * made.predicted["block_size"]
    rows = others(made)
    assert rows["paper"] is not None
    assert rows["paper"] > 1_000 * made.predicted["rows"]
    assert min(count for count in rows.values() if count) == made.predicted["rows"]
    surer = proposals.propose_mean(1_000, 0.1, confidence=0.999)
    assert surer.predicted["rows"] <= 46_000  # 123,913
    assert proposals.propose_mean(2, half_width=0.1).method == "split"


def test_verification_beats_the_reference_figures() -> None:
    made = verify(1_000, 10)
    assert made.plan.verify()
    assert made.blocks <= 3_200  # the reference is 4,439
    assert others(made)["paper"] == 1_046_522
    assert verify(1_000, 1).blocks <= 1_760  # 2,604
    assert verify(10_000, 1).blocks <= 2_130  # 3,123


def test_looks_at_a_flat_price_are_among_the_starts() -> None:
    request = Guesses(1_000, 1_000)
    flat = request.part(Setting(40.0, 0.1, 0.1, 0.05), request.starts()[1], 10_000)
    assert flat is not None
    assert flat.no_price == flat.yes_price
    assert verify(1_000, 1_000).blocks <= 10_900


def test_intervals_predict_their_width() -> None:
    shape = BoundedMean()
    made = proposals.propose_interval(20, grid=64, tail=0.02, shape=shape, block_size=100)
    assert made.predicted["width"] == 2 * (shape.error(100, 0.02) + 1 / 63)
    assert "width" not in proposals.propose_interval(20, grid=64, tail=0.02).predicted
    small = proposals.smallest_interval(20, half_width=0.1)
    assert small.predicted["width"] <= 0.2
    points = int(small.predicted["grid"])
    narrow = proposals.narrowest_interval(20, rows=int(small.predicted["rows"]), grid=points)
    assert narrow.predicted["width"] <= 0.2 * 1.01  # the same question the other way round
    wide = proposals.smallest_interval(20, half_width=0.5, grid=points, shape=KnownSd(1.0))
    assert wide.predicted["width"] <= 1.0
    assert all(p.plan.verify() for p in (made, small, narrow, wide))


def test_intervals_that_cannot_be() -> None:
    with pytest.raises(Infeasible, match="rows"):
        proposals.narrowest_interval(20, rows=5, grid=128)
    with pytest.raises(Infeasible, match="grid"):
        proposals.smallest_interval(10, half_width=0.05, grid=8)
    with pytest.raises(Infeasible, match="intervals would say nothing"):
        proposals.narrowest_interval(20, rows=800, grid=64)


def test_weights_pay_for_many_questions_and_small_universes() -> None:
    """At k = 10⁶ they win by far; at k = 10⁴, |Z| = 10⁵ and ρ = 1/4 they do not."""
    advice = recommend(10**6, universe=100)
    assert advice.best.protocol == "weights"
    assert advice.saving is not None
    assert advice.saving > 3
    few = proposals.propose_weights(10**4, 10**5, tail=0.25)
    searches = others(few)["estimate"]
    assert searches is not None
    assert few.blocks > searches


def test_rounds_correct_simple_amplified_split() -> None:
    rounds = proposals.propose_rounds(200, rounds=3)
    assert rounds.blocks == (
        rounds.predicted["verification_blocks"] + 3 * rounds.predicted["set_blocks"]
    )
    correct = proposals.propose_correct(200, refusals=3)
    assert correct.blocks >= verify(200, 3).blocks
    simple = proposals.propose_simple(1_000)
    paper = others(simple)["paper"]
    assert paper is not None
    assert simple.blocks < 100 < paper
    amplified = proposals.propose_amplified(1_000)
    assert (
        amplified.blocks == amplified.predicted["subblocks"] * amplified.predicted["whole_blocks"]
    )
    assert amplified.blocks < 1.6 * estimate(1_000).blocks
    assert proposals.propose_split(10).blocks == 270
    assert all(p.plan.verify() for p in (rounds, correct, simple, amplified))


def test_proposals_are_plain_json() -> None:
    for made in (verify(50, 2), proposals.propose_split(5), proposals.propose_rounds(50, 2)):
        data = json.loads(made.to_json())
        assert data["blocks"] == made.blocks
        assert data["protocol"] == made.protocol
        assert all(isinstance(a["blocks"], int) for a in data["alternatives"])


def test_the_cheapest_is_recommended_and_by_how_much() -> None:
    advice = recommend(1_000, refusals=5, universe=200, tail=0.05, tail_high=0.25)
    blocks = [p.blocks for p in advice.proposals]
    names = {p.protocol for p in advice.proposals}
    assert blocks == sorted(blocks)
    assert {"estimate", "correct", "rounds", "weights", "split", "amplified"} <= names
    assert advice.saving == pytest.approx(blocks[1] / blocks[0])
    assert advice.best.plan.verify()
    assert not {"correct", "rounds", "weights"} & {p.protocol for p in recommend(50).proposals}
    assert advice.to_dict()["blocks"] == blocks[0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: recommend(10, tail=0.5), "tail"),
        (lambda: proposals.propose_mean(10, half_width=0.5), "half_width"),
        (lambda: verify(10, 11), "refusals"),
        (lambda: verify(10, 1, tail_low=0.3, tail_high=0.2), "tail_low below tail_high"),
    ],
)
def test_bad_requests_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()


def test_a_plan_of_searches_is_a_joint_plan_too() -> None:
    core = plan(queries=50, grid=16, tails=(0.1, 0.8))
    made = joint_from(core)
    assert made.verify()
    assert (made.blocks, made.order, made.budget) == (core.blocks, core.order, core.budget)
    assert made.parts[0].planned(made.order) <= made.budget


def test_estimates_cost_the_same_by_both_planners() -> None:
    for queries, tail in ((100, 0.25), (1_000, 0.05)):
        core = plan(queries=queries, grid=32, tail=tail).blocks
        joint = joint_plan(Estimates(queries, 32, tail, tail)).blocks
        assert joint == pytest.approx(core, rel=0.003)


def test_direct_means_use_the_whole_budget_and_no_more() -> None:
    made = joint_plan(DirectMeans(50, 0.15), Estimates(20, 16, 0.05, 0.05))
    part = made.part("mean")
    price = Fraction(part.prices(made.order).worst)
    assert part.looks >= 50
    assert part.looks * price <= Fraction(made.budget)
    assert (part.looks + 1) * price > Fraction(made.budget) * (1 - Fraction(1, 10**9))
    assert math.isclose(sum(p.planned(made.order) for p in made.parts), made.budget, rel_tol=1e-9)
