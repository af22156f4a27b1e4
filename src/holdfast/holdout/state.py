"""The state of a holdout: a pure fold over the rows of its ledger, kept with the ledger itself.

The same rows give the same state, whoever reads them: the process that asks, another one that takes
over after a crash, and `holdfast check`. A reservation without a record counts at its worst case.

    reserved   {set, question, charge, asker?}
    recorded   {set, question, reserves: [row numbers], charges, drawn, left, …}   (records.py)
    noted      {access: {…}}  (tokens.py)  or another note, which changes no account

What is drawn is null where a question was exhausted on the way: its row gives back what it can.
"""

from __future__ import annotations

import errno
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from holdfast.concurrency import BatchedTask, Batcher, Renewed
from holdfast.errors import Damaged, Exhausted, HoldfastError, InvalidInput
from holdfast.holdout.spec import BlockSet, HoldoutSpec
from holdfast.holdout.tokens import Asker, Tokens
from holdfast.ledger.ledger import Ledger, Receipt, Row, Transaction
from holdfast.ledger.witness import Witness
from holdfast.protocols.answers import (
    ASSUMPTIONS,
    TOLD_ASSUMES,
    confidence_text,
    html_bar,
    html_table,
)
from holdfast.protocols.base import Question
from holdfast.protocols.plans import Account, Charge, Part, SetPlan
from holdfast.protocols.told import bars_table, forecast, law_of

__all__ = [
    "HoldoutState",
    "Journal",
    "PartStatus",
    "SetState",
    "SetStatus",
    "Status",
    "can_be_asked",
    "questions_left",
    "set_status",
    "status_of",
]

_SLACK = Fraction(1, 10**9)  # a tenth of the budget pays for a tenth of its questions
_GRIDS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class SetState:
    """The account of one set, and what each asker has used of it."""

    def __init__(self, plan: SetPlan) -> None:
        self.account = Account(plan)
        self._open: dict[int, tuple[Charge, str | None]] = {}
        self._accounts: dict[str, Account] = {}  # as if each asker had a budget of their own
        self.past = plan.past()

    def reserve(self, number: int, worst: Charge, asker: str | None) -> None:
        """Hold a charge, or raise `Exhausted` and change nothing."""
        self.account.hold(worst)
        self._open[number] = worst, asker
        if asker is not None:
            self._account_of(asker).add(worst)

    def record(self, body: Mapping[str, Any]) -> None:
        """Settle what a row's question has reserved, or count what it told."""
        if self.past is not None:
            question = Question.from_facts(body["question"])
            self.past.tell(question, body["drawn"], body.get("asker"))
            return
        for number, data in zip(body["reserves"], body["charges"], strict=True):
            (worst, asker), actual = self._open.pop(number), Charge.from_dict(data)
            self.account.settle(worst, actual)
            if asker is not None:
                self._accounts[asker].settle(worst, actual)

    def used_by(self, asker: str) -> Fraction:
        """The share of the budget that an asker has used: of what they have used most of."""
        account = self._accounts.get(asker)
        return Fraction(0) if account is None else account.share

    def require_quota(self, asker: Asker | None, worst: Charge) -> None:
        """Raise `Exhausted` if the asker's quota does not cover this reservation too."""
        if asker is None or asker.quota is None:
            return
        account, quota = self._account_of(asker.id).copy(), Fraction(repr(asker.quota))
        used = account.share
        account.add(worst)
        if account.share > quota + _SLACK:
            remedy = "Ask the custodian for a larger quota. Questions asked before are free."
            needed = f"{float(account.share - used):.4g} of the budget"
            raise Exhausted("Your quota", needed, f"{max(0.0, float(quota - used)):.4g}", remedy)

    def require_nats(self, asker: Asker | None, batch: float = 0.0) -> None:
        """Raise `Exhausted` if the asker was told all the nats of their quota.

        One answer may go beyond it; a batch that may tell so many is refused if they are not left.
        """
        if asker is None or asker.nats is None:
            return
        left = asker.nats - self.told_to(asker.id)
        if left <= 0 or batch > left:
            remedy = "Ask the custodian for a larger quota. Questions asked before are free."
            if left > 0:
                remedy = "Ask one by one, or the custodian for a larger quota. Nothing was told."
            needed = f"up to {batch:.2g} nats" if left > 0 else "more nats"
            rest = f"{left:.3g}" if left > 0 else "none"
            raise Exhausted("Your quota", needed, f"{rest} of {asker.nats:g}", remedy)

    def told_to(self, asker: str) -> float:
        """The nats that an asker was told."""
        return 0.0 if self.past is None else float(self.past.askers.get(asker, 0.0))

    def _account_of(self, asker: str) -> Account:
        if asker not in self._accounts:
            self._accounts[asker] = Account(self.account.plan)
        return self._accounts[asker]

    @property
    def unsettled(self) -> int:
        """Reservations without a record: questions in flight, or lost in a crash."""
        return len(self._open)


