"""Pricing: what a question would cost if it were asked now. Nothing is drawn, nothing charged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from holdfast.errors import Exhausted
from holdfast.holdout.books import Books, JointBook, TallyBook, written_tally
from holdfast.holdout.clerk import Clerk
from holdfast.holdout.doubts import Doubt
from holdfast.holdout.grants import Asker
from holdfast.holdout.phrasing import Phrased
from holdfast.holdout.prices import charged_parts, tally_fits, worst_charge, worst_tally
from holdfast.holdout.sessions import require_quota
from holdfast.holdout.usage import tally_use
from holdfast.planning.joint import JointPlan
from holdfast.protocols.budget import Charge

__all__ = ["Price", "price_of"]


@dataclass(frozen=True)
class Price:
    """What one question costs at worst, and whether that can still be paid.

    `cached`: it was answered before, and is free. `reason` says why it is not affordable. `doubts`
    are what is public and speaks against it: those that are `refused` need `anyway`.
    """

    verb: str
    part: str
    protocol: str
    price: float
    currency: str
    budget: float
    budget_left: float
    affordable: bool
    cached: bool
    reason: str | None
    grid: tuple[float, float, int] | None
    assumes: tuple[str, ...]
    doubts: tuple[Doubt, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        grid = self.grid
        shown = None if grid is None else dict(zip(("low", "high", "points"), grid, strict=True))
        doubts = [each.to_dict() for each in self.doubts]
        told = {"grid": shown, "assumes": list(self.assumes), "doubts": doubts}
        return {**asdict(self), **told}


def price_of(clerk: Clerk, asked: Phrased, asker: Asker | None) -> Price:
    """The price of a question, for this asker."""
    offer, question = asked.offer, asked.question
    with clerk.door.books() as books:
        price, currency, budget, left, reason = _cost(books, asked, asker)
    cached = clerk.door.is_known(question)
    points = question.grid
    return Price(
        question.verb,
        offer.name,
        offer.protocol,
        0.0 if cached else price,
        currency,
        budget,
        left,
        cached or reason is None,
        cached,
        None if cached else reason,
        None
        if points is None
        else (float(points.point(0)), float(points.point(points.size - 1)), points.size),
        question.assumptions,
        () if cached else clerk.doubts(asked.asked, question),
    )


def _cost(
    books: Books, asked: Phrased, asker: Asker | None
) -> tuple[float, str, float, float, str | None]:
    block_set, question = asked.offer.set, asked.question.to_dict()
    plan, book = block_set.plan, books[block_set.name]
    if isinstance(plan, JointPlan):
        assert isinstance(book, JointBook)
        worst = [worst_charge(plan, question, part) for part in charged_parts(plan, question)]
        price = sum((each.price for each in worst), start=Fraction(0))
        reason = _refusal(lambda: _hold_all(book, worst, asker))
        return float(price), "stability", plan.budget, book.account.left, reason
    assert isinstance(book, TallyBook)
    used, budget, currency = tally_use(block_set, book.tally or {})
    if not tally_fits(plan, book.tally, question):
        return 0.0, currency, budget, budget - used, "The plan has nothing left for it."
    body = {"tally": written_tally(worst_tally(plan, book.tally, question))}
    reason = None if asker is None else _refusal(lambda: require_quota(book, asker, body))
    return float(book.share_of(body)) * budget, currency, budget, budget - used, reason


def _hold_all(book: JointBook, worst: list[Charge], asker: Asker | None) -> None:
    account = book.account.copy()
    for each in worst:
        account.hold(each)
        if asker is not None:
            require_quota(book, asker, {"charge": each.to_dict()})


def _refusal(attempt: Callable[[], None]) -> str | None:
    """Why it cannot be paid; None if it can."""
    try:
        attempt()
    except Exhausted as wrong:
        return str(wrong)
    return None
