"""How often a plan fails under attack, and how far the best attack is from its certificate.

A plan for estimates is attacked by every analyst of `signs`, at its certified size and below it:
there its promise does break. Any other protocol is attacked by its own of `attacks.protocols`, at
its size.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.randomness import SeededEntropy, system_entropy
from holdfast.theory.coins import Coin
from holdfast_lab.attacks.conversation import Bits, FloatArray, Session, interview
from holdfast_lab.attacks.learners import SearchResponder
from holdfast_lab.attacks.protocols import (
    AmplifiedAttack,
    Attack,
    CorrectAttack,
    IntervalAttack,
    MedianMeanAttack,
    RoundsAttack,
    Run,
    SimpleAttack,
    SplitAttack,
    Trial,
    TwoSidedAttack,
    WeightsAttack,
)
from holdfast_lab.attacks.signs import (
    ExactMedian,
    LabelAnalyst,
    Looks,
    PersistentAnalyst,
    SignAggregator,
    SignAnalyst,
    best_learning,
    expected_breaking,
    failure_chance,
    score_grid,
)
from holdfast_lab.attacks.targets import Plan, plan
from holdfast_lab.runner.run import spawned
from holdfast_lab.statistics import failure_rate_bound

# What is audited: a plan's promise for estimates, its coin and its blocks.


@dataclass(frozen=True, eq=False)
class Subject:
    """A promise for k questions on r points, and the coin and the blocks that are to keep it.

    The budget of such a plan is `looks` looks. A question pays for the looks that it takes, so
    that an analyst may ask as many yes/no questions as there are looks: the promise covers them.
    """

    queries: int
    grid: int
    tail: float
    confidence: float
    blocks: int
    looks: int
    coin: Coin

    @property
    def failure(self) -> float:
        """β: the rate of failure that is promised at most."""
        return round(1 - self.confidence, 12)

    def on(self, blocks: int) -> Subject:
        """The same promise and the same coin on another number of blocks."""
        return replace(self, blocks=blocks)


def subject_of(made: Plan) -> Subject:
    """The looks of a plan, as they are to be audited."""
    if made.tail is None or made.twice_target != made.blocks:
        allowed = "a plan with equal tails that aims at the median"
        raise InvalidInput("plan", made.tails, allowed, "The attacks are on medians.")
    asked = made.queries, made.grid, made.tail, made.confidence
    return Subject(*asked, made.blocks, made.looks, made.coin())


def planned(queries: int, grid: int, tail: float, confidence: float) -> Subject:
    """The plan for a promise, as it is to be audited.

    >>> planned(100, 32, 0.01, 0.95).blocks
    110
    """
    return subject_of(plan(queries=queries, grid=grid, tail=tail, confidence=confidence))


# Sessions of an analyst with both holdouts, and what came of them.
#
# Every session has blocks of its own, the same for both holdouts. Its blocks and its coins come
# from two streams of the seed, so that the same session on fewer blocks has the first of the same
# blocks: rates at different sizes can be compared.


_MOST_SIGNS = 2**32  # of all blocks of a session: half a gigabyte

Span = tuple[int, int]
"""Some sessions in a row: the first, and how many they are."""


@dataclass(frozen=True, eq=False)
class Sessions:
    """What came of sessions: which failed, and how likely each was to fail when its end began."""

    failed: Bits
    chances: FloatArray
    naive_failed: Bits

    @property
    def count(self) -> int:
        """How many sessions were played."""
        return self.failed.size

    @property
    def failures(self) -> int:
        """In how many of them Holdfast broke the promise."""
        return int(np.count_nonzero(self.failed))

    @property
    def naive_failures(self) -> int:
        """In how many of them the naive holdout did."""
        return int(np.count_nonzero(self.naive_failed))

    @property
    def upper_bound(self) -> float:
        """The 95 % Clopper–Pearson upper bound of Holdfast's rate of failure."""
        return failure_rate_bound(self.failures, self.count)

    @property
    def rate(self) -> float:
        """The rate of failure: the mean of the exact chances, which vary less than failures do."""
        return float(self.chances.mean())

    @property
    def facts(self) -> dict[str, Any]:
        """All that is told of them."""
        names = ("failures", "upper_bound", "rate", "naive_failures")
        return {"sessions": self.count, **{name: getattr(self, name) for name in names}}

    @property
    def error(self) -> float:
        """The standard error of the rate."""
        if self.count < 2:
            return float("nan")
        return float(self.chances.std(ddof=1) / np.sqrt(self.count))


