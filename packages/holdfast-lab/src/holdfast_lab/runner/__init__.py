"""Runs experiments: configs, cells in parallel, results that outlive a crash, figures, findings.

experiment   config files, where experiments are found, a digest of the code that they rest on
run          cells measured in parallel; all of it together
results      cells and their numbers, the journal, the table, the folders, figures and findings
"""

from __future__ import annotations

from holdfast_lab.runner.experiment import Experiment, find_experiments, known_experiments
from holdfast_lab.runner.run import Outcome, run_experiments

__all__ = ["Experiment", "Outcome", "find_experiments", "known_experiments", "run_experiments"]
