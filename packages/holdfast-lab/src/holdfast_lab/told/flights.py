"""Thirty models tuned by their last score, on real flights: told, naive, and by looks.

    python -m holdfast_lab.told.flights --output docs/explanation/told-flights.md

For every seed 20,000 flights train models, as many as are wanted are sealed, as many stay open, and
all others say what is true. Three people tune thirty models each, one after the other, by the last
score that they were given: of a holdout without a plan, of the sealed rows themselves, or of a
holdout by looks. Then they want to know which models differ.
"""

from __future__ import annotations

import argparse
import platform
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np

from holdfast.holdout.holdout import Holdout
from holdfast.protocols.answers import Told
from holdfast.protocols.means import score_plan
from holdfast.theory.told import log_mcnemar
from holdfast_lab.flights import Flights, Rows, load_flights
from holdfast_lab.models import TRAINED, Model, Split, Workshop, tune
from holdfast_lab.told.made import scratch

MODELS = 30
SIZES = (2_000, 10_000, 50_000)
SEEDS = 5
_TEXTBOOK = 1.959964  # standard errors to each side of a 95 % interval
_PAIR = 0.05  # a test's own level, for a pair that is looked at by itself

Bar = tuple[float, float]
Scored = tuple[float, float, float]
"""A value, and its bar."""


@dataclass(frozen=True)
class Found:
    """What one person found out."""

    who: str
    missed: int
    """Bars that do not contain the truth."""
    half_width: float
    """Of the last bar."""
    apart: int
    """Pairs of models whose bars exclude each other, or that were found to differ."""
    wrong: int
    """Pairs of them whose difference has the other sign in truth."""
    best: float
    """The truth of the model with the best score."""
    difference: Bar | None = None
    """The best less the worst model by the open part, with its bar."""
    truth: float = np.nan


def tuned(split: Split, score: Callable[[Model], Scored], models: int, seed: int) -> list[Any]:
    """So many models, tuned by these scores: each with its score."""
    given: dict[int, Scored] = {}

    def told(model: Model) -> float:
        given[id(model)] = found = score(model)
        return found[0]

    workshop = Workshop(split.flights, split.train)
    made = tune(workshop, told, models, np.random.default_rng(seed))
    return [(model, *given[id(model)]) for model in made]


def _found(who: str, split: Split, scored: Sequence[Any], **more: Any) -> Found:
    truths = [split.right(model.late) for model, *_ in scored]
    bars = [(low, high) for *_, low, high in scored]
    missed = sum(not low <= truth <= high for truth, (low, high) in zip(truths, bars, strict=True))
    apart = [(a, b) for a, b in combinations(range(len(bars)), 2) if _disjoint(bars[a], bars[b])]
    wrong = sum((truths[a] - truths[b]) * (bars[a][0] - bars[b][0]) < 0 for a, b in apart)
    best = truths[int(np.argmax([value for _, value, *_ in scored]))]
    facts = {"apart": len(apart), "wrong": wrong, **more}
    return Found(who, missed, (bars[-1][1] - bars[-1][0]) / 2, best=best, **facts)


def _disjoint(one: Bar, other: Bar) -> bool:
    return one[1] < other[0] or other[1] < one[0]


def by_told(folder: Path, split: Split, models: int, seed: int) -> tuple[Found, Rows]:
    """On a holdout without a plan; and which rows it sealed."""
    words: dict[str, Any] = {"ids": "flight", "target": "late", "labels": [0, 1]}
    words |= {"open_fraction": 0.5, "reading": "rule", "seed": seed}
    table = split.sealed(split.table, number=split.table)
    with closing(Holdout.create(folder / "told.holdfast", table, **words)) as holdout:
        opened = holdout.open_table(["number"])["number"].to_numpy()
        sealed = np.setdiff1d(split.table, opened)
        given: dict[int, Any] = {}

        def score(model: Model) -> Scored:
            given[id(model)] = split.predictions(model.late)
            answer = cast(Told, holdout.score(given[id(model)]))
            return cast(Scored, (answer.value, answer.low, answer.high))

        scored = tuned(split, score, models, seed)
        order = sorted((model for model, *_ in scored), key=lambda m: -split.right(m.late, opened))
        best, worst = order[0], order[-1]
        bar = holdout.compare(given[id(best)], given[id(worst)])
        pairs = sorted(
            combinations(order, 2),
            key=lambda pair: split.right(pair[1].late, opened) - split.right(pair[0].late, opened),
        )
        apart, wrong = 0, 0
        for b, a in pairs:
            if np.array_equal(b.late[sealed], a.late[sealed]):
                continue  # the same rule, as far as anybody can tell
            answer = holdout.compare(given[id(b)], given[id(a)], margin=0)
            sign = {"better": 1, "worse": -1}.get(str(answer.verdict), 0)
            apart += sign != 0
            wrong += sign * (split.right(b.late) - split.right(a.late)) < 0
    truth = split.right(best.late) - split.right(worst.late)
    more = {"apart": apart, "wrong": wrong, "difference": (bar.low, bar.high), "truth": truth}
    return _found("told", split, scored, **more), sealed


def by_looks(folder: Path, split: Split, sealed: Rows, models: int, seed: int) -> Found:
    """On the same rows under a plan for as many scores by looks."""
    plan, table = score_plan(models, sealed.size), split.sealed(sealed, number=sealed)
    words: dict[str, Any] = {"ids": "flight", "target": "late", "seed": seed}
    with closing(Holdout.create(folder / "looks.holdfast", table, plan, **words)) as holdout:

        def score(model: Model) -> Scored:
            answer = holdout.score(split.predictions(model.late, sealed))
            return cast(Scored, (answer.value, answer.low, answer.high))

        return _found("looks", split, tuned(split, score, models, seed))


