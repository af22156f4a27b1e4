"""What a monitor may know, in Prometheus' text format, and the log. Nothing comes from the data.

Times are those that clients see, so of questions only their slots.
"""

from __future__ import annotations

import json
import logging
import math
import os
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from holdfast.server.auth import Caller

__all__ = ["RequestCounts", "log_event", "log_request", "set_up_logs"]

_BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 25.6, 102.4, 409.6)
_MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
_OLDEST = "holdfast_oldest_request_seconds"
_LATE = "holdfast_late_answers"  # _total is added to it


class RequestCounts:
    """Requests and answers of this process; with several, of all that share a folder.

    What belongs to no holdout has the label "".
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "holdfast_requests_total",
            "Requests by route and status.",
            ["method", "route", "status", "holdout"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "holdfast_request_seconds",
            "Seconds until a response left; of questions, until the end of their slot.",
            ["route", "holdout"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._answers = Counter(
            "holdfast_answers_total",
            "Questions answered, by whether the answer was recorded before.",
            ["holdout", "verb", "cached"],
            registry=self._registry,
        )
        self._late = Counter(
            _LATE,
            "Answers that missed the slot that follows from their question.",
            ["holdout"],
            registry=self._registry,
        )
        self._under_way = Gauge(
            "holdfast_requests_under_way",
            "Requests that have come and are not answered.",
            ["holdout"],
            multiprocess_mode="livesum",
            registry=self._registry,
        )
        # As the moment when it came, which is true until it is gone; told as its age.
        self._oldest = Gauge(
            _OLDEST,
            "Seconds since the oldest of them came; 0 without any.",
            ["holdout"],
            multiprocess_mode="livemin",
            registry=self._registry,
        )
        self._starts: dict[str, dict[int, float]] = {}
        self._numbers = count()
        self._lock = threading.Lock()

    def begin(self, holdout: str) -> int:
        """A request has come; its number."""
        with self._lock:
            number = next(self._numbers)
            self._starts.setdefault(holdout, {})[number] = time.time()
            self._tell(holdout)
        return number

    def end(self, number: int, holdout: str, facts: dict[str, Any]) -> None:
        """It was answered."""
        with self._lock:
            del self._starts[holdout][number]
            self._tell(holdout)
        route = str(facts["route"])
        self._requests.labels(facts["method"], route, str(facts["status"]), holdout).inc()
        self._seconds.labels(route, holdout).observe(float(facts["seconds"]))

    def _tell(self, holdout: str) -> None:
        starts = self._starts[holdout]
        self._under_way.labels(holdout).set(len(starts))
        self._oldest.labels(holdout).set(next(iter(starts.values()), math.inf))

    def answer(self, holdout: str, verb: str, *, cached: bool) -> None:
        """Count an answer."""
        self._answers.labels(holdout, verb, str(cached).lower()).inc()

    def late(self, holdout: str, over: float) -> None:
        """Count an answer that came so many seconds after the end of its slot."""
        self._late.labels(holdout).inc()
        log_event("late", level=logging.WARNING, holdout=holdout, seconds=round(over, 4))

    def text(self, callers: Sequence[Caller], away: Sequence[str]) -> bytes:
        """All counts, and what is spent of the holdouts that the reader may see."""
        registry = self._registry
        if _MULTIPROCESS in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        names = {caller.served.name for caller in callers} | {*away, ""}
        kept = {caller.served.name for caller in callers if caller.role == "custodian"}
        shown = CollectorRegistry()
        shown.register(_Visible(registry, names, kept))
        shown.register(_States(callers, away))
        return generate_latest(shown)


class _Visible:
    """The counts of a registry, but for those of holdouts that the reader may not know of.

    Late answers are for custodians: that one was late may tell of the data.
    """

    def __init__(self, registry: CollectorRegistry, names: set[str], kept: set[str]) -> None:
        self._registry, self._names, self._kept = registry, names, kept

    def collect(self) -> Iterator[Metric]:
        now = time.time()
        for metric in self._registry.collect():
            names = self._kept if metric.name.startswith(_LATE) else self._names
            seen = [each for each in metric.samples if each.labels["holdout"] in names]
            if metric.name == _OLDEST:
                seen = [each._replace(value=max(0.0, now - each.value)) for each in seen]
            metric.samples = seen
            yield metric


class _States:
    """Whether holdouts can be read, and what is spent of them, read when it is asked for."""

    def __init__(self, callers: Sequence[Caller], away: Sequence[str]) -> None:
        self._callers, self._away = callers, away

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily(
            "holdfast_holdout_up", "Whether its ledger can be read.", None, ["holdout"]
        )
        used = GaugeMetricFamily(
            "holdfast_budget_used_ratio",
            "Share of a budget that is spent.",
            None,
            ["holdout", "set"],
        )
        told = GaugeMetricFamily(
            "holdfast_told_nats", "What answers have told, in nats.", None, ["holdout", "set"]
        )
        level = GaugeMetricFamily(
            "holdfast_level_nats",
            "The level of the next answer, in nats: bars widen as its root.",
            None,
            ["holdout", "set"],
        )
        answers = GaugeMetricFamily(
            "holdfast_recorded_answers", "Answers in the ledger.", None, ["holdout"]
        )
        for name in self._away:
            up.add_metric([name], 0)
        for caller in self._callers:
            name = caller.served.name
            try:
                status = caller.served.holdout.status()
            except Exception:
                up.add_metric([name], 0)
                continue
            up.add_metric([name], 1)
            answers.add_metric([name], status.answers)
            for each in status.sets:
                if each.told is None:
                    used.add_metric([name, each.name], each.used)
                else:
                    told.add_metric([name, each.name], each.told.nats)
                    level.add_metric([name, each.name], each.told.level)
        yield from (up, used, told, level, answers)


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
    log_event("request", level=logging.ERROR if facts["status"] >= 500 else logging.INFO, **facts)


def log_event(event: str, *, level: int = logging.INFO, **facts: Any) -> None:
    """Something that happened."""
    _log.log(level, event, extra={"facts": facts})
