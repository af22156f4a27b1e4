"""The page: a template, the facts of a ledger, and drawings of them, which are plain SVG.

The template escapes whatever it is given; only the drawings, which `tag` made safe, are markup.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from holdfast.errors import InvalidInput
from holdfast.holdout.holdout import Holdout
from holdfast.ledger.ledger import Ledger, check_against
from holdfast.ledger.opening import has_ledger, open_ledger
from holdfast.ledger.witness import Witness
from holdfast.protocols.answers import Told, rounded_up
from holdfast.report import facts
from holdfast.report.facts import AnsweredQuestion, Story, read_story
from holdfast.report.html import (
    clock,
    count,
    day,
    html_file,
    number,
    percent,
    tag,
    typeset,
    visible,
)
from holdfast.store.user_state import state_folder

__all__ = [
    "holdout_story",
    "page_html",
    "report_html",
    "write_report",
    "write_text",
]

_COMPACT = 200  # questions from which their table is set tighter
_COLOURS = 6  # styles c0 … c5 of the page
_MOST_PANELS, _FEW, _CROWDED = 6, 3, 60
_HALF, _FULL = 470, 960  # widths of a panel, alone in its row or not
_STYLES = {
    **dict.fromkeys(("pass", "better"), "good"),
    **dict.fromkeys(("fail", "worse", "not compatible"), "bad"),
    **dict.fromkeys(("unclear", "not shown", "cannot tell", "exhausted"), "warn"),
    "compatible": "plain",
}


def page_html(story: Story) -> str:
    """One HTML file: no script, nothing fetched from anywhere; a pure function of the story."""
    shown, others = panels(story.asked)
    words = [asked.word for asked in story.asked if asked.word is not None]
    kinds: dict[str, list[str]] = {}
    for column in story.spec.manifest.schema.columns:
        kinds.setdefault(column.kind, []).append(column.name)
    main = _template().render(
        story=story,
        figures=facts.set_privacy(story),
        assumptions=story.status.assumes.split("; "),
        plans=[(each, facts.planned(each)) for each in story.spec.sets],
        panels=shown,
        others=others,
        alone=len(shown) == 1 or any(len(panel.asked) > _CROWDED for panel in shown),
        words={word: words.count(word) for word in words},
        kinds=kinds,
        compact=len(story.asked) > _COMPACT,
        colours=_COLOURS,
        styles=_STYLES,
        charted=charted(story),
        version=version("holdfast"),
    )
    return html_file(f"{story.spec.name}: Holdfast report", main)


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else visible(value),
    )
    given = (bar_svg, budget_chart, panel_svg, clock, count, day, number, percent, rounded_up)
    environment.globals |= {each.__name__: each for each in given} | {"facts": facts}
    environment.filters["commas"] = "{:,}".format
    return environment.from_string(files(__package__).joinpath("page.html").read_text("utf-8"))


# From a holdout to a file. Only its ledger is read: no data, and nothing is charged.


def report_html(holdout: Holdout | Path | str) -> str:
    """The report of a holdout, or of the one in a folder, as the text of an HTML file."""
    return page_html(holdout_story(holdout))


def write_report(holdout: Holdout | Path | str, output: Path | str) -> None:
    """Write the report; a file that is there is replaced."""
    write_text(Path(output), report_html(holdout))


def write_text(path: Path, text: str) -> None:
    """Write a file, all of it or nothing."""
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInput("output", str(path), "a file in a folder that exists")
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        draft.write_text(text, "utf-8", newline="\n")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def holdout_story(holdout: Holdout | Path | str) -> Story:
    """What the ledger says, after it was checked against the last receipt seen here."""
    if isinstance(holdout, Holdout):
        return _story(holdout.journal.ledger)
    path = Path(holdout)
    if not has_ledger(path):
        hint = "Make one with holdfast.Holdout.create, or `holdfast create`."
        raise InvalidInput("path", str(holdout), "the folder of a holdout", hint)
    with open_ledger(path) as ledger:
        return _story(ledger)


def _story(ledger: Ledger) -> Story:
    witness = Witness(state_folder() / "receipts")
    seen = witness.last(ledger.holdout)
    if seen is not None:
        check_against(ledger, seen)  # an older copy would show a budget that is spent
    story = read_story(ledger.holdout, ledger.rows())
    witness.see(story.head)
    return story


# Scales and ticks of the drawings.


class Scale:
    """A map from values to pixels: linear, or by logarithms; what lies beyond stays at the end."""

    def __init__(
        self, low: float, high: float, start: float, end: float, *, logs: bool = False
    ) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end
        self._of = math.log if logs else float

    def __call__(self, value: float) -> float:
        if self.high == self.low:
            return (self.start + self.end) / 2
        low, inside, high = (
            self._of(x) for x in (self.low, min(max(value, self.low), self.high), self.high)
        )
        return self.start + (inside - low) / (high - low) * (self.end - self.start)


def round_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between low and high, at most so many, evenly spaced.

    >>> round_ticks(0.13, 0.87)
    [0.2, 0.4, 0.6, 0.8]
    """
    if not low < high:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10, 20) if m * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def whole_ticks(first: int, last: int, most: int = 9) -> list[int]:
    """Question numbers for an axis: the first, some round ones, the last.

    >>> whole_ticks(1, 43), whole_ticks(1, 3)
    ([1, 10, 20, 30, 43], [1, 2, 3])
    """
    if last - first < most:
        return list(range(first, last + 1))
    rough = (last - first) / (most - 3)
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    inner = range(-(-first // step) * step, last, step)
    apart = 0.6 * step
    return [first, *(x for x in inner if x - first > apart and last - x > apart), last]


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    return tag("line", class_=style, x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2))


def _label(x: float, y: float, text: str, anchor: str = "middle", style: str = "tick") -> Markup:
    return tag("text", text, class_=style, x=float(x), y=float(y), text_anchor=anchor)


def _question_ticks(ticks: list[int], across: Scale, bottom: float) -> list[Markup]:
    """Marks and numbers below an axis of questions."""
    parts = []
    for tick in ticks:
        parts.append(_line(across(tick), bottom, across(tick), bottom + 4, "axis"))
        parts.append(_label(across(tick), bottom + 17, f"{tick:,}"))
    return parts


def _drawing(style: str, title: str, width: int, height: int, parts: Iterable[Markup]) -> Markup:
    box = f"0 0 {width} {height}"
    named = {"class_": style, "role": "img", "viewBox": box, "aria_label": title}
    return tag("svg", tag("title", title), *parts, **named)


def _dot(x: float, y: float, radius: float, *, end: bool) -> Markup:
    return tag("circle", class_="dot end" if end else "dot", cx=x, cy=y, r=radius)


# Answers with their error bars: small bars in the table, and panels of answers on one grid.


_BAR_WIDTH, _BAR_HEIGHT, _INSET = 132, 30, 6
_TRACK = 9.0  # the middle of the track; its ends are named below
_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 230, 58, 14, 12, 30


def bar_svg(asked: AnsweredQuestion) -> Markup:
    """The answer's place on its grid, a scale with its ends named; empty without a grid.

    A bar is drawn only where one is certified: the extent of the grid is that of a scale, and must
    not be taken for an interval.
    """
    answer, grid, ends = asked.answer, asked.grid, (_INSET, _BAR_WIDTH - _INSET)
    if grid is not None:
        logs = grid.low > 0 and grid.to_json().get("scale") == "log"
        place = Scale(float(grid.low), float(grid.high), *ends, logs=logs)
    elif asked.question["verb"] == "mean":
        place = Scale(*_range(asked), *ends)
    else:
        return Markup()
    assert answer is not None
    track = {"class_": "track", "x": 0, "y": _TRACK - 2, "width": _BAR_WIDTH}
    parts = [tag("rect", **track, height=4, rx=2)]
    for x, end, anchor in ((0, place.low, "start"), (_BAR_WIDTH, place.high, "end")):
        named = {"class_": "end-label", "x": x, "y": _BAR_HEIGHT - 2, "text_anchor": anchor}
        parts.append(tag("text", number(end), **named))
    if answer.low is not None or answer.high is not None:
        low = place.start if answer.low is None else place(answer.low)
        high = place.end if answer.high is None else place(answer.high)
        bar = {"class_": "bar", "x": float(low), "y": _TRACK - 4, "width": max(1.0, high - low)}
        parts.append(tag("rect", **bar, height=8, rx=2))
    parts.append(_dot(place(answer.value), _TRACK, 3.2, end=answer.at_grid_end))
    words = f"{asked.said} on a grid from {number(place.low)} to {number(place.high)}"
    return _drawing("bar", words, _BAR_WIDTH, _BAR_HEIGHT, parts)


def _range(asked: AnsweredQuestion) -> tuple[float, float]:
    """Between which numbers the terms of a mean lie."""
    low, high = asked.question.get("range", (0.0, 1.0))
    return float(low), float(high)


class Panel(NamedTuple):
    """Answers that can be drawn on one axis: on the same grid, or by the same metric."""

    title: str
    asked: list[AnsweredQuestion]


class Point(NamedTuple):
    """What is drawn of an answer: a value with its bar; or a mark, and which side of it is true."""

    place: float  # on the axis of question numbers
    value: float | None
    low: float | None
    high: float | None
    words: str
    end: bool = False
    mark: float | None = None
    style: str = ""


def panels(questions: Iterable[AnsweredQuestion]) -> tuple[list[Panel], int]:
    """The largest groups of answers on one axis, and how many answers are in none of them."""
    groups: dict[str, list[AnsweredQuestion]] = {}
    for asked in questions:
        if points_of(asked):
            groups.setdefault(_axis(asked), []).append(asked)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))  # ties: who came first
    if any(len(members) >= _FEW for _, members in ordered):  # beside them one dot says little
        ordered = [item for item in ordered if len(item[1]) >= _FEW or item[1][0].told]
    shown = [Panel(name, members) for name, members in ordered[:_MOST_PANELS]]
    drawn = sum(len(panel.asked) for panel in shown)
    return shown, sum(map(len, groups.values())) - drawn


