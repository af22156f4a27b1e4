"""Very many questions: private multiplicative weights (`adaptive-general-mwu`, `intro-iqr-mwu`).

A public hypothesis about the law of a block guesses the median of every question; the sample checks
the guess. Confirmed, it is the answer. Refused, it is a surprise: the hypothesis learns from it and
guesses again. Surprises are few, whatever is asked (`holdfast.theory.weights`), so that their
number, and not that of the questions, decides the size. Two looks check a guess, and cost little
where both say Yes.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.mechanisms.hypothesis import Histogram, Hypothesis, Side
from holdfast.mechanisms.looks import look
from holdfast.protocols.answers import Answer, lies_between
from holdfast.protocols.base import (
    Drawn,
    Lesson,
    Paid,
    Places,
    Question,
    Reserve,
    Steps,
)
from holdfast.protocols.guesses import stored_coin, stored_prices, verdict_left
from holdfast.protocols.plans import (
    FLOOR,
    Charge,
    JointPlan,
    Left,
    LookPart,
    ProtocolMix,
    Request,
    Setting,
    Use,
    VerdictPrices,
    Wanted,
    share_from,
)
from holdfast.protocols.searches import LookProtocol
from holdfast.randomness import Entropy
from holdfast.theory.coins import VerdictCoin, coin_profile, distance_of, reach_of
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.privacy import verdict_divergences
from holdfast.theory.sizing import QUERIES_MAX
from holdfast.theory.transfer import FailureClass, place_target
from holdfast.theory.weights import (
    HIGHEST_MASS,
    LOWEST_MASS,
    largest_mass,
    learning_rate,
    most_updates,
)

__all__ = [
    "WeightedEstimates",
    "Weights",
    "WeightsPart",
    "read_indices",
    "written_indices",
]


_UNIVERSE_MAX = 10**30


@dataclass(frozen=True)
class WeightedEstimates(Request):
    """Very many questions about blocks out of a universe of so many elements.

    v ∈ qi(tail, 1 − tail) for all of them at once; only updates of the hypothesis cost much.
    """

    protocol: ClassVar[str] = "weights"

    queries: int
    universe: int
    tail: float = 0.25
    name: str = ""

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX // 4)
        whole_number("universe", self.universe, 2, _UNIVERSE_MAX)
        hint = "The hypothesis' median must lie well inside of the tails."
        real_number("tail", self.tail, 0, 0.45, open_low=True, hint=hint)

    @property
    def width(self) -> float:
        return 0.5 - self.tail

    def starts(self) -> tuple[tuple[float, ...], ...]:
        gap = (0.5 - self.tail) / 2
        updates = math.log(self.universe) / (2 * gap**2)
        ratio = max(2.0, 2 * self.queries / updates)
        return ((math.log(ratio), 0.0, math.log(updates)),)

    def _own(self, setting: Setting, own: Sequence[float]) -> tuple[float, float, float, float]:
        """Prices of No and Yes, and the two shares of β."""
        ratio, updates = 1 + math.exp(min(own[0], 30.0)), math.exp(min(own[2], 25.0))
        spend = (setting.order - 1) * setting.own
        yes = spend / (2 * self.queries + updates * (ratio + 1))
        low = setting.failure * share_from(own[1])
        return ratio * yes, yes, low, (setting.failure - low) * (1 - 1e-15)

    def rough_blocks(self, setting: Setting, own: Sequence[float]) -> float:
        no, yes, low, high = self._own(setting, own)
        updates = math.ceil(math.exp(min(own[2], 25.0)))
        try:
            mass = largest_mass(self.universe, updates)
        except Infeasible:
            return math.inf
        looks = 2 * (self.queries + updates)
        counts = reach_of(setting.order, yes, no, looks / low)
        counts += distance_of(setting.order, no, yes, high / looks)
        room = mass - setting.drift(self.tail, low)
        return counts / room if room > 0 else math.inf

    def part(
        self, setting: Setting, own: Sequence[float], blocks: int, limit: float | None = None
    ) -> WeightsPart | None:
        no, yes, low, high = self._own(setting, own)
        updates = math.ceil(math.exp(min(own[2], 25.0)))
        looks = 2 * (self.queries + updates)
        part = WeightsPart(
            name=self.key,
            protocol=self.protocol,
            queries=self.queries,
            updates=updates,
            universe=self.universe,
            tail=self.tail,
            twice_target=blocks,
            twice_slack=0,
            failure_low=low,
            failure_updates=high,
            no_price=no,
            yes_price=yes,
            false_yes=FLOOR * low / looks,
            false_no=FLOOR * high / looks,
            looks=looks,
        )
        if limit is None:
            return part
        errors = part.coin(setting.order).above.halfsteps
        slack = int(np.argmax(errors * looks <= high))
        (outside,) = part.classes(setting.order, blocks)
        count = place_target(RenyiCurve(setting.order, limit), blocks, outside)
        return None if count is None else replace(part, twice_target=2 * count, twice_slack=slack)


@dataclass(frozen=True)
class WeightsPart(LookPart):
    """k answers with at most `updates` refused guesses (thm `adaptive-general-mwu`).

    A guess is the hypothesis' median. Confirmed, it is the answer: the class of a false Yes. A No
    that errs by `twice_slack`/2 counts or more has probability at most `failure_updates` over all
    looks; without one, every refused guess has a sample mass of at most `mass`, and then the
    number of updates is bounded (docs/explanation/theory/weights.md).
    """

    kind: ClassVar[str] = "weights"

    name: str
    protocol: str
    queries: int
    updates: int
    universe: int
    tail: float
    twice_target: int
    twice_slack: int
    failure_low: float
    failure_updates: float
    no_price: float
    yes_price: float
    false_yes: float
    false_no: float
    looks: int

    @property
    def most_refusals(self) -> int | None:
        return self.updates

    def words(self) -> tuple[str, str]:
        limits = f"{self.queries:,} questions, at most {self.updates:,} surprises"
        return limits, lies_between(self.tail, self.tail)

    def divergences(
        self, plan: JointPlan, order: float, noes: int, yeses: int
    ) -> tuple[float, float]:
        return verdict_divergences(self.coin(plan.order), order, noes, yeses)

    @property
    def least_tail(self) -> float:
        return self.tail

    def mass(self, blocks: int) -> float:
        """The most of the sample that a refused guess has on its side."""
        return (self.twice_target + self.twice_slack) / (2 * blocks)

    def coin(self, order: float) -> VerdictCoin:
        """The coin of every look."""
        return stored_coin(order, self.no_price, self.yes_price, self.false_yes, self.false_no)

    def prices(self, order: float) -> VerdictPrices:
        key = (order, self.no_price, self.yes_price, self.false_yes, self.false_no)
        return stored_prices(*key)

    def planned(self, order: float) -> float:
        prices = self.prices(order)
        return 2 * self.queries * prices.yes + self.updates * (prices.no + prices.yes)

    def left(self, order: float, rest: Fraction, use: Use) -> Left:
        prices, unused = self.prices(order), self.looks - use.looks
        return verdict_left(prices, 2, rest, unused, self.updates - use.refusals)

    def shares(self, _: int, /) -> tuple[float, ...]:
        return (self.failure_low, self.failure_updates)

    def classes(self, order: float, blocks: int) -> tuple[FailureClass, ...]:
        del blocks  # the reach is the target itself
        profile = coin_profile(self.coin(order).below, self.looks)
        name = f"{self.name}, outside"
        return (FailureClass(name, self.tail, self.twice_target, self.failure_low, profile),)

    def sound(self, order: float, _budget: float, blocks: int) -> bool:
        counted = self.looks >= 2 * (self.queries + self.updates)
        if not counted or self.twice_slack < 0 or min(self.queries, self.updates) < 1:
            return False
        wrong_no = float(self.coin(order).above.error(np.array([self.twice_slack]))[0])
        mass = self.mass(blocks)
        if wrong_no * self.looks > self.failure_updates or not LOWEST_MASS <= mass <= HIGHEST_MASS:
            return False
        return most_updates(self.universe, mass) <= self.updates


def written_indices(indices: NDArray[np.int64]) -> str:
    """A question's grid index on every block there can be, as text."""
    return base64.b85encode(zlib.compress(indices.astype("<i8").tobytes(), 9)).decode()


