"""The page put together. Everything on it is text of the story, made safe, and drawings of it."""

from __future__ import annotations

from importlib.metadata import version

from holdfast.report.frame import html_file
from holdfast.report.question_table import question_table
from holdfast.report.sections import (
    answers_section,
    budget_section,
    data_section,
    ledger_section,
    plan_section,
    privacy_section,
    promise_section,
)
from holdfast.report.story import Story
from holdfast.report.summary import header
from holdfast.report.text import safe

__all__ = ["page_html"]


def page_html(story: Story) -> str:
    """One HTML file: no script, nothing fetched from anywhere; a pure function of the story."""
    sections = (
        ("promise", "Promise", promise_section(story)),
        ("budget", "Budget", budget_section(story)),
        ("answers", "Answers", answers_section(story)),
        ("plan", "Plan", plan_section(story)),
        ("data", "Data", data_section(story)),
        ("privacy", "Privacy", privacy_section(story)),
        ("ledger", "Ledger", ledger_section(story)),
        ("questions", "Every question", _questions(story)),
    )
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in sections)
    body = "".join(
        f'<section id="{key}"><h2>{title}</h2>{text}</section>' for key, title, text in sections
    )
    footer = (
        f"<footer>Written by Holdfast {safe(version('holdfast'))} from {story.head.number:,} rows "
        "of the ledger. The same rows give the same page.</footer>"
    )
    main = f"{header(story)}<nav>{links}</nav>{body}{footer}"
    return html_file(f"{safe(story.charter.name)}: Holdfast report", main)


def _questions(story: Story) -> str:
    if not story.asked:
        return "<p>Nothing was asked yet.</p>"
    note = (
        "<p>In the order in which they were answered. A price is a share of the budget of its set. "
        "The drawing is a scale from one end of the question's grid to the other, with a dot at "
        "the answer; the ends say what could have been answered, and bound nothing. Where an error "
        "bar is certified, it is the broad bar on the scale.</p>"
    )
    return note + question_table(story)
