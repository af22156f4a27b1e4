"""Results as text: the tables of RESULTS.md, of the documentation and of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["milliseconds", "replace_section", "table"]


def milliseconds(seconds: float) -> str:
    value = 1000 * seconds
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def replace_section(path: Path, text: str) -> None:
    """Put text between the two marks of a page."""
    start, end = "<!-- results -->", "<!-- /results -->"
    page = path.read_text("utf-8")
    before, rest = page.split(start)
    _, after = rest.split(end)
    path.write_text(f"{before}{start}\n\n{text.strip()}\n\n{end}{after}", "utf-8")
