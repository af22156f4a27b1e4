"""Models of late flights, and somebody who tunes them by their last score.

A model is gradient boosting on symmetric trees, as CatBoost grows them (Prokhorenkova et al. 2018):
every level of a tree asks one question of all flights, "is this column above this value?". That is
forty lines of NumPy, and needs nothing to be installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from holdfast_lab.flights import Flights, Rows

Bits = NDArray[np.bool_]
Columns = NDArray[np.uint8]
_CALM = 5.0  # pseudo-rows in every leaf, which draw it to 0


class Tree(NamedTuple):
    """Questions, one for each level, and the value of each leaf."""

    questions: tuple[tuple[int, int], ...]
    values: NDArray[np.float64]

    def leaves(self, columns: Columns) -> NDArray[np.uint8]:
        """The leaf of each row: one bit for each question."""
        found = np.zeros(columns.shape[1], np.uint8)
        for column, value in self.questions:
            found = found * np.uint8(2) + (columns[column] > value)
        return found


@dataclass(frozen=True)
class Settings:
    """What is tuned: how many columns of the schedule, how many trees, how deep, how fast."""

    columns: int = 3
    trees: int = 20
    depth: int = 4
    rate: float = 0.3


def boosted(columns: Columns, late: Bits, settings: Settings) -> tuple[Tree, ...]:
    """Trees, each fitted to what those before it left of the logistic loss."""
    known = columns[: settings.columns]
    score, trees = np.zeros(late.size), []
    for _ in range(settings.trees):
        chance = 1 / (1 + np.exp(-score))
        tree = _grown(known, late - chance, chance * (1 - chance), settings)
        score += tree.values[tree.leaves(known)]
        trees.append(tree)
    return tuple(trees)


def _grown(
    columns: Columns, slope: NDArray[np.float64], bend: NDArray[np.float64], settings: Settings
) -> Tree:
    leaf, questions = np.zeros(slope.size, np.int64), []
    for _ in range(settings.depth):
        gains = []
        for column in columns:
            place = leaf * 256 + column
            size = 256 * (int(leaf.max()) + 1)
            below = [
                np.bincount(place, weights, size).reshape(-1, 256).cumsum(axis=1)
                for weights in (slope, bend)
            ]
            gains.append(_gain(*below))
        best = int(np.argmax([gain.max() for gain in gains]))
        value = int(np.argmax(gains[best]))
        questions.append((best, value))
        leaf = 2 * leaf + (columns[best] > value)
    sums = [np.bincount(leaf, weights, 2**settings.depth) for weights in (slope, bend)]
    return Tree(tuple(questions), settings.rate * sums[0] / (sums[1] + _CALM))


def _gain(slope: NDArray[np.float64], bend: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much each value would gain, over all leaves: sums of slope²/bend on both sides."""
    above = slope[:, -1:] - slope, bend[:, -1:] - bend
    sides = slope**2 / (bend + _CALM) + above[0] ** 2 / (above[1] + _CALM)
    gain: NDArray[np.float64] = sides.sum(axis=0)
    return gain


def log_odds(trees: tuple[Tree, ...], columns: Columns) -> NDArray[np.float64]:
    """How likely each flight is late, as log odds."""
    total = np.zeros(columns.shape[1])
    for tree in trees:
        total += tree.values[tree.leaves(columns)]
    return total


# Tuning: every model is a small change of the best so far, as its last score has it.


@dataclass(frozen=True, eq=False)
class Model:
    """Settings, and what the model says of every flight."""

    settings: Settings
    odds: NDArray[np.float64]

    @property
    def late(self) -> Bits:
        """Which flights are predicted to be late."""
        return self.odds > 0


class Workshop:
    """Fits models to some flights, and remembers them: the same settings give the same model."""

    def __init__(self, flights: Flights, train: Rows) -> None:
        self._flights, self._train = flights, train
        self._made: dict[Settings, Model] = {}

    def model(self, settings: Settings) -> Model:
        """The model, and its predictions for all flights."""
        if settings not in self._made:
            columns, late = self._flights.schedule, self._flights.late
            trees = boosted(columns[:, self._train], late[self._train], settings)
            self._made[settings] = Model(settings, log_odds(trees, columns))
        return self._made[settings]


TRAINED = 20_000


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of flights: for models, for a test, and all others, which say what is true."""

    flights: Flights
    train: Rows
    table: Rows
    others: Rows

    @classmethod
    def draw(cls, flights: Flights, table: int, chance: np.random.Generator) -> Self:
        """At random, without replacement."""
        rows = chance.permutation(flights.count)
        first, last = TRAINED, TRAINED + table
        return cls(flights, rows[:first], rows[first:last], rows[last:])

    def right(self, late: Bits, rows: Rows | None = None) -> float:
        """The share of right predictions, of all others unless it is said of which."""
        rows = self.others if rows is None else rows
        return float(np.mean(late[rows] == self.flights.late[rows]))

    def sealed(self, rows: Rows, **columns: Any) -> Any:
        """The table that is sealed: numbers of flights, other columns, whether each was late."""
        import pandas as pd

        late = self.flights.late[rows].astype(np.int64)
        return pd.DataFrame({"flight": rows, **columns, "late": late})

    def predictions(self, late: Bits, rows: Rows | None = None) -> Any:
        """What is submitted."""
        import pandas as pd

        rows = self.table if rows is None else rows
        return pd.DataFrame({"flight": rows, "prediction": late[rows].astype(np.int64)})


def changed(settings: Settings, chance: np.random.Generator) -> Settings:
    """The same with one thing more or less."""
    more = 1 if chance.random() < 0.6 else -1
    now = settings
    return (
        replace(now, columns=min(7, max(2, now.columns + more))),
        replace(now, trees=min(120, max(10, round(now.trees * 1.5**more)))),
        replace(now, depth=min(7, max(2, now.depth + more))),
        replace(now, rate=min(1.0, max(0.1, round(now.rate * 1.3**more, 3)))),
    )[chance.integers(4)]


def tune(
    workshop: Workshop, score: Callable[[Model], float], models: int, chance: np.random.Generator
) -> list[Model]:
    """So many models, all different; each is a change of the one whose score is best so far."""
    tried: list[Model] = []
    scores: list[float] = []
    settings = Settings()
    while len(tried) < models:
        model = workshop.model(settings)
        if not any(np.array_equal(model.late, each.late) for each in tried):
            tried.append(model)
            scores.append(score(model))
        settings = changed(tried[int(np.argmax(scores))].settings, chance)
        while chance.random() < 0.3:
            settings = changed(settings, chance)
    return tried
