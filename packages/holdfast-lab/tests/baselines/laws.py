"""Exact laws of interactive mechanisms: all noise is tried, up to a tail that is accounted for.

A rule is a pure function of its noise: `start()` gives a state, `ask(state, question, draw)` an
answer and the next state. `transcripts` runs it for every value of every draw.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, Protocol

Draw = Callable[[Fraction], int]
Transcript = tuple[Hashable, ...]


class Rule(Protocol):
    """What `holdfast_lab.baselines` and its mutants have in common."""

    def start(self) -> Any: ...

    def ask(self, state: Any, question: Any, draw: Draw) -> tuple[Any, Any]: ...


class Law(NamedTuple):
    """Probabilities, and how much they lack to 1 because tails of the noise were left out."""

    chances: Mapping[Transcript, float]
    missing: float


@cache
def laplace_law(scale: Fraction, tail: float) -> tuple[tuple[int, float], ...]:
    """P[X = x] = (1 − q)/(1 + q)·q^|x|, q = e^(−1/scale), where at most `tail` lies outside."""
    ratio = math.exp(-1 / scale)
    reach = math.ceil(-float(scale) * math.log(tail / 2))
    peak = -math.expm1(-1 / scale) / (1 + ratio)
    return tuple((x, peak * math.exp(-abs(x) / scale)) for x in range(-reach, reach + 1))


Choices = Sequence[tuple[Any, float]]
Choose = Callable[[Choices], Any]

_NEGLIGIBLE = 1e-16  # paths less likely than this are left out


class _Needed(Exception):
    def __init__(self, choices: Choices) -> None:
        self.choices = choices


def outcomes(run: Callable[[Choose], Any]) -> dict[Any, float]:
    """The law of what a run returns, over all values of all its choices; short of 1 by a tail."""
    found: dict[Any, float] = defaultdict(float)
    pending: list[tuple[tuple[Any, ...], float]] = [((), 1.0)]
    while pending:
        chosen, chance = pending.pop()
        rest = iter(chosen)

        def choose(choices: Choices, rest: Iterable[Any] = rest) -> Any:
            for value in rest:
                return value
            raise _Needed(choices)

        try:
            found[run(choose)] += chance
        except _Needed as needed:
            pending += [
                ((*chosen, x), chance * p) for x, p in needed.choices if chance * p > _NEGLIGIBLE
            ]
    return found


def noisy_outcomes(run: Callable[[Draw], Any], tail: float) -> dict[Any, float]:
    """The law of what a run returns, over all values of its discrete Laplace noise."""
    return outcomes(lambda choose: run(lambda scale: choose(laplace_law(scale, tail))))


class Laws:
    """The laws of one rule's transcripts, with its single steps kept."""

    def __init__(self, rule: Rule, tail: float = 1e-13) -> None:
        self.rule = rule
        self.tail = tail
        self._steps: dict[tuple[Any, Any], dict[Any, float]] = {}

    def step(self, state: Any, question: Any) -> dict[Any, float]:
        key = state, question
        if key not in self._steps:
            self._steps[key] = noisy_outcomes(
                lambda draw: self.rule.ask(state, question, draw), self.tail
            )
        return self._steps[key]

    def transcripts(self, questions: Sequence[Any]) -> Law:
        now: dict[tuple[Transcript, Any], float] = {((), self.rule.start()): 1.0}
        for question in questions:
            after: dict[tuple[Transcript, Any], float] = defaultdict(float)
            for (transcript, state), chance in now.items():
                for (answer, next_state), share in self.step(state, question).items():
                    after[(*transcript, answer), next_state] += chance * share
            now = after
        chances: dict[Transcript, float] = defaultdict(float)
        for (transcript, _), chance in now.items():
            chances[transcript] += chance
        return Law(chances, max(0.0, 1 - math.fsum(chances.values())))


def privacy_loss(law: Law, other: Law, least: float = 1e-9) -> float:
    """The largest ln(p/q) over what happens with p ≥ least: a lower bound of the true maximum.

    q may be larger by all that is missing, and no more: a loss found here is one.
    """
    return max(
        math.log(chance / (other.chances.get(transcript, 0.0) + other.missing + 1e-15))
        for transcript, chance in law.chances.items()
        if chance >= least
    )


def worst_loss(
    laws: Laws, pairs: Iterable[tuple[Sequence[Any], Sequence[Any]]], least: float = 1e-9
) -> float:
    """The largest privacy loss between the questions on two neighbouring datasets, both ways."""
    worst = 0.0
    for here, there in pairs:
        law, other = laws.transcripts(here), laws.transcripts(there)
        worst = max(worst, privacy_loss(law, other, least), privacy_loss(other, law, least))
    return worst
