"""The experiments: what they measure on tiny cells, draw and say of results, and that they fail."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from holdfast.errors import InvalidInput
from holdfast.theory.numerics import binomial_tail
from holdfast.theory.paper import adaptive_simple
from holdfast.theory.published import WIDTHS
from holdfast.theory.sizing import Promise, median_failure
from holdfast_lab.attacks.targets import DirectMeans, Guesses
from holdfast_lab.attacks.textbook import RESPONDERS
from holdfast_lab.experiments import (
    blocks_vs_queries,
    crossover,
    error_scaling,
    flights,
    freedman,
    grid_size,
    heavy_tails,
    leaderboard,
    many_queries,
    paper_examples,
    quadratic,
    queries_at_width,
    reusable_holdout,
    sign_aggregation,
    verification,
)
from holdfast_lab.experiments.base import Cell, Finding, average
from holdfast_lab.runner.experiment import read_config
from holdfast_lab.runner.results import cells_of
from holdfast_lab.scaling import block_law, blocks_by, equal_tails, estimate, law_named
from holdfast_lab.statistics import can_be_rate

QUERIES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
NAN = math.nan


def table(rows: list[dict[str, Any]], **same: Any) -> pd.DataFrame:
    return pd.DataFrame([{"repeat": 0, **same, **row} for row in rows])


def cell(**parameters: Any) -> Cell:
    return Cell(parameters, seed=1, number=2, repeat=parameters.pop("repeat", 0))


def measured(module: ModuleType, *cells: dict[str, Any]) -> pd.DataFrame:
    """The rows of these cells, as the runner would put them together."""
    return table([{**each, **row} for each in cells for row in module.measure(cell(**each))])


def drawn(module: ModuleType, *some: pd.DataFrame) -> None:
    """All of its pictures, each with a caption, and findings, of whatever results there are."""
    for results in some:
        module.findings(results)
        assert set(module.draw(results)) == set(module.CAPTIONS)


def held(module: ModuleType, results: pd.DataFrame) -> list[bool | None]:
    return [
        each.holds if each.holds is None else bool(each.holds) for each in module.findings(results)
    ]


def about(found: list[Finding], *words: str) -> Finding:
    (one,) = [f for f in found if all(word in f.what for word in words)]
    assert one.holds is None or type(one.holds) is bool  # numpy's cannot be written as JSON
    return one


# --- Attacks ---------------------------------------------------------------------------------


def sessions(given: dict[str, float], **columns: Any) -> pd.DataFrame:
    """Two sessions for each responder and value; columns may be functions of value and repeat."""
    return table(
        [
            {
                "responder": name,
                "repeat": repeat,
                **{k: c(value, repeat) if callable(c) else c for k, c in columns.items()},
            }
            for name, value in given.items()
            for repeat in (0, 1)
        ]
    )


@pytest.mark.parametrize(
    ("module", "cells", "holds"),
    [
        (
            quadratic,
            [{"responder": n, "queries": 196, "rows": 2_000} for n in ("naive", "holdfast-mean")],
            [True, True, True],
        ),
        (
            sign_aggregation,
            [
                {"responder": name, "signs": 100, "rows": 201, "tail": 0.01}
                for name in ("naive", "holdfast-estimate", "split", "gaussian-median")
            ],
            [True, True, None, None],
        ),
        (
            flights,
            [{"responder": name, "rows": 3_000, "queries": 196} for name in ("naive", "split")],
            [True, True, None, None],
        ),
    ],
    ids=["quadratic", "sign aggregation", "flights"],
)
def test_an_attack_is_measured_and_drawn(
    module: ModuleType, cells: list[dict[str, Any]], holds: list[bool | None]
) -> None:
    results = measured(module, *cells)
    assert held(module, results) == holds
    drawn(module, results, results[:1], results[:0])
    if module is sign_aggregation:
        assert results["outside"].tolist() == [False] * 4
        assert results["blocks"].isna().tolist() == [True, False, True, False]


def test_a_leaderboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaderboard, "rows_for_means", lambda queries, _: 1_000.0 * queries)
    monkeypatch.setitem(RESPONDERS, "holdfast-mean", RESPONDERS["split"])  # no plan to be found
    names = ("naive", "ladder", "split", "holdfast-mean")
    rows = measured(leaderboard, *({"responder": n, "rows": 200, "submissions": 20} for n in names))
    naive, ladder, _, ours = (rows.iloc[place] for place in range(4))
    assert naive["reported"] == naive["loss"]
    assert naive["low"] < naive["reported"] < naive["high"]
    assert ladder["reported"] <= ladder["loss"] + 1 / 200
    assert ours["rows_needed"] == 21_000
    assert ours["low"] <= 0.5 <= ours["high"]

    def results(**losses: float) -> pd.DataFrame:
        return sessions(
            {name.replace("_", "-"): loss for name, loss in losses.items()},
            rows=4_000,
            submissions=400,
            loss=lambda v, r: v + 0.002 * r,
            reported=lambda v, _: v,
            low=lambda v, _: max(0.0, v - 0.2),
            high=lambda v, _: min(1.0, v + 0.2),
            false_claims=lambda v, _: int(v in (0.427, 0.46)),
            rows_needed=77_000.0,
        )

    right = results(naive=0.427, ladder=0.484, holdfast_mean=0.47)
    assert held(leaderboard, right) == [True, True, True, True, True, True, None]
    found = leaderboard.findings(right)
    assert "Ladder 0.48" in found[2].measured.split(", ")[0]  # gave least away
    assert found[-1].measured == "77,000"
    wrong = results(naive=0.46, ladder=0.45, holdfast_mean=0.25)
    assert held(leaderboard, wrong) == [False, False, False, True, True, False, None]
    assert leaderboard.findings(results(split=0.5)) == []
    assert leaderboard.findings(results(naive=0.43).assign(submissions=100)) == []
    drawn(leaderboard, results(naive=0.43), results(split=0.5, holdfast_mean=0.47))


def test_a_reusable_holdout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reusable_holdout, "rows_for_means", lambda queries, _: 10.0 * queries)
    monkeypatch.setitem(
        RESPONDERS, "holdfast-mean", RESPONDERS["naive"]
    )  # whose plan takes a second
    for name in ("naive", "thresholdout", "split", "holdfast-mean"):
        asked = {"responder": name, "signal": True, "rows": 100, "attributes": 60}
        rows = measured(reusable_holdout, asked)
        assert rows["size"].tolist() == list(range(25, 501, 25))
        assert rows[["training", "sample", "truth"]].stack().between(0, 1).all()
        assert ((rows["low"] >= 0) & (rows["low"] <= rows["high"]) & (rows["high"] <= 1)).all()
        needed = set(rows["rows_needed"].dropna())
        assert needed == ({800.0} if name == "holdfast-mean" else set())
        assert math.isnan(rows["said"].iloc[-1]) == (name == "split" and 60 + len(rows) > 100)

    def results(**said: float) -> pd.DataFrame:
        named = {name.replace("_", "-"): value for name, value in said.items()}
        every = [
            sessions(
                named,
                signal=signal,
                rows=10_000,
                attributes=10_000,
                size=size,
                training=0.65,
                said=lambda v, r: v + 0.001 * r,
                low=lambda v, _: v - 0.1,
                high=lambda v, _: v + 0.1,
                sample=lambda v, _: v,
                truth=0.5,
                false_claims=lambda v, _: int(abs(v - 0.5) > 0.1),
                rows_needed=350_000.0 if "holdfast-mean" in named else NAN,
            )
            for signal in (False, True)
            for size in (250, 500)
        ]
        return pd.concat(every, ignore_index=True)

    right = results(naive=0.632, split=NAN, holdfast_mean=0.5)
    assert held(reusable_holdout, right) == [True, None, None, None, True, True, None]
    assert reusable_holdout.findings(right)[1].measured == "refused"
    wrong = results(naive=0.59, holdfast_mean=0.75)
    assert held(reusable_holdout, wrong) == [False, None, None, False, False, None]
    assert held(reusable_holdout, results(naive=0.66))[0] is False  # nor is much more
    assert reusable_holdout.findings(results(laplace=0.5).assign(size=25)) == []
    some = results(holdfast_mean=0.5, split=NAN)
    drawn(reusable_holdout, results(naive=0.6), some, some[some["signal"]])


def test_freedmans_regressions() -> None:
    """R² is the squared correlation, and F's P value that of t, which is known for 3 rows."""
    outcome, column = np.array([1.0, 2.0, 4.0]), np.array([[0.0], [1.0], [1.0]])
    row = freedman.screened_regression(outcome, column, level=1.0)
    correlation = np.corrcoef(outcome, column[:, 0])[0, 1]
    assert row["r2"] == row["r2_first"] == pytest.approx(correlation**2)
    score = correlation / math.sqrt(1 - correlation**2)
    assert row["p"] == pytest.approx(1 - 2 * math.atan(score) / math.pi)  # one degree of freedom
    assert (row["kept"], row["coefficients"]) == (1, 0)
    chance = np.random.default_rng(3)
    outcome, columns = chance.standard_normal(40), chance.standard_normal((40, 7))
    residual = np.linalg.lstsq(np.column_stack([np.ones(40), columns]), outcome)[1][0]
    row = freedman.screened_regression(outcome, columns, level=0.3)
    assert row["r2_first"] == pytest.approx(1 - residual / (40 * outcome.var()))
    assert row["r2"] <= row["r2_first"]
    nothing = freedman.screened_regression(outcome, columns, level=0.0)
    assert (nothing["kept"], nothing["r2"], nothing["p"]) == (0, 0.0, 1.0)


