"""A DuckDB connection with limits, for the time of one job; its spilled rows go with it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from holdfast.concurrency import Closing
from holdfast.errors import Infeasible, InvalidInput, whole_number

__all__ = ["DuckdbLimits", "Progress", "Session", "explained", "no_progress"]

_LINE = re.compile(r"CSV Error on Line: (\d+)\s*(?:Original Line: (.*))?")
_FILE = re.compile(r"^\s*file = (.*)$", re.MULTILINE)
_COUNT = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")


def explained(error: BaseException) -> InvalidInput:
    """What DuckDB complains of while it reads: which file, which line, what to do.

    This is the custodian's own data, at creation: here a message may speak of it.
    """
    text = str(error)
    line, file, count = _LINE.search(text), _FILE.search(text), _COUNT.search(text)
    where = f"{Path(file[1].strip()).name if file else 'the data'}"
    if line:
        where += f", line {int(line[1]):,}"
    if count:
        allowed = f"rows of {count[1]} values, as many as there are names"
        hint = f"This line has {count[2]}. Correct it, or put quotation marks around the text."
    elif "unicode" in text or "utf-8" in text:
        allowed, hint = "a CSV file in UTF-8", "Convert it, for example with iconv -t UTF-8."
    elif "quote" in text:
        allowed, hint = "a CSV file with closed quotation marks", "Close the one of this line."
    else:
        allowed = "a readable CSV file" if line or "sniffing" in text else "readable"
        hint = next((each for each in text.splitlines() if each.strip()), "")
    return InvalidInput("data", where, allowed, hint)


Progress = Callable[[str, float], None]  # a stage and how much of it is done, from 0 to 1
_T = TypeVar("_T")
_SIZE = re.compile(r"\s*\d+(\.\d+)?\s*([KMGT]i?B)\s*", re.IGNORECASE)
_POLL_SECONDS = 0.1


def no_progress(stage: str, fraction: float) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class DuckdbLimits:
    """What a job may use: DuckDB's memory (None: 80 % of the machine's) and threads (all)."""

    memory_limit: str | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        limit = self.memory_limit
        if limit is not None and not _SIZE.fullmatch(str(limit)):
            raise InvalidInput("memory_limit", limit, "a size such as '1GB' or '500MB'")
        if self.threads is not None:
            whole_number("threads", self.threads, 1, 1024)


def _discard(connection: Any, spill: Path) -> None:
    connection.close()
    shutil.rmtree(spill, ignore_errors=True)


class Session(Closing):
    """One connection. Use it in a `with`: the folder for what does not fit into memory goes too.

    `scratch` is where that folder is made; the system's temporary folder if left out.
    """

    def __init__(self, limits: DuckdbLimits, scratch: Path | None = None) -> None:
        import duckdb

        self._limits = limits
        self._spill = Path(tempfile.mkdtemp(prefix=".spill-", dir=scratch))  # mode 0700
        config: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": os.fspath(self._spill),
            "python_enable_replacements": False,  # a table is never a Python variable
            "autoinstall_known_extensions": False,  # nothing is fetched from anywhere
            "autoload_known_extensions": False,
        }
        if limits.memory_limit is not None:
            config["memory_limit"] = limits.memory_limit.strip()
        if limits.threads is not None:
            config["threads"] = int(limits.threads)
        try:
            self.connection: Any = duckdb.connect(config=config)
        except BaseException:
            shutil.rmtree(self._spill, ignore_errors=True)
            raise
        # Whoever forgets to close it leaves nothing behind either.
        self._discard = weakref.finalize(self, _discard, self.connection, self._spill)
        # To look for common parts takes time quadratic in the columns: minutes for 2,000.
        self.connection.execute("SET disabled_optimizers = 'common_subexpressions'")
        self.connection.execute(
            "SET TimeZone = 'UTC'; SET preserve_insertion_order = true;"
            "SET enable_progress_bar = true; SET enable_progress_bar_print = false;"
            "SET progress_bar_time = 0"
        )

    def close(self) -> None:
        """End the connection, and remove what it spilled."""
        self._discard()

    def described(self, table: str) -> dict[str, str]:
        """The columns of a table and their types."""
        import duckdb

        try:
            found = self.connection.sql(f"SELECT * FROM {table}")
        except duckdb.Error as error:
            raise self._explained(error) from error
        return dict(zip(found.columns, map(str, found.types), strict=True))

    def row(self, sql: str, stage: str, progress: Progress) -> tuple[Any, ...]:
        """The only row of a query."""
        job = lambda: self.connection.sql(sql).fetchall()  # noqa: E731
        ((*found,),) = self.watched(job, stage, progress)
        return tuple(found)

    def watched(
        self, job: Callable[[], _T], stage: str, progress: Progress, share: float = 1.0
    ) -> _T:
        """Run a job of this connection while telling how far it is.

        The job runs in a thread, so that progress is told, and Control-C heard, in this one.
        `share` is the part of its query that the job runs.
        """
        done: list[_T] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                done.append(job())
            except BaseException as error:  # handed to the caller's thread
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        progress(stage, 0.0)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_POLL_SECONDS)
                percent = self.connection.query_progress()
                if 0 < percent < 100 * share:
                    progress(stage, percent / 100 / share)
        except BaseException:
            self.connection.interrupt()
            thread.join()
            raise
        if failed:
            error = self._explained(failed[0])
            raise error from (failed[0].__cause__ if error is failed[0] else failed[0])
        progress(stage, 1.0)
        return done[0]

    def reading(self, batches: Iterable[_T]) -> Iterator[_T]:
        """The same batches, with the errors of this connection explained."""
        try:
            yield from batches
        except Exception as error:
            raise self._explained(error) from error

    def _explained(self, error: BaseException) -> BaseException:
        import duckdb
        import pyarrow as pa

        # On its way through an Arrow stream an error of DuckDB becomes one of pyarrow.
        if not isinstance(error, duckdb.Error | pa.ArrowException | OSError):
            return error
        text = str(error)
        if "Out of Memory Error" in text:
            given = f"memory_limit is {self._limits.memory_limit or 'the default'}"
            remedy = "Raise memory_limit, or use fewer threads: each needs memory of its own."
            return Infeasible("Reading the data", "more memory", given, remedy)
        if "No space left" in text:
            given = f"the disk of {self._spill.parent} is full"
            remedy = "Make room for about twice the data, or raise memory_limit."
            return Infeasible(
                "Sorting the data", "room for what is larger than memory", given, remedy
            )
        return explained(error)
