"""Errors: the one JSON body that every error has, and the status of each kind.

{"error": {"kind": …, "message": …, "parameter"?, "allowed"?, "hint"?, "request": …}}
"""

from __future__ import annotations

import errno
import math
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from holdfast.errors import Damaged, Doubtful, Exhausted, HoldfastError, InvalidInput, Unavailable
from holdfast.protocols.base import VERBS

__all__ = [
    "STATUS",
    "HttpError",
    "add_handlers",
    "document_errors",
    "error_response",
    "facts_of",
    "full",
    "is_news",
    "told_of",
    "too_large",
]

STATUS = {
    "bad_question": 400,
    "doubtful": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "not_allowed": 405,
    "conflict": 409,
    "exhausted": 409,
    "cancelled": 409,
    "too_large": 413,
    "unsupported": 415,
    "too_many": 429,
    "damaged": 500,
    "internal": 500,
    "unavailable": 500,  # not 503: tried again by itself, a question would be paid again
    "busy": 503,
}
_KIND = {status: kind for kind, status in reversed(STATUS.items())}
_LONGEST_NAME = 100  # of a parameter that nobody here has named
_PLACES = ("body", "query", "path", "header", *VERBS)  # a job's body is told by its verb
_MOST_SHOWN = 500  # characters of a message that repeats what was sent


class HttpError(Exception):
    """An error that is the server's own to tell: of access, limits and addresses."""

    def __init__(self, kind: str, message: str, *, wait: float | None = None) -> None:
        self.kind, self.message, self.wait = kind, message, wait
        super().__init__(message)


_AWAY = (BlockingIOError, ConnectionError, InterruptedError)  # of a database, or a cluster
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.ENOMEM)


def too_large(limit: int) -> HttpError:
    """What a body that is too large is told."""
    return HttpError("too_large", f"A body here may have at most {limit:,} bytes.")


def full(error: BaseException) -> bool:
    """Whether the machine has no room for it now: descriptors, disk or memory."""
    return isinstance(error, MemoryError) or getattr(error, "errno", None) in _FULL


def is_news(error: BaseException) -> bool:
    """Whether the log must tell of it: it is no answer to what somebody asked."""
    if isinstance(error, HttpError):
        return error.__cause__ is not None
    told = isinstance(error, HoldfastError)
    return not told or isinstance(error, Damaged | Unavailable)


def facts_of(error: BaseException) -> dict[str, Any]:
    """What the log may say of an error: its type and the line that raised it, and the reason.

    The message is told where it is Holdfast's own, which holds no row; of the system's errors
    their name, for their message may tell of the data.
    """
    error = (error.__cause__ or error) if isinstance(error, HttpError) else error
    trace, place = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f"{trace.tb_frame.f_globals.get('__name__', '?')}.{code.co_name}:{trace.tb_lineno}"
        trace = trace.tb_next
    facts = {"error": f"{type(error).__name__} at {place}"}
    reason = str(error) if isinstance(error, HoldfastError) else ""
    if isinstance(error, OSError) and error.errno is not None:
        reason = errno.errorcode.get(error.errno, str(error.errno))
    return {**facts, "reason": reason} if reason else facts


def told_of(error: BaseException) -> tuple[str, dict[str, Any]]:
    """The kind of an error, and what may be told of it. Of one that nobody foresaw: nothing."""
    if isinstance(error, HttpError):
        return error.kind, {"message": error.message}
    if isinstance(error, InvalidInput):
        told = {"parameter": error.parameter, "allowed": error.allowed, "hint": error.hint}
        kind = "conflict" if error.parameter == "request" else "bad_question"
        kind = "doubtful" if isinstance(error, Doubtful) else kind
        return kind, {"message": str(error), **{k: v for k, v in told.items() if v}}
    if isinstance(error, Unavailable):
        return "unavailable", {"message": str(error), **error.facts()}
    if isinstance(error, Exhausted):
        return "exhausted", {"message": str(error), **error.facts()}
    if isinstance(error, Damaged):  # paths and hashes are for the custodian, who has the log
        message = "The holdout is damaged. Its custodian can run `holdfast check` on it."
        return "damaged", {"message": message}
    if isinstance(error, TimeoutError):
        return "busy", {"message": "The holdout is busy. Ask again, with the same key."}
    if isinstance(error, _AWAY):
        return "busy", {"message": "The holdout is away. Ask again, with the same key."}
    if isinstance(error, HoldfastError):
        return "bad_question", {"message": str(error), **error.facts()}
    return "internal", {"message": "Something went wrong here. The log has it, under this request."}


def error_response(
    kind: str, told: dict[str, Any], request: str, wait: float | None = None
) -> JSONResponse:
    """The response that tells of it."""
    headers = {}
    if kind == "unauthorized":
        headers["WWW-Authenticate"] = "Bearer"
    if wait is not None:
        headers["Retry-After"] = str(max(1, math.ceil(wait)))
    told = {**told, "message": told["message"][:_MOST_SHOWN]}
    body = {"error": {"kind": kind, **told, "request": request}}
    return JSONResponse(body, STATUS[kind], headers)


def add_handlers(app: FastAPI) -> None:
    """Give every error of the app its body."""

    async def told(request: Request, error: Exception) -> JSONResponse:
        if is_news(error):
            request.scope["holdfast_error"] = facts_of(error)  # its traceback does not last
        kind, facts = told_of(error)
        return error_response(kind, facts, _request_id(request), getattr(error, "wait", None))

    async def malformed(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return error_response("bad_question", _first_problem(error), _request_id(request))

    async def plain(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        kind = _KIND.get(error.status_code, "bad_question")
        messages = {
            "not_found": "There is nothing at this address. /api/openapi.json lists what there is.",
            "not_allowed": "This address does not take that method; /api/openapi.json says which.",
        }
        message = messages.get(kind, "The request could not be read.")
        return error_response(kind, {"message": message}, _request_id(request))

    for kind in (HttpError, HoldfastError):  # all others are the middleware's
        app.add_exception_handler(kind, told)
    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(HTTPException, plain)


def document_errors(app: FastAPI) -> None:
    """Take out of OpenAPI what FastAPI would say of a malformed request: here it is 400."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        told = made()
        for operations in told["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            told["components"]["schemas"].pop(name, None)
        return told

    app.openapi = openapi  # type: ignore[method-assign]


def _first_problem(error: RequestValidationError) -> dict[str, Any]:
    """What is wrong with the request, and where; what was sent is not repeated."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        message = f"The body is not JSON: {first['ctx']['error']} (character {first['loc'][-1]})."
        return {"message": message, "parameter": "body"}
    place = [str(each) for each in first["loc"] if each not in _PLACES]
    name = place[0][:_LONGEST_NAME] if place else "body"
    message = f"{'.'.join(place) or 'The body'}: {first['msg']}."
    hint = "/api/openapi.json describes every request."
    return {"message": f"{message} {hint}", "parameter": name, "hint": hint}


def _request_id(request: Request) -> str:
    return str(request.scope.get("holdfast_request", ""))
