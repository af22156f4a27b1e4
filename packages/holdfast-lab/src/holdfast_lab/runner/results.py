"""From parameters to cells: every combination, every repeat, each with a number of its own.

A cell's number is a hash of its parameters. So it is the same in quick and full runs, and stays
the same when values are added to a config file or put in another order: what was measured is kept.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import os
import re
import shlex
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from types import ModuleType
from typing import TYPE_CHECKING, Any

from holdfast.concurrency import Closing
from holdfast.errors import Damaged, HoldfastError, InvalidInput
from holdfast.ledger.locks import exclusive
from holdfast_lab import figures
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.runner.experiment import MODES, Experiment, Mode, Scalar, digest_of

if TYPE_CHECKING:
    import pandas as pd


def combinations(mode: Mode) -> Iterator[dict[str, Scalar]]:
    """Every combination of the parameters, the last one turning fastest."""
    names = list(mode.parameters)
    for values in itertools.product(*mode.parameters.values()):
        yield dict(zip(names, values, strict=True))


def count_cells(mode: Mode) -> int:
    """How many cells there are."""
    return mode.repeats * math.prod(map(len, mode.parameters.values()))


def cells_of(mode: Mode, seed: int) -> list[Cell]:
    """All cells, in the order of measuring: first one repeat of everything, then the next.

    >>> mode = Mode(repeats=2, parameters={"size": (10, 20)})
    >>> [(cell["size"], cell.repeat) for cell in cells_of(mode, seed=1)]
    [(10, 0), (20, 0), (10, 1), (20, 1)]
    """
    numbered = [(each, number_of(each)) for each in combinations(mode)]
    return [
        Cell(parameters, seed, number, repeat)
        for repeat in range(mode.repeats)
        for parameters, number in numbered
    ]


def number_of(parameters: Mapping[str, Scalar]) -> int:
    """A number below 2**63 that depends on the parameters alone.

    >>> number_of({"a": 1, "b": "x"}) == number_of({"b": "x", "a": 1.0})
    True
    """
    return int.from_bytes(sha256(key_of(parameters).encode()).digest()[:8]) >> 1


def identity_of(cell: Cell) -> tuple[str, int]:
    """What tells a cell from all others of its experiment."""
    return key_of(cell.parameters), cell.repeat


def key_of(parameters: Mapping[str, Scalar]) -> str:
    """The parameters as one text, whatever their order; 1.0 is written as 1 is.

    >>> key_of({"b": True, "a": 2.0})
    '{"a": 2, "b": true}'
    """
    plain = {
        name: (int(value) if isinstance(value, float) and value.is_integer() else value)
        for name, value in parameters.items()
    }
    return json.dumps(plain, sort_keys=True, ensure_ascii=False)


# Finished cells on disk: one line of JSON each, written and synced before the next is begun.
#
# The first line says what measured them: experiment, seed, and a digest of the code. A line that a
# crash cut short is dropped when the journal is opened again, and its cell is measured again.


Key = tuple[str, int]  # a cell's parameters as text, and its repeat


@dataclass(frozen=True)
class Maker:
    """What measured the cells of a journal: cells of different makers are not mixed."""

    experiment: str
    seed: int
    code: str

    def difference(self, other: Maker) -> str:
        """Why cells of the other one are not ours."""
        if self.seed != other.seed:
            return f"they were measured with seed {other.seed}, not {self.seed}"
        return "the code that measured them has changed since"


@dataclass(frozen=True)
class Done:
    """A finished cell: its rows, how long it took, and when it was finished (UTC, ISO 8601)."""

    rows: list[Row]
    seconds: float
    at: str


class Journal(Closing):
    """A file that finished cells are appended to. One writer at a time: the caller holds a lock."""

    def __init__(self, path: Path, maker: Maker) -> None:
        """Open the journal, or start one. Its maker must be this one."""
        known, done, whole = read_journal(path)
        self.done = done if known else {}  # cells that nobody vouches for are not taken over
        self._file = path.open("ab")
        self._file.truncate(whole if known else 0)
        if not known:
            self._write(asdict(maker))
            descriptor = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def add(self, cell: Cell, done: Done) -> None:
        """Keep a finished cell: when this returns, it survives a crash of the machine."""
        entry = {"parameters": dict(cell.parameters), "repeat": cell.repeat, **asdict(done)}
        self._write(entry)
        self.done[identity_of(cell)] = done

    def _write(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_journal(path: Path) -> tuple[Maker | None, dict[Key, Done], int]:
    """Who made a journal, None if its first line is not whole; its cells; its bytes of whole lines.

    A line that is not whole is no cell; of two about one cell the later counts.
    """
    text = path.read_bytes() if path.is_file() else b""
    first, *lines = text.split(b"\n")
    try:
        maker = Maker(**json.loads(first)) if lines else None
    except (ValueError, TypeError):
        maker = None
    found: dict[Key, Done] = {}
    for line in lines[:-1]:  # what comes after the last line's end was cut short
        try:
            said = json.loads(line)
            done = Done(
                [dict(row) for row in said["rows"]], float(said["seconds"]), str(said["at"])
            )
            found[key_of(said["parameters"]), int(said["repeat"])] = done
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
    return maker, found, text.rfind(b"\n") + 1


# An experiment's tidy table: a row for each observation, the same bytes for the same cells.


REMEDY = "The same `holdfast lab run` as before makes it again, from the journal beside it."


def table_of(mode: Mode, done: Mapping[tuple[str, int], Done]) -> pd.DataFrame:
    """All rows of the finished cells: ordered by parameters and repeat, not by who was first."""
    import pandas as pd

    records: list[dict[str, Any]] = []
    for parameters in combinations(mode):
        key = key_of(parameters)
        for repeat in range(mode.repeats):
            cell = done.get((key, repeat))
            if cell is not None:
                records += [{**parameters, "repeat": repeat, **row} for row in cell.rows]
    columns = dict.fromkeys([*mode.parameters, "repeat"])
    for record in records:
        columns.update(dict.fromkeys(record))
    table = pd.DataFrame(records, columns=list(columns))
    for name in columns:
        kinds = {type(record.get(name)) for record in records}
        others = kinds - {int, float, type(None)}
        if len(others) + bool(kinds & {int, float}) > 1:
            found = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise HoldfastError(
                f"The rows' {name!r} must be of one type everywhere; it is {found}."
            )
    return table


def write_table(table: pd.DataFrame, folder: Path) -> None:
    """Keep the table as results.parquet and results.csv."""
    replace_file(folder / "results.parquet", lambda path: table.to_parquet(path, index=False))
    replace_file(
        folder / "results.csv", lambda path: table.to_csv(path, index=False, lineterminator="\n")
    )


def read_table(folder: Path) -> pd.DataFrame:
    """The table that was kept."""
    import pandas as pd

    path = folder / "results.parquet"
    try:
        return pd.read_parquet(path)
    except (ValueError, OSError) as wrong:
        if getattr(wrong, "errno", None) is not None:  # the system's own: no permission, say
            raise
        found = str(wrong).splitlines()[0].rstrip(".")
        raise Damaged(str(path), "a table", found, REMEDY) from None


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file, all of it or nothing."""
    draft = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        write(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


# Where an experiment's results are kept: OUTPUT/NAME/full and OUTPUT/NAME/quick.


_RUN = {"cells", "command", "measured", "mode", "parameters", "seconds", "seed", "versions"}


@dataclass(frozen=True)
class Place:
    """The folder of one experiment in one mode."""

    output: Path
    name: str
    mode: str

    @property
    def folder(self) -> Path:
        """The folder itself."""
        return self.output / self.name / self.mode

    @property
    def journal(self) -> Path:
        """Finished cells, as they came."""
        return self.folder / "journal.jsonl"

    @property
    def table(self) -> Path:
        """The tidy table; what pictures are made of."""
        return self.folder / "results.parquet"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, and keep other processes from writing to it."""
        if self.output.exists() and not self.output.is_dir():
            raise InvalidInput("output", str(self.output), "a folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                lock = self.folder.parent / f".{self.mode}.lock"
                stack.enter_context(exclusive(lock, timeout=0.0))
            except TimeoutError:
                message = f"Another process is running {self.name} ({self.mode}) in {self.output}."
                raise HoldfastError(f"{message} Wait for it, or choose another --output.") from None
            yield

    def set_aside(self, maker: Maker) -> tuple[Path, str] | None:
        """Move what another maker measured to a folder beside; say where, and why."""
        earlier, done, _ = read_journal(self.journal)
        if earlier == maker:
            return None
        if not done:
            self.journal.unlink(missing_ok=True)
            return None
        if earlier is None:
            kept, why = f"{self.mode}-unknown", "the first line of their journal is damaged"
        else:
            kept = f"{self.mode}-{earlier.code[:8]}-seed{earlier.seed}"
            why = maker.difference(earlier)
        path = self.folder.with_name(kept)
        number = 2
        while path.exists():
            path = self.folder.with_name(f"{kept}-{number}")
            number += 1
        self.folder.rename(path)
        self.folder.mkdir()
        return path, why

    def read_json(self, file: str) -> Any:
        """One of the folder's JSON files; None if there is none, or what is there is not JSON."""
        path = self.folder / file
        try:
            return json.loads(path.read_text("utf-8")) if path.is_file() else None
        except ValueError:
            return None

    def read_run(self) -> dict[str, Any] | None:
        """How the results came to be, from run.json; None if there are none."""
        run = self.read_json("run.json")
        if isinstance(run, dict) and run.keys() >= _RUN and isinstance(run["cells"], dict):
            return run
        path = self.folder / "run.json"
        if not path.is_file():
            return None
        raise Damaged(str(path), "the record of a run", "something else", REMEDY)

    def write_json(self, file: str, data: object) -> None:
        """Write one of them."""
        text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
        replace_file(self.folder / file, lambda path: path.write_text(text, "utf-8"))


def places(output: Path, name: str) -> list[Place]:
    """Where an experiment has results: the full run first."""
    found = (Place(output, name, mode) for mode in MODES)
    return [place for place in found if place.table.is_file()]


def best_place(output: Path, name: str) -> Place | None:
    """Where the best results are: all of the full run, else all of the quick one, else some."""
    found = places(output, name)
    return next((place for place in found if _is_whole(place)), found[0] if found else None)


def _is_whole(place: Place) -> bool:
    run = place.read_run()
    return run is not None and run["cells"]["done"] == run["cells"]["all"]


# Figures and findings, made from the kept table alone: nothing is measured here.


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
    note = "" if _can_draw() else _NO_MATPLOTLIB
    if not note:
        try:
            figures = _draw(module, table, place)
        except Exception:
            problems.append(f"draw: {traceback.format_exc()}")
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
        each if each.holds is None else replace(each, holds=bool(each.holds)) for each in found
    )


