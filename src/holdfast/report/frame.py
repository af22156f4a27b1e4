"""What every page has: one file, one style, a policy that refuses the rest; tables and facts."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from holdfast.report.text import safe

__all__ = ["fact_list", "head_html", "html_file", "rows_html", "table_html"]

# The browser itself refuses whatever a page should not contain: scripts, and all that is remote.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_PICTURES = "; img-src data:"  # parts of figures that are pixels, written into the page


def html_file(
    title: str, main: str, *, style: str = "", head: str = "", pixels: bool = False
) -> str:
    """One HTML file: no script, nothing fetched from anywhere. What it is given is safe already."""
    common = files("holdfast.report").joinpath("page.css").read_text("utf-8")
    policy = _POLICY + (_PICTURES if pixels else "")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">{head}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title>\n<style>\n{common}{style}</style></head>\n"
        f"<body><main>{main}</main></body></html>\n"
    )


def fact_list(facts: Iterable[tuple[str, str]]) -> str:
    """Names and what is to be said of each."""
    items = (f"<dt>{name}</dt><dd>{_fact(text)}</dd>" for name, text in facts)
    return f"<dl>{''.join(items)}</dl>"


def _fact(text: str) -> str:
    """A long word is a digest."""
    return f"<code>{safe(text)}</code>" if len(text) > 30 and " " not in text else safe(text)


def table_html(heads: Iterable[str], rows: Iterable[Iterable[str]], style: str) -> str:
    """A table of cells that are safe already."""
    return f'<table class="{style}">{head_html(heads)}<tbody>{rows_html(rows)}</tbody></table>'


def head_html(heads: Iterable[str]) -> str:
    """The head of a table."""
    cells = "".join(f'<th scope="col">{each}</th>' for each in heads)
    return f"<thead><tr>{cells}</tr></thead>"


def rows_html(rows: Iterable[Iterable[str]]) -> str:
    """Rows of a table."""
    return "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for cells in rows)