def points_of(asked: AnsweredQuestion) -> list[Point]:
    """What is drawn of an answer; nothing of what is only a word."""
    where = "" if asked.where is None else f" where {asked.where}"
    asks, told, answer = f"{asked.number}. {asked.text}{where}", asked.told, asked.answer
    if told is not None and told.verb not in ("best", "verify"):
        several, names = told.batch or (told,), told.names if told.batch else ()
        step = 0.6 / len(several)
        first = asked.number - step * (len(several) - 1) / 2
        named = [f"{asks}: {name}" for name in names] or [asks]
        pairs = enumerate(zip(several, named, strict=True))
        return [_point(each, first + step * i, words) for i, (each, words) in pairs]
    if answer is None or not math.isfinite(answer.value):
        return []
    bar, words = (answer.value, answer.low, answer.high), f"{asks}: {asked.said}"
    return [Point(asked.number, *bar, words, answer.at_grid_end)]


def _point(told: Told, place: float, words: str) -> Point:
    """One of what was told; of a difference more is better."""
    value, low, high, mark = told.value, told.low, told.high, None
    if told.verdict is not None:  # at what was proved; else at what was asked about
        ends = (low, high, told.facts.get("threshold"), 0.0)
        mark = next(end for end in ends if end is not None)
    if told.facts.get("greater") is False:
        turned = (None if each is None else 0.0 - each for each in (value, high, low, mark))
        value, low, high, mark = turned
    word = told.verdict or ""
    said = f"{words}: {word}{': ' if word else ''}{told.said}"
    return Point(place, value, low, high, said, mark=mark, style=_STYLES.get(word, ""))


