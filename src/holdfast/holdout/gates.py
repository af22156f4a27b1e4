"""Gates: does a score reach a threshold? One verification on one side, and what it certifies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from holdfast.errors import InvalidInput, real_number
from holdfast.holdout.clerk import Clerk
from holdfast.holdout.offers import tells
from holdfast.holdout.scorers import Scorer
from holdfast.holdout.scores import Judged
from holdfast.holdout.sets import Offer
from holdfast.protocols.answers import Verdict
from holdfast.protocols.promises import at_least, fewer_than, rounded_down, rounded_up
from holdfast.protocols.readings import reading_words
from holdfast.theory.bars import verdict_bar

__all__ = [
    "Gate",
    "GateWord",
    "Side",
    "gate_offer",
    "refuse_empty",
    "refuse_foregone",
    "rounded_down",
    "rounded_up",
    "side_of",
    "told",
]

Side = Literal["at least", "at most"]
GateWord = Literal["pass", "fail", "exhausted"]
_GATE = "gate"


@dataclass(frozen=True)
class Gate:
    """A verdict on a threshold, and what follows from it for the score on fresh data.

    `low` and `high` bound the score where it is a mean of terms between 0 and 1; else they are
    None. Exhausted, nothing is said: then the gate is not passed, and has not failed either.
    """

    verdict: Verdict
    metric: str
    claim: Side
    low: float | None
    high: float | None
    certifies: str

    @property
    def passed(self) -> bool:
        """Whether the threshold was confirmed."""
        return self.verdict.refused is False

    @property
    def exhausted(self) -> bool:
        """Whether nothing was drawn, for what is left does not pay for it."""
        return self.verdict.refused is None

    @property
    def word(self) -> GateWord:
        """Pass, fail or exhausted."""
        return "exhausted" if self.exhausted else "pass" if self.passed else "fail"

    def to_dict(self) -> dict[str, Any]:
        """The verdict's plain data, and the gate's; its `verdict` is pass, fail or exhausted."""
        return {
            **self.verdict.to_dict(),
            "type": "verdict",
            "verdict": self.word,
            "passed": self.passed,
            "metric": self.metric,
            "claim": self.claim,
            "low": self.low,
            "high": self.high,
            "certifies": self.certifies,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Gate:
        """What `to_dict` wrote."""
        names = [each.name for each in fields(Verdict)]
        verdict = Verdict(**{name: data[name] for name in names})
        more = (data[name] for name in ("metric", "claim", "low", "high", "certifies"))
        return cls(verdict, *more)

    def __str__(self) -> str:
        left, budget = self.verdict.refusals_left, self.verdict.budget_left
        paid = f"  price {self.verdict.price:.4g}"
        paid += "" if left == budget else f", {budget:.4g} left"  # where refusals are what is paid
        paid += "" if left is None else f"; {left:,} refusals left"
        lines = [
            f"{self.word}: {self.metric} {self.claim} {self.verdict.guess:.12g}?",
            f"  {self.certifies}",
            "  free: asked before" if self.verdict.cached else paid,
        ]
        return "\n".join([*lines, f"  receipt {self.verdict.receipt}"][: 3 + bool(self.receipt)])

    @property
    def receipt(self) -> str:
        """The verdict's receipt."""
        return self.verdict.receipt

    @property
    def reading(self) -> str | None:
        """What the score is about, as a code."""
        return self.verdict.reading


def side_of(at_least: float | None, at_most: float | None) -> tuple[Side, float]:
    """The side and the threshold: one of the two must be given."""
    if at_least is not None and at_most is None:
        return "at least", real_number("at_least", at_least)
    if at_most is not None and at_least is None:
        return "at most", real_number("at_most", at_most)
    raise InvalidInput("at_least or at_most", (at_least, at_most), "given, and only one of them")


def gate_offer(clerk: Clerk, by: str | None) -> Offer:
    """The part of the plan that verifies one side of a guess."""
    hint = (
        "A plan is made before the data are sealed, with a part for guesses: "
        "holdfast create … --protocols gate=200 --refusals 10, or "
        "exact_verdicts(200, refusals=10, tail_low=1e-6, tail_high=1 - 1e-6, sides=1)."
    )
    if by is None and any(offer.name == _GATE for offer in clerk.offers):
        by = _GATE  # made for this, where the plan has other guesses too
    try:
        offer = clerk.offer("verify", by)
    except InvalidInput:
        if by is not None:
            raise
        raise InvalidInput("plan", "no part for guesses", "one that can verify", hint) from None
    if offer.protocol not in ("verify", "exact-verify"):
        raise InvalidInput("plan", offer.protocol, "one with a part for guesses", hint)
    return offer


def refuse_foregone(scorer: Scorer, claim: Side, threshold: float) -> None:
    """Refuse a threshold outside the metric's range: what would come of it is known already."""
    ends = scorer.metric.range
    if ends is not None and not ends[0] <= threshold <= ends[1]:
        allowed = f"from {ends[0]:g} to {ends[1]:g}, where every {scorer.name} lies"
        raise InvalidInput(claim.replace(" ", "_"), threshold, allowed, "Nothing was charged.")


def refuse_empty(offer: Offer, score: Judged) -> None:
    """Refuse a score that is no mean where the plan's tails say nothing of any other."""
    if not score.terms and not tells(offer):
        hint = (
            "Nothing was charged. Gate accuracy, or seal data under gates that speak of blocks: "
            "holdfast create … --protocols gate=200 --tail 0.1."
        )
        allowed = "a mean of terms from 0 to 1: of anything else these gates certify nothing"
        raise InvalidInput("metric", score.scorer.name, allowed, hint)


def told(clerk: Clerk, score: Judged, claim: Side, verdict: Verdict) -> Gate:
    """The gate that a verdict is, with what it certifies in plain words."""
    name, units = score.scorer.name, clerk.charter.manifest.block_units
    if verdict.refused is None:
        words = "what is left does not pay for it: nothing was drawn, and nothing is said"
        return Gate(verdict, name, claim, None, None, words)
    low = high = None
    if score.terms:
        low, high = verdict_bar(
            *(verdict.guess, claim, not verdict.refused, units),
            *(verdict.tail_low, verdict.tail_high),
        )
        if score.model:  # a failure counts as the worst value: it can hide a better score
            low, high = (low, 1.0) if score.scorer.greater_is_better else (0.0, high)
    sure = "certified" if verdict.certified else "NOT certified (the holdout is seeded)"
    words = _bar(name, low, high) or _quantile(name, claim, verdict, units)
    words += f", for {reading_words(verdict.reading)}"
    return Gate(verdict, name, claim, low, high, f"{sure}: {words}")


def _bar(name: str, low: float | None, high: float | None) -> str:
    if low is not None and low > 0:
        return f"the {name} on fresh data is at least {rounded_down(low)}"
    if high is not None and high < 1:
        return f"the {name} on fresh data is at most {rounded_up(high)}"
    small = f"no bound on the {name} beside its range"
    return "" if low is None else small


def _quantile(name: str, claim: Side, verdict: Verdict, units: int) -> str:
    share = fewer_than(verdict.tail_high) if verdict.refused else at_least(verdict.tail_low)
    blocks = f"fresh blocks of {units:,} units"
    return f"{share} {blocks} have a {name} of {claim} {verdict.guess:.12g}"
