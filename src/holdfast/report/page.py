"""The page put together. Everything on it is text of the story, made safe, and drawings of it."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.holdout.holdout import Holdout
from holdfast.ledger.ledger import Ledger, check_against
from holdfast.ledger.opening import has_ledger, open_ledger
from holdfast.ledger.witness import Witness
from holdfast.report.html import html_file, safe
from holdfast.report.sections import (
    answers_section,
    budget_section,
    data_section,
    header,
    ledger_section,
    plan_section,
    privacy_section,
    promise_section,
    question_table,
)
from holdfast.report.story import Story, read_story
from holdfast.store.user_state import state_folder

__all__ = [
    "holdout_story",
    "page_html",
    "report_html",
    "write_report",
    "write_text",
]


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
        return _story(holdout.door.ledger)
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
