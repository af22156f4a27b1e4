"""What DuckDB complains of while it reads the data, said so that one knows what to do.

This is the custodian's own data, at creation: here a message may speak of it.
"""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.errors import InvalidInput

__all__ = ["explained"]

_LINE = re.compile(r"CSV Error on Line: (\d+)\s*(?:Original Line: (.*))?")
_FILE = re.compile(r"^\s*file = (.*)$", re.MULTILINE)
_COUNT = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")


def explained(error: BaseException) -> InvalidInput:
    """DuckDB's complaint in our words: which file, which line, what to do."""
    text = str(error)
    line, file, count = _LINE.search(text), _FILE.search(text), _COUNT.search(text)
    where = f"{Path(file[1].strip()).name if file else 'the data'}"
    if line:
        where += f", line {int(line[1]):,}"
    if count:
        allowed = f"rows of {count[1]} values, as many as there are names"
        hint = f"This line has {count[2]}. Correct it, or put quotation marks around the text."
    elif "unicode" in text or "utf-8" in text:
        allowed, hint = "a CSV file in UTF-8", "Convert it, for example with iconv -t UTF-8."
    elif "quote" in text:
        allowed, hint = "a CSV file with closed quotation marks", "Close the one of this line."
    else:
        kind = "a readable CSV file" if line or "sniffing" in text else "readable"
        allowed, hint = kind, _first_sentence(text)
    return InvalidInput("data", where, allowed, hint)


def _first_sentence(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""
