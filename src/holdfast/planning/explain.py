"""A plan in words: the promise, the numbers, the alternatives, the chain of theorems."""

from __future__ import annotations

import textwrap

from holdfast.planning.plan import Plan

__all__ = ["ASSUMPTIONS", "described", "explain", "theorem_chain", "title"]

ASSUMPTIONS = (
    "units are independent draws from one population; blocks are random and fixed at creation; "
    "an estimator sees one block at a time; nobody sees anything else of the holdout"
)

_CHAINS = {
    "steepest": (
        "look (coins) → search → adaptive composition of Rényi divergence (divergence) → "
        "profile and centred transfer (transfer)"
    ),
    "gaussian": "Gaussian counts (gaussian) → search → Gaussian composition → centred transfer",
    "exponential": "exponential median (exponential) → composition → centred transfer",
    "split": "fresh blocks for every question, binomial tails, union bound (splitting)",
}


def theorem_chain(method: str) -> str:
    """Which theorems carry a method's promise; names in brackets are pages of the theory."""
    return _CHAINS[method]


def explain(plan: Plan, *, others: bool = True) -> str:
    """The plan as a short text, with or without the line of alternatives."""
    items = described(plan)
    if not others:
        del items["others"]
    return "\n".join([title(plan), *(_item(label, text) for label, text in items.items())])


def title(plan: Plan) -> str:
    """What the plan is for."""
    questions = "1 question" if plan.queries == 1 else f"{plan.queries:,} questions"
    return f"Plan for {questions} on a grid of {plan.grid:,} points"


def described(plan: Plan) -> dict[str, str]:
    """The plan in labelled lines."""
    a, b = plan.tails
    interval = f"({a:.4g}, {b:.4g})" if a > 1e-3 else f"({a:.4g}, 1 − {plan.tail_high:.4g})"
    together = "it" if plan.queries == 1 else f"all {plan.queries:,}"
    items = {
        "promise": (
            f"every answer lies in the {interval} quantile interval of its estimator on "
            f"fresh data, {together} at once with probability at least {plan.confidence:.6g}"
        ),
        "method": _method(plan),
        "binding": plan.binding,
        "coin": (
            f"{plan.looks:,} looks at order {plan.order:.4g} and price {plan.look_price:.4g}: "
            f"budget {plan.budget:.4g}; floor {plan.floor:.3g} after {plan.tau:g} counts; "
            f"target quantile {plan.target:.4g}"
        ),
    }
    if plan.rows is not None:
        items["data"] = _data(plan)
    if plan.error is not None:
        items["error"] = _error(plan)
    items["others"] = _others(plan)
    return {**items, "proof": theorem_chain(plan.method), "assumes": ASSUMPTIONS}


def _item(label: str, text: str) -> str:
    return textwrap.fill(text, width=98, initial_indent=f"  {label:<9}", subsequent_indent=" " * 11)


def _method(plan: Plan) -> str:
    blocks = f"{plan.recommended_blocks:,} blocks"
    if plan.method == "split":
        return (
            f"fresh splitting, {blocks}: for so few questions it is cheaper than the steepest "
            f"coin's {plan.blocks:,}"
        )
    names = {"steepest": "steepest coin", "gaussian": "Gaussian counts"}
    settings = ", ".join(f"{name} {value:.4g}" for name, value in plan.settings)
    text = f"{names.get(plan.method, plan.method)}, {blocks}"
    return f"{text} ({settings})" if settings else text


def _data(plan: Plan) -> str:
    used = (plan.rows or 0) - (plan.leftover or 0)
    text = f"{plan.recommended_blocks:,} blocks of {plan.block_size:,} units use {used:,} units"
    return f"{text}; {plan.leftover:,} left over" if plan.leftover else text


def _error(plan: Plan) -> str:
    about = plan.shape.describe() if plan.shape is not None else "the estimator"
    span = plan.shape.span if plan.shape is not None else None
    if span is not None and plan.error is not None and plan.error >= span / 2:
        return f"none: for {about} a bar of ±{plan.error:.4g} would say nothing"
    text = f"±{plan.error:.4g} about the middle of the answer's grid cell, for {about}"
    if plan.rounding:
        return f"{text}; ±{plan.rounding:.4g} of it is the cell"
    return f"{text}; half the cell comes on top"


def _others(plan: Plan) -> str:
    counted = [f"{a.method} {a.blocks:,}" for a in plan.alternatives if a.blocks is not None]
    return " · ".join(counted) + " blocks for the same promise"
