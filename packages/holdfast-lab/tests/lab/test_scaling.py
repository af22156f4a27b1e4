"""The experiments on scaling: what they measure on tiny cells, draw and say of results."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from holdfast.errors import InvalidInput
from holdfast.planning.requests import Guesses
from holdfast.theory.numerics import binomial_tail
from holdfast.theory.paper import adaptive_simple
from holdfast.theory.published import WIDTHS
from holdfast.theory.sizing import Promise, median_failure
from holdfast_lab.experiments import (
    blocks_vs_queries,
    crossover,
    error_scaling,
    grid_size,
    heavy_tails,
    many_queries,
    paper_examples,
    verification,
)
from holdfast_lab.experiments.base import Cell, Finding
from holdfast_lab.runner.experiment import read_config
from holdfast_lab.runner.results import cells_of
from holdfast_lab.scaling import block_law, blocks_by, equal_tails, estimate, law_named
from holdfast_lab.statistics import can_be_rate

MODULES = (
    blocks_vs_queries,
    crossover,
    error_scaling,
    grid_size,
    heavy_tails,
    many_queries,
    paper_examples,
    verification,
)
QUERIES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)


def name_of(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame([{"repeat": 0, **row} for row in rows])


def cell(**parameters: Any) -> Cell:
    return Cell(parameters, seed=1, number=2, repeat=0)


def about(found: list[Finding], *words: str) -> Finding:
    (one,) = [f for f in found if all(word in f.what for word in words)]
    assert one.holds is None or type(one.holds) is bool  # numpy's cannot be written as JSON
    return one


# --- Configs --------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_every_config_is_whole_and_its_pictures_have_captions(module: ModuleType) -> None:
    config = read_config(Path(str(module.__file__)).with_suffix(".toml"))
    assert config.group == "scaling"
    assert config.sources
    full, quick = (cells_of(config.modes[mode], 1) for mode in ("full", "quick"))
    assert 0 < len(quick) < len(full)
    assert module.CAPTIONS


# --- Blocks against questions and grids ------------------------------------------------------


def test_sizes_are_those_of_the_planners() -> None:
    asked = {"tail": 0.25, "queries": 100, "grid": 32, "confidence": 0.95}
    assert list(blocks_vs_queries.measure(cell(method="split", **asked))) == [{"blocks": 4_300}]
    assert list(blocks_vs_queries.measure(cell(method="paper", **asked))) == [{"blocks": 228_705}]
    small = {**asked, "tail": 0.01, "queries": 10}
    assert list(blocks_vs_queries.measure(cell(method="holdfast", **small))) == [{"blocks": 37}]
    few = {"looks": 5, "tail": 0.25, "queries": 100, "confidence": 0.95}
    assert list(grid_size.measure(cell(method="paper", **few))) == [{"blocks": 228_705}]


def test_a_method_that_certifies_nothing_gives_no_row() -> None:
    lopsided = Promise(2, 2, 0.1, 0.3, 0.95)  # the exponential mechanism knows medians only
    assert blocks_by("exponential", lopsided) is None
    with pytest.raises(InvalidInput, match="method"):
        blocks_by("nothing", equal_tails(2, 2, 0.25))


def sized(exponents: dict[str, float]) -> pd.DataFrame:
    """Blocks that follow power laws of k."""
    return table(
        [
            {"method": method, "tail": tail, "queries": k, "grid": 32, "blocks": 50 * k**exponent}
            for (method, exponent), tail, k in itertools.product(
                exponents.items(), (0.25, 0.05), QUERIES
            )
        ]
    )


def test_exponents_of_k_are_fitted_and_judged() -> None:
    good = blocks_vs_queries.findings(sized({"holdfast": 0.5, "split": 1.04, "paper": 0.6}))
    one = about(good, "exponent", "Holdfast", "ρ = 0.25")
    assert (one.measured, one.holds) == ("0.500", True)
    assert about(good, "exponent", "splitting", "ρ = 0.05").holds
    ratios = about(good, "k = 1,000, ρ = 0.25")
    assert "fresh splitting ×41.7" in ratios.measured
    bad = blocks_vs_queries.findings(sized({"holdfast": 0.7, "split": 0.4}))
    assert about(bad, "exponent", "Holdfast", "ρ = 0.25").holds is False
    assert about(bad, "k = 1,000, ρ = 0.25").holds is False


def test_blocks_against_questions_are_drawn_with_the_lower_bound_through_one() -> None:
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


# --- Guesses and weights ---------------------------------------------------------------------


class Planned:
    """Stands for the search over joint plans, which takes seconds and has tests of its own."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def __call__(self, request: object, *, confidence: float) -> SimpleNamespace:
        self.asked.append((request, confidence))
        return SimpleNamespace(blocks=777)


