"""Rules: what a row of the ledger may say, given its question, its plan and the rows before it.

Whoever can write to the ledger can chain rows of their own. They still have to be rows that a
holdout could have written: each question at its price, each refund earned by its answer.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

from holdfast.grids import Grid
from holdfast.holdout.books import Books, written_tally
from holdfast.holdout.prices import (
    charged_parts,
    final_charge,
    final_tally,
    tally_fits,
    worst_charge,
    worst_tally,
)
from holdfast.holdout.records import read_result
from holdfast.holdout.sets import BlockSet
from holdfast.holdout.worlds import read_indices
from holdfast.ledger.ledger import Row, canonical
from holdfast.mechanisms.hypothesis import Hypothesis
from holdfast.planning.exact import ExactWeights
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts.verdicts import VerdictPart
from holdfast.planning.parts.weights import WeightsPart
from holdfast.protocols.account import Charge
from holdfast.theory.transcripts import learning_rate

__all__ = ["Wrong", "check_key", "check_learnt", "check_recorded", "check_reserved"]

Answer = Mapping[str, Any]


class Wrong(Exception):
    """Something does not add up; the message says what."""


def check_key(row: Row) -> None:
    """A question in SQL has the key that its words have; that of a callable nobody can compute."""
    question = row.body["question"]
    about = question["estimator"]
    if about["engine"] != "sql":
        if about["engine"] != "local":
            raise Wrong(f"row {row.number} asks an engine that there is not: {about['engine']!r}")
        return
    words = {name: about[name] for name in ("engine", "text", "where") if name in about}
    identity = f"sql mean {words}" if question["verb"] == "mean" else f"sql {words}"
    text = canonical({**question, "estimator": identity})
    if words != about or row.question != hashlib.sha256(text.encode()).hexdigest():
        raise Wrong(f"row {row.number} has the key of another question")


def check_reserved(block_set: BlockSet, row: Row, books: Books) -> None:
    """A reservation is the worst case of its question, and fits what is left."""
    plan, question = block_set.plan, row.body["question"]
    if question["part"] not in block_set.protocols:
        raise Wrong(f"row {row.number} asks a part that its set does not have")
    if isinstance(plan, JointPlan):
        held = Charge.from_dict(row.body["charge"])
        if held.part not in charged_parts(plan, question):
            raise Wrong(f"row {row.number} charges another part than its question asks")
        if held != worst_charge(plan, question, held.part):
            raise Wrong(f"row {row.number} reserves another price than its question has")
    else:
        before = books.tally(block_set.name)
        # Compared as text: there is one way to write a count, and none below 0.
        if row.body["tally"] != written_tally(worst_tally(plan, before, question)):
            raise Wrong(f"row {row.number} reserves another tally than its question has")
        if not tally_fits(plan, before, question):
            raise Wrong(f"row {row.number} asks more than the plan has left")


def check_recorded(
    block_set: BlockSet,
    row: Row,
    reserved: Mapping[int, Row],
    before: Mapping[int, dict[str, int] | None],
) -> None:
    """An answer settles its own reservations, at what it says that it cost.

    `reserved` are the open reservations by number, `before` the tally before each of them.
    """
    plan, question, answer = block_set.plan, row.body["question"], row.body["answer"]
    numbers = row.body["reserves"]
    paid = [reserved.get(number) for number in numbers]
    if not paid or None in paid or len(set(numbers)) != len(numbers):
        raise Wrong(f"the answer in row {row.number} was not paid for, or twice")
    if any(each is None or each.body["question"] != question for each in paid):
        raise Wrong(f"row {row.number} is paid for by another question's reservation")
    if answer is not None:
        read_result(answer, "", cached=False)  # says what is wrong with it
    if isinstance(plan, JointPlan):
        held = [Charge.from_dict(each.body["charge"]) for each in paid if each is not None]
        _charges(plan, row, held)
    else:
        (number,) = numbers
        mine = [n for n, each in reserved.items() if each.body["set"] == block_set.name]
        if number != max(mine):
            raise Wrong(f"row {row.number} goes back behind a later question")
        final = final_tally(plan, before[number], question, row.body)
        if row.body["tally"] != written_tally(final):
            raise Wrong(f"row {row.number} leaves a tally that its answer does not leave")
        if isinstance(plan, ExactWeights) and final["refused"] > plan.updates:
            raise Wrong(f"row {row.number} was refused more often than can be")


def check_learnt(
    block_set: BlockSet, row: Row, hypotheses: dict[tuple[str, str], Hypothesis]
) -> None:
    """Each refused guess was the median of what weights had learnt before, and so is the answer.

    `hypotheses` are those of the rows before, by set and part; the row's lesson is added. A median
    is the same on every machine. A rate may differ in its last digits, and the recorded one counts.
    """
    plan, question, learnt = block_set.plan, row.body["question"], row.body["learnt"]
    if isinstance(plan, ExactWeights):
        universe, mass = plan.universe, plan.mass
    else:
        part = plan.part(question["part"]) if isinstance(plan, JointPlan) else None
        if not isinstance(part, WeightsPart) or not isinstance(plan, JointPlan):
            raise Wrong(f"row {row.number} teaches a part that learns nothing")
        universe, mass = part.universe, part.mass(plan.blocks)
    place = (block_set.name, question["part"])
    hypothesis = hypotheses.setdefault(place, Hypothesis(universe))
    grid = Grid.from_json(question["grid"])
    if learnt["size"] != grid.size:
        raise Wrong(f"row {row.number} was taught on another grid than its question's")
    histogram = hypothesis.histogram(read_indices(learnt["indices"], universe), grid.size)
    for guess, side, rate in learnt["steps"]:
        median = histogram.median()
        held = median.at_most if side == "at most" else median.at_least
        due = learning_rate(mass, held)
        if guess != median.guess or not math.isclose(rate, due, rel_tol=1e-9):
            raise Wrong(f"row {row.number} was refused a guess that weights did not make")
        histogram.shrink(guess, side, rate)
    answer = row.body["answer"]
    if answer is not None and answer["value"] != grid.point(histogram.median().guess):
        raise Wrong(f"row {row.number} answers what weights did not guess")


def _charges(plan: JointPlan, row: Row, held: list[Charge]) -> None:
    question, answer = row.body["question"], row.body["answer"]
    wanted = charged_parts(plan, question)
    parts = [each.part for each in held]
    several = isinstance(plan.part(question["part"]), WeightsPart)
    if answer is None:  # exhausted at the second of two steps: the first is given back
        wanted = wanted[:1]
    if parts != wanted and not (several and set(parts) == set(wanted)):
        raise Wrong(f"row {row.number} is not charged to the parts that answer it")
    if several:
        _weighed(plan, row, held)
        return
    for worst, data in zip(held, row.body["charges"], strict=True):
        charge = Charge.from_dict(data)
        if charge != _due(plan, worst, charge, answer):
            raise Wrong(f"row {row.number} charges another price than its answer has")
        step = _step(plan, worst, answer)
        if step is not None and step["price"] != float(charge.price):
            raise Wrong(f"row {row.number} shows another price than it charges")


def _weighed(plan: JointPlan, row: Row, held: list[Charge]) -> None:
    """Weights pay for every guess: for each that taught them something, and for the last."""
    steps = row.body["learnt"]["steps"] if "learnt" in row.body else ()
    # The second side is looked at only if the first says Yes.
    noes = [(1 if side == "at most" else 2, 1) for _, side, _ in steps]
    due = [
        final_charge(plan, worst, *drawn)
        for worst, drawn in zip(held, [*noes, (2, 0)], strict=True)
    ]
    if [Charge.from_dict(data) for data in row.body["charges"]] != due:
        raise Wrong(f"row {row.number} charges another price than its guesses have")
    if row.body["answer"]["price"] != sum(float(charge.price) for charge in due):
        raise Wrong(f"row {row.number} shows another price than it charges")


def _due(plan: JointPlan, worst: Charge, charge: Charge, answer: Answer | None) -> Charge:
    """What the answer says that this reservation came to."""
    part, step = plan.part(worst.part), _step(plan, worst, answer)
    if step is None:  # nothing was drawn for it, and it may be given back
        return Charge(worst.part, worst.price * 0, 0)
    if not isinstance(part, VerdictPart):
        return worst
    if step["refused"] is False:
        return final_charge(plan, worst, worst.looks, 0)
    looks = min(max(charge.looks, 1), worst.looks)
    return final_charge(plan, worst, looks, 1)


def _step(plan: JointPlan, worst: Charge, answer: Answer | None) -> Answer | None:
    """What was said for this reservation; None if nothing was."""
    if answer is None or answer["type"] != "corrected":
        return answer
    found = "verdict" if isinstance(plan.part(worst.part), VerdictPart) else "correction"
    step: Answer | None = answer[found]
    return step
