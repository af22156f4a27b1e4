"""The conversation itself: who is asked what, when, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast_lab.attacks.conversation import (
    Conversation,
    FloatArray,
    Means,
    Medians,
    Replies,
    Responder,
    Session,
    interview,
)

ROWS = np.array([0.0, 0.25, 0.5, 1.0])


@dataclass
class Table:
    holdout: NDArray[Any]

    @property
    def rows(self) -> int:
        return self.holdout.size


@dataclass
class Script:
    """Asks a mean, a median, and a mean made from both answers; keeps what it is told."""

    name: ClassVar[str] = "script"
    queries: int = 4
    told: list[list[float]] = field(default_factory=list)

    def draw(self, chance: np.random.Generator) -> Table:
        return Table(ROWS)

    def converse(self, world: Table) -> Conversation:
        first = yield Means(lambda rows: np.stack([rows, 1 - rows]), np.array([0.4, 0.6]))
        self.told.append(first.values.tolist())
        second = yield Medians(
            lambda rows: (2 * rows).astype(np.int64)[np.newaxis], np.array([[0.3, 0.6, 1.0]])
        )
        self.told.append(second.values.tolist())
        level = first.values[0] * second.values[0]
        guesses = np.array([0.125])
        yield Means(lambda rows: (rows > level)[np.newaxis], np.array([0.5]), guesses)


class Honest(Responder):
    """The sample's mean ± 0.2 and its lower median, of which the rank is claimed to be 1/2."""

    name: ClassVar[str] = "honest"

    def __init__(self) -> None:
        self.seen: list[tuple[list[list[float]], Any]] = []

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        self.seen.append((values.tolist(), None if guesses is None else guesses.tolist()))
        return Replies.around(values.mean(axis=1), 0.2)

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        self.seen.append((values.tolist(), points))
        low = np.full(len(values), 0.5)
        return Replies(np.sort(values, axis=1)[:, 1].astype(np.float64), low, low)


class Silent(Responder):
    """Refuses everything."""

    name: ClassVar[str] = "silent"

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        return Replies.unclaimed(np.full(len(values), np.nan))

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        return Replies.unclaimed(np.full(len(values), np.nan))


def test_an_interview_in_order() -> None:
    """Questions are evaluated on the rows, put in order, and answered to the analyst."""
    analyst, responder = Script(), Honest()
    session = interview(analyst, Table(ROWS), responder)
    assert analyst.told == [[0.4375, 0.5625], [0.0]]
    assert responder.seen == [
        ([[0.0, 0.25, 0.5, 1.0], [1.0, 0.75, 0.5, 0.0]], None),
        ([[0, 0, 1, 2]], 3),
        ([[False, True, True, True]], [0.125]),
    ]
    assert session.values.tolist() == [0.4375, 0.5625, 0.0, 0.75]
    assert session.reached.tolist() == [0.4, 0.6, 0.3, 0.5]
    np.testing.assert_allclose(session.errors, [0.0375, 0.0375, 0.2, 0.25])
    assert (session.asked, session.answered) == (4, 4)
    assert session.worst_error == 0.25
    # The rank was said to be 1/2 and is 0.3; the last mean was said to be within 0.2 and is not.
    assert session.wrong_claims == 2


def test_a_session_of_refusals() -> None:
    """A refusal is no answer: it has no error, and its claim cannot be false."""
    session = interview(Script(), Table(ROWS), Silent())
    assert (session.asked, session.answered) == (4, 0)
    assert session.worst_error == 0
    assert session.wrong_claims == 0
    assert np.isnan(session.errors).all()


@pytest.mark.parametrize(
    ("low", "high", "wrong"), [(0.5, 0.5, 0), (0.4, 0.49, 1), (0.51, 0.9, 1), (-np.inf, np.inf, 0)]
)
def test_claims_are_closed_intervals(low: float, high: float, wrong: int) -> None:
    half = np.array([0.5])
    session = Session(half, np.array([low]), np.array([high]), half, np.zeros(1))
    assert session.wrong_claims == wrong


def test_ranks_of_medians() -> None:
    """The rank nearest to 1/2 among those that the answer has; NaN where there is none."""
    law = np.array([[0.2, 0.7, 1.0]] * 4)
    question = Medians(lambda rows: rows, law)
    ranks = question.ranks(np.array([0.0, 1.0, 2.0, np.nan]))
    assert question.points == 3
    np.testing.assert_array_equal(ranks, [0.2, 0.5, 0.7, np.nan])


@pytest.mark.parametrize("make", [Replies.unclaimed, lambda values: Replies.around(values, 0.1)])
def test_replies_have_one_claim_each(make: Callable[[FloatArray], Replies]) -> None:
    replies = make(np.array([0.25, 0.5]))
    assert replies.low.shape == replies.high.shape == replies.values.shape
    assert (replies.low < replies.values).all()
    assert (replies.values < replies.high).all()
