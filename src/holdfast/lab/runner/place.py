"""Where an experiment's results are kept: OUTPUT/NAME/full and OUTPUT/NAME/quick."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import Damaged, HoldfastError, InvalidInput
from holdfast.lab.runner.config import MODES
from holdfast.lab.runner.journal import Maker, done_cells, maker_of
from holdfast.lab.runner.results import REMEDY, replace_file
from holdfast.ledger.locks import exclusive

__all__ = ["Place", "best_place", "places"]

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
        earlier = maker_of(self.journal)
        if earlier == maker:
            return None
        if not done_cells(self.journal):
            self.journal.unlink(missing_ok=True)
            return None
        if earlier is None:
            kept, why = f"{self.mode}-unknown", "the first line of their journal is damaged"
        else:
            kept = f"{self.mode}-{earlier.code[:8]}-seed{earlier.seed}"
            why = maker.difference(earlier)
        aside = self._free(kept)
        self.folder.rename(aside)
        self.folder.mkdir()
        return aside, why

    def _free(self, name: str) -> Path:
        path = self.folder.with_name(name)
        number = 2
        while path.exists():
            path = self.folder.with_name(f"{name}-{number}")
            number += 1
        return path

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
