"""Answers as the ledger keeps them: what was drawn, and all that follows from it.

    recorded   {set, question, reserves, charges, drawn, left, refusals?, empty?, assumes?, asker?}

A row holds codes and numbers. What an answer says is computed from the spec, the question and what
was drawn, whenever it is shown; so no row can say what its question and its plan do not let it say.
`left` and `refusals` are what was left then, `empty` how many open blocks have no value and how
many there are, `assumes` what is taken for granted about the estimator, as codes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.engines.python.admission import (
    ASSUMPTION,
    ASSUMPTION_ORDER,
    ASSUMPTION_ROWS,
    ASSUMPTION_SHARED,
)
from holdfast.engines.python.estimator import ASSUMPTION_PREDICTIONS
from holdfast.engines.sql.estimator import can_lack_value, sql_term
from holdfast.errors import Damaged
from holdfast.grids import Grid, IntegerGrid, LinearGrid
from holdfast.holdout.spec import HoldoutSpec
from holdfast.holdout.state import Journal
from holdfast.ledger.ledger import Row
from holdfast.protocols.answers import (
    Answer,
    Result,
    Verdict,
    in_full,
    unit_words,
    with_failures,
)
from holdfast.protocols.base import Drawn, Paid, Protocol, Question
from holdfast.protocols.plans import Charge
from holdfast.protocols.shapes import Shape
from holdfast.store.table import Schema

__all__ = [
    "SHAPE",
    "SLOTS",
    "answer_in",
    "answer_of",
    "assumed_codes",
    "audit_of",
    "can_be_empty",
    "claim_words",
    "empty_note",
    "empty_words",
    "marked",
    "row_facts",
    "transcript_of",
]

SLOTS = "the slot of time that an answer came in told nothing of the data"
_ASSUMED = {
    "blocks-apart": ASSUMPTION,
    "blocks-apart-in-one-process": ASSUMPTION_SHARED,
    "rows-apart": ASSUMPTION_ROWS,
    "any-order": ASSUMPTION_ORDER,
    "made-elsewhere": ASSUMPTION_PREDICTIONS,
    "slots": SLOTS,
}
SHAPE, _CLAIM = "claimed-shape", "the estimator is"
_CODES = {text: code for code, text in _ASSUMED.items()}


def assumed_codes(texts: tuple[str, ...]) -> list[str]:
    """Assumptions as the ledger keeps them."""
    return [SHAPE if text.startswith(_CLAIM) else _CODES.get(text, text) for text in texts]


def claim_words(shape: Shape) -> str:
    """What a caller's shape takes for granted."""
    return f"{_CLAIM} {shape.describe()}, and does not fail on a block"


def _shape_words(question: Question) -> str:
    if question.shape is None:
        raise ValueError("no shape was claimed")
    return claim_words(question.shape)


def row_facts(
    paid: Paid, drawn: Mapping[str, Any] | None, empty: tuple[int, int] | None, assumes: list[str]
) -> dict[str, Any]:
    """What a recorded row says beside its question and its reservations."""
    facts: dict[str, Any] = {
        "charges": list(map(Charge.to_dict, paid.charges)),
        "drawn": drawn,
        "left": paid.left,
    }
    facts |= {} if paid.refusals is None else {"refusals": paid.refusals}
    facts |= {} if empty is None else {"empty": list(empty)}
    return facts | ({"assumes": assumes} if assumes else {})


def answer_in(spec: HoldoutSpec, row: Row, receipt: str, *, cached: bool) -> Result:
    """The answer that a row records."""
    body = row.body
    try:
        question = Question.from_facts(body["question"])
        protocol, empty = spec.protocol_of(body["set"], question), body.get("empty")
        settled = Paid()
        if not protocol.told:
            left = float(body["left"])
            if not math.isfinite(left):
                raise ValueError("left")
            charges = tuple(Charge.from_dict(each) for each in body["charges"])
            settled = Paid(charges, left, body.get("refusals"))
        assumes = body.get("assumes", ())
        result = answer_of(spec, protocol, question, body["drawn"], settled, empty, assumes)
    except (AssertionError, ArithmeticError, LookupError, TypeError, ValueError) as wrong:
        remedy = "A newer version of Holdfast may have written it."
        what = f"The answer in row {row.number}"
        raise Damaged(what, "one as it was written", repr(wrong), remedy) from wrong
    return marked(result, receipt, cached=cached)