class HoldoutState:
    """The state of every set, up to some row of the ledger."""

    def __init__(self, sets: Iterable[BlockSet]) -> None:
        self.sets = {each.name: SetState(each.plan) for each in sets}
        self.number = 1  # the last row that was read: the first one has told of the sets
        self.answers = 0
        self.tokens = Tokens()
        # What was drawn of parts that learn, by set and part.
        self.lessons: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def read(self, rows: Iterable[Row]) -> None:
        """Go on to later rows, each of which must be affordable and fit what came before."""
        for row in rows:
            body = row.body
            try:
                if row.kind == "reserved":
                    worst = Charge.from_dict(body["charge"])
                    self.sets[body["set"]].reserve(row.number, worst, body.get("asker"))
                elif row.kind == "recorded":
                    self.sets[body["set"]].record(body)
                    drawn = body["drawn"]
                    self.answers += drawn is not None
                    if drawn is not None and "steps" in drawn:
                        place = (body["set"], body["question"]["part"])
                        self.lessons.setdefault(place, []).append(drawn)
                elif row.kind == "noted" and "access" in body:
                    self.tokens.read(row)
            except (HoldfastError, KeyError, TypeError, ValueError) as wrong:
                remedy = "It was not written by this version of Holdfast, or not by Holdfast."
                what = f"Row {row.number} of the ledger"
                raise Damaged(what, "a charge that fits the plan", str(wrong), remedy) from wrong
            self.number = row.number
            self.tokens.latest = max(self.tokens.latest, row.at)


# The journal: a ledger, and the state that its rows add up to.
#
# What is read or written at the same time shares a transaction: nothing is acknowledged before the
# commit that holds it, and what is wrong with one of them is its own. Nothing of a ledger is shown
# before its head is witnessed: otherwise an older copy would be accepted after somebody saw what it
# lacks.


Work = Callable[[Transaction, HoldoutState], Any]
T = TypeVar("T")
_AT_ONCE = 500


