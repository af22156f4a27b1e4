"""`python -m tools.crash.server --kills 200`: kill a server under load, and look what is left.

Clients ask with keys while the server is killed at random moments and started again; they repeat
what had no reply, as `holdfast.Client` does by itself. Afterwards nothing that a client was told
may be lost, unpaid or changed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.holdout import Holdout, check_holdout
from holdfast.ledger import Row, SqliteLedger
from holdfast.planning import Estimates, joint_plan
from holdfast.protocols.account import Charge
from holdfast.randomness import system_entropy, uniform_index
from tools.crash.serving import Asker, Server, Told

__all__ = ["Results", "campaign", "faults", "main", "page"]

_FAILED = 4  # a gate failed
_PER_ROUND = 25  # kills on one ledger
_AMPLE, _SCARCE = 5_000, 200  # a budget that lasts, and one that is exhausted on the way
_FIRST_REPLY = 20.0  # seconds that a server may take to evaluate the first question
_WHERE = (
    "not asked at that moment",
    "waiting, nothing charged",
    "charged, nothing recorded",
    "recorded, not acknowledged",
)


@dataclass
class Results:
    """What a campaign did and found."""

    clients: int
    kills: int = 0
    rounds: int = 0
    answers: int = 0
    refusals: int = 0
    repeated: int = 0  # answers whose first call was sent and lost
    recorded: int = 0  # … that had been recorded by then
    seconds: float = 0.0
    starts: list[float] = field(default_factory=list)
    where: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_WHERE, 0)))
    faults: list[str] = field(default_factory=list)


def campaign(kills: int, clients: int = 4) -> Results:
    """Kill so often, in rounds on a new holdout each, and collect the faults."""
    results, began = Results(clients), time.monotonic()
    while results.kills < kills:
        queries = _SCARCE if results.rounds % 4 == 3 else _AMPLE
        with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as name:
            _round(Path(name), queries, results, min(_PER_ROUND, kills - results.kills))
        results.rounds += 1
    results.seconds = time.monotonic() - began
    return results


def _round(folder: Path, queries: int, results: Results, kills: int) -> None:
    path = folder / "a.holdfast"
    plan = joint_plan(Estimates(queries, grid=2, tail_low=0.1, tail_high=0.1), confidence=0.5)
    words = system_entropy().words(plan.blocks).astype(np.float64)
    Holdout.create(path, {"x": words}, plan).close()
    server = Server(path)
    askers: list[Asker] = []
    try:
        server.start()
        askers = [Asker(f"{server.url}/holdouts/a", slot) for slot in range(results.clients)]
        for _ in range(kills):
            _wait(askers)
            server.kill()
            results.kills += 1
            results.where.update(_struck(path, askers))
            server.start()
        time.sleep(0.2)  # the last ones have a moment to recover and ask
        for asker in askers:
            asker.finish()
        server.stop()
    finally:
        server.close()
    seen = [each for asker in askers for each in asker.seen]
    results.answers += sum(each.value is not None for each in seen)
    results.refusals += sum(each.value is None for each in seen)
    results.repeated += sum(each.lost > 0 and each.value is not None for each in seen)
    results.recorded += sum(each.lost > 0 and each.cached for each in seen)
    results.starts += server.starts
    results.faults += faults(path, queries, seen)


def _wait(askers: list[Asker]) -> None:
    """10 ms to 2.6 s, short as likely as long: after the first replies, and now and then before."""
    entropy = system_entropy()
    before, end = _replies(askers), time.monotonic() + _FIRST_REPLY
    warm = uniform_index(4, entropy) > 0
    while warm and _replies(askers) == before and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.01 * 2 ** (uniform_index(8_000, entropy) / 1_000))


def _replies(askers: list[Asker]) -> int:
    return sum(len(asker.seen) for asker in askers)


def _struck(path: Path, askers: Iterable[Asker]) -> Iterable[str]:
    """Where each client's question was when the server died, by what the ledger has of it."""
    with SqliteLedger.open(path / "ledger.sqlite") as ledger:
        for asker in askers:
            key = asker.asking
            kinds = [] if key is None else [row.kind for row in ledger.requested(f"anyone/{key}")]
            yield _WHERE[0 if key is None else 3 if "recorded" in kinds else 2 if kinds else 1]


def faults(path: Path, queries: int, seen: Iterable[Told]) -> list[str]:
    """What is not as it should be, given what clients were told."""
    told = list(seen)
    found = [f"check: {f.name}: {f.detail}" for f in check_holdout(path).findings if not f.passed]
    with SqliteLedger.open(path / "ledger.sqlite") as ledger:
        rows, holdout = ledger.rows(), ledger.holdout
    return [
        *found,
        *_lost(rows, holdout, told),
        *_unpaid(path, rows),
        *_refused(rows, queries, told),
    ]