def play(subject: Subject, analyst: SignAnalyst, seed: int, span: Span) -> Sessions:
    """Play some sessions, every look with the plan's coin."""
    if subject.blocks * analyst.features > _MOST_SIGNS:
        raise Infeasible(
            "Size of a session",
            f"{subject.blocks:,} blocks of {analyst.features:,} signs",
            f"at most {_MOST_SIGNS:,} signs are drawn at once",
            "Audit a plan with fewer questions.",
        )
    tail, first, count = subject.tail, *span
    ours, chances, naive = np.zeros((3, count))
    for place in range(count):
        blocks, coins = (SeededEntropy((seed, first + place, stream)) for stream in (0, 1))
        world, looks = analyst.sample(subject.blocks, blocks), Looks(subject.coin, coins)

        def heard(responder: SearchResponder, world: Any = world) -> Session:
            session = interview(analyst, world, responder)
            if session.looks > subject.looks:
                given = f"the plan has {subject.looks:,}"
                remedy = "Let the analyst count its looks."
                raise Infeasible("Looks", f"{session.looks:,} looks", given, remedy)
            return session

        session = heard(looks)
        ours[place] = session.outside(tail).any()
        chances[place] = failure_chance(session, world.holdout, looks, tail)
        naive[place] = heard(ExactMedian()).outside(tail).any()
    return Sessions(ours > 0, chances, naive > 0)


def gathered(played: Iterable[Sessions]) -> Sessions:
    """Several spans as one."""
    parts = [(part.failed, part.chances, part.naive_failed) for part in played]
    return Sessions(*(np.concatenate(each) for each in zip(*parts, strict=True)))


# Below the certified size: how often an analyst breaks the promise there, and where it stops.
#
# The coin stays that of the plan; only the blocks become fewer. So this is about the certificate: a
# plan made for fewer blocks would have another, flatter coin.


SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.2, 0.1)
_FINE = 400  # parts of a size that are told apart
_SIGMAS = 1.96
_GROWTH = 1.25
_MOST_GROWTH = 50

Measure = Callable[[int], Sessions]


@dataclass
class Measured:
    """Sessions of one analyst at sizes, each played when it is first asked for."""

    measure: Measure
    sizes: dict[int, Sessions] = field(default_factory=dict)

    def at(self, blocks: int) -> Sessions:
        """The sessions at this size."""
        if blocks not in self.sizes:
            self.sizes[blocks] = self.measure(blocks)
        return self.sizes[blocks]

    def breaks(self, blocks: int, failure: float) -> bool:
        """Whether the rate of failure at this size is more than is promised."""
        return self.at(blocks).rate > failure


@dataclass(frozen=True)
class Breaking:
    """Where an analyst stops breaking the promise.

    `blocks` is the smallest size at which it does not, `surely_broken` the largest at which the
    rate of failure is above β by 1.96 standard errors or more, and `surely_kept` the smallest at
    which it is below by as much; None where no size that was tried is so.
    """

    blocks: int
    surely_broken: int | None
    surely_kept: int | None


