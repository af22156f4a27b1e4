"""Runs experiments: configs, cells in parallel, results that outlive a crash, figures, findings.

config     a config file, read strictly
catalogue  where experiments are found
cells      every combination of the parameters, each with its own number
reach      a digest of the code that a measurement rests on
journal    finished cells on disk
pool       cells measured in parallel, by `worker` in each process
results    the tidy table
place      the folders
pictures   figures and findings, made from the table alone
record     how results came to be
run        all of it together
"""

from __future__ import annotations

from holdfast_lab.runner.experiment import Experiment, find_experiments, known_experiments
from holdfast_lab.runner.run import Outcome, run_experiments

__all__ = ["Experiment", "Outcome", "find_experiments", "known_experiments", "run_experiments"]
