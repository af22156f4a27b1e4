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
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from holdfast.ledger.opening import open_ledger
from holdfast.randomness import system_entropy, uniform_index
from tools.crash.page import reported, wrapped
from tools.crash.places import Place, Setup, Strike
from tools.crash.promises import faults, told_faults
from tools.crash.serving import Asker

__all__ = ["WHERE", "Results", "campaign", "main", "page"]

WHERE = (
    "not asked at that moment",
    "waiting, nothing charged",
    "charged, nothing recorded",
    "recorded, not acknowledged",
)

_PER_ROUND = 25  # kills on one ledger
_FIRST_REPLY = 20.0  # seconds that a server may take to evaluate the first question
_ALONE = Setup()


@dataclass
class Results:
    """What a campaign did and found."""

    clients: int
    kills: int = 0
    rounds: int = 0
    answers: int = 0
    told: int = 0  # of the answers
    refusals: int = 0
    repeated: int = 0  # answers whose first call was sent and lost
    recorded: int = 0  # … that had been recorded by then
    seconds: float = 0.0
    starts: list[float] = field(default_factory=list)
    struck: Counter[str] = field(default_factory=Counter)  # kills, by what was killed
    where: Counter[tuple[str, str]] = field(default_factory=Counter)  # and where questions were
    faults: list[str] = field(default_factory=list)


def campaign(kills: int, clients: int = 4, setup: Setup = _ALONE) -> Results:
    """Kill so often, in rounds on a new holdout each, and collect the faults."""
    results, began = Results(clients), time.monotonic()
    while results.kills < kills:
        with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as name:
            _round(Path(name), setup, results, min(_PER_ROUND, kills - results.kills))
        results.rounds += 1
    results.seconds = time.monotonic() - began
    return results


def _round(folder: Path, setup: Setup, results: Results, kills: int) -> None:
    queries = setup.budgets[results.rounds % len(setup.budgets)]
    with Place(folder, queries, setup) as place:
        askers = [Asker(place.urls, slot, setup.thought) for slot in range(results.clients)]
        for _ in range(kills):
            _wait(askers)
            strike = setup.strikes[results.kills % len(setup.strikes)]
            asked = [asker.asking if _hits(strike, asker.at) else None for asker in askers]
            moment = place.kill(strike)
            results.kills += 1
            results.struck[strike.name] += 1
            place.restore(strike)
            found = _struck((place.path, place.told), asked, moment)
            results.where.update((strike.name, where) for where in found)
        time.sleep(0.2)  # the last ones have a moment to recover and ask
        for asker in askers:
            asker.stop()
        for asker in askers:
            asker.finish()
        place.stop()
        results.starts += [seconds for server in place.servers for seconds in server.starts]
    seen = [each for asker in askers for each in asker.seen]
    results.answers += sum(each.value is not None for each in seen)
    results.told += sum(each.free and each.value is not None for each in seen)
    results.refusals += sum(each.value is None for each in seen)
    results.repeated += sum(each.lost > 0 and each.value is not None for each in seen)
    results.recorded += sum(each.lost > 0 and each.cached for each in seen)
    results.faults += [f"client {a.slot} was told: {a.failure}" for a in askers if a.failure]
    results.faults += faults(place.path, queries, [each for each in seen if not each.free])
    results.faults += told_faults(place.told, [each for each in seen if each.free])


def _wait(askers: list[Asker]) -> None:
    """10 ms to 2.6 s, short as likely as long: after the first replies, and now and then before."""
    entropy = system_entropy()
    before, end = _replies(askers), time.monotonic() + _FIRST_REPLY
    warm = uniform_index(4, entropy) > 0 and not any(asker.failure for asker in askers)
    while warm and _replies(askers) == before and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.01 * 2 ** (uniform_index(8_000, entropy) / 1_000))


def _replies(askers: list[Asker]) -> int:
    return sum(len(asker.seen) for asker in askers)


def _hits(strike: Strike, server: int | None) -> bool:
    """Whether a question that a server has, or none, is hit."""
    return server is not None and (strike.database or server in strike.servers)


def _struck(paths: Sequence[Path], asked: Iterable[str | None], moment: str) -> Iterable[str]:
    """Where each client's question was at that moment, by what the ledgers have of it."""
    with ExitStack() as stack:
        ledgers = [stack.enter_context(open_ledger(path)) for path in paths]
        for key in asked:
            name = f"anyone/{key}"  # of one of them; without a key it is that of nobody
            rows = [row for ledger in ledgers for row in ledger.requested(name)]
            kinds = [row.kind for row in rows if row.at <= moment]  # not of the retries since
            yield WHERE[0 if key is None else 3 if "recorded" in kinds else 2 if kinds else 1]


def page(results: Results, command: str, date: str) -> str:
    """The results as Markdown."""
    counts = [(where, results.where["the server", where]) for where in WHERE]
    rows = "\n".join(f"| {where} | {count:,} |" for where, count in counts)
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

Every third question goes to a second holdout of the same server, which has no budget and tells
means, scores and comparisons: {results.told:,} of the answers.

Afterwards every ledger was opened anew, and `holdfast check` went over it. To be a fault: an
acknowledged answer that is missing or different; a request or a question with two answers; an
answer without a charge before it, unless it is told; a budget that is not the sum of the charges in
the ledger; nats told so far that are not the sum of those of the answers; a refusal while something
was left, and any of what is told; anything that `holdfast check` finds.

| at a kill, a client's question was | times |
|---|---|
{rows}"""
    return wrapped(text)


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
    return reported(text, wanted.output, results.faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
