"""The audit: what is played is what is counted, and what is broken is found to be."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from holdfast.errors import Infeasible, InvalidInput
from holdfast.planning.solve import plan
from holdfast.theory.coins import steepest_coin
from holdfast_lab.attacks.signs import PersistentAnalyst
from holdfast_lab.audit import (
    ANALYSTS,
    PROTOCOLS,
    Audit,
    AuditRow,
    Breaking,
    Measured,
    Sessions,
    Subject,
    analyst_named,
    audit,
    audit_lines,
    audit_subject,
    find_breaking,
    gathered,
    left_out,
    planned,
    play,
    processes,
    subject_of,
)
from holdfast_lab.experiments import tightness
from holdfast_lab.experiments.base import Cell
from holdfast_lab.statistics import failure_rate_bound


@cache
def small() -> Subject:
    return planned(40, 2, 0.05, 0.95)


def played(subject: Subject, name: str, sessions: int, seed: int = 1) -> Sessions:
    return play(subject, analyst_named(name, subject), seed, (0, sessions))


# What is audited


def test_a_subject_has_the_plans_own_coin_and_blocks() -> None:
    made = plan(queries=40, grid=2, tail=0.05)
    subject = subject_of(made)
    assert (subject.blocks, subject.looks, subject.failure) == (made.blocks, 40, 0.05)
    assert subject.coin.halfsteps.tolist() == made.coin().halfsteps.tolist()
    with pytest.raises(InvalidInput, match="equal tails"):
        subject_of(replace(made, tail_high=0.1))


def test_every_analyst_stays_within_the_planned_looks_and_memory() -> None:
    subject = small()
    for name in ANALYSTS:
        assert played(subject, name, 3).count == 3  # `play` checks the looks of each session
    greedy = PersistentAnalyst(subject.looks + 1)
    with pytest.raises(Infeasible, match="41 looks, but the plan has 40"):
        play(subject, greedy, 1, (0, 1))

    subject = replace(small(), blocks=10**6, looks=10**5)
    with pytest.raises(Infeasible, match="fewer questions"):
        play(subject, PersistentAnalyst(10**5), 1, (0, 1))


# Sessions


def test_chances_agree_with_failures_that_were_played() -> None:
    """400 sessions on half the blocks. Given the chances p the failures are independent coins of
    theirs, Σp ± 5.5·√Σp(1−p) but for one test in 10⁷."""
    subject = small().on(small().blocks // 2)
    for name in ("tuned", "aggregator"):
        sessions = played(subject, name, 200)
        chances = sessions.chances
        spread = math.sqrt(float((chances * (1 - chances)).sum()))
        assert abs(sessions.failures - float(chances.sum())) <= 5.5 * spread
        assert 0.02 < sessions.rate < 0.98  # else the test could not fail


def test_spans_are_the_same_sessions_however_they_are_cut() -> None:
    subject = small().on(small().blocks // 2)
    analyst = analyst_named("tuned", subject)
    whole = play(subject, analyst, 3, (0, 7))
    parts = gathered(play(subject, analyst, 3, span) for span in ((0, 2), (2, 5)))
    assert whole.chances.tolist() == parts.chances.tolist()
    assert whole.naive_failed.tolist() == parts.naive_failed.tolist()
    assert len(set(whole.chances.tolist())) > 1
    with processes(2) as two, processes(1) as one:
        sums = [sum(map(sum, pool.run(list, 20))) for pool in (two, one)]
    assert sums == [sum(range(0, 20, 2)) + 20, sum(range(0, 20, 3)) + 20]


def test_the_bound_is_clopper_and_pearsons() -> None:
    failed = np.arange(300) < 3
    sessions = Sessions(failed, failed.astype(float), failed)
    assert sessions.upper_bound == failure_rate_bound(3, 300) == pytest.approx(0.02564, abs=5e-6)
    assert sessions.rate == 0.01
    assert sessions.error == pytest.approx(math.sqrt(0.01 * 0.99 / 299))
    assert math.isnan(Sessions(failed[:1], np.ones(1), failed[:1]).error)


# Where it breaks


def known(rate_of: dict[int, float], sessions: int = 400) -> Measured:
    """Sessions that fail at the rate of the nearest size below."""

    def at(blocks: int) -> Sessions:
        rate = rate_of[max(size for size in rate_of if size <= blocks)]
        failed = np.arange(sessions) < round(rate * sessions)
        return Sessions(failed, failed.astype(float), failed)

    return Measured(at)


def test_the_smallest_size_that_keeps_the_promise_is_found() -> None:
    measured = known({0: 1.0, 600: 0.06, 640: 0.045, 690: 0.0})
    assert find_breaking(measured, 1_000, 0.05) == Breaking(640, 500, 700)  # 0.06 is too near
    assert find_breaking(known({0: 0.0}), 1_000, 0.05) is None  # not even at a tenth


def test_a_certificate_that_is_broken_is_not_tight_but_wrong() -> None:
    found = find_breaking(known({0: 1.0, 1_300: 0.0}), 1_000, 0.05)
    assert found is not None
    assert 1_300 <= found.blocks <= 1_304
    assert find_breaking(known({0: 1.0}), 10, 0.05) is None


def test_a_fifth_of_the_blocks_is_caught() -> None:
    """A mutant plan: it claims a fifth of the blocks to be enough."""
    mutant = small().on(small().blocks // 5)
    result = audit_subject(mutant, 25, analyst="tuned", seed=4)
    assert result.broken
    assert not result.kept
    assert result.worst.failures > 20
    assert result.strongest.tightness is not None
    assert result.strongest.tightness < 0.5
    assert "the promise is broken" in " ".join(audit_lines(result))


def test_a_coin_that_is_too_steep_is_caught() -> None:
    """A mutant plan: its looks cost a hundred times the price, and give away what they should not.

    The numbers are those of the plan for 1,000 questions on 32 points at tail 0.01.
    """
    order, price = 5.8932, 0.7612 / 5_000
    coins = [steepest_coin(order, times * price, 1e-11) for times in (1, 100)]
    subjects = [Subject(1_000, 32, 0.01, 0.95, 331, 5_000, coin) for coin in coins]
    honest, mutant = (played(subject, "aggregator", 10) for subject in subjects)
    assert (honest.failures, mutant.failures) == (0, 10)
    assert honest.naive_failures == 10


# The whole audit


@cache
def whole() -> Audit:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast_lab.audit._BELOW", 30)
        return audit_subject(small(), 60, seed=1)


def test_a_sound_certificate_is_kept_and_its_tightness_is_at_least_one() -> None:
    result = whole()
    assert result.kept
    assert not result.broken
    best = result.strongest
    assert best.tightness is not None
    assert best.tightness_high is not None
    assert 1 <= best.tightness <= best.tightness_high < 2
    assert best.breaks_below == round(result.certified / best.tightness)
    assert best.tightness == min(row.tightness for row in result.rows if row.tightness is not None)
    rates = [point["rate"] for point in result.curve]
    assert rates == sorted(rates)  # from the certified size down
    assert [point["share"] for point in result.curve] == [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.2, 0.1]


def test_json_has_its_keys_and_plain_values() -> None:
    told = json.loads(json.dumps(whole().to_json()))
    keys = {"sessions", "failures", "upper_bound", "naive_failures", "tightness", "analyst"}
    assert keys < set(told)
    assert (told["blocks"], told["sessions"], told["seed"]) == (small().blocks, 60, 1)
    assert [row["analyst"] for row in told["analysts"]] == [*ANALYSTS][:3]
    assert "looks for the labels" in told["left_out"]["collector"]
    assert told["curve"][0]["blocks"] == small().blocks
    assert told["upper_bound"] == failure_rate_bound(told["failures"], 60)

    lines = audit_lines(whole())
    text = " ".join(lines)
    assert max(map(len, lines)) <= 99
    for name in ANALYSTS:
        assert name in text
    assert f"{small().blocks} blocks are certified" in " ".join(text.split())
    assert "as promised" in text


def row(analyst: str, naive_failures: int, **others: float) -> AuditRow:
    numbers = {"failures": 0, "upper_bound": 0.0099, "rate": 0.0, "tightness": None, **others}
    return AuditRow(analyst, "", 300, naive_failures=naive_failures, **numbers)  # type: ignore[arg-type]


def found(*rows: AuditRow) -> Audit:
    return Audit("estimate", {}, 100, 0.05, 1, rows, {}, ())


def test_where_naive_stands_it_is_said() -> None:
    stands = found(row("tuned", 0), row("aggregator", 2)).naive_fails
    assert "does not fail here: aggregator broke it in 2 of 300 sessions" in stands
    assert "more questions" in stands
    fails = found(row("tuned", 0), row("collector", 299)).naive_fails
    assert "fails: collector broke it in 299 of 300 sessions" in fails
    assert "others do so less often: tuned in 0." in fails


def test_the_worst_and_the_strongest_need_not_be_the_same() -> None:
    result = found(
        row("aggregator", 0, failures=1, upper_bound=0.0157, breaks_below=60, tightness=1.6),
        row("tuned", 0, breaks_below=80, tightness=1.2),
    )
    told = result.to_json()
    assert (told["analyst"], told["failures"], told["upper_bound"]) == ("aggregator", 1, 0.0157)
    assert (told["best_attack"], told["tightness"]) == ("tuned", 1.2)


def test_the_collector_is_left_out_where_it_could_not_even_beat_exact_medians() -> None:
    assert not left_out("collector", replace(small(), blocks=110, looks=500, tail=0.01))
    hopeless = replace(small(), blocks=5_000)
    assert "of half of the 5,000 blocks" in left_out("collector", hopeless)
    assert not left_out("tuned", hopeless)


# Other protocols


def test_a_protocol_is_audited_by_its_own_attack() -> None:
    heard: list[int] = []
    result = audit(
        *(24, 0.05, 0.9, 12),
        protocol="split",
        seed=1,
        progress=lambda _, count: heard.append(count),
    )
    told = result.to_json()
    assert (told["protocol"], told["analyst"], told["confidence"]) == ("split", "collector", 0.9)
    assert told["tightness"] is None
    assert "refuses fewer" in str(told["tightness_note"])
    assert (told["failures"], told["naive_failures"], sum(heard)) == (0, 12, 12)
    assert "Tightness  not measured" in "\n".join(audit_lines(result))


def test_attacks_are_made_for_the_promise_that_is_asked_for() -> None:
    for name in ("interval", "mean", "verify", "correct", "weights"):
        attack = PROTOCOLS[name][1](5, 0.1, 0.9)
        assert attack.questions == 5
        (((request, *_), confidence),) = attack.kept
        assert confidence == 0.9
        assert 0.1 in vars(request).values()  # the tail


# The experiment


def test_an_experiment_measures_the_same_sessions() -> None:
    import pandas as pd

    parameters = {"plan": "40 questions, tail 0.05", "grid": 2, "confidence": 0.95, "sessions": 8}
    rows = []
    for share in (1.0, 0.7, 0.4):
        for analyst in ("aggregator", "tuned"):
            cell = Cell({**parameters, "analyst": analyst, "share": share}, 1, 0, 2)
            rows += [{**cell.parameters, "repeat": 2, **found} for found in tightness.measure(cell)]
    results = pd.DataFrame(rows)
    subject = small()
    same = play(subject, analyst_named("tuned", subject), 1, (16, 8))
    assert results["rate"][1] == same.rate
    factor, *_ = tightness.findings(results)
    assert factor.what == "40 questions, tail 0.05: tightness"
    assert factor.holds
    assert list(tightness.draw(results)) == list(tightness.CAPTIONS)
    for part in (results.head(1), results[results["share"] < 0.5]):
        tightness.findings(part)
        tightness.draw(part)


def test_a_certificate_that_is_broken_is_a_finding_that_fails() -> None:
    import pandas as pd

    row = {"plan": "40 questions, tail 0.05", "confidence": 0.95, "certified": 50, "sessions": 20}
    seen = {"failures": 4, "naive_failures": 0, "repeat": 0, "analyst": "tuned"}
    rates = ((0.5, 1.0), (0.7, 0.4), (1.0, 0.2))
    rows = [{**row, **seen, "share": s, "rate": r, "squares": r**2} for s, r in rates]
    found = tightness.findings(pd.DataFrame(rows))
    assert found[0].what == "40 questions, tail 0.05: tightness"
    assert [finding.holds for finding in found[:2]] == [False, False]


def test_a_crossing_is_between_the_sizes_that_enclose_it() -> None:
    points = [tightness._Point(s, r, 0.0) for s, r in ((0.5, 1.0), (0.6, 0.1), (0.7, 0.02))]
    share = tightness._crossing(points, 0.05)
    assert share is not None
    assert 0.6 < share < 0.7
    assert tightness._crossing(points, 0.1) == pytest.approx(0.6)
    assert tightness._crossing(points[2:], 0.05) is None
    assert tightness._crossing(points[:1], 0.05) is None
