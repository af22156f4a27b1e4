"""Leaderboard and gate: predictions keyed by row id, as the body of a request."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request

from holdfast.holdout.scoring import Submission
from holdfast.server.faults import Fault
from holdfast.server.identity import Seat
from holdfast.server.routes.common import Key, holdout_router, responses
from holdfast.server.routes.shapes import GateShape, StandingsShape, SubmissionShape, shaped
from holdfast.server.service import service_of

__all__ = ["router"]

router = holdout_router()

_FORMS = {
    "text/csv": "csv",
    "application/json": "json",
    "application/vnd.apache.parquet": "parquet",
}
_SCORING = responses("conflict", "exhausted", "busy", "unsupported")
_BODY = {
    "requestBody": {
        "required": True,
        "description": "Predictions for every row: a table with the ids' own column and "
        '`prediction`, or in JSON {"id": prediction, …}.',
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/json": {
                "schema": {
                    "anyOf": [
                        {"type": "object", "additionalProperties": True},
                        {"type": "array", "items": {"type": "object"}},
                    ]
                }
            },
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
Told = dict[str, Any]
Metric = Annotated[
    str, Query(pattern=r"^[A-Za-z0-9_]{1,100}$", description="The name of a metric.")
]
Name = Annotated[str, Query(min_length=1, max_length=100, description="Name of the entry.")]


@router.get("/leaderboard", responses=shaped(StandingsShape))
async def leaderboard(request: Request, metric: Metric = "accuracy") -> Told:
    """The best submission of every name, with the ranks that their error bars allow."""

    def work(seat: Seat) -> Told:
        standings = seat.holdout.leaderboard(metric)
        told = standings.to_dict()
        for entry, each in zip(standings.entries, told["entries"], strict=True):
            each["mine"] = entry.asker == seat.asker.id
        return told

    return await service_of(request).read(request, "viewer", work)


@router.post("/submissions", responses=shaped(SubmissionShape, _SCORING), openapi_extra=_BODY)
async def submit(
    request: Request,
    name: Name,
    metric: Metric = "accuracy",
    improve: Annotated[
        bool,
        Query(description="Verify first whether it is no better than the best."),
    ] = False,
    margin: Annotated[float, Query(description="By how much better.")] = 0.0,
    key: Key = None,
) -> Told:
    """Score predictions, and enter them on the leaderboard."""
    service = service_of(request)
    form = await _form(request)
    content = await request.body()

    def work(seat: Seat) -> Told:
        made: Submission = seat.holdout.enter(
            content,
            name=name,
            metric=metric,
            improve=improve,
            margin=margin,
            form=form,
            request=seat.request(key),
        )
        service.counts.answer(seat.hosted.name, "submit", cached=made.result.cached)
        return made.to_dict()

    return await service.ask(request, work)


@router.post("/gate", responses=shaped(GateShape, _SCORING), openapi_extra=_BODY)
async def gate(
    request: Request,
    metric: Metric = "accuracy",
    at_least: Annotated[float | None, Query(description="The score must reach this.")] = None,
    at_most: Annotated[float | None, Query(description="The score must not pass this.")] = None,
    key: Key = None,
) -> Told:
    """Whether predictions reach a threshold: one verification on one side."""
    service = service_of(request)
    form = await _form(request)
    content = await request.body()

    def work(seat: Seat) -> Told:
        made = seat.holdout.gate(
            content,
            metric=metric,
            at_least=at_least,
            at_most=at_most,
            form=form,
            request=seat.request(key),
        )
        service.counts.answer(seat.hosted.name, "gate", cached=made.verdict.cached)
        return made.to_dict()

    return await service.ask(request, work)


async def _form(request: Request) -> str:
    """The form of the body by its type, once it is known that whoever sends it may ask."""
    await service_of(request).admit(request, "analyst")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if kind not in _FORMS:
        raise Fault("unsupported", f"Content-Type must be one of {', '.join(_FORMS)}.")
    return _FORMS[kind]
