"""The page says everything that the ledger says, and nothing that could act."""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.engines.python.admission import ASSUMPTION
from holdfast.errors import Damaged, HoldfastError, InvalidInput
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.records import answer_in
from holdfast.holdout.spec import AnyPlan
from holdfast.ledger.ledger import Row
from holdfast.planning.joint import joint_plan, rounds_plan
from holdfast.planning.solve import plan
from holdfast.protocols.answers import Answer, Verdict, rounded_up
from holdfast.protocols.base import Question
from holdfast.protocols.guesses import VerdictPart
from holdfast.protocols.means import DirectMeans, MedianMeans
from holdfast.protocols.searches import AmplifiedEstimates, Intervals, SearchPart, SimpleEstimates
from holdfast.protocols.split import split_plan
from holdfast.protocols.weights import WeightedEstimates
from holdfast.report import Story, page_html, read_story, report_html, write_report
from holdfast.report.facts import delta_for, set_privacy
from holdfast.report.html import percent
from holdfast.report.page import holdout_story, panels, points_of
from holdfast.theory.privacy import ORDERS, look_divergence, private_epsilon
from tests.report.ledgers import AVERAGE, IDENTITY, Writer, chained, joint, simple, spec_for
from tests.report.pages import Page

EVIL = "</td></table><script>alert('&')</script><img src=x onerror=\"alert(1)\">"
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "nav", "section", "a"),
    *("h1", "h2", "h3", "p", "span", "strong", "b", "i", "q", "sup", "ul", "li", "dl", "dt", "dd"),
    *("div", "figure", "figcaption", "table", "colgroup", "col", "thead", "tbody", "tr", "th"),
    *("td", "br", "code", "pre", "footer", "svg", "g", "text", "line", "circle", "rect", "path"),
}


def story(writer: Writer) -> Story:
    return read_story(IDENTITY, writer.rows)


def page(writer: Writer) -> Page:
    return Page(page_html(story(writer)))


@pytest.fixture
def several() -> Writer:
    writer = Writer(spec_for(joint()))
    for number in range(12):
        writer.ask(f"avg(x + {number})", number / 31, sd=0.1 + number)
    writer.ask("max(x)", 1.0, where="arm = 'a'")
    writer.ask("min(x)", 7.5, points=hf.grid(-10, 10, step=0.5), lost=True)
    writer.verify(0.4, refused=False)
    writer.verify(0.9, refused=True, claim="at least")
    return writer


def test_the_page_needs_nothing_but_itself(several: Writer) -> None:
    several.ask("f", 0.5, assumes="blocks-apart")
    shown = page(several)
    inert(shown)
    assert all(link.startswith("#") for link in shown.values("href"))
    assert {link[1:] for link in shown.values("href")} <= set(shown.values("id"))
    assert not [word for word in ("://", "@import", "url(") if word in shown.source]
    assert "default-src 'none'; style-src 'unsafe-inline'" in shown.values("content")


def inert(shown: Page) -> None:
    assert shown.tags <= TAGS
    assert shown.values("src") == []
    assert not [name for _, name, _ in shown.attributes if name.startswith("on")]


def test_every_question_and_answer_is_there(several: Writer) -> None:
    shown = page(several)
    recorded = [row for row in several.rows if row.kind == "recorded"]
    assert len(recorded) == 15
    for number, row in enumerate(recorded, start=1):
        question, answer = row.body["question"], answer_in(several.spec, row, "", cached=False)
        assert f"q{number}" in shown.values("id")
        assert any(question["estimator"]["text"] in cell for cell in shown.cells)
        assert row.digest in shown.values("title")
        assert any(cell.startswith(f"{row.number}:{row.digest[:8]}") for cell in shown.cells)
        if isinstance(answer, Answer):
            assert repr(answer.value) in shown.values("title")
            if "shape" in question:
                assert f"[{answer.low!r}, {answer.high!r}]" in shown.values("title")
                assert any(encloses(cell, answer) for cell in shown.cells)
        else:
            assert isinstance(answer, Verdict)
            assert answer.verdict in shown.cells
            assert any(f"{answer.guess:g}" in cell for cell in shown.cells)
    for words in ("grid end", "where arm = 'a'", "guess: at least 0.9"):
        assert any(words in cell for cell in shown.cells)