def test_verification_measures_all_plans_of_a_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = Planned()
    monkeypatch.setattr(verification, "joint_plan", planned)
    asked = {"tail_low": 0.05, "tail_high": 0.25, "grid": 32, "confidence": 0.95}
    rows = verification.measure(cell(queries=1_000, refusals=10, **asked))
    sizes = {row["plan"]: row["blocks"] for row in rows}
    assert sizes == {"looks": 777, "exact": 1_153, "paper": 1_046_522}
    assert planned.asked == [(Guesses(1_000, 10, 0.05, 0.25), 0.95)]
    (searches,) = verification.measure(cell(queries=2, refusals=0, **asked))
    assert searches == {
        "plan": "searches",
        "blocks": blocks_by("holdfast", equal_tails(2, 32, 0.05)),
    }


def test_weights_measure_both_plans_of_a_universe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_queries, "joint_plan", Planned())
    asked = {"tail": 0.05, "grid": 32, "confidence": 0.95}
    rows = many_queries.measure(cell(queries=10**6, universe=100, **asked))
    assert {row["plan"]: row["blocks"] for row in rows} == {"looks": 777, "exact": 1_230}


def grown(key: str, sizes: tuple[int, ...], plans: tuple[str, ...], power: float) -> pd.DataFrame:
    """Searches that grow like a power of k, the other plans with log k."""
    rows: list[dict[str, Any]] = []
    common = {"tail": 0.05, "tail_low": 0.05, "tail_high": 0.25}
    for k in QUERIES:
        rows.append({key: 0, "queries": k, "plan": "searches", "blocks": 20 * k**power, **common})
        for size, plan in itertools.product(sizes, plans):
            blocks = 1_000 + 300 * math.log10(k)
            rows.append({key: size, "queries": k, "plan": plan, "blocks": blocks, **common})
    return table(rows)


@pytest.mark.parametrize(
    ("module", "key", "sizes", "plans", "picture"),
    [
        (verification, "refusals", (1, 10), ("looks", "exact", "paper"), "verification"),
        (many_queries, "universe", (100, 1_000), ("looks", "exact"), "weights"),
    ],
    ids=["verification", "weights"],
)
def test_log_k_is_told_from_a_root(
    module: ModuleType, key: str, sizes: tuple[int, ...], plans: tuple[str, ...], picture: str
) -> None:
    results = grown(key, sizes, plans, power=0.5)
    assert module.draw(results)[picture].axes
    found = module.findings(results)
    assert "exponent 0.500" in about(found, "a search each: blocks").measured
    logs = [f for f in found if f.expected.startswith("log k")]
    assert len(logs) == len(sizes) * len(plans)
    assert all(f.holds and "adds 300 to 300" in f.measured for f in logs)
    rooted = results.assign(blocks=20 * results["queries"] ** 0.5)
    assert not any(f.holds for f in module.findings(rooted) if f.expected.startswith("log k"))


def test_the_crossing_of_weights_and_searches_lies_between_the_points() -> None:
    found = many_queries.findings(grown("universe", (100,), ("looks",), power=0.5))
    measured = about(found, "fewer blocks than searches").measured
    k = float(measured.removeprefix("from k ≈ ").replace(",", ""))
    assert 20 * k**0.5 == pytest.approx(1_000 + 300 * math.log10(k), rel=0.02)


# --- Crossings with splitting ----------------------------------------------------------------


def test_crossings_are_exact_and_curves_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def blocks(method: str, promise: Any) -> int:
        k = promise.queries
        others = {"split": 10 * k, "holdfast-exact": 8 * k + 1, "paper": 10**9}
        return int(others.get(method, math.ceil(40 * k**0.5)))

    monkeypatch.setattr(crossover, "blocks_by", blocks)
    rows = list(crossover.measure(cell(tail=0.25, grid=32, confidence=0.95, most=20)))
    crossing = {(r["method"], r["against"]): r["queries"] for r in rows if r["crossing"]}
    assert crossing == {
        ("holdfast", "split"): 17,  # 165 against 170; at 16 both need 160
        ("holdfast-exact", "split"): 1,
        ("holdfast", "holdfast-exact"): 25,
    }
    assert max(r["queries"] for r in rows if not r["crossing"]) == 20
    results = table([{"tail": 0.25, "grid": 32, "confidence": 0.95, **row} for row in rows])
    found = crossover.findings(results)
    looks = about(found, "looks need fewer blocks than splitting")
    assert (looks.measured, looks.holds) == ("from k = 17 (165 against 170)", True)
    assert "25 (ρ = 0.25, r = 32)" in about(found, "than exact answers").measured
    assert {*crossover.draw(results)} == {*crossover.CAPTIONS}
    assert {*crossover.draw(results[results["crossing"]])} == {*crossover.CAPTIONS}


