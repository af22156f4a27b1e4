"""What every page has: one file, one style, a policy that refuses the rest; tables and facts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from html import escape
from importlib.resources import files

__all__ = [
    "clock",
    "count",
    "day",
    "fact_list",
    "head_html",
    "html_file",
    "listed",
    "number",
    "outwards",
    "percent",
    "quantile",
    "rows_html",
    "safe",
    "short",
    "table_html",
    "typeset",
]


# Numbers and text as the page shows them: short, aligned, and inert.


_SPACES = "\u00a0\u202f"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def safe(text: object) -> str:
    r"""Text that is only text, whatever is in it.

    Characters that cannot be seen, or that turn the direction of others, are written out.

    >>> safe("<b>avg(x)</b>\u202e")
    '&lt;b&gt;avg(x)&lt;/b&gt;\\u202e'
    """
    return escape(
        "".join(c if c.isprintable() or c in _SPACES else _written(c) for c in str(text)),
        quote=True,
    )


def _written(character: str) -> str:
    return " " if character in "\n\t" else f"\\u{ord(character):04x}"


def number(value: float | None, digits: int = 4) -> str:
    """A number in at most so many digits, without trailing zeros.

    >>> number(0.1 + 0.2), number(-12345.678), number(4.69e-10), number(None), number(math.inf)
    ('0.3', '−12,346', '4.69×10⁻¹⁰', '–', '∞')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size and not 1e-4 <= size < 1e9:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        raised = str(int(power)).translate(_SUPERSCRIPTS)
        return f"{_bare(mantissa)}×10{raised}"
    decimals = max(0, digits - 1 - math.floor(math.log10(size))) if size else 0
    return _bare(f"{value:,.{min(decimals, digits + 3)}f}")


def _bare(text: str) -> str:
    bare = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if bare in ("-0", "") else bare.replace("-", "−")


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
        return _bare(f"{Decimal(repr(end)).normalize():,f}") if abs(end) < 1e15 else repr(end)
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
    return f"{_bare(f'{size:.{digits}f}')}\u00a0%"


def quantile(level: float) -> str:
    r"""A quantile's level: in percent, unless it is tiny.

    >>> quantile(0.25), quantile(0.001), quantile(4.69e-10)
    ('25\xa0%', '0.1\xa0%', '4.69×10⁻¹⁰')
    """
    return f"{number(100 * level)}\u00a0%" if level >= 1e-4 else number(level, 3)


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


def short(digest: str) -> str:
    """The first digits of a digest: enough to find it again."""
    return digest[:8]


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
    """One HTML file: no script, nothing fetched from anywhere. What it is given is safe already."""
    common = files("holdfast.report").joinpath("page.css").read_text("utf-8")
    policy = _POLICY + (_PICTURES if pixels else "")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">{head}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title>\n<style>\n{common}{style}</style></head>\n"
        f"<body><main>{main}</main></body></html>\n"
    )


def fact_list(facts: Iterable[tuple[str, str]]) -> str:
    """Names and what is to be said of each."""
    items = (f"<dt>{name}</dt><dd>{_fact(text)}</dd>" for name, text in facts)
    return f"<dl>{''.join(items)}</dl>"


def _fact(text: str) -> str:
    """A long word is a digest."""
    return f"<code>{safe(text)}</code>" if len(text) > 30 and " " not in text else safe(text)


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
