"""Replies: the data in what a server says, or the error that a holdout would have raised."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from holdfast.client.errors import Cancelled, NotAllowed, ServerFailed
from holdfast.client.steps import Call, Reply
from holdfast.errors import (
    Damaged,
    Doubtful,
    Exhausted,
    HoldfastError,
    Infeasible,
    InvalidInput,
    Unavailable,
)

__all__ = ["data_of", "error_of"]

# The messages of errors.py, from which their facts can be read again.
_EXHAUSTED = re.compile(
    r"(.+?) is exhausted: this needs (.+?), and (.+?) is left\. (.*)", re.DOTALL
)
_INFEASIBLE = re.compile(r"(.+?): this needs (.+?), but (.+?)\. (.*)", re.DOTALL)
_UNAVAILABLE = re.compile(
    r"(.+?) failed: this needs (.+?), but (.+?)\. (.*) Whatever was charged stays charged\.",
    re.DOTALL,
)
_Maker = Callable[[str, Mapping[str, Any], Call, str], HoldfastError]


def data_of(reply: Reply, call: Call, url: str) -> Any:
    """The data in a reply, or the error that it tells of."""
    try:
        data = json.loads(reply.body)
    except (ValueError, RecursionError):
        data = None
    if 200 <= reply.status < 300 and data is not None:
        return data
    told = data.get("error") if isinstance(data, dict) else None
    if isinstance(told, dict) and isinstance(told.get("message"), str):
        raise error_of(told, call, url)
    reason = f"gave a reply that is not Holdfast's, status {reply.status}."
    raise ServerFailed(url, reason, "Is the address that of a Holdfast server?")


def error_of(told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    """The exception that a holdout would have raised, with the server's words."""
    kind, message = told.get("kind"), _printable(str(told["message"]))
    make = _ERRORS.get(str(kind))
    if make is not None:
        return make(message, told, call, url)
    number = f" Its log says more about request {told['request']}." if "request" in told else ""
    return ServerFailed(url, f"has failed: {message}", f"Tell its custodian.{number}")


def _printable(text: str) -> str:
    """Without what would steer a terminal."""
    return "".join(each if each.isprintable() or each == "\n" else "�" for each in text)


def _worded(error: HoldfastError, message: str) -> HoldfastError:
    """The error with the server's own message, which it would otherwise put together again."""
    error.args = (message,)
    return error


def _invalid(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    del url
    said = _INFEASIBLE.fullmatch(message)
    if "parameter" not in told and said is not None:
        return Infeasible(*said.groups())
    name = str(told.get("parameter", "question"))
    allowed, hint = str(told.get("allowed", "as the server takes it")), str(told.get("hint", ""))
    sent = {**call.parameters, **(call.body or {}), "request": call.key}
    for value in (sent.get(name), *sent.values()):  # a parameter may go by another name there
        error = InvalidInput(name, value, allowed, hint)
        if str(error) == message:
            return error
    return _worded(InvalidInput(name, sent.get(name), allowed, hint), message)


def _doubtful(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    del call, url
    return _worded(Doubtful(str(told.get("parameter", "question")), message), message)


def _not_found(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    """Which part of the address it is that leads nowhere."""
    del told
    _, _, rest = call.path.partition("/holdouts/")
    names = [unquote(part) for part in rest.split("/")]
    if len(names) > 2:  # holdout, jobs, id
        return _worded(InvalidInput("job", names[2], "one that the server knows"), message)
    hint = f"{url}: {message}"
    return InvalidInput("holdout", names[0], "one that your token may see on this server", hint)


def _read_again(kind: type[Exhausted | Unavailable], pattern: re.Pattern[str], what: str) -> _Maker:
    """What makes an error of its own message, or of another one in the same place."""

    def made(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
        del told, call, url
        said = pattern.fullmatch(message)
        return (
            _worded(kind(what, "more", "less", ""), message)
            if said is None
            else kind(*said.groups())
        )

    return made


def _damaged(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    del told, call, url  # what was found is for the custodian alone
    return _worded(Damaged("The holdout", "what was written", "something else", ""), message)


def _not_allowed(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    del call
    remedy = (
        "Give token=…, or set HOLDFAST_TOKEN; the custodian makes one: `holdfast token create`."
    )
    if told["kind"] == "forbidden":
        remedy = "Ask the custodian for a token with more rights."
    return NotAllowed(url, message, str(told.get("hint", remedy)))


def _cancelled(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    del told, url
    return Cancelled(call.path.rpartition("/")[2], message)


_ERRORS: dict[str, _Maker] = {
    "bad_question": _invalid,
    "cancelled": _cancelled,
    "conflict": _invalid,
    "damaged": _damaged,
    "doubtful": _doubtful,
    "exhausted": _read_again(Exhausted, _EXHAUSTED, "The budget"),
    "forbidden": _not_allowed,
    "not_found": _not_found,
    "too_large": _invalid,
    "unauthorized": _not_allowed,
    "unavailable": _read_again(Unavailable, _UNAVAILABLE, "Evaluating"),
    "unsupported": _invalid,
}
