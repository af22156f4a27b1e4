"""The results as a page."""

from __future__ import annotations

import platform
import sqlite3
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw

from tools.crash.crowd import Crowded, Retried
from tools.crash.kills import Killed
from tools.crash.power import Cut
from tools.crash.speed import Speed

__all__ = ["Results", "page", "reported", "wrapped"]

_WIDTH = 99
_FAILED = 4  # a gate failed
_SHOWN = 20  # faults


@dataclass(frozen=True)
class Results:
    """Everything that the campaign found."""

    killed: Killed
    cut: Cut
    control: Cut
    crowded: Crowded
    retried: Retried
    speed: Speed

    @property
    def faults(self) -> list[str]:
        """What must not happen, and did."""
        faults = [*self.killed.faults, *self.cut.faults, *self.crowded.faults]
        faults += self.retried.faults
        if self.cut.lost:
            faults.append(f"{self.cut.lost} acknowledged answers lost at power cuts")
        if not self.control.lost and self.control.cuts:
            faults.append("the control lost nothing: the disk forgets too little to show anything")
        if self.crowded.granted != min(self.crowded.budget, self.crowded.requests):
            faults.append(f"{self.crowded.granted} granted on a budget of {self.crowded.budget}")
        if any(answers != 1 for answers in self.retried.answers):
            faults.append("a retried request had another answer")
        return faults


def page(results: Results, command: str, subject: str, date: str) -> str:
    """Markdown; paragraphs are broken into lines when their numbers are known."""
    text = "\n\n".join(
        [
            _head(results, command, subject, date),
            _kills(results.killed),
            _cuts(results.cut, results.control),
            _crowd(results.crowded, results.retried),
            _speed(results.speed),
        ]
    )
    return wrapped(text)


def reported(text: str, output: Path | None, faults: Sequence[str]) -> int:
    """Write the page, or print it; then the faults, and the exit status that they make."""
    if output:
        output.write_text(text, "utf-8")
    else:
        print(text)
    for fault in faults[:_SHOWN]:
        print(fault, file=sys.stderr)
    return _FAILED if faults else 0


def wrapped(text: str) -> str:
    """The text with its paragraphs broken into lines; headings, tables and code stay."""
    paragraphs = [each for each in text.strip().split("\n\n") if each.strip()]
    return "\n\n".join(map(_filled, paragraphs)) + "\n"


def _filled(paragraph: str) -> str:
    as_it_is = paragraph.startswith(("#", "|", "```"))
    return paragraph if as_it_is else textwrap.fill(paragraph, _WIDTH, break_on_hyphens=False)


def _head(results: Results, command: str, subject: str, date: str) -> str:
    count = len(results.faults)
    faults = "\n\n".join(f"**{fault}**" for fault in results.faults[:20])
    verdict = f"{count} faults." if count else "No fault was found."
    return f"""\
# Crashes and power cuts

Made by the command below on {date} (Python {platform.python_version()}, SQLite
{sqlite3.sqlite_version}; behind the forgetful disk SQLite {apsw.sqlite_lib_version()}), with
`{subject}` as the thing that is asked. The code is in `tools/crash`; how the ledger works is on
[its own page](ledger.md).

```console
$ {command}
```

{verdict}

{faults}""".strip()


def _kills(killed: Killed) -> str:
    rows = "\n".join(f"| {where} | {count:,} |" for where, count in killed.where.items())
    return f"""\
## Kill −9

{killed.writers} processes ask without end, every fourth question the same in all of them, and now
and then an old request again. At random moments one of them is killed, or all at once
({killed.all_at_once:,} times), and started anew; it goes on with the first request that was not
acknowledged. {killed.kills:,} kills on {killed.rounds:,} ledgers; {killed.acknowledged:,} answers
and {killed.refused:,} refusals (where there is a budget, that of every fourth ledger does not last)
were acknowledged.

Afterwards every ledger was opened anew. Faults: {len(killed.faults):,}. To be a fault: an
acknowledged answer that is missing or different; an answer without a charge before it, unless it is
told; nats told so far that are not the sum of those of the answers; a question or request with two
answers; more charged than the budget; a refusal while something was left; a
chain that does not verify.

| the process was | kills |
|---|---|
{rows}"""


def _cuts(cut: Cut, control: Cut) -> str:
    def row(name: str, each: Cut) -> str:
        during = each.during["creating"]
        return (
            f"| {name} | {each.cuts:,} | {during:,} | {each.disks:,} | {each.lossy:,} | "
            f"{each.lost:,} | {len(each.faults):,} |"
        )

    return f"""\
## Power cuts

`{cut.subject.__name__}` on a simulated disk, which loses at a cut any part of what was not synced,
sector by sector, and names of files whose folder was not synced. What is left is read with the
standard SQLite, and is what the next run starts with: up to five cuts hit one disk. The control
differs in one word, synchronous = NORMAL, and must lose answers; otherwise the disk would forget
too little to show anything.

| synchronous | cuts | during creation | disks | cuts with a loss | answers lost | other faults |
|---|---|---|---|---|---|---|
{row("FULL", cut)}
{row("NORMAL (control)", control)}"""


def _crowd(crowded: Crowded, retried: Retried) -> str:
    answers = "one answer each" if set(retried.answers) == {1} else f"answers: {retried.answers}"
    return f"""\
## Many at once

{crowded.processes} processes made {crowded.requests:,} requests on a budget of {crowded.budget:,}:
{crowded.granted:,} were granted. {retried.processes} processes asked {retried.keys} requests
{retried.retries:,} times each: {answers}."""


def _speed(speed: Speed) -> str:
    return f"""\
## What it costs

One row and one commit took {speed.ratio:.2f} times as long as a bare insertion of the same size in
the same mode ({speed.ledger:,.0f} and {speed.bare:,.0f} commits a second here, one process, in
turns). Verifying the whole chain read {speed.verify:,.0f} rows a second."""