# --- Errors that shrink with the variance ----------------------------------------------------


MEANS = {
    "error_rate": 0.02,
    "rows": 20_000,
    "queries": 5,
    "asked": 4,
    "points": 64,
    "tail": 1e-4,
    "confidence": 0.95,
}


@pytest.mark.parametrize("method", ["holdfast", "split", "split-hoeffding", "gaussian"])
def test_answers_about_a_classifier_are_real_and_covered(method: str) -> None:
    """Bars fail with probability ≤ 0.05 in all; with this seed none does."""
    rows = list(error_scaling.measure(cell(method=method, **MEANS)))
    assert len(rows) == 4
    assert all(row["covered"] and row["error"] <= 2 * row["width"] for row in rows)
    if method != "gaussian":
        assert all(row["width"] < 0.05 for row in rows)
    else:  # the best of the published theorems, not the first
        best = min(theirs(20_000, 5, 0.05) for name, theirs in WIDTHS.items() if name != "split")
        assert all(row["width"] == pytest.approx(best) for row in rows)


def test_widths_are_judged_by_their_exponent() -> None:
    rows = [
        {
            "method": method,
            "error_rate": p,
            "width": (p * (1 - p)) ** power,
            "error": 0.1 * p,
            "covered": True,
            "block_size": 100,
        }
        for (method, power), p in itertools.product(
            {"holdfast": 0.5, "gaussian": 0.0}.items(), (0.001, 0.01, 0.1, 0.5)
        )
    ]
    found = error_scaling.findings(table(rows))
    assert about(found, "exponent", "median").measured == "0.500"
    assert about(found, "exponent", "Gaussian").holds
    assert "×31.6" in about(found, "p = 0.001").measured
    assert about(found, "bars that hold p", "median").holds
    assert {*error_scaling.draw(table(rows))} == {*error_scaling.CAPTIONS}
    assert error_scaling.findings(table(rows[:1]))  # too little for an exponent, no error
    assert error_scaling.draw(table(rows[:1]))


# --- Heavy tails -----------------------------------------------------------------------------


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


def test_the_median_of_an_odd_number_fails_as_theory_says() -> None:
    law = law_named("pareto 1.5")
    low = float(law.quantiles(np.array([0.25]))[0])
    here = block_law(law, "median", 11).below(low)
    assert 2 * here == pytest.approx(median_failure(11, 0.25), rel=1e-6)


HEAVY = {"rows": 400, "features": 4, "pooled": 1, "points": 64, "tail": 0.01, "confidence": 0.5}


@pytest.mark.parametrize(
    "responder", ["estimate median", "naive median", "naive mean", "clipped 10"]
)
def test_a_session_on_heavy_tails(responder: str) -> None:
    (row,) = heavy_tails.measure(cell(law="cauchy", responder=responder, **HEAVY))
    assert row["claims"] == (0 if responder == "naive median" else 8)
    if "median" in responder:
        assert row["error"] < 1
        assert not row["false_claims"]
    (endless,) = heavy_tails.measure(cell(law="pareto 0.8", responder=responder, **HEAVY))
    if "median" not in responder:  # no finite claim holds an infinite mean
        assert endless["false_claims"] == 8
        assert math.isnan(endless["error"])


def session(law: str, responder: str, rows: int, **told: float) -> dict[str, Any]:
    usual = {"error": rows**-0.5, "value": 3.0, "width": 1.0, "claims": 20, "false_claims": 0}
    ranks = {"lowest_rank": 0.3, "highest_rank": 0.7}
    return {"law": law, "responder": responder, "rows": rows, **usual, **ranks, **told}


def test_heavy_tails_are_summed_up() -> None:
    results = table(
        [
            *(session("cauchy", "estimate median", n) for n in (100, 1_000, 10_000)),
            *(session("cauchy", "naive mean", n, false_claims=3) for n in (100, 1_000)),
            session("pareto 0.8", "interval mean", 100),
        ]
    )
    found = heavy_tails.findings(results)
    exponent = about(found, "exponent of the rows", "cauchy")
    assert (exponent.measured, exponent.holds) == ("-0.50", True)
    assert about(found, "true claims only", "cauchy").measured.startswith("0 of 2, ± 0.5")
    assert about(found, "estimate of Holdfast's broke").holds
    assert {*heavy_tails.draw(results)} == {*heavy_tails.CAPTIONS}
    broken = table([session("cauchy", "interval median", n, false_claims=1) for n in range(9, 19)])
    assert about(heavy_tails.findings(broken), "interval of Holdfast's broke").holds is False


