"""Deliberate mistakes: every one is caught by a check that the real code passes.

The checks are those of the other tests. Here each is run on the code, which passes, and on a copy
that is wrong in one small way, which must not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.mutants import mechanisms, protocols, theory, told
from tests.mutants.theory import Mutant


@cache
def passed_by_the_real_code(check: Callable[..., bool]) -> bool:
    return check()


@pytest.mark.parametrize(
    "mutant", [*theory.MUTANTS, *mechanisms.MUTANTS, *protocols.MUTANTS, *told.MUTANTS], ids=str
)
def test_the_mistake_is_caught(mutant: Mutant) -> None:
    assert passed_by_the_real_code(mutant.check)
    assert not mutant.check(mutant.broken)


def test_a_search_that_is_only_written_differently_passes() -> None:
    """What is caught above is the mistake, not the way it is written down."""
    assert mechanisms.search_is_accurate(mechanisms.bisection())
