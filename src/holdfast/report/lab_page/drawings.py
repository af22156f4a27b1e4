"""Figures of matplotlib as parts of a page: their names made unique, nothing in them that acts."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from holdfast.report.html import safe

__all__ = ["inline_svg"]

_DROPPED = {"metadata", "script", "style", "foreignObject", "title"}
_KEPT_LINKS = ("#", "data:image/png;base64,")
_PLACES = {"d", "x", "y"}
_LONG = re.compile(r"\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
# What matplotlib says in a style element; on a page that would speak of every other drawing too.
_LINES = "stroke-linejoin: round; stroke-linecap: butt"


def inline_svg(text: str, prefix: str, label: str) -> str:
    """The drawing as an element of an HTML page.

    Drawings on one page share one space of ids, and matplotlib uses the same ones in all of them.

    >>> drawn = '<svg viewBox="0 0 9 9"><path id="a"/><use href="#a"/><g id="unused"/></svg>'
    >>> inline_svg(drawn, "one", "A < B")
    '<svg class="figure" role="img" aria-label="A &lt; B" viewBox="0 0 9 9"
    style="max-width: 12px; stroke-linejoin: round; stroke-linecap: butt"><path id="one-a" /><use
    href="#one-a" /><g /></svg>'
    """
    root = ElementTree.fromstring(text)
    _clean(root)
    used = {name for element in root.iter() for name in _referred(element)}
    for element in root.iter():
        _rename(element, prefix, used)
    box = root.get("viewBox", "")
    inside = "".join(ElementTree.tostring(child, "unicode") for child in root)
    return (
        f'<svg class="figure" role="img" aria-label="{safe(label)}" viewBox="{safe(box)}" '
        f'style="max-width: {_width(box)}px; {_LINES}">{inside}</svg>'
    )


def _clean(element: ElementTree.Element) -> None:
    """Take out namespaces, which HTML does without, and what could act or fetch."""
    element.tag = _local(element.tag)
    attributes = {_local(name): value for name, value in element.attrib.items()}
    element.attrib.clear()
    for name, value in attributes.items():
        fetches = name == "href" and not value.startswith(_KEPT_LINKS)
        if not fetches and not name.startswith("on"):
            element.set(name, _shorter(value) if name in _PLACES else value)
    element.text, element.tail = _said(element.text), _said(element.tail)
    for child in list(element):
        if _local(child.tag) in _DROPPED:
            element.remove(child)
        else:
            _clean(child)


def _shorter(places: str) -> str:
    """Hundredths of a point are finer than any screen, and half as long.

    >>> _shorter("M 41.601021 246.5 L 0.0001 3.999")
    'M 41.6 246.5 L 0 4'
    """
    return " ".join(_LONG.sub(lambda found: f"{round(float(found[0]), 2):g}", places).split())


def _said(text: str | None) -> str | None:
    """Text, unless it is the space between elements."""
    return text if text is None or text.strip() else None


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _referred(element: ElementTree.Element) -> list[str]:
    found = [name for value in element.attrib.values() for name in _REFERENCE.findall(value)]
    link = element.get("href", "")
    return [*found, link[1:]] if link.startswith("#") else found


def _rename(element: ElementTree.Element, prefix: str, used: set[str]) -> None:
    if element.get("id") is not None and element.get("id") not in used:
        del element.attrib["id"]
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, f"{prefix}-{value}")
        elif name == "href" and value.startswith("#"):
            element.set(name, f"#{prefix}-{value[1:]}")
        else:
            element.set(name, _REFERENCE.sub(rf"url(#{prefix}-\1)", value))


def _width(box: str) -> int:
    """The width in which the drawing was made: matplotlib counts in points, pages in pixels."""
    numbers = box.split()
    return round(float(numbers[2]) * 4 / 3) if len(numbers) == 4 else 960