def answer_of(
    spec: HoldoutSpec,
    protocol: Protocol[Any],
    question: Question,
    drawn: Drawn | None,
    settled: Paid,
    empty: Sequence[int] | None,
    assumes: Sequence[str],
) -> Result:
    """All that is said: what the protocol says, and what holds of every answer of the holdout."""
    words = [_shape_words(question) if c == SHAPE else _ASSUMED.get(c, c) for c in assumes]
    unit = spec.manifest.unit_column if question.verb == "mean" else None
    if protocol.told:
        told = protocol.answer(question, drawn, settled)
        more: dict[str, Any] = {} if unit is None else {"unit": unit}
        if unit is not None and question.about["engine"] == "sql":
            condition = sql_term(question.about["text"], spec.manifest.schema).boolean
            more |= {"condition": True} if condition else {}
        return told.each(
            lambda step: replace(
                step, facts={**step.facts, **more}, assumes=(*step.assumes, *words)
            )
        )
    # A mean's promise has them already.
    failures = "" if question.verb == "mean" else question.failures
    grid, schema = protocol.grid(question), spec.manifest.schema

    def promised(step: Answer | Verdict) -> Answer | Verdict:
        """A step whose promise names its grid, its empty blocks and every assumption.

        All but how many open blocks are empty follows from the question and the plan alone.
        """
        told = with_failures(step.promise, failures) if failures else step.promise
        told += "" if unit is None else f"; {unit_words(unit)}"
        points = grid if step.kind == "answer" else None
        if points is not None and points.size > 1 and question.verb != "interval":
            steps = f"the next of {points.size:,} points"
            if isinstance(points, LinearGrid | IntegerGrid):
                steps = f"a grid with step {points.step:.6g}"
            told += f"; rounded up to {steps}"
        lacking = empty_words(question, schema, points)
        told += "" if lacking is None else f"; {lacking}"
        told += "" if empty is None else _seen(*empty)
        return replace(step, promise="; assuming that ".join([told, *words]))

    return protocol.answer(question, drawn, settled).each(promised)


def marked(result: Result, receipt: str, *, cached: bool) -> Result:
    """An answer with the receipt of its row."""
    return result.each(partial(replace, receipt=receipt, cached=cached))


def empty_words(question: Question, schema: Schema, grid: Grid | None) -> str | None:
    """What a block counts as that a filter leaves empty; None if none can be."""
    if not can_be_empty(question, schema):
        return None
    if grid is None:
        return "a block without such rows counts as lower than all others"
    return f"a block without such rows counts as the lowest point, {in_full(grid.low)}"


def empty_note(spec: HoldoutSpec, row: Row) -> str | None:
    """What the answer in a row says of blocks that a filter leaves empty."""
    question = Question.from_facts(row.body["question"])
    value = question.verb not in ("verify", "correct")
    grid = spec.protocol_of(row.body["set"], question).grid(question) if value else None
    words, seen = empty_words(question, spec.manifest.schema, grid), row.body.get("empty")
    return words if words is None or seen is None else words + _seen(*seen)


def _seen(empty: int, blocks: int) -> str:
    """What the open part says of it, where it says that it happens."""
    are = "is" if empty == 1 else "are"
    return f"; {empty:,} of the {blocks:,} open blocks {are} such" if empty else ""


def can_be_empty(question: Question, schema: Schema) -> bool:
    """Whether its filter can leave a block without rows, and so without a value."""
    if question.about["engine"] != "sql" or question.verb == "mean":
        return "where" in question.about
    return can_lack_value(question.about["text"], schema, "where" in question.about)


# Transcripts: every question that was answered, with its answer, and who did what.


def transcript_of(
    spec: HoldoutSpec, journal: Journal, after: int, limit: int | None
) -> list[dict[str, Any]]:
    """The answers in rows after one of the ledger, at most so many, the oldest first."""
    found: list[dict[str, Any]] = []
    for row in _answered(journal, after):
        if limit is not None and len(found) >= limit:
            break
        receipt = str(journal.receipt(row))
        entry = {
            "number": row.number,
            "at": row.at,
            "question": row.body["question"],
            "answer": answer_in(spec, row, receipt, cached=False).to_dict(),
            "asker": row.body.get("asker"),
            "receipt": receipt,
        }
        found.append(entry)
    journal.head()
    return found


def _answered(journal: Journal, after: int) -> Iterator[Row]:
    rows = journal.pages(after)
    return (row for row in rows if row.kind == "recorded" and row.body["drawn"] is not None)


def audit_of(journal: Journal, after: int, limit: int) -> list[dict[str, Any]]:
    """Who did what, row by row: everything but hashes of tokens and what answers said."""
    found = [_audited(row) for row in journal.pages(after, limit)]
    journal.head()
    return found


def _audited(row: Row) -> dict[str, Any]:
    facts: dict[str, Any] = {"number": row.number, "at": row.at, "kind": row.kind}
    if row.kind in ("reserved", "recorded"):
        body = row.body
        facts |= {"asker": body.get("asker"), "set": body["set"], "question": body["question"]}
        facts["request"] = row.request
        facts["answered"] = row.kind == "recorded" and body["drawn"] is not None
    elif row.kind == "noted":
        notes = {name: note for name, note in row.body.items() if isinstance(note, dict)}
        facts["note"] = {
            name: {key: value for key, value in note.items() if key != "hash"}
            for name, note in notes.items()
        }
    return facts