def read_indices(text: str, count: int) -> NDArray[np.int64]:
    """The indices that `written_indices` wrote of so many blocks; a ValueError for other text."""
    try:
        whole = zlib.decompressobj().decompress(base64.b85decode(text), 8 * count + 1)
    except zlib.error as wrong:
        raise ValueError(f"not the grid indices of a question: {wrong}") from wrong
    if len(whole) != 8 * count:
        raise ValueError(f"not the grid indices of a question on {count:,} blocks")
    return np.frombuffer(whole, "<i8").astype(np.int64)


class Weights(LookProtocol[WeightsPart]):
    """Questions answered by a hypothesis that the sample corrects.

    >>> from holdfast.grids import grid
    >>> from holdfast.mechanisms.hypothesis import Universe
    >>> from holdfast.planning.joint import joint_plan
    >>> from holdfast.protocols import BlockArray, MemoryHoldout
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(WeightedEstimates(queries=200, universe=101, tail=0.05), blocks=1000)
    >>> rows = np.random.default_rng(1).binomial(100, 0.3, size=plan.blocks) / 100
    >>> universe = Universe.points(np.arange(101) / 100)
    >>> source = BlockArray(rows, plan.blocks)
    >>> holdout = MemoryHoldout(plan, source, SeededEntropy(1), universe=universe)
    >>> answer = holdout.ask(lambda blocks: blocks.mean(axis=1), grid(0, 1, step=0.01))
    >>> answer.value, len(holdout.lessons) > 0
    (0.27, True)
    """

    verb = "ask"
    of = ("weights",)
    part_type = WeightsPart
    says = "weights"
    mixes: ClassVar = {"weights": Wanted(lambda mix, k, *_: _wanted(mix, k), own=False)}
    method = "weights"
    one_at_a_time = True
    hypothesis: Hypothesis | None = None
    """As the last answer left it."""
    _last: Lesson | None = None
    """The last lesson that is in it."""

    @property
    def mass(self) -> float:
        """The most of the sample that a refused guess has on its side."""
        return self.part.mass(self.plan.blocks)

    def worst(self, _question: Question) -> tuple[Charge, ...]:
        return (Charge(self.part.name, self.yes + max(self.no, self.yes), 2, 1),)

    def ask(self, question: Question, entropy: Entropy, lessons: Sequence[Lesson]) -> Steps:
        """Check the hypothesis' guess, and learn from refusals, until one is confirmed."""
        (worst,) = self.worst(question)
        yield Reserve(worst)
        indices, places = yield Places(question.points)
        hypothesis = self._hypothesis(lessons)
        histogram = hypothesis.histogram(indices, question.points.size)
        sample, coin = indices[places], self.part.coin(self.plan.order)
        steps: list[list[Any]] = []
        while True:
            guess, sides = _sides(sample, histogram)
            for side, count, mass in sides:
                offset = 2 * count - self.part.twice_target
                if not look(offset, coin.side(offset), entropy):
                    rate = learning_rate(self.mass, mass)
                    histogram.shrink(guess, side, rate)
                    steps.append([guess, side, rate])
                    break
            else:
                break
            yield Reserve(worst)
        self.hypothesis = hypothesis
        drawn: Drawn = {"index": guess}
        if steps:
            size = question.points.size
            drawn |= {"steps": steps, "indices": written_indices(indices), "size": size}
            self._last = drawn
        return drawn

    def charges(self, question: Question, drawn: Drawn) -> tuple[Charge, ...]:
        """Of every guess: the second side is looked at only if the first says Yes."""
        (worst,) = self.worst(question)
        yeses = [0 if side == "at most" else 1 for _, side, _ in drawn.get("steps", ())]
        refused = [Charge(worst.part, yes * self.yes + self.no, yes + 1, 1) for yes in yeses]
        return (*refused, Charge(worst.part, 2 * self.yes, 2))

    def check(self, question: Question, drawn: Drawn, lessons: Sequence[Lesson]) -> None:
        """Each refused guess was the median of what was learnt before, and so is the answer.

        A median is the same on every machine. A rate may differ in its last digits, and the
        recorded one counts. Without a lesson the answer follows from nothing that is kept.
        """
        if "steps" not in drawn:
            return
        if drawn["size"] != question.points.size:
            raise ValueError("it was taught on another grid than its question's")
        indices = read_indices(drawn["indices"], self.part.universe)
        histogram = self._hypothesis(lessons).histogram(indices, drawn["size"])
        for guess, side, rate in drawn["steps"]:
            median = histogram.median()
            held = median.at_most if side == "at most" else median.at_least
            due = learning_rate(self.mass, held)
            if guess != median.guess or not math.isclose(rate, due, rel_tol=1e-9):
                raise ValueError("it was refused a guess that weights did not make")
            histogram.shrink(guess, side, rate)
        if drawn["index"] != histogram.median().guess:
            raise ValueError("it answers what weights did not guess")

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Answer:
        return self._on_grid(question, drawn, (self.part.tail, self.part.tail), paid, None)

    def _hypothesis(self, lessons: Sequence[Lesson]) -> Hypothesis:
        """What has been learnt, from what each question taught. Who gets it may change it."""
        known, self.hypothesis = self.hypothesis, None
        if known is not None and (lessons[-1] if lessons else None) is self._last:
            return known
        hypothesis, self._last = Hypothesis(self.part.universe), lessons[-1] if lessons else None
        for each in lessons:
            indices = read_indices(each["indices"], self.part.universe)
            histogram = hypothesis.histogram(indices, each["size"])
            for guess, side, rate in each["steps"]:
                histogram.shrink(guess, side, rate)
        return hypothesis


def _sides(sample: NDArray[np.integer], histogram: Histogram) -> tuple[int, Any]:
    """The hypothesis' guess; for each of its sides the blocks there, and what it thought."""
    median = histogram.median()
    sides: tuple[tuple[Side, int, float], ...] = (
        ("at most", int(np.count_nonzero(sample <= median.guess)), median.at_most),
        ("at least", int(np.count_nonzero(sample >= median.guess)), median.at_least),
    )
    return median.guess, sides


def _wanted(mix: ProtocolMix, queries: int) -> WeightedEstimates:
    if mix.universe is None:
        hint = "Weights need to know how many different blocks there can be."
        raise InvalidInput("universe", None, "given for weights", hint)
    return WeightedEstimates(queries, mix.universe, mix.tail_or(0.25))
