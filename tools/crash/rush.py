"""A rush: many clients of several servers at once on one budget, which does not last.

Some ask with the key of another, some the question of another with a key of their own: all of that
is free. Of the rest exactly as many are granted as the budget pays for.
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from holdfast.randomness import Entropy, system_entropy, uniform_index
from tools.crash.places import Place, Setup
from tools.crash.promises import faults
from tools.crash.serving import Caller, Told

__all__ = ["Call", "Rushed", "inexact", "rush", "rush_calls"]

_NEAR = 64  # requests: about as far apart as those that are answered at the same time

Call = tuple[str, str]  # question and key


@dataclass(frozen=True)
class Rushed:
    """Requests of many clients at once, and what became of them."""

    clients: int
    budget: int
    requests: int
    questions: int  # that are different
    granted: int  # answers that were drawn
    free: int  # answers that had been given before
    refused: int
    seconds: float
    faults: list[str]


def rush(setup: Setup, clients: int, requests: int, budget: int) -> Rushed:
    """So many requests on a budget for so many answers."""
    calls = rush_calls(requests, budget, system_entropy())
    with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as name:
        with Place(Path(name), budget, setup) as place:
            began = time.monotonic()
            seen, failures = _ask_all(place.urls, clients, calls)
            seconds = time.monotonic() - began
            place.stop()
        found = [*failures, *faults(place.path, budget, seen)]
    return Rushed(
        clients=clients,
        budget=budget,
        requests=len(seen),
        questions=len({question for question, _ in calls}),
        granted=sum(each.value is not None and not each.cached for each in seen),
        free=sum(each.cached for each in seen),
        refused=sum(each.value is None for each in seen),
        seconds=seconds,
        faults=[*found, *inexact(calls, budget, seen)],
    )


def rush_calls(requests: int, budget: int, entropy: Entropy) -> list[Call]:
    """Three of five ask something new; of the others, half do not even have a new key."""
    calls: list[Call] = []
    for number in range(requests):
        question, key = f"avg(x) + {number}", f"key-{number}"
        kind = uniform_index(5, entropy) if calls else 0
        if kind >= 3:  # one that may be under way now, or one of the first, which were granted
            near = uniform_index(2, entropy) == 0
            back = 1 + uniform_index(min(_NEAR, number), entropy)
            early = uniform_index(min(2 * budget, number), entropy)
            question, other = calls[number - back if near else early]
            key = other if kind == 3 else key
        calls.append((question, key))
    return calls


def _ask_all(urls: list[str], clients: int, calls: list[Call]) -> tuple[list[Told], list[str]]:
    """What the clients were told, and what they were told that is neither answer nor refusal."""

    def work(slot: int) -> tuple[list[Told], list[str]]:
        caller, seen = Caller(urls), []
        try:
            for call in calls[slot::clients]:
                seen.append(caller.ask(*call))  # noqa: PERF401 - what was told is kept in any case
        except Exception as wrong:
            return seen, [f"client {slot} was told: {wrong}"]
        finally:
            caller.close()
        return seen, []

    with ThreadPoolExecutor(clients) as pool:
        told = list(pool.map(work, range(clients)))
    return [each for seen, _ in told for each in seen], [each for _, bad in told for each in bad]


def inexact(calls: list[Call], budget: int, seen: list[Told]) -> list[str]:
    """More or fewer than the affordable ones; and who was refused what others were told."""
    found = []
    drawn = sum(each.value is not None and not each.cached for each in seen)
    affordable = min(budget, len({question for question, _ in calls}))
    if drawn != affordable:
        found.append(f"{drawn} granted on a budget for {affordable}")
    answered = {each.question for each in seen if each.value is not None}
    if len(answered) != affordable:
        found.append(f"{len(answered)} questions answered on a budget for {affordable}")
    found += [
        f"{each.request} was refused what others were told"
        for each in seen
        if each.value is None and each.question in answered
    ]
    if len(seen) != len(calls):
        found.append(f"{len(calls) - len(seen)} of {len(calls)} requests had no reply")
    return found
