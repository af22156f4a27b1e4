"""Answers with their error bars: small bars in the table, and panels of answers on one grid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.grids import Grid
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.guesses import Corrected
from holdfast.report.html import clock, day, number, outwards, percent, safe, typeset
from holdfast.report.story import Asked, Spending, Story

__all__ = [
    "COLOURS",
    "Panel",
    "Scale",
    "answer_of",
    "bar_svg",
    "budget_chart",
    "label",
    "line",
    "panel_svg",
    "panels",
    "round_ticks",
    "value_text",
    "verdict_of",
    "whole_ticks",
    "word_of",
]


# Scales and ticks of the page's drawings, which are plain SVG: styled by the page, no script.


@dataclass(frozen=True)
class Scale:
    """A linear map from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high == self.low:
            return (self.start + self.end) / 2
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


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


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """A straight line of one of the page's styles."""
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def label(x: float, y: float, text: str, anchor: str = "middle", style: str = "tick") -> str:
    """Text at a place; it is the caller who makes it safe."""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def value_label(value: float) -> str:
    """A tick's number."""
    return number(value, 6)


_BAR_WIDTH, _BAR_HEIGHT, _INSET = 132, 30, 6
_TRACK = 9.0  # the middle of the track; its ends are named below
_MOST_PANELS, _FEW = 6, 3
_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 230, 58, 14, 12, 30


def answer_of(asked: Asked) -> Answer | None:
    """The value that was given, if one was."""
    if isinstance(asked.result, Corrected):
        return asked.result.correction
    return asked.result if isinstance(asked.result, Answer) else None


def verdict_of(asked: Asked) -> Verdict | None:
    """The verdict that was given, if one was."""
    if isinstance(asked.result, Corrected):
        return asked.result.verdict
    return asked.result if isinstance(asked.result, Verdict) else None


def word_of(asked: Asked, verdict: Verdict) -> str:
    """The word of a verdict; of a score with a threshold, whether it was passed."""
    if asked.question.get("gate") and verdict.refused is not None:
        return "fail" if verdict.refused else "pass"
    return verdict.verdict


def value_text(asked: Asked, answer: Answer) -> str:
    """The value to a tenth of its grid's step: what lies beyond is the grid's, not the answer's."""
    cell = (None, None) if asked.grid is None else _cell(asked.grid, answer.value)
    if cell[0] is None or cell[1] is None or not math.isfinite(answer.value):
        return number(answer.value)
    step = float(cell[1] - cell[0])
    decimals = math.ceil(-math.log10(step)) + 1
    size = math.floor(math.log10(abs(answer.value))) + 1 if answer.value else 1
    return number(answer.value, min(15, max(3, size + decimals)))


def _cell(grid: Grid, value: float) -> tuple[float | None, float | None]:
    """Two neighbouring points, one of them the value."""
    if grid.size < 2:
        return None, None
    index = max(1, int(grid.ceiling(value)))
    return grid.point(index - 1), grid.point(index)


def bar_text(answer: Answer) -> str:
    """The error bar as an interval, rounded outwards; empty where none is certified."""
    low, high = answer.low, answer.high
    if low is None and high is None:
        return ""
    width = None if low is None or high is None else high - low
    return f"[{outwards(low, width, up=False)}, {outwards(high, width, up=True)}]"


def bar_svg(asked: Asked, answer: Answer) -> str:
    """The answer's place on its grid, a scale with its ends named; empty without a grid.

    A bar is drawn only where one is certified: the extent of the grid is that of a scale, and must
    not be taken for an interval.
    """
    place = _place(asked, _INSET, _BAR_WIDTH - _INSET)
    if place is None:
        return ""
    middle = _TRACK
    parts = [
        f'<rect class="track" x="0" y="{middle - 2:.1f}" width="{_BAR_WIDTH}" height="4" rx="2"/>'
    ]
    for x, end, anchor in ((0, place.low, "start"), (_BAR_WIDTH, place.high, "end")):
        parts.append(
            f'<text class="end-label" x="{x}" y="{_BAR_HEIGHT - 2}" text-anchor="{anchor}">'
            f"{number(end)}</text>"
        )
    if answer.low is not None or answer.high is not None:
        low = _INSET if answer.low is None else place(answer.low)
        high = _BAR_WIDTH - _INSET if answer.high is None else place(answer.high)
        width = max(1.0, high - low)
        parts.append(
            f'<rect class="bar" x="{low:.1f}" y="{middle - 4:.1f}" width="{width:.1f}" '
            'height="8" rx="2"/>'
        )
    style = "dot end" if answer.at_grid_end else "dot"
    parts.append(
        f'<circle class="{style}" cx="{place(answer.value):.1f}" cy="{middle:.1f}" r="3.2"/>'
    )
    value = f"{value_text(asked, answer)} {bar_text(answer)}".strip()
    words = safe(f"{value} on a grid from {number(place.low)} to {number(place.high)}")
    return (
        f'<svg class="bar" role="img" viewBox="0 0 {_BAR_WIDTH} {_BAR_HEIGHT}" '
        f'aria-label="{words}"><title>{words}</title>{"".join(parts)}</svg>'
    )