class Journal(Renewed):
    """The ledger of one holdout, and its state."""

    def __init__(self, ledger: Ledger, witness: Witness, sets: tuple[BlockSet, ...]) -> None:
        self.ledger, self.witness = ledger, witness
        self._sets = sets
        self._works: Batcher[Work, Any] = Batcher()
        super().__init__()

    def _renew(self) -> None:
        self._state = HoldoutState(self._sets)
        self._lock = threading.RLock()

    def is_known(self, key: str | None) -> bool:
        """Whether a question was answered before, so that it is free."""
        return key is not None and self.ledger.recorded(key) is not None

    def receipt(self, row: Row) -> Receipt:
        """The receipt of a row."""
        return Receipt(self.ledger.holdout, row.number, row.digest)

    def witnessed(self, row: Row) -> Receipt:
        """The receipt of a row, which may be shown from now on."""
        receipt = self.receipt(row)
        self.witness.see(receipt)
        return receipt

    def head(self) -> Receipt:
        """The receipt of the last row: whatever was read before may be shown."""
        head = self.ledger.head()
        self.witness.see(head)
        return head

    def pages(self, after: int, most: int | None = None) -> Iterator[Row]:
        """The rows after one, read some at a time: a long ledger is never all in memory.

        After one that is still to come, which a reader may name, there are none.
        """
        return islice(self._pages(after), most)

    def _pages(self, after: int) -> Iterator[Row]:
        while after < self.ledger.head().number:
            rows = self.ledger.rows(after, _AT_ONCE)
            yield from rows
            after = rows[-1].number

    @contextmanager
    def state(self) -> Iterator[HoldoutState]:
        """The state as of now, for whoever only reads."""
        with self._lock:  # not in the middle of a transaction, which may be undone
            state, number = self._state, self._state.number
        # Without the lock, for others read at the same time; the state may have gone on since.
        rows = self.ledger.rows(number)
        with self._lock:
            if self._state is not state:  # begun anew
                rows = self.ledger.rows(self._state.number)
            self._catch_up([row for row in rows if row.number > self._state.number])
            yield self._state

    def read(self, look: Callable[[HoldoutState], T]) -> T:
        """What is seen in the state as of now."""
        with self.state() as state:
            return look(state)

    def write(self, work: Callable[[Transaction, HoldoutState], T]) -> T:
        """What the work returns, when its rows are durable: with those of others, in one commit.

        It gets a transaction, with the state as of then, and keeps it up to date. What it raises
        undoes all that it did; `Exhausted` it raises before it has noted or appended anything. It
        may be done again, if the work of another thread has undone the transaction.
        """
        result: T = self._works.do(self._run, work)
        return result

    def _run(self, jobs: list[BatchedTask[Work, Any]]) -> None:
        """Settle all jobs in one transaction. Whoever undoes it is left out, and it is done again.

        Then the head is witnessed for all who have an answer in it: they need not wait for each
        other. Whatever is wrong with that, each will see for itself.
        """
        left = jobs
        while left:
            doing: BatchedTask[Work, Any] | None = None
            try:
                with self.writing() as (transaction, state):
                    answers = state.answers
                    for doing in left:
                        before = transaction.head
                        try:
                            doing.succeed(doing.task(transaction, state))
                        except Exhausted as refused:
                            if transaction.head is not before:
                                raise
                            doing.fail(refused)
                    doing = None  # what goes wrong from here on is nobody's work
            except BaseException as error:
                left = _undone(left, doing, error)
            else:
                if state.answers > answers:
                    with suppress(Exception):
                        self.witness.see(transaction.head)
                return

    @contextmanager
    def writing(self) -> Iterator[tuple[Transaction, HoldoutState]]:
        """A transaction of one's own, with the state as of its start. An exception undoes both."""
        with self._lock:
            head = None
            try:
                with self.ledger.begin() as transaction:
                    self._catch_up(transaction.rows(self._state.number))
                    head = transaction.head
                    yield transaction, self._state
            except BaseException as error:
                # Refused before anything was noted: no need to read all rows again. Otherwise
                # what was noted may not have happened.
                if not (isinstance(error, Exhausted) and transaction.head is head):
                    self._state = HoldoutState(self._sets)
                raise

    def _catch_up(self, rows: list[Row]) -> None:
        try:
            self._state.read(rows)
        except BaseException:
            self._state = HoldoutState(self._sets)
            raise


def _undone(
    jobs: list[BatchedTask[Work, Any]], doing: BatchedTask[Work, Any] | None, error: BaseException
) -> list[BatchedTask[Work, Any]]:
    """Those of an undone transaction that can be tried again: all but whose work has undone it."""
    for job in jobs:
        job.reopen()
    if not isinstance(error, Exception):  # an interruption of the thread that leads
        if doing is None:  # perhaps after the commit: nothing may be done again
            message = "It was interrupted; ask again, with the same key"
            for job in jobs:
                job.fail(InterruptedError(errno.EINTR, message))
        raise error
    for job in jobs if doing is None else [doing]:
        job.fail(error)
    return [job for job in jobs if not job.settled]


