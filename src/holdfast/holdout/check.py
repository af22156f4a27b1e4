"""Check: everything that a holdout says of itself, computed again from what is on disk.

chain      every row follows the one before; nothing was changed, cut out or added
receipt    the ledger continues the history of the last receipt seen, and of one that you give
plan       every plan proves its promise again: coins, prices, failure classes, shares of β
prices     every reservation and every charge is what its question costs under the plan
budget     all charges together fit the budget, in the order in which they were made
answers    every answer was paid for before it was drawn, says what its question and the plan let it
           say, and no question has two of them; what weights learnt follows from what they had
           learnt before; a submission names its answer
data       the sealed files are those that were written
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.engines.source import open_store
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.holdout.books import Books
from holdfast.holdout.charter import Charter
from holdfast.holdout.ids import check_ids
from holdfast.holdout.leaderboard import submission_fits
from holdfast.holdout.rules import Wrong, check_key, check_learnt, check_recorded, check_reserved
from holdfast.holdout.said import check_said
from holdfast.ledger.ledger import Ledger, Receipt, Row, canonical, check_against
from holdfast.ledger.opening import has_ledger, open_ledger
from holdfast.ledger.witness import Witness
from holdfast.mechanisms.hypothesis import Hypothesis
from holdfast.planning.joint import JointPlan
from holdfast.protocols.promises import confidence_text
from holdfast.store.user_state import first_seen, state_folder

__all__ = ["Checked", "Finding", "check_holdout"]

_SKEW = timedelta(minutes=1)  # by which the clocks of several servers may differ
# What reading a row raises that is well chained and says something else than a row should.
_MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class Finding:
    """One thing that was checked."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Checked:
    """All findings, and the receipt of the ledger that they are about."""

    findings: tuple[Finding, ...]
    receipt: str

    @property
    def passed(self) -> bool:
        """Whether everything is as it should be."""
        return all(finding.passed for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"passed": self.passed, **asdict(self)}

    def __str__(self) -> str:
        marks = {True: "ok", False: "FAILED"}
        lines = [f"{marks[f.passed]:<8}{f.name:<10}{f.detail}" for f in self.findings]
        return "\n".join([*lines, f"{'':8}{'receipt':<10}{self.receipt}"])


def check_holdout(
    path: Path, receipt: str | None = None, *, progress: Callable[[str], None] | None = None
) -> Checked:
    """Check the holdout in a folder; with `receipt`, against that one too."""
    given = None if receipt is None else Receipt.parse(receipt)
    if not has_ledger(path):
        raise InvalidInput("path", str(path), "the folder of a holdout")
    findings: list[Finding] = []

    def run(name: str, step: Callable[[], str]) -> bool:
        if progress is not None:
            progress(name)
        try:
            findings.append(Finding(name, True, step()))
        except (HoldfastError, Wrong) as wrong:
            findings.append(Finding(name, False, str(wrong)))
        except _MALFORMED as wrong:
            findings.append(Finding(name, False, f"a row is not as Holdfast writes it: {wrong!r}"))
        return findings[-1].passed

    rows: list[Row] = []
    with open_ledger(path) as ledger:
        if run("chain", lambda: _chain(ledger, rows)):
            run("receipt", lambda: _receipts(ledger, given))
            made: list[Charter] = []
            if run("plan", lambda: _plan(ledger, rows[0], made)):
                (charter,) = made
                run("prices", lambda: _prices(charter, rows))
                run("budget", lambda: _budget(charter, rows))
                run("answers", lambda: _answers(charter, rows))
                run("data", lambda: _data(path, charter))
        return Checked(tuple(findings), str(ledger.head()) if findings[0].passed else "none")


def _chain(ledger: Ledger, rows: list[Row]) -> str:
    """Verify the chain, and read its rows."""
    number = ledger.verify().number
    rows += ledger.rows()
    return f"{number:,} rows, each linked to the one before{_set_back(rows)}"


def _set_back(rows: list[Row]) -> str:
    """A note of rows that are dated before an earlier one: that alone is no damage."""
    latest, first = datetime.min.replace(tzinfo=UTC), None
    count = 0
    for row in rows:
        at = datetime.fromisoformat(row.at)
        if latest - at > _SKEW:
            first = first or (row, latest)
            count += 1
        latest = max(latest, at)
    if first is None:
        return ""
    row, before = first
    told = f"row {row.number:,}, of {row.at[:10]}, follows one of {before.date().isoformat()}"
    more = f", and {count - 1:,} more are dated back" if count > 1 else ""
    return f"; a clock was set back: {told}{more}"