def naively(split: Split, sealed: Rows, models: int, seed: int) -> Found:
    """From the rows themselves, with the textbook's bar; pairs by McNemar's test, one by one."""

    def score(model: Model) -> Scored:
        value = split.right(model.late, sealed)
        half = _TEXTBOOK * (value * (1 - value) / sealed.size) ** 0.5
        return value, value - half, value + half

    scored = tuned(split, score, models, seed)
    apart, wrong = 0, 0
    for one, other in combinations([model for model, *_ in scored], 2):
        right = [model.late[sealed] == split.flights.late[sealed] for model in (one, other)]
        wins, losses = (int(np.sum(a & ~b)) for a, b in (right, right[::-1]))
        if log_mcnemar(max(wins, losses), min(wins, losses)) <= np.log(_PAIR / 2):
            apart += 1
            wrong += (wins - losses) * (split.right(one.late) - split.right(other.late)) < 0
    return _found("naive", split, scored, apart=apart, wrong=wrong)


def story(
    flights: Flights, sealed: int, seed: int, models: int = MODELS
) -> tuple[Found, Found, Found]:
    """All three, on the same sealed rows."""
    split = Split.draw(flights, 2 * sealed, np.random.default_rng([seed, sealed]))
    with scratch() as folder:
        told, rows = by_told(folder, split, models, seed)
        looks = by_looks(folder, split, rows, models, seed)
    return told, naively(split, rows, models, seed), looks


# The page.


_PROGRAM = "python -m holdfast_lab.told.flights"
_HEAD = (
    *("sealed rows", "seed", "", "bars that miss", "last bar"),
    *("pairs apart", "of them wrong", "truth of the best", "best less worst", "in truth"),
)


def lines(sealed: int, seed: int, found: Sequence[Found]) -> Iterator[tuple[str, ...]]:
    """A line of the table for each of the three."""
    for each in found:
        bar = each.difference
        shown = "" if bar is None else f"{bar[0]:+.3f} to {bar[1]:+.3f}"
        truth = "" if bar is None else f"{each.truth:+.3f}"
        last = f"±{each.half_width:.3f}", str(each.apart), str(each.wrong), f"{each.best:.4f}"
        yield f"{sealed:,}", str(seed), each.who, str(each.missed), *last, shown, truth


def page(rows: Sequence[tuple[str, ...]], summary: str, models: int, command: str) -> str:
    """The story as Markdown."""
    today = datetime.now(UTC).date().isoformat()
    made = f"Python {platform.python_version()}, numpy {np.__version__}"
    cells = [_HEAD, ("---",) * len(_HEAD), *rows]
    table = "\n".join(f"| {' | '.join(each)} |" for each in cells)
    return f"""\
# Thirty models on real flights

Made by the command below on {today} ({made}).
The code is `holdfast_lab.told.flights`, the models are those of `holdfast_lab.models`. The same
seeds give the same numbers.

```{{.console .skip}}
$ {command}
```

All flights that left New York in 2013: {TRAINED:,} of them train models, others are sealed, as many
as are sealed stay open, and all that remain say what is true. Three people tune {models} boosted
models each, one after the other, by the last score that they were given. *Told* asks a holdout that
was created without a plan; *naive* looks at the sealed rows themselves and takes the textbook's
95 % interval; *looks* asks the same rows under a plan for {models} scores by looks. Told compares
each of the {models * (models - 1) // 2} pairs of its models (`compare` with a margin of 0), naive
tests each (McNemar's test at 0.05); by looks, bars have to exclude each other. *Best less worst*:
the difference of the best and the worst model by the open part, as `compare` tells it after all
scores.

{summary}

{table}
"""


def summary_of(found: Sequence[tuple[int, tuple[Found, ...]]], models: int) -> str:
    """What all seeds come to, for each size."""
    text = []
    for sealed in dict.fromkeys(size for size, _ in found):
        three = list(zip(*(each for size, each in found if size == sealed), strict=True))
        text.append(f"- **{sealed:,} sealed rows.** {'; '.join(map(_summary, three))}.")
    seeds = len(three[0])
    bars = f"{seeds * models:,} bars, and {seeds * models * (models - 1) // 2:,} pairs of models"
    return f"For each of the three there are {bars} at each size.\n\n" + "\n".join(text)


def _summary(found: Sequence[Found]) -> str:
    missed, apart, wrong = (
        sum(getattr(each, name) for each in found) for name in ("missed", "apart", "wrong")
    )
    half = float(np.mean([each.half_width for each in found]))
    return (
        f"{found[0].who.capitalize()}: {missed} bars miss, ±{half:.3f} at the end, "
        f"{apart:,} pairs apart, {wrong} of them wrong"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Tell the story, and write the page; exit status 4 if a bar that was told misses."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(prog=_PROGRAM)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="1, 2, …")
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--output", type=Path, help="the page to write")
    chosen = parser.parse_args(given)
    flights, found, rows = load_flights(), [], []
    for sealed in chosen.sizes:
        for seed in range(1, chosen.seeds + 1):
            three = story(flights, sealed, seed, chosen.models)
            found.append((sealed, three))
            for line in lines(sealed, seed, three):
                rows.append(line)
                print("  ".join(line), flush=True)  # noqa: T201 – what was asked for
    summary = summary_of(found, chosen.models)
    if chosen.output is not None:
        command = shlex.join([*shlex.split(_PROGRAM), *given])
        chosen.output.write_text(page(rows, summary, chosen.models, command), "utf-8")
    return 4 if any(told.missed or told.wrong for _, (told, *_) in found) else 0


if __name__ == "__main__":
    sys.exit(main())