def test_a_rate_is_refused_only_if_it_is_a_surprise() -> None:
    first = next(k for k in range(61) if binomial_tail(60, 0.05, k) < 1e-6)
    assert [can_be_rate(k, 60, 0.05) for k in (0, first - 1, first, 60)] == [
        True,
        True,
        False,
        False,
    ]


# --- The paper's examples --------------------------------------------------------------------


@pytest.mark.parametrize("example", ["subgaussian", "low sensitivity", "deviation"])
def test_examples_keep_their_predictions(example: str) -> None:
    """Each fails with probability ≤ 0.05; with this seed none does."""
    asked = {"units": 100, "queries": 6, "confidence": 0.95}
    rows = list(paper_examples.measure(cell(example=example, sized_by="holdfast", **asked)))
    assert len(rows) == (3 if example == "deviation" else 1)
    assert all(row["error"] <= row["predicted"] and row["broken"] == 0 for row in rows)
    assert all(row["rows"] == 100 * row["blocks"] for row in rows)


def test_the_papers_algorithm_runs_on_the_papers_blocks() -> None:
    asked = {"units": 100, "queries": 3, "confidence": 0.95}
    (row,) = paper_examples.measure(cell(example="subgaussian", sized_by="paper", **asked))
    assert row["blocks"] == adaptive_simple(3, 401, 0.05).blocks
    assert row["error"] <= row["predicted"]


@pytest.mark.parametrize("law", ["normal", "exponential", "rare"])
def test_spreads_are_mean_absolute_deviations(law: str) -> None:
    """Within 8 standard errors of 20,000 draws: false alarm below 1e-6."""
    chance = np.random.Generator(np.random.Philox(5))
    draws = np.abs(paper_examples._centred(law, 40, 20_000, chance))
    error = draws.std() / math.sqrt(draws.size)
    assert abs(draws.mean() - paper_examples.spread(law, 40)) <= 8 * error


def test_the_least_of_some_means_is_expected_exactly() -> None:
    halves = [min(a, b) / 2 - 0.5 for a in (0, 1, 1, 2) for b in (0, 1, 1, 2)]
    assert paper_examples.expected_least(2, 2) == pytest.approx(sum(halves) / 16)


def test_examples_are_summed_up() -> None:
    rows = [
        {
            "example": example,
            "sized_by": sized_by,
            "units": units,
            "law": "normal",
            "blocks": blocks,
            "rows": blocks * units,
            "predicted": 4 / units**0.5 + 0.005 * (example == "subgaussian"),
            "error": 1 / units**0.5,
            "broken": 0,
        }
        for example, (sized_by, blocks), units in itertools.product(
            ("subgaussian", "low sensitivity", "deviation"),
            {"paper": 1_000, "holdfast": 100}.items(),
            (100, 400),
        )
    ]
    found = paper_examples.findings(table(rows))
    for example in ("subgaussian", "low sensitivity"):
        assert about(found, example, "rows for the same").measured == "10"
    assert about(found, "deviation", "Holdfast").holds
    assert {*paper_examples.draw(table(rows))} == {*paper_examples.CAPTIONS}
    assert {*paper_examples.draw(table(rows[:1]))} == {"subgaussian"}
    assert paper_examples.findings(table(rows[:1]))


# --- Partial results -------------------------------------------------------------------------


def test_one_point_of_each_is_enough_to_draw() -> None:
    assert blocks_vs_queries.draw(sized({"holdfast": 0.5})[:1])
    assert blocks_vs_queries.findings(sized({"split": 1.0})[:1]) == []
    one = grown("refusals", (1,), ("looks",), 0.5)[1:2]
    assert verification.draw(one)
    assert verification.findings(one) == []
    one = grown("universe", (100,), ("looks",), 0.5)[1:2]
    assert many_queries.draw(one)
    assert many_queries.findings(one) == []
    looks = table([{"method": "gaussian", "tail": 0.25, "looks": 3, "blocks": 5}])
    assert grid_size.draw(looks)
    assert grid_size.findings(looks) == []
    heavy = table([session("cauchy", "naive median", 100, claims=0)])
    assert heavy_tails.draw(heavy)
    assert heavy_tails.findings(heavy) == []
