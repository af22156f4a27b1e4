"""Small plans that prove themselves: numbers that the planner found, so that no test searches."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from holdfast.protocols.guesses import VerdictPart
from holdfast.protocols.means import DirectPart
from holdfast.protocols.plans import JointPlan, LookPart
from holdfast.protocols.rounds import RoundsPlan
from holdfast.protocols.searches import SearchPart
from holdfast.protocols.split import SplitPlan, split_plan
from holdfast.protocols.told import ToldPlan, told_plan
from holdfast.protocols.weights import WeightsPart

BLOCKS = 400


def searching(
    protocol: str, queries: int, *, grid: int, tail: float, found: tuple[Any, ...], **more: Any
) -> SearchPart:
    """`found`: twice the target, both failures, the price and the floor of a look, the looks."""
    return SearchPart(protocol, protocol, queries, grid, tail, tail, *found, **more)


def guessing(
    name: str,
    queries: int,
    *,
    refusals: int,
    sides: int,
    tails: tuple[float, float],
    found: tuple[Any, ...],
) -> VerdictPart:
    """`found`: twice the target, both failures, prices of No and Yes, false ones, the looks."""
    return VerdictPart(name, "verify", queries, refusals, sides, *tails, *found)


ESTIMATE = searching("estimate", 6, grid=8, tail=0.02, found=(BLOCKS, 0.1, 0.1, 0.00125, 1e-7, 63))
INTERVAL = replace(
    ESTIMATE,
    name="interval",
    protocol="interval",
    queries=2,
    grid=4,
    tail_high=0.5,
    twice_target=108,
    failure_low=0.12,
    failure_high=0.12,
    look_price=0.003,
    looks=26,
    mirrored=True,
)
VERIFY = guessing(
    "verify",
    12,
    refusals=3,
    sides=2,
    tails=(0.02, 0.45),
    found=(94, 0.12, 0.12, 0.0825, 0.0055, 1e-7, 1e-7, 24),
)
PARTS: tuple[LookPart, ...] = (ESTIMATE, INTERVAL, VERIFY)


@cache
def mixed_plan() -> JointPlan:
    """Six estimates, two intervals, twelve guesses with three refusals: certified at 0.4."""
    order = 12.0
    limit = sum(part.planned(order) for part in PARTS) * (1 + 1e-12)
    plan = JointPlan(BLOCKS, order, limit, 0.4, PARTS)
    assert plan.verify()
    return plan


def joint(*parts: LookPart, blocks: int, order: float, confidence: float) -> JointPlan:
    """The parts on one budget that pays for all of them."""
    budget = sum(part.planned(order) for part in parts) * (1 + 1e-12)
    plan = JointPlan(blocks, order, budget, confidence, parts)
    assert plan.verify()
    return plan


mixed = mixed_plan


@cache
def estimates() -> JointPlan:
    """Six estimates alone."""
    return joint(ESTIMATE, blocks=400, order=12.0, confidence=0.4)


@cache
def crowd() -> JointPlan:
    """500 questions of one look: what many processes share."""
    part = searching(
        "estimate",
        500,
        grid=2,
        tail=0.1,
        found=(215, 0.5, 0.5, 0.0004989116425132936, 9.999999999999996e-10, 500),
    )
    return joint(part, blocks=215, order=3.6835127990497054, confidence=0.45)


@cache
def simple() -> JointPlan:
    """Five estimates on nine blocks, for well concentrated estimators: a look that sees them all
    on one side errs with 3e-9 (on five, which would do for the promise, with 7e-5).
    """
    part = searching(
        "simple",
        5,
        grid=8,
        tail=1e-6,
        found=(9, 0.049, 0.049, 0.2593518898817417, 3.333333333333332e-09, 15),
    )
    return joint(part, blocks=9, order=2.2377558994213755, confidence=0.95)


@cache
def amplified() -> JointPlan:
    """Four estimates on 23 blocks of 15 sub-blocks."""
    part = searching(
        "amplified",
        4,
        grid=8,
        tail=0.017299838365854282,
        found=(23, 0.049, 0.049, 0.04303803644936293, 4.166666666666665e-09, 12),
        subblocks=15,
        subblock_tail=0.25,
    )
    return joint(part, blocks=23, order=5.5014109722575455, confidence=0.95)


@cache
def direct() -> JointPlan:
    """Five means by a search over their sum."""
    part = DirectPart(
        name="mean",
        protocol="mean",
        queries=5,
        half_width=0.3,
        apart=49,
        slope=1037.6665545623293,
        failure=0.04999999999999999,
        look_price=0.016078702172660907,
        floor=7.6209255337472494e-06,
        exact=False,
        looks=5,
    )
    return joint(part, blocks=249, order=13.134296925823323, confidence=0.95)


@cache
def medians() -> JointPlan:
    """Four means by medians of block means."""
    part = searching(
        "mean",
        4,
        grid=16,
        tail=0.05,
        found=(31, 0.19, 0.19, 0.02104004508751567, 1.2499999999999996e-08, 16),
    )
    return joint(part, blocks=31, order=4.553509661059582, confidence=0.8)


def told() -> ToldPlan:
    """No plan: what is told over 600 units."""
    return told_plan(600)


@cache
def rounds() -> RoundsPlan:
    """Twenty questions in two rounds."""
    part = guessing(
        "verify",
        20,
        refusals=2,
        sides=2,
        tails=(0.01, 0.3),
        found=(
            *(76, 0.008723217739700357, 0.0362767822602995, 0.552184282780655),
            *(0.018808980960235585, 2.180804434925089e-10, 9.069195565074874e-10, 40),
        ),
    )
    verification = JointPlan(
        462, 15.910466184698857, 0.12200221103214011, 0.9550000000000001, (part,)
    )
    plan = RoundsPlan(verification, 2, 93, 0.95)
    assert plan.verify()
    return plan


@cache
def weights() -> JointPlan:
    """Five questions by weights about blocks of two kinds."""
    part = WeightsPart(
        name="weights",
        protocol="weights",
        queries=5,
        updates=4,
        universe=2,
        tail=0.05,
        twice_target=82,
        twice_slack=31,
        failure_low=0.0441313404138607,
        failure_updates=0.005868659586139282,
        no_price=0.3634974598570332,
        yes_price=0.07543907419193967,
        false_yes=2.451741134103372e-09,
        false_no=3.2603664367440454e-10,
        looks=18,
    )
    return joint(part, blocks=133, order=8.255378515062045, confidence=0.95)


@cache
def split() -> SplitPlan:
    """Three questions with fresh blocks each."""
    return split_plan(3)


@cache
def gates() -> JointPlan:
    """Twenty guesses on one side, three refusals, on eight blocks: a look that sees them all on one
    side errs with 2e-9 (on six, which would do for the promise, with 4e-5).
    """
    part = guessing(
        "gate",
        20,
        refusals=3,
        sides=1,
        tails=(1e-06, 0.999999),
        found=(
            *(8, 0.02460201438020162, 0.025397985619798346, 0.5960425843499957),
            *(0.09157797989212013, 1.2301007190100807e-09, 1.2698992809899173e-09, 20),
        ),
    )
    plan = JointPlan(8, 2.2008745178532774, 2.7854312515521946, 0.95, (part,))
    assert plan.verify()
    return plan


@cache
def board() -> JointPlan:
    """Twenty means by medians of block means, and twenty guesses on one side, on 16 blocks."""
    mean = searching(
        "mean",
        20,
        grid=101,
        tail=1e-06,
        found=(
            *(16, 0.024999999999999994, 0.024999999999999994, 0.019481027674188214),
            *(1.526662495991378e-10, 163),
        ),
    )
    guess = guessing(
        "gate",
        20,
        refusals=5,
        sides=1,
        tails=(1e-06, 0.999999),
        found=(
            *(14, 0.012365919645711106, 0.012634080354288877, 0.07491510427143146),
            *(0.020116587162969882, 6.182959822855553e-10, 6.317040177144438e-10, 20),
        ),
    )
    plan = JointPlan(16, 2.461408237479238, 3.1901333342140608, 0.95, (mean, guess))
    assert plan.verify()
    return plan


@cache
def scores() -> JointPlan:
    """Sixty means by a search over their sum: a small leaderboard."""
    part = DirectPart(
        name="mean",
        protocol="mean",
        queries=60,
        half_width=0.32094570612009915,
        apart=120,
        slope=4593.342746796755,
        failure=0.04999999999999999,
        look_price=0.002257718247013813,
        floor=2.6662745781323034e-07,
        exact=False,
        looks=60,
    )
    return joint(part, blocks=600, order=15.525697235122502, confidence=0.95)
