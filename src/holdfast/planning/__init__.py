"""From a question about a study to a plan that explains itself and its alternatives."""

from __future__ import annotations

from holdfast.planning.alternatives import Alternative
from holdfast.planning.plan import Plan
from holdfast.planning.solve import plan

__all__ = ["Alternative", "Plan", "plan"]
