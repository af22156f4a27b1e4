"""An audit as lines of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from holdfast.lab.audit.result import Audit, AuditRow, Point

__all__ = ["audit_lines"]

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
