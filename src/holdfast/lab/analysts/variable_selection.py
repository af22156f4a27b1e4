"""Variable selection on a holdout: the experiment of the paper that introduced Thresholdout.

(Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2015, "The reusable holdout", Science 349:636.) A
training set and a holdout of n rows each have d normal attributes and a random label ±1. The
analyst keeps the attributes whose correlation with the label exceeds 1/√n on both sets with the
same sign, takes the k of them that are largest on the training set, and classifies by the sign of
their signed sum. Then it asks the holdout how good that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.lab.conversation import Conversation, FloatArray, Means

__all__ = ["REACH", "Attributes", "VariableSelection"]

REACH = 127 / 32
"""Attributes are clipped here, in standard deviations: questions map [−REACH, REACH] to [0, 1]."""

_LEVELS = 16  # of an attribute, for each standard deviation
_MOST = 10**6
_TOGETHER = 500  # questions in a batch


class _Law(NamedTuple):
    """An attribute times the label, in halves of levels: 2^16 equally likely whole numbers."""

    atoms: NDArray[np.int8]

    @property
    def mean(self) -> float:
        return float(self.atoms.mean()) / (2 * _LEVELS)

    @property
    def variance(self) -> float:
        return float(self.atoms.var()) / (2 * _LEVELS) ** 2


@cache
def _law(bias: float) -> _Law:
    """N(bias, 1), cut into bins of 1/16, each bin at its middle, an odd number of 32nds."""
    from scipy.special import ndtri

    values = ndtri((np.arange(2**16) + 0.5) / 2**16) + bias
    return _Law(np.clip(2 * np.floor(_LEVELS * values) + 1, -127, 127).astype(np.int8))


@dataclass(frozen=True, eq=False)
class Attributes:
    """The holdout: a line for each attribute, a column for each row; and what training showed.

    The label is random and independent, so only attribute × label matters: that is what is kept,
    in 32nds of a standard deviation. `training` has the correlations on the training set.
    """

    holdout: NDArray[np.int8]
    training: FloatArray
    signals: int
    bias: float
    seed: int

    @property
    def rows(self) -> int:
        """How many rows the holdout has, and the training set too."""
        return int(self.holdout.shape[1])


@dataclass(frozen=True)
class VariableSelection:
    """Selects attributes with a holdout's help, then asks for the classifier's accuracy.

    `signals` attributes lean towards the label by `lean`/√n each, the others not at all.
    `sizes` are the numbers of attributes whose classifiers are asked for, as many as there are.
    Attributes are bounded and rounded to sixteenths; a tied sum counts as half right.

    The training set is not drawn, only what is seen of it. Its correlations are N(bias, 1/n). A
    column, given its correlation w, is w plus N(0, I − 11ᵀ/n); so the signed sum of k columns is
    the sum of |w| plus √k times such a vector, and grows by independent pieces.

    With `one_scale` accuracies are put on the scale of the correlations, as numbers in
    [−REACH, REACH]: for a responder whose thresholds belong to that scale.
    """

    name: ClassVar[str] = "variable-selection"

    rows: int = 10_000
    variables: int = 10_000
    signals: int = 0
    lean: float = 6.0
    sizes: tuple[int, ...] = tuple(range(25, 501, 25))
    one_scale: bool = False

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 2, _MOST)
        whole_number("variables", self.variables, 1, _MOST)
        whole_number("signals", self.signals, 0, self.variables)
        real_number("lean", self.lean, 0)
        for size in self.sizes:
            whole_number("sizes", size, 1, _MOST)
        if list(self.sizes) != sorted(set(self.sizes)) or not self.sizes:
            raise InvalidInput("sizes", self.sizes, "growing numbers")

    @property
    def queries(self) -> int:
        """One for each attribute, and one for each classifier."""
        return self.variables + len(self.sizes)

    def draw(self, chance: np.random.Generator) -> Attributes:
        bias = self.lean / math.sqrt(self.rows)
        leans = np.where(np.arange(self.variables) < self.signals, bias, 0.0)
        training = leans + chance.standard_normal(self.variables) / math.sqrt(self.rows)
        seed, words = int(chance.integers(2**63)), -(-self.rows // 4)
        bits = np.random.SFC64(int(chance.integers(2**63)))  # 10^8 draws: the fastest there is
        holdout = np.empty((self.variables, self.rows), np.int8)
        for place in range(self.variables):
            drawn = bits.random_raw(words).view(np.uint16)[: self.rows]
            np.take(_law(leans[place]).atoms, drawn, out=holdout[place], mode="clip")
        return Attributes(holdout, training, self.signals, bias, seed)

    def converse(self, world: Attributes) -> Conversation:
        least = 1 / math.sqrt(world.rows)
        said = np.empty(self.variables)
        for start in range(0, self.variables, _TOGETHER):
            lines = slice(start, min(start + _TOGETHER, self.variables))
            replies = yield _correlations(world, lines)
            said[lines] = REACH * (2 * replies.values - 1)
        strong = np.minimum(np.abs(world.training), np.abs(said)) > least  # a refusal is not
        chosen = np.flatnonzero(strong & (np.sign(world.training) == np.sign(said)))
        chosen = chosen[np.argsort(-np.abs(world.training[chosen]), kind="stable")]
        classifiers = _Classifiers(world, chosen, self.sizes)
        yield Means(
            lambda table: self._scaled(classifiers.right(table)),
            self._scaled(classifiers.truths()),
            self._scaled(classifiers.training()),
        )

    def accuracies(self, replies: FloatArray) -> FloatArray:
        """Accuracies from replies to the classifiers' questions."""
        return REACH * (2 * replies - 1) if self.one_scale else replies

    def _scaled(self, accuracies: FloatArray) -> FloatArray:
        return (1 + accuracies / REACH) / 2 if self.one_scale else accuracies


