"""The sections between the summary and the table of questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.engines.python.metrics import listed as listed_labels
from holdfast.holdout.questions import empty_note
from holdfast.holdout.spec import Charter
from holdfast.holdout.status import SetStatus
from holdfast.planning.exact import ExactCorrections, ExactEstimates, ExactVerdicts, ExactWeights
from holdfast.planning.joint import JointPlan
from holdfast.planning.kept import KeptPlan
from holdfast.planning.parts import DirectPart, Part, SearchPart, VerdictPart, WeightsPart
from holdfast.planning.plan import ASSUMPTIONS
from holdfast.planning.rounds import RoundsPlan
from holdfast.planning.splits import SplitPlan
from holdfast.protocols.answers import Answer, Verdict, reading_words
from holdfast.report.charts import (
    COLOURS,
    answer_of,
    bar_svg,
    bar_text,
    budget_chart,
    panel_svg,
    panels,
    value_text,
    verdict_of,
    word_of,
)
from holdfast.report.html import (
    clock,
    count,
    day,
    fact_list,
    listed,
    number,
    percent,
    quantile,
    safe,
    short,
    table_html,
    typeset,
)
from holdfast.report.story import Asked, Story, Use
from holdfast.theory.privacy import (
    Allowance,
    UnitPrivacy,
    largest_total,
    look_divergence,
    question_divergence,
    unit_privacy,
    verdict_divergences,
)

__all__ = [
    "COMPACT",
    "Planned",
    "SetPrivacy",
    "answers_section",
    "budget_section",
    "data_section",
    "delta_for",
    "header",
    "ledger_section",
    "plan_section",
    "planned",
    "privacy_section",
    "promise_section",
    "question_table",
    "set_privacy",
]


# A plan in plain words: what can be asked, how often, and what is then true.


class Planned(NamedTuple):
    """One thing that can be asked: its name, how it is limited, what is promised of it."""

    name: str
    limits: str
    promise: str


def planned(plan: KeptPlan, name: str) -> list[Planned]:
    """What a plan is for, part by part."""
    if isinstance(plan, JointPlan):
        return [_of_part(part) for part in plan.parts]
    limits, promise = _OF_PLANS[type(plan)](plan)
    return [Planned(name, limits, promise)]


def _of_part(part: Part) -> Planned:
    questions = f"{part.queries:,} questions"
    if isinstance(part, VerdictPart):
        limits = f"{part.queries:,} guesses, at most {part.refusals:,} refused"
        return Planned(part.name, limits, _verdicts(part))
    if isinstance(part, WeightsPart):
        limits = f"{questions}, at most {part.updates:,} surprises"
        return Planned(part.name, limits, _between(part.tail, part.tail))
    if isinstance(part, DirectPart):
        bar = f"The mean lies within the error bar, at most ± {number(part.half_width)} wide."
        return Planned(part.name, f"{questions} about means", bar)
    assert isinstance(part, SearchPart)
    limits = f"{questions} on a grid of {part.grid:,} points ({part.looks_per_query} looks each)"
    return Planned(part.name, limits, _search(part))


def _search(part: SearchPart) -> str:
    if part.mirrored:
        inside = _quantiles(part.tail_low, part.tail_low)
        return f"The interval encloses the estimator's median over fresh blocks, and lies {inside}."
    if part.protocol == "amplified":
        inside = _quantiles(part.subblock_tail, part.subblock_tail)
        return f"The answer lies {inside} of the estimator on one sub-block of {part.subblocks:,}."
    if part.protocol == "mean":
        inside = _quantiles(part.tail_low, part.tail_high)
        return f"The block mean lies {inside}; without a filter the mean lies in the error bar."
    return _between(part.tail_low, part.tail_high)


def _quantiles(low: float, high: float) -> str:
    top = quantile(1 - high) if high >= 1e-4 else f"1 − {quantile(high)}"
    return f"between the {quantile(low)} and {top} quantiles"


def _between(low: float, high: float) -> str:
    return f"The answer lies {_quantiles(low, high)} of its estimator on a fresh block."


def _verdicts(part: VerdictPart | ExactVerdicts) -> str:
    low, high = part.tail_low, part.tail_high
    if part.sides == 1:
        return (
            f"Pass: more than {quantile(low)} of fresh blocks are on the guess's side of it. Fail: "
            f"more than {quantile(1 - high)} are not. Of a score that is a mean of terms from 0 to "
            "1 either certifies a bound."
        )
    return (
        f"Compatible: more than {quantile(low)} of fresh blocks give the guess or less, and more "
        f"than {quantile(low)} give it or more; that confirms no guess. Not compatible: less than "
        f"{quantile(high)} give it or less, or less than {quantile(high)} give it or more."
    )


Words = tuple[str, str]


def _exact_verdicts(plan: ExactVerdicts) -> Words:
    limits = f"{plan.queries:,} guesses, at most {plan.refusals:,} refused; exact"
    return limits, _verdicts(plan)


def _exact_corrections(plan: ExactCorrections) -> Words:
    limits = f"{plan.queries:,} guesses, at most {plan.refusals:,} corrected; exact"
    return limits, f"Confirmed or corrected: {_lower(_between(plan.tail_low, plan.tail_low))}"


def _exact_estimates(plan: ExactEstimates) -> Words:
    limits = f"{plan.queries:,} questions on a grid of {plan.grid:,} points; exact"
    return limits, _between(plan.tail_low, plan.tail_high)


def _exact_weights(plan: ExactWeights) -> Words:
    limits = f"{plan.queries:,} questions, at most {plan.updates:,} surprises; exact"
    return limits, _between(plan.tail, plan.tail)


def _rounds(plan: RoundsPlan) -> Words:
    limits = f"{plan.queries:,} questions in {plan.sets:,} rounds; exact"
    return limits, _between(plan.guesses.tail_low, plan.guesses.tail_low)


def _split(plan: SplitPlan) -> Words:
    limits = f"{plan.queries:,} questions, fresh blocks for each; exact"
    return limits, _between(plan.tail_low, plan.tail_high)


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


_OF_PLANS: dict[type[Any], Callable[[Any], Words]] = {
    ExactCorrections: _exact_corrections,
    ExactEstimates: _exact_estimates,
    ExactVerdicts: _exact_verdicts,
    ExactWeights: _exact_weights,
    RoundsPlan: _rounds,
    SplitPlan: _split,
}


# The unit-level privacy that a budget implies: what is spent of it, and all of it.
#
# Only sets that answer by looks have any (docs/explanation/theory/unit-privacy.md). Sets are
# disjoint, so each has a figure of its own: a unit is in one of them.


@dataclass(frozen=True)
class SetPrivacy:
    """One set's figures; None where exact answers leave no privacy, or nothing was said yet."""

    name: str
    exact: bool
    said: bool
    spent: UnitPrivacy | None
    whole: UnitPrivacy | None


