"""One self-contained page about a holdout: its promise, its budget, every question and answer.

story      what a ledger says, as facts       charts     drawings, as SVG
sections   the parts of the page              html       numbers, text and the frame
page       the page
"""

from __future__ import annotations

from holdfast.report.page import page_html, report_html, write_report
from holdfast.report.story import Story, read_story

__all__ = ["Story", "page_html", "read_story", "report_html", "write_report"]
