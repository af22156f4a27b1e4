"""What is told over rows: scores of predictions by id, a winner, a gate from the command line.

A score is all that `Holdout.score` does with a pandas table of ids and predictions, in an order of
its own each time: ids matched, predictions checked and known, the terms of sealed and open rows,
level and letter, the ledger's row and its receipt. Beside it: NumPy's search for the same ids in a
sorted array, the comparison of predictions and targets, and one bare commit.
"""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import holdfast as hf
from benchmarks import paying
from benchmarks.comparing import compared
from benchmarks.holdouts import scratch
from benchmarks.tables import both, grown, milliseconds, table
from benchmarks.timing import Results, Timing, in_turns, recorded, seconds_of
from holdfast.holdout.answering import found_by
from holdfast.holdout.questions import Asked
from holdfast.protocols.base import PastTold

__all__ = ["comparisons", "measure", "section"]

ROWS, CANDIDATES = 10_000, 100
TIMES, LIMIT, COLD = 10, 0.1, 1.5  # of NumPy's time; seconds; of the CPU seconds of the imports
SCORE, GATE, COMPARE = "score, a guess given", "gate", "compare, a verdict"
OPEN = "score, the guess from the open part"
NUMPY, COMMIT, BEST = "NumPy: match and compare", "bare SQLite, 1 commit, FULL", "best"
CPU = ", CPU seconds"
IMPORTS, COMMAND = "python -c 'import holdfast, pandas'", "holdfast gate"
NEXT, FIRST, OPENING = "next question", "first question after", "open"
PIECE = 1_000  # questions in one transaction

Frame = Any
Job = Callable[[], object]


class Made:
    """A holdout without a plan, and predictions for all of its rows."""

    def __init__(self, rows: int, name: str = "told") -> None:
        import pandas as pd

        self._rng = np.random.default_rng(rows)
        self.ids = self._rng.permutation(10 * rows)[:rows]
        self.target = self._rng.integers(0, 2, rows)
        frame = pd.DataFrame({"id": self.ids, "x": self._rng.random(rows), "y": self.target})
        self.path = scratch() / name
        hf.Holdout.create(self.path, frame, ids="id", target="y").close()

    def predictions(self, accuracy: float = 0.9) -> Frame:
        """As somebody hands them in: in another order than the data."""
        import pandas as pd

        right = self._rng.random(len(self.ids)) < accuracy
        said = np.where(right, self.target, 1 - self.target)
        order = self._rng.permutation(len(self.ids))
        return pd.DataFrame({"id": self.ids[order], "prediction": said[order]})

    def matcher(self) -> Callable[[Frame], int]:
        """The floor: all ids known, and how many predictions are right."""
        order = np.argsort(self.ids)
        ids, target = self.ids[order], self.target[order]

        def right(frame: Frame) -> int:
            given, said = frame["id"].to_numpy(), frame["prediction"].to_numpy()
            places = np.searchsorted(ids, given)
            assert (ids[places] == given).all()
            return int(np.count_nonzero(target[places] == said))

        return right