def _axis(asked: AnsweredQuestion) -> str:
    """What answers must share to be compared by eye."""
    told = asked.told
    if told is not None and asked.grid is not None:
        return f"medians over blocks, {typeset(asked.grid.describe())}"
    if told is not None and told.facts.get("against") is not None:
        return f"differences in {told.about}, above 0 where the first is better"
    if told is not None and told.verb != "mean":
        return f"{told.about}, scores and gates"
    if asked.grid is not None:
        return typeset(asked.grid.describe())
    if asked.question["verb"] != "mean":
        return "no grid"
    low, high = (number(end) for end in _range(asked))
    return f"means between {low} and {high}"


def panel_svg(panel: Panel, *, alone: bool) -> Markup:
    """One panel: question numbers across, answers with their bars up."""
    width = _FULL if alone else _HALF
    points = [point for asked in panel.asked for point in points_of(asked)]
    ends = [x for p in points for x in (p.low, p.value, p.high, p.mark) if x is not None]
    finite = [x for x in ends if math.isfinite(x) and abs(x) < 1e300]
    low, high = min(finite), max(finite)
    room = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    first, last = panel.asked[0].number, panel.asked[-1].number
    margin, bottom = 0.5 if last > first else 1.0, _HEIGHT - _BOTTOM
    across = Scale(first - margin, last + margin, _LEFT, width - _RIGHT)
    up = Scale(low - room, high + room, bottom, _TOP)
    parts = []
    for tick in round_ticks(up.low, up.high):
        parts.append(_line(_LEFT, up(tick), width - _RIGHT, up(tick), "rule"))
        parts.append(_label(_LEFT - 8, up(tick) + 4, number(tick, 6), "end"))
    parts.append(_line(_LEFT, bottom, width - _RIGHT, bottom, "axis"))
    parts += _question_ticks(whole_ticks(first, last, 12 if alone else 8), across, bottom)
    for point in points:
        x, inside = across(point.place), []
        if point.mark is not None:
            inside += _verdict(point, x, up(point.mark))
        elif point.low is not None or point.high is not None:
            start = up(up.low if point.low is None else point.low)
            end = up(up.high if point.high is None else point.high)
            inside.append(_line(x, start, x, end, "whisker"))
        if point.value is not None:
            inside.append(_dot(x, up(point.value), 3.4, end=point.end))
        parts.append(tag("g", *inside, tag("title", point.words)))
    return _drawing("chart", f"Answers on {panel.title}", width, _HEIGHT, parts)


