"""Every protocol is attacked: naive breaks in most runs, Holdfast no more often than promised.

The seeds are fixed, so a test that passes goes on passing. With other seeds a promise of β = 0.05
whose true rate of failure is below 0.005 would raise an alarm (two failures in 100 runs) with
probability below 0.1; the 300 runs of docs/explanation/protocol-attacks.md, with 1e-4.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Exhausted
from holdfast.protocols.base import Drawn, Question
from holdfast.protocols.guesses import Verify
from holdfast.protocols.plans import Account, Charge
from holdfast.randomness import SeededEntropy
from holdfast.theory.numerics import binomial_tail
from holdfast_lab.attacks import protocols
from holdfast_lab.attacks.__main__ import main
from holdfast_lab.attacks.learners import (
    LEVELS,
    Aggregator,
    Collector,
    Feature,
    Known,
    LabelQuestion,
    Middle,
    Step,
    cut_at,
    draw_labels,
    draw_levels,
)
from holdfast_lab.attacks.protocols import (
    ATTACKS,
    AmplifiedAttack,
    Attack,
    EstimateAttack,
    OneSidedAttack,
    RoundsAttack,
    SimpleAttack,
    SplitAttack,
    Spread,
    Trial,
    Unerring,
    WorstCase,
    critical_count,
    textbook_rank,
)
from holdfast_lab.attacks.results import run_attack
from holdfast_lab.attacks.targets import PLANS, Estimates, Request, Rows, kept_plan, write_plans

RUNS, OTHERS, SEED = 100, 10, 21

named = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)


# The evidence


@named
def test_the_attack_breaks_naive_and_not_holdfast(attack: Attack) -> None:
    result = run_attack(attack, RUNS, SEED, others=OTHERS)
    assert 2 * result.naive_failures > OTHERS
    assert result.bound <= attack.failure == 0.05
    assert result.polite
    assert result.passed
    # The same seed gives the same runs.
    again = run_attack(attack, 2, SEED)
    assert again.holdfast == result.holdfast[:2]
    assert again.naive == result.naive[:2]


def test_the_known_rate_of_splitting() -> None:
    """The law with three values fails as often as theory says: the attack can see failures.

    The exact rate r is that of all the questions with that law. Of 400 runs with r as the chance
    of failure, fewer or more than the limits fail with probability below 1e-6.
    """
    attack, runs = SplitAttack(), 400
    each, rank = attack.plan.blocks_per_question, attack.plan.rank
    worst = attack.queries - (each // 2 + 2)
    one = binomial_tail(each, attack.tail, rank) + binomial_tail(each, attack.tail, each - rank + 1)
    rate = 1 - (1 - one) ** worst
    failures = sum(attack.run("holdfast", Trial(SEED, i)).broken for i in range(runs))
    low = next(k for k in range(runs) if 1 - binomial_tail(runs, rate, k + 1) > 5e-7)
    high = next(k for k in range(runs) if binomial_tail(runs, rate * 1.1, k) < 5e-7)
    assert low <= failures < high
    assert failures > 0


# What is broken is found


def _without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """An account that opens another one like it when it is exhausted."""
    hold = Account.hold

    def again(account: Account, worst: Charge) -> None:
        try:
            hold(account, worst)
        except Exhausted:
            vars(account).update(vars(Account(account.plan)))
            hold(account, worst)

    monkeypatch.setattr(Account, "hold", again)


@dataclass(frozen=True)
class LongEstimates(EstimateAttack):
    """A budget for as many searches as there are labels to be collected."""

    queries: int = 18
    tail: float = 1e-4
    size: int = 2**18
    points: int = 2**15

    @property
    def requests(self) -> tuple[Request, ...]:
        return (Estimates(self.queries, self.points, self.tail, self.tail),)


@pytest.mark.parametrize(
    "attack", [LongEstimates(), SimpleAttack()], ids=lambda attack: type(attack).__name__
)
def test_a_coin_without_noise_is_caught(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact medians, paid for like looks: with as many questions as planned the promise breaks."""
    monkeypatch.setattr(Trial, "coins", Unerring())
    result = run_attack(attack, 20, SEED)
    assert result.failures == result.unerring_failures > 10
    assert not result.kept


