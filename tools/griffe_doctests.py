"""Shows the doctests of a docstring as code in the docs (an extension of griffe).

Docstrings here are prose with doctests in between. Markdown would read `>>>` as three nested
quotations, so each doctest is put into a fence of its own.
"""

from __future__ import annotations

from typing import Any

import griffe

__all__ = ["FenceDoctests", "fence_doctests"]


def fence_doctests(text: str) -> str:
    r"""Put each doctest, from its first `>>>` to the next empty line, into a fence.

    >>> fence_doctests("Half.\n\n>>> 1 / 2\n0.5").splitlines()
    ['Half.', '', '```pycon', '>>> 1 / 2', '0.5', '```']
    """
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if not inside and line.lstrip().startswith(">>>"):
            inside = True
            lines.append("```pycon")
        elif inside and not line.strip():
            inside = False
            lines.append("```")
        lines.append(line)
    if inside:
        lines.append("```")
    return "\n".join(lines)


class FenceDoctests(griffe.Extension):
    """Rewrites every docstring that holds a doctest."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called once for each module, class, function and attribute that was read."""
        del kwargs
        if obj.docstring and ">>>" in obj.docstring.value:
            obj.docstring.value = fence_doctests(obj.docstring.value)