def _verdict(point: Point, x: float, y: float) -> list[Markup]:
    """A line at what was asked about, and a triangle on the side where it is shown to lie."""
    style = f"mark {point.style}"
    drawn = [_line(x - 7, y, x + 7, y, style)]
    if point.low is not None or point.high is not None:
        by = -1 if point.low is not None else 1
        path = f"M{x - 5:.1f},{y + 4 * by:.1f}h10l-5,{8 * by}Z"
        drawn.append(tag("path", class_=style, d=path))
    return drawn


# The budget over time: a step for every question, and a mark for every one that was lost.


_BUDGET_HEIGHT, _BUDGET_LEFT, _BUDGET_RIGHT, _BUDGET_TOP, _BUDGET_BOTTOM = 280, 52, 84, 14, 46
_TOPS = (0.04, 0.1, 0.2, 0.4, 1.0)  # where the axis may end: little that is spent can be seen too
_CLOSE = 15.0  # pixels between labels


def charted(story: Story) -> list[str]:
    """The sets that have a budget: what is told has none."""
    return [each.name for each in story.status.sets if each.told is None]


def budget_chart(story: Story) -> Markup:
    """The share of every set's budget that was spent, question by question."""
    names, bottom = charted(story), _BUDGET_HEIGHT - _BUDGET_BOTTOM
    end = max([float(max(1, len(story.asked))), *(lost.place for lost in story.lost)])
    longest = max(map(len, names)) if len(names) > 1 else 0
    across = Scale(0.0, end, _BUDGET_LEFT, _FULL - _BUDGET_RIGHT - min(160.0, 6.5 * longest))
    most = max(share for name in names for _, share in story.spending[name].points)
    top = next(height for height in _TOPS if 1.1 * most <= height or height == 1)
    up = Scale(0.0, top, bottom, _BUDGET_TOP)
    parts = []
    for share in (quarter * top / 4 for quarter in range(5)):
        style = "limit" if share == 1 else "axis" if share == 0 else "rule"
        parts.append(_line(_BUDGET_LEFT, up(share), across.end, up(share), style))
        parts.append(_label(_BUDGET_LEFT - 8, up(share) + 4, percent(share), "end"))
    parts += _question_ticks(whole_ticks(1, len(story.asked), 12), across, bottom)
    if story.asked:
        middle = (across(0) + across(len(story.asked))) / 2
        first, latest = (day(story.asked[i].row.at) for i in (0, -1))
        for x, text, anchor in (
            *((_BUDGET_LEFT, first, "start"), (middle, "question number", "middle")),
            (across.end, latest, "end"),
        ):
            parts.append(_label(x, bottom + 36, text, anchor, "tick faint"))
    for index, name in enumerate(names):
        path, height = "M", 0.0
        for place, share in story.spending[name].points:
            path += f"{across(place):.1f},{up(height):.1f}L{across(place):.1f},{up(share):.1f}L"
            height = share
        path += f"{across(end):.1f},{up(height):.1f}"
        area = f"{path}L{across(end):.1f},{up(0):.1f}L{across(0):.1f},{up(0):.1f}Z"
        parts.append(tag("path", class_=f"area c{index % _COLOURS}", d=area))
        parts.append(tag("path", class_=f"step c{index % _COLOURS}", d=path))
    for lost in story.lost:  # a hollow diamond for a reservation without a record
        points = story.spending[lost.set].points
        share = next(share for place, share in reversed(points) if place <= lost.place)
        x, y = across(lost.place), up(share)
        words = f"reserved {clock(lost.row.at)}, never recorded: charged in full"
        mark = {
            "class_": f"lost c{names.index(lost.set) % _COLOURS}",
            "d": f"M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6Z",
        }
        parts.append(tag("path", tag("title", words), **mark))
    lowest = math.inf  # what is spent now, at the end of each curve, none over another
    for share, name in sorted((story.spending[name].points[-1][1], name) for name in names):
        lowest = min(up(share) + 4, lowest - _CLOSE)
        who = "" if len(names) == 1 else f" {name[:24]}"
        style = f"tick strong t{names.index(name) % _COLOURS}"
        parts.append(_label(across(end) + 8, lowest, percent(share) + who, "start", style))
    title = "The share of the budget that is spent, by the number of the question"
    return _drawing("chart full", title, _FULL, _BUDGET_HEIGHT, parts)