def _draw(module: ModuleType, table: pd.DataFrame, place: Place) -> dict[str, str]:
    captions: dict[str, str] = getattr(module, "CAPTIONS", {})
    drawn = module.draw(table)
    for name in drawn:
        if not _NAME.fullmatch(name):
            raise InvalidInput("figure", name, "a name of letters, digits, ., - and _")
    for old in (*place.folder.glob("*.svg"), *place.folder.glob("*.png")):
        old.unlink()
    for name, figure in drawn.items():
        figures.save_figure(figure, place.folder, name)
    return {name: captions.get(name, "") for name in drawn}


def read_pictured(experiment: Experiment, place: Place) -> Pictured:
    """What was made before; made again if the table, the module or the style has changed since."""
    kept = place.read_json("figures.json")
    findings = place.read_json("findings.json")
    try:
        if not _is_old(kept, experiment, place):
            known = tuple(Finding(**each) for each in findings)
            return Pictured(kept["figures"], known, kept["note"], tuple(kept["problems"]))
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
    code.append(digest_of(Path(figures.__file__), "save_figure"))
    table = sha256(place.table.read_bytes()).hexdigest()
    return sha256(" ".join([table, *code]).encode()).hexdigest()[:16]


# How results came to be: run.json, and the command that makes them again.


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
    extent, versions = config.modes[mode], {"python": python_version()}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
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
        "versions": versions,
    }
