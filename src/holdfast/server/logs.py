"""Logs: one line of JSON an event, on standard error. No question, no answer, no row is in them."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

__all__ = ["log_event", "log_request", "set_up_logs"]

_log = logging.getLogger("holdfast.server")
# What other libraries put into a message is theirs: of their records only these are shown whole.
_TRUSTED = ("holdfast.server", "uvicorn", "uvicorn.error")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": moment, "level": record.levelname.lower()}
        facts = getattr(record, "facts", None)
        if facts is not None:
            line |= {"event": record.getMessage(), **facts}
        elif record.name in _TRUSTED and record.exc_info is None:
            line |= {"event": "message", "text": record.getMessage()}
        else:  # an exception's message may tell of the data
            kind = record.exc_info[0] if record.exc_info else None
            line |= {"event": "error", "logger": record.name}
            line["type"] = kind.__name__ if kind is not None else "none"
        return json.dumps(line)


def set_up_logs(level: str = "info") -> dict[str, Any]:
    """The configuration that uvicorn gives to every process."""
    handler = {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}
    kept = {"handlers": ["lines"], "level": level.upper(), "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": "holdfast.server.logs._Lines"}},
        "handlers": {"lines": handler},
        "loggers": {"holdfast.server": kept, "uvicorn": kept, "asyncio": kept},
    }


def log_request(facts: dict[str, Any]) -> None:
    """A request that was answered."""
    level = logging.ERROR if facts["status"] >= 500 else logging.INFO
    if _log.isEnabledFor(level):
        _log.log(level, "request", extra={"facts": facts})


def log_event(event: str, **facts: Any) -> None:
    """Something else that happened."""
    _log.info(event, extra={"facts": facts})
