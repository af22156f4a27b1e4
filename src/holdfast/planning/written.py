"""Reading what was written: the JSON text of a plan."""

from __future__ import annotations

import json
from typing import Any

from holdfast.errors import InvalidInput

__all__ = ["json_object"]


def json_object(text: str, what: str) -> dict[str, Any]:
    """The object in a JSON text, or an error that says what it should have been.

    >>> json_object('{"blocks": 3}', "a plan")
    {'blocks': 3}
    """
    try:
        data = json.loads(text)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise InvalidInput("plan", text, f"the JSON text of {what}") from wrong
    if not isinstance(data, dict):
        raise InvalidInput("plan", data, "a JSON object")
    return data
