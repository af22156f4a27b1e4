"""`tools.seeds`: every property test, many seeds; what falls is told, what is done is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import seeds

CONFTEST = """
from hypothesis import settings
settings.register_profile("fresh", derandomize=False, database=None, max_examples=20)
"""
GOOD = """
import pytest
from hypothesis import given, strategies as st

@given(st.integers())
@pytest.mark.parametrize("sign", [1, -1])
def test_good(sign, n):
    assert abs(sign * n) >= 0

def test_no_property():
    assert False
"""
BAD = """
from hypothesis import given, strategies as st

@given(st.integers(0, 1000))
def test_bad(n):
    assert n < 10
"""
MACHINE = """
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule

class Machine(RuleBasedStateMachine):
    @rule()
    def step(self):
        pass

TestMachine = Machine.TestCase
"""
LOST = """
from hypothesis import settings
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "tests").mkdir(parents=True)
    # A plugin that takes half of the time to start, and that no property test needs.
    ini = "[pytest]\naddopts = -p no:schemathesis\nmarkers = cluster: a cluster\n"
    (folder / "pytest.ini").write_text(ini)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "tests" / "test_good.py").write_text(GOOD)
    return folder


def test_seeds_in_slices_only_once_and_what_falls_is_told(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, words = root / "page.md", ["--seeds", "2", "--first", "5", "--jobs", "1"]
    (root / "tests" / "test_machine.py").write_text(MACHINE)
    assert seeds.main([*words, "--output", str(page), "--slice", "1/2"], root) == 1
    assert "1 seeds are left" in capsys.readouterr().out
    assert not page.exists()
    assert seeds.main([*words, "--output", str(page), "--slice", "2/2"], root) == 0
    assert capsys.readouterr().out.startswith("1 of 2 seeds to run")  # what is done is not repeated
    assert "| `tests/test_good.py::test_good` | 4 | 0 |" in page.read_text()
    assert "| `tests/test_machine.py::TestMachine::runTest` | 2 | 0 |" in page.read_text()
    assert "None fell" in page.read_text()
    (root / "tests" / "test_bad.py").write_text(BAD)  # other code is run again
    assert seeds.main([*words, "--slice", "1/2"], root) == 1
    told = capsys.readouterr().out
    assert "seed 5: tests/test_bad.py::test_bad" in told
    assert "| `tests/test_bad.py::test_bad` | 1 | 1 |" in told
    assert "**1 of them fell.**" in told
    assert "assert n < 10" in (root / ".scratch" / "seeds" / "5.log").read_text()
    (root / "tests" / "test_lost.py").write_text(LOST)  # its properties are not marked
    with pytest.raises(SystemExit, match=r"tests/test_lost\.py"):
        seeds.main(words, root)


def test_every_file_that_imports_hypothesis_is_found() -> None:
    found = seeds._importing(seeds.ROOT)
    assert "tests/holdout/test_machine.py" in found
    assert len(found) > 30