def encloses(cell: str, answer: Answer) -> bool:
    """Whether a cell says an interval that holds the certified one, and hardly more."""
    found = re.search(r"\[(\S+), (\S+)\]", cell.replace("−", "-").replace("∞", "inf"))
    if found is None or answer.high is None:
        return False
    low, high = map(float, found.groups())
    if answer.low is None:
        return low == -math.inf and answer.high == high
    near = 0.02 * (answer.high - answer.low)
    return answer.low - near < low <= answer.low and answer.high <= high < answer.high + near


# What is written is never code.


def fields(body: Any) -> Iterator[tuple[str | int, ...]]:
    """The places of all texts in a row's body."""
    if isinstance(body, str):
        yield ()
    elif isinstance(body, dict | list):
        for key, each in body.items() if isinstance(body, dict) else enumerate(body):
            yield from ((key, *rest) for rest in fields(each))


def changed(rows: list[Row], index: int, place: tuple[str | int, ...], text: str) -> list[Row]:
    """The ledger that has another text in one place of one row, chained again."""
    made: list[Row] = []
    for number, row in enumerate(rows):
        body = copy.deepcopy(row.body)
        if number == index:
            inner: Any = body
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = text
        made.append(chained(made, row.kind, body))
    return made


def test_no_text_of_a_ledger_acts() -> None:
    """Whatever field of whatever row: it is refused, or it is shown as text."""
    columns = {"x": "number", "arm": "text", "y": "text"}
    given = {"unit": "arm", "labels": ("no", "yes"), "target": "y", "columns": columns}
    known = {"new_budget": "a bug", "earlier": ("abc",), "categories": {"arm": ("a", "b")}}
    writer, evil = Writer(spec_for(joint(), **given, **known)), "\"'><script>&"
    writer.ask(where="arm = 'a'", assumes="all is well")
    writer.ask(lost=True)
    writer.verify(0.5, refused=True)
    shown = set()
    for index, row in enumerate(writer.rows):
        for place in fields(row.body):
            try:
                told = page_html(read_story(IDENTITY, changed(writer.rows, index, place, evil)))
            except (HoldfastError, ArithmeticError, LookupError, TypeError, ValueError):
                continue
            found = Page(told)
            inert(found)
            if evil in found.words or evil in " ".join(found.values("title")):
                shown.add(".".join(each for each in place if isinstance(each, str)))
    wanted = {"name", "new_budget", "earlier", "manifest.unit_column", "manifest.schema.name"}
    wanted |= {"categories.arm", "labels", "holdfast", "assumes"}
    assert shown >= wanted | {"question.estimator.text", "question.estimator.where"}


def test_text_that_cannot_be_seen_is_written_out() -> None:
    writer = Writer(spec_for(simple(), columns={EVIL: "number", "arm": "text"}))
    writer.ask(EVIL, where=EVIL, assumes=EVIL)
    writer.ask("avg(x)\u202e\u0007")
    shown = page(writer)
    inert(shown)
    assert sum(EVIL in cell for cell in shown.cells) == 2  # the question, and the column
    assert "\u202e" not in shown.source
    assert "avg(x)\\u202e\\u0007" in shown.words


def test_the_same_rows_give_the_same_bytes(several: Writer, tmp_path: Path) -> None:
    first = page_html(story(several))
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
    assert page_html(story(several)) != first


# What it says of what happened.


def test_the_summary(several: Writer) -> None:
    told, words = story(several), page(several).words
    (status,) = told.status.sets
    spent, left = (percent(x).replace("\u00a0", " ") for x in (status.used, 1 - status.used))
    for said in (
        "15 questions answered; all answers hold at once with confidence 95 %.",
        f"{left} of the budget is left, for up to",
        spent,
        "certified",
        str(told.head),
        f"holdfast check DIR --receipt {told.head}",
        "2026-01-31 12:00:00 UTC",
    ):
        assert said in words
    assert "fingerprint" not in words


def test_the_curve_ends_where_the_account_stands(several: Writer) -> None:
    told = story(several)
    spending = told.spending["main"]
    shares = [share for _, share in spending.points]
    assert shares[-1] == pytest.approx(told.status.sets[0].used, rel=1e-9)
    assert all(b >= a for a, b in itertools.pairwise(shares))
    assert sum(asked.share for asked in told.asked) < shares[-1]  # one was lost, and is charged
    looks = {name: (use.looks, use.noes) for name, use in spending.uses.items()}
    assert looks == {"estimate": (13 * 5 + 6, 0), "verify": (3, 1)}


