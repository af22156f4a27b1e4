"""The budget over time: a step for every question, and a mark for every one that was lost."""

from __future__ import annotations

from holdfast.report.axes import Scale, label, line, whole_ticks
from holdfast.report.story import Spending, Story
from holdfast.report.text import clock, day, percent, safe

__all__ = ["COLOURS", "budget_chart"]

COLOURS = 6  # the page's styles c0 … c5
_WIDTH, _HEIGHT = 960, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 84, 14, 46
_TOPS = (0.04, 0.1, 0.2, 0.4, 1.0)  # where the axis may end: little that is spent can be seen too
_CLOSE = 15.0  # pixels between labels


def budget_chart(story: Story) -> str:
    """The share of every set's budget that was spent, question by question."""
    last = max(1, len(story.asked))
    end = max([float(last), *(lost.place for lost in story.lost)])
    names = list(story.spending)
    longest = max(map(len, names)) if len(names) > 1 else 0
    across = Scale(0.0, end, _LEFT, _WIDTH - _RIGHT - min(160.0, 6.5 * longest))
    most = max(share for each in story.spending.values() for _, share in each.points)
    top = next(height for height in _TOPS if 1.1 * most <= height or height == 1)
    up = Scale(0.0, top, _HEIGHT - _BOTTOM, _TOP)
    body = [_frame(story, across, up)]
    for index, name in enumerate(names):
        body.append(_curve(story.spending[name], across, up, index % COLOURS, end))
    body += [_marks(story, names, across, up), _ends(story, across, up, end)]
    title = "The share of the budget that is spent, by the number of the question"
    return (
        f'<svg class="chart full" role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-label="{title}">'
        f"<title>{title}</title>{''.join(body)}</svg>"
    )


def _frame(story: Story, across: Scale, up: Scale) -> str:
    parts = []
    for share in (quarter * up.high / 4 for quarter in range(5)):
        style = "limit" if share == 1 else "axis" if share == 0 else "rule"
        parts.append(line(_LEFT, up(share), across.end, up(share), style))
        parts.append(label(_LEFT - 8, up(share) + 4, percent(share), "end"))
    bottom = _HEIGHT - _BOTTOM
    for tick in whole_ticks(1, len(story.asked), 12):
        parts.append(line(across(tick), bottom, across(tick), bottom + 4, "axis"))
        parts.append(label(across(tick), bottom + 17, f"{tick:,}"))
    if story.asked:
        first, latest = (day(story.asked[i].row.at) for i in (0, -1))
        middle = (across(0) + across(len(story.asked))) / 2
        parts.append(label(_LEFT, bottom + 36, safe(first), "start", "tick faint"))
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
