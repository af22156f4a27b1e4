"""Protocols: values per block in, answers out, on one budget that they share."""

from __future__ import annotations

from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.budget import Account, Budget, Charge
from holdfast.protocols.exact import ExactCorrect, ExactEstimate, ExactVerify
from holdfast.protocols.guesses import Correct, Corrected, Verify
from holdfast.protocols.means import DirectMean, MedianMean, mean_of
from holdfast.protocols.rounds import EffectiveRounds
from holdfast.protocols.searches import Amplified, Estimate, Interval, Near, Simple
from holdfast.protocols.source import BlockArray, Source
from holdfast.protocols.split import Split
from holdfast.protocols.weights import ExactWeighing, Weights

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