def test_screening_makes_noise_significant() -> None:
    """Freedman's own size, 30 sessions of orthonormal variables: R² 0.36 in the limit.

    One session's standard deviation is 0.1, and at a hundred rows the limit is reached (both of
    40,000 sessions): five standard errors. Without screening a quarter of them would give 1/8.
    The limit itself: the variance that a normal keeps beyond the cut, by summing the density.
    """
    asked = {"responder": "regression", "rows": 100, "level": 0.25}
    found = pd.DataFrame(
        [row for r in range(30) for row in freedman.measure(cell(repeat=r, **asked))]
    )
    explained, score = freedman.limits(0.5, 0.25)
    assert abs(found["r2_orthonormal"].mean() - explained) < 5 * 0.1 / math.sqrt(30)
    assert (found["p"] < 0.05).mean() > 0.6  # 0.95 of 400; below 0.6 with probability 1e-9
    assert (found["p_first"] < 0.05).mean() < 0.6
    z = np.linspace(0, 12, 2_000_001)
    density = np.exp(-(z**2) / 2) * 2 / math.sqrt(2 * math.pi) * (z[1] - z[0])
    kept = float((z**2 * density)[density[::-1].cumsum()[::-1] <= 0.25].sum())
    assert explained == pytest.approx(kept / 2, abs=1e-5)
    assert score == pytest.approx(kept / 0.25 * (1 - 0.125) / (1 - kept / 2), abs=1e-4)


