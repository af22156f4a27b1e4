"""`holdfast plan --protocol …`: sizes of every protocol, and which one is cheapest."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.planning.proposals.base import Proposal
    from holdfast.planning.recommend import Recommendation

__all__ = ["PROTOCOLS", "plan_protocol"]

# What each protocol is told, beside --queries and --confidence; the first names must be given.
PROTOCOLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "auto": ((), ("refusals", "universe", "grid", "tail", "tail_high")),
    "interval": ((), ("grid", "tail", "rows", "half_width", "block_size", "shape", "sd")),
    "mean": ((), ("half_width",)),
    "verify": (("refusals",), ("tail_low", "tail_high", "sides", "looks")),
    "correct": (("refusals",), ("grid", "tail_low", "tail_high", "looks")),
    "rounds": (("rounds",), ("tail_low", "tail_high", "looks")),
    "weights": (("universe",), ("grid", "tail", "looks")),
    "split": ((), ("tail",)),
    "exact": ((), ("grid", "tail")),
    "amplified": ((), ("grid", "tail")),
    "simple": ((), ("grid", "tail")),
}


def plan_protocol(
    protocol: str, queries: int | None, confidence: float, given: Mapping[str, Any], as_json: bool
) -> None:
    """Print the plan of one protocol, or of the cheapest."""
    if protocol not in PROTOCOLS:
        known = ", ".join(["estimate", *PROTOCOLS])
        raise InvalidInput("protocol", protocol, f"one of {known}")
    if queries is None:
        hint = "Say how many questions you want to ask."
        raise InvalidInput("queries", None, f"given with --protocol {protocol}", hint)
    needed, optional = PROTOCOLS[protocol]
    told = {name: value for name, value in given.items() if value is not None}
    for name in needed:
        if name not in told:
            raise InvalidInput(_flag(name), None, f"given with --protocol {protocol}")
    for name, value in told.items():
        if name not in (*needed, *optional):
            raise InvalidInput(_flag(name), value, f"left out for --protocol {protocol}")
    if protocol == "auto":
        _show_recommendation(_recommended(queries, confidence, told), as_json)
        return
    made = _PROPOSERS[protocol](queries, confidence, told)
    if as_json:
        typer.echo(made.to_json())
    else:
        _show(made)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _recommended(queries: int, confidence: float, told: dict[str, Any]) -> Recommendation:
    from holdfast.planning.recommend import recommend

    return recommend(queries, confidence=confidence, **told)


def _interval(queries: int, confidence: float, told: dict[str, Any]) -> Proposal:
    from holdfast.planning.proposals.intervals import (
        narrowest_interval,
        propose_interval,
        smallest_interval,
    )
    from holdfast.planning.shapes import shape_from

    shape = shape_from(told.pop("shape", "mean"), None, None, told.pop("sd", None), None)
    if shape is None and ("half_width" in told or ("rows" in told and "tail" not in told)):
        hint = "Without a shape nothing is known of widths: give --tail."
        raise InvalidInput("--shape", "none", "'mean' or 'sd' where a width is wanted", hint)
    if "half_width" in told and "tail" not in told and "rows" not in told:
        return smallest_interval(queries, confidence=confidence, shape=shape, **told)
    if "half_width" in told:
        raise InvalidInput("--half-width", told["half_width"], "given without --tail and --rows")
    if "rows" in told and "tail" not in told:
        return narrowest_interval(queries, confidence=confidence, shape=shape, **told)
    rows = told.pop("rows", None)
    made = propose_interval(queries, confidence=confidence, shape=shape, **told)
    if rows is None:
        return made
    if rows < made.blocks:
        raise InvalidInput("--rows", rows, f"at least {made.blocks:,}, one for every block")
    told["block_size"] = rows // made.blocks
    return propose_interval(queries, confidence=confidence, shape=shape, **told)


def _proposer(name: str) -> Callable[[int, float, dict[str, Any]], Proposal]:
    def propose(queries: int, confidence: float, told: dict[str, Any]) -> Proposal:
        from holdfast.planning import proposals

        made: Proposal = getattr(proposals, name)(queries, confidence=confidence, **told)
        return made

    return propose


_PROPOSERS: dict[str, Callable[[int, float, dict[str, Any]], Proposal]] = {
    "interval": _interval,
    **{
        name: _proposer(f"propose_{name}") for name in PROTOCOLS if name not in ("auto", "interval")
    },
}


def _show(made: Proposal) -> None:
    typer.echo(f"Plan for {made.protocol}: {made.blocks:,} blocks ({made.method})")
    typer.echo(_item("promise", made.promise))
    for key, value in made.predicted.items():
        typer.echo(_item(key.replace("_", " "), _number(value)))
    for other in made.alternatives:
        counted = "–" if other.blocks is None else f"{other.blocks:,} {made.counted_in}"
        typer.echo(_item(f"by {other.method}", f"{counted}  {other.note}".rstrip()))


def _show_recommendation(advice: Recommendation, as_json: bool) -> None:
    import json

    if as_json:
        typer.echo(json.dumps(advice.to_dict(), indent=2))
        return
    best = advice.best
    by = "" if advice.saving is None else f", {advice.saving:.2f} times fewer blocks than the next"
    typer.echo(f"Cheapest: {best.protocol}{by}")
    typer.echo(_item("promise", best.promise))
    for proposal in advice.proposals:
        typer.echo(_item(proposal.protocol, f"{proposal.blocks:,} blocks"))
    for name, reason in advice.refused:
        typer.echo(_item(name, reason))


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _item(label: str, text: str) -> str:
    indent = " " * 27
    return textwrap.fill(text, width=98, initial_indent=f"  {label:<25}", subsequent_indent=indent)