def test_exact_medians_without_a_budget_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred looks are planned; it takes longer to collect half of the labels."""
    monkeypatch.setattr(Trial, "coins", Unerring())
    monkeypatch.setattr(protocols, "MOST", 100)
    attacks = [EstimateAttack(), AmplifiedAttack()]
    assert [run_attack(attack, 5, SEED).failures for attack in attacks] == [0, 0]
    monkeypatch.setattr(protocols, "MOST", 3)
    _without_end(monkeypatch)
    for attack in attacks:
        result = run_attack(attack, 5, SEED)
        assert result.failures > 2
        assert not result.kept


def test_a_budget_that_never_refuses_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its answers are worth."""
    monkeypatch.setattr(protocols, "MOST", 100)
    _without_end(monkeypatch)
    result = run_attack(EstimateAttack(steps=3), 2, SEED)
    assert result.failures == 0
    assert not result.polite
    assert not result.kept


def test_a_refusal_that_is_charged_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = Account.hold

    def charging(account: Account, worst: Charge) -> None:
        try:
            hold(account, worst)
        except Exhausted:
            hold(account, Charge(worst.part, Fraction(1, 10**14), 0))
            raise

    assert run_attack(EstimateAttack(steps=5), 1, SEED).polite
    monkeypatch.setattr(Account, "hold", charging)
    assert not run_attack(EstimateAttack(steps=5), 1, SEED).polite


@pytest.mark.parametrize(
    ("yes", "attack"),
    # Always Yes; and always No: then events of mass 0.75 are refused, which is a false No.
    [(True, RoundsAttack()), (False, OneSidedAttack())],
    ids=["yes", "no"],
)
def test_a_verdict_that_is_always_the_same_is_caught(
    yes: bool, attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked(verify: Verify, question: Question, *_: object) -> Drawn:
        return {"yes": verify.worst(question)[-1].looks if yes else 0}

    monkeypatch.setattr(Verify, "looked", looked)
    result = run_attack(attack, 5, SEED)
    assert result.failures == 5
    assert not result.kept


def test_blocks_that_are_not_fresh_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    part = Rows.part
    monkeypatch.setattr(Rows, "part", lambda self, _start, stop: part(self, 0, stop - _start))
    result = run_attack(SplitAttack(), 5, SEED)
    assert result.failures == 5
    assert not result.kept


# Laws are exact


@given(st.integers(2, 40), st.integers(2, 12), st.data())
def test_tails_of_questions_by_enumeration(size: int, points: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, size - 1))
    last = data.draw(st.integers(first, size - 1))
    known = data.draw(st.sets(st.integers(first, last), min_size=1))
    array = np.array(sorted(known))
    questions: list[LabelQuestion] = [
        Middle(size),
        Step(size, points, first, last),
        Step(size, points, first, last, array),
        Known(size, array),
    ]
    labels = np.arange(size)
    for question in questions:
        values = question(labels)
        assert values.min() >= 0
        assert values.max() < question.points
        for answer in range(question.points):
            at_most, at_least = np.mean(values <= answer), np.mean(values >= answer)
            assert question.tails(answer) == pytest.approx((at_most, at_least), abs=1e-12)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([-2, -1, 1, 3]), st.booleans()),
        min_size=1,
        max_size=4,
    ),
    st.floats(0.01, 0.9),
)
def test_the_mass_of_an_event_by_enumeration(
    learnt: list[tuple[float, int, bool]], mass: float
) -> None:
    """All combinations of low, high and neither, each with its exact chance."""
    aggregator = Aggregator()
    outcomes: list[list[tuple[int, int]]] = []  # of each feature: a level, and how many are like it
    for row, (share, low, two) in enumerate(learnt):
        feature = Feature(row, cut_at(share), sides=2 if two else 1)
        aggregator.learn(feature, low, -1 if two else 0)
        cut = feature.cut
        high = [(LEVELS - 1, cut)] if two else []
        outcomes.append([(0, cut), (cut, LEVELS - cut - (cut if two else 0)), *high])
    tie = len(learnt)
    for event in (aggregator.event(mass, tie), aggregator.common(mass, tie)):
        total = Fraction(0)
        for combination in itertools.product(*outcomes):
            weight = Fraction(math.prod(count for _, count in combination), LEVELS ** len(learnt))
            if weight:
                low_ties, high_ties = event.levels, LEVELS - event.levels
                for level, ties in ((0, low_ties), (LEVELS - 1, high_ties)):
                    column = np.array([*(at for at, _ in combination), level])[:, np.newaxis]
                    inside = ties and bool(event(column)[0])
                    total += weight * Fraction(ties, LEVELS) * inside
        assert float(total) == pytest.approx(event.mass, abs=1e-12)
        assert total <= mass if event.rare else total >= mass
        assert abs(float(total) - mass) < 1e-4  # two levels of the largest atom