def test_freedmans_votes() -> None:
    asked = [{"responder": name, "rows": 100, "level": 0.25} for name in ("naive", "split")]
    naive, split = (measured(freedman, each).iloc[0] for each in asked)
    assert naive["said"] == naive["sample"]
    assert naive["significant"] == float(abs(2 * naive["said"] - 1) * 10 > 1.96)
    assert 0 <= split["low"] <= split["said"] <= split["high"] <= 1
    large = {"responder": "regression", "rows": 10_000, "level": 0.25}
    assert list(freedman.measure(cell(**large))) == []

    def results(naive: float, ours: float) -> pd.DataFrame:
        return sessions(
            {"naive": naive, "holdfast-mean": ours},
            rows=1_000,
            level=0.25,
            significant=1.0,
            said=lambda v, r: v + 0.01 * r,
            low=lambda v, _: v - 0.1,
            high=lambda v, _: v + 0.1,
            sample=lambda v, _: v,
            false_claims=lambda v, _: int(abs(v - 0.5) > 0.1),
        )

    def regressions(explained: float, p: float) -> pd.DataFrame:
        columns: dict[str, Any] = {"rows": 100, "level": 0.25, "r2": 0.3, "p": p, "p_first": 0.5}
        shifted = {"r2_orthonormal": lambda v, r: v + 0.01 * r}
        return sessions({"regression": explained}, **columns, **shifted)

    right = pd.concat([regressions(0.36, 0.001), results(0.715, 0.5)])
    assert held(freedman, right) == [None, True, True, True, True]
    wrong = pd.concat([regressions(0.2, 0.3), results(0.55, 0.7)])
    assert held(freedman, wrong) == [None, False, False, False, False]
    drawn(freedman, results(0.7, 0.5)[:2], results(0.7, 0.5)[2:], regressions(0.36, 0.001))


