"""Counts: what a monitor may know, in Prometheus' text format. Nothing in it comes from the data.

Times are those that clients see, so of questions only their slots.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from holdfast.server.identity import Seat

__all__ = ["Counts"]

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
