"""One self-contained page about the lab: every experiment's figures, findings and origin."""

from __future__ import annotations

from holdfast.report.lab_page.chapters import Chapter, read_chapters
from holdfast.report.lab_page.page import lab_html, write_lab_page

__all__ = ["Chapter", "lab_html", "read_chapters", "write_lab_page"]