def measure(quick: bool) -> Results:
    rows, candidates = (1_000, 10) if quick else (ROWS, CANDIDATES)
    repeats = 5 if quick else 40
    made = Made(rows)
    commit = paying.bare(scratch() / "told.sqlite", [900], "FULL")
    size = {"rows": rows, "candidates": candidates}
    with hf.Holdout.open(made.path) as holdout:
        scores = _scores(holdout, made, commit, repeats)
        best = _best(holdout, made, candidates, commit, max(3, repeats // 4))
    cold = _cold(made, 3 if quick else 15)
    lengths = (10, 100) if quick else (100, 10_000, 100_000)
    return {**size, "scores": scores, "best": best, "cold": cold, "history": _history(lengths)}


def comparisons(results: Results) -> list[Results]:
    rows, full = results["rows"], results["rows"] == ROWS
    found = []
    for clock in ("", CPU):
        times, best = (
            {name: timing["cpu"] if clock else timing for name, timing in results[part].items()}
            for part in ("scores", "best")
        )
        ends = ("median", "best")
        allowed = {end: TIMES * times[NUMPY][end] + times[COMMIT][end] for end in ends}
        for name in (SCORE, OPEN):
            what = f"{name} of {rows:,} predictions by id{clock}"
            beside = f"{TIMES} × NumPy's matching and comparing, 1 bare commit"
            most = 1 if full else None
            found.append(compared(what, times[name], beside, allowed, at_most=most))
        what = f"{BEST} of {results['candidates']:,} × {rows:,} predictions by id{clock}"
        limit = dict.fromkeys(ends, LIMIT)
        found.append(compared(what, best[BEST], "a tenth of a second", limit, at_most=1))
        found.append(compared(what, best[BEST], "NumPy: match and compare all", best[NUMPY]))
    cold, few, many = results["cold"], results["history"][0], results["history"][-1]
    name = f"{COMMAND} DIR p.csv --at-least .85, cold{CPU}"
    found.append(compared(name, cold[COMMAND], IMPORTS, cold[IMPORTS], at_most=COLD))
    name = f"the next score after {many['questions before']:,}{CPU}"
    beside = f"after {few['questions before']:,}"
    ours, before = (each["times"][NEXT]["cpu"] for each in (many, few))
    found.append(compared(name, ours, beside, before, at_most=COLD))
    return found


def section(results: Results) -> str:
    rows, candidates = results["rows"], results["candidates"]
    cold = [[name, both(times)] for name, times in results["cold"].items()]
    return (
        f"## Told: {rows:,} predictions by id, each time in another order\n\n"
        "All are in memory as pandas tables. A score includes its matching, its row in the ledger "
        "(one durable commit) and its receipt in another file (a second wait for the disk). CPU "
        "time leaves out both waits, and those for other processes of the machine.\n\n"
        + _timed(results["scores"])
        + f"\n{candidates:,} candidates at once, matching included:\n\n"
        + _timed(results["best"])
        + "\n## Told: a gate from the command line, in CPU seconds of fresh processes\n\n"
        + table(["process", "CPU time"], cold)
        + "\n## Told: growth with the questions asked before, k\n\n"
        "Whoever opens a holdout reads all rows at the first question; a question after that reads "
        f"none. (Filled in transactions of {PIECE:,}; "
        f"{milliseconds(results['history'][-1]['a row'])} a row.)\n\n"
        + grown([_with_cpu(each) for each in results["history"]], ["questions before"])
    )


def _timed(times: Results) -> str:
    lines = [[name, both(timing), both(timing["cpu"])] for name, timing in times.items()]
    return table(["", "time", "CPU time"], lines)


def _with_cpu(row: Results) -> Results:
    times = row["times"]
    return {**row, "times": {NEXT: times[NEXT], f"{NEXT}, CPU": times[NEXT]["cpu"], **times}}


def _scores(holdout: hf.Holdout, made: Made, commit: Job, repeats: int) -> Results:
    frames, match = _ready(made, 5 * (repeats + 1)), made.matcher()
    first = made.predictions(0.8)

    def against() -> object:
        return holdout.compare(next(frames), first, margin=0.0)

    jobs: dict[str, Job] = {
        SCORE: lambda: holdout.score(next(frames), guess=0.9),
        OPEN: lambda: holdout.score(next(frames)),
        GATE: lambda: holdout.gate(next(frames), at_least=0.85),
        COMPARE: against,
        NUMPY: lambda: match(next(frames)),
        COMMIT: commit,
    }
    return recorded(in_turns(jobs, repeats))


def _best(holdout: hf.Holdout, made: Made, candidates: int, commit: Job, repeats: int) -> Results:
    frames, match = _ready(made, 2 * candidates * (repeats + 1)), made.matcher()
    batches = iter([[next(frames) for _ in range(candidates)] for _ in range(2 * (repeats + 1))])
    jobs: dict[str, Job] = {
        BEST: lambda: holdout.best(next(batches)),
        NUMPY: lambda: [match(each) for each in next(batches)],
        COMMIT: commit,
    }
    return recorded(in_turns(jobs, repeats))


def _ready(made: Made, count: int) -> Iterator[Frame]:
    """Made before the clock runs."""
    return iter([made.predictions() for _ in range(count)])


def _cold(made: Made, repeats: int) -> Results:
    """CPU seconds of whole processes: a busy disk, or neighbours, are not counted.

    All modules are compiled by the first turn, which is not counted, as `pip install` does.
    """
    file = scratch() / "predictions.csv"
    made.predictions(0.97).to_csv(file, index=False)
    gate = [sys.executable, "-c", "from holdfast.cli import main; main()", "gate", str(made.path)]
    thresholds = itertools.count(8_500)
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(scratch() / "compiled")}
    seconds: dict[str, list[float]] = {IMPORTS: [], COMMAND: []}
    for turn in range(repeats + 1):
        threshold = f"0.{next(thresholds)}"  # another question each time
        commands = {
            IMPORTS: [sys.executable, "-c", "import holdfast, pandas"],
            COMMAND: [*gate, str(file), "--at-least", threshold],
        }
        for name, command in commands.items():
            before = _of_children()
            subprocess.run(command, check=True, capture_output=True, env={**os.environ, **kept})
            if turn:
                seconds[name].append(_of_children() - before)
    return recorded({name: Timing(tuple(each)) for name, each in seconds.items()})


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _history(lengths: tuple[int, ...]) -> list[Results]:
    made, found = Made(1_001, "told-history"), []
    commit = paying.bare(scratch() / "told-history.sqlite", [900], "FULL")
    for length in lengths:
        with hf.Holdout.open(made.path) as holdout:
            spent, before = _fill(holdout, made, length), holdout.status().answers
        times = _growth(made, commit)
        found.append({"questions before": before, "times": times, "a row": spent})
    return found


def _growth(made: Made, commit: Job) -> Results:
    frames = _ready(made, 50)
    seconds: dict[str, list[float]] = {OPENING: [], FIRST: []}
    for _ in range(3):
        seconds[OPENING].append(seconds_of(lambda: hf.Holdout.open(made.path).close()))
        with hf.Holdout.open(made.path) as holdout:
            score = partial(holdout.score, next(frames), guess=0.9)
            seconds[FIRST].append(seconds_of(score))
    with hf.Holdout.open(made.path) as holdout:
        jobs: dict[str, Job] = {
            NEXT: lambda: holdout.score(next(frames), guess=0.9),
            COMMIT: commit,
        }
        times = in_turns(jobs, 30)
    return recorded({**times, **{name: Timing(tuple(each)) for name, each in seconds.items()}})


def _fill(holdout: hf.Holdout, made: Made, length: int) -> float:
    """Write answers as the door writes them, many in a transaction; seconds for each.

    Only the rows are not read anew: every question is about another rule with the same terms.
    """
    opened, journal = holdout._open, holdout.journal
    asked = _pattern(holdout, made)
    step = next(_steps(asked))
    found = found_by(step, asked.set, asked.estimands, opened._engines)
    terms = cast("NDArray[np.int64]", found)
    numbers, place = itertools.count(holdout.status().answers), asked.set.name
    left = length - holdout.status().answers

    def write() -> None:
        for done in range(0, left, PIECE):
            _write(journal, asked, terms, numbers, place, min(PIECE, left - done))

    total = seconds_of(write)
    return total / max(1, left)


def _pattern(holdout: hf.Holdout, made: Made) -> Asked:
    from holdfast.holdout.scoring import score_request

    score = score_request(
        holdout._open,
        holdout._shared,
        made.predictions(),
        holdout.scorers.find("accuracy"),
        target=None,
    )
    words: dict[str, Any] = {"metric": "accuracy", "share": True, "guess": 0.9}
    return holdout._open.asked("score", score.term(), **words)


def _steps(asked: Asked) -> Any:
    return asked.protocol.ask(asked.question, None, ())  # type: ignore[arg-type]


def _write(
    journal: Any, pattern: Asked, terms: Any, numbers: Iterator[int], place: str, count: int
) -> None:
    with journal.writing() as (transaction, state):
        for number in itertools.islice(numbers, count):
            asked = replace(pattern, estimand=replace(pattern.estimand, identity=f"{number}"))
            steps = _steps(asked)
            step = next(steps)
            while not isinstance(step, PastTold):
                step = steps.send(terms)
            try:
                steps.send((state.sets[place].past, asked.expects))
            except StopIteration as ended:
                body = {"set": place, "question": asked.question.facts, "drawn": ended.value}
                state.read([transaction.append("recorded", body, question=asked.key)])
