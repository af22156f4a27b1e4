"""Plans of every kind as plain data, for whoever keeps them; reading one proves it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, cast

from holdfast.errors import InvalidInput
from holdfast.planning.exact import ExactCorrections, ExactEstimates, ExactVerdicts, ExactWeights
from holdfast.planning.joint import JointPlan
from holdfast.planning.plan import Plan, json_object
from holdfast.planning.rounds import RoundsPlan
from holdfast.planning.splits import SplitPlan

__all__ = ["KeptPlan", "kept_dict", "kept_plan", "written_plan"]

KeptPlan = (
    JointPlan
    | ExactCorrections
    | ExactEstimates
    | ExactVerdicts
    | ExactWeights
    | RoundsPlan
    | SplitPlan
)

_FLAT: dict[str, type[Any]] = {
    "exact corrections": ExactCorrections,
    "exact estimates": ExactEstimates,
    "exact verdicts": ExactVerdicts,
    "exact weights": ExactWeights,
    "split": SplitPlan,
}
_KIND = {kind: name for name, kind in _FLAT.items()}


def kept_dict(plan: KeptPlan) -> dict[str, object]:
    """The plan as plain data, with its kind.

    >>> from holdfast.planning.splits import split_plan
    >>> plan = split_plan(3)
    >>> kept_plan(kept_dict(plan)) == plan
    True
    """
    if isinstance(plan, JointPlan):
        return {"kind": "joint", "plan": plan.to_dict()}
    if isinstance(plan, RoundsPlan):
        own = {"sets": plan.sets, "set_blocks": plan.set_blocks, "confidence": plan.confidence}
        return {"kind": "rounds", "verification": kept_dict(plan.verification), **own}
    return {"kind": _KIND[type(plan)], **asdict(plan)}


def kept_plan(data: Mapping[str, object]) -> KeptPlan:
    """The plan that `kept_dict` wrote; refused unless it proves itself again."""
    try:
        plan = _read(dict(data))
        sound = plan.verify() and kept_dict(plan) == dict(data)
    except (TypeError, KeyError, AttributeError, ArithmeticError, ValueError) as wrong:
        raise InvalidInput("plan", str(wrong), "a complete plan as it was written") from wrong
    if not sound:
        hint = "It was changed after it was made: make it again."
        raise InvalidInput("plan", data.get("kind"), "one that certifies its own promises", hint)
    return plan


def written_plan(text: str) -> Plan | KeptPlan:
    """The plan that `holdfast plan --json` wrote, of whatever protocol; it proves itself again.

    >>> from holdfast.planning.proposals import propose_split
    >>> made = propose_split(3)
    >>> written_plan(made.to_json()) == made.plan
    True
    """
    data = json_object(text, "a plan")
    if "protocol" in data and isinstance(data.get("plan"), Mapping):  # beside what it predicts
        return kept_plan(data["plan"])
    return JointPlan.from_dict(data) if "parts" in data else Plan.from_dict(data)


def _read(data: dict[str, Any]) -> KeptPlan:
    kind = data.pop("kind")
    if kind == "joint":
        return JointPlan.from_dict(data["plan"])
    if kind == "rounds":
        verification = kept_plan(data.pop("verification"))
        if not isinstance(verification, JointPlan | ExactVerdicts):
            raise TypeError("verification must be a plan for guesses")
        return RoundsPlan(verification, **_typed(RoundsPlan, data))
    made = _FLAT[kind]
    return cast(KeptPlan, made(**_typed(made, data)))


def _typed(kind: type[Any], data: dict[str, Any]) -> dict[str, Any]:
    """The numbers, each in the type that it was written with."""
    types = {field.name: field.type for field in fields(kind)}
    for name, value in data.items():
        if type(value).__name__ != types[name]:
            raise TypeError(f"{name} must be of type {types[name]}")
    return data
