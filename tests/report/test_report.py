"""The page says everything that the ledger says, and nothing that could act."""

from __future__ import annotations

import itertools
import os
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import Damaged, InvalidInput
from holdfast.holdout.holdout import Holdout
from holdfast.planning.exact import exact_verdicts
from holdfast.planning.solve import plan
from holdfast.planning.splits import split_plan
from holdfast.report.html import percent
from holdfast.report.page import page_html, report_html, write_report
from holdfast.report.story import read_story
from tests.report.ledgers import IDENTITY, Writer, charter, joint, simple
from tests.report.pages import Page

EVIL = "</td></table><script>alert('&')</script><img src=x onerror=\"alert(1)\">"
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "nav", "section", "a"),
    *("h1", "h2", "h3", "p", "span", "strong", "b", "i", "q", "sup", "ul", "li", "dl", "dt", "dd"),
    *("div", "figure", "figcaption", "table", "colgroup", "col", "thead", "tbody", "tr", "th"),
    *("td", "br", "code", "pre", "footer", "svg", "g", "text", "line", "circle", "rect", "path"),
}


def page(writer: Writer) -> Page:
    return Page(page_html(read_story(IDENTITY, writer.rows)))


@pytest.fixture
def several() -> Writer:
    writer = Writer(charter(joint()))
    for number in range(12):
        value = round(0.03 * number, 2)
        low, high = round(value - 0.1, 2), round(value + 0.12, 2)
        writer.ask(f"avg(x + {number})", value, low=low, high=high)
    writer.ask("max(x)", 1.0, where="arm = 'a'", end=True)
    writer.ask("min(x)", 7.5, points=hf.grid(-10, 10, step=0.5), lost=True)
    writer.verify(0.4, refused=False)
    writer.verify(0.9, refused=True, claim="at least")
    return writer


def test_the_page_needs_nothing_but_itself(several: Writer) -> None:
    shown = page(several)
    assert shown.tags <= TAGS
    assert all(link.startswith("#") for link in shown.values("href"))
    assert shown.values("src") == []
    assert not [name for _, name, _ in shown.attributes if name.startswith("on")]
    assert "://" not in shown.source
    assert "@import" not in shown.source
    assert "url(" not in shown.source
    assert "default-src 'none'; style-src 'unsafe-inline'" in shown.values("content")


def test_links_lead_somewhere(several: Writer) -> None:
    several.ask("f", 0.5, assuming="a vectorised estimator treats each block by itself")
    shown = page(several)
    assert {link[1:] for link in shown.values("href")} <= set(shown.values("id"))


def test_every_question_and_answer_is_there(several: Writer) -> None:
    shown = page(several)
    recorded = [row for row in several.rows if row.kind == "recorded"]
    assert len(recorded) == 15
    for number, row in enumerate(recorded, start=1):
        question, answer = row.body["question"], row.body["answer"]
        assert f"q{number}" in shown.values("id")
        assert any(question["estimator"]["text"] in cell for cell in shown.cells)
        assert row.digest in shown.values("title")
        assert any(cell.startswith(f"{row.number}:{row.digest[:8]}") for cell in shown.cells)
        if answer["type"] == "answer":
            assert repr(answer["value"]) in shown.values("title")
            low, high = answer["low"], answer["high"]
            if low is not None:
                low, high = (f"{x:g}".replace("-", "−") for x in (low, high))
                assert any(f"[{low}, {high}]" in cell for cell in shown.cells)
                assert f"[{answer['low']!r}, {answer['high']!r}]" in shown.values("title")
        else:
            word = "not compatible" if answer["refused"] else "compatible"
            assert word in shown.cells
            assert any(f"{answer['guess']:g}" in cell for cell in shown.cells)
    assert any("grid end" in cell for cell in shown.cells)
    assert any("where arm = 'a'" in cell for cell in shown.cells)
    assert any("guess: at least 0.9" in cell for cell in shown.cells)


def test_what_is_written_is_never_code() -> None:
    writer = Writer(
        charter(simple(), name=EVIL, new_budget=EVIL, earlier=("abc",), columns=(EVIL, "arm"))
    )
    writer.ask(EVIL, 0.5, where=EVIL, assuming=EVIL)
    writer.ask("avg(x)\u202e\u0007", 0.5)
    shown = page(writer)
    assert shown.tags <= TAGS
    assert "script" not in shown.tags
    assert sum(EVIL in cell for cell in shown.cells) == 2  # the question, and the column
    assert EVIL in shown.words
    assert "\u202e" not in shown.source
    assert "avg(x)\\u202e\\u0007" in shown.words


