"""For the custodian: tokens and quotas, who asked what, and whether the ledger is sound."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from holdfast.holdout.check import check_holdout
from holdfast.holdout.transcripts import audit_of
from holdfast.server.identity import Seat
from holdfast.server.routes.common import holdout_router
from holdfast.server.routes.shapes import GrantShape, shaped
from holdfast.server.service import service_of

__all__ = ["router"]

router = holdout_router()
Told = dict[str, Any]
TokenId = Annotated[str, Path(pattern=r"^[0-9a-z]{8}$", description="A token's id.")]


class QuotaWords(BaseModel):
    """Another quota."""

    model_config = ConfigDict(extra="forbid")
    quota: Annotated[float, Field(gt=0, le=1)] | None


class CheckWords(BaseModel):
    """What to check against."""

    model_config = ConfigDict(extra="forbid")
    receipt: Annotated[str, Field(max_length=300)] | None = None


@router.get("/tokens", responses=shaped(list[GrantShape]))
async def tokens(request: Request) -> list[Told]:
    """All grants, with what each has used; tokens themselves are kept nowhere."""

    def work(seat: Seat) -> list[Told]:
        access = seat.hosted.holdout.access
        return [{**each.to_dict(), "used": access.used(each.id)} for each in access.grants()]

    return await service_of(request).read(request, "custodian", work)


@router.delete("/tokens/{token}", responses=shaped(GrantShape))
async def revoke(request: Request, token: TokenId) -> Told:
    """End a grant, at once and for good."""
    return await service_of(request).read(
        request, "custodian", lambda seat: seat.hosted.holdout.access.revoke(token).to_dict()
    )


@router.patch("/tokens/{token}", responses=shaped(GrantShape))
async def change(request: Request, token: TokenId, words: QuotaWords) -> Told:
    """Give a grant another share of the budget; null for no limit of its own."""

    def work(seat: Seat) -> Told:
        return seat.hosted.holdout.access.set_quota(token, words.quota).to_dict()

    return await service_of(request).read(request, "custodian", work)


@router.get("/audit")
async def audit(
    request: Request,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Told:
    """Who did what, row by row of the ledger: grants, reservations, answers."""

    def work(seat: Seat) -> Told:
        rows = audit_of(seat.hosted.holdout.door, after, limit)
        return {"rows": rows, "next": rows[-1]["number"] if len(rows) == limit else None}

    return await service_of(request).read(request, "custodian", work)


@router.post("/check")
async def check(request: Request, words: CheckWords | None = None) -> Told:
    """Verify chain, plan, prices, budget, answers and files again, from what is on disk."""
    receipt = None if words is None else words.receipt

    def work(seat: Seat) -> Told:
        return check_holdout(seat.hosted.holdout.path, receipt).to_dict()

    return await service_of(request).read(request, "custodian", work)