def test_lost_reservations_are_shown(several: Writer) -> None:
    shown = page(several)
    assert "1 reservation without a record." in shown.words
    assert shown.source.count('<path class="lost') == 1
    assert [lost.place for lost in story(several).lost] == [13.5]
    assert "without a record" not in page_html(read_story(IDENTITY, several.rows[:-5]))


REASON = {"new_budget": "a bug in the blocks", "earlier": ("abc-1", "abc-2")}


@pytest.mark.parametrize(
    ("changes", "asked", "said", "not_said"),
    [
        ({}, [], ["Nothing was asked yet."], ["A new budget"]),
        (REASON, [], ["A new budget for known data.", REASON["new_budget"], "abc-1, abc-2"], []),
        ({"new_budget": "a bug"}, [], ["A new budget was asked for", "a bug"], ["for known data"]),
        (
            {"seed": 1},
            [{}],
            ["1 question answered with seeded coins: nothing on this page is certified."],
            ["ε ="],
        ),
        (
            {},
            [{}, {"text": "f", "assumes": "blocks-apart"}],
            [
                "Units are independent draws from one population.",
                f"A{ASSUMPTION[1:]}. (question 2)",
            ],
            ["not certified", "without a record"],
        ),
    ],
    ids=["new", "known data", "a reason alone", "seeded", "assumptions"],
)
def test_what_is_special_is_said(
    changes: dict[str, Any], asked: list[dict[str, Any]], said: list[str], not_said: list[str]
) -> None:
    writer = Writer(spec_for(simple(), **changes))
    for each in asked:
        writer.ask(**each)
    words = page(writer).words
    assert [each for each in said if each not in words] == []
    assert [each for each in not_said if each in words] == []


def test_a_changed_row_is_refused(several: Writer) -> None:
    rows = list(several.rows)
    rows[2] = replace(rows[2], body={**rows[2].body, "drawn": {"index": 9}})
    impossible = changed(several.rows, 2, ("drawn", "index"), "9")
    for wrong in (rows, [*several.rows[:3], *several.rows[4:]], impossible):
        with pytest.raises(Damaged):
            read_story(IDENTITY, wrong)