# Status: what is spent, what is left, and what it still buys.


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
class ToldStatus:
    """What was told over the rows of a set, and what bars to expect from now on."""

    rows: int
    answers: int
    surprises: int
    nats: float
    level: float
    bars: tuple[dict[str, Any], ...]
    """Half-widths about a share near 0.9, by how many more questions and how many surprises."""
    fresh_labels: bool | None = None
    """Whether bars and level are of scores of these rows, fresh labels, or of claims about fresh
    rows; None: nothing was asked, and they are of what comes first."""
    further: float = 0.0
    """By how many nats the other kind of claims is judged further."""

    @property
    def kind(self) -> str:
        """What the bars are about, in words; empty before anything was asked."""
        return "" if self.fresh_labels is None else _KINDS[not self.fresh_labels]

    @property
    def other(self) -> str:
        """How claims of the other kind are judged, in words; empty where there is no difference."""
        if self.fresh_labels is None or abs(self.further) < 0.01:
            return ""
        bars = "further, so their bars are wider" if self.further > 0 else "less far"
        return f"{_KINDS[self.fresh_labels]} are judged {abs(self.further):.1f} nats {bars}"

    def lines(self) -> list[str]:
        """For people."""
        surprised = f"{self.surprises:,} surprise{'' if self.surprises == 1 else 's'}"
        said = f"{self.answers:,} answers on {self.rows:,} sealed units, {surprised} among them"
        return [
            f"{said}: told {self.nats:.3g} nats so far",
            "bars to expect about a share near 0.9 that you guess about right"
            f"{f' ({self.kind})' if self.kind else ''}:",
            *bars_table(self.bars, "questions more"),
            *([f"  {self.other}"] if self.other else []),
        ]


