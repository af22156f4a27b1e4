"""One self-contained page about a holdout: its promise, its budget, every question and answer.

facts   what a ledger says, as data       html        numbers, text, the frame of a page
page    drawings, and the page            page.html   its template; what is in it is escaped
"""

from __future__ import annotations

from holdfast.report.facts import Story, read_story
from holdfast.report.page import page_html, report_html, write_report

__all__ = ["Story", "page_html", "read_story", "report_html", "write_report"]
