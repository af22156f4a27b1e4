"""The table of all questions: what was asked, what was answered, what it cost, and the receipt."""

from __future__ import annotations

from holdfast.holdout.notes import empty_note
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.readings import reading_words
from holdfast.report.answer_charts import (
    answer_of,
    bar_svg,
    bar_text,
    value_text,
    verdict_of,
    word_of,
)
from holdfast.report.story import Asked, Story
from holdfast.report.text import clock, count, day, number, percent, safe, short, typeset

__all__ = ["COMPACT", "question_table"]

COMPACT = 200  # questions from which the table is set tighter
_HEADINGS = ("#", "asked", "answer", "place on its grid", "price", "when (UTC)", "receipt")
_WIDTHS = (4, 35, 15, 13.5, 8, 13.5, 11)
_STYLES = {
    "compatible": "plain",
    "not compatible": "bad",
    "cannot tell": "warn",
    "exhausted": "warn",
    "pass": "good",
    "fail": "bad",
}
_VERBS = {"mean": "mean of", "interval": "interval for", "verify": "", "ask": "", "correct": ""}


def question_table(story: Story) -> str:
    """Every question in the order in which it was answered."""
    columns = "".join(f'<col style="width:{width}%">' for width in _WIDTHS)
    blocks = f"answer, on blocks of {count(story.charter.manifest.block_units, 'unit')}"
    names = (blocks if name == "answer" else name for name in _HEADINGS)
    heads = "".join(f'<th scope="col">{safe(name)}</th>' for name in names)
    rows = "".join(map(_row, story.asked))
    style = "questions compact" if len(story.asked) > COMPACT else "questions"
    return (
        f'<div class="wide"><table class="{style}"><colgroup>{columns}</colgroup>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(asked: Asked) -> str:
    answer = answer_of(asked)
    drawing = "" if answer is None else bar_svg(asked, answer)
    cells = (
        f'<td class="n" id="q{asked.number}">{asked.number:,}</td>',
        f'<td class="asked">{_asked(asked)}</td>',
        f'<td class="answer">{_answer(asked, answer)}</td>',
        f'<td class="drawing">{drawing}</td>',
        f'<td class="price">{_price(asked)}</td>',
        f'<td class="when" title="{safe(clock(asked.row.at))}">{safe(day(asked.row.at))}</td>',
        f'<td class="receipt" title="{safe(asked.row.digest)}"><code>{asked.row.number}:'
        f"{safe(short(asked.row.digest))}…</code></td>",
    )
    return f"<tr>{''.join(cells)}</tr>"


def _asked(asked: Asked) -> str:
    question = asked.question
    verb = _VERBS.get(question["verb"], question["verb"])
    text = f"{verb} <code>{safe(asked.text)}</code>".strip()
    if asked.where is not None:
        text += f" <span>where <code>{safe(asked.where)}</code></span>"
    details = " · ".join(_details(asked))
    return f'{text}<br><span class="more">{safe(details)}</span>' if details else text


def _details(asked: Asked) -> list[str]:
    """The guess, the range, the grid, the reading, and what became of empty blocks, in words."""
    question, lines = asked.question, [f"by {asked.question['part']}"]
    guess = question.get("guess")
    if guess is not None:
        claim = question.get("claim", "equals")
        words = "guess" if claim == "equals" else f"guess: {claim}"
        tolerance = question.get("tolerance")
        within = f" ± {number(tolerance)}" if tolerance else ""
        lines.append(f"{words} {number(guess, 6)}{within}")
    if "range" in question:
        low, high = (number(end, 6) for end in question["range"])
        lines.append(f"cut to [{low}, {high}]")
    if asked.grid is not None:
        lines.append(typeset(asked.grid.describe()))
    reading = reading_words(question["estimator"].get("reading"))
    if reading is not None:
        lines.append(f"score of {reading}")
    said = answer_of(asked) or verdict_of(asked)
    note = None if said is None else empty_note(said.promise)
    return lines if note is None else [*lines, note]


def _answer(asked: Asked, answer: Answer | None) -> str:
    verdict = verdict_of(asked)
    parts = [] if verdict is None else [_verdict(asked, verdict)]
    if answer is not None:
        exact = safe(repr(answer.value))
        parts.append(f'<span class="value" title="{exact}">{value_text(asked, answer)}</span>')
        bar = bar_text(answer)
        if bar:
            exact = safe(f"[{answer.low!r}, {answer.high!r}]")
            parts.append(f'<span class="interval" title="{exact}">{bar}</span>')
        if answer.at_grid_end:
            parts.append('<span class="flag" title="the value may lie beyond">grid end</span>')
    certified = [each.certified for each in (verdict, answer) if each is not None]
    if not all(certified):
        parts.append('<span class="flag bad">not certified</span>')
    return " ".join(parts)


def _verdict(asked: Asked, verdict: Verdict) -> str:
    word = word_of(asked, verdict)
    said = safe(verdict.promise)
    return f'<span class="verdict {_STYLES[word]}" title="{said}">{safe(word)}</span>'


def _price(asked: Asked) -> str:
    looks = sum(charge.looks for charge in asked.charges)
    more = f'<br><span class="more">{count(looks, "look")}</span>' if looks else ""
    return f"{percent(asked.share)}{more}"
