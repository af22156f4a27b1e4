"""Tests for tools/fuzz.py: a short campaign finds nothing, and faults would be found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from tools.fuzz import SECRET_TEXT, Campaign, World, page, run


def test_a_short_campaign_finds_nothing() -> None:
    campaign = run(120, 7)
    assert campaign.faults == []
    assert campaign.made >= 120
    assert campaign.requests >= 360
    assert campaign.answers > 10  # it reaches the data
    assert len(campaign.statuses) >= 36
    assert "No fault was found" in page(campaign, ["--cases", "120"])


class _Case:
    """A case of an operation that takes everything."""

    operation = SimpleNamespace(method="get", path="/x")

    def validate_response(self, *_: Any, **__: Any) -> None:
        """Anything fits."""


def _told(kind: str = "bad_question", message: str = "No.", **more: Any) -> dict[str, Any]:
    return {"error": {"kind": kind, "message": message, "request": "1", **more}}


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (400, _told(message=f"could not convert {SECRET_TEXT}"), "it tells"),
        (200, {"value": "31337.42"}, "it tells"),
        (500, _told("internal"), "500 or above"),
        (404, _told(), "another status"),
        (400, {"detail": "No."}, "not the one JSON body"),
        (400, _told(trace="x"), "not the keys"),
        (400, _told(), None),
        (200, {"value": 1}, None),
    ],
)
def test_faults_are_found(status: int, body: dict[str, Any], fault: str | None) -> None:
    place: Any = SimpleNamespace(secrets=(SECRET_TEXT, "31337.42"), jobs=[])
    campaign = Campaign()
    campaign._look(place, _Case(), httpx2.Response(status, json=body))
    assert len(campaign.faults) == (fault is not None)
    assert fault is None or fault in campaign.faults[0]
    assert World.plans
