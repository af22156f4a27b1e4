"""Operations: whether the server is up, what it counts, which holdouts it has, and the planner."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from holdfast.server.identity import Seat
from holdfast.server.planner import comparison
from holdfast.server.routes.common import TOKEN, responses
from holdfast.server.routes.shapes import HoldoutShape, shaped
from holdfast.server.service import service_of

__all__ = ["router"]

router = APIRouter()
Told = dict[str, Any]
_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}


@router.get("/health")
async def health() -> dict[str, str]:
    """Whether the server is up. It says nothing of the holdouts."""
    return {"status": "ok"}


@router.get(
    "/metrics",
    dependencies=[TOKEN],
    responses={200: _TEXT, **responses()},
    response_class=Response,
)
async def metrics(request: Request) -> Response:
    """Counts for Prometheus, of the holdouts that the token may see."""
    service = service_of(request)
    text = await service.read_all(request, service.counts.text)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


@router.get(
    "/api/holdouts",
    dependencies=[TOKEN],
    responses=shaped(list[HoldoutShape], responses()),
)
async def holdouts(request: Request) -> list[Told]:
    """The holdouts that the token may see, and what it may do there."""
    return await service_of(request).read_all(request, lambda seats: [*map(_listed, seats)])


def _listed(seat: Seat) -> Told:
    grant = seat.grant
    token = None
    if grant is not None:
        facts = ("id", "name", "expires", "quota")
        token = {name: getattr(grant, name) for name in facts}
    title = seat.holdout.charter.name
    return {"name": seat.hosted.name, "title": title, "role": seat.role, "token": token}


@router.get("/api/plan", dependencies=[TOKEN], responses=responses("busy"))
async def plan(
    request: Request,
    rows: Annotated[int, Query(ge=100, le=10**9)] = 100_000,
    queries: Annotated[int, Query(ge=1, le=10**6)] = 1000,
    tail: Annotated[float, Query(gt=0, lt=0.5)] = 0.25,
    confidence: Annotated[float, Query(ge=0.5, le=0.9999)] = 0.95,
    curve: Annotated[bool, Query(description="Also for other numbers of questions.")] = True,
) -> Told:
    """How narrow answers can be with so many rows and questions, by method."""
    service = service_of(request)
    await service.read_all(request, lambda seats: len(seats))
    return await comparison(rows, queries, tail, confidence, curve)
