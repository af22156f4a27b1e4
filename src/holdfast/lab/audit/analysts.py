"""The analysts of an audit, each made for one plan and one number of blocks."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.errors import InvalidInput
from holdfast.lab.audit.subject import Subject
from holdfast.lab.signs.analysts import Analyst, PersistentAnalyst, SignAggregator
from holdfast.lab.signs.collecting import LabelAnalyst
from holdfast.lab.signs.questions import score_grid
from holdfast.lab.signs.tuning import best_learning, expected_breaking

__all__ = ["ANALYSTS", "about", "analyst_named", "left_out"]


def _aggregator(subject: Subject) -> Analyst:
    final = score_grid(subject.looks).looks
    return SignAggregator(max(1, subject.looks - final))


def _persistent(subject: Subject) -> Analyst:
    return PersistentAnalyst(subject.looks, tail=subject.tail)


def _tuned(subject: Subject) -> Analyst:
    """Divides its looks as is best where the attack is about to win, by the model of `tuning`."""
    coin, looks, tail = subject.coin, subject.looks, subject.tail
    edge = expected_breaking(coin, looks, tail, subject.failure)
    return PersistentAnalyst(looks, best_learning(coin, edge, looks, tail), tail)


def _collector(subject: Subject) -> Analyst:
    return LabelAnalyst(subject.looks, subject.blocks, subject.tail)


ANALYSTS: dict[str, Callable[[Subject], Analyst]] = {
    "aggregator": _aggregator,
    "persistent": _persistent,
    "tuned": _tuned,
    "collector": _collector,
}


def analyst_named(name: str, subject: Subject) -> Analyst:
    """The analyst of that name, for this plan and its number of blocks."""
    if name not in ANALYSTS:
        raise InvalidInput("analyst", name, "one of " + ", ".join(ANALYSTS))
    return ANALYSTS[name](subject)


def left_out(name: str, subject: Subject) -> str:
    """Why an analyst has nothing to try on this plan; empty if it has."""
    if name != "collector":
        return ""
    needed = LabelAnalyst(subject.looks, subject.blocks, subject.tail).expected_looks
    if needed <= subject.looks:
        return ""
    return (
        f"would need about {needed:,.0f} looks for the labels of half of the "
        f"{subject.blocks:,} blocks, even if answers were exact"
    )


def about(analyst: Analyst) -> str:
    """What an analyst does with its looks, in words."""
    if isinstance(analyst, SignAggregator):
        final = analyst.looks - analyst.questions
        return f"{analyst.questions:,} looks learn, one search of {final} looks asks for the median"
    if isinstance(analyst, PersistentAnalyst):
        rest = analyst.looks - analyst.learnt
        return f"{analyst.learnt:,} looks learn, {rest:,} ask about events of tail {analyst.tail:g}"
    assert isinstance(analyst, LabelAnalyst)
    return (
        f"searches of {analyst.points:,} points collect the labels of {analyst.needed:,} blocks, "
        "if they can; then it asks whether a label is known"
    )
