"""The top of the page: what it is about, in one line and four numbers."""

from __future__ import annotations

from holdfast.holdout.status import SetStatus
from holdfast.report.privacy import SetPrivacy, set_privacy
from holdfast.report.story import Story
from holdfast.report.text import clock, count, listed, number, percent, safe

__all__ = ["header"]


def header(story: Story) -> str:
    """Name, verdict, warnings, and the figures that one wants first."""
    sure = story.status.certified
    pill = '<span class="pill good">certified</span>' if sure else _NOT_CERTIFIED
    asked = clock(story.last.at) if story.asked or story.lost else ""
    when = f"created {clock(story.first.at)}" + (f" · last entry {asked}" if asked else "")
    return (
        f'<header><p class="kicker">Holdfast report {pill}</p>'
        f"<h1>{safe(story.charter.name)}</h1>"
        f'<p class="verdict-line">{safe(_verdict(story))}</p><p class="when-line">{safe(when)}</p>'
        f"{_warnings(story)}{_figures(story)}</header>"
    )


_NOT_CERTIFIED = '<span class="pill bad">not certified</span>'


def _verdict(story: Story) -> str:
    status = story.status
    answered = count(status.answers, "question")
    if not status.certified:
        return f"{answered} answered with seeded coins: nothing on this page is certified."
    if not status.answers:
        return f"Nothing was asked yet. {_left(story)}"
    sure = f"with confidence {percent(status.confidence)}"
    held = f"{answered} answered; all answers hold at once {sure}."
    return f"{held if status.answers > 1 else f'{answered} answered {sure}.'} {_left(story)}"


def _left(story: Story) -> str:
    lines = [line for each in story.status.sets if (line := _set_left(each))]
    if not lines:
        return "The budget is used up: nothing more can be asked."
    if len(story.status.sets) == 1:
        return f"{percent(1 - story.status.sets[0].used)} of the budget is left, for {lines[0]}."
    return f"What is left is enough for {listed(lines)}."


def _set_left(each: SetStatus) -> str:
    """What the rest of a set's budget buys: so many of one kind, or so many of another."""
    kinds = [
        f"{part.questions_left:,} by {part.name}" for part in each.parts if part.questions_left
    ]
    if not kinds:
        return listed(
            [part.still_possible for part in each.parts if part.still_possible] or [""], "or"
        )
    return "up to " + listed(kinds, "or").replace(" by ", " more questions by ", 1)


def _warnings(story: Story) -> str:
    charter, notes = story.charter, []
    if charter.new_budget is not None:
        earlier = ", ".join(f"<code>{safe(each)}</code>" for each in charter.earlier)
        reason = f"The reason given: <q>{safe(charter.new_budget)}</q>."
        if earlier:
            notes.append(
                "<strong>A new budget for known data.</strong> The promise covers this holdout "
                "alone, not its answers together with those of an earlier one. "
                f"{reason} Earlier holdouts of the same data: {earlier}."
            )
        else:
            notes.append(
                "<strong>A new budget was asked for</strong>, though no earlier holdout of these "
                f"data was known where this one was made. {reason}"
            )
    if charter.seed is not None:
        notes.append(
            "<strong>A seeded holdout.</strong> Its coins can be foretold by whoever knows the "
            "seed: it is for trials, and issues no certificate."
        )
    if story.lost:
        notes.append(
            f"<strong>{count(len(story.lost), 'reservation')} without a record.</strong> In flight "
            "when this page was written, or lost in a crash. Each is charged in full."
        )
    return "".join(f'<p class="note">{note}</p>' for note in notes)


def _figures(story: Story) -> str:
    status, manifest = story.status, story.charter.manifest
    sealed = manifest.blocks * manifest.block_units
    spent = max((each.used for each in status.sets), default=0.0)
    named = "of the budget spent" if len(status.sets) == 1 else "of the most used budget spent"
    tiles = (
        (f"{status.answers:,}", "questions answered"),
        (percent(spent), named),
        (percent(status.confidence), "confidence, for all at once"),
        (f"{sealed:,}", f"sealed units in {count(manifest.blocks, 'block')}"),
        _privacy_tile(story, set_privacy(story)),
    )
    inside = "".join(f"<div><b>{value}</b><span>{safe(text)}</span></div>" for value, text in tiles)
    return f'<div class="tiles">{inside}</div>'


def _privacy_tile(story: Story, figures: list[SetPrivacy]) -> tuple[str, str]:
    if story.charter.seed is not None or any(each.exact and each.said for each in figures):
        return "none", "unit-level privacy"
    spent = [each.spent.epsilon for each in figures if each.spent is not None]
    return f"ε {number(max(spent, default=0.0), 3)}", "unit-level privacy, as spent"
