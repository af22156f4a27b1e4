"""How results came to be: run.json, and the command that makes them again."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

from holdfast.lab.runner.catalogue import Experiment
from holdfast.lab.runner.journal import Done

__all__ = ["command_for", "run_record"]

_LIBRARIES = ("holdfast", "numpy", "scipy", "pandas", "matplotlib")


def command_for(experiment: Experiment, mode: str, seed: int) -> str:
    """The command line that makes an experiment's results."""
    words = ["holdfast", "lab", "run", experiment.called]
    words += ["--quick"] if mode == "quick" else []
    words += ["--seed", str(seed)] if seed != experiment.config.seed else []
    return shlex.join(words)


def run_record(
    experiment: Experiment, mode: str, seed: int, done: Collection[Done], cells: int
) -> dict[str, Any]:
    """Everything that somebody would need to know to make the results again."""
    config = experiment.config
    extent = config.modes[mode]
    return {
        "experiment": config.name,
        "title": config.title,
        "mode": mode,
        "seed": seed,
        "command": command_for(experiment, mode, seed),
        "parameters": {name: list(values) for name, values in extent.parameters.items()},
        "repeats": extent.repeats,
        "cells": {"done": len(done), "all": cells},
        "seconds": round(sum(each.seconds for each in done), 3),
        "measured": max((each.at for each in done), default=None),
        "versions": {"python": python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
