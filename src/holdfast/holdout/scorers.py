"""Scorers: the metrics that scores are asked by, by name, and those that the custodian adds.

A file of the custodian has one name, METRICS:

    METRICS = {
        "cost": {"function": cost, "greater_is_better": False, "grid": "0:10:0.1"},
        "kappa": {"function": cohen_kappa_score, "greater_is_better": True, "range": (-1, 1)},
        "fbeta": {"function": make_scorer(fbeta_score, beta=2), "range": (0, 1)},
        "rmse": {"grid": "0:50:0.5"},
    }

A function takes the targets and the predictions of one block and gives one number. It runs where
estimators run, in the engines' workers. `predictions` says what it takes: label (the default),
number, probability or score. A scorer of scikit-learn's says both by itself, and greater is better:
it gives losses the other sign. An entry without a function gives a known metric a grid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.engines.python.metrics import (
    NAMES,
    NEEDS_LABEL,
    NEEDS_NUMBER,
    NEEDS_PROBABILITY,
    NEEDS_SCORE,
    Metric,
    checked_function,
    find_metric,
    is_scorer,
    needs_of,
    unwrapped,
)
from holdfast.errors import InvalidInput
from holdfast.grids import Grid, parse_grid
from holdfast.holdout.default_grids import grid_between
from holdfast.planning.shapes import BoundedMean

__all__ = ["Scorer", "Scorers", "read_scorers"]

_KEYS = {"function", "greater_is_better", "grid", "predictions", "range"}
_TAKES = (NEEDS_LABEL, NEEDS_NUMBER, NEEDS_PROBABILITY, NEEDS_SCORE)
# Of targets and predictions that lie `span` apart at most: what the metric is at most.
_ERRORS = {"mae": 1, "rmse": 1, "mse": 2}


@dataclass(frozen=True)
class Scorer:
    """A metric, and the grid that its scores are answered on, if it has one of its own."""

    metric: Metric
    grid: Grid | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return self.metric.name

    @property
    def greater_is_better(self) -> bool:
        """Its direction."""
        return self.metric.greater_is_better

    def public_grid(self, points: int, span: tuple[float, float] | None) -> Grid | None:
        """The grid for a target whose values were declared to lie within `span`; None if none is.

        A metric with a range needs none: the range is its grid.
        """
        if self.grid is not None or self.metric.range is not None:
            return self.grid
        if self.metric.span is not None:
            return grid_between(*self.metric.span, points)
        power = _ERRORS.get(self.name)
        if power is None or span is None:
            return None
        return grid_between(0.0, (span[1] - span[0]) ** power, points)


class Scorers:
    """Metrics by name: those added first, then Holdfast's, then scikit-learn's."""

    def __init__(self, added: Mapping[str, Scorer] | None = None) -> None:
        self._added = dict(added or {})

    @property
    def names(self) -> tuple[str, ...]:
        """Those added, and Holdfast's own; scikit-learn's are known by their names there."""
        own = {find_metric(name).name for name in NAMES if not name.startswith("neg_")}
        return tuple(sorted({*self._added, *own}))

    def find(self, metric: object) -> Scorer:
        """A metric by its name, or a function of targets and predictions."""
        if isinstance(metric, str) and metric in self._added:
            return self._added[metric]
        try:
            found = find_metric(metric)
        except InvalidInput as wrong:
            if not self._added:
                raise
            allowed = f"{wrong.allowed}; here also {', '.join(self._added)}"
            raise InvalidInput(wrong.parameter, metric, allowed, wrong.hint) from None
        known = self._added.get(found.name) if isinstance(metric, str) else None
        return known or Scorer(found)


def read_scorers(path: Path) -> Scorers:
    """The metrics of a custodian's file, which is run, as the custodian, once."""
    import runpy

    if not path.is_file():
        raise InvalidInput("metrics", str(path), "a Python file that exists")
    try:
        found = runpy.run_path(str(path)).get("METRICS")
    except Exception as wrong:
        hint = f"It fails when it is run: {wrong!r}"
        raise InvalidInput("metrics", str(path), "a Python file that runs", hint) from wrong
    if not isinstance(found, dict) or not found:
        raise InvalidInput("metrics", str(path), "a file with METRICS = {name: {…}, …}")
    return Scorers({name: _scorer(name, entry) for name, entry in found.items()})


def _scorer(name: object, entry: object) -> Scorer:
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidInput("METRICS", name, "names of letters, digits and underscores")
    if not isinstance(entry, dict) or not set(entry) <= _KEYS:
        raise InvalidInput(f"METRICS[{name!r}]", entry, f"a dictionary with {sorted(_KEYS)}")
    points = None if entry.get("grid") is None else _grid(entry["grid"])
    if entry.get("function") is None:
        return Scorer(_known(name, entry), points)
    given = entry["function"]
    scorer = is_scorer(given)
    takes = entry.get("predictions", needs_of(given) if scorer else NEEDS_LABEL)
    better = entry.get("greater_is_better", True if scorer else None)
    directions = (True,) if scorer else (True, False)  # a scorer gives losses the other sign
    metric = Metric(
        name,
        _one_of(f"predictions of {name}", takes, _TAKES),
        function=(unwrapped if scorer else checked_function)(f"function of {name}", given),
        greater_is_better=_one_of(f"greater_is_better of {name}", better, directions),
        range=None if entry.get("range") is None else _range(name, entry["range"]),
    )
    if points is None and metric.range is None:
        hint = "Values beyond an end are told as the end."
        raise InvalidInput(f"METRICS[{name!r}]", sorted(entry), "one with a grid or a range", hint)
    return Scorer(metric, points)


def _known(name: str, entry: Mapping[str, Any]) -> Metric:
    if set(entry) - {"function"} != {"grid"}:
        allowed = "a grid alone, for a metric that is known; else a function too"
        raise InvalidInput(f"METRICS[{name!r}]", sorted(entry), allowed)
    return replace(find_metric(name), name=name) if name in NAMES else find_metric(name)


def _grid(given: object) -> Grid:
    return given if isinstance(given, Grid) else parse_grid(str(given))


def _range(name: str, given: Any) -> tuple[float, float]:
    try:
        low, high = given
    except (TypeError, ValueError):
        raise InvalidInput(f"range of {name}", given, "a pair (low, high)") from None
    whole = BoundedMean(low, high)  # says what is wrong with the pair
    return float(whole.low), float(whole.high)


def _one_of(what: str, given: Any, allowed: tuple[Any, ...]) -> Any:
    if given not in allowed:
        raise InvalidInput(what, given, f"one of {', '.join(map(str, allowed))}")
    return given
