"""What an audit found, as values and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.lab.audit.breaking import Breaking
from holdfast.lab.audit.sessions import Sessions
from holdfast.lab.statistics import failure_rate_bound

__all__ = ["Audit", "AuditRow", "Point"]

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
