"""Figures and findings, made from the kept table alone: nothing is measured here."""

from __future__ import annotations

import importlib.util
import re
import traceback
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import holdfast.lab.style
from holdfast.errors import InvalidInput
from holdfast.lab.experiments.base import Finding
from holdfast.lab.runner.catalogue import Experiment
from holdfast.lab.runner.place import Place
from holdfast.lab.runner.reach import digest_of
from holdfast.lab.runner.results import read_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Pictured", "picture", "read_pictured"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NO_MATPLOTLIB = "No figures were drawn: they need matplotlib. Try: pip install matplotlib"


@dataclass(frozen=True)
class Pictured:
    """Captions of the figures by name, the findings, and what went wrong in making them."""

    figures: dict[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    note: str = ""
    problems: tuple[str, ...] = ()


def _can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def picture(experiment: Experiment, place: Place) -> Pictured:
    """Draw the figures as SVG and PNG, write the findings, and keep what they were made from."""
    try:
        module = experiment.module()
    except InvalidInput as wrong:
        return Pictured(problems=(str(wrong),))
    table = read_table(place.folder)
    problems = []
    try:
        findings = _findings(module, table)
    except Exception:
        findings, problems = (), [f"findings: {traceback.format_exc()}"]
    place.write_json("findings.json", [asdict(each) for each in findings])
    figures: dict[str, str] = {}
    note = ""
    if _can_draw():
        try:
            figures = _draw(module, table, place)
        except Exception:
            problems.append(f"draw: {traceback.format_exc()}")
    else:
        note = _NO_MATPLOTLIB
    made = {"figures": figures, "note": note, "problems": problems}
    place.write_json("figures.json", {"made_from": _made_from(experiment, place), **made})
    return Pictured(figures, findings, note, tuple(problems))


def _findings(module: ModuleType, table: pd.DataFrame) -> tuple[Finding, ...]:
    found = tuple(module.findings(table))
    for each in found:
        if not isinstance(each, Finding):
            raise TypeError(f"findings gave a {type(each).__name__}, not a Finding")
    # A comparison of numpy numbers is no Python bool, and JSON would not take it.
    return tuple(
        Finding(each.what, each.measured, each.expected, _truth(each.holds)) for each in found
    )


def _truth(holds: Any) -> bool | None:
    return None if holds is None else bool(holds)


def _draw(module: ModuleType, table: pd.DataFrame, place: Place) -> dict[str, str]:
    captions: dict[str, str] = getattr(module, "CAPTIONS", {})
    drawn = module.draw(table)
    for name in drawn:
        if not _NAME.fullmatch(name):
            raise InvalidInput("figure", name, "a name of letters, digits, ., - and _")
    for old in (*place.folder.glob("*.svg"), *place.folder.glob("*.png")):
        old.unlink()
    for name, figure in drawn.items():
        holdfast.lab.style.save_figure(figure, place.folder, name)
    return {name: captions.get(name, "") for name in drawn}


def read_pictured(experiment: Experiment, place: Place) -> Pictured:
    """What was made before; made again if the table, the module or the style has changed since."""
    kept = place.read_json("figures.json")
    findings = place.read_json("findings.json")
    try:
        if not _is_old(kept, experiment, place):
            return Pictured(
                kept["figures"],
                tuple(Finding(**each) for each in findings),
                kept["note"],
                tuple(kept["problems"]),
            )
    except (TypeError, KeyError, SyntaxError):  # files that are missing or not what was written
        pass
    return picture(experiment, place)


def _is_old(kept: dict[str, Any], experiment: Experiment, place: Place) -> bool:
    drawn = all((place.folder / f"{name}.svg").is_file() for name in kept["figures"])
    if not drawn or (kept["note"] and _can_draw()):
        return True
    return bool(kept["made_from"] != _made_from(experiment, place))


def _made_from(experiment: Experiment, place: Place) -> str:
    """A digest of the table, and of the code that draws and concludes, the lab's own included."""
    code = [digest_of(experiment.source, name) for name in ("draw", "findings", "CAPTIONS")]
    code.append(digest_of(Path(holdfast.lab.style.__file__), "save_figure"))
    table = sha256(place.table.read_bytes()).hexdigest()
    return sha256(" ".join([table, *code]).encode()).hexdigest()[:16]
