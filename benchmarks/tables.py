"""Results as text: the tables of RESULTS.md, of the documentation and of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "between_marks",
    "both",
    "grown",
    "listed",
    "milliseconds",
    "ratio",
    "replace_section",
    "table",
]

MARKS = ("<!-- results -->", "<!-- /results -->")


def milliseconds(seconds: float) -> str:
    value = 1000 * seconds
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def both(timing: dict[str, Any]) -> str:
    """The median, and in brackets the best."""
    return f"{milliseconds(timing['median'])} ({milliseconds(timing['best'])})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def grown(rows: list[dict[str, Any]], keys: Sequence[str]) -> str:
    """A line for each size: the keys, then the times of every candidate."""
    lines = [
        [f"{row[key]:,}" if isinstance(row[key], int) else row[key] for key in keys]
        + [both(timing) for timing in row["times"].values()]
        for row in rows
    ]
    return table([*keys, *rows[0]["times"]], lines)


def listed(head: str, times: dict[str, Any]) -> str:
    """A line for each candidate."""
    return table([head, "time"], [[name, both(timing)] for name, timing in times.items()])


def between_marks(page: str) -> str:
    """What stands between the two marks of a page."""
    start, end = MARKS
    _, rest = page.split(start)
    inside, _ = rest.split(end)
    return inside.strip()


def replace_section(path: Path, text: str) -> None:
    """Put text between the two marks of a page."""
    start, end = MARKS
    page = path.read_text("utf-8")
    before, rest = page.split(start)
    _, after = rest.split(end)
    path.write_text(f"{before}{start}\n\n{text.strip()}\n\n{end}{after}", "utf-8")