PLANS: dict[str, tuple[Callable[[], AnyPlan], str]] = {
    "interval": (lambda: joint_plan(Intervals(5, grid=16)), "encloses the estimator's median"),
    "simple": (lambda: joint_plan(SimpleEstimates(5, grid=16)), "on a fresh block"),
    "amplified": (lambda: joint_plan(AmplifiedEstimates(5, grid=16)), "on one sub-block of"),
    "weights": (lambda: joint_plan(WeightedEstimates(50, universe=21)), "surprises"),
    "rounds": (lambda: rounds_plan(20, 2), "20 questions in 2 rounds; exact"),
    "split": (lambda: split_plan(3), "3 questions, fresh blocks for each; exact"),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_says_what_it_is_for(name: str) -> None:
    make, said = PLANS[name]
    words = page(Writer(spec_for(make()))).words
    assert said in words
    assert "Nothing was asked yet." in words
    assert "None" not in words
    assert "nan" not in words.split()


# Drawings and tables.


def test_many_questions_stay_in_one_table() -> None:
    writer = Writer(spec_for(simple()))
    for number in range(201):
        writer.ask(f"avg(x + {number})", (number % 32) / 31)
    shown = page(writer)
    assert "questions compact" in shown.values("class")
    assert sum(cell.startswith("avg(x + ") for cell in shown.cells) == 201
    assert shown.source.count("<thead>") == shown.source.count("<table")
    assert "position: sticky" in shown.source
    assert "table-header-group" in shown.source
    assert len(shown.source) < 1_000_000


def bars(writer: Writer) -> list[str]:
    return re.findall(r'<svg class="bar".*?</svg>', page(writer).source)


def test_drawings_stay_inside_their_frames(several: Writer) -> None:
    several.ask("avg(x)", 0.5, sd=1e3)
    several.ask("avg(x)", 100.0, points=hf.grid(1, 1e6, points=13, scale="log"))
    several.ask("avg(x)", 0.0, points=hf.grid(0, 1, points=2))
    drawings = bars(several)
    assert len(drawings) == 16
    for drawing in drawings:
        starts = [float(x) for x in re.findall(r'<rect class="bar" x="([\d.-]+)"', drawing)]
        widths = [float(x) for x in re.findall(r'class="bar" [^>]* width="([\d.]+)"', drawing)]
        dots = [float(x) for x in re.findall(r'cx="([\d.-]+)"', drawing)]
        assert all(6 <= x <= 126 for x in dots)
        assert all(x >= 6 and x + w <= 126.1 for x, w in zip(starts, widths, strict=True))
    assert '<circle class="dot" cx="46.0"' in drawings[-2]  # 10² between 10⁰ and 10⁶


def test_an_infinite_answer_is_told_and_not_drawn() -> None:
    writer = Writer(spec_for(split_plan(3)))
    for value in (0.25, "-inf", 0.75):
        writer.add(Question("ask", "split", AVERAGE), {"value": value})
    shown = page(writer)
    assert "−∞" in shown.cells
    assert shown.source.count("<circle") == 2


def test_the_extent_of_a_grid_is_a_scale_and_no_interval(several: Writer) -> None:
    """A bar is drawn where one is certified; the ends of the grid are named, and have no marks."""
    several.ask("avg(x)", 0.5, sd=0.1)
    several.ask("avg(x)", 0.5)
    for drawing, certified in zip(bars(several)[-2:], (1, 0), strict=True):
        assert drawing.count('<rect class="bar"') == certified
        assert "<line" not in drawing  # a line with ends is read as an error bar
        assert drawing.count('<rect class="track"') == 1
        assert re.findall(r"<text [^>]*>([^<]*)</text>", drawing) == ["0", "1"]
        assert "on a grid from 0 to 1" in drawing
    words = page(several).words
    assert f"answer, on blocks of {several.spec.manifest.block_units:,} units" in words
    assert "the ends say what could have been answered, and bound nothing" in words


# The figures of unit-level privacy, against their definition.


def privacy(writer: Writer) -> Any:
    (figures,) = set_privacy(story(writer))
    return figures


def test_the_figures_of_a_search_are_its_looks_times_the_whole_step_price() -> None:
    writer = Writer(spec_for(simple()))
    for _ in range(3):
        writer.ask()
    figures: Any = privacy(writer)
    (part,) = simple().parts
    assert isinstance(part, SearchPart)
    coin, delta = part.coin(simple().order), delta_for(writer.spec.manifest.units)

    def epsilon(looks: int) -> float:
        return min(private_epsilon(looks * coin.neighbour_price(a), a, delta) for a in ORDERS)

    assert figures.spent.epsilon == pytest.approx(epsilon(15), rel=1e-9)
    assert figures.whole.epsilon == pytest.approx(epsilon(part.looks), rel=1e-9)
    centred = min(private_epsilon(15 * coin.price(a), a, delta) for a in ORDERS)
    assert figures.spent.epsilon > 1.2 * centred  # the plan's own price would be too little
    shown = page(writer)
    assert any(cell.startswith("ε = ") for cell in shown.cells)
    assert "holds however people choose when to stop" in shown.words


def test_more_questions_are_less_private_and_never_beyond_the_whole_budget() -> None:
    writer = Writer(spec_for(joint()))
    before = 0.0
    for step in range(6):
        writer.verify(0.5, refused=step == 3)
        writer.ask(lost=step == 2)
        figures: Any = privacy(writer)
        assert before < figures.spent.epsilon <= figures.whole.epsilon
        before = figures.spent.epsilon


def test_a_shared_budget_bounds_its_parts_together() -> None:
    """All of one part and all of the other do not fit: the whole figure knows that."""
    figures: Any = privacy(Writer(spec_for(joint())))
    assert figures.spent is None
    order, flat = figures.whole.order, 0.0
    for part in joint().parts:
        assert isinstance(part, SearchPart | VerdictPart)
        flat += part.looks * look_divergence(part.coin(joint().order), order)
    assert figures.whole.epsilon < private_epsilon(flat, order, figures.whole.delta)


@pytest.mark.parametrize(
    "request_for",
    [DirectMeans(50, half_width=0.1), MedianMeans(20), WeightedEstimates(50, universe=21)],
    ids=["direct", "median", "weights"],
)
def test_every_kind_of_part_has_a_figure(request_for: Any) -> None:
    writer = Writer(spec_for(joint_plan(request_for)))
    figures: Any = privacy(writer)
    assert 0 < figures.whole.epsilon < math.inf
    assert "nothing was said yet" in page(writer).cells


def test_exact_sets_have_no_privacy_and_say_so() -> None:
    made = (plan(queries=20, grid=8, tail=0.25), rounds_plan(20, 2), split_plan(3))
    shown = page(Writer(spec_for(*made)))
    assert shown.cells.count("no privacy") == 2
    assert shown.cells.count("exact answers can single out a unit") == 2
    assert "Nothing was asked yet." in shown.words
    assert "20 questions in 2 rounds; exact" in shown.words


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
    for _ in range(2):
        write_report(folder, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text("utf-8") == inside
    assert [each.name for each in tmp_path.iterdir()] == ["a.html"]
    shown = Page(inside)
    inert(shown)
    assert "3 questions answered" in shown.words
    assert "g = '<b>'" in shown.words


def test_places_that_are_no_holdout_or_no_file_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the folder of a holdout"):
        report_html(tmp_path)
    for place in (tmp_path / "nowhere" / "a.html", tmp_path):
        with pytest.raises(InvalidInput, match="a file in a folder that exists"):
            write_report(folder, place)


def test_an_older_copy_is_refused(folder: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copy.holdfast"
    shutil.copytree(folder, copied)
    with Holdout.open(folder) as holdout:
        holdout.ask("min(x)", grid=hf.grid(0, 1, points=8))
    with pytest.raises(Damaged):
        report_html(copied)


def test_what_is_told_is_shown_with_its_nats(tmp_path: Path) -> None:
    count = 1_000
    rows = pd.DataFrame({"row": range(count), "y": [k % 2 for k in range(count)]})
    given = rows.assign(prediction=lambda f: (f.row % 10 > 0) * f.y)[["row", "prediction"]]
    zero = given.assign(prediction=0)
    with Holdout.create(tmp_path / "h", rows, ids="row", target="y", confidence=0.99) as holdout:
        holdout.score(given)
        verdicts = [holdout.gate(given, at_least=0.8)]
        holdout.best([given, zero], names=["<one>", "other"])
        difference = holdout.compare(zero, given, metric="error_rate")
        verdicts += [holdout.gate(given, better_than=zero)]
        holdout.mean("y = 1")
        holdout.scores([given, zero], names=["<one>", "other"])
        told: Any = holdout.status().sets[0].told
        shown = Page(report_html(holdout))
        (answers, _) = panels(holdout_story(holdout).asked)
    inert(shown)
    assert {link[1:] for link in shown.values("href")} <= set(shown.values("id"))
    assert "<one>" not in shown.source
    words = shown.words
    assert told.answers == 7
    assert "nats told so far" in words
    assert words.count("With 99 % confidence") == 6
    assert "<one> has the best accuracy" in words
    assert "all at once, with at least 99 % confidence" in words
    assert re.search(r"\b1 score accuracy of predictions \w{8} score of these rows", words)
    assert "gate at least 0.8: accuracy of predictions" in words
    assert "gate this one against the incumbent: accuracy of predictions" in words
    assert "compare B against A: error_rate of predictions" in words
    assert words.count("score of these rows, fresh labels (against everybody") == 6
    assert [each.verdict for each in verdicts] == ["pass", "pass"]
    assert all(f"pass {each.promise}" in words for each in verdicts)
    assert "B is worse than A by 0." in difference.promise
    assert difference.promise in words
    assert "surprises 013" in words
    assert f"±{rounded_up(told.bars[2]['half_widths'][1], 2)}" in shown.cells
    for of_looks in (
        "of the budget",
        "fresh block is",
        "on its grid",
        "price is",
        "vectorised",
        "coins",
    ):
        assert of_looks not in words
    # Differences have an axis of their own, on which the first is better above 0.
    drawn = {}
    for panel in answers:
        drawn[panel.title.split(",")[0]] = [p for asked in panel.asked for p in points_of(asked)]
    found = {name: len(points) for name, points in drawn.items()}
    differences = {"differences in error_rate": 1, "differences in accuracy": 1}
    assert found == {"accuracy": 4, **differences, "means between 0 and 1": 1}
    assert drawn["differences in error_rate"][0].value == pytest.approx(-0.5, abs=0.2)
    gate = drawn["accuracy"][1]
    assert (gate.mark, gate.low, gate.style) == (0.8, 0.8, "good")
