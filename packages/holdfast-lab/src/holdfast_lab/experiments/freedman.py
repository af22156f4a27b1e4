"""Freedman's paradox: variables that were screened on the same rows look significant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from holdfast_lab import figures
from holdfast_lab.attacks.analysts import Freedman
from holdfast_lab.attacks.conversation import FloatArray
from holdfast_lab.attacks.textbook import conversation_of
from holdfast_lab.experiments.base import Cell, Finding, Row, average, rows_where
from holdfast_lab.figures import FAINT, INK, DataFrame, Figure, look_of

CAPTIONS = {
    "freedman": "How often the vote of the variables that survived is right, as each responder "
    "says. In truth it is half the time. Bands are one standard deviation over sessions; the pale "
    "one is what Holdfast certifies."
}

_LEVEL = 0.05
_LARGEST_REGRESSION = 1_000
_OURS = "holdfast-mean"


def measure(cell: Cell) -> Iterable[Row]:
    """One session with so many rows, and half as many variables."""
    rows, level = cell["rows"], cell["level"]
    if cell["responder"] == "regression":
        if rows <= _LARGEST_REGRESSION:
            yield _regressed(rows, level, cell)
        return
    analyst = Freedman(rows, rows // 2, level)
    _, responder, session = conversation_of(cell, analyst, cell["responder"])
    said = float(session.values[-1])
    yield {
        "said": said,
        "low": max(0.0, float(session.low[-1])),
        "high": min(1.0, float(session.high[-1])),
        "sample": float(responder.sample[-1]),
        "significant": float(
            math.erfc(abs((2 * said - 1) * math.sqrt(rows)) / math.sqrt(2)) <= _LEVEL
        ),
        "false_claims": session.wrong_claims,
    }


def _regressed(rows: int, level: float, cell: Cell) -> Row:
    """The two regressions on normal columns; of those on orthonormal ones the last R²."""
    outcome = cell.shared_chance().standard_normal(rows)
    table = cell.shared_chance(2).standard_normal((rows, rows // 2))
    basis = np.linalg.qr(np.column_stack([np.ones(rows), table]))[0][:, 1:]
    orthonormal = screened_regression(outcome, basis, level)["r2"]
    return {**screened_regression(outcome, table, level), "r2_orthonormal": orthonormal}


def screened_regression(outcome: FloatArray, table: FloatArray, level: float) -> Row:
    """Two regressions: on all the columns, then on those significant at `level`.

    R² and the P value of the F test of each, and how many coefficients of the second are
    significant at 5 %, all as the textbook computes them for variables that were fixed in advance.
    """
    first, first_p, each = _fit(outcome, table)
    kept = table[:, each <= level]
    row: Row = {"kept": kept.shape[1], "r2_first": first, "p_first": first_p}
    if not kept.shape[1]:
        return {**row, "r2": 0.0, "p": 1.0, "coefficients": 0}
    second, second_p, again = _fit(outcome, kept)
    count = int(np.count_nonzero(again <= _LEVEL))
    return {**row, "r2": second, "p": second_p, "coefficients": count}


def _fit(outcome: FloatArray, table: FloatArray) -> tuple[float, float, FloatArray]:
    """R² of a regression with an intercept, the P value of F, and those of the coefficients."""
    from scipy.special import fdtrc, stdtr

    rows, used = table.shape
    free, design = rows - used - 1, np.column_stack([np.ones(rows), table])
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ (design.T @ outcome)
    residual = float(np.sum((outcome - design @ coefficients) ** 2))
    explained = 1 - residual / float(np.sum((outcome - outcome.mean()) ** 2))
    scores = coefficients / np.sqrt(residual / free * np.diag(inverse))
    tested = fdtrc(used, free, explained / used / ((1 - explained) / free))
    return explained, float(tested), np.asarray(2 * stdtr(free, -np.abs(scores[1:])))


def limits(share: float, level: float) -> tuple[float, float]:
    """R² and F of the second pass in the limit of many rows, p/n = share (Freedman 1983).

    For orthonormal columns; with normal ones, which are correlated by chance, both are smaller.
    With λ the cut-off of a two-sided normal test, g = level + √(2/π)·λ·e^(−λ²/2) is the variance
    that Z keeps beyond λ: R² → g·share, F → (g/level)·(1 − level·share)/(1 − g·share).

    >>> [round(each, 3) for each in limits(0.5, 0.25)]
    [0.362, 3.968]
    """
    from scipy.special import ndtri

    cut = float(ndtri(1 - level / 2))
    kept = level + math.sqrt(2 / math.pi) * cut * math.exp(-(cut**2) / 2)
    return kept * share, (kept / level) * (1 - level * share) / (1 - kept * share)


def _vote_limit(level: float) -> float:
    """How often the naive vote looks right in the limit of many rows, with half as many variables.

    n·level/2 survivors agree with the outcome by E[|Z| given |Z| > λ]/√n more than half; their
    vote has as many standard deviations as √(level/2) times that mean.

    >>> round(_vote_limit(0.25), 3)
    0.72
    """
    from scipy.special import ndtr, ndtri

    cut = float(ndtri(1 - level / 2))
    kept = math.sqrt(2 / math.pi) * math.exp(-(cut**2) / 2) / level
    return float(ndtr(math.sqrt(level / 2) * kept))


def draw(results: DataFrame) -> dict[str, Figure]:
    """What is said of the vote, against the number of rows."""
    figure, axes = figures.new_figure()
    for name in results["responder"].unique():
        rows = rows_where(results, responder=name)
        if name != "regression" and "said" in rows:
            clear = name != "split"  # whose spread would hide the others
            figures.draw_average(axes[0], rows, "rows", "said", name, band=clear)
    ours = rows_where(results, responder=_OURS)
    if not ours.empty:
        figures.draw_claim(axes[0], ours, "rows", _OURS, "certified by Holdfast")
    axes[0].axhline(0.5, color=INK, linestyle="--", linewidth=1, label="truth")
    figures.log_ticks(axes[0], results["rows"])
    axes[0].set_ylim(0, 1)
    axes[0].set_xlabel("rows, twice the number of variables", color=FAINT)
    axes[0].set_ylabel("how often the vote is right", color=FAINT)
    figures.legend_below(figure, [axes[0]], size=8)
    return {"freedman": figure}


def findings(results: DataFrame) -> list[Finding]:
    """Freedman's two regressions, and what each responder says of the vote."""
    found: list[Finding] = []
    for rows in sorted(results["rows"].unique()):
        here = rows_where(results, rows=rows)
        found += _regressions(rows_where(here, responder="regression"), int(rows))
        found += _votes(here, int(rows))
    return found


