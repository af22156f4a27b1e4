"""Every protocol of Holdfast as a responder: the real plan and the real protocol, on rows.

base      plans that fit the rows
rows      rows as a source of blocks
claims    what an answer claims of a mean or a median
mean      mean, by the direct search and by the median of block means
searches  estimate, simple, amplified, interval, near
guesses   verify, correct
exact     exact answers, verdicts and corrections
fresh     split, rounds
weights   multiplicative weights, by looks and exact, for rows out of a finite universe

A plan is made at the first question, for `Terms.queries` questions of its kind. If the rows do not
carry it, `Infeasible` says what would. `HOLDFAST` has them all by name.

Their class says `certified`: claims are the protocol's promise. An answer drawn from a seed says
that it is not, for its coins could be foreseen: a promise, but no certificate.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.lab.conversation import Responder, Terms
from holdfast.lab.responders.holdfast.exact import (
    HoldfastExact,
    HoldfastExactCorrect,
    HoldfastExactVerify,
)
from holdfast.lab.responders.holdfast.fresh import HoldfastRounds, HoldfastSplit
from holdfast.lab.responders.holdfast.guesses import HoldfastCorrect, HoldfastVerify
from holdfast.lab.responders.holdfast.mean import HoldfastMean, HoldfastMedianMean
from holdfast.lab.responders.holdfast.searches import (
    HoldfastAmplified,
    HoldfastEstimate,
    HoldfastInterval,
    HoldfastNear,
    HoldfastSimple,
)
from holdfast.lab.responders.holdfast.weights import HoldfastExactWeights, HoldfastWeights, Labelled

__all__ = ["HOLDFAST", "Labelled"]

HOLDFAST: dict[str, Callable[[Terms], Responder]] = {
    each.name: each
    for each in (
        HoldfastMean,
        HoldfastMedianMean,
        HoldfastEstimate,
        HoldfastInterval,
        HoldfastVerify,
        HoldfastCorrect,
        HoldfastNear,
        HoldfastSimple,
        HoldfastAmplified,
        HoldfastExact,
        HoldfastExactVerify,
        HoldfastExactCorrect,
        HoldfastRounds,
        HoldfastSplit,
        HoldfastWeights,
        HoldfastExactWeights,
    )
}
