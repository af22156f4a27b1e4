"""Check: everything that a holdout says of itself, computed again from what is on disk.

chain      every row follows the one before; nothing was changed, cut out or added
receipt    the ledger continues the history of the last receipt seen, and of one that you give
plan       every plan proves its promise again: coins, prices, failure classes, shares of β
prices     every reservation and every charge is what its question, and what was drawn, cost under
           the plan
budget     all charges together fit the budget, in the order in which they were made
answers    every answer was paid for before it was drawn, could have been drawn of its question, and
           no question has two of them; what weights learnt follows from what they had learnt
           before; a submission names its answer
data       the sealed files are those that were written
told       what was told of SQL, and of kept predictions of entries, is what the sealed rows tell,
           at the level of that time; of all others the ledger keeps only digests

Whoever can write to the ledger can chain rows of their own. They still have to be rows that a
holdout could have written: each question at its price, each refund earned by what was drawn. What
an answer says is in no row: it is computed from the question and from what was drawn (records.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import NoneType
from typing import Any

from holdfast.engines.source import Engines, open_engines, open_store
from holdfast.engines.sql.estimator import sql_estimator, sql_term
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.holdout.answering import found_by
from holdfast.holdout.leaderboard import is_score, is_told, submission_fits
from holdfast.holdout.questions import (
    Estimand,
    estimand_of_block,
    estimand_of_rows,
    question_key,
)
from holdfast.holdout.records import SHAPE, answer_in, can_be_empty
from holdfast.holdout.scoring import Scorers, kept_score, unscored
from holdfast.holdout.spec import HoldoutSpec, chosen_entropy
from holdfast.holdout.state import HoldoutState
from holdfast.holdout.submissions import Kept, check_ids
from holdfast.ledger.ledger import Ledger, Receipt, Row, canonical, check_against
from holdfast.ledger.opening import has_ledger, open_ledger
from holdfast.ledger.witness import Witness
from holdfast.protocols.answers import AT_SHARES, READINGS, confidence_text
from holdfast.protocols.base import PastTold, Protocol, Question, Steps, paid
from holdfast.protocols.means import checked_bounds
from holdfast.protocols.plans import Account, Charge
from holdfast.protocols.shapes import BoundedMean
from holdfast.protocols.source import UNIT, is_within
from holdfast.protocols.told import Expects
from holdfast.store.blocks import BlockStore
from holdfast.store.user_state import first_seen, state_folder

__all__ = ["Checked", "Finding", "Wrong", "check_holdout"]


class Wrong(Exception):
    """Something does not add up; the message says what."""


def _asked(spec: HoldoutSpec, row: Row) -> tuple[Protocol[Any], Question]:
    """Who answers the question of a row, and the question."""
    if row.body["set"] not in spec.by_name:
        raise Wrong(f"row {row.number} is about a set that the plan does not have")
    question = Question.from_facts(row.body["question"])
    if question.facts != row.body["question"]:
        raise Wrong(f"row {row.number} asks a question in another way than Holdfast writes it")
    if question.part not in spec.by_name[row.body["set"]].plan.names:
        raise Wrong(f"row {row.number} asks a part that its set does not have")
    protocol = spec.protocol_of(row.body["set"], question)
    protocol.admit(question)
    if not _is_asked(question) or set(row.body) - _BODY[row.kind]:
        raise Wrong(f"row {row.number} has words that its question does not have")
    return protocol, question


_BODY = {
    "reserved": {"set", "question", "charge", "asker"},
    "recorded": {
        *("set", "question", "reserves", "charges", "drawn", "left"),
        *("refusals", "empty", "assumes", "asker"),
    },
}
_PAID = {"reserves", "charges", "left", "refusals", "empty"}  # of what is told nothing is
_TOLD = ("guess", "error", "precise", "share", "range")
_SCORE = (*_TOLD, "metric")
_WORDS = {
    "ask": ("grid", "shape", "guess"),
    "interval": ("grid", "guess"),
    "mean": ("grid", *_TOLD),
    "verify": ("guess", "tolerance", "claim"),
    "correct": ("guess", "grid", "shape"),
    "score": _SCORE,
    "compare": (*_SCORE, "margin", "candidates", "classes"),
    "gate": (*_SCORE, "claim", "threshold", "tolerance", "candidates", "classes"),
    "best": ("metric", "share", "range", "candidates"),
    "scores": ("metric", "share", "range", "candidates", "guesses", "precise"),
}


def _is_asked(question: Question) -> bool:
    """Whether it has the words of its verb, each in the one way in which it is written."""
    words = {*question.facts} - {"verb", "part", "estimator", "limits"}
    guess, near, ends = question.guess, question.tolerance, question.range
    guessed, several = question.verb in ("verify", "correct"), question.candidates
    pair = {"compare": (2,), "gate": (None, 2)}.get(question.verb, (several,))
    return (
        words <= {*_WORDS[question.verb]}
        and (guess is not None or not guessed)
        and several in pair
        and all(type(each) in (float, NoneType) for each in (guess, near, *(ends or ())))
        and (near is None or near >= 0)
        and (ends is None or checked_bounds(ends) == ends)
        and (question.limits is None or {*question.limits} == {"block_seconds", "memory"})
    )


def _check_key(row: Row, stratified: bool) -> None:
    """A question in SQL has the key that its words have; that of a callable nobody can compute."""
    question = row.body["question"]
    about = question["estimator"]
    if about["engine"] != "sql":
        if about["engine"] != "local":
            raise Wrong(f"row {row.number} asks an engine that there is not: {about['engine']!r}")
        return
    words = {name: about[name] for name in ("engine", "text", "where") if name in about}
    identity = f"sql mean {words}" if question["verb"] == "mean" else f"sql {words}"
    if stratified and question["verb"] == "mean":
        words["reading"] = AT_SHARES
    if words != about or row.question != question_key(question, identity):
        raise Wrong(f"row {row.number} has the key of another question")


def _check_reserved(protocol: Protocol[Any], question: Question, row: Row) -> None:
    """A reservation is one that its question makes."""
    held = Charge.from_dict(row.body["charge"])
    worst = protocol.worst(question)
    if held.part not in [each.part for each in worst]:
        raise Wrong(f"row {row.number} charges another part than its question asks")
    if held not in worst:
        raise Wrong(f"row {row.number} reserves another price than its question has")


def _check_charged(
    protocol: Protocol[Any], question: Question, row: Row, reserved: Mapping[int, Row]
) -> None:
    """An answer settles its own reservations, in order, at what the draw cost."""
    numbers, drawn = row.body["reserves"], row.body["drawn"]
    rows = [reserved[number] for number in numbers if number in reserved]
    if not rows or len(rows) != len(numbers) or sorted(set(numbers)) != numbers:
        raise Wrong(f"the answer in row {row.number} was not paid for, or twice")
    if any(each.body["question"] != row.body["question"] for each in rows):
        raise Wrong(f"row {row.number} is paid for by another question's reservation")
    if any(each.body.get("asker") != row.body.get("asker") for each in rows):
        raise Wrong(f"row {row.number} is paid for by another asker's reservation")
    due = protocol.given_back(question) if drawn is None else protocol.charges(question, drawn)
    if [Charge.from_dict(each) for each in row.body["charges"]] != list(due):
        raise Wrong(f"row {row.number} charges another price than what was drawn has")
    held, worst = [Charge.from_dict(each.body["charge"]) for each in rows], protocol.worst(question)
    wanted = [*worst[: len(held)], *[worst[-1]] * (len(held) - len(worst))]
    if held != wanted or len(held) != len(due):
        raise Wrong(f"row {row.number} is not charged to the parts that answer it")
    place = row.body["set"], question.part  # other parts of the set may answer meanwhile
    if protocol.one_at_a_time and numbers[-1] != max(
        number
        for number, each in reserved.items()
        if (each.body["set"], each.body["question"]["part"]) == place
    ):
        raise Wrong(f"row {row.number} goes back behind a later question")


def _check_left(protocol: Protocol[Any], row: Row, held: list[Charge], account: Account) -> None:
    """What was left is what the account had left, as of the last reservation."""
    charges = [Charge.from_dict(each) for each in row.body["charges"]]
    for worst, actual in zip(held, charges, strict=True):
        account.settle(worst, actual)
    due, left = paid(account, protocol.part, charges), row.body["left"]
    if type(left) is not float or not math.isclose(left, due.left, rel_tol=1e-9, abs_tol=1e-9):
        raise Wrong(f"row {row.number} says what its question cannot: left {left!r}")
    refusals = row.body.get("refusals")
    if type(refusals) is not type(due.refusals) or refusals != due.refusals:
        raise Wrong(f"row {row.number} says what its question cannot: {refusals!r} left")


def _check_shape(spec: HoldoutSpec, question: Question, row: Row) -> None:
    """A bar follows from a shape: that which the estimator has by its form, or one assumed."""
    about, assumes = question.about, row.body.get("assumes", [])
    if about["engine"] != "sql":
        return
    if type(assumes) is not list or {*assumes} - {SHAPE, "slots"}:
        raise Wrong(f"row {row.number} assumes what SQL needs not: {assumes!r}")
    if question.shape is not None and SHAPE not in assumes:
        with suppress(InvalidInput):  # with all its brackets it may be too long to be read
            manifest = spec.manifest
            sql = sql_estimator(about["text"], manifest.schema, about.get("where"))
            mean = sql.bounded_mean(manifest.one_row_units)
            if mean is None or question.shape != BoundedMean(*mean):
                raise Wrong(f"row {row.number} has a shape that its estimator has not")


def _check_answer(spec: HoldoutSpec, question: Question, row: Row) -> None:
    """What was drawn can have been drawn; what stands beside it is what it can be."""
    estimator, empty = question.about, row.body.get("empty")
    answer_in(spec, row, "", cached=False)  # says what is wrong with it
    _check_shape(spec, question, row)
    if empty is not None and not (
        can_be_empty(question, spec.manifest.schema)
        and [type(each) for each in empty] == [int, int]
        and 0 <= empty[0] <= empty[1]
    ):
        raise Wrong(f"row {row.number} says what its question cannot: empty {empty!r}")
    reading = estimator.get("reading")
    scored = estimator["engine"] == "local" and is_score(estimator["text"])
    if reading not in READINGS and (reading is not None or scored):
        raise Wrong(f"row {row.number} says what its question cannot: reading {reading!r}")
    if question.verb == "mean" and question.range is None and estimator["engine"] == "sql":
        with suppress(InvalidInput):  # with all its brackets it may be too long to be read
            term = sql_term(estimator["text"], spec.manifest.schema)
            if not is_within(term.range({}), UNIT):
                raise Wrong(f"row {row.number} is about a term that leaves [0, 1], and is not cut")


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
    path: Path,
    receipt: str | None = None,
    *,
    told: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Checked:
    """Check the holdout in a folder; with `receipt`, against that one too.

    To find what was `told` again takes as long as it took to answer.
    """
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
            made: list[HoldoutSpec] = []
            if run("plan", lambda: _plan(ledger, rows[0], made)):
                (spec,) = made
                run("prices", lambda: _prices(spec, rows))
                run("budget", lambda: _budget(spec, rows))
                run("answers", lambda: _answers(spec, rows))
                whole = run("data", lambda: _data(path, spec))
                if told and whole and spec.has_told:
                    run("told", lambda: _told(path, spec, rows))
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


def _plan(ledger: Ledger, first: Row, made: list[HoldoutSpec]) -> str:
    spec = HoldoutSpec.from_dict(ledger.holdout, first.body)
    made.append(spec)
    names = ", ".join(part.name for _, part in spec.parts)
    sure = confidence_text(spec.confidence)
    return f"{names}: proved again, for all at once with confidence {sure}"


def _prices(spec: HoldoutSpec, rows: list[Row]) -> str:
    reserved: dict[int, Row] = {}
    for row in rows:
        if row.kind not in ("reserved", "recorded"):
            continue
        protocol, question = _asked(spec, row)
        if protocol.told:
            if row.kind == "reserved" or _PAID & {*row.body}:
                raise Wrong(f"row {row.number} reserves what is told")
        elif row.kind == "reserved":
            _check_reserved(protocol, question, row)
            reserved[row.number] = row
        else:
            _check_charged(protocol, question, row, reserved)
    if not reserved:
        return "nothing was reserved"
    return f"{len(reserved):,} reservations and their charges recomputed from their questions"


def _budget(spec: HoldoutSpec, rows: list[Row]) -> str:
    state = HoldoutState(spec.sets)
    state.read(rows)  # refuses the first row that does not fit
    spent = []
    for each in spec.sets:
        found = state.sets[each.name]
        if found.past is not None:
            spent.append(
                f"{each.name} {found.past.nats:.4g} nats in {found.past.answers:,} answers"
            )
            continue
        used, budget, _ = each.plan.use(found.account)
        spent.append(f"{each.name} {used:.4g} of {budget:.4g} spent")
    return "; ".join(spent)


def _answers(spec: HoldoutSpec, rows: list[Row]) -> str:
    open_rows: dict[int, Row] = {}
    known: set[str] = set()
    state = HoldoutState(spec.sets)
    count = 0
    answered: dict[int, Row] = {}
    accounts: dict[int, tuple[Charge, Account]] = {}
    for row in rows:
        if row.kind == "reserved":
            _check_key(row, spec.split == "stratified")
            open_rows[row.number] = row
        elif row.kind == "noted":
            _submitted(row, answered)
        elif row.kind == "recorded":
            _check_key(row, spec.split == "stratified")
            protocol, question = _asked(spec, row)
            if protocol.told:
                count += 1
                _asked_once(row, known)
                try:
                    protocol.check(question, row.body["drawn"], (state.sets[row.body["set"]].past,))
                except ValueError as wrong:
                    raise Wrong(f"row {row.number}: {wrong}") from wrong
                _check_answer(spec, question, row)
                answered[row.number] = row
                state.read([row])
                continue
            _paid(row, open_rows)
            held = [accounts.pop(number) for number in row.body["reserves"]]
            _check_left(protocol, row, [worst for worst, _ in held], held[-1][1])
            if row.body["drawn"] is not None:  # else it was exhausted: nothing was said
                count += 1
                _asked_once(row, known)
                place = (row.body["set"], question.part)
                try:
                    protocol.check(question, row.body["drawn"], state.lessons.get(place, ()))
                except ValueError as wrong:
                    raise Wrong(f"row {row.number}: {wrong}") from wrong
                _check_answer(spec, question, row)
                answered[row.number] = row
        state.read([row])
        if row.kind == "reserved":
            account = state.sets[row.body["set"]].account.copy()
            accounts[row.number] = Charge.from_dict(row.body["charge"]), account
    lost = f"; {len(open_rows):,} reservations without one, charged in full" if open_rows else ""
    reserved = any(row.kind == "reserved" for row in rows)
    return f"{count:,}, each {'paid for first' if reserved else 'recorded in order'}{lost}"


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


def _data(path: Path, spec: HoldoutSpec) -> str:
    store = open_store(path, spec.manifest)
    seen = first_seen(spec.identity, store.manifest)
    store.check_files()
    if spec.ids is not None:
        check_ids(path, spec.ids)
    public = "" if spec.ids is None else "; the ids of rows likewise"
    if seen is None:
        how = "fit the list beside them; this account has not seen them before"
    elif seen.made_here:
        how = "are as this account made them"
    else:
        how = f"are as this account first saw them, on {seen.date[:10]}; it did not make them"
    return f"the sealed files {how}{public}"


def _told(path: Path, spec: HoldoutSpec, rows: list[Row]) -> str:
    """Find every letter again that follows from the sealed rows and from the ledger."""
    store, state = open_store(path, spec.manifest), HoldoutState(spec.sets)
    store.ranges, store.values = spec.ranges, spec.values
    again = others = 0
    entries = _Entries(spec, store, rows)
    with closing(open_engines(store, None)) as engines:
        for row in rows:
            past = state.sets[row.body["set"]].past if row.kind == "recorded" else None
            if past is not None:
                steps = _steps(spec, engines, row, entries)
                if steps is None:
                    others += 1
                else:
                    again += 1
                    _retold(row, steps, (past, Expects(**row.body["drawn"]["expects"])))
            state.read([row])
    whose = "its" if others == 1 else "their"
    left = f"; {others:,} cannot be ({whose} predictions or functions are not kept)"
    why = "damaged, or kept by another version of Holdfast or NumPy"
    lost = f"; {entries.lost:,} files of predictions not read ({why})"
    left = f"{left if others else ''}{lost if entries.lost else ''}"
    plural = "answer" if again == 1 else "answers"
    return f"{again:,} {plural} found again in the sealed rows{left}"


def _steps(spec: HoldoutSpec, engines: Engines, row: Row, entries: _Entries) -> Steps | None:
    """A question asked again, up to where the past decides; None where its words are not all."""
    protocol, question = _asked(spec, row)
    about, manifest, ranges = question.about, spec.manifest, spec.ranges
    text, where = about["text"], about.get("where")
    found: Sequence[Estimand] | None
    try:
        if about["engine"] != "sql":
            found = entries.asked(question, row)
        elif question.verb == "mean":
            found = [estimand_of_rows(text, manifest, ranges, where, None, question.range)]
        else:
            found = [estimand_of_block(text, manifest, ranges, where, {})]
    except InvalidInput:  # with all its brackets it may be too long to be read
        return None
    if found is None:
        return None
    steps = protocol.ask(question, chosen_entropy(None, 0), ())
    step = next(steps)
    while not isinstance(step, PastTold):
        step = steps.send(found_by(step, spec.by_name[row.body["set"]], found, engines))
    return steps


class _Entries:
    """The predictions of entries that are kept, and the questions that were about them."""

    def __init__(self, spec: HoldoutSpec, store: BlockStore, rows: list[Row]) -> None:
        self._spec, self._store, self._kept = spec, store, Kept(store.folder)
        self.lost = 0
        keys = {*self._kept.files}
        self._scored = {  # by what their rows say of them
            row.question: row
            for row in rows
            if row.kind == "recorded" and row.question in keys and is_told(row)
        }
        self._identities: dict[str, str] = {}
        for key in [*self._scored]:
            made = self._estimand(key)
            if made is not None:
                self._identities[key] = str(made.identity)

    def asked(self, question: Question, row: Row) -> list[Estimand] | None:
        """What a score, a gate or a comparison was about, if all of that is kept."""
        if question.verb not in ("score", "gate", "compare"):
            return None
        firsts = [
            key
            for key in self._identities
            if self._scored[key].body["question"]["estimator"]["text"] == question.about["text"]
        ]
        for one in firsts:
            for other in [None] if question.candidates is None else self._identities:
                keys = [one] if other is None else [one, other]
                names = [self._identities[key] for key in keys]
                identity = names[0] if other is None else canonical(names)
                if question_key(row.body["question"], identity) == row.question:
                    found = [self._estimand(key) for key in keys]
                    return [each for each in found if each is not None]
        return None

    def _estimand(self, key: str) -> Estimand | None:
        """What is kept for this question; None if it is not what was scored."""
        row, spec = self._scored[key], self._spec
        question = Question.from_facts(row.body["question"])
        try:
            scorer = Scorers().find(question.metric)
            about = unscored(spec, scorer, question.about.get("target"))
        except InvalidInput:  # a metric of the custodian's
            return None
        score = kept_score(row, about, self._kept, self._store)
        if isinstance(score, str):
            self.lost += 1
            return None
        term, ranges = score.term(), spec.ranges
        return estimand_of_rows(term, spec.manifest, ranges, None, None, question.range)


def _retold(row: Row, steps: Steps, known: tuple[Any, Expects]) -> None:
    try:
        steps.send(known)
    except StopIteration as ended:
        if ended.value["letter"] == row.body["drawn"]["letter"]:
            return
    raise Wrong(f"row {row.number} tells what the sealed rows do not")
