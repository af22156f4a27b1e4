"""The results of two servers on one ledger, as a page."""

from __future__ import annotations

import platform

from tools.crash.page import wrapped
from tools.crash.rush import Rushed
from tools.crash.server import WHERE, Results

__all__ = ["page"]


def page(rushed: Rushed, killed: Results, command: str, date: str, postgres: str) -> str:
    """Markdown."""
    parts = [_head(rushed, killed, command, date, postgres), _rush(rushed)]
    return wrapped("\n\n".join([*parts, _kills(killed)] if killed.kills else parts))


def _head(rushed: Rushed, killed: Results, command: str, date: str, postgres: str) -> str:
    faults = [*rushed.faults, *killed.faults]
    found = "\n\n".join(f"**{fault}**" for fault in faults[:20])
    verdict = f"{len(faults):,} faults." if faults else "No fault was found."
    minutes = (rushed.seconds + killed.seconds) / 60
    return f"""\
# Two servers and Postgres, killed under load

Made by the command below on {date} (Python {platform.python_version()}, Postgres {postgres}) in
{minutes:.0f} minutes. The code is in `tools/crash/cluster.py`; a server whose ledger is a file has
[its own page](crash-results-server.md).

```console
$ {command}
```

{verdict}

{found}

Two processes of `holdfast serve` share a holdout. Its ledger is in a Postgres that the campaign
starts, with the settings that it comes with: fsync is on. Every call of a client goes to one of the
two servers at random, its retries too, as if behind a balancer."""


def _rush(rushed: Rushed) -> str:
    again = rushed.requests - rushed.questions
    return f"""\
## Many at once

{rushed.clients} clients made {rushed.requests:,} requests on a budget for {rushed.budget:,}
answers, in {rushed.seconds:.0f} seconds. They asked {rushed.questions:,} different questions; the
other {again:,} requests had the key of an earlier one, or its question with a new key.

| the reply was | requests |
|---|---|
| an answer that was drawn and paid for | {rushed.granted:,} |
| an answer that had been given before, free | {rushed.free:,} |
| that the budget is exhausted | {rushed.refused:,} |

To be a fault: more or fewer answers than the budget pays for; a refusal of a question that others
were told the answer to; a request without a reply; and everything that is one below."""


def _kills(killed: Results) -> str:
    names = list(killed.struck)
    start = sorted(killed.starts)[len(killed.starts) // 2]
    counts = [[where, *(f"{killed.where[name, where]:,}" for name in names)] for where in WHERE]
    lines = [
        ["at a kill of", *names],
        ["---"] * (1 + len(names)),
        ["times", *(f"{killed.struck[name]:,}" for name in names)],
        *([f"a client's question was {where}", *rest] for where, *rest in counts),
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"""\
## Kill −9

{killed.clients} clients ask without end, every fourth question the same for all of them, and now
and then an old request again. At random moments, mostly 0.01 to 2.6 seconds after the last
recovery, either server, Postgres (the process that was started, and all of its own), or all of them
at once are killed by −9 and started again (half the starts of a server took less than {start:.1f}
s); the clients repeat what had no reply, with the same key, as `holdfast.Client` does.
{killed.kills:,} kills on {killed.rounds:,} holdouts; {killed.answers:,} answers and
{killed.refusals:,} refusals (every fourth holdout has a budget that does not last) were
acknowledged. {killed.repeated:,} of the answers came to a client that had sent its question before,
and had no reply or was told that the ledger could not be reached; {killed.recorded:,} of these had
been recorded by then, and were given again, not drawn again. Every third question goes to a second
holdout, which has no budget and tells means, scores and comparisons: {killed.told:,} of the
answers.

Afterwards every ledger was opened anew, its chain was verified, and `holdfast check` went over it.
To be a fault: an acknowledged answer that is missing or different; a request or a question with two
answers; an answer without a charge before it, unless it is told; a budget that is not the sum of
the charges in the ledger; nats told so far that are not the sum of those of the answers; a refusal
while something was left, and any of what is told; a reply that is neither an answer nor a refusal;
anything that `holdfast check` finds.

{table}"""
