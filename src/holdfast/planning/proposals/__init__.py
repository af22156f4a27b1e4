"""Proposals: a plan for one protocol, with what the same promise costs by other means.

Every proposal names its protocol, its size, what it predicts of its answers (a width, an accuracy),
and the alternatives: the paper's printed constants first, then the other protocols.
"""

from __future__ import annotations

from holdfast.planning.proposals.base import Proposal
from holdfast.planning.proposals.guesses import propose_correct, propose_rounds, propose_verify
from holdfast.planning.proposals.intervals import (
    narrowest_interval,
    propose_interval,
    smallest_interval,
)
from holdfast.planning.proposals.means import propose_mean
from holdfast.planning.proposals.searches import (
    propose_amplified,
    propose_estimate,
    propose_exact,
    propose_simple,
    propose_split,
)
from holdfast.planning.proposals.weights import propose_weights

__all__ = [
    "Proposal",
    "narrowest_interval",
    "propose_amplified",
    "propose_correct",
    "propose_estimate",
    "propose_exact",
    "propose_interval",
    "propose_mean",
    "propose_rounds",
    "propose_simple",
    "propose_split",
    "propose_verify",
    "propose_weights",
    "smallest_interval",
]
