"""What is told: the lab's figures and attacks, in small; the committed pages have the full size.

Seeds are fixed, so a test that passes goes on passing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from holdfast.protocols.answers import ROWS, RULE
from holdfast.randomness import SeededEntropy
from holdfast.theory.told import share_high, share_low
from holdfast_lab.attacks.conversation import Terms
from holdfast_lab.told import attacks, figures
from holdfast_lab.told.made import made_rows

N = 1_000


def chance() -> np.random.Generator:
    return np.random.default_rng(7)


def test_rows_in_memory_are_answered_as_a_holdout_answers() -> None:
    with made_rows(N, chance()) as rows:
        memory = attacks.ToldRows(Terms(N, 1, SeededEntropy(1)), extends=True)
        asks: list[Any] = [
            *(attacks.honest(0.9), attacks.precise(0.88), attacks.surprising(0.9)),
            *(attacks.sided(0.9), attacks.bold(0.9), attacks.cheap(0.9), attacks.precise(0.9)),
        ]
        for ask in asks:
            right = rows.right(0.9)
            words = dict(ask(memory.past, N))
            answer = rows.score(right, **_as_asked(words))
            drawn = memory.ask(right[~rows.open], lambda *_, words=words: words)
            told = (answer.low, answer.high, answer.told, list(answer.letter))
            assert told == (drawn["low"], drawn["high"], drawn["nats"], drawn["letter"])


def _as_asked(words: dict[str, Any]) -> dict[str, Any]:
    return {"guess_se" if name == "error" else name: value for name, value in words.items()}


@pytest.mark.parametrize("analyst", attacks.ANALYSTS, ids=lambda each: each.name)
def test_no_promise_fails_more_often_than_it_may(analyst: attacks.Fair) -> None:
    for failure in attacks.FAILURES:
        found = attacks.attacked(analyst, failure, runs=30, others=4, seed=1)
        assert found.passed
        assert found.told.chance(failure) > 0.01


def test_levels_that_forget_are_found_out() -> None:
    """What would be wrong is seen: the same analysts break it."""
    for analyst in (attacks.BoldGuesses(), attacks.Winner(), attacks.Hidden(submissions=20)):
        found = attacks.tally(analyst, attacks.Forgetful, 0.3, runs=20, seed=1)
        assert not found.held(0.3)


def test_a_rule_that_knew_the_features_breaks_the_reading_that_excludes_it() -> None:
    found = attacks.readings(0.05, runs=10, seed=1)
    assert found[ROWS].held(0.05)
    assert found[RULE].failures == 10


def test_the_page_of_attacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert attacks.main(["--runs", "2", "--others", "1", "--seed", "3"]) == 0
    page = capsys.readouterr().out
    assert page.count("| holds |") == 2 * len(attacks.ANALYSTS)
    assert "| this rule, on fresh rows | 0.05 | 2 | 2 |" in page


def test_figures_are_those_of_the_answers() -> None:
    """Half-widths before anything is told, and how surprises and gates widen them."""
    first = figures.precise_after(N, 0, chance())
    plain = (share_high(N, 900, 3.5) - share_low(N, 900, 3.5)) / 2
    assert plain < first < 1.2 * plain
    confirmed, precise = figures.after_surprises(N, 6, 2, chance())
    assert first < confirmed < precise
    assert figures.natural(N, 4, chance(), 0.94) > first
    needs = [figures.gate_needs(N, 5, unclear, chance()) for unclear in (0, 2)]
    assert 0.02 < needs[0] < needs[1] < 0.06
    assert figures.better_needs(N, 3, 1, chance()) < figures.better_needs(N, 4, 2, chance())
    assert figures.precise_difference(N, 2, chance()) < 0.05
    assert figures.winner(N, 2, 4, chance()) > first


def test_the_page_of_figures() -> None:
    narrow = figures.Figure(10, "3", "a case", 0.5, 0.4)
    wide = figures.Figure(10, "3", "b", 0.1, 0.2, 0.01)
    page = figures.page([narrow, wide], "a command")
    assert "| 10 | 3 | a case | 0.5000 | 0.4000 | held |" in page
    assert "| 10 | 3 | b | 0.1000 | 0.2000 (± 0.0100) | **wider** |" in page
