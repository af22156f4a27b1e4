"""Which protocol: k questions, at most ℓ surprises, over such data, and the cheapest way to ask.

All candidates promise the same of their answers: in qi(tail, 1 − tail), for all questions at once.
Those with guesses end after their refusals. They differ in what they need besides blocks: open data
to guess from (correct, rounds), a finite universe (weights), sub-blocks (amplified), blocks that
serve nothing else (exact, split).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from holdfast.errors import HoldfastError, Infeasible, InvalidInput, real_number, whole_number
from holdfast.planning.proposals import (
    Proposal,
    propose_amplified,
    propose_correct,
    propose_estimate,
    propose_exact,
    propose_rounds,
    propose_split,
    propose_weights,
)

__all__ = ["Recommendation", "recommend", "tail_between"]


@dataclass(frozen=True)
class Recommendation:
    """Proposals for the same promise, the cheapest first, and why others are missing."""

    proposals: tuple[Proposal, ...]
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def best(self) -> Proposal:
        """The cheapest."""
        return self.proposals[0]

    @property
    def saving(self) -> float | None:
        """How many times more blocks the next one needs."""
        if len(self.proposals) < 2:
            return None
        return self.proposals[1].blocks / self.best.blocks

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text."""
        return {
            **self.best.to_dict(),
            "saving": self.saving,
            "candidates": [{"protocol": p.protocol, "blocks": p.blocks} for p in self.proposals],
            "refused": [{"protocol": name, "reason": reason} for name, reason in self.refused],
        }


def tail_between(tail: float) -> float:
    """The tail above which a guess must be confirmed, where none is given: half way to 1/2."""
    return (tail + 0.5) / 2


def recommend(
    queries: int,
    *,
    refusals: int | None = None,
    universe: int | None = None,
    grid: int = 32,
    tail: float = 0.25,
    tail_high: float | None = None,
    confidence: float = 0.95,
) -> Recommendation:
    """The cheapest protocol for `queries` questions, and what every other one needs.

    refusals    how many guesses from open data may turn out wrong (a wrong one has a tail below
                tail_high); without it no protocol with guesses is considered
    universe    how many different blocks there can be; without it no weights are

    >>> advice = recommend(20, tail=0.25)
    >>> advice.best.protocol, advice.best.blocks
    ('exact', 461)
    """
    queries = whole_number("queries", queries, 1, 10**8)
    tail = real_number("tail", tail, 0, 0.5, open_low=True, open_high=True)
    high = tail_between(tail) if tail_high is None else tail_high
    candidates: dict[str, Callable[[], Proposal]] = {
        "estimate": partial(propose_estimate, queries, grid, tail, confidence),
        "amplified": partial(propose_amplified, queries, grid, tail, confidence),
        "exact": partial(propose_exact, queries, grid, tail, confidence),
        "split": partial(propose_split, queries, tail, confidence),
    }
    if refusals is not None:
        guesses = (tail, high, confidence)
        candidates["correct"] = partial(propose_correct, queries, refusals, grid, *guesses)
        candidates["rounds"] = partial(propose_rounds, queries, refusals, *guesses)
    if universe is not None:
        sizes = (queries, universe, tail, grid, confidence)
        candidates["weights"] = partial(propose_weights, *sizes)
    found, refused = [], []
    for name, propose in candidates.items():
        try:
            found.append(propose())
        except (Infeasible, InvalidInput) as why:
            refused.append((name, str(why)))
    if not found:
        raise HoldfastError(f"No protocol can be planned: {refused[0][1]}")
    # Of equals the first: the order above is that of fewest further needs.
    return Recommendation(tuple(sorted(found, key=lambda p: p.blocks)), tuple(refused))
