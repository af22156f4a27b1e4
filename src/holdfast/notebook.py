"""How values look in a notebook: one small table, styled inline, nothing fetched from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

__all__ = ["html_bar", "html_table"]

_TABLE = "border-collapse:collapse;font-size:90%;line-height:1.4"
_LABEL = "text-align:left;vertical-align:top;padding:1px 12px 1px 0;opacity:.65;font-weight:normal"
_VALUE = "text-align:left;padding:1px 0;max-width:60em"


def html_table(title: str, items: Mapping[str, str]) -> str:
    """A title and labelled lines. Everything is escaped.

    >>> "avg(x) &lt; 3" in html_table("avg(x) < 3", {"answer": "yes"})
    True
    """
    rows = "".join(
        f'<tr><th style="{_LABEL}">{escape(label)}</th>'
        f'<td style="{_VALUE}">{escape(text)}</td></tr>'
        for label, text in items.items()
    )
    caption = (
        f'<caption style="text-align:left;font-weight:bold;caption-side:top">{escape(title)}'
        "</caption>"
    )
    return f'<table style="{_TABLE}">{caption}{rows}</table>'


def html_bar(share: float) -> str:
    """How full something is, as a bar of 12em.

    >>> "width:25.0%" in html_bar(0.25)
    True
    """
    width = f"width:{100 * min(max(share, 0.0), 1.0):.1f}%"
    outer = "display:inline-block;width:12em;height:.7em;border:1px solid;border-radius:3px"
    inner = f"display:block;height:100%;{width};background:currentColor;opacity:.5"
    return f'<span style="{outer}"><span style="{inner}"></span></span>'