class _Place:
    """From a value to a pixel: even steps of the grid are even steps on the page."""

    def __init__(self, low: float, high: float, start: float, end: float, *, logs: bool) -> None:
        self._logs = logs
        ends = (math.log(low), math.log(high)) if logs else (low, high)
        self._scale, self.low, self.high = Scale(*ends, start, end), low, high

    def __call__(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        return self._scale(math.log(inside) if self._logs else inside)


def _place(asked: Asked, start: float, end: float) -> _Place | None:
    grid = asked.grid
    if grid is None:
        mean = asked.question["verb"] == "mean"
        return _Place(*_range(asked), start, end, logs=False) if mean else None
    logs = grid.low > 0 and grid.to_json().get("scale") == "log"
    return _Place(float(grid.low), float(grid.high), start, end, logs=logs)


def _range(asked: Asked) -> tuple[float, float]:
    """Between which numbers the terms of a mean lie."""
    low, high = asked.question.get("range", (0.0, 1.0))
    return float(low), float(high)


class Panel(NamedTuple):
    """Answers that can be drawn on one axis: they were asked for on the same grid."""

    title: str
    asked: list[tuple[Asked, Answer]]


def panels(questions: Iterable[Asked]) -> tuple[list[Panel], int]:
    """The largest groups of answers on one grid, and how many answers are in none of them."""
    groups: dict[str, list[tuple[Asked, Answer]]] = {}
    for asked in questions:
        answer = answer_of(asked)
        if answer is not None and math.isfinite(answer.value):
            groups.setdefault(_axis(asked), []).append((asked, answer))
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))  # ties: who came first
    if any(len(members) >= _FEW for _, members in ordered):  # beside them one dot says little
        ordered = [item for item in ordered if len(item[1]) >= _FEW]
    shown = [Panel(name, members) for name, members in ordered[:_MOST_PANELS]]
    drawn = sum(len(panel.asked) for panel in shown)
    return shown, sum(map(len, groups.values())) - drawn


def _axis(asked: Asked) -> str:
    """What answers must share to be compared by eye."""
    if asked.grid is not None:
        return typeset(asked.grid.describe())
    if asked.question["verb"] != "mean":
        return "no grid"
    low, high = (number(end) for end in _range(asked))
    return f"means between {low} and {high}"


def panel_svg(panel: Panel, width: int) -> str:
    """One panel: question numbers across, answers with their bars up."""
    low, high = _extent([answer for _, answer in panel.asked])
    first, last = panel.asked[0][0].number, panel.asked[-1][0].number
    margin = 0.5 if last > first else 1.0
    across = Scale(first - margin, last + margin, _LEFT, width - _RIGHT)
    up = Scale(low, high, _HEIGHT - _BOTTOM, _TOP)
    parts = [_frame(first, last, low, high, across, up, width)]
    parts += [_point(asked, answer, across, up, low, high) for asked, answer in panel.asked]
    title = safe(f"Answers on {panel.title}")
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {width} {_HEIGHT}" aria-label="{title}">'
        f"<title>{title}</title>{''.join(parts)}</svg>"
    )


def _extent(answers: Sequence[Answer]) -> tuple[float, float]:
    ends = [x for a in answers for x in (a.low, a.value, a.high) if x is not None]
    finite = [x for x in ends if math.isfinite(x) and abs(x) < 1e300]
    low, high = min(finite), max(finite)
    room = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    return low - room, high + room


def _frame(
    first: int, last: int, low: float, high: float, across: Scale, up: Scale, width: int
) -> str:
    parts = []
    for tick in round_ticks(low, high):
        parts.append(line(_LEFT, up(tick), width - _RIGHT, up(tick), "rule"))
        parts.append(label(_LEFT - 8, up(tick) + 4, value_label(tick), "end"))
    bottom = _HEIGHT - _BOTTOM
    parts.append(line(_LEFT, bottom, width - _RIGHT, bottom, "axis"))
    for tick in whole_ticks(first, last, 8 if width < 600 else 12):
        parts.append(line(across(tick), bottom, across(tick), bottom + 4, "axis"))
        parts.append(label(across(tick), bottom + 17, f"{tick:,}"))
    return "".join(parts)


def _point(asked: Asked, answer: Answer, across: Scale, up: Scale, low: float, high: float) -> str:
    x, y = across(asked.number), up(answer.value)
    bar = ""
    if answer.low is not None or answer.high is not None:
        bottom = up(max(low, answer.low if answer.low is not None else low))
        top = up(min(high, answer.high if answer.high is not None else high))
        bar = line(x, bottom, x, top, "whisker")
    style = "dot end" if answer.at_grid_end else "dot"
    where = "" if asked.where is None else f" where {asked.where}"
    value = f"{value_text(asked, answer)} {bar_text(answer)}".strip()
    words = safe(f"{asked.number}. {asked.text}{where}: {value}")
    dot = f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="3.4"/>'
    return f"<g>{bar}{dot}<title>{words}</title></g>"


