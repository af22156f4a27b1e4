"""The experiment that the docs show is one."""

from __future__ import annotations

from pathlib import Path

from tests.lab.runner.tiny import run_tiny

from holdfast_lab.runner.experiment import find_experiments
from tools.fences import fences

PAGE = Path(__file__).parents[5] / "docs" / "how-to" / "lab.md"


def test_the_experiment_of_the_docs_runs(tmp_path: Path) -> None:
    blocks = fences(PAGE.read_text("utf-8"))
    (config,) = (each.text for each in blocks if each.language == "toml")
    (module,) = (each.text for each in blocks if each.language == "python")
    (tmp_path / "best_of_many.toml").write_text(config, "utf-8")
    (tmp_path / "best_of_many.py").write_text(module, "utf-8")
    (experiment,) = find_experiments([str(tmp_path / "best_of_many.toml")])
    outcome = run_tiny(experiment, tmp_path / "out", mode="quick")
    assert outcome.good
    assert list(outcome.pictured.figures) == ["best"]
    (finding,) = outcome.pictured.findings
    shown = f"{finding.what}: {finding.measured} (expected {finding.expected}); holds"
    assert shown in PAGE.read_text("utf-8")
