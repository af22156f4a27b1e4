"""The audit of a plan for estimates: every analyst at the certified size, and below it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.randomness import system_entropy
from holdfast_lab.attacks.sign_sums import (
    Analyst,
    LabelAnalyst,
    PersistentAnalyst,
    SignAggregator,
    best_learning,
    expected_breaking,
    score_grid,
)
from holdfast_lab.audit.result import Audit, AuditRow, Point
from holdfast_lab.audit.sessions import (
    SHARES,
    Breaking,
    Measured,
    Pool,
    Sessions,
    Subject,
    batches,
    find_breaking,
    gathered,
    planned,
    play,
    processes,
)
from holdfast_lab.protocol_attacks.base import Attack, Run, Trial
from holdfast_lab.protocol_attacks.means import IntervalAttack, MedianMeanAttack, TwoSidedAttack
from holdfast_lab.protocol_attacks.searches import (
    AmplifiedAttack,
    CorrectAttack,
    RoundsAttack,
    SimpleAttack,
    SplitAttack,
    WeightsAttack,
)
from holdfast_lab.statistics import failure_rate_bound

__all__ = [
    "ANALYSTS",
    "PROTOCOLS",
    "about",
    "analyst_named",
    "audit",
    "audit_any",
    "audit_subject",
    "chosen_seed",
    "left_out",
    "workers_at_hand",
]


# The analysts of an audit, each made for one plan and one number of blocks.


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


_BELOW = 150  # sessions at a size below the certified one, or half of all if that is more
_FEWER = {"collector": 30}  # slow, and weak against looks: it is there for the naive holdout

Progress = Callable[[str, int], None]
"""Called with what is being played, and how many sessions of it are over."""

_NOT_BROKEN = "No analyst broke the promise at a tenth of the blocks."


def workers_at_hand() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


def chosen_seed(seed: int | None) -> int:
    """The seed that was given, or one from the operating system."""
    if seed is None:
        return int(system_entropy().words(1)[0])
    return whole_number("seed", seed, 0, 2**64 - 1)


def audit(
    queries: int,
    tail: float,
    confidence: float = 0.95,
    sessions: int = 300,
    *,
    grid: int = 32,
    analyst: str | None = None,
    seed: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Audit:
    """Attack the plan for this promise, and say how often it failed and how tight it is.

    >>> result = audit(20, 0.05, sessions=20, analyst="tuned", seed=1)
    >>> result.certified, result.worst.failures, 1.1 < result.strongest.tightness < 1.8
    (107, 0, True)
    """
    real_number("tail", tail, 0, 0.5, open_low=True, open_high=True)
    subject = planned(queries, grid, tail, confidence)
    return audit_subject(
        subject,
        sessions,
        analyst=analyst,
        seed=seed,
        workers=workers,
        progress=progress,
    )


def audit_subject(
    subject: Subject,
    sessions: int = 300,
    *,
    analyst: str | None = None,
    seed: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Audit:
    """The same for any coin on any number of blocks, certified or not."""
    sessions = whole_number("sessions", sessions, 1, 10**6)
    workers = whole_number("workers", workers, 1, 1024)
    names, idle = _names(analyst, subject)
    with processes(workers) as pool:
        table = _Table(subject, sessions, chosen_seed(seed), pool, progress)
        measured = {name: table.measured(name) for name in names}
        played = {name: at.at(subject.blocks) for name, at in measured.items()}
        found = {
            name: find_breaking(at, subject.blocks, subject.failure)
            for name, at in measured.items()
        }
        rows = tuple(_row(name, subject, played[name], found[name]) for name in names)
        strongest = max(rows, key=lambda row: (row.breaks_below or 0, row.rate or 0)).analyst
        curve = tuple(_curve(measured[strongest], subject.blocks))
    return Audit(
        protocol="estimate",
        plan={
            "queries": subject.queries,
            "grid": subject.grid,
            "tail": subject.tail,
            "confidence": subject.confidence,
            "looks": subject.looks,
        },
        certified=subject.blocks,
        failure=subject.failure,
        seed=table.seed,
        rows=rows,
        left_out=idle,
        curve=curve,
        tightness_note="" if any(found.values()) else _NOT_BROKEN,
    )


def _names(analyst: str | None, subject: Subject) -> tuple[list[str], dict[str, str]]:
    """Who is to attack, and who is left out for a reason."""
    if analyst is not None and analyst not in ANALYSTS:
        raise InvalidInput("analyst", analyst, "one of " + ", ".join(ANALYSTS))
    reasons = {name: left_out(name, subject) for name in ANALYSTS}
    if analyst is not None:
        return [analyst], {}
    idle = {name: reason for name, reason in reasons.items() if reason}
    return [name for name in ANALYSTS if name not in idle], idle


def _row(name: str, subject: Subject, played: Sessions, breaking: Breaking | None) -> AuditRow:
    described = about(analyst_named(name, subject))
    return AuditRow.of(name, described, played, subject.blocks, breaking)


def _curve(measured: Measured, certified: int) -> Iterable[Point]:
    for share in SHARES:
        blocks = max(1, round(share * certified))
        yield Point.of(share, blocks, measured.at(blocks))


@dataclass(frozen=True)
class _Table:
    """Plays sessions of any analyst at any size."""

    subject: Subject
    sessions: int
    seed: int
    pool: Pool
    progress: Progress | None

    def measured(self, name: str) -> Measured:
        """The sessions of one analyst, as they are asked for."""
        return Measured(lambda blocks: self._play(name, blocks))

    def _play(self, name: str, blocks: int) -> Sessions:
        subject = self.subject.on(blocks)
        below = _FEWER.get(name, max(_BELOW, self.sessions // 2))
        certified = blocks == self.subject.blocks
        sessions = self.sessions if certified else min(self.sessions, below)
        analyst = analyst_named(name, subject)
        cut = batches(subject, analyst, self.seed, self.pool.cut(sessions))
        parts = []
        for part in self.pool.run(play, cut):
            parts.append(part)
            if self.progress is not None:
                self.progress(f"{name} on {blocks:,} blocks", part.count)
        return gathered(parts)


# The audit of any protocol: estimates by `run`, all others by the attacks on each of them.
#
# Those attacks hold the blocks of their plan, for a protocol refuses a budget that is not
# certified. So the rate of failure is counted, and a tightness is not measured.


_NOT_MEASURED = (
    "A protocol holds the blocks of its plan and refuses fewer, so where its promise would break "
    "is not known; audit estimates for that."
)


def _interval(queries: int, tail: float, confidence: float) -> Attack:
    features = max(1, queries - 3)
    return IntervalAttack(queries, features, tail, confidence=confidence)


def _mean(queries: int, tail: float, confidence: float) -> Attack:
    features = max(1, round(0.63 * queries))
    return MedianMeanAttack(queries, features, tail=tail, confidence=confidence)


def _verify(queries: int, tail: float, confidence: float) -> Attack:
    refusals = min(12, queries)
    return TwoSidedAttack(
        queries,
        refusals,
        features=max(1, round(0.9 * queries)),
        tail_low=tail,
        spare=min(3, refusals - 1),
        confidence=confidence,
    )


def _correct(queries: int, tail: float, confidence: float) -> Attack:
    refusals = min(8, queries)
    return CorrectAttack(
        queries,
        refusals,
        tail_low=tail,
        size=max(2**12, _labels(40, tail)),
        spare=min(2, refusals - 1),
        confidence=confidence,
    )


def _rounds(queries: int, tail: float, confidence: float) -> Attack:
    verification = 1 - 0.9 * (1 - confidence)
    return RoundsAttack(
        queries,
        tail_low=tail,
        tail_high=max(0.1, min(0.45, 2 * tail)),
        verification=verification,
        confidence=confidence,
    )


def _weights(queries: int, tail: float, confidence: float) -> Attack:
    queries = whole_number("queries", queries, 4, 10**6)  # three are kept for the end
    return WeightsAttack(queries, tail=tail, confidence=confidence)


def _simple(queries: int, tail: float, confidence: float) -> Attack:
    attack = SimpleAttack(queries, tail=tail, steps=queries + 1, confidence=confidence)
    return replace(attack, size=max(attack.size, _labels(attack.needed, tail)))


def _amplified(queries: int, tail: float, confidence: float) -> Attack:
    attack = AmplifiedAttack(queries, tail=tail, steps=queries, confidence=confidence)
    return replace(attack, size=max(attack.size, _labels(attack.needed, tail)))


def _split(queries: int, tail: float, confidence: float) -> Attack:
    return SplitAttack(queries, tail, confidence)


def _labels(needed: int, tail: float) -> int:
    """How many labels there must be for so many of them to be a rare event: a power of two."""
    return 1 << int(needed / tail).bit_length()


PROTOCOLS: dict[str, tuple[str, Callable[[int, float, float], Attack]]] = {
    "interval": ("aggregator", _interval),
    "mean": ("aggregator", _mean),
    "verify": ("aggregator", _verify),
    "correct": ("collector", _correct),
    "rounds": ("collector", _rounds),
    "weights": ("collector", _weights),
    "simple": ("collector", _simple),
    "amplified": ("collector", _amplified),
    "split": ("collector", _split),
}
"""For each protocol the analyst that attacks it, and the attack for a promise."""


@dataclass(frozen=True)
class _Batch:
    attack: Attack
    seed: int
    first: int
    count: int


def _play(batch: _Batch) -> tuple[list[Run], list[Run]]:
    trials = [Trial(batch.seed, batch.first + n) for n in range(batch.count)]
    ours = [batch.attack.run("holdfast", trial) for trial in trials]
    return ours, [batch.attack.run("naive", trial) for trial in trials]


def audit_any(
    protocol: str,
    queries: int,
    tail: float,
    confidence: float = 0.95,
    sessions: int = 300,
    *,
    grid: int | None = None,
    analyst: str | None = None,
    seed: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Audit:
    """Audit the plan of a protocol for this promise."""
    if protocol == "estimate":
        return audit(
            queries,
            tail,
            confidence,
            sessions,
            grid=32 if grid is None else grid,
            analyst=analyst,
            seed=seed,
            workers=workers,
            progress=progress,
        )
    attacker, make = _chosen(protocol, grid, analyst)
    sessions = whole_number("sessions", sessions, 1, 10**6)
    workers = whole_number("workers", workers, 1, 1024)
    queries = whole_number("queries", queries, 1, 10**6)
    tail = real_number("tail", tail, 0, 0.5, open_low=True, open_high=True)
    confidence = real_number("confidence", confidence, 0, 1, open_low=True, open_high=True)
    attack, chosen = make(queries, tail, confidence), chosen_seed(seed)
    ours, naive = _played(attack, chosen, sessions, workers, progress)
    failures = sum(run.broken for run in ours)
    row = AuditRow(
        analyst=attacker,
        about=attack.story,
        sessions=sessions,
        failures=failures,
        upper_bound=failure_rate_bound(failures, sessions),
        rate=None,
        naive_failures=sum(run.broken for run in naive),
        tightness=None,
        note="" if all(run.polite for run in ours) else "a budget did not end as it should",
    )
    return Audit(
        protocol=protocol,
        plan={"queries": queries, "tail": tail, "confidence": confidence},
        certified=attack.blocks,
        failure=round(1 - confidence, 12),
        seed=chosen,
        rows=(row,),
        left_out={},
        curve=(),
        tightness_note=_NOT_MEASURED,
    )


def _chosen(
    protocol: str, grid: int | None, analyst: str | None
) -> tuple[str, Callable[[int, float, float], Attack]]:
    if protocol not in PROTOCOLS:
        raise InvalidInput("protocol", protocol, "one of " + ", ".join(["estimate", *PROTOCOLS]))
    if grid is not None:
        hint = "Attacks on other protocols choose their own grids."
        raise InvalidInput("grid", grid, "left out but for estimates", hint)
    attacker, make = PROTOCOLS[protocol]
    if analyst not in (None, attacker):
        hint = "Audit estimates to choose among all analysts."
        raise InvalidInput("analyst", analyst, f"{attacker} for {protocol}", hint)
    return attacker, make


def _played(
    attack: Attack, seed: int, sessions: int, workers: int, progress: Progress | None
) -> tuple[list[Run], list[Run]]:
    ours: list[Run] = []
    naive: list[Run] = []
    with processes(workers) as pool:
        cut = [_Batch(attack, seed, first, count) for first, count in pool.cut(sessions)]
        for planned, exact in pool.run(_play, cut):
            ours += planned
            naive += exact
            if progress is not None:
                progress(attack.name, len(planned))
    return ours, naive
