"""Fails when a page of the docs loads from another host: `python -m tools.check_site site`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

__all__ = ["foreign_loads"]

# A link (<a href>) is for the reader to follow; these are followed by the browser itself.
_LOADS = re.compile(
    r"""<(?:script|img|iframe|source|audio|video|embed)\b[^>]*\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?![^>]*\brel=["']?canonical)[^>]*\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:@import\s+|url\()["']?((?:https?:)?//[^"')\s]+)"""
)


def foreign_loads(text: str) -> list[str]:
    """Addresses that a browser would load by itself.

    >>> foreign_loads('<a href="https://a.org">x</a><script src="https://b.org/c.js"></script>')
    ['https://b.org/c.js']
    >>> foreign_loads("@font-face { src: url(//c.org/font.woff) }")
    ['//c.org/font.woff']
    """
    return ["".join(groups) for groups in _LOADS.findall(text)]


def main() -> None:
    """Read every page and style sheet under the folder named on the command line."""
    site = Path(sys.argv[1])
    files = [path for path in sorted(site.rglob("*")) if path.suffix in {".html", ".css"}]
    if not files:
        sys.exit(f"{site} holds no pages")
    wrong = [f"{path}: {load}" for path in files for load in foreign_loads(path.read_text("utf-8"))]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
