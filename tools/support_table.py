"""`python -m tools.support_table`: what each engine and ledger does, from the suites of all.

The suites are run, those with a cluster too, and docs/reference/support.md is written. A row is a
check of a contract; an entry says whether every variant of it passed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path

__all__ = ["Found", "checks", "page", "read_report"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "support.md"
_ENGINES = {
    "TestSqlHere": "SQL, one machine",
    "TestSqlOnDask": "SQL, Dask",
    "TestPythonHere": "Python, one machine",
    "TestPythonOnDask": "Python, Dask",
}
_LEDGERS = {"TestSqliteLedger": "SQLite", "TestPostgresLedger": "Postgres"}
_SUITES = ("tests/engines/test_contract_here.py", "tests/engines/test_contract_dask.py")
_LEDGER_SUITES = ("tests/ledger/test_sqlite.py", "tests/ledger/test_postgres.py")
_FAILED = 4

Found = dict[tuple[str, str], list[str]]
"""By class and check: what became of every variant."""

_TEXT = """# Support

What each engine and each ledger does. The tables are made by `python -m tools.support_table` from
the contract suites in `tests/engines/contract.py` and `tests/ledger/contract.py`, which each of
them must pass: a row is a check, in the words of its name, and *yes* means that all its variants
passed when the page was made, but for those that were left out: what SQL cannot say, and slow ones
in some of the layouts.

## Engines

SQL runs in DuckDB, Python in processes that are forked for it; on a cluster the workers of Dask
start the same two. Every check is made on a store in one file and in shards, with units of one row
and of several, unless it is slow.

{engines}

## Ledgers

{ledgers}
"""


def read_report(path: Path) -> Found:
    """What a report in JUnit's format says of the classes that matter."""
    found: Found = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = case.get("classname", "").rpartition(".")[2]
        if name in _ENGINES or name in _LEDGERS:
            check = case.get("name", "").partition("[")[0]
            kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
            found.setdefault((name, check), []).append(kinds.pop() if kinds else "passed")
    return found


def checks(found: Iterable[tuple[str, str]], classes: Iterable[str]) -> list[str]:
    """The checks of these classes, in their order."""
    wanted = set(classes)
    return list(dict.fromkeys(check for name, check in found if name in wanted))


def page(found: Found) -> str:
    """The page."""
    return _TEXT.format(engines=_table(found, _ENGINES), ledgers=_table(found, _LEDGERS))


def _table(found: Found, classes: dict[str, str]) -> str:
    lines = [["", *classes.values()], ["---"] * (1 + len(classes))]
    lines += [
        [_sentence(check), *(_entry(found.get((name, check))) for name in classes)]
        for check in checks(found, classes)
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _sentence(check: str) -> str:
    """A test's name as words.

    >>> _sentence("test_sql_has_the_bits_of_one_machine")
    'SQL has the bits of one machine'
    """
    words = check.removeprefix("test_").split("_")
    proper = {"sql": "SQL", "python": "Python", "dask": "Dask", "pandas": "pandas"}
    text = " ".join(proper.get(word, word) for word in words)
    return text[0].upper() + text[1:]


def _entry(outcomes: list[str] | None) -> str:
    if outcomes is None or set(outcomes) == {"skipped"}:
        return "–"
    return "yes" if set(outcomes) <= {"passed", "skipped"} else "**no**"


def _ran() -> Found:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "cluster or not cluster"]
        command += [*_SUITES, *_LEDGER_SUITES, f"--junitxml={report}"]
        subprocess.run(command, cwd=ROOT, check=False, stdout=sys.stderr)
        return read_report(report)


def main() -> None:
    """Run the suites and write the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    found = _ran()
    PAGE.write_text(page(found), "utf-8")
    if any(_entry(outcomes) == "**no**" for outcomes in found.values()):
        sys.exit(_FAILED)


if __name__ == "__main__":
    main()