# The budget over time: a step for every question, and a mark for every one that was lost.


COLOURS = 6  # the page's styles c0 … c5
_WIDTH, _BUDGET_CHART_HEIGHT = 960, 280
_BUDGET_CHART_LEFT, _BUDGET_CHART_RIGHT, _BUDGET_CHART_TOP, _BUDGET_CHART_BOTTOM = 52, 84, 14, 46
_TOPS = (0.04, 0.1, 0.2, 0.4, 1.0)  # where the axis may end: little that is spent can be seen too
_CLOSE = 15.0  # pixels between labels


def budget_chart(story: Story) -> str:
    """The share of every set's budget that was spent, question by question."""
    last = max(1, len(story.asked))
    end = max([float(last), *(lost.place for lost in story.lost)])
    names = list(story.spending)
    longest = max(map(len, names)) if len(names) > 1 else 0
    across = Scale(
        0.0, end, _BUDGET_CHART_LEFT, _WIDTH - _BUDGET_CHART_RIGHT - min(160.0, 6.5 * longest)
    )
    most = max(share for each in story.spending.values() for _, share in each.points)
    top = next(height for height in _TOPS if 1.1 * most <= height or height == 1)
    up = Scale(0.0, top, _BUDGET_CHART_HEIGHT - _BUDGET_CHART_BOTTOM, _BUDGET_CHART_TOP)
    body = [_budget_chart_frame(story, across, up)]
    for index, name in enumerate(names):
        body.append(_curve(story.spending[name], across, up, index % COLOURS, end))
    body += [_marks(story, names, across, up), _ends(story, across, up, end)]
    title = "The share of the budget that is spent, by the number of the question"
    return (
        f'<svg class="chart full" role="img" viewBox="0 0 {_WIDTH} {_BUDGET_CHART_HEIGHT}" '
        f'aria-label="{title}">'
        f"<title>{title}</title>{''.join(body)}</svg>"
    )


def _budget_chart_frame(story: Story, across: Scale, up: Scale) -> str:
    parts = []
    for share in (quarter * up.high / 4 for quarter in range(5)):
        style = "limit" if share == 1 else "axis" if share == 0 else "rule"
        parts.append(line(_BUDGET_CHART_LEFT, up(share), across.end, up(share), style))
        parts.append(label(_BUDGET_CHART_LEFT - 8, up(share) + 4, percent(share), "end"))
    bottom = _BUDGET_CHART_HEIGHT - _BUDGET_CHART_BOTTOM
    for tick in whole_ticks(1, len(story.asked), 12):
        parts.append(line(across(tick), bottom, across(tick), bottom + 4, "axis"))
        parts.append(label(across(tick), bottom + 17, f"{tick:,}"))
    if story.asked:
        first, latest = (day(story.asked[i].row.at) for i in (0, -1))
        middle = (across(0) + across(len(story.asked))) / 2
        parts.append(label(_BUDGET_CHART_LEFT, bottom + 36, safe(first), "start", "tick faint"))
        parts.append(label(middle, bottom + 36, "question number", "middle", "tick faint"))
        parts.append(label(across.end, bottom + 36, safe(latest), "end", "tick faint"))
    return "".join(parts)


def _curve(spending: Spending, across: Scale, up: Scale, colour: int, end: float) -> str:
    steps = []
    height = 0.0
    for place, share in spending.points:
        steps.append(f"L{across(place):.1f},{up(height):.1f}")
        steps.append(f"L{across(place):.1f},{up(share):.1f}")
        height = share
    steps.append(f"L{across(end):.1f},{up(height):.1f}")
    path = "M" + "".join(steps)[1:]
    area = f"{path}L{across(end):.1f},{up(0):.1f}L{across(0):.1f},{up(0):.1f}Z"
    return f'<path class="area c{colour}" d="{area}"/><path class="step c{colour}" d="{path}"/>'


def _marks(story: Story, names: list[str], across: Scale, up: Scale) -> str:
    """A hollow diamond for a reservation without a record."""
    marks = []
    for lost in story.lost:
        share = next(
            s for place, s in reversed(story.spending[lost.set].points) if place <= lost.place
        )
        x, y = across(lost.place), up(share)
        words = f"reserved {clock(lost.row.at)}, never recorded: charged in full"
        marks.append(
            f'<path class="lost c{names.index(lost.set) % COLOURS}" '
            f'd="M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6Z"><title>{safe(words)}</title></path>'
        )
    return "".join(marks)


def _ends(story: Story, across: Scale, up: Scale, end: float) -> str:
    """What is spent now, written at the end of each curve, none over another."""
    finals = sorted((s.points[-1][1], name) for name, s in story.spending.items())
    parts, lowest = [], float("inf")
    for share, name in finals:
        y = min(up(share) + 4, lowest - _CLOSE)
        lowest = y
        who = "" if len(finals) == 1 else f" {name[:24]}"
        index = list(story.spending).index(name) % COLOURS
        style = f"tick strong t{index}"
        parts.append(label(across(end) + 8, y, safe(percent(share) + who), "start", style))
    return "".join(parts)
