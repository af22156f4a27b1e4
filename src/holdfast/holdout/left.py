"""What can be asked, and how much of it is left."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.holdout.books import JointBook
from holdfast.holdout.door import Door
from holdfast.holdout.offers import able_offers, offers_of, tells
from holdfast.holdout.phrasing import VERBS
from holdfast.holdout.questions import Verb
from holdfast.holdout.spec import Charter, Offer
from holdfast.holdout.status import set_status
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts import SearchPart

__all__ = ["can_be_asked", "left_of"]

_GRIDS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def can_be_asked(charter: Charter) -> dict[str, Any]:
    """The columns and their kinds, and for every verb the parts of the plan that answer it."""
    offers = offers_of(charter.sets)
    return {
        "columns": [
            {
                "name": each.name,
                "kind": each.kind,
                "range": charter.ranges.get(each.name),
                "categories": charter.texts(each.name) if each.kind == "text" else None,
            }
            for each in charter.manifest.schema.columns
        ],
        "verbs": {
            verb: names
            for verb in VERBS
            if (names := [each.name for each in able_offers(offers, verb) if _says(each, verb)])
        },
        "target": charter.target,
        "labels": None if charter.labels is None else list(charter.labels),
        "ids": None if charter.ids is None else charter.ids.column,
    }


def _says(offer: Offer, verb: Verb) -> bool:
    """Whether anything comes of asking: gates are for scores, and may say nothing of a guess."""
    return verb != "verify" or tells(offer)


def left_of(
    charter: Charter, door: Door, by: str | None, queries: int | None, grid: int | None
) -> dict[str, Any]:
    """How many more questions there are for each part, and on grids of other sizes.

    `fits` says whether so many more questions, on such a grid, can be paid for.
    """
    offers = offers_of(charter.sets)
    names = [offer.name for offer in offers]
    if by is not None and by not in names:
        raise InvalidInput("by", by, f"one of {', '.join(names)}")
    parts: list[dict[str, Any]] = []
    with door.books() as books:
        for block_set in charter.sets:
            book = books[block_set.name]
            for part in set_status(block_set, books).parts:
                told: dict[str, Any] = {**asdict(part), "grids": None}
                plan = block_set.plan
                planned = plan.part(part.name) if isinstance(plan, JointPlan) else None
                if isinstance(planned, SearchPart) and isinstance(book, JointBook):
                    sizes = sorted({*_GRIDS, *([] if grid is None else [grid])})
                    told["grids"] = [_on_grid(book, planned, size) for size in sizes]
                parts.append(told)
    wanted = next(part for part in parts if by in (None, part["name"]))
    return {
        "parts": parts,
        "asked_for": {"part": wanted["name"], "queries": queries, "grid": grid},
        "fits": None if queries is None else queries <= _left(wanted, grid),
    }


def _on_grid(book: JointBook, part: SearchPart, size: int) -> dict[str, Any]:
    looks = (size - 1).bit_length() * (2 if part.mirrored else 1)
    price = looks * part.prices(book.account.plan.order).no
    left = book.account.searches_left(part, looks)
    return {"grid": size, "price": price, "questions_left": left}


def _left(part: dict[str, Any], grid: int | None) -> int:
    if grid is None or part["grids"] is None:
        return int(part["questions_left"])
    return next(int(each["questions_left"]) for each in part["grids"] if each["grid"] == grid)