_KINDS = ("scores of these rows, fresh labels", "claims about fresh rows")


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
    told: ToldStatus | None = None

    @property
    def used(self) -> float:
        """The share of the budget that is spent; 0 where nothing is ever used up."""
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

    @property
    def assumes(self) -> str:
        """What every answer takes for granted."""
        told = [each.told is not None for each in self.sets]
        both = [ASSUMPTIONS] * (not all(told)) + [TOLD_ASSUMES] * any(told)
        return "; ".join(both)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text; a budget that nothing uses up is None."""
        data = {**asdict(self), "assumes": self.assumes}
        for each in data["sets"]:
            each["budget"] = each["budget"] if math.isfinite(each["budget"]) else None
        return data

    def _repr_html_(self) -> str:
        items = {
            "answers": f"{self.answers:,}, for all at once with confidence "
            f"{confidence_text(self.confidence)}",
            "blocks": f"{self.blocks:,} of {self.block_units:,} units",
        }
        for each in self.sets:
            rest = "; ".join(f"{p.name} {p.questions_left:,} more" for p in each.parts)
            items[each.name] = f"{each.used:.1%} spent: {rest}"
            if each.told is not None:
                items[each.name] = "; ".join(each.told.lines())
        bars = "".join(html_bar(each.used) for each in self.sets)
        return html_table(self.name, {**items, "receipt": self.receipt}) + bars

    def head(self) -> list[str]:
        """Its sizes, and what was told, for people."""
        sizes = f"{self.blocks:,} blocks of {self.block_units:,} units"
        if all(each.told is not None for each in self.sets):  # blocks are of no interest then
            sizes = f"{self.blocks * self.block_units:,} units are sealed"
        lines = [
            f"{self.name}: {self.answers:,} questions answered, for all at once with confidence "
            f"{confidence_text(self.confidence)}"
            + ("" if self.certified else " (seeded: nothing is certified)"),
            f"  {sizes}, {self.open_units:,} open, {self.leftover_units:,} left over",
        ]
        for each in self.sets:
            lines += [] if each.told is None else [f"  {line}" for line in each.told.lines()]
        return lines

    def foot(self) -> list[str]:
        """What it takes for granted, and the receipt."""
        reason = [] if self.budget_reason is None else [f"  {self.budget_reason}"]
        return [*reason, f"  assumes {self.assumes}", f"  receipt {self.receipt}"]

    def __str__(self) -> str:
        lines = self.head()
        for each in self.sets:
            if each.told is not None:
                continue
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
        return "\n".join([*lines, *self.foot()])


def status_of(spec: HoldoutSpec, path: Path, state: HoldoutState, head: Receipt) -> Status:
    """The status of a holdout in this state."""
    manifest = spec.manifest
    return Status(
        name=spec.name,
        holdout=spec.identity,
        path=str(path),
        certified=spec.seed is None,
        confidence=spec.confidence,
        units=manifest.units,
        blocks=manifest.blocks,
        block_units=manifest.block_units,
        open_units=manifest.open_units,
        leftover_units=manifest.leftover_units,
        answers=state.answers,
        sets=tuple(set_status(each, state, spec) for each in spec.sets),
        receipt=str(head),
        new_budget=spec.new_budget,
        earlier=len(spec.earlier),
    )


def set_status(block_set: BlockSet, state: HoldoutState, spec: HoldoutSpec) -> SetStatus:
    """The status of one set. Bars are those of scores of predictions, if there were any."""
    found = state.sets[block_set.name]
    if found.past is not None:
        past, rows = found.past, block_set.blocks * spec.manifest.block_units
        surprises = past.history.confirmations.surprised + past.history.verdicts.surprised
        scores = law_of(spec.reading, spec.target)
        asked = [each for each in past.readings if each]  # of these rows, by target
        law = scores if scores in asked else (asked or past.readings or [scores])[0]
        other = "" if law else scores
        opened, queries = spec.manifest.open_units, block_set.plan.parts[0].queries
        bars = tuple(forecast(past, rows, queries, open_rows=opened, law=law))
        level = past.level_about(law)
        about = (law != "", past.level_about(other) - level) if past.readings else ()
        told = ToldStatus(rows, past.answers, surprises, past.nats, level, bars, *about)
        return SetStatus(block_set.name, block_set.blocks, "nats", math.inf, past.nats, 0, (), told)
    account, plan = found.account, block_set.plan
    parts = []
    for part in plan.parts:
        left = account.left_of(part)
        counts = part.queries, left.questions, left.refusals
        parts.append(PartStatus(part.name, part.protocol, *counts, account.still_possible(part)))
    spent, budget, currency = plan.use(account)
    used = float(spent), float(budget)
    return SetStatus(
        block_set.name, block_set.blocks, currency, used[1], used[0], found.unsettled, tuple(parts)
    )


def can_be_asked(spec: HoldoutSpec) -> dict[str, Any]:
    """The columns and their kinds, and for every verb the parts of the plan that answer it."""
    verbs = {verb: [each.part for _, each in able] for verb, able in spec.answerable.items()}
    # Whether anything comes of asking: gates are for scores, and may say nothing of a guess.
    verbs["verify"] = [part for part in verbs["verify"] if part.tells]
    return {
        "columns": [
            {
                "name": each.name,
                "kind": each.kind,
                "range": spec.ranges.get(each.name),
                "categories": spec.texts(each.name) if each.kind == "text" else None,
            }
            for each in spec.manifest.schema.columns
        ],
        "verbs": {verb: [part.name for part in found] for verb, found in verbs.items() if found},
        "target": spec.target,
        "labels": None if spec.labels is None else list(spec.labels),
        "ids": None if spec.ids is None else spec.ids.column,
    }


def questions_left(
    spec: HoldoutSpec,
    state: HoldoutState,
    protocol: str | None,
    queries: int | None,
    grid: int | None,
) -> dict[str, Any]:
    """How many more questions there are for each part, and on grids of other sizes.

    `fits` says whether so many more questions, on such a grid, can be paid for. Where it is what is
    told that counts there is no such part, and any number fits.
    """
    names = [part.name for _, part in spec.parts]
    if protocol is not None and protocol not in names:
        raise InvalidInput("protocol", protocol, f"one of {', '.join(names)}")
    sizes = sorted({*_GRIDS, *([] if grid is None else [grid])})
    parts: list[dict[str, Any]] = []
    for block_set in spec.sets:
        account = state.sets[block_set.name].account
        for status, part in zip(
            set_status(block_set, state, spec).parts,
            () if block_set.plan.past() else block_set.plan.parts,
            strict=True,
        ):
            parts.append({**asdict(status), "grids": _on_grids(account, part, sizes)})
    wanted = next((part for part in parts if protocol in (None, part["name"])), None)
    left = math.inf if wanted is None else wanted["questions_left"]
    if wanted is not None and grid is not None and wanted["grids"] is not None:
        left = next(int(e["questions_left"]) for e in wanted["grids"] if e["grid"] == grid)
    name = protocol if wanted is None else wanted["name"]
    return {
        "parts": parts,
        "asked_for": {"part": name, "queries": queries, "grid": grid},
        "fits": None if queries is None else queries <= left,
    }


def _on_grids(account: Account, part: Part, sizes: list[int]) -> list[dict[str, Any]] | None:
    """Prices and questions left on grids of these sizes, where they depend on the grid."""
    found = [(size, part.on_grid(account.plan.order, size)) for size in sizes]
    return [
        {
            "grid": size,
            "price": float(charge.price),
            "questions_left": account.searches_left(part, charge.looks, charge.price),
        }
        for size, charge in found
        if charge is not None
    ] or None
