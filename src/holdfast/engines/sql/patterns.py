"""LIKE without LIKE: patterns with one gap become comparisons that take linear time.

A pattern with several gaps can take time that grows like a power of the text's length, so it is
refused. 'A%' is starts_with, '%A' ends_with, '%A%' contains, 'A%Z' both ends, 'A' equality.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.engines.sql.refusals import Refusal
from holdfast.engines.sql.tree import Constant, Node

__all__ = ["like"]

_ALLOWED = (
    "LIKE takes the patterns 'A%', '%A', '%A%', 'A%Z' and 'A', without _ and \\."
    " Join several with AND or OR."
)


def like(text: Node, pattern: str, call: Callable[[str, Sequence[Node]], Node]) -> Node:
    """The comparison that the pattern stands for."""
    while "%%" in pattern:
        pattern = pattern.replace("%%", "%")
    parts = pattern.split("%")
    if "_" in pattern or "\\" in pattern or len(parts) > 3 or (len(parts) == 3 and any(parts[::2])):
        raise Refusal(_ALLOWED)
    if len(parts) == 1:
        return call("=", [text, Constant("text", pattern)])
    if len(parts) == 3:
        return call("contains", [text, Constant("text", parts[1])])
    start, end = (Constant("text", part) for part in parts)
    first, last = call("starts_with", [text, start]), call("ends_with", [text, end])
    if not start.value or not end.value:
        return first if start.value or not end.value else last
    length = Constant("number", float(len(pattern) - 1))  # the two ends must not overlap
    return call("and", [first, last, call(">=", [call("length", [text]), length])])
