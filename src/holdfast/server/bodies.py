"""Bodies of several parts: multipart/mixed, with the names of RFC 7578, split and nothing else.

Every part has a name, in which %22 is a quotation mark, and content. What the content is, is for
whoever reads it. It is not multipart/form-data, which any page that a browser shows may send here
without being asked first.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from holdfast.errors import InvalidInput

__all__ = ["read_parts"]

_MOST_PARTS = 1_000
_LONGEST_HEAD = 2**12  # bytes of the headers of a part
_BOUNDARY = re.compile(r';\s*boundary=("?)([0-9A-Za-z\'()+_,./:=?-]{1,70})\1\s*(;|$)', re.I)
_NAME = re.compile(r';\s*name="([^"\r\n]{1,600})"')
_ALLOWED = "multipart/mixed whose parts have different names"


def read_parts(body: bytes, kind: str) -> list[tuple[str, bytes]]:
    r"""The parts of a body by their names, in order; `kind` is its Content-Type.

    >>> sent = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1,2\r\n--x--\r\n'
    >>> read_parts(sent, "multipart/mixed; boundary=x")
    [('a', b'1,2')]
    """
    found = _BOUNDARY.search(kind)
    if found is None:
        raise _refused("no boundary")
    line = b"\r\n--" + found[2].encode("ascii")
    # The first boundary may be the first line: what is before it is nobody's.
    _, *parts = (b"\r\n" + body).split(line, _MOST_PARTS + 2)
    if not parts or not parts[-1].startswith(b"--"):
        raise _refused(
            "no end" if len(parts) <= _MOST_PARTS else f"more than {_MOST_PARTS:,} parts"
        )
    read = [_part(each) for each in parts[:-1]]
    if len({name for name, _ in read}) < len(read):
        raise _refused("a name twice")
    return read


def _part(part: bytes) -> tuple[str, bytes]:
    head, blank, content = part[:_LONGEST_HEAD].partition(b"\r\n\r\n")
    if not blank or not head.lstrip(b" \t").startswith(b"\r\n"):
        raise _refused("a part without headers")
    for each in head.split(b"\r\n"):
        field, _, value = each.partition(b":")
        if field.strip().lower() == b"content-disposition":
            try:
                found = _NAME.search(value.decode("utf-8"))
            except UnicodeDecodeError:
                break
            if found is None:
                break
            return unquote(found[1]), content + part[_LONGEST_HEAD:]
    raise _refused("a part without a name")


def _refused(found: str) -> InvalidInput:
    return InvalidInput("body", found, _ALLOWED)
