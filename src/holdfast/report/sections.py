"""The sections between the summary and the table of questions."""

from __future__ import annotations

import math
from collections.abc import Iterable

from holdfast.engines.python.metrics import listed
from holdfast.holdout.charter import Charter
from holdfast.planning.explain import ASSUMPTIONS
from holdfast.planning.joint import JointPlan
from holdfast.report.answer_charts import answer_of, panel_svg, panels, verdict_of, word_of
from holdfast.report.budget_chart import COLOURS, budget_chart
from holdfast.report.frame import fact_list, table_html
from holdfast.report.privacy import SetPrivacy, delta_for, set_privacy
from holdfast.report.story import Asked, Story
from holdfast.report.summary import header
from holdfast.report.text import count, number, percent, safe
from holdfast.report.words import planned
from holdfast.theory.privacy import UnitPrivacy

__all__ = [
    "answers_section",
    "budget_section",
    "data_section",
    "header",
    "ledger_section",
    "plan_section",
    "privacy_section",
    "promise_section",
]

_ASSUMING = "; assuming that "  # how an answer's promise names what it takes for granted
_HALF, _FULL = 470, 960  # widths of a panel, alone in its row or not


def promise_section(story: Story) -> str:
    """What is promised, and what it takes for granted."""
    confidence = percent(story.charter.confidence)
    units = story.charter.manifest.block_units
    taken = "".join(f"<li>{safe(_sentence(each))}</li>" for each in ASSUMPTIONS.split("; "))
    own = "".join(
        f"<li>{safe(_sentence(text))} <span class='more'>({_numbers(asked)})</span></li>"
        for text, asked in _assumed(story.asked).items()
    )
    extra = f"<p>Taken for granted by some questions:</p><ul>{own}</ul>" if own else ""
    return (
        f"<p>With probability at least <strong>{confidence}</strong>, every promise below is kept, "
        "for all answers at once, whatever made people ask the next question. The chance is over "
        "the draw of the data and the coins; it is a statement about the procedure, like that of "
        "a confidence interval.</p>"
        f"<p>A fresh block is {count(units, 'new unit')} from the same population. Answers speak "
        "of what an estimator gives on such a block, not of a parameter that it may be biased for. "
        "On a grid they are rounded up to the next point.</p>"
        f"{_promises(story)}"
        f"<h3>Assumptions</h3><ul>{taken}</ul>{extra}"
        "<p>If one of them is false the promise means nothing, and no computation on the data can "
        "tell.</p>"
    )


def _promises(story: Story) -> str:
    rows = (
        (safe(each.name), safe(each.promise))
        for block_set in story.charter.sets
        for each in planned(block_set.plan, block_set.name)
    )
    return table_html(("asked by", "what is promised"), rows, "promises")


def _assumed(questions: Iterable[Asked]) -> dict[str, list[int]]:
    """Assumptions that some answers name, and the numbers of those answers."""
    found: dict[str, list[int]] = {}
    for asked in questions:
        said = verdict_of(asked) or answer_of(asked)
        for text in [] if said is None else said.promise.split(_ASSUMING)[1:]:
            found.setdefault(text, []).append(asked.number)
    return found


def _numbers(numbers: list[int]) -> str:
    shown = ", ".join(f'<a href="#q{each}">{each:,}</a>' for each in numbers[:12])
    more = len(numbers) - 12
    return f"question {shown}" + (f" and {more:,} more" if more > 0 else "")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def budget_section(story: Story) -> str:
    """What is spent and when, and what the rest buys."""
    rows = []
    for index, each in enumerate(story.status.sets):
        for place, part in enumerate(each.parts):
            refusals = "" if part.refusals_left is None else f"{part.refusals_left:,}"
            key = f'<i class="key c{index % COLOURS}"></i>{safe(each.name)}' if place == 0 else ""
            spent = percent(each.used) if place == 0 else ""
            planned_text, left = f"{part.planned:,}", f"{part.questions_left:,}"
            rows.append((key, spent, safe(part.name), planned_text, left, refusals))
    heads = ("set", "spent", "asked by", "planned", "questions left", "refusals left")
    lost = (
        "<p>A diamond marks a reservation without a record: it is charged in full.</p>"
        if story.lost
        else ""
    )
    return (
        f"<figure>{budget_chart(story)}</figure>{lost}{table_html(heads, rows, 'numbers budget')}"
        '<p class="more">Questions left: were all the rest of the set spent on that row alone.</p>'
    )


def answers_section(story: Story) -> str:
    """Answers with their error bars, one panel for each grid."""
    shown, others = panels(story.asked)
    if not shown:
        return "<p>No value was asked for yet.</p>"
    alone = len(shown) == 1 or any(len(panel.asked) > 60 for panel in shown)
    width = _FULL if alone else _HALF
    drawn = "".join(
        f"<figure><figcaption>{safe(_caption(panel.title, len(panel.asked)))}</figcaption>"
        f"{panel_svg(panel, width)}</figure>"
        for panel in shown
    )
    given = [(asked, verdict_of(asked)) for asked in story.asked]
    verdicts = [word_of(asked, verdict) for asked, verdict in given if verdict is not None]
    said = ""
    if verdicts:
        words = ", ".join(f"{verdicts.count(word):,} {word}" for word in dict.fromkeys(verdicts))
        said = f" Guesses: {words}."
    rest = f" {others:,} more answers, on other grids, are in the table only." if others else ""
    style = "panels one" if alone else "panels"
    return (
        "<p>Each dot is an answer, at the number of its question; the line is its error bar, where "
        "one is certified. A hollow dot lies at the end of its grid: the value may lie beyond."
        f"{said}{rest}</p>"
        f'<div class="{style}">{drawn}</div>'
    )


