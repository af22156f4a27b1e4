"""Status: what is spent, what is left, and what it still buys."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.holdout.books import Books, JointBook
from holdfast.holdout.spec import BlockSet, Charter, protocol_of
from holdfast.holdout.usage import tally_use
from holdfast.ledger.ledger import Receipt
from holdfast.notebook import html_bar, html_table
from holdfast.planning.joint import JointPlan
from holdfast.planning.plan import ASSUMPTIONS
from holdfast.protocols.answers import confidence_text

__all__ = ["PartStatus", "SetStatus", "Status", "set_status", "status_of"]


@dataclass(frozen=True)
class PartStatus:
    """What one part could still answer, were all the rest of the budget spent on it."""

    name: str
    protocol: str
    planned: int
    questions_left: int
    refusals_left: int | None
    still_possible: str
    """What can still be asked of it, in words: perhaps on a smaller grid; empty if nothing."""


@dataclass(frozen=True)
class SetStatus:
    """One set: its blocks, its budget and its parts. `spent` and `budget` are in one currency."""

    name: str
    blocks: int
    currency: str
    budget: float
    spent: float
    unsettled: int
    parts: tuple[PartStatus, ...]

    @property
    def used(self) -> float:
        """The share of the budget that is spent."""
        return min(1.0, self.spent / self.budget)


@dataclass(frozen=True)
class Status:
    """A holdout at one moment."""

    name: str
    holdout: str
    path: str
    certified: bool
    confidence: float
    units: int
    blocks: int
    block_units: int
    open_units: int
    leftover_units: int
    answers: int
    sets: tuple[SetStatus, ...]
    receipt: str
    new_budget: str | None
    earlier: int

    @property
    def budget_reason(self) -> str | None:
        """Why these data got a budget of their own, and whether that was needed as far as known."""
        if self.new_budget is None:
            return None
        known = f"earlier holdouts of these data known here: {self.earlier or 'none'}"
        return f"a new budget, because: {self.new_budget} ({known})"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text."""
        return {**asdict(self), "assumes": ASSUMPTIONS}

    def _repr_html_(self) -> str:
        items = {
            "answers": f"{self.answers:,}, for all at once with confidence "
            f"{confidence_text(self.confidence)}",
            "blocks": f"{self.blocks:,} of {self.block_units:,} units",
        }
        for each in self.sets:
            rest = "; ".join(f"{p.name} {p.questions_left:,} more" for p in each.parts)
            items[each.name] = f"{each.used:.1%} spent: {rest}"
        bars = "".join(html_bar(each.used) for each in self.sets)
        return html_table(self.name, {**items, "receipt": self.receipt}) + bars

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.answers:,} questions answered, for all at once with confidence "
            f"{confidence_text(self.confidence)}"
            + ("" if self.certified else " (seeded: nothing is certified)"),
            f"  {self.blocks:,} blocks of {self.block_units:,} units, {self.open_units:,} open, "
            f"{self.leftover_units:,} left over",
        ]
        for each in self.sets:
            lines.append(
                f"  {each.name:<14}{each.used:7.1%} of the budget is spent "
                f"({each.spent:.4g} of {each.budget:.4g} {each.currency})"
            )
            for part in each.parts:
                refusals = part.refusals_left
                more = "" if refusals is None else f", {refusals:,} refusals"
                rest = (
                    f"{part.questions_left:,} more questions{more}, were all the rest spent on them"
                )
                if part.still_possible and not part.questions_left:
                    rest = f"still possible: {part.still_possible}"
                lines.append(f"    {part.name:<14}{rest}")
            if each.unsettled:
                lines.append(f"    {each.unsettled:,} reserved and not recorded: charged in full")
        if self.budget_reason is not None:
            lines.append(f"  {self.budget_reason}")
        return "\n".join([*lines, f"  assumes {ASSUMPTIONS}", f"  receipt {self.receipt}"])


def status_of(charter: Charter, path: Path, books: Books, head: Receipt) -> Status:
    """The status that the books show."""
    manifest = charter.manifest
    return Status(
        name=charter.name,
        holdout=charter.identity,
        path=str(path),
        certified=charter.seed is None,
        confidence=charter.confidence,
        units=manifest.units,
        blocks=manifest.blocks,
        block_units=manifest.block_units,
        open_units=manifest.open_units,
        leftover_units=manifest.leftover_units,
        answers=books.answers,
        sets=tuple(set_status(each, books) for each in charter.sets),
        receipt=str(head),
        new_budget=charter.new_budget,
        earlier=len(charter.earlier),
    )


def set_status(block_set: BlockSet, books: Books) -> SetStatus:
    """The status of one set."""
    plan = block_set.plan
    book = books[block_set.name]
    if isinstance(plan, JointPlan):
        assert isinstance(book, JointBook)
        buys = book.account.buys()
        parts = tuple(
            PartStatus(
                part.name,
                part.protocol,
                part.queries,
                buys[part.name].questions,
                buys[part.name].refusals,
                book.account.still_possible(part),
            )
            for part in plan.parts
        )
        spent, budget, currency = book.account.spent, plan.budget, "stability"
    else:
        used, budget, currency = tally_use(block_set, books.tally(block_set.name) or {})
        spent = float(used)
        left = max(0, int(budget - used))
        refusals = left if currency == "refusals" else None
        queries = int(getattr(plan, "queries", 0))
        questions = queries - (books.tally(block_set.name) or {}).get("asked", 0)
        count = left if currency == "questions" else (questions if left else 0)
        (name,) = block_set.protocols
        possible = f"{name} ({count:,})" if count else ""
        parts = (PartStatus(name, protocol_of(plan), queries, count, refusals, possible),)
    return SetStatus(
        block_set.name, block_set.blocks, currency, budget, spent, book.unsettled, parts
    )
