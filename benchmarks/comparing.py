"""Comparisons: a measurement beside that of a peer or a floor in the same run."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.tables import milliseconds, ratio, table
from benchmarks.timing import Results

__all__ = ["compared", "comparison_table"]


def compared(
    what: str,
    ours: Results,
    beside: str,
    floor: Results,
    *,
    unit: str = "s",
    at_most: float | None = None,
    at_least: float | None = None,
) -> Results:
    """`ours` and `floor` each have a median and a best. The ratio of medians decides."""
    found = ours["median"] / floor["median"]
    target, met = "", None
    if at_most is not None:
        target, met = f"≤ {at_most:g}", found <= at_most
    elif at_least is not None:
        target, met = f"≥ {at_least:g}", found >= at_least
    return {
        "what": what,
        "measured": ours["median"],
        "beside": beside,
        "floor": floor["median"],
        "unit": unit,
        "ratio": found,
        "ratio of best": ours["best"] / floor["best"],
        "target": target,
        "met": met,
    }


def comparison_table(rows: Iterable[Results]) -> str:
    """All comparisons as one Markdown table. A target that is missed is reported as missed."""
    said = {None: "", True: "yes", False: "**missed**"}
    head = ["what", "", "beside", "", "ratio", "of best", "target", "met"]
    lines = [
        [
            row["what"],
            _amount(row["measured"], row["unit"]),
            row["beside"],
            _amount(row["floor"], row["unit"]),
            ratio(row["ratio"]),
            ratio(row["ratio of best"]),
            row["target"],
            said[row["met"]],
        ]
        for row in rows
    ]
    return table(head, lines)


def _amount(value: float, unit: str) -> str:
    return milliseconds(value) if unit == "s" else f"{value:,.0f} {unit}".strip()