def _receipts(ledger: Ledger, given: Receipt | None) -> str:
    seen = Witness(state_folder() / "receipts").last(ledger.holdout)
    for receipt in (seen, given):
        if receipt is not None:
            check_against(ledger, receipt)
    if seen is None and given is None:
        return "none was seen here before: an older copy would not be noticed"
    return "the ledger continues " + ("the receipt given" if given else "the last receipt seen")


def _plan(ledger: Ledger, first: Row, made: list[Charter]) -> str:
    charter = Charter.from_dict(ledger.holdout, first.body)
    made.append(charter)
    names = ", ".join(name for each in charter.sets for name in each.protocols)
    sure = confidence_text(charter.confidence)
    return f"{names}: proved again, for all at once with confidence {sure}"


def _prices(charter: Charter, rows: list[Row]) -> str:
    sets = {each.name: each for each in charter.sets}
    books = Books(charter.sets)
    reserved: dict[int, Row] = {}
    before: dict[int, dict[str, int] | None] = {}
    for row in rows:
        if row.kind not in ("reserved", "recorded"):
            continue
        block_set = sets.get(row.body["set"])
        if block_set is None:
            raise Wrong(f"row {row.number} is about a set that the plan does not have")
        if row.kind == "reserved":
            check_reserved(block_set, row, books)
            reserved[row.number] = row
            if not isinstance(block_set.plan, JointPlan):
                before[row.number] = books.tally(block_set.name)
        else:
            check_recorded(block_set, row, reserved, before)
        books.read([row])
    return f"{len(reserved):,} reservations and their charges recomputed from their questions"


def _budget(charter: Charter, rows: list[Row]) -> str:
    books = Books(charter.sets)
    books.read(rows)  # refuses the first row that does not fit
    spent = []
    for each in charter.sets:
        if isinstance(each.plan, JointPlan):
            account = books.account(each.name)
            spent.append(f"{each.name} {account.spent:.4g} of {each.plan.budget:.4g}")
    return "; ".join(spent) + (" spent" if spent else "every tally follows from the one before")


def _answers(charter: Charter, rows: list[Row]) -> str:
    sets = {each.name: each for each in charter.sets}
    open_rows: dict[int, Row] = {}
    known: set[str] = set()
    hypotheses: dict[tuple[str, str], Hypothesis] = {}
    count = 0
    answered: dict[int, Row] = {}
    for row in rows:
        if row.kind == "reserved":
            check_key(row)
            open_rows[row.number] = row
        elif row.kind == "noted":
            _submitted(row, answered)
        elif row.kind == "recorded":
            check_key(row)
            _paid(row, open_rows)
            if "learnt" in row.body:
                check_learnt(sets[row.body["set"]], row, hypotheses)
            if row.body["answer"] is None:  # exhausted: nothing was said
                continue
            count += 1
            _asked_once(row, known)
            check_said(charter, sets[row.body["set"]], row)
            answered[row.number] = row
    lost = f"; {len(open_rows):,} reservations without one, charged in full" if open_rows else ""
    return f"{count:,}, each paid for first{lost}"


def _paid(row: Row, open_rows: dict[int, Row]) -> None:
    """Close the reservations that the row settles."""
    numbers = row.body["reserves"]
    paid = [open_rows.pop(number, None) for number in numbers]
    if not paid or None in paid:
        raise Wrong(f"the answer in row {row.number} was not paid for, or twice")
    if any(each is not None and each.question != row.question for each in paid):
        raise Wrong(f"row {row.number} is paid for by the reservation of another key")


def _submitted(row: Row, answered: dict[int, Row]) -> None:
    """A submission is a name for an answer that was recorded before, by the metric that it says."""
    note = row.body.get("submission")
    if note is not None and not submission_fits(row, answered.get(note["recorded"])):
        raise Wrong(f"row {row.number} is a submission without its answer")


def _asked_once(row: Row, known: set[str]) -> None:
    """Refuse a second answer, by its key, and by its words where they are the whole question."""
    question = row.body["question"]
    names = set() if row.question is None else {row.question}
    if question["estimator"]["engine"] == "sql":  # two callables may be described alike
        names.add(canonical(question))
    if names & known:
        raise Wrong(f"the question of row {row.number} has two answers")
    known |= names


def _data(path: Path, charter: Charter) -> str:
    store = open_store(path, charter.manifest)
    seen = first_seen(charter.identity, store.manifest)
    store.check_files()
    if charter.ids is not None:
        check_ids(path, charter.ids)
    public = "" if charter.ids is None else "; the ids of rows likewise"
    if seen is None:
        how = "fit the list beside them; this account has not seen them before"
    elif seen.made_here:
        how = "are as this account made them"
    else:
        how = f"are as this account first saw them, on {seen.date[:10]}; it did not make them"
    return f"the sealed files {how}{public}"
