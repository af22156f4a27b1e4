"""What the page is made from: for each experiment its results' folder, figures and findings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.lab.runner.catalogue import Experiment
from holdfast.lab.runner.pictures import Pictured, read_pictured
from holdfast.lab.runner.place import Place, best_place
from holdfast.lab.runner.results import read_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Chapter", "Told", "read_chapters"]


@dataclass(frozen=True, eq=False)
class Told:
    """An experiment's results, as they are kept."""

    place: Place
    run: dict[str, Any]
    pictured: Pictured
    table: pd.DataFrame

    def figure(self, name: str) -> str:
        """A figure, as the text of its SVG file."""
        return (self.place.folder / f"{name}.svg").read_text("utf-8")


@dataclass(frozen=True)
class Chapter:
    """An experiment, and its results if it was run."""

    experiment: Experiment
    told: Told | None

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.experiment.name


def read_chapters(experiments: Iterable[Experiment], results: Path) -> list[Chapter]:
    """The best results of each experiment; a figure older than what it shows is drawn again."""
    ordered = sorted(experiments, key=lambda each: each.config.place)
    return [Chapter(each, _told(each, results)) for each in ordered]


def _told(experiment: Experiment, results: Path) -> Told | None:
    place = best_place(results, experiment.name)
    run = None if place is None else place.read_run()
    if place is None or run is None:
        return None
    return Told(place, run, read_pictured(experiment, place), read_table(place.folder))