def test_the_same_rows_give_the_same_bytes(several: Writer, tmp_path: Path) -> None:
    first = page_html(read_story(IDENTITY, several.rows))
    code = (
        "import pickle, sys; from holdfast.report import *; "
        "rows = pickle.loads(sys.stdin.buffer.read()); "
        f"sys.stdout.buffer.write(page_html(read_story({IDENTITY!r}, rows)).encode())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    run = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(several.rows),
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env=environment,
    )
    assert run.stdout.decode() == first
    several.ask("avg(x)", 0.25)
    assert page_html(read_story(IDENTITY, several.rows)) != first


def test_the_summary(several: Writer) -> None:
    story = read_story(IDENTITY, several.rows)
    words = page(several).words
    (status,) = story.status.sets
    spent, left = (percent(x).replace("\u00a0", " ") for x in (status.used, 1 - status.used))
    assert "15 questions answered; all answers hold at once with confidence 95 %." in words
    assert f"{left} of the budget is left, for up to" in words
    assert spent in words
    assert "certified" in words
    assert str(story.head) in words
    assert f"holdfast check DIR --receipt {story.head}" in words
    assert "2026-01-31 12:00:00 UTC" in words
    assert "fingerprint" not in words


def test_the_curve_ends_where_the_account_stands(several: Writer) -> None:
    story = read_story(IDENTITY, several.rows)
    points = story.spending["main"].points
    assert points[-1][1] == pytest.approx(story.status.sets[0].used, rel=1e-9)
    assert all(b >= a for (_, a), (_, b) in itertools.pairwise(points))
    assert sum(asked.share for asked in story.asked) < points[-1][1]  # one was lost, and is charged
    uses = story.spending["main"].uses
    assert (uses["estimate"].looks, uses["verify"].looks, uses["verify"].noes) == (13 * 5 + 6, 3, 1)


def test_lost_reservations_are_shown(several: Writer) -> None:
    shown = page(several)
    assert "1 reservation without a record." in shown.words
    assert shown.source.count('<path class="lost') == 1
    (lost,) = read_story(IDENTITY, several.rows).lost
    assert lost.place == 13.5
    before = read_story(IDENTITY, several.rows[:-5])
    assert "without a record" not in page_html(before)


def test_a_new_budget_is_shown_with_its_reason() -> None:
    known = charter(simple(), new_budget="a bug in the blocks", earlier=("abc-1", "abc-2"))
    words = page(Writer(known)).words
    assert "A new budget for known data." in words
    assert "a bug in the blocks" in words
    assert "abc-1, abc-2" in words
    assert "A new budget" not in page(Writer(charter(simple()))).words


def test_a_seeded_holdout_is_not_certified() -> None:
    writer = Writer(charter(simple(), seed=1))
    writer.ask(certified=False)
    words = page(writer).words
    assert "1 question answered with seeded coins: nothing on this page is certified." in words
    assert "not certified" in words
    assert "ε =" not in words


def test_assumptions_of_questions_are_named_with_them() -> None:
    writer = Writer(charter(simple()))
    writer.ask()
    writer.ask("f", assuming="a vectorised estimator treats each block by itself")
    words = page(writer).words
    assert "Units are independent draws from one population." in words
    assert "A vectorised estimator treats each block by itself. (question 2)" in words


def test_exact_sets_have_no_privacy_and_say_so() -> None:
    both = charter(plan(queries=20, grid=8, tail=0.25), exact_verdicts(10, 2), split_plan(3))
    writer = Writer(both)
    shown = page(writer)
    assert shown.cells.count("no privacy") == 2
    assert shown.cells.count("exact answers can single out a unit") == 2
    assert "Nothing was asked yet." in shown.words
    assert "100 guesses" not in shown.words
    assert "10 guesses, at most 2 refused; exact" in shown.words


def test_many_questions_stay_in_one_table() -> None:
    writer = Writer(charter(simple()))
    for number in range(201):
        writer.ask(f"avg(x + {number})", (number % 32) / 31)
    shown = page(writer)
    assert "questions compact" in shown.values("class")
    assert sum(cell.startswith("avg(x + ") for cell in shown.cells) == 201
    assert shown.source.count("<thead>") == shown.source.count("<table")
    assert "position: sticky" in shown.source
    assert "table-header-group" in shown.source
    assert len(shown.source) < 1_000_000


