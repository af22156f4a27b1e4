"""From a holdout to a file. Only its ledger is read: no data, and nothing is charged."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.holdout.holdout import Holdout
from holdfast.ledger.ledger import Ledger, check_against
from holdfast.ledger.opening import has_ledger, open_ledger
from holdfast.ledger.witness import Witness
from holdfast.report.page import page_html
from holdfast.report.story import Story, read_story
from holdfast.store.user_state import state_folder

__all__ = ["holdout_story", "report_html", "write_report", "write_text"]


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
