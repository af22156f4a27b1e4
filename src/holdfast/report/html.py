"""Numbers and text as a page shows them, and its frame: one file, one style, no script."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from importlib.resources import files

from markupsafe import Markup, escape

from holdfast.protocols.answers import bare, number

__all__ = [
    "clock",
    "count",
    "day",
    "head_html",
    "html_file",
    "listed",
    "number",
    "outwards",
    "percent",
    "rows_html",
    "safe",
    "table_html",
    "tag",
    "typeset",
    "visible",
]


_SPACES = "\u00a0\u202f"


def visible(text: object) -> str:
    """Text whose characters can be seen: others, and those that turn its direction, written out."""
    return "".join(c if c.isprintable() or c in _SPACES else _written(c) for c in str(text))


def _written(character: str) -> str:
    return " " if character in "\n\t" else f"\\u{ord(character):04x}"


def safe(text: object) -> str:
    r"""Text that is only text, whatever is in it.

    >>> safe("<b>avg(x)</b>\u202e")
    '&lt;b&gt;avg(x)&lt;/b&gt;\\u202e'
    """
    return str(escape(visible(text)))


def tag(name: str, *inside: object, **attributes: object) -> Markup:
    """An element of a drawing, pixels to a tenth; what is in it is made safe unless it is Markup.

    >>> tag("text", "a < b", class_="tick", x=1.25)
    Markup('<text class="tick" x="1.2">a &lt; b</text>')
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_pixels(value)}"'
        for key, value in attributes.items()
    )
    text = "".join(each if isinstance(each, Markup) else safe(each) for each in inside)
    return Markup(f"<{name}{given}>{text}</{name}>" if inside else f"<{name}{given}/>")


def _pixels(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else safe(value)


def outwards(end: float | None, width: float | None, *, up: bool) -> str:
    """An end of an interval to a hundredth of its width, rounded so that it never shrinks.

    >>> outwards(0.0001752, 0.144, up=False), outwards(0.1441, 0.144, up=True)
    ('0', '0.145')
    >>> outwards(None, None, up=False), outwards(12.5, None, up=True)
    ('−∞', '12.5')
    """
    if end is None or math.isinf(end):
        return "∞" if up else "−∞"
    if width is None or not 1e-12 < width < 1e12:
        return bare(f"{Decimal(repr(end)).normalize():,f}") if abs(end) < 1e15 else repr(end)
    step = Decimal(1).scaleb(math.floor(math.log10(width)) - 2)
    rounded = (Decimal(repr(end)) / step).to_integral_value(ROUND_CEILING if up else ROUND_FLOOR)
    return number(float(rounded * step), 12)


def count(amount: int, noun: str) -> str:
    """`1 question`, `1,000 questions`."""
    return f"{amount:,} {noun}" + ("" if amount == 1 else "s")


def percent(share: float) -> str:
    r"""A share in percent; no share that is more than none is shown as 0, none below 1 as 100.

    >>> percent(0.25), percent(0.00012), percent(1e-9), percent(0.99996), percent(1)
    ('25\xa0%', '0.012\xa0%', '<\xa00.001\xa0%', '>\xa099.9\xa0%', '100\xa0%')
    """
    if 0 < share < 1e-5:
        return "<\u00a00.001\u00a0%"
    if 0.999 < share < 1:
        return ">\u00a099.9\u00a0%"
    size = 100 * share
    digits = 3 if size < 0.1 else 2 if size < 1 else 1
    return f"{bare(f'{size:.{digits}f}')}\u00a0%"


def clock(at: str) -> str:
    """A row's time, to the second.

    >>> clock("2026-01-31T12:00:05.123456+00:00")
    '2026-01-31 12:00:05 UTC'
    """
    moment = datetime.fromisoformat(at)
    zone = "UTC" if moment.utcoffset() is not None and not moment.utcoffset() else ""
    return f"{moment:%Y-%m-%d %H:%M:%S} {zone or moment.tzname() or ''}".strip()


def day(at: str) -> str:
    """A row's time, to the minute.

    >>> day("2026-01-31T12:00:05.123456+00:00")
    '2026-01-31 12:00'
    """
    return f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M}"


def listed(items: Sequence[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    *others, last = items
    return f"{', '.join(others)} {word} {last}" if others else last


def typeset(text: str) -> str:
    """Numbers in a text with a true minus sign.

    >>> typeset("61 points from -20 to 40, one-sided")
    '61 points from −20 to 40, one-sided'
    """
    return re.sub(r"(?<!\w)-(?=[\d.])", "−", text)


# The browser itself refuses whatever a page should not contain: scripts, and all that is remote.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_PICTURES = "; img-src data:"  # parts of figures that are pixels, written into the page


def html_file(
    title: str, main: str, *, style: str = "", head: str = "", pixels: bool = False
) -> str:
    """One HTML file: nothing fetched from anywhere. All but its title is safe already."""
    common = files("holdfast.report").joinpath("page.css").read_text("utf-8")
    policy = _POLICY + (_PICTURES if pixels else "")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">{head}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{safe(title)}</title>\n<style>\n{common}{style}</style></head>\n"
        f"<body><main>{main}</main></body></html>\n"
    )


def table_html(heads: Iterable[str], rows: Iterable[Iterable[str]], style: str) -> str:
    """A table of cells that are safe already."""
    return f'<table class="{style}">{head_html(heads)}<tbody>{rows_html(rows)}</tbody></table>'


def head_html(heads: Iterable[str]) -> str:
    """The head of a table."""
    cells = "".join(f'<th scope="col">{each}</th>' for each in heads)
    return f"<thead><tr>{cells}</tr></thead>"


def rows_html(rows: Iterable[Iterable[str]]) -> str:
    """Rows of a table."""
    return "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for cells in rows)
