"""Protocols: what may be asked of blocks, what it costs, and what the answer may say.

One module each, and one line in `registry`. `MemoryHoldout` asks them of arrays in memory; a
`Holdout` of sealed data.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.protocols.answers import Answer, Corrected, Verdict
    from holdfast.protocols.base import Protocol, Question
    from holdfast.protocols.guesses import Guesses
    from holdfast.protocols.means import DirectMeans, MedianMeans
    from holdfast.protocols.memory import MemoryHoldout
    from holdfast.protocols.plans import Account, Charge, JointPlan, SetPlan
    from holdfast.protocols.registry import PROTOCOLS
    from holdfast.protocols.rounds import RoundsPlan
    from holdfast.protocols.searches import (
        AmplifiedEstimates,
        Estimates,
        Intervals,
        SimpleEstimates,
    )
    from holdfast.protocols.source import BlockArray, Source
    from holdfast.protocols.split import SplitPlan, split_plan
    from holdfast.protocols.weights import WeightedEstimates

__all__ = [
    "PROTOCOLS",
    "Account",
    "AmplifiedEstimates",
    "Answer",
    "BlockArray",
    "Charge",
    "Corrected",
    "DirectMeans",
    "Estimates",
    "Guesses",
    "Intervals",
    "JointPlan",
    "MedianMeans",
    "MemoryHoldout",
    "Protocol",
    "Question",
    "RoundsPlan",
    "SetPlan",
    "SimpleEstimates",
    "Source",
    "SplitPlan",
    "Verdict",
    "WeightedEstimates",
    "split_plan",
]

# Loaded when first asked for: whoever reads an answer needs no plan.
_LATER = {
    "answers": ("Answer", "Corrected", "Verdict"),
    "base": ("Protocol", "Question"),
    "guesses": ("Guesses",),
    "means": ("DirectMeans", "MedianMeans"),
    "memory": ("MemoryHoldout",),
    "plans": ("Account", "Charge", "JointPlan", "SetPlan"),
    "registry": ("PROTOCOLS",),
    "rounds": ("RoundsPlan",),
    "searches": ("AmplifiedEstimates", "Estimates", "Intervals", "SimpleEstimates"),
    "source": ("BlockArray", "Source"),
    "split": ("SplitPlan", "split_plan"),
    "weights": ("WeightedEstimates",),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