def test_drawings_stay_inside_their_frames(several: Writer) -> None:
    several.ask("avg(x)", 0.5, low=-5.0, high=9.0)
    several.ask("avg(x)", 100.0, points=hf.grid(1, 1e6, points=13, scale="log"))
    several.ask("avg(x)", -np.inf, points=hf.grid(0, 1, points=2))
    source = page(several).source
    bars = re.findall(r'<svg class="bar".*?</svg>', source)
    assert len(bars) == 16
    for drawing in bars:
        starts = [float(x) for x in re.findall(r'<rect class="bar" x="([\d.-]+)"', drawing)]
        widths = [float(x) for x in re.findall(r'class="bar" [^>]* width="([\d.]+)"', drawing)]
        dots = [float(x) for x in re.findall(r'cx="([\d.-]+)"', drawing)]
        assert all(6 <= x <= 126 for x in dots)
        assert all(x >= 6 and x + w <= 126.1 for x, w in zip(starts, widths, strict=True))
    assert '<circle class="dot" cx="46.0"' in bars[-2]  # 10² between 10⁰ and 10⁶


def test_the_extent_of_a_grid_is_a_scale_and_no_interval(several: Writer) -> None:
    """A bar is drawn where one is certified; the ends of the grid are named, and have no marks."""
    shown = page(several)
    several.ask("avg(x)", 0.5, low=0.25, high=0.75)
    with_bar = re.findall(r'<svg class="bar".*?</svg>', page(several).source)[-1]
    several.ask("avg(x)", 0.5)
    without = re.findall(r'<svg class="bar".*?</svg>', page(several).source)[-1]
    assert with_bar.count('<rect class="bar"') == 1
    assert without.count('<rect class="bar"') == 0
    for drawing in (with_bar, without):
        assert "<line" not in drawing  # a line with ends is read as an error bar
        assert drawing.count('<rect class="track"') == 1
        assert re.findall(r"<text [^>]*>([^<]*)</text>", drawing) == ["0", "1"]
        assert "on a grid from 0 to 1" in drawing
    units = several.charter.manifest.block_units
    assert f"answer, on blocks of {units:,} units" in shown.source
    assert "the ends say what could have been answered, and bound nothing" in shown.source


def test_a_gate_passes_or_fails(several: Writer) -> None:
    several.verify(0.9, refused=False, claim="at least", gate=True)
    assert "pass" in page(several).cells
    several.verify(0.95, refused=True, claim="at least", gate=True)
    assert "fail" in page(several).cells


def test_a_changed_row_is_refused(several: Writer) -> None:
    rows = list(several.rows)
    body = {**rows[2].body, "answer": {**rows[2].body["answer"], "value": 0.9}}
    rows[2] = replace(rows[2], body=body)
    with pytest.raises(Damaged):
        read_story(IDENTITY, rows)
    with pytest.raises(Damaged):
        read_story(IDENTITY, [*several.rows[:3], *several.rows[4:]])


# A real holdout.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("report") / "real.holdfast"
    data = {"x": rng.uniform(size=3000), "g": np.where(rng.uniform(size=3000) < 0.5, "a", "<b>")}
    made = plan(queries=10, grid=16, tail=0.25)
    with Holdout.create(path, data, made, ranges={"x": (0, 1)}, open_fraction=0.1) as holdout:
        holdout.ask("avg(x)")
        holdout.ask("avg(x)", where="g = '<b>'")
        holdout.ask("median(x)", grid=hf.grid(0, 1, points=16))
    return path


def test_a_holdout_and_its_folder_give_the_same_report(folder: Path, tmp_path: Path) -> None:
    with Holdout.open(folder) as holdout:
        inside = report_html(holdout)
        holdout.ask("avg(x)")  # known already: no row is added
        assert report_html(holdout) == inside
    assert report_html(folder) == report_html(str(folder)) == inside
    write_report(folder, tmp_path / "a.html")
    write_report(folder, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text("utf-8") == inside
    assert [each.name for each in tmp_path.iterdir()] == ["a.html"]
    shown = Page(inside)
    assert shown.tags <= TAGS
    assert "3 questions answered" in shown.words
    assert "g = '<b>'" in shown.words


def test_places_that_are_no_holdout_or_no_file_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the folder of a holdout"):
        report_html(tmp_path)
    with pytest.raises(InvalidInput, match="a file in a folder that exists"):
        write_report(folder, tmp_path / "nowhere" / "a.html")
    with pytest.raises(InvalidInput, match="a file in a folder that exists"):
        write_report(folder, tmp_path)


def test_an_older_copy_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.holdfast"
    shutil.copytree(folder, copy)
    with Holdout.open(folder) as holdout:
        holdout.ask("min(x)", grid=hf.grid(0, 1, points=8))
    with pytest.raises(Damaged):
        report_html(copy)
