"""Deliberate mistakes in the baselines: each is caught by a check that the real code passes."""

from __future__ import annotations

import pytest
from tests.mutants.baselines import MUTANTS

from tests.mutants.theory import Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_mistake_is_caught(mutant: Mutant) -> None:
    assert mutant.check()
    assert not mutant.check(mutant.broken)
