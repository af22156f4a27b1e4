"""A whole holdout in the campaign: every question is one look of an estimate.

`python -m tools.crash --subject tools.crash.holdout_writer:HoldoutWriter --budget 499`

or every answer is told: `--subject tools.crash.holdout_writer:ToldWriter --budget 3200`, as many as
its processes ask at once, since nothing is refused.

Its blocks are a stub, so that a question takes no longer than the ledger does; journal, ledger,
locks, state and witness are the real ones. The plan is made for 500 questions: for a smaller budget
some are asked beforehand, and no budget is larger.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Self
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, HoldfastError
from holdfast.grids import grid
from holdfast.holdout import answering
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.questions import Estimand
from holdfast.holdout.records import answer_in
from holdfast.holdout.spec import BlockSet, HoldoutSpec
from holdfast.ledger.ledger import Ledger, Row
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.protocols.answers import Answer, Told
from holdfast.protocols.base import Step, Terms, Values
from holdfast.protocols.plans import JointPlan
from holdfast.protocols.searches import SearchPart
from holdfast.protocols.source import WEIGHT_SCALE
from holdfast.randomness import system_entropy, uniform_index
from tools.crash.account import Acknowledged
from tools.crash.told import ROWS, amiss, create_told, share_below, told_in

__all__ = ["HoldoutWriter", "ToldWriter", "recorded_values"]

_COIN = grid(0, 1, points=2)
_BLOCKS = 215
_LONGEST_DRAW = 2_000  # microseconds
_FOLDER, _FILE = "a.holdfast", "ledger.sqlite"
_PART = SearchPart(
    name="estimate",
    protocol="estimate",
    queries=500,
    grid=2,
    tail_low=0.1,
    tail_high=0.1,
    twice_target=_BLOCKS,
    failure_low=0.5,
    failure_high=0.5,
    look_price=0.0004989116425132936,
    floor=9.999999999999996e-10,
    looks=500,
)


def _found(
    step: Step, block_set: BlockSet, estimands: list[Estimand], *_: object
) -> NDArray[np.float64 | np.int64]:
    """Values of blocks that take a moment to evaluate, and half of which are 0; or true terms."""
    time.sleep(uniform_index(_LONGEST_DRAW, system_entropy()) / 1e6)
    if isinstance(step, Terms):
        return WEIGHT_SCALE * (np.arange(ROWS) < float(estimands[0].about["text"].split("<")[1]))
    assert isinstance(step, Values)
    return np.arange(block_set.blocks, dtype=np.float64) % 2


def recorded_values(rows: list[Row], holdout: str) -> dict[str, Any]:
    """What the ledger says was answered, or told, by receipt."""
    spec, values = HoldoutSpec.from_dict(holdout, rows[0].body), {}
    for row in rows:
        if row.kind == "recorded":
            receipt = f"{holdout}:{row.number}:{row.digest}"
            answer = answer_in(spec, row, receipt, cached=False)
            assert isinstance(answer, Answer | Told)
            values[receipt] = answer.value if isinstance(answer, Answer) else told_in(answer)
    return values


def _text(value: Any, receipt: str) -> str:
    """What was answered, in one word."""
    return f"{json.dumps(value, separators=(',', ':'))}@{receipt}"


class HoldoutWriter:
    """The holdout of `tools.crash.account.Subject`."""

    def __init__(self, folder: Path) -> None:
        answering.found_by = _found  # type: ignore[assignment]
        self._holdout = Holdout(folder / _FOLDER)

    @classmethod
    def create(cls, folder: Path, budget: int) -> None:
        order = 3.6835127990497054
        price = _PART.planned(order) * (1 + 1e-12)
        plan = JointPlan(_BLOCKS, order, price, 0.45, (_PART,))
        words = system_entropy().words(_BLOCKS).astype(np.float64)
        Holdout.create(folder / _FOLDER, {"x": words}, plan).close()
        with cls(folder)._holdout as holdout:  # a smaller budget: some is spent already
            # One is always asked: a writer that is forked then has imported all it needs.
            for number in range(max(1, _PART.queries - budget)):
                holdout.ask(f"avg(x) + {number}", grid=_COIN)

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)

    def ask(self, question: str, request: str) -> str | None:
        """The question's digest picks its estimator."""
        text = f"avg(x) - {int(question[:12], 16) + 1}"
        try:
            answer = self._holdout.ask(text, grid=_COIN, request=request)
        except Exhausted:
            return None
        return _text(answer.value, answer.receipt)

    def close(self) -> None:
        self._holdout.close()

    @classmethod
    def faults(cls, folder: Path, budget: int, seen: Iterable[Acknowledged]) -> list[str]:
        del budget  # the plan's own
        told = list(seen)
        try:
            checked, (rows, kept) = check_holdout(folder / _FOLDER), _kept(folder)
        except HoldfastError as error:
            return [str(error)]
        faults = [f"{each.name}: {each.detail}" for each in checked.findings if not each.passed]
        faults += [
            f"{each.request} was told {each.answer}, which the ledger does not say"
            for each in told
            if each.answer is not None and each.answer not in kept
        ]
        answers: dict[str, str] = {}
        for each in told:
            if each.answer is not None and answers.setdefault(each.question, each.answer) != (
                each.answer
            ):
                faults.append(f"{each.question} has two answers")
        return [*faults, *cls._amiss(folder, rows, told)]

    @classmethod
    def _amiss(cls, folder: Path, rows: list[Row], told: list[Acknowledged]) -> list[str]:
        """A refusal while something was left."""
        del folder
        held = sum(row.kind == "reserved" for row in rows)
        if any(each.answer is None for each in told) and held < _PART.queries:
            return [f"refused with {held} of {_PART.queries} charged"]
        return []


def _kept(folder: Path) -> tuple[list[Row], set[str]]:
    """The rows, and every answer in them."""
    with SqliteLedger.open(folder / _FOLDER / _FILE) as ledger:
        rows = ledger.rows()
    values = recorded_values(rows, ledger.holdout)
    return rows, {_text(value, receipt) for receipt, value in values.items()}


class ToldWriter(HoldoutWriter):
    """The same of a holdout that tells: means, of which every guess is right."""

    ledger_file: ClassVar[str] = f"{_FOLDER}/{_FILE}"

    @classmethod
    def create(cls, folder: Path, budget: int) -> None:
        del budget  # nothing is charged
        create_told(folder / _FOLDER)
        with cls(folder)._holdout as holdout:
            term, share = share_below(0)
            holdout.mean(term, guess=share)

    @classmethod
    def on(cls, folder: Path, ledger: Ledger) -> Self:
        """One whose ledger is elsewhere."""
        with patch.object(answering, "open_ledger", lambda *_: ledger):
            return cls(folder)

    @classmethod
    def kept(cls, folder: Path) -> set[str]:
        """The answers that its ledger has."""
        return _kept(folder)[1]

    def ask(self, question: str, request: str) -> str | None:
        term, share = share_below(int(question[:12], 16))
        told: Any = self._holdout.mean(term, guess=share, request=request)
        return _text(told_in(told), told.receipt)

    @classmethod
    def _amiss(cls, folder: Path, rows: list[Row], told: list[Acknowledged]) -> list[str]:
        del told  # none is refused
        return amiss(folder / _FOLDER, rows)
