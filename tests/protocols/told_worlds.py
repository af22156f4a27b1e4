"""Tiny worlds in which the best analyst against the product's own rules is found by trying all.

A row is one of a few atoms with known probabilities (`tests/theory/told_worlds.py`), or rows are
not alike (`Unlike`). A question is put to its protocol in `protocols/told.py`, which makes the rule
after a past and says which letter the rows of a sample tell: nothing of that is computed here.
Claims are compared with the law in exact fractions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from holdfast.protocols.answers import ROWS
from holdfast.protocols.base import Drawn, PastTold, Question, Terms, Values
from holdfast.protocols.registry import PROTOCOLS
from holdfast.protocols.source import WEIGHT_SCALE
from holdfast.protocols.told import Expects, Past, ToldPlan
from holdfast.randomness import system_entropy
from holdfast.theory.told import History
from tests.theory.told_worlds import World

__all__ = ["Asking", "State", "Unlike", "asking", "drive", "start"]

KINDS: dict[str, Any] = {kind.verb: kind for kind in PROTOCOLS if kind.told}


@dataclass(frozen=True)
class State:
    """The past, as far as rules depend on it here; something that can be a key."""

    history: History
    verdicts: tuple[tuple[str, int], ...] = ()
    readings: tuple[str, ...] = ()

    @property
    def past(self) -> Past:
        return Past(self.history, readings=list(self.readings), verdicts=dict(self.verdicts))

    def after(self, question: Question, drawn: Drawn) -> State:
        past = self.past
        past.tell(question, drawn)
        return State(past.history, tuple(sorted(past.verdicts.items())), tuple(past.readings))


def start(failure: float, *, mixes: bool = False) -> State:
    """Nothing was told; all of β is for the first epoch, and for one reading unless it `mixes`."""
    return State(History(failure, extends=False, mixes=mixes))


class Unlike(World):
    """Rows that are independent and not alike: a sample is a 0 or 1 for every row.

    `masses` are the chances of a 1, row by row. Row i with a 0 or 1 is "atom" 2i or 2i + 1.
    """

    @cached_property
    def samples(self) -> list[Any]:
        return list(product((0, 1), repeat=len(self.masses)))

    @cached_property
    def _laws(self) -> list[Fraction]:
        return [
            math.prod(
                (p if y else 1 - p for p, y in zip(self.masses, ys, strict=True)), start=Fraction(1)
            )
            for ys in self.samples
        ]


Outcome = tuple[int, bool, State]  # samples, whether a claim is false, what follows


@dataclass(frozen=True)
class Asking:
    """One question to a world.

    `terms` has for each candidate the term of every atom, in [0, 1]; `truths` are what claims are
    about: one number, or in a batch one for each. `given` has the mean of the term given all of a
    row but its label, for every atom: then claims are about its mean over the rows that there are.
    """

    world: World
    question: Question
    terms: tuple[tuple[Fraction, ...], ...]
    truths: tuple[Fraction, ...]
    expects: Any = field(default_factory=Expects)
    strict: bool = False
    """Whether a claim is false if the truth is at its very end."""
    given: tuple[Fraction, ...] | None = None
    kept: tuple[Fraction, ...] | None = None
    """Which atoms a filter keeps, as 0 or 1."""

    @cached_property
    def groups(self) -> list[tuple[list[Any], tuple[Fraction, ...], int]]:
        """The terms of all rows, for each candidate; what is true; the samples of which it is."""
        found: dict[Any, tuple[list[Any], tuple[Fraction, ...], int]] = {}
        for i, sample in enumerate(self.world.samples):
            if isinstance(self.world, Unlike):
                places = np.arange(len(sample)) * 2 + np.array(sample)
            else:
                (counts,) = sample
                places = np.repeat(np.arange(len(counts)), counts)
            each_term = self.terms if self.kept is None else (*self.terms, self.kept)
            rows = [
                np.array([math.floor(x * WEIGHT_SCALE + Fraction(1, 2)) for x in each])[places]
                for each in each_term
            ]
            truths = self.truths
            if self.given is not None:
                truths = (sum((self.given[a] for a in places), Fraction(0)) / len(places),)
            key = (tuple(sorted(zip(*(each.tolist() for each in rows), strict=True))), truths)
            *_, samples = found.get(key, (None, None, 0))
            found[key] = (rows, truths, samples | 1 << i)
        return list(found.values())

    @property
    def rows(self) -> int:
        return len(self.groups[0][0][0])

    @cached_property
    def protocol(self) -> Any:
        plan = ToldPlan(0.95, self.rows, 0, False)  # the level is the past's
        return KINDS[self.question.verb](plan, plan, 1, 0.95, certified=True)

    def __call__(self, state: State) -> list[Outcome]:
        outcomes: dict[tuple[Any, bool, State], int] = {}
        for rows, truths, samples in self.groups:
            drawn = drive(self.protocol, self.question, rows, state.past, self.expects)
            letters = tuple(tuple(one["letter"]) for one in drawn.get("batch", [drawn]))
            key = (letters, self.false(drawn, truths), state.after(self.question, drawn))
            outcomes[key] = outcomes.get(key, 0) | samples
        return [(samples, false, after) for (_, false, after), samples in outcomes.items()]

    def false(self, drawn: Drawn, truths: Sequence[Fraction]) -> bool:
        """Whether something that was told is false."""
        return any(
            self._beyond(one.get("low"), truth, 1) or self._beyond(one.get("high"), truth, -1)
            for one, truth in zip(drawn.get("batch", [drawn]), truths, strict=True)
        )

    def _beyond(self, end: float | None, truth: Fraction, sign: int) -> bool:
        if end is None:
            return False
        gap = sign * (Fraction(end) - truth)
        return gap > 0 or (self.strict and gap == 0)


def drive(protocol: Any, question: Question, rows: Sequence[Any], past: Past, public: Any) -> Drawn:
    """What the product draws of rows with these terms, after this past."""
    steps = protocol.ask(question, system_entropy(), ())
    step = next(steps)
    while True:
        if isinstance(step, Terms):
            found: Any = rows[-1] if step.count else rows[step.of]
        elif isinstance(step, Values):
            found = rows[0] / WEIGHT_SCALE
        else:
            assert isinstance(step, PastTold)
            found = (past, public)
        try:
            step = steps.send(found)
        except StopIteration as ended:
            drawn: Drawn = ended.value
            return drawn


def mean(world: World, terms: Sequence[Fraction]) -> Fraction:
    """What a mean of these terms is about."""
    if isinstance(world, Unlike):
        pairs = zip(world.masses, terms[::2], terms[1::2], strict=True)
        return sum(((1 - p) * no + p * yes for p, no, yes in pairs), Fraction(0)) / len(
            world.masses
        )
    return sum((m * t for m, t in zip(world.masses, terms, strict=True)), Fraction(0))


def asking(
    world: World,
    verb: str,
    *terms: Sequence[int | Fraction],
    grid: Any = None,
    reading: Any = None,
    expects: Any = None,
    given: Any = None,
    kept: Any = None,
    **words: Any,
) -> Asking:
    """A question about these terms of the atoms. Rows that are not alike are these very rows."""
    each = tuple(tuple(Fraction(x) for x in one) for one in terms)
    share = all(x in (0, 1) for one in each for x in one)
    reading = ROWS if isinstance(world, Unlike) or given is not None else reading
    facts = {"engine": "local", "text": "a term"}
    facts |= {} if reading is None else {"reading": reading}
    facts |= {} if kept is None else {"where": "a condition"}
    blocks = verb in ("ask", "interval", "verify")
    known: Any = Expects() if expects is None else expects
    if verb == "scores" and expects is None:
        known = [Expects()] * len(each)
    question = Question(
        verb,  # type: ignore[arg-type]
        "told",
        facts,
        grid=grid,
        share=True if share and not blocks else None,
        candidates=len(each) if len(each) > 1 else None,
        **words,
    )
    truths: tuple[Fraction, ...]
    if blocks:
        truths = (_median(world, each[0]),)
    elif question.paired:
        truths = (mean(world, each[0]) - mean(world, each[1]),)
    else:
        truths = tuple(mean(world, one) for one in each)
    if verb == "best":
        truths = truths[:1]  # it claims nothing
    verdict = verb in ("gate", "verify") or question.margin is not None
    if kept is not None:
        inside = [x * k for x, k in zip(each[0], kept, strict=True)]
        truths = (mean(world, inside) / mean(world, [Fraction(k) for k in kept]),)
    fixed = None if given is None else tuple(given)
    chosen = None if kept is None else tuple(Fraction(k) for k in kept)
    return Asking(world, question, each, truths, known, verdict, fixed, chosen)


def _median(world: World, values: Sequence[Fraction]) -> Fraction:
    """inf{c : P[value ≤ c] ≥ ½}."""
    pairs = sorted(zip(values, world.masses, strict=True))
    total = Fraction(0)
    for value, mass in pairs:
        total += mass
        if total >= Fraction(1, 2):
            return value
    raise AssertionError