def test_averages() -> None:
    assert average([NAN]) is None
    one = average([0.4])
    assert one is not None
    assert (str(one), one.agrees(0.4)) == ("0.4000 (one session)", None)


# --- Comparison: how many questions at a width -----------------------------------------------


def at_width(method: str, rows: int, failure: float = 0.05, half_width: float = 0.1) -> Any:
    asked = {"method": method, "rows": rows, "failure": failure, "half_width": half_width}
    (row,) = queries_at_width.measure(cell(**asked))
    return row


@pytest.mark.parametrize("growth", [1.0, 2.0])
@pytest.mark.parametrize("guess", [1, 77, 10**6])
@pytest.mark.parametrize(
    "needed",
    [lambda k: 90 * math.sqrt(k), lambda k: 20 * k * math.log(k + 1), lambda k: k**2],
    ids=["root", "line", "square"],
)
def test_the_search_finds_what_fits(
    needed: Callable[[int], float], guess: float, growth: float
) -> None:
    for rows in (30, 1_000, 54_321):
        found = queries_at_width.most_planned(needed, rows, guess, growth)
        assert found == 0 or needed(found) <= rows
        assert needed(found + max(1, found // 1_000)) > rows


def test_each_method_is_asked_its_own_theorem(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"split": (40, 40), "rogers": (6, 6), "jung": (156, 153), "bassily": (0, 0)}
    for method, (queries, published) in expected.items():
        row = at_width(method, 100_000 if method == "jung" else 10_000)
        assert row == {"queries": queries, "published": float(published)}
    assert at_width("holdfast-split", 1_000)["queries"] == 3
    with pytest.raises(InvalidInput, match="method"):
        at_width("magic", 10)
    seen: list[int] = []

    def joint_plan(request: DirectMeans, confidence: float) -> SimpleNamespace:
        assert (request.half_width, confidence) == (0.05, 0.999)
        assert not request.exact  # values between 0 and 1, as in the published theorems
        seen.append(request.queries)
        return SimpleNamespace(blocks=math.ceil(100 * math.sqrt(request.queries)))

    monkeypatch.setattr(queries_at_width, "joint_plan", joint_plan)
    row = at_width("holdfast-mean", 1_000, 0.001, 0.05)
    assert row["queries"] == 100
    assert math.isnan(row["published"])
    assert len(seen) <= 8  # each takes seconds


WIDTH_TABLE = [
    ("split", 100_000, 0.05, 0.1, 288),
    ("bassily", 100_000, 0.05, 0.1, 29),
    ("rogers", 100_000, 0.05, 0.1, 935),
    ("jung", 100_000, 0.05, 0.1, 153),
    ("holdfast-mean", 100_000, 0.05, 0.1, 9_350),
    ("split", 1_000, 0.05, 0.1, 4),
    ("holdfast-mean", 1_000, 0.05, 0.1, 1),
]


def widths(*lines: tuple[str, int, float, float, int]) -> pd.DataFrame:
    made = pd.DataFrame(lines, columns=["method", "rows", "failure", "half_width", "queries"])
    theirs = ~made["method"].isin(queries_at_width.HOLDFAST)
    return made.assign(repeat=0, published=made["queries"].where(theirs))


def test_the_table_the_lead_and_where_there_is_none() -> None:
    found = queries_at_width.findings(widths(*WIDTH_TABLE))
    assert found[0].measured == "split 288, bassily 29, rogers 935, jung 153"
    assert found[0].holds
    assert (found[2].measured, found[2].holds) == ("10.0", True)
    assert "(rogers)" in found[2].what
    assert found[3].measured == (
        "up to 1,000 rows: 1 questions against 4 of the others; "
        "ahead from 100,000 rows on: 9,350 against 935; the lines cross near 5,644 rows"
    )
    other = [(m, n, f, w, q + (m == "rogers")) for m, n, f, w, q in WIDTH_TABLE]
    behind = [(m, n, f, w, 5 if m == "holdfast-mean" else q) for m, n, f, w, q in WIDTH_TABLE]
    assert queries_at_width.findings(widths(*other))[0].holds is False
    assert queries_at_width.findings(widths(*behind))[2].holds is False
    zeros = [("holdfast-mean", 1_000, 0.001, 0.02, 0), WIDTH_TABLE[5]]
    for lines in ([], WIDTH_TABLE[:1], WIDTH_TABLE[4:5], WIDTH_TABLE[:5], zeros):
        some = widths(*lines)
        queries_at_width.findings(some)
        assert len(queries_at_width.draw(some)) == some["half_width"].nunique()
    (figure,) = queries_at_width.draw(
        widths(*WIDTH_TABLE, ("split", 100_000, 0.001, 0.1, 196))
    ).values()
    assert [len(axes.lines) for axes in figure.axes] == [5, 1]


# --- Scaling ---------------------------------------------------------------------------------


SCALING = (
    blocks_vs_queries,
    crossover,
    error_scaling,
    grid_size,
    heavy_tails,
    many_queries,
    paper_examples,
    verification,
)


@pytest.mark.parametrize("module", SCALING, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_config_is_whole(module: ModuleType) -> None:
    config = read_config(Path(str(module.__file__)).with_suffix(".toml"))
    assert config.group == "scaling"
    assert config.sources
    full, quick = (cells_of(config.modes[mode], 1) for mode in ("full", "quick"))
    assert 0 < len(quick) < len(full)


def test_sizes_are_those_of_the_planners() -> None:
    asked = {"tail": 0.25, "queries": 100, "grid": 32, "looks": 5, "confidence": 0.95}
    small = {**asked, "tail": 0.01, "queries": 10}
    for module, method, given, blocks in (
        (blocks_vs_queries, "split", asked, 4_300),
        (blocks_vs_queries, "paper", asked, 228_705),
        (blocks_vs_queries, "holdfast", small, 37),
        (grid_size, "paper", asked, 228_705),
    ):
        assert list(module.measure(cell(method=method, **given))) == [{"blocks": blocks}]
    lopsided = Promise(2, 2, 0.1, 0.3, 0.95)  # the exponential mechanism knows medians only
    assert blocks_by("exponential", lopsided) is None
    with pytest.raises(InvalidInput, match="method"):
        blocks_by("nothing", equal_tails(2, 2, 0.25))


def sized(exponents: dict[str, float]) -> pd.DataFrame:
    """Blocks that follow power laws of k."""
    every = itertools.product(exponents.items(), (0.25, 0.05), QUERIES)
    rows = [
        {"method": method, "tail": tail, "queries": k, "grid": 32, "blocks": 50 * k**exponent}
        for (method, exponent), tail, k in every
    ]
    return table(rows)


def test_exponents_of_k_are_fitted_and_judged() -> None:
    good = blocks_vs_queries.findings(sized({"holdfast": 0.5, "split": 1.04, "paper": 0.6}))
    one = about(good, "exponent", "Holdfast", "ρ = 0.25")
    assert (one.measured, one.holds) == ("0.500", True)
    assert about(good, "exponent", "splitting", "ρ = 0.05").holds
    assert "fresh splitting ×41.7" in about(good, "k = 1,000, ρ = 0.25").measured
    bad = blocks_vs_queries.findings(sized({"holdfast": 0.7, "split": 0.4}))
    assert about(bad, "exponent", "Holdfast", "ρ = 0.25").holds is False
    assert about(bad, "k = 1,000, ρ = 0.25").holds is False
    figure = blocks_vs_queries.draw(sized({"holdfast": 0.5, "split": 1.0}))["blocks"]
    assert len(figure.axes) == 2
    lines = {str(line.get_label()): line for line in figure.axes[0].get_lines()}
    bound = lines["√k, the lower bound's exponent"]
    assert np.asarray(bound.get_ydata()) == pytest.approx(np.sqrt(np.asarray(bound.get_xdata())))
    assert np.asarray(lines["Holdfast"].get_ydata())[-1] == pytest.approx(50_000)


def test_grids_are_judged_by_looks_and_by_nats() -> None:
    rows = []
    for looks in (1, 5, 40):
        common = {"tail": 0.25, "looks": looks, "queries": 1_000, "confidence": 0.95}
        nats = math.log(1_000 * 2.0**looks / 0.05)
        rows.append({"method": "holdfast", "blocks": 100 * looks**0.5, **common})
        rows.append({"method": "exponential", "blocks": 7 * nats, **common})
    found = grid_size.findings(table(rows))
    assert about(found, "exponent of log r").measured == "0.500"
    assert about(found, "exponent of ln(rk/β)").measured == "1.000"
    assert about(found, "Holdfast, ρ", "r = 2^40").measured == "×6.32"
    assert len(grid_size.draw(table(rows))["grid"].axes) == 1


def test_guesses_and_weights_measure_all_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of the search over joint plans, which takes seconds and has tests of its own."""
    planned: list[object] = []

    def joint_plan(request: object, *, confidence: float) -> SimpleNamespace:
        planned.append((request, confidence))
        return SimpleNamespace(blocks=777)

    monkeypatch.setattr(verification, "joint_plan", joint_plan)
    monkeypatch.setattr(many_queries, "joint_plan", joint_plan)
    asked = {"tail_low": 0.05, "tail_high": 0.25, "grid": 32, "confidence": 0.95}
    rows = verification.measure(cell(queries=1_000, refusals=10, **asked))
    sizes = {row["plan"]: row["blocks"] for row in rows}
    assert sizes == {"looks": 777, "paper": 1_046_522}
    assert planned == [(Guesses(1_000, 10, 0.05, 0.25), 0.95)]
    searched = blocks_by("holdfast", equal_tails(2, 32, 0.05))
    (searches,) = verification.measure(cell(queries=2, refusals=0, **asked))
    assert searches == {"plan": "searches", "blocks": searched}
    weights = {"queries": 10**6, "universe": 100, "tail": 0.05, "grid": 32, "confidence": 0.95}
    assert many_queries.measure(cell(**weights)) == [{"plan": "weights", "blocks": 777}]


def grown(key: str, sizes: tuple[int, ...], plans: tuple[str, ...]) -> pd.DataFrame:
    """Searches that grow like a root of k, the other plans with log k."""
    rows: list[dict[str, Any]] = []
    for k in QUERIES:
        rows.append({key: 0, "queries": k, "plan": "searches", "blocks": 20 * k**0.5})
        for size, plan in itertools.product(sizes, plans):
            rows.append(
                {key: size, "queries": k, "plan": plan, "blocks": 1e3 + 300 * math.log10(k)}
            )
    return table(rows, tail=0.05, tail_low=0.05, tail_high=0.25)


@pytest.mark.parametrize(
    ("module", "key", "sizes", "plans", "crosses"),
    [
        (verification, "refusals", (1, 10), ("looks", "paper"), "a search each"),
        (many_queries, "universe", (100, 1_000), ("weights",), "searches"),
    ],
    ids=["verification", "weights"],
)
def test_log_k_is_told_from_a_root(
    module: ModuleType, key: str, sizes: tuple[int, ...], plans: tuple[str, ...], crosses: str
) -> None:
    results = grown(key, sizes, plans)
    drawn(module, results, results[1:2])
    assert module.findings(results[1:2]) == []
    found = module.findings(results)
    assert "exponent 0.500" in about(found, "a search each: blocks").measured
    logs = [f for f in found if f.expected.startswith("log k")]
    assert len(logs) == len(sizes) * len(plans)
    assert all(f.holds and "adds 300 to 300" in f.measured for f in logs)
    crossing = [f.measured for f in found if f"fewer blocks than {crosses}" in f.what]
    k = float(crossing[0].removeprefix("from k ≈ ").replace(",", ""))
    assert 20 * k**0.5 == pytest.approx(1_000 + 300 * math.log10(k), rel=0.02)
    rooted = results.assign(blocks=20 * results["queries"] ** 0.5)
    assert not any(f.holds for f in module.findings(rooted) if f.expected.startswith("log k"))


def test_crossings_are_exact_and_curves_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def blocks(method: str, promise: Any) -> int:
        k = promise.queries
        others = {"split": 10 * k, "paper": 9 * k + 50}
        return int(others.get(method, math.ceil(40 * k**0.5)))

    monkeypatch.setattr(crossover, "blocks_by", blocks)
    asked = {"tail": 0.25, "grid": 32, "confidence": 0.95}
    results = measured(crossover, {**asked, "most": 20})
    crossed = results[results["crossing"]]
    assert dict(zip(crossed["method"], crossed["queries"], strict=True)) == {
        "holdfast": 17,  # 165 against 170; at 16 both need 160
        "paper": 51,
    }
    assert results[~results["crossing"]]["queries"].max() == 20
    found = crossover.findings(results)
    looks = about(found, "looks need fewer blocks than splitting")
    assert (looks.measured, looks.holds) == ("from k = 17 (165 against 170)", True)
    assert about(found, "the paper's constants").measured == "51 (ρ = 0.25, r = 32)"
    drawn(crossover, results, crossed)


@pytest.mark.parametrize("method", ["holdfast", "split", "split-hoeffding", "gaussian"])
def test_answers_about_a_classifier_are_real_and_covered(method: str) -> None:
    """Bars fail with probability ≤ 0.05 in all; with this seed none does."""
    asked = {"error_rate": 0.02, "rows": 20_000, "queries": 5, "asked": 4, "points": 64}
    rows = list(error_scaling.measure(cell(method=method, tail=1e-4, confidence=0.95, **asked)))
    assert len(rows) == 4
    assert all(row["covered"] and row["error"] <= 2 * row["width"] for row in rows)
    if method != "gaussian":
        assert all(row["width"] < 0.05 for row in rows)
    else:  # the best of the published theorems, not the first
        best = min(theirs(20_000, 5, 0.05) for name, theirs in WIDTHS.items() if name != "split")
        assert all(row["width"] == pytest.approx(best) for row in rows)


def test_widths_are_judged_by_their_exponent() -> None:
    powers, rates = {"holdfast": 0.5, "gaussian": 0.0}, (0.001, 0.01, 0.1, 0.5)
    rows = [
        {"method": m, "error_rate": p, "width": (p * (1 - p)) ** power, "error": 0.1 * p}
        for (m, power), p in itertools.product(powers.items(), rates)
    ]
    results = table(rows, covered=True, block_size=100)
    found = error_scaling.findings(results)
    assert about(found, "exponent", "median").measured == "0.500"
    assert about(found, "exponent", "Gaussian").holds
    assert "×31.6" in about(found, "p = 0.001").measured
    assert about(found, "bars that hold p", "median").holds
    drawn(error_scaling, results, results[:1])  # one is too little for an exponent, no error


def test_laws_of_blocks_agree_with_fresh_blocks() -> None:
    """Ranks of 2,000 fresh medians and means are uniform: DKW, false alarm below 1e-6."""
    chance = np.random.Generator(np.random.Philox(3))
    slack = math.sqrt(math.log(2 / 1e-6) / (2 * 2_000))
    for name, estimator in (("cauchy", "median"), ("cauchy", "mean"), ("pareto 0.8", "median")):
        law = law_named(name)
        here = block_law(law, estimator, 5)
        assert here.fresh is None
        values = estimate(estimator, law.quantiles(chance.random((2_000, 5))))
        ranks = np.sort([here.below(float(value)) for value in values])
        steps = np.arange(2_001) / 2_000
        assert max(np.max(steps[1:] - ranks), np.max(ranks - steps[:-1])) <= slack
        assert here.below(here.median) == pytest.approx(0.5)
    law = law_named("pareto 1.5")
    low = float(law.quantiles(np.array([0.25]))[0])
    failed = 2 * block_law(law, "median", 11).below(low)
    assert failed == pytest.approx(median_failure(11, 0.25), rel=1e-6)


@pytest.mark.parametrize(
    "responder", ["estimate median", "naive median", "naive mean", "clipped 10"]
)
def test_a_session_on_heavy_tails(responder: str) -> None:
    asked = {"rows": 400, "features": 4, "pooled": 1, "points": 64, "tail": 0.01, "confidence": 0.5}
    (row,) = heavy_tails.measure(cell(law="cauchy", responder=responder, **asked))
    assert row["claims"] == (0 if responder == "naive median" else 8)
    if "median" in responder:
        assert row["error"] < 1
        assert not row["false_claims"]
    (endless,) = heavy_tails.measure(cell(law="pareto 0.8", responder=responder, **asked))
    if "median" not in responder:  # no finite claim holds an infinite mean
        assert endless["false_claims"] == 8
        assert math.isnan(endless["error"])


def test_heavy_tails_are_summed_up() -> None:
    def session(law: str, responder: str, rows: int, **told: float) -> dict[str, Any]:
        usual = {"error": rows**-0.5, "value": 3.0, "width": 1.0, "claims": 20, "false_claims": 0}
        ranks = {"lowest_rank": 0.3, "highest_rank": 0.7}
        return {"law": law, "responder": responder, "rows": rows, **usual, **ranks, **told}

    ours = [session("cauchy", "estimate median", n) for n in (100, 1_000, 10_000)]
    naive = [session("cauchy", "naive mean", n, false_claims=3) for n in (100, 1_000)]
    results = table([*ours, *naive, session("pareto 0.8", "interval mean", 100)])
    found = heavy_tails.findings(results)
    exponent = about(found, "exponent of the rows", "cauchy")
    assert (exponent.measured, exponent.holds) == ("-0.50", True)
    assert about(found, "true claims only", "cauchy").measured.startswith("0 of 2, ± 0.5")
    assert about(found, "estimate of Holdfast's broke").holds
    broken = table([session("cauchy", "interval median", n, false_claims=1) for n in range(9, 19)])
    assert about(heavy_tails.findings(broken), "interval of Holdfast's broke").holds is False
    silent = table([session("cauchy", "naive median", 100, claims=0)])
    assert heavy_tails.findings(silent) == []
    drawn(heavy_tails, results, silent)
    first = next(k for k in range(61) if binomial_tail(60, 0.05, k) < 1e-6)
    rates = [can_be_rate(k, 60, 0.05) for k in (0, first - 1, first, 60)]
    assert rates == [True, True, False, False]  # refused only if it is a surprise


@pytest.mark.parametrize("example", ["subgaussian", "low sensitivity", "deviation"])
def test_examples_keep_their_predictions(example: str) -> None:
    """Each fails with probability ≤ 0.05; with this seed none does."""
    asked = {"units": 100, "queries": 6, "confidence": 0.95}
    rows = list(paper_examples.measure(cell(example=example, sized_by="holdfast", **asked)))
    assert len(rows) == (3 if example == "deviation" else 1)
    assert all(row["error"] <= row["predicted"] and row["broken"] == 0 for row in rows)
    assert all(row["rows"] == 100 * row["blocks"] for row in rows)
    if example == "subgaussian":
        asked["queries"] = 3
        (row,) = paper_examples.measure(cell(example=example, sized_by="paper", **asked))
        assert row["blocks"] == adaptive_simple(3, 401, 0.05).blocks
        assert row["error"] <= row["predicted"]


def test_spreads_and_the_least_of_some_means_are_exact() -> None:
    """Mean absolute deviations within 8 standard errors of 20,000 draws: false alarm below 1e-6."""
    chance = np.random.Generator(np.random.Philox(5))
    for law in ("normal", "exponential", "rare"):
        draws = np.abs(paper_examples._centred(law, 40, 20_000, chance))
        error = draws.std() / math.sqrt(draws.size)
        assert abs(draws.mean() - paper_examples.spread(law, 40)) <= 8 * error
    halves = [min(a, b) / 2 - 0.5 for a in (0, 1, 1, 2) for b in (0, 1, 1, 2)]
    assert paper_examples.expected_least(2, 2) == pytest.approx(sum(halves) / 16)


def test_examples_are_summed_up() -> None:
    rows = [
        {
            "example": example,
            "sized_by": sized_by,
            "units": units,
            "blocks": blocks,
            "rows": blocks * units,
            "predicted": 4 / units**0.5 + 0.005 * (example == "subgaussian"),
            "error": 1 / units**0.5,
        }
        for example, (sized_by, blocks), units in itertools.product(
            ("subgaussian", "low sensitivity", "deviation"),
            {"paper": 1_000, "holdfast": 100}.items(),
            (100, 400),
        )
    ]
    results = table(rows, law="normal", broken=0)
    found = paper_examples.findings(results)
    for example in ("subgaussian", "low sensitivity"):
        assert about(found, example, "rows for the same").measured == "10"
    assert about(found, "deviation", "Holdfast").holds
    drawn(paper_examples, results)
    assert {*paper_examples.draw(results[:1])} == {"subgaussian"}
    assert paper_examples.findings(results[:1])
    assert blocks_vs_queries.findings(sized({"split": 1.0})[:1]) == []
    drawn(blocks_vs_queries, sized({"holdfast": 0.5})[:1])
    looks = table([{"method": "gaussian", "tail": 0.25, "looks": 3, "blocks": 5}])
    assert grid_size.findings(looks) == []
    drawn(grid_size, looks)