def _caption(title: str, members: int) -> str:
    return f"{title} · {count(members, 'answer')}"


def plan_section(story: Story) -> str:
    """What was planned, set by set."""
    text = []
    for block_set, status in story.sets:
        rows = (
            (safe(each.name), safe(each.limits)) for each in planned(block_set.plan, block_set.name)
        )
        blocks = f"{count(block_set.blocks, 'block')}, numbers {block_set.first:,} to "
        blocks += f"{block_set.first + block_set.blocks - 1:,}"
        text.append(f"<h3>{safe(block_set.name)}: {safe(blocks)}</h3>")
        text.append(f"<p>{safe(_paying(block_set.plan, status.currency))}</p>")
        text.append(table_html(("asked by", "at most"), rows, "promises"))
    return "".join(text)


def _paying(plan: object, currency: str) -> str:
    if isinstance(plan, JointPlan):
        return (
            f"All questions share one budget: {number(plan.budget)} in Rényi stability at order "
            f"{number(plan.order)}. Every look at the data takes a part of it before it is drawn. "
            f"Kept with confidence {percent(plan.confidence)}."
        )
    return (
        f"Answers are exact, and what is limited is how much is said: {currency}. "
        f"Kept with confidence {percent(float(plan.confidence))}."  # type: ignore[attr-defined]
    )


def data_section(story: Story) -> str:
    """What is sealed, what is open, and what the columns are."""
    charter, manifest = story.charter, story.charter.manifest
    unit = (
        "each row is one" if manifest.unit_column is None else f"rows of one {manifest.unit_column}"
    )
    sealed = manifest.blocks * manifest.block_units
    facts = (
        ("units", f"{manifest.units:,} ({unit})"),
        ("sealed", f"{sealed:,} units in {manifest.blocks:,} blocks of {manifest.block_units:,}"),
        ("open", f"{count(manifest.open_units, 'unit')}, for training and guesses"),
        ("left over", f"{count(manifest.leftover_units, 'unit')}, stored nowhere"),
    )
    kinds: dict[str, list[str]] = {}
    for column in manifest.schema.columns:
        declared = _declared(charter, column.name)
        kinds.setdefault(column.kind, []).append(f"<code>{safe(column.name)}</code>{declared}")
    rows = ((safe(kind), ", ".join(columns)) for kind, columns in kinds.items())
    heads = ("kind", "columns, with what was declared of them")
    return f"{fact_list(facts)}{table_html(heads, rows, 'promises')}"


def _declared(charter: Charter, column: str) -> str:
    pair, texts = charter.ranges.get(column), charter.categories.get(column)
    if pair is not None:
        return f' <span class="more">({number(pair[0], 6)} to {number(pair[1], 6)})</span>'
    if charter.labels is not None and charter.values.get(column) is charter.labels:
        return f' <span class="more">(labels {safe(listed(charter.labels, 10))})</span>'
    return "" if texts is None else f' <span class="more">({safe(", ".join(texts))})</span>'


def privacy_section(story: Story) -> str:
    """How far one unit's rows can have moved what was said."""
    delta = number(delta_for(story.charter.manifest.units))
    if story.charter.seed is not None:
        return "<p>None: whoever knows the seed can compute counts from the answers.</p>"
    figures = set_privacy(story)
    rows = (_privacy_row(each) for each in figures)
    heads = ("set", "as spent", "whole budget", "what the whole budget allows")
    return (
        "<p>The budget is not a privacy parameter, but it implies one. Let the rows of one unit be "
        f"replaced by any others: then no event becomes more likely than e<sup>ε</sup> times what "
        f"it was, plus δ = {delta}. “As spent” is a reading of what was said so far. Whoever may "
        "go on asking should rely on the figure of the whole budget, which holds however people "
        f"choose when to stop.</p>{table_html(heads, rows, 'numbers privacy')}"
        "<p>Not covered: the open part, the number of units, the time that answers took, and "
        "whatever else is known of a unit. Units are protected, not groups of them.</p>"
    )


def _privacy_row(figures: SetPrivacy) -> tuple[str, ...]:
    if figures.exact:
        said = "no privacy: exact answers" if figures.said else "nothing was said yet"
        return safe(figures.name), said, "no privacy", "exact answers can single out a unit"
    assert figures.whole is not None
    spent = "nothing was said yet" if figures.spent is None else _epsilon(figures.spent)
    return safe(figures.name), spent, _epsilon(figures.whole), _odds(figures.whole.epsilon)


def _epsilon(privacy: UnitPrivacy) -> str:
    return f"ε = {number(privacy.epsilon, 3)}"


def _odds(epsilon: float) -> str:
    if epsilon > 12:
        return "odds about one unit could change beyond any practical limit"
    return f"odds about one unit change by a factor of at most {number(math.exp(epsilon), 2)}"


def ledger_section(story: Story) -> str:
    """The head of the ledger, and how to check it."""
    facts = (
        ("holdout", story.charter.identity),
        ("rows", f"{story.head.number:,}, each linked to the one before"),
        ("head", str(story.head)),
        ("created", f"by Holdfast {story.first.body.get('holdfast', 'unknown')}"),
    )
    command = f"holdfast check DIR --receipt {story.head}"
    return (
        "<p>Every charge and every answer is a row of an append-only ledger. When this page was "
        "written the chain of its rows was whole, and every plan proved its promise again. Keep "
        "the head as a receipt: it shows later that nothing was changed or taken back since.</p>"
        f"{fact_list(facts)}<p>To verify chain, plans, prices, budget, answers and files "
        f"yourself:</p><pre>{safe(command)}</pre>"
    )
