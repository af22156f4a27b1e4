"""What a study wants of each protocol, one module per kind."""

from __future__ import annotations

from holdfast.planning.requests.base import Request, Setting
from holdfast.planning.requests.guesses import Guesses
from holdfast.planning.requests.means import DirectMeans
from holdfast.planning.requests.searches import (
    AmplifiedEstimates,
    Estimates,
    Intervals,
    MedianMeans,
    SimpleEstimates,
)
from holdfast.planning.requests.weights import WeightedEstimates

__all__ = [
    "AmplifiedEstimates",
    "DirectMeans",
    "Estimates",
    "Guesses",
    "Intervals",
    "MedianMeans",
    "Request",
    "Setting",
    "SimpleEstimates",
    "WeightedEstimates",
]
