"""Protocols: values per block in, answers out, on one budget that they share."""

from __future__ import annotations

from holdfast.protocols.account import Account, Charge
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.budget import Budget
from holdfast.protocols.correct import Correct, Corrected
from holdfast.protocols.estimate import Estimate
from holdfast.protocols.exact import ExactCorrect, ExactEstimate, ExactVerify
from holdfast.protocols.exact_weights import ExactWeighing
from holdfast.protocols.interval import Interval
from holdfast.protocols.mean import DirectMean, MedianMean, mean_of
from holdfast.protocols.near import Near
from holdfast.protocols.rounds import EffectiveRounds
from holdfast.protocols.simple import Amplified, Simple
from holdfast.protocols.source import BlockArray, Source
from holdfast.protocols.split import Split
from holdfast.protocols.verify import Verify
from holdfast.protocols.weights import Weights

__all__ = [
    "Account",
    "Amplified",
    "Answer",
    "BlockArray",
    "Budget",
    "Charge",
    "Correct",
    "Corrected",
    "DirectMean",
    "EffectiveRounds",
    "Estimate",
    "ExactCorrect",
    "ExactEstimate",
    "ExactVerify",
    "ExactWeighing",
    "Interval",
    "MedianMean",
    "Near",
    "Simple",
    "Source",
    "Split",
    "Verdict",
    "Verify",
    "Weights",
    "mean_of",
]
