"""From a list of protocols to plans: what shares blocks, and what needs its own.

Protocols that answer by looks share one budget on one set of blocks. Those that answer exactly,
split or go in rounds have sets of their own. β is divided equally over the sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.planning.exact import (
    exact_corrections,
    exact_estimates,
    exact_verdicts,
    exact_weights,
)
from holdfast.planning.joint import joint_from, joint_plan
from holdfast.planning.kept import KeptPlan
from holdfast.planning.requests import (
    AmplifiedEstimates,
    DirectMeans,
    Estimates,
    Guesses,
    Intervals,
    MedianMeans,
    Request,
    SimpleEstimates,
)
from holdfast.planning.rounds import rounds_plan
from holdfast.planning.scores import score_plan
from holdfast.planning.solve import plan
from holdfast.planning.splits import split_plan
from holdfast.theory.sizing import QUERIES_MAX

__all__ = ["MENU", "Order", "plans_for", "read_order"]

_GATE_TAIL = 1e-6


@dataclass(frozen=True)
class Order:
    """How many questions of each protocol, and what is promised of them."""

    queries: Mapping[str, int]
    grid: int = 32
    tail: float | None = None
    confidence: float = 0.95
    refusals: int = 10
    rounds: int = 5
    universe: int | None = None

    def __post_init__(self) -> None:
        if not self.queries:
            raise InvalidInput("protocols", "", f"some of {', '.join(MENU)}")
        for name, count in self.queries.items():
            if name not in MENU:
                raise InvalidInput("protocols", name, f"some of {', '.join(MENU)}")
            whole_number(f"queries for {name}", count, 1, QUERIES_MAX)
        whole_number("grid", self.grid, 2, 2**62)
        whole_number("refusals", self.refusals, 1, QUERIES_MAX)
        whole_number("rounds", self.rounds, 1, QUERIES_MAX)
        real_number("confidence", self.confidence, 0, 1, open_low=True, open_high=True)
        if "weights" in self.queries and self.universe is None:
            hint = "Weights need to know how many different blocks there can be."
            raise InvalidInput("universe", None, "given for weights", hint)
        if self.tail is not None:
            real_number("tail", self.tail, 0, 0.5, open_low=True, open_high=True)


def read_order(text: str, queries: int | None, **more: Any) -> Order:
    """`estimate,verify=100`: names, each with its own number of questions or the common one.

    >>> dict(read_order("estimate, verify=100", 500).queries)
    {'estimate': 500, 'verify': 100}
    >>> dict(read_order("correct", 500, refusals=20).queries)
    {'verify': 500, 'estimate': 20}
    """
    counts: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = item.partition("=")
        name = name.strip()
        if name in counts:
            raise InvalidInput("protocols", text, "a list that names each protocol once")
        try:
            count = whole_number("queries", float(number), 0, QUERIES_MAX) if number else queries
        except ValueError:  # no number, or not a whole one
            raise InvalidInput("protocols", item, "NAME or NAME=QUESTIONS") from None
        if count is None:
            hint = "Give --queries, or a number for each: estimate=500."
            raise InvalidInput("queries", None, f"known for {name}", hint)
        counts[name] = count
    if "correct" in counts:  # a guess that is verified, and a search for each that is refused
        guesses = counts.pop("correct")
        counts.setdefault("verify", guesses)
        counts.setdefault("estimate", min(guesses, more.get("refusals", Order.refusals)))
    return Order(counts, **more)


def plans_for(order: Order, units: int | None = None) -> list[KeptPlan]:
    """The plans that keep the order, one for each set of blocks.

    >>> [type(each).__name__ for each in plans_for(read_order("estimate,verify,split=3", 20))]
    ['JointPlan', 'SplitPlan']
    """
    shared = [name for name in order.queries if MENU[name].request is not None]
    own = [name for name in order.queries if MENU[name].plan is not None]
    sets = len(own) + bool(shared)
    share = _share(order.confidence, sets)
    plans: list[KeptPlan] = []
    if "score" in shared:
        plans.append(_scores(order, units, share))
    elif shared == ["estimate"]:
        grid, k = order.grid, order.queries["estimate"]
        # Alone, estimates make the best of the units there are, unless the tail is given.
        known = {} if order.tail is not None or units is None or own else {"rows": units}
        tail = {} if known else {"tail": order.tail or 0.25}
        made = plan(queries=k, grid=grid, confidence=share, **known, **tail)  # type: ignore[arg-type]
        plans.append(joint_from(made))
    elif shared:
        requests = [MENU[name].asked(order, order.queries[name]) for name in shared]
        plans.append(joint_plan(*requests, confidence=share))
    for name in own:
        maker = MENU[name].plan
        assert maker is not None
        plans.append(maker(order, order.queries[name], share))
    return plans


def _share(confidence: float, sets: int) -> float:
    """The confidence of each set, so that all together keep what was asked for."""
    if sets == 1:
        return confidence
    beta = (1 - Fraction(repr(confidence))) / sets
    share = float(1 - beta)
    while 1 - Fraction(repr(share)) > beta:
        share = math.nextafter(share, 1.0)
    return share


@dataclass(frozen=True)
class _Item:
    """A protocol on the menu: a request that shares a budget, or a plan with its own blocks."""

    request: Callable[[Order, int], Request] | None = None
    plan: Callable[[Order, int, float], KeptPlan] | None = None

    def asked(self, order: Order, queries: int) -> Request:
        assert self.request is not None
        return self.request(order, queries)


def _estimates(order: Order, queries: int) -> Request:
    tail = order.tail or 0.25
    return Estimates(queries, order.grid, tail, tail)


def _guesses(order: Order, queries: int) -> Request:
    return Guesses(queries, min(order.refusals, queries))


def _scores(order: Order, units: int | None, confidence: float) -> KeptPlan:
    if [*order.queries] != ["score"] or units is None:
        hint = "Scores take every row for a block, and other questions want large blocks."
        allowed = "score by itself, of a known number of rows"
        raise InvalidInput("protocols", ",".join(order.queries), allowed, hint)
    return score_plan(order.queries["score"], units, confidence)


def _amplified(order: Order, queries: int, confidence: float) -> KeptPlan:
    request = AmplifiedEstimates(queries, order.grid, order.tail or 0.25)
    return joint_plan(request, confidence=confidence)


def _exact(order: Order, queries: int, confidence: float) -> KeptPlan:
    tail = order.tail or 0.25
    return exact_estimates(queries, order.grid, tail, tail, confidence)


def _exact_verify(order: Order, queries: int, confidence: float) -> KeptPlan:
    return exact_verdicts(queries, min(order.refusals, queries), confidence=confidence)


def _gates(order: Order, queries: int, confidence: float) -> KeptPlan:
    """Exact guesses on one side with tails for means: few blocks, so that they are large ones.

    Exact, so that a pass is free: by looks it would be cheap, and the blocks smaller.
    """
    tail = _GATE_TAIL if order.tail is None else order.tail
    if 1 - tail == 1:
        raise InvalidInput("tail", tail, "at least 1e-15 for gates")
    refusals = min(order.refusals, queries)
    return exact_verdicts(queries, refusals, tail, 1 - tail, confidence, sides=1)


def _exact_correct(order: Order, queries: int, confidence: float) -> KeptPlan:
    refusals = min(order.refusals, queries)
    return exact_corrections(queries, refusals, order.grid, confidence=confidence)


def _rounds(order: Order, queries: int, confidence: float) -> KeptPlan:
    return rounds_plan(queries, order.rounds, confidence=confidence, exact=True)


def _weights(order: Order, queries: int, confidence: float) -> KeptPlan:
    assert order.universe is not None  # checked with the order
    return exact_weights(queries, order.universe, order.tail or 0.25, confidence)


def _split(order: Order, queries: int, confidence: float) -> KeptPlan:
    tail = order.tail or 0.25
    return split_plan(queries, tail, tail, confidence)


MENU: dict[str, _Item] = {
    "estimate": _Item(_estimates),
    "interval": _Item(lambda order, k: Intervals(k, order.grid, order.tail or 0.25)),
    "mean": _Item(lambda _order, k: MedianMeans(k)),
    "verify": _Item(_guesses),
    "simple": _Item(lambda order, k: SimpleEstimates(k, order.grid)),
    "score": _Item(lambda _order, k: DirectMeans(k)),
    "amplified": _Item(plan=_amplified),
    "exact": _Item(plan=_exact),
    "exact-verify": _Item(plan=_exact_verify),
    "exact-correct": _Item(plan=_exact_correct),
    "gate": _Item(plan=_gates),
    "rounds": _Item(plan=_rounds),
    "split": _Item(plan=_split),
    "weights": _Item(plan=_weights),
}
