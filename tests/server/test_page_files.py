"""Tests for the files of src/holdfast/server/page as they are: nothing inline or from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import holdfast.server

PAGE = Path(holdfast.server.__file__).parent / "page"
FILES = sorted(PAGE.iterdir())
LONGEST, WIDEST = 300, 120  # lines, and characters of one
SVG = "http://www.w3.org/2000/svg"  # a name, not an address that anything is fetched from
COLOUR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
FORBIDDEN = re.compile(
    r"""\beval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write"""
    r"""|setAttribute\(\s*["']style|[{,]\s*style:"""
)
# Letters and what is behind them, and shapes that say something and what is behind those.
TEXT = {
    "paper": ("ink", "soft", "accent", "bad", "good", "warn"),
    "panel": ("ink", "soft", "accent"),
    "accent-bg": ("accent",),
    "accent": ("on-accent",),
    "bad": ("on-bad",),
    "ink": ("paper",),
    "good-bg": ("ink", "soft", "good"),
    "warn-bg": ("ink", "soft", "warn"),
    "bad-bg": ("ink", "soft", "bad"),
}
SHAPES = {
    "paper": ("line", "bar", "warn-fill", *(f"s{i}" for i in range(7))),
    "rule": ("accent", "bad"),
}


class Markup(HTMLParser):
    """What is in a page: elements with their attributes, and text of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._within = tag

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within in ("script", "style") and data.strip():
            self.inline.append(data)


@pytest.fixture(scope="module")
def markup() -> Markup:
    found = Markup()
    found.feed((PAGE / "index.html").read_text("utf-8"))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_is_short_and_names_no_other_place(path: Path) -> None:
    text = path.read_text("utf-8")
    lines = text.splitlines()
    assert len(lines) < LONGEST
    assert max(map(len, lines)) <= WIDEST
    assert not re.search(r"""\w://|["'(]//|url\(""", text.replace(SVG, ""))
    assert not FORBIDDEN.search(text)


def test_nothing_is_inline(markup: Markup) -> None:
    assert markup.inline == []
    for tag, attributes in markup.elements:
        assert tag != "style"
        wrong = [name for name in attributes if name == "style" or name.startswith("on")]
        assert wrong == []


def test_whatever_the_page_loads_is_there(markup: Markup) -> None:
    loaded = [
        str(attributes.get("src") or attributes.get("href"))
        for tag, attributes in markup.elements
        if tag in ("img", "link", "script")
    ]
    for path in PAGE.glob("*.js"):
        loaded += [
            f"page/{name}" for name in re.findall(r'from "\./([^"]+)"', path.read_text("utf-8"))
        ]
    names = {name.removeprefix("page/") for name in loaded}
    assert names == {path.name for path in FILES} - {"index.html"}


def test_scripts_are_fetched_at_once_and_not_one_after_the_other(markup: Markup) -> None:
    early = [a.get("href") for _, a in markup.elements if a.get("rel") == "modulepreload"]
    assert early == [
        f"page/{path.name}" for path in FILES if path.suffix == ".js" and path.stem != "main"
    ]


def test_an_id_that_a_script_looks_for_is_in_the_page(markup: Markup) -> None:
    there = {attributes.get("id") for _, attributes in markup.elements}
    for path in PAGE.glob("*.js"):
        sought = set(re.findall(r'byId\("([^"]+)"\)', path.read_text("utf-8")))
        assert sought - there == set(), path.name


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(TEXT, 4.5), (SHAPES, 3.0)], ids=["text", "shapes"])
def test_colours_stand_out(pairs: dict[str, tuple[str, ...]], least: float, dark: bool) -> None:
    css = (PAGE / "style.css").read_text("utf-8")
    colours = {name: shades[dark] for name, *shades in COLOUR.findall(css)}
    weak = {
        (front, back): round(found, 2)
        for back, fronts in pairs.items()
        for front in fronts
        if (found := contrast(colours[front], colours[back])) < least
    }
    assert weak == {}


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2.2, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2.2."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_ratio_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
