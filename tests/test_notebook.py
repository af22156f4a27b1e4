"""What notebooks show: everything escaped, nothing fetched, for every kind of value."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.protocols.answers import Answer, Corrected, Verdict, html_bar, html_table
from tests.holdout import plans
from tests.holdout.tables import sealed

EVIL = "<script>alert('1')</script>&\"'"
ALLOWED = {"table", "caption", "tr", "th", "td", "span"}


class Reader(HTMLParser):
    """Every element and attribute, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.depth = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.depth += 1

    def handle_endtag(self, tag: str) -> None:
        self.depth -= 1

    def handle_data(self, data: str) -> None:
        self.text += data


def answer(**more: Any) -> Answer:
    values: dict[str, Any] = {
        "protocol": EVIL,
        "value": 5.0,
        "low": None,
        "high": 6.5,
        "tail_low": 0.25,
        "tail_high": 0.2,
        "confidence": 0.95,
        "promise": EVIL,
        "price": 0.125,
        "budget_left": 0.5,
        "at_grid_end": True,
        "certified": True,
        "block_units": 100,
        "receipt": EVIL,
    }
    return Answer(**{**values, **more})


def verdict() -> Verdict:
    values: dict[str, Any] = {
        "protocol": EVIL,
        "guess": 3.0,
        "claim": EVIL,
        "tolerance": None,
        "refused": True,
        "tail_low": 0.05,
        "tail_high": 0.25,
        "confidence": 0.95,
        "promise": EVIL,
        "price": 1.0,
        "budget_left": 2.0,
        "refusals_left": 7,
        "certified": False,
        "block_units": 100,
        "range_high": 6.5,
        "open_blocks": 30,
        "receipt": EVIL,
    }
    return Verdict(**values)


def safe(html: str) -> Reader:
    read = Reader(html)
    assert read.tags <= ALLOWED
    assert read.attributes <= {"style"}
    assert read.depth == 0
    assert "http" not in html
    assert "url(" not in html
    return read


@given(st.text(), st.dictionaries(st.text(), st.text(), max_size=4))
def test_a_table_shows_any_text_as_text(title: str, items: dict[str, str]) -> None:
    html = html_table(title, items)
    assert html.count("<tr>") == len(items)
    read = safe(html.replace("http", "hxxp").replace("url(", "url["))
    assert read.tags <= ALLOWED


@given(st.floats())
def test_a_bar_is_never_more_than_full(share: float) -> None:
    if share == share:
        width = float(html_bar(share).partition("width:")[2].partition("width:")[2].split("%")[0])
        assert 0 <= width <= 100


@pytest.mark.parametrize(
    "value",
    [answer(), verdict(), Corrected(verdict(), answer()), Corrected(verdict(), None)],
    ids=["answer", "verdict", "corrected", "refused"],
)
def test_answers_are_escaped(value: Any) -> None:
    html = value._repr_html_()
    assert "<script>" not in html
    assert EVIL in safe(html).text


def test_answers_say_what_matters() -> None:
    text = safe(answer()._repr_html_()).text
    for word in ("5   [−∞, 6.5]", "at the end of its grid", "0.125; 0.5 left"):
        assert word in text
    assert "NOT certified" in safe(answer(certified=False)._repr_html_()).text
    assert "free: asked before" in safe(answer(cached=True)._repr_html_()).text
    assert "7 left" in safe(verdict()._repr_html_()).text


def test_plans_and_status_are_shown(tmp_path: Path) -> None:
    assert "400" in safe(plans.mixed()._repr_html_()).text
    with sealed(tmp_path / "a", [plans.mixed(), plans.split()], name=EVIL) as holdout:
        status = holdout.status()
        html = status._repr_html_()
        assert "<script>" not in html
        assert EVIL in safe(html).text
        assert status.receipt in html
        assert html.count("border-radius") == 2  # one bar for every set
    shown = hf.plan(queries=2, grid=8, tail=0.25)
    assert "split" in safe(shown._repr_html_()).text