def _regressions(here: DataFrame, rows: int) -> Iterator[Finding]:
    if here.empty:
        return
    limit, _ = limits((rows // 2) / rows, float(here["level"].iloc[0]))
    yield Finding(f"two regressions, {rows:,} rows: R² of the second", str(average(here["r2"])))
    explained = average(here["r2_orthonormal"])
    assert explained is not None
    what = f"the same for orthonormal variables, {rows:,} rows"
    near = explained.agrees(limit)
    yield Finding(what, str(explained), f"{limit:.3f} in the limit of many rows", near)
    significant = float((here["p"] <= _LEVEL).mean())
    first = float((here["p_first"] <= _LEVEL).mean())
    what = f"two regressions, {rows:,} rows: F tests significant at 5 %"
    told = f"{significant:.1%} of the second pass, {first:.1%} of the first"
    yield Finding(what, told, "5 % if nothing had been screened", significant > 0.5)


def _votes(here: DataFrame, rows: int) -> Iterator[Finding]:
    for name in here["responder"].unique():
        ours = rows_where(here, responder=name)
        found = None if name == "regression" else average(ours["said"])
        if found is None:
            continue
        width = float((ours["high"] - ours["low"]).mean()) / 2
        wrong = int((ours["false_claims"] > 0).sum())
        what = f"{look_of(name).label}, {rows:,} rows: the vote is right"
        told = f"{found}; ±{width:.3f} is claimed, falsely in {wrong} sessions"
        if name == "naive":
            called = float(ours["significant"].mean())
            told += f"; significant at 5 % by a z test in {called:.0%}"
            level = float(ours["level"].iloc[0])
            near = abs(found.mean - _vote_limit(level)) <= 0.02
            yield Finding(what, told, f"{_vote_limit(level):.3f}; truth 0.5", near)
        else:
            yield Finding(what, told, "truth 0.5", wrong <= len(ours) * _LEVEL)
