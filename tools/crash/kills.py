"""Kill −9 at random moments, several writers at once; then read what is left."""

from __future__ import annotations

import select
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.randomness import system_entropy, uniform_index
from tools.crash.account import Subject
from tools.crash.phases import PHASES
from tools.crash.writers import Writer

__all__ = ["Killed", "kill_campaign"]

_PER_ROUND = 50  # kills on one ledger
_AMPLE, _SCARCE = 100_000, 60  # a budget that lasts, and one that is exhausted on the way


@dataclass
class Killed:
    """What a campaign of kills did and found."""

    writers: int
    kills: int = 0
    rounds: int = 0
    acknowledged: int = 0
    refused: int = 0
    all_at_once: int = 0
    where: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(PHASES, 0)))
    faults: list[str] = field(default_factory=list)


def kill_campaign(subject: type[Subject], kills: int, writers: int = 4) -> Killed:
    """Kill so often, in rounds on a new ledger each, and collect the faults."""
    result = Killed(writers)
    while result.kills < kills:
        scarce = result.rounds % 4 == 3
        with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as folder:
            _round(
                *(subject, Path(folder), _SCARCE if scarce else _AMPLE),
                *(result, min(_PER_ROUND, kills - result.kills)),
            )
        result.rounds += 1
    return result


def _round(subject: type[Subject], folder: Path, budget: int, result: Killed, kills: int) -> None:
    subject.create(folder, budget)
    writers = [Writer(subject, folder, slot) for slot in range(result.writers)]
    entropy = system_entropy()
    try:
        while kills > 0:
            _listen(writers, _pause())
            together = uniform_index(10, entropy) == 0 and kills >= len(writers)
            one = writers[uniform_index(len(writers), entropy)]
            struck = writers if together else [one]
            result.all_at_once += together
            for writer in struck:
                result.where[writer.kill()] += 1
            for writer in struck:
                writer.start()
            kills -= len(struck)
            result.kills += len(struck)
        _listen(writers, 0.05)  # the last ones have a moment to recover and answer
    finally:
        for writer in writers:
            writer.kill()
    seen = [each for writer in writers for each in writer.seen]
    result.acknowledged += sum(each.answer is not None for each in seen)
    result.refused += sum(each.answer is None for each in seen)
    result.faults += subject.faults(folder, budget, seen)


def _pause() -> float:
    """Between 0.2 and 102 ms, short ones as likely as long ones."""
    entropy = system_entropy()
    return 2e-4 * 2 ** (uniform_index(9_000, entropy) / 1_000)


def _listen(writers: list[Writer], seconds: float) -> None:
    """Take in acknowledgements for a while."""
    by_pipe = {writer.pipe: writer for writer in writers}
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        for pipe in select.select(list(by_pipe), [], [], left)[0]:
            if not by_pipe[pipe].read():
                raise RuntimeError("a writer ended by itself")
