"""The page about a run of `tools.neighbours`."""

from __future__ import annotations

import platform
import time
from datetime import UTC, datetime
from typing import Any

__all__ = ["written"]

_PAGE = """# Neighbours, compared

Made by the command below on {date} (Python {python}), in {minutes:.0f} minutes. What it means is on
[its own page](service-security.md); the code is in `tools/neighbours.py`.

```{{.console .skip}}
$ python -m tools.neighbours {words}
```

{questions:,} questions were asked of two servers whose tables differ in one unit: every verb, jobs,
filters that select that unit alone, overflow, division by zero, what is refused and what is
exhausted. Two of the servers tell their answers: there every verb about predictions was asked too,
with prices, the leaderboard and its neighbours. Status, headers, body, what is left, counts and log
were compared. **{differences} differed.**

| status and kind | responses |
|---|---:|
{statuses}
{timed}"""
_TIMED = """
By a real clock, {questions} questions were asked of {both} in turn, with slots of {slot:g} seconds:
{same_slot} of {pairs} pairs ended in the same slot. A fair coin is as uneven as the others are with
probability {by_chance:.2g} (two-sided), so that {verdict}.
"""


def written(told: dict[str, Any], statuses: dict[str, int], words: list[str], start: float) -> str:
    """The page about a run."""
    return _PAGE.format(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        python=platform.python_version(),
        minutes=(time.monotonic() - start) / 60,
        words=" ".join(words),
        questions=told["questions"],
        differences=len(told["differences"]) or "None",
        statuses="\n".join(f"| {kind} | {count:,} |" for kind, count in sorted(statuses.items())),
        timed="".join(map(_timed, told["timed"])),
    )


def _timed(facts: dict[str, Any]) -> str:
    fair = facts["by_chance"] >= 0.01
    verdict = "neither side is seen to be slower" if fair else "**one side is slower**"
    both = {
        "plain": "both",
        "skewed": "tables of which few or most rows take the long branch of a CASE",
        "told": "two that tell means and scores, each in two slots,",
    }[facts["kind"]]
    return _TIMED.format(**facts, verdict=verdict, both=both)
