"""Fenced blocks of a Markdown file, for the tests of the docs and for `make dist`."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Fence", "fences"]

_FENCE = re.compile(r"^(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$")


@dataclass(frozen=True)
class Fence:
    """One fenced block: what stands after its marks, what is inside, and where."""

    info: str
    text: str
    first_line: int  # of the text, counted from 1
    gap: int  # lines that are not empty between the previous fence and this one

    @property
    def words(self) -> list[str]:
        """Language and options, written `python skip` or, for zensical, `{.python .skip}`."""
        return re.findall(r"[\w+-]+", self.info)

    @property
    def language(self) -> str:
        """The first word, or nothing."""
        return self.words[0] if self.words else ""


def fences(markdown: str) -> list[Fence]:
    r"""The fenced blocks of a text, in order.

    >>> found = fences("Try:\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n")
    >>> [(f.language, f.text, f.first_line, f.gap) for f in found]
    [('python', 'print(1)\n', 4, 1), ('text', '1\n', 8, 0)]
    """
    found: list[Fence] = []
    opening: re.Match[str] | None = None
    body: list[str] = []
    gap = 0
    for number, line in enumerate(markdown.splitlines(), start=1):
        if opening is None:
            opening = _FENCE.match(line)
            if opening is None and line.strip():
                gap += 1
            body = []
        elif line.strip() == opening["marks"]:
            text = "".join(f"{inner}\n" for inner in body)
            found.append(Fence(opening["info"].strip(), text, number - len(body), gap))
            opening, gap = None, 0
        else:
            body.append(line)
    if opening is not None:
        raise ValueError(f"a fence is never closed: {opening[0]}")
    return found
