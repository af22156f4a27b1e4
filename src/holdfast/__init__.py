"""Holdfast: ask one holdout adaptively chosen questions, and know what each answer is worth."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.errors import (
    Damaged,
    Doubtful,
    Exhausted,
    HoldfastError,
    Infeasible,
    InvalidInput,
    Unavailable,
)
from holdfast.grids import Grid, grid

if TYPE_CHECKING:
    from holdfast.client.client import AsyncClient, Client
    from holdfast.engines.python.estimator import local_estimator
    from holdfast.engines.python.metrics import row_metric
    from holdfast.engines.source import Limits
    from holdfast.holdout.holdout import Holdout
    from holdfast.planning.compare import recommend
    from holdfast.planning.joint import joint_plan
    from holdfast.planning.plan import Plan
    from holdfast.planning.solve import plan
    from holdfast.protocols.plans import JointPlan

__all__ = [
    "AsyncClient",
    "Client",
    "Damaged",
    "Doubtful",
    "Exhausted",
    "Grid",
    "HoldfastError",
    "Holdout",
    "Infeasible",
    "InvalidInput",
    "JointPlan",
    "Limits",
    "Plan",
    "Unavailable",
    "__version__",
    "grid",
    "joint_plan",
    "local_estimator",
    "plan",
    "recommend",
    "row_metric",
]

__version__ = "0.5.0"

# Loaded when first asked for: the planner is not needed to read a grid or catch an error.
_PLANNING = ("JointPlan", "Plan", "joint_plan", "plan", "recommend")
_LATER = {
    **dict.fromkeys(_PLANNING, "holdfast.planning"),
    "AsyncClient": "holdfast.client",
    "Client": "holdfast.client",
    "Holdout": "holdfast.holdout",
    "Limits": "holdfast.engines.source",
    "local_estimator": "holdfast.engines.python.estimator",
    "row_metric": "holdfast.engines.python.metrics",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
