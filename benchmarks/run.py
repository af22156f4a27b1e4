"""Measure Holdfast in one run beside peers and floors, and write the results down.

    make bench                                     everything, in .venv-bench
    python -m benchmarks.run --quick               small sizes, few repeats; writes nothing
    python -m benchmarks.run --only ledger memory  some parts; writes nothing
    python -m benchmarks.run --renew told          some parts, written beside the others
    python -m benchmarks.run --pages               writes the pages again from results.json

A full run writes benchmarks/results.json, benchmarks/RESULTS.md and the table of
docs/how-to/benchmarks.md. Every part has the same few names: `measure(quick)` returns what JSON can
hold, `comparisons` takes from it what stands beside a peer or a floor, `section` makes it a page.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Protocol

from benchmarks import (
    history,
    ledger,
    mechanisms,
    medians,
    memory,
    questions,
    service,
    starts,
    told,
    weights,
)
from benchmarks.comparing import comparison_table
from benchmarks.holdouts import ROOT, scratch
from benchmarks.machine import described, machine
from benchmarks.tables import replace_section
from benchmarks.timing import Results

__all__ = ["PARTS", "Part", "beside", "collected", "page", "summary"]

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE / "RESULTS.md"
DOCS = ROOT / "docs" / "how-to" / "benchmarks.md"


class Part(Protocol):
    """What run.py needs of a part; a module has it."""

    def measure(self, quick: bool) -> Results:
        """Measure, at small sizes if quick."""
        ...

    def comparisons(self, results: Results) -> list[Results]:
        """What stands beside a peer or a floor."""
        ...

    def section(self, results: Results) -> str:
        """The results as Markdown."""
        ...


PARTS: dict[str, Part] = {
    "medians": medians,
    "questions": questions,
    "ledger": ledger,
    "service": service,
    "memory": memory,
    "starts": starts,
    "weights": weights,
    "mechanisms": mechanisms,
    "history": history,
    "told": told,
}


def measured(names: list[str], quick: bool) -> Results:
    """The parts one after the other."""
    parts, seconds = {}, {}
    for name in names:
        print(f"measuring: {name}", file=sys.stderr, end=" … ", flush=True)
        start = time.perf_counter()
        parts[name] = PARTS[name].measure(quick)
        seconds[name] = round(time.perf_counter() - start)
        print(f"{seconds[name]} s", file=sys.stderr, flush=True)
    return collected({"machine": machine(scratch()), "seconds": seconds, "parts": parts})


def collected(results: Results) -> Results:
    """The results as they come back from a file, with all comparisons."""
    known: Results = json.loads(json.dumps(results))
    parts = known["parts"]
    known["comparisons"] = [
        row for name in PARTS if name in parts for row in PARTS[name].comparisons(parts[name])
    ]
    return known


def beside(known: Results, renewed: Results) -> Results:
    """Earlier results, with some parts measured again."""
    for name in ("parts", "seconds"):
        known[name] |= renewed[name]
    machines = dict.fromkeys(renewed["parts"], renewed["machine"])
    return collected({**known, "renewed": {**known.get("renewed", {}), **machines}})


def summary(results: Results) -> str:
    """Date and versions, those of parts that were measured by themselves, and one table."""
    renewed = results.get("renewed", {}).items()
    alone = "".join(f"\n\nBy itself, *{name}*: {described(where)}" for name, where in renewed)
    table = comparison_table(results["comparisons"])
    return f"{described(results['machine'])}{alone}\n\n{table}"


def page(results: Results) -> str:
    """RESULTS.md."""
    parts = results["parts"]
    renewed = results.get("renewed", {})  # after the others, on their own
    sections = [
        PARTS[name].section(parts[name])
        + (f"\nMeasured by itself: {described(renewed[name])}\n" if name in renewed else "")
        for name in PARTS
        if name in parts
    ]
    minutes = sum(results["seconds"].values()) / 60
    took = f"The run took {minutes:.0f} min. " if minutes else ""
    note = "Below: median times, and in brackets the best; on a busy machine they lie apart.\n"
    return "\n".join(["# Results\n", summary(results), took + note, *sections])


def write_pages(results: Results) -> None:
    PAGE.write_text(page(results), "utf-8")
    replace_section(DOCS, summary(results))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes; write nothing")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--pages", action="store_true", help="only write the pages again")
    parser.add_argument("--renew", nargs="+", choices=PARTS, metavar="PART", help="and write them")
    given = parser.parse_args()
    if given.pages:
        write_pages(json.loads(RESULTS.read_text("utf-8")))
        return
    results = measured(given.renew or given.only or [*PARTS], given.quick)
    print(page(results))
    if given.renew:
        results = beside(json.loads(RESULTS.read_text("utf-8")), results)
    if not (given.quick or given.only):
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
        write_pages(results)


if __name__ == "__main__":
    main()
