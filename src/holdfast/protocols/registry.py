"""Every protocol, in one list: what can be asked of a plan, and by whom it is answered.

To add one: a module with its part or plan and its `Protocol`, and a line here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.protocols.base import Protocol, Verb
from holdfast.protocols.guesses import Correct, Verify
from holdfast.protocols.means import DirectMean, MedianMean
from holdfast.protocols.plans import Part, SetPlan, Wanted
from holdfast.protocols.rounds import EffectiveRounds
from holdfast.protocols.searches import Amplified, Estimate, Interval, Near, Simple
from holdfast.protocols.split import Split
from holdfast.protocols.told import (
    ToldAsk,
    ToldBest,
    ToldCompare,
    ToldGate,
    ToldInterval,
    ToldMean,
    ToldScore,
    ToldScores,
    ToldVerify,
)
from holdfast.protocols.weights import Weights

__all__ = ["PROTOCOLS", "mix_names", "protocols_for", "wanted"]

# For every verb the first choice first. An estimate serves where a plan has no part made for means
# or guesses: its promise covers them, at its own price.
PROTOCOLS: list[type[Protocol[Any]]] = [
    ToldScore,
    ToldCompare,
    ToldGate,
    ToldBest,
    ToldScores,
    ToldMean,
    ToldAsk,
    ToldInterval,
    ToldVerify,
    Estimate,
    Simple,
    Amplified,
    Weights,
    EffectiveRounds,
    Split,
    Interval,
    DirectMean,
    MedianMean,
    Verify,
    Near,
    Correct,
]

Answering = tuple[type[Protocol[Any]], tuple[SetPlan, Part]]


def protocols_for(verb: Verb, parts: Iterable[tuple[SetPlan, Part]]) -> list[Answering]:
    """Who can answer a verb, of which part of which plan: the first choice first."""
    pairs = list(parts)
    return [
        (kind, pair)
        for kind in PROTOCOLS
        if kind.verb == verb
        for name in kind.of
        for pair in pairs
        if pair[1].protocol == name and kind.serves(*pair)
    ]


def mix_names() -> tuple[str, ...]:
    """What `--protocols` knows."""
    return tuple(name for kind in PROTOCOLS for name in kind.__dict__.get("mixes", ()))


def wanted(name: str) -> Wanted:
    """What a name in `--protocols` makes."""
    return next(kind.mixes[name] for kind in PROTOCOLS if name in kind.__dict__.get("mixes", ()))
