"""The lab's page put together."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.lab.runner.config import GROUPS
from holdfast.report.html import count, html_file, safe
from holdfast.report.lab_page.chapters import Chapter
from holdfast.report.lab_page.sections import all_findings, chapter_html, not_run
from holdfast.report.page import write_text

__all__ = ["lab_html", "write_lab_page"]

_MARK = '<meta name="generator" content="holdfast lab report">'
_TITLE = "The Holdfast lab"
_SAID = {
    "attacks": (
        "Attacks",
        "Analysts who choose each question with the answers to the earlier ones in hand, against "
        "naive reuse, against known remedies, and against Holdfast.",
    ),
    "comparison": (
        "Comparison",
        "What the same rows buy: Holdfast beside fresh splitting and beside published bounds.",
    ),
    "scaling": (
        "Scaling",
        "How errors and numbers of blocks grow with questions, grids, tails and distributions.",
    ),
}


def lab_html(chapters: Sequence[Chapter]) -> str:
    """One HTML file, a pure function of the results."""
    run = [chapter for chapter in chapters if chapter.told is not None]
    waiting = [chapter for chapter in chapters if chapter.told is None]
    sections = [("findings", "Findings", all_findings(run))]
    for group in GROUPS:
        inside = [chapter_html(each) for each in run if each.experiment.config.group == group]
        title, about = _SAID[group]
        if inside:
            sections.append((group, title, f"<p>{about}</p>{''.join(inside)}"))
    if waiting:
        sections.append(("not-run", "Not run", not_run(waiting)))
    # An experiment's name is the id of its part, and has no underscore.
    links = "".join(f'<a href="#part_{key}">{title}</a>' for key, title, _ in sections)
    body = "".join(
        f'<section id="part_{key}"><h2>{title}</h2>{text}</section>'
        for key, title, text in sections
    )
    footer = (
        f"<footer>Written by Holdfast {safe(version('holdfast'))} from results that were kept; "
        "every part names the command that makes its results again.</footer>"
    )
    style = files("holdfast.report.lab_page").joinpath("lab.css").read_text("utf-8")
    main = f"{_header(run, len(chapters))}<nav>{links}</nav>{body}{footer}"
    return html_file(_TITLE, main, style=style, head=_MARK, pixels=True)


def _header(run: Sequence[Chapter], everything: int) -> str:
    findings = [
        each.holds for chapter in run if chapter.told for each in chapter.told.pictured.findings
    ]
    tested = [holds for holds in findings if holds is not None]
    quick = sum(chapter.told is not None and chapter.told.place.mode == "quick" for chapter in run)
    said = [f"{len(run):,} of {count(everything, 'experiment')} run"]
    if quick:
        said.append(f"{quick:,} of them quickly")
    verdict = f"{sum(tested):,} of {count(len(tested), 'expectation')} met by what was measured"
    return (
        f'<header><p class="kicker">Holdfast</p><h1>{_TITLE}</h1>'
        '<p class="verdict-line">How reuse of one holdout fails, how known remedies fare, and how '
        "far a certificate is from the best attack that we know.</p>"
        f'<p class="when-line">{", ".join(said)}; {verdict}.</p></header>'
    )


def write_lab_page(chapters: Sequence[Chapter], output: Path) -> None:
    """Write the page; only an earlier page of the lab is replaced."""
    if output.is_file() and _MARK not in output.read_text("utf-8", errors="replace")[:2000]:
        hint = "Choose another name."
        raise InvalidInput("output", str(output), "a new file, or a page of the lab", hint)
    write_text(output, lab_html(chapters))
