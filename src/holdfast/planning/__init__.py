"""From a question about a study to a plan that explains itself and its alternatives."""

from __future__ import annotations

from holdfast.planning.alternatives import Alternative
from holdfast.planning.exact import (
    ExactCorrections,
    ExactEstimates,
    ExactVerdicts,
    ExactWeights,
    exact_corrections,
    exact_estimates,
    exact_verdicts,
    exact_weights,
)
from holdfast.planning.joint import JointPlan, joint_from, joint_plan
from holdfast.planning.plan import Plan
from holdfast.planning.recommend import Recommendation, recommend
from holdfast.planning.requests import (
    AmplifiedEstimates,
    DirectMeans,
    Estimates,
    Guesses,
    Intervals,
    MedianMeans,
    SimpleEstimates,
    WeightedEstimates,
)
from holdfast.planning.rounds import RoundsPlan, rounds_plan
from holdfast.planning.solve import plan
from holdfast.planning.splits import SplitPlan, split_plan

__all__ = [
    "Alternative",
    "AmplifiedEstimates",
    "DirectMeans",
    "Estimates",
    "ExactCorrections",
    "ExactEstimates",
    "ExactVerdicts",
    "ExactWeights",
    "Guesses",
    "Intervals",
    "JointPlan",
    "MedianMeans",
    "Plan",
    "Recommendation",
    "RoundsPlan",
    "SimpleEstimates",
    "SplitPlan",
    "WeightedEstimates",
    "exact_corrections",
    "exact_estimates",
    "exact_verdicts",
    "exact_weights",
    "joint_from",
    "joint_plan",
    "plan",
    "recommend",
    "rounds_plan",
    "split_plan",
]
