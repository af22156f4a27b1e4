"""One self-contained page about a holdout: its promise, its budget, every question and answer."""

from __future__ import annotations

from holdfast.report.page import page_html
from holdfast.report.story import Story, read_story
from holdfast.report.write import report_html, write_report

__all__ = ["Story", "page_html", "read_story", "report_html", "write_report"]