def delta_for(units: int) -> float:
    """The δ of the figures: the largest power of ten that is at most a tenth of 1/units.

    >>> delta_for(336_776), delta_for(1)
    (1e-07, 0.1)
    """
    return float(f"1e-{math.ceil(math.log10(units)) + 1}")


def set_privacy(story: Story) -> list[SetPrivacy]:
    """The figures of every set."""
    delta = delta_for(story.charter.manifest.units)
    return [_figures(story, each.name, each.plan, delta) for each in story.charter.sets]


def _figures(story: Story, name: str, plan: object, delta: float) -> SetPrivacy:
    spending = story.spending[name]
    said = len(spending.points) > 1
    if not isinstance(plan, JointPlan):
        return SetPrivacy(name, True, said, None, None)
    joint = plan

    def spent(order: float) -> float:
        used = ((joint.part(part), use) for part, use in spending.uses.items())
        return math.fsum(_told(joint, part, use, order) for part, use in used)

    def whole(order: float) -> float:
        allowances = [each for part in joint.parts for each in _allowances(joint, part, order)]
        return largest_total(allowances, joint.budget)

    figures = unit_privacy(spent, delta) if said else None
    return SetPrivacy(name, False, said, figures, unit_privacy(whole, delta))


def _told(plan: JointPlan, part: Part, use: Use, order: float) -> float:
    """What this use of a part tells of one unit."""
    no, yes = _divergences(plan, part, use.noes, use.looks - use.noes, order)
    return use.noes * no + (use.looks - use.noes) * yes


def _allowances(plan: JointPlan, part: Part, order: float) -> list[Allowance]:
    """How often each verdict of a part can be drawn, at its price in the plan's own currency."""
    most = part.most_refusals
    prices = part.prices(plan.order)
    if most is None:
        _, told = _divergences(plan, part, 0, part.looks, order)
        return [Allowance(part.looks, prices.worst, told)]
    no, yes = _divergences(plan, part, most, part.looks - most, order)
    return [Allowance(most, prices.no, no), Allowance(part.looks, prices.yes, yes)]


def _divergences(
    plan: JointPlan, part: Part, noes: int, yeses: int, order: float
) -> tuple[float, float]:
    """What a No and a Yes of this part tell, at this order; the coin is that of the plan's."""
    if isinstance(part, VerdictPart | WeightsPart):
        return verdict_divergences(part.coin(plan.order), order, noes, yeses)
    if isinstance(part, DirectPart):
        told = question_divergence(part.coin(plan.order), order)
    else:
        assert isinstance(part, SearchPart)
        told = look_divergence(part.coin(plan.order), order)
    return told, told


# The top of the page: what it is about, in one line and four numbers.


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
        f"{_warnings(story)}{_summary_figures(story)}</header>"
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


def _summary_figures(story: Story) -> str:
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
        return f' <span class="more">(labels {safe(listed_labels(charter.labels, 10))})</span>'
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


# The table of all questions: what was asked, what was answered, what it cost, and the receipt.


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
    parts = [] if verdict is None else [_question_table_verdict(asked, verdict)]
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


def _question_table_verdict(asked: Asked, verdict: Verdict) -> str:
    word = word_of(asked, verdict)
    said = safe(verdict.promise)
    return f'<span class="verdict {_STYLES[word]}" title="{said}">{safe(word)}</span>'


def _price(asked: Asked) -> str:
    looks = sum(charge.looks for charge in asked.charges)
    more = f'<br><span class="more">{count(looks, "look")}</span>' if looks else ""
    return f"{percent(asked.share)}{more}"