def _lost(rows: list[Row], holdout: str, told: list[Told]) -> list[str]:
    """Acknowledged answers that the ledger does not have, or that were not always the same."""
    kept = {f"{holdout}:{row.number}:{row.digest}": row for row in rows if row.kind == "recorded"}
    found = []
    first: dict[str, Told] = {}
    for each in told:
        if each.value is None:
            continue
        row = kept.get(each.receipt)
        if row is None or row.body["answer"]["value"] != each.value:
            found.append(f"{each.request} was told {each.value}, which the ledger does not say")
        for name in (each.request, each.question):
            before = first.setdefault(name, each)
            if (before.value, before.receipt) != (each.value, each.receipt):
                found.append(f"{name} has two answers")
    return found


def _unpaid(path: Path, rows: list[Row]) -> list[str]:
    """Answers without a charge before them, and a budget that is not the sum of the charges."""
    held: dict[int, Charge] = {}
    spent, answered, found = Fraction(0), set(), []
    for row in rows:
        if row.kind == "reserved":
            held[row.number] = Charge.from_dict(row.body["charge"])
        elif row.kind == "recorded":
            if any(number not in held for number in row.body["reserves"]):
                found.append(f"row {row.number} was answered and not paid")
            for number, data in zip(row.body["reserves"], row.body["charges"], strict=True):
                held.pop(number, None)
                spent += Charge.from_dict(data).price
            if row.question in answered:
                found.append(f"row {row.number} was drawn again")
            answered.add(row.question)
    spent += sum((charge.price for charge in held.values()), start=Fraction(0))
    return [*found, *_shown(path, spent, len(held))]


def _shown(path: Path, spent: Fraction, unsettled: int) -> list[str]:
    """What the holdout itself makes of its ledger, where that is something else."""
    try:
        with Holdout.open(path) as holdout, holdout.door.books() as books:
            (name,) = books.names
            account, open_ones = books.account(name), books[name].unsettled
            same = account.charged == spent <= account.limit and open_ones == unsettled
            return [] if same else [f"{account.charged} is charged, and the rows say {spent}"]
    except HoldfastError as wrong:
        return [str(wrong)]


def _refused(rows: list[Row], queries: int, told: list[Told]) -> list[str]:
    """A refusal while something was left. What a kill has left unsettled stays charged."""
    charged = sum(row.kind == "reserved" for row in rows)
    if any(each.value is None for each in told) and charged < queries:
        return [f"refused with {charged} of {queries} charged"]
    return []


def page(results: Results, command: str, date: str) -> str:
    """The results as Markdown."""
    rows = "\n".join(f"| {where} | {count:,} |" for where, count in results.where.items())
    found = "\n\n".join(f"**{fault}**" for fault in results.faults[:20])
    count = len(results.faults)
    verdict = f"{count} faults." if count else "No fault was found."
    start = sorted(results.starts)[len(results.starts) // 2]
    text = f"""\
# Kill −9 of a server under load

Made by the command below on {date} (Python {platform.python_version()}, SQLite
{sqlite3.sqlite_version}) in {results.seconds / 60:.0f} minutes. The code is in
`tools/crash/server.py`; the ledger alone, and a holdout without a server, have
[their](crash-results.md) [own pages](crash-results-holdout.md).

```console
$ {command}
```

{verdict}

{found}

`holdfast serve` answers {results.clients} clients that ask without end, every fourth question the
same for all of them, and now and then an old request again. At random moments, 0.01 to 2.6 seconds
after its first reply, and in one case of four after it listens, the server is killed by −9 and
started again (half the starts took less than
{start:.1f} s); the clients repeat what had no reply, with the same key, as `holdfast.Client` does.
{results.kills:,} kills on {results.rounds:,} holdouts; {results.answers:,} answers and
{results.refusals:,} refusals (every fourth holdout has a budget that does not last) were
acknowledged. {results.repeated:,} of the answers came to a client that had sent its question once
before and lost the reply; {results.recorded:,} of these had been recorded by then, and were given
again, not drawn again.

Afterwards every ledger was opened anew, and `holdfast check` went over it. To be a fault: an
acknowledged answer that is missing or different; a request or a question with two answers; an
answer without a charge before it; a budget that is not the sum of the charges in the ledger; a
refusal while something was left; anything that `holdfast check` finds.

| at a kill, a client's question was | times |
|---|---|
{rows}"""
    return "\n\n".join(_wrapped(each) for each in text.split("\n\n") if each.strip()) + "\n"


def _wrapped(paragraph: str) -> str:
    as_it_is = paragraph.startswith(("#", "|", "```"))
    return paragraph if as_it_is else textwrap.fill(paragraph, 99, break_on_hyphens=False)


def main(words: list[str]) -> int:
    """Run, write the page, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.crash.server", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--output", type=Path, help="write the page here instead of printing it")
    wanted = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as state:
        os.environ["HOLDFAST_STATE"] = state  # of the servers, too: the user's own stays clean
        results = campaign(wanted.kills, wanted.clients)
    command = " ".join(["python -m tools.crash.server", *words])
    text = page(results, command, datetime.now(UTC).date().isoformat())
    if wanted.output:
        wanted.output.write_text(text, "utf-8")
    else:
        print(text)
    for fault in results.faults[:20]:
        print(fault, file=sys.stderr)
    return _FAILED if results.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
