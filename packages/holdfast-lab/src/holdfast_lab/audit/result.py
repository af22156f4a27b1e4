"""What an audit found, as values and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast_lab.audit.sessions import Breaking, Sessions
from holdfast_lab.statistics import failure_rate_bound

__all__ = [
    "Audit",
    "AuditRow",
    "Point",
    "audit_lines",
]

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

    @classmethod
    def of(
        cls,
        analyst: str,
        about: str,
        played: Sessions,
        certified: int,
        breaking: Breaking | None,
        note: str = "",
    ) -> AuditRow:
        """The row of sessions that were played."""
        factors = _factors(certified, breaking)
        return cls(
            analyst,
            about,
            played.count,
            played.failures,
            played.upper_bound,
            played.rate,
            played.naive_failures,
            *factors,
            None if breaking is None else breaking.blocks,
            note,
        )

    def to_json(self) -> dict[str, object]:
        """Plain numbers and text."""
        return dict(vars(self))


def _factors(
    certified: int, breaking: Breaking | None
) -> tuple[float | None, float | None, float | None]:
    if breaking is None:
        return None, None, None
    sizes = breaking.blocks, breaking.surely_kept, breaking.surely_broken
    best, low, high = (None if size is None else certified / size for size in sizes)
    return best, low, high


@dataclass(frozen=True)
class Point:
    """One size of the curve: the analyst's rate of failure there, and naive's failures."""

    share: float
    blocks: int
    sessions: int
    failures: int
    upper_bound: float
    rate: float
    naive_failures: int

    @classmethod
    def of(cls, share: float, blocks: int, played: Sessions) -> Point:
        """The point of sessions that were played."""
        return cls(
            share,
            blocks,
            played.count,
            played.failures,
            played.upper_bound,
            played.rate,
            played.naive_failures,
        )

    def to_json(self) -> dict[str, object]:
        """Plain numbers."""
        return dict(vars(self))


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
    curve: tuple[Point, ...]
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
            "tightness": strongest.tightness,
            "tightness_low": strongest.tightness_low,
            "tightness_high": strongest.tightness_high,
            "tightness_note": self.tightness_note,
            "breaks_below": strongest.breaks_below,
            "best_attack": strongest.analyst,
            "analyst": worst.analyst,
            "seed": self.seed,
            "analysts": [row.to_json() for row in self.rows],
            "left_out": dict(self.left_out),
            "curve": [point.to_json() for point in self.curve],
        }


# An audit as lines of text.


_WIDTH = 99
_LABEL = 11


def audit_lines(audit: Audit) -> list[str]:
    """The plan, every analyst, the sizes below, and what follows."""
    lines = [*_labelled("Plan", _plan(audit)), *_labelled("Promise", _promise(audit)), ""]
    lines += _analysts(audit.rows)
    for name, reason in audit.left_out.items():
        lines += textwrap.wrap(f"{name} is left out: it {reason}.", _WIDTH)
    if audit.curve:
        lines += ["", *_curve(audit.strongest.analyst, audit.curve)]
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


def _promise(audit: Audit) -> str:
    return (
        f"tails above {audit.plan['tail']:g}, all at once with probability "
        f"{audit.plan['confidence']:g}: at most {audit.failure:g} of all sessions may fail"
    )


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


def _curve(analyst: str, points: Sequence[Point]) -> Iterable[str]:
    yield f"Fewer blocks, the same coin, {analyst}:"
    head = ("share", "blocks", "failure rate", "failed", "naive failed")
    body = [
        (
            f"{point.share:g}",
            f"{point.blocks:,}",
            _rate(point.rate),
            _of(point.failures, point.sessions),
            _of(point.naive_failures, point.sessions),
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