def test_levels_and_labels_are_uniform() -> None:
    """Chi-squared of 16 cells, 15 degrees of freedom: above 60 with probability below 1e-6."""
    levels = draw_levels(4, 5_000, SeededEntropy(5))
    labels = draw_labels(20_000, 2**12, SeededEntropy(6))
    assert levels.shape == (4, 5_000)
    assert labels.max() < 2**12
    for cells in (levels.ravel() // 2**12, labels // 2**8):
        counts = np.bincount(cells, minlength=16)
        assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 60


def test_spread_and_the_worst_case() -> None:
    edge, size, worst = int(0.05 * 2**32), 2**32, WorstCase(0.05)
    labels = np.array([0, edge - 1, edge, size - edge - 1, size - edge, size - 1])
    assert worst(labels).tolist() == [0, 0, 1, 1, 2, 2]
    assert [worst.tails(answer) for answer in range(3)] == [(0.05, 1.0), (0.95, 0.95), (1.0, 0.05)]
    levels = np.array([[0, 1, 30_000, LEVELS - 1]], np.uint16)
    assert Spread(Feature(0, 2, sides=2))(levels).tolist() == [0, 0, 1, 2]


# Analysts


@given(
    st.lists(st.integers(0, 4_095), min_size=3, max_size=41, unique=True),
    st.sampled_from([64, 1_024]),
)
def test_the_collector_learns_the_upper_half(values: list[int], points: int) -> None:
    labels = np.array(values)
    middle = (labels.size - 1) // 2
    collector, asked = Collector(4_096, points, tail=1.0), 0
    while not collector.done:
        answer = int(np.sort(collector.question(labels))[middle])
        assert min(collector.question.tails(answer)) > 0
        collector.learn(answer)
        asked += 1
    assert asked <= labels.size + 4_096 // (points - 2) + 2
    expected = np.unique(np.sort(labels)[middle:])
    assert collector.event.known.tolist() == expected.tolist()
    assert np.sort(collector.event(labels))[middle] == 1


def test_the_collector_keeps_to_the_tail_and_starts_again() -> None:
    collector = Collector(64, 16, tail=2 / 64)
    for answer in (40, 3, 0, 5, 15, 15):
        collector.learn(answer)
    assert collector.learnt == 3
    assert collector.done
    assert collector.event.known.tolist() == [40, 43]
    collector.again()
    assert not collector.done


# Naive is right for questions fixed in advance


@given(st.integers(20, 3_000), st.floats(0.01, 0.6), st.floats(1e-4, 0.1))
def test_critical_counts_and_ranks(trials: int, mass: float, failure: float) -> None:
    """The interval misses the median if fewer than `rank` blocks are on one side of it."""
    count = critical_count(trials, mass, failure)
    assert binomial_tail(trials, mass, count) <= failure < binomial_tail(trials, mass, count - 1)
    rank = textbook_rank(trials, failure)
    missed = [2 * binomial_tail(trials, 0.5, trials + 1 - each) for each in (rank, rank + 1)]
    assert missed[0] <= failure < missed[1]


# Plans, page, command


def test_kept_plans_are_those_of_the_attacks(tmp_path: Path) -> None:
    """None is missing, none is left over, and each proves itself."""
    wanted = {repr(each): each for attack in ATTACKS for each in attack.kept}
    kept = json.loads(PLANS.read_text("utf-8"))
    assert set(wanted) == set(kept)
    for name, (requests, confidence) in wanted.items():
        plan = kept_plan(*requests, confidence=confidence)
        assert plan.verify()
        assert plan.to_dict() == kept[name]
    requests = (Estimates(3, 2, 0.05, 0.05),)
    write_plans([(requests, 0.9)], tmp_path / "plans.json")
    written = json.loads((tmp_path / "plans.json").read_text("utf-8"))
    assert list(written.values()) == [kept_plan(*requests, confidence=0.9).to_dict()]


def test_the_command_writes_a_page_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "page.md"
    given = ["--runs", "60", "--seed", "1", "--only", "split", "--output", str(output), "--json"]
    assert main(given) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["protocol"] == "split"
    assert row["runs"] == row["naive_runs"] == row["naive_failures"] == 60
    assert row["unerring_failures"] == row["failures"]  # nothing is drawn
    assert row["passed"] is True
    text = output.read_text("utf-8")
    bound = f"{row['failure_rate_bound']:.4f}"
    assert (
        f"| 24 | 168 | 0.05 | 60 | 60 | {row['failures']} | {row['failures']} | {bound} |" in text
    )
    assert "Naive answered 24 questions a run on average, Holdfast 24." in text
    assert all(len(line) < 100 or line[0] in "|$" for line in text.splitlines())


def test_too_few_runs_support_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "3", "--seed", "3", "--only", "split"]) == 4
    assert "**Not supported by these runs:** split." in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--only", "oracle"])
