"""A tiny experiment of a user's own, written into a folder."""

from __future__ import annotations

from pathlib import Path

from holdfast_lab.runner.experiment import Experiment, find_experiments
from holdfast_lab.runner.run import Outcome, run_experiments

__all__ = ["CONFIG", "DRAWING", "MODULE", "Notes", "run_tiny", "tiny", "write_tiny"]

CONFIG = """\
name = "tiny-walk"
title = "How far a <walk> gets"
group = "scaling"
order = 7
about = "Steps of one & no other."
sources = ["Pearson 1905, The problem of the random walk"]
seed = 3
[parameters]
steps = [9, 16]
kind = ["fair", "still"]
scale = 1.5
[full]
repeats = 3
[quick]
repeats = 2
[quick.parameters]
steps = [9]
"""

MODULE = '''\
"""A walk."""

from __future__ import annotations

import os
import time

import numpy as np

from holdfast_lab.experiments.base import Finding

CAPTIONS = {"walk": "Squares <against> steps"}
LIMIT = 5


def place_of(cell):
    return f"{cell['steps']} {cell['kind']} {cell.repeat}"


def step(cell):
    return cell.chance().choice([-1, 1], cell["steps"]) * (cell["kind"] == "fair")


def measure(cell):
    """One walk."""
    if cell.repeat and os.environ.get("TINY_SLOW"):
        time.sleep(600)
    if cell["steps"] == int(os.environ.get("TINY_WRONG", "0")):
        raise ArithmeticError("a stumble")
    if place_of(cell) == os.environ.get("TINY_DEADLY"):
        os._exit(3)
    coins = int(cell.entropy().words(1)[0] % 1000)
    yield {"end": np.float64(cell["scale"] * step(cell).sum()), "coins": coins}


def draw(results):
    return {}


def findings(results):
    still = results[results["kind"] == "still"]
    return [
        Finding("still walks end at 0", f"{still.end.abs().max():g}", "0", (still.end == 0).all()),
        Finding(f"walks < {LIMIT}", str(len(results)), "many", False),
    ]
'''

DRAWING = MODULE.replace(
    "    return {}\n",
    """\
    from holdfast_lab.figures import new_figure

    figure, (axes,) = new_figure(width=3, height=2)
    axes.plot(results["steps"], results["end"] ** 2, "o", clip_on=True)
    return {"walk": figure, "twin": figure}
""",
)


class Notes:
    """Remembers what a run said."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.advanced: list[str] = []
        self.notes: list[str] = []

    def begin(self, cells: int) -> None:
        self.begun.append(cells)

    def advance(self, experiment: str) -> None:
        self.advanced.append(experiment)

    def note(self, text: str) -> None:
        self.notes.append(text)


def write_tiny(folder: Path, module: str = MODULE, config: str = CONFIG) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tiny_walk.py").write_text(module, "utf-8")
    path = folder / "tiny_walk.toml"
    path.write_text(config, "utf-8")
    return path


def tiny(folder: Path, module: str = MODULE, config: str = CONFIG) -> Experiment:
    (found,) = find_experiments([str(write_tiny(folder, module, config))])
    return found


def run_tiny(
    experiment: Experiment,
    output: Path,
    *,
    mode: str = "full",
    workers: int = 0,
    seed: int | None = None,
    watch: Notes | None = None,
) -> Outcome:
    (outcome,) = run_experiments(
        [experiment], mode=mode, output=output, workers=workers, seed=seed, watch=watch or Notes()
    )
    return outcome
