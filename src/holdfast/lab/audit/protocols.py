"""The audit of any protocol: estimates by `run`, all others by the attacks on each of them.

Those attacks hold the blocks of their plan, for a protocol refuses a budget that is not certified.
So the rate of failure is counted, and a tightness is not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.lab.audit.pool import processes
from holdfast.lab.audit.result import Audit, AuditRow
from holdfast.lab.audit.run import Progress, audit, chosen_seed
from holdfast.lab.protocol_attacks.base import Attack, Run
from holdfast.lab.protocol_attacks.correct import CorrectAttack
from holdfast.lab.protocol_attacks.fresh import RoundsAttack, SplitAttack
from holdfast.lab.protocol_attacks.guesses import TwoSidedAttack
from holdfast.lab.protocol_attacks.intervals import IntervalAttack
from holdfast.lab.protocol_attacks.means import MedianMeanAttack
from holdfast.lab.protocol_attacks.sample import Trial
from holdfast.lab.protocol_attacks.searches import AmplifiedAttack, SimpleAttack
from holdfast.lab.protocol_attacks.weights import WeightsAttack
from holdfast.lab.statistics import failure_rate_bound

__all__ = ["PROTOCOLS", "audit_any"]

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
