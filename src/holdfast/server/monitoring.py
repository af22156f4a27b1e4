"""Counts: what a monitor may know, in Prometheus' text format. Nothing in it comes from the data.

Times are those that clients see, so of questions only their slots.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from holdfast.server.auth import Seat

__all__ = [
    "Counts",
    "log_event",
    "log_request",
    "set_up_logs",
]

_BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 25.6, 102.4, 409.6)
_MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"


class Counts:
    """Requests and answers of this process; with several, of all that share a folder."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "holdfast_requests_total",
            "Requests by route and status.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "holdfast_request_seconds",
            "Seconds until a response left; of questions, until the end of their slot.",
            ["route"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._answers = Counter(
            "holdfast_answers_total",
            "Questions answered, by whether the answer was recorded before.",
            ["holdout", "verb", "cached"],
            registry=self._registry,
        )
        # By method, route and status: to look them up takes longer than to count.
        self._known: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}

    def request(self, facts: dict[str, Any]) -> None:
        """Count a request."""
        of = (facts["method"], str(facts["route"]), str(facts["status"]))
        known = self._known.get(of)
        if known is None:
            known = self._known[of] = self._requests.labels(*of), self._seconds.labels(of[1])
        known[0].inc()
        known[1].observe(float(facts["seconds"]))

    def answer(self, holdout: str, verb: str, *, cached: bool) -> None:
        """Count an answer."""
        self._answers.labels(holdout, verb, str(cached).lower()).inc()

    def text(self, seats: Sequence[Seat]) -> bytes:
        """All counts, and what is spent of the holdouts that the reader may see."""
        registry = self._registry
        if _MULTIPROCESS in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        shown = CollectorRegistry()
        shown.register(_Seen(registry, {seat.hosted.name for seat in seats}))
        shown.register(_Budgets(seats))
        return generate_latest(shown)


class _Seen:
    """The counts of a registry, but for those of holdouts that the reader may not know of."""

    def __init__(self, registry: CollectorRegistry, names: set[str]) -> None:
        self._registry, self._names = registry, names

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [
                sample
                for sample in metric.samples
                if "holdout" not in sample.labels or sample.labels["holdout"] in self._names
            ]
            yield metric


class _Budgets:
    """What is spent, read when it is asked for."""

    def __init__(self, seats: Sequence[Seat]) -> None:
        self._seats = seats

    def collect(self) -> Iterator[Metric]:
        used = GaugeMetricFamily(
            "holdfast_budget_used_ratio",
            "Share of a budget that is spent.",
            None,
            ["holdout", "set"],
        )
        answers = GaugeMetricFamily(
            "holdfast_recorded_answers", "Answers in the ledger.", None, ["holdout"]
        )
        for seat in self._seats:
            status = seat.hosted.holdout.status()
            answers.add_metric([seat.hosted.name], status.answers)
            for each in status.sets:
                used.add_metric([seat.hosted.name, each.name], each.used)
        yield used
        yield answers


# Logs: one line of JSON an event, on standard error. No question, no answer, no row is in them.


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
        "formatters": {"lines": {"()": "holdfast.server.monitoring._Lines"}},
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
