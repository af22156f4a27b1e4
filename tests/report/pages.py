"""A reader of HTML that is strict about nesting, and remembers what it saw."""

from __future__ import annotations

from html.parser import HTMLParser

__all__ = ["Page"]

VOID = {"br", "col", "meta", "circle", "line", "rect", "path"}


class Page(HTMLParser):
    """Tags, attributes and text of a page; a tag that is closed in the wrong place is an error."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.cells: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self._open.pop() == tag
        if tag == "td":
            self.cells[-1] = self.cells[-1].strip()

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text.append(data)
        if "td" in self._open and "svg" not in self._open:
            self.cells[-1] += data

    @property
    def words(self) -> str:
        """All text that a reader sees, with plain spaces."""
        return " ".join("".join(self.text).replace("\u00a0", " ").split())

    def values(self, name: str) -> list[str]:
        """The values of an attribute."""
        return [value for _, given, value in self.attributes if given == name]