class _Classifiers(NamedTuple):
    """One for each size: the sign of the signed sum of the first attributes chosen."""

    world: Attributes
    chosen: NDArray[np.int64]
    sizes: tuple[int, ...]

    @property
    def signs(self) -> NDArray[np.int8]:
        return np.sign(self.world.training[self.chosen]).astype(np.int8)

    def pieces(self) -> list[slice]:
        """What each size adds to the one before; nothing once all are in."""
        ends = np.minimum((0, *self.sizes), self.chosen.size).tolist()
        return [slice(low, high) for low, high in pairwise(ends)]

    def right(self, table: Any) -> FloatArray:
        """For each size and row: 1 if right, 0 if wrong, 1/2 on a tie."""
        signs = self.signs[:, np.newaxis]
        added = [
            (signs[piece] * table[self.chosen[piece]]).sum(axis=0, dtype=np.int64)
            for piece in self.pieces()
        ]
        return np.asarray((1.0 + np.sign(np.cumsum(added, axis=0))) / 2, np.float64)

    def truths(self) -> FloatArray:
        """Φ(mean of the sum / its standard deviation): sums of 16ths are smooth enough."""
        from scipy.special import ndtr

        leaning = self.chosen < self.world.signals
        null, biased = _law(0.0), _law(self.world.bias)
        mean = np.where(leaning, biased.mean, 0.0) * self.signs
        variance = np.where(leaning, biased.variance, null.variance)
        ends = [piece.stop for piece in self.pieces()]
        means, variances = (np.concatenate([[0.0], x.cumsum()])[ends] for x in (mean, variance))
        return np.asarray(ndtr(means / np.sqrt(np.maximum(variances, null.variance))))

    def training(self) -> FloatArray:
        """The accuracies on the training set."""
        chance = np.random.Generator(np.random.Philox(self.world.seed))
        strength = np.abs(self.world.training[self.chosen])
        score, accuracies = np.zeros(self.world.rows), []
        for piece in self.pieces():
            grown = chance.standard_normal(self.world.rows)
            grown -= grown.mean()
            score += strength[piece].sum() + math.sqrt(piece.stop - piece.start) * grown
            accuracies.append(float(np.mean((1.0 + np.sign(score)) / 2)))
        return np.array(accuracies)


def _correlations(world: Attributes, lines: slice) -> Means:
    """A batch of attributes, mapped from [−REACH, REACH] to [0, 1]."""
    leaning = np.arange(lines.start, lines.stop) < world.signals
    truths = np.where(leaning, _law(world.bias).mean, 0.0)

    def mapped(correlations: FloatArray) -> FloatArray:
        return np.clip((1 + correlations / REACH) / 2, 0, 1)

    return Means(_reader(lines), mapped(truths), mapped(world.training[lines]))


def _reader(lines: slice) -> Callable[[Any], NDArray[np.float32]]:
    def values(table: Any) -> NDArray[np.float32]:
        return np.asarray(table[lines].astype(np.float32) * (1 / 254) + 0.5, np.float32)

    return values
