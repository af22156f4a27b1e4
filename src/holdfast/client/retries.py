"""Retries: ask again until there is a reply, and no question twice.

A call is repeated after a lost connection, a timeout, and when the server says that it is busy or
not there (429, 502, 503, 504), only if that does no harm: it has a key, or it only looks. Pauses
double, and are shortened at random, so that many clients do not come back at the same moment.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from itertools import count

from holdfast.client.errors import Unreachable
from holdfast.client.steps import Call, Lost, Outcome, Pause, Reply, Steps
from holdfast.errors import real_number, whole_number
from holdfast.randomness import system_entropy, uniform_index

__all__ = ["Patience", "new_key", "persistent"]

_NOT_NOW = (429, 502, 503, 504)
_FIRST = 0.1  # seconds of the first pause
_PARTS = 2**16


@dataclass(frozen=True)
class Patience:
    """How often a call is repeated at most, for how many seconds, and the longest pause."""

    retries: int
    seconds: float
    longest: float = 5.0

    def __post_init__(self) -> None:
        whole_number("retries", self.retries, 0, 10**6)
        real_number("patience", self.seconds, 0)


def new_key() -> str:
    """A key that no other question has: 128 bits from the operating system."""
    first, second = system_entropy().words(2)
    return f"{int(first):016x}{int(second):016x}"


def persistent(call: Call, patience: Patience, url: str) -> Steps[Reply]:
    """The reply to a call, which is repeated while that may help."""
    end, heard = time.monotonic() + patience.seconds, False
    for tries in count(1):
        outcome = yield call
        heard |= not isinstance(outcome, Lost) or outcome.sent
        if isinstance(outcome, Reply) and outcome.status not in _NOT_NOW:
            return outcome
        pause = _pause(tries, patience.longest, outcome)
        last = tries > patience.retries or time.monotonic() + pause > end
        if last or not call.repeatable or (isinstance(outcome, Lost) and not outcome.again):
            raise Unreachable(url, _reason(outcome), tries, call.key if heard else None)
        yield Pause(pause)
    raise AssertionError("count has no end")


def _pause(tries: int, longest: float, outcome: Outcome) -> float:
    """Between a half and the whole of a pause that doubles; or longer, if the server says so."""
    own = min(longest, _FIRST * 2.0 ** min(tries - 1, 30))
    own *= 0.5 + 0.5 * uniform_index(_PARTS, system_entropy()) / _PARTS
    return max(own, _asked_for(outcome))


def _asked_for(outcome: Outcome) -> float:
    """Retry-After, where it is a number of seconds. A date would need two clocks that agree."""
    text = outcome.headers.get("retry-after", "") if isinstance(outcome, Reply) else ""
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return seconds if seconds > 0 and not math.isnan(seconds) else 0.0


def _reason(outcome: Outcome) -> str:
    if isinstance(outcome, Lost):
        return outcome.reason
    assert outcome is not None  # only a pause has no outcome
    try:
        said = json.loads(outcome.body)["error"]["message"]
    except (ValueError, LookupError, TypeError):
        said = "no reason given"
    return f"status {outcome.status}, {str(said).rstrip('.')}"
