"""From a question about a study to a plan that explains itself and its alternatives."""

from __future__ import annotations

from holdfast.planning.compare import Recommendation, recommend
from holdfast.planning.joint import joint_from, joint_plan, rounds_plan
from holdfast.planning.plan import Alternative, Plan
from holdfast.planning.solve import plan
from holdfast.protocols.guesses import Guesses
from holdfast.protocols.means import DirectMeans, MedianMeans
from holdfast.protocols.plans import JointPlan
from holdfast.protocols.rounds import RoundsPlan
from holdfast.protocols.searches import AmplifiedEstimates, Estimates, Intervals, SimpleEstimates
from holdfast.protocols.split import SplitPlan, split_plan
from holdfast.protocols.weights import WeightedEstimates

__all__ = [
    "Alternative",
    "AmplifiedEstimates",
    "DirectMeans",
    "Estimates",
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
    "joint_from",
    "joint_plan",
    "plan",
    "recommend",
    "rounds_plan",
    "split_plan",
]
