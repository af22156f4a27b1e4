"""Looking: what is left, what was answered, what can be asked."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request

from holdfast.holdout.left import can_be_asked, left_of
from holdfast.server.identity import Seat
from holdfast.server.routes.common import holdout_router
from holdfast.server.routes.shapes import StatusShape, TranscriptShape, shaped
from holdfast.server.service import service_of

__all__ = ["router"]

router = holdout_router()
Told = dict[str, Any]
After = Annotated[int, Query(ge=0, le=2**53, description="Rows after this one.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many.")]


@router.get("/status", responses=shaped(StatusShape))
async def status(request: Request) -> Told:
    """What is spent, what is left, and what it still buys."""

    def work(seat: Seat) -> Told:
        told = seat.holdout.status().to_dict()
        del told["path"]  # where it lies on the server is nobody's business
        return {**told, "role": seat.role, "quota": _quota(seat)}

    return await service_of(request).read(request, "viewer", work)


def _quota(seat: Seat) -> Told | None:
    if seat.grant is None or seat.grant.quota is None:
        return None
    return {"share": seat.grant.quota, "used": seat.holdout.access.used(seat.grant.id)}


@router.get("/columns")
async def columns(request: Request) -> Told:
    """What can be asked: columns, verbs and parts of the plan."""
    service = service_of(request)

    def work(seat: Seat) -> Told:
        return {**can_be_asked(seat.holdout.charter), "metrics": service.metric_names}

    return await service.read(request, "viewer", work)


@router.get("/transcript", responses=shaped(TranscriptShape))
async def transcript(request: Request, after: After = 0, limit: Limit = 100) -> Told:
    """Questions and answers, the oldest first."""

    def work(seat: Seat) -> Told:
        rows = seat.holdout.transcript(after, limit)
        for row in rows:
            row["mine"] = row["asker"] == seat.asker.id
            if seat.role != "custodian":
                del row["asker"]
        return {"rows": rows, "next": rows[-1]["number"] if len(rows) == limit else None}

    return await service_of(request).read(request, "viewer", work)


@router.get("/left")
async def left(
    request: Request,
    by: Annotated[str | None, Query(max_length=100, description="A part of the plan.")] = None,
    queries: Annotated[int | None, Query(ge=1, le=10**9, description="Questions wanted.")] = None,
    grid: Annotated[int | None, Query(ge=2, le=10**6, description="Points of their grids.")] = None,
) -> Told:
    """Plan what is left: how many more questions, on grids of which size, it pays for."""
    return await service_of(request).read(
        request,
        "viewer",
        lambda seat: left_of(seat.holdout.charter, seat.holdout.door, by, queries, grid),
    )
