"""How a run of experiments shows in a terminal: one bar, on standard error."""

from __future__ import annotations

from types import TracebackType
from typing import Self

__all__ = ["Screen"]


class Screen:
    """A bar of cells with the time that is left. Silent where nobody looks."""

    def __init__(self, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._console = Console(stderr=True, quiet=quiet, highlight=False)
        self._progress = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("cells,"),
            TimeRemainingColumn(compact=True),
            TextColumn("left  {task.description}", markup=False),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def begin(self, cells: int) -> None:
        """So many cells are to be measured."""
        self._progress.update(self._task, total=cells)

    def advance(self, experiment: str) -> None:
        """One of them is done."""
        self._progress.update(self._task, advance=1, description=experiment)

    def note(self, text: str) -> None:
        """A line above the bar."""
        self._console.print(text, markup=False, soft_wrap=True)