def find_breaking(measured: Measured, certified: int, failure: float) -> Breaking | None:
    """The smallest size at which the promise is kept; None if it is at a tenth of the blocks."""
    bracket = _bracket(measured, certified, failure)
    if bracket is None:
        return None
    low, high = bracket  # broken, kept
    while high - low > max(1, high // _FINE):
        middle = (low + high) // 2
        low, high = (middle, high) if measured.breaks(middle, failure) else (low, middle)
    margins = {blocks: _SIGMAS * played.error for blocks, played in measured.sizes.items()}
    rates = {blocks: played.rate for blocks, played in measured.sizes.items()}
    broken = [blocks for blocks in rates if rates[blocks] - margins[blocks] > failure]
    kept = [blocks for blocks in rates if rates[blocks] + margins[blocks] <= failure]
    return Breaking(high, max(broken, default=None), min(kept, default=None))


def _bracket(measured: Measured, certified: int, failure: float) -> tuple[int, int] | None:
    """Two sizes: the promise is broken on the smaller, and kept on the larger one."""
    low = None
    for share in sorted(SHARES):
        blocks = max(1, round(share * certified))
        if not measured.breaks(blocks, failure):
            return None if low is None else (low, blocks)
        low = blocks
    for _ in range(_MOST_GROWTH):  # the certificate itself is broken
        assert low is not None
        blocks = int(low * _GROWTH) + 1
        if not measured.breaks(blocks, failure):
            return low, blocks
        low = blocks
    return None


# Spans of work in several processes: results come in the order of the spans.


Made = TypeVar("Made")

_SPANS = 8  # for each worker, so that none waits long for the others


class Pool:
    """Runs a function over spans of numbers, in so many processes; with one, in this."""

    def __init__(self, workers: int, spread: Callable[..., Iterator[Any]]) -> None:
        self.workers, self._map = workers, spread

    def run(self, function: Callable[[Span], Made], count: int) -> Iterator[Made]:
        """What the function makes of the numbers 0 … count − 1, a span at a time."""
        size = max(1, -(-count // (_SPANS * self.workers)))
        spans = [(first, min(size, count - first)) for first in range(0, count, size)]
        return self._map(function, spans)


@contextmanager
def processes(workers: int) -> Iterator[Pool]:
    """A pool of so many processes."""
    if whole_number("workers", workers, 1, 1024) == 1:
        yield Pool(1, map)
        return
    with spawned(workers) as executor:
        yield Pool(workers, executor.map)


# The analysts of an audit, each made for one plan and one number of blocks.


def _tuned(subject: Subject) -> SignAnalyst:
    """Divides its looks as is best where the attack is about to win, by the model of `tuning`."""
    coin, looks, tail = subject.coin, subject.looks, subject.tail
    edge = expected_breaking(coin, looks, tail, subject.failure)
    return PersistentAnalyst(looks, best_learning(coin, edge, looks, tail), tail)


ANALYSTS: dict[str, Callable[[Subject], SignAnalyst]] = {
    "aggregator": lambda it: SignAggregator(max(1, it.looks - score_grid(it.looks).looks)),
    "persistent": lambda it: PersistentAnalyst(it.looks, tail=it.tail),
    "tuned": _tuned,
    "collector": lambda it: LabelAnalyst(it.looks, it.blocks, it.tail),
}


def analyst_named(name: str, subject: Subject) -> SignAnalyst:
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


def about(analyst: SignAnalyst) -> str:
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


# What was found, as values and as JSON.


_FACTORS = ("tightness", "tightness_low", "tightness_high")
_FEW = 0.5  # of the sessions: naive that fails in fewer is said to stand


@dataclass(frozen=True)
class AuditRow:
    """One analyst at the certified size, and where it stops breaking the promise."""

    analyst: str
    about: str
    sessions: int
    failures: int
    upper_bound: float
    rate: float | None  # the mean of exact chances, where they are known
    naive_failures: int
    tightness: float | None
    tightness_low: float | None = None
    tightness_high: float | None = None
    breaks_below: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Audit:
    """A plan, and what every analyst made of it."""

    protocol: str
    plan: Mapping[str, object]
    certified: int
    failure: float
    seed: int
    rows: tuple[AuditRow, ...]
    left_out: Mapping[str, str]
    curve: tuple[Mapping[str, Any], ...]
    tightness_note: str = ""

    @property
    def worst(self) -> AuditRow:
        """The analyst with the most failures, and of equal ones the strongest."""
        return max(self.rows, key=lambda row: (row.failures, row.breaks_below or 0, row.rate or 0))

    @property
    def strongest(self) -> AuditRow:
        """The analyst that breaks the promise on the most blocks."""
        return max(self.rows, key=lambda row: (row.breaks_below or 0, row.rate or 0))

    @property
    def naive(self) -> AuditRow:
        """The row of the analyst that broke the naive holdout most often."""
        return max(self.rows, key=lambda row: row.naive_failures)

    @property
    def upper_bound(self) -> float:
        """Of the rate of failure under the worst of these analysts: the largest bound is one."""
        return max(row.upper_bound for row in self.rows)

    @property
    def kept(self) -> bool:
        """Whether the sessions support the promise."""
        return self.upper_bound <= self.failure

    @property
    def broken(self) -> bool:
        """Whether they refute it, with 95 % confidence."""
        worst = self.worst
        kept = failure_rate_bound(worst.sessions - worst.failures, worst.sessions)
        return 1 - kept > self.failure

    @property
    def naive_fails(self) -> str:
        """Whether the naive holdout fails, in words."""
        best = self.naive
        counted = f"in {best.naive_failures:,} of {best.sessions:,} sessions"
        if best.naive_failures < _FEW * best.sessions:
            return (
                f"The naive holdout does not fail here: {best.analyst} broke it {counted}, and no "
                "analyst more often. It takes more questions."
            )
        weak = [row for row in self.rows if row.naive_failures < _FEW * row.sessions]
        others = ", ".join(f"{row.analyst} in {row.naive_failures:,}" for row in weak)
        rest = f" With so few questions others do so less often: {others}." if others else ""
        return f"The naive holdout fails: {best.analyst} broke it {counted}.{rest}"

    def to_json(self) -> dict[str, object]:
        """Plain numbers and text."""
        worst, strongest = self.worst, self.strongest
        return {
            "protocol": self.protocol,
            **self.plan,
            "blocks": self.certified,
            "sessions": worst.sessions,
            "failures": worst.failures,
            "upper_bound": self.upper_bound,
            "allowed": self.failure,
            "kept": self.kept,
            "broken": self.broken,
            "naive_failures": self.naive.naive_failures,
            "naive_fails": self.naive_fails,
            **{name: getattr(strongest, name) for name in _FACTORS},
            "tightness_note": self.tightness_note,
            "breaks_below": strongest.breaks_below,
            "best_attack": strongest.analyst,
            "analyst": worst.analyst,
            "seed": self.seed,
            "analysts": [dict(vars(row)) for row in self.rows],
            "left_out": dict(self.left_out),
            "curve": list(self.curve),
        }


_BELOW = 150  # sessions at a size below the certified one, or half of all if that is more
_FEWER = {"collector": 30}  # slow, and weak against looks: it is there for the naive holdout

Progress = Callable[[str, int], None]
"""Called with what is being played, and how many sessions of it are over."""

_NOT_BROKEN = "No analyst broke the promise at a tenth of the blocks."
_NOT_MEASURED = (
    "A protocol holds the blocks of its plan and refuses fewer, so where its promise would break "
    "is not known; audit estimates for that."
)


def workers_at_hand() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


def audit(
    queries: int,
    tail: float,
    confidence: float = 0.95,
    sessions: int = 300,
    *,
    protocol: str = "estimate",
    grid: int | None = None,
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
    how: Any = {"seed": seed, "workers": workers, "progress": progress}
    if protocol == "estimate":
        subject = planned(queries, 32 if grid is None else grid, tail, confidence)
        return audit_subject(subject, sessions, analyst=analyst, **how)
    attacker, make = _chosen(protocol, grid, analyst)
    queries = whole_number("queries", queries, 1, 10**6)
    confidence = real_number("confidence", confidence, 0, 1, open_low=True, open_high=True)
    attack = make(queries, tail, confidence)
    promise = {"queries": queries, "tail": tail, "confidence": confidence}
    return _audit_attack(protocol, promise, attacker, attack, sessions, **how)


def audit_subject(
    subject: Subject,
    sessions: int = 300,
    *,
    analyst: str | None = None,
    seed: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Audit:
    """Estimates by any coin on any number of blocks, certified or not."""
    sessions, chosen = whole_number("sessions", sessions, 1, 10**6), _seed(seed)
    names, idle = _names(analyst, subject)
    with processes(workers) as pool:

        def measured(name: str) -> Measured:
            """The sessions of one analyst, as they are asked for."""

            def at(blocks: int) -> Sessions:
                here, below = subject.on(blocks), _FEWER.get(name, max(_BELOW, sessions // 2))
                number = sessions if blocks == subject.blocks else min(sessions, below)
                playing = partial(play, here, analyst_named(name, here), chosen)
                parts = []
                for part in pool.run(playing, number):
                    parts.append(part)
                    if progress is not None:
                        progress(f"{name} on {blocks:,} blocks", part.count)
                return gathered(parts)

            return Measured(at)

        found = {name: measured(name) for name in names}
        rows = tuple(_row(name, subject, each) for name, each in found.items())
        strongest = max(rows, key=lambda row: (row.breaks_below or 0, row.rate or 0)).analyst
        curve = tuple(_curve(found[strongest], subject.blocks))
    promise = {name: getattr(subject, name) for name in ("queries", "grid", "tail", "confidence")}
    return Audit(
        protocol="estimate",
        plan={**promise, "looks": subject.looks},
        certified=subject.blocks,
        failure=subject.failure,
        seed=chosen,
        rows=rows,
        left_out=idle,
        curve=curve,
        tightness_note="" if any(row.breaks_below for row in rows) else _NOT_BROKEN,
    )


def _seed(seed: int | None) -> int:
    """The seed that was given, or one from the operating system."""
    if seed is None:
        return int(system_entropy().words(1)[0])
    return whole_number("seed", seed, 0, 2**64 - 1)


def _names(analyst: str | None, subject: Subject) -> tuple[list[str], dict[str, str]]:
    """Who is to attack, and who is left out for a reason."""
    if analyst is not None:
        analyst_named(analyst, subject)
        return [analyst], {}
    idle = {name: reason for name in ANALYSTS if (reason := left_out(name, subject))}
    return [name for name in ANALYSTS if name not in idle], idle


def _row(name: str, subject: Subject, measured: Measured) -> AuditRow:
    certified = subject.blocks
    told, played = about(analyst_named(name, subject)), measured.at(certified)
    found = find_breaking(measured, certified, subject.failure)
    if found is None:
        return AuditRow(name, told, **played.facts, tightness=None)
    sizes = found.blocks, found.surely_kept, found.surely_broken
    factors = (None if size is None else certified / size for size in sizes)
    known: dict[str, Any] = dict(zip(_FACTORS, factors, strict=True))
    return AuditRow(name, told, **played.facts, **known, breaks_below=found.blocks)


def _curve(measured: Measured, certified: int) -> Iterator[Mapping[str, Any]]:
    """Each size with the rate of failure there, and naive's failures."""
    for share in SHARES:
        blocks = max(1, round(share * certified))
        yield {"share": share, "blocks": blocks, **measured.at(blocks).facts}


# All other protocols, by the attack on each of them.
#
# Those attacks hold the blocks of their plan, for a protocol refuses a budget that is not
# certified. So the rate of failure is counted, and a tightness is not measured.


def _labels(needed: int, tail: float) -> int:
    """How many labels there must be for so many of them to be a rare event: a power of two."""
    return 1 << int(needed / tail).bit_length()


def _verify(queries: int, tail: float, confidence: float) -> Attack:
    refusals, features = min(12, queries), max(1, round(0.9 * queries))
    return TwoSidedAttack(
        queries,
        features,
        refusals,
        tail_low=tail,
        spare=min(3, refusals - 1),
        confidence=confidence,
    )


def _correct(queries: int, tail: float, confidence: float) -> Attack:
    refusals, size = min(8, queries), max(2**12, _labels(40, tail))
    spare = min(2, refusals - 1)
    return CorrectAttack(queries, tail, size, refusals, spare=spare, confidence=confidence)


def _rounds(queries: int, tail: float, confidence: float) -> Attack:
    return RoundsAttack(
        queries,
        tail,
        tail_high=max(0.1, min(0.45, 2 * tail)),
        verification=1 - 0.9 * (1 - confidence),
        confidence=confidence,
    )


def _weights(queries: int, tail: float, confidence: float) -> Attack:
    queries = whole_number("queries", queries, 4, 10**6)  # three are kept for the end
    return WeightsAttack(queries, tail, confidence=confidence)


def _search(kind: type[SimpleAttack | AmplifiedAttack], more: int = 0) -> Maker:
    def made(queries: int, tail: float, confidence: float) -> Attack:
        attack = kind(queries, tail, steps=queries + more, confidence=confidence)
        return replace(attack, size=max(attack.size, _labels(attack.needed, tail)))

    return made


Maker = Callable[[int, float, float], Attack]

PROTOCOLS: dict[str, tuple[str, Maker]] = {
    "interval": (
        "aggregator",
        lambda k, tail, c: IntervalAttack(k, max(1, k - 3), tail, confidence=c),
    ),
    "mean": (
        "aggregator",
        lambda k, tail, c: MedianMeanAttack(k, max(1, round(0.63 * k)), tail, confidence=c),
    ),
    "verify": ("aggregator", _verify),
    "correct": ("collector", _correct),
    "rounds": ("collector", _rounds),
    "weights": ("collector", _weights),
    "simple": ("collector", _search(SimpleAttack, 1)),
    "amplified": ("collector", _search(AmplifiedAttack)),
    "split": ("collector", lambda k, tail, c: SplitAttack(k, tail, confidence=c)),
}
"""For each protocol the analyst that attacks it, and the attack for a promise."""


def _chosen(protocol: str, grid: int | None, analyst: str | None) -> tuple[str, Maker]:
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


def _attacked(attack: Attack, seed: int, span: Span) -> list[tuple[Run, Run]]:
    """Holdfast's runs, and naive's of the same blocks."""
    trials = [Trial(seed, span[0] + place) for place in range(span[1])]
    return [(attack.run("holdfast", trial), attack.run("naive", trial)) for trial in trials]


def _audit_attack(
    protocol: str,
    promise: dict[str, Any],
    attacker: str,
    attack: Attack,
    sessions: int,
    *,
    seed: int | None,
    workers: int,
    progress: Progress | None,
) -> Audit:
    sessions, chosen = whole_number("sessions", sessions, 1, 10**6), _seed(seed)
    runs: list[tuple[Run, Run]] = []
    with processes(workers) as pool:
        for played in pool.run(partial(_attacked, attack, chosen), sessions):
            runs += played
            if progress is not None:
                progress(attack.name, len(played))
    failures = sum(ours.broken for ours, _ in runs)
    row = AuditRow(
        analyst=attacker,
        about=attack.story,
        sessions=sessions,
        failures=failures,
        upper_bound=failure_rate_bound(failures, sessions),
        rate=None,
        naive_failures=sum(naive.broken for _, naive in runs),
        tightness=None,
        note="" if all(ours.polite for ours, _ in runs) else "a budget did not end as it should",
    )
    return Audit(
        protocol=protocol,
        plan=promise,
        certified=attack.blocks,
        failure=round(1 - promise["confidence"], 12),
        seed=chosen,
        rows=(row,),
        left_out={},
        curve=(),
        tightness_note=_NOT_MEASURED,
    )


# An audit as lines of text.


_WIDTH = 99
_LABEL = 11


def audit_lines(audit: Audit) -> list[str]:
    """The plan, every analyst, the sizes below, and what follows."""
    lines = [
        *_labelled("Plan", _plan(audit)),
        *_labelled(
            "Promise",
            (
                f"tails above {audit.plan['tail']:g}, all at once with probability "
                f"{audit.plan['confidence']:g}: at most {audit.failure:g} of all sessions may fail"
            ),
        ),
        "",
    ]
    lines += _analysts(audit.rows)
    for name, reason in audit.left_out.items():
        lines += textwrap.wrap(f"{name} is left out: it {reason}.", _WIDTH)
    if audit.curve:
        lines += ["", *_curve_lines(audit.strongest.analyst, audit.curve)]
    lines += ["", *_labelled("Failures", _failures(audit))]
    lines += _labelled("Naive", audit.naive_fails)
    lines += _labelled("Tightness", _tightness(audit))
    lines += _labelled("Seed", f"{audit.seed}: repeatable, so no certificate")
    return lines


def _labelled(label: str, text: str) -> list[str]:
    wrapped = textwrap.wrap(text, _WIDTH - _LABEL)
    return [f"{label if not n else '':{_LABEL}}{line}" for n, line in enumerate(wrapped)]


def _plan(audit: Audit) -> str:
    plan = audit.plan
    size = f"{plan['queries']:,} questions"
    if "grid" in plan:
        size += f" on {plan['grid']:,} points, {plan['looks']:,} looks"
    return f"{audit.protocol}: {size}; {audit.certified:,} blocks"


def _analysts(rows: Sequence[AuditRow]) -> Iterable[str]:
    head = ("analyst", "failed", "95 % bound", "naive failed", "breaks below", "tightness")
    body = [
        (
            row.analyst,
            _of(row.failures, row.sessions),
            f"{row.upper_bound:.4f}",
            _of(row.naive_failures, row.sessions),
            "–" if row.breaks_below is None else f"{row.breaks_below:,}",
            "–" if row.tightness is None else f"{row.tightness:.2f}",
        )
        for row in rows
    ]
    yield from _table([head, *body])
    yield ""
    for row in rows:
        yield from textwrap.wrap(f"{row.analyst}: {row.about}", _WIDTH)


def _curve_lines(analyst: str, points: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    yield f"Fewer blocks, the same coin, {analyst}:"
    head = ("share", "blocks", "failure rate", "failed", "naive failed")
    body = [
        (
            f"{point['share']:g}",
            f"{point['blocks']:,}",
            _rate(point["rate"]),
            *(_of(point[failed], point["sessions"]) for failed in ("failures", "naive_failures")),
        )
        for point in points
    ]
    yield from _table([head, *body])


def _table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Columns as wide as they must be; numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *others = (
            f"{cell:{width}}" if not n else f"{cell:>{width}}"
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join([first, *others])


def _of(failures: int, sessions: int) -> str:
    return f"{failures:,}/{sessions:,}"


def _rate(rate: float) -> str:
    """Enough digits to be told from 0.

    >>> _rate(0.1234), _rate(0.00002), _rate(0.0)
    ('0.123', '2e-05', '0')
    """
    return f"{rate:.3f}" if rate >= 0.001 else f"{rate:.0e}" if rate else "0"


def _failures(audit: Audit) -> str:
    worst = audit.worst
    verdict = "as promised" if audit.kept else "too few sessions to tell"
    if audit.broken:
        verdict = "the promise is broken"
    return (
        f"{worst.analyst}, the worst, broke the promise in {worst.failures:,} of "
        f"{worst.sessions:,} sessions; with 95 % confidence the rate is at most "
        f"{audit.upper_bound:.4f}, and {audit.failure:g} is allowed: {verdict}."
    )


def _tightness(audit: Audit) -> str:
    best = audit.strongest
    if best.tightness is None or best.breaks_below is None:
        return f"not measured. {audit.tightness_note}"
    between = ""
    if best.tightness_low is not None and best.tightness_high is not None:
        between = f", between {best.tightness_low:.3f} and {best.tightness_high:.3f}"
    return (
        f"{best.tightness:.3f}{between}: {audit.certified:,} blocks are certified, and on fewer "
        f"than {best.breaks_below:,} {best.analyst} breaks the promise."
    )
