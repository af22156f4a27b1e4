"""How wide the bars are, read from a holdout's own answers on made rows.

    python -m holdfast_lab.told.figures --output docs/explanation/told-figures.md

Every figure is a half-width, or a gain that was needed, of an answer to a question: predictions by
row id on a holdout that was created without a plan at confidence 0.95, with a tenth of β kept for
rows that arrive later, and without a number of questions declared.
"""

from __future__ import annotations

import argparse
import platform
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from holdfast.protocols.answers import Told
from holdfast.theory.told import CONFIRM_CELL
from holdfast_lab.told.made import Bits, MadeRows, made_rows

P = 0.9  # the share of right predictions where nothing else is said
DIFFER = 0.05  # of the rows: where two models differ
SURE = 0.95  # a guess at which a pass is expected
RUNS = 20
_ALIKE = 0.94  # correlation of two models' margins: they differ on about DIFFER of the rows
_PROGRAM = "python -m holdfast_lab.told.figures"
_SHARP = 1e-9  # the error of a guess that needs no tolerance


@dataclass(frozen=True)
class Figure:
    """One figure: what it is, what it may be at most, and what it was."""

    rows: int
    questions: str
    case: str
    bar: float
    found: float
    error: float = 0.0
    """The standard error of `found`, where it is a mean of runs."""

    @property
    def held(self) -> bool:
        """Whether it is as narrow as it has to be."""
        return self.found <= self.bar


def half_width(answer: Told) -> float:
    """Half of the distance between the ends."""
    assert answer.low is not None
    assert answer.high is not None
    return (answer.high - answer.low) / 2


# Histories: what was asked before.


def expected_scores(rows: MadeRows, questions: int) -> None:
    """Scores that are as the open part has them."""
    for _ in range(questions):
        assert rows.score(rows.right(P)).expected


def surprising_scores(rows: MadeRows, questions: int, surprises: int) -> None:
    """Scores of which some, evenly spaced, are one window away from the guess."""
    off = {round((k + 1) * questions / (surprises + 1)) for k in range(surprises)}
    for k in range(questions):
        if k not in off:
            assert rows.score(rows.right(P)).expected
            continue
        one = CONFIRM_CELL * (P * (1 - P) / rows.sealed) ** 0.5  # a window is that wide
        answer = rows.score(rows.right(P), guess=P - one / 2, guess_se=_SHARP)
        assert answer.letter == (1,)


def precise_score(rows: MadeRows) -> float:
    """The half-width of a precise score whose sealed count is where the guess has it."""
    return half_width(rows.score(rows.right(P), precise=True))


# Figures.


def natural(sealed: int, questions: int, chance: np.random.Generator, alike: float) -> float:
    """The last bar of a run of models whose accuracy drifts from .85 to .93; the open part guesses.

    A model is right on a row if its margin there is below a threshold; margins of two models have
    the correlation `alike`.
    """
    from scipy.special import ndtri

    with made_rows(sealed, chance) as rows:
        shared = chance.standard_normal(2 * sealed)
        answer = None
        for share in np.linspace(0.85, 0.93, questions):
            own = chance.standard_normal(2 * sealed)
            margin = alike**0.5 * shared + (1 - alike) ** 0.5 * own
            answer = rows.score(margin < ndtri(share))
        assert answer is not None
        return half_width(answer)


def natural_mean(
    sealed: int, questions: int, chance: np.random.Generator, runs: int, alike: float = _ALIKE
) -> tuple[float, float]:
    """The mean of so many runs, and its standard error."""
    found = [natural(sealed, questions, chance, alike) for _ in range(runs)]
    return float(np.mean(found)), float(np.std(found)) / max(1, runs - 1) ** 0.5


def precise_after(sealed: int, questions: int, chance: np.random.Generator) -> float:
    """A precise score after so many expected ones."""
    with made_rows(sealed, chance) as rows:
        expected_scores(rows, questions)
        return precise_score(rows)


def after_surprises(
    sealed: int, questions: int, surprises: int, chance: np.random.Generator
) -> tuple[float, float]:
    """A confirmed score, of a guess without an error, and a precise one, after surprises."""
    with made_rows(sealed, chance) as rows:
        surprising_scores(rows, questions, surprises)
        confirmed = rows.score(rows.right(P), guess=P, guess_se=_SHARP)
        assert confirmed.expected
    with made_rows(sealed, chance) as rows:
        surprising_scores(rows, questions, surprises)
        return half_width(confirmed), precise_score(rows)


def gate_needs(
    sealed: int, questions: int, unclear: int, chance: np.random.Generator, at: float = 0.85
) -> float:
    """How far above the threshold the sealed share must be for a pass that is expected."""
    with made_rows(sealed, chance) as rows:

        def verdict(share: float) -> str | None:
            predictions = rows.predictions(rows.right(share))
            return rows.holdout.gate(predictions, at_least=at, guess=SURE).verdict

        for k in range(questions):
            word, share = ("unclear", at) if k < unclear else ("pass", SURE)
            assert verdict(share) == word
        start = round(at * sealed)
        needed = rows.least(
            0, sealed // 10, lambda more: verdict((start + more) / sealed) == "pass"
        )
        return needed / sealed


def better_needs(
    sealed: int, questions: int, which: int, chance: np.random.Generator, last: bool = False
) -> float:
    """The gain that the first, second, … "better" of so many comparisons needs.

    They are evenly spaced; with `last` it is the last question of all. The others differ on as many
    rows without a gain, and "not shown" is what is expected of all.
    """
    end = questions if last else round(questions * which / (which + 1))
    spaced = {round(end * k / which) for k in range(1, which)}
    differ = round(DIFFER * sealed)
    with made_rows(sealed, chance) as rows:

        def verdict(gain: int) -> str | None:
            one = rows.right(P)
            wins = (differ + gain) // 2
            other = rows.changed(one, wins, differ - wins)
            pair = rows.predictions(other), rows.predictions(one)
            return rows.holdout.compare(*pair, margin=0, guess=0.0).verdict

        for k in range(1, end):
            gain, word = (differ, "better") if k in spaced else (0, "not shown")
            assert verdict(gain) == word
        return 2 * rows.least(0, differ // 2, lambda half: verdict(2 * half) == "better") / sealed


def precise_difference(sealed: int, questions: int, chance: np.random.Generator) -> float:
    """A precise difference after so many expected ones."""
    differ = round(DIFFER * sealed) // 2
    with made_rows(sealed, chance) as rows:

        def compare(precise: bool) -> Told:
            one = rows.right(P)
            pair = rows.changed(one, differ, differ), one
            return rows.holdout.compare(*map(rows.predictions, pair), precise=precise)

        for _ in range(questions):
            assert compare(precise=False).expected
        return half_width(compare(precise=True))


def winner(sealed: int, rounds: int, batch: int, chance: np.random.Generator) -> float:
    """The precise score of the winner of the last of some rounds."""
    with made_rows(sealed, chance) as rows:

        def candidates() -> list[Bits]:
            return [rows.right(P - 0.01 * (k > 0)) for k in range(batch)]

        for done in range(rounds):
            given = [rows.predictions(each) for each in candidates()]
            answer = rows.holdout.best(given, precise=done == rounds - 1)
            assert answer.winner == 0
        return half_width(answer.batch[0])


# All of them.

NATURAL = "natural run: the last bar, with its tolerance; mean of {runs} runs"
ALONE = "the same, if models shared nothing"


def figures(chance: np.random.Generator, runs: int = RUNS, small: bool = False) -> Iterator[Figure]:
    """Every figure, one after the other; `small`: few rows and questions, to try the code."""
    n, many = (1_000, 10) if small else (10_000, 100)
    word = NATURAL.format(runs=runs)
    for rows, k, bar in ((n, many, 0.0210), (n, 10 * many, 0.0222), (n // 5, many, 0.0465)):
        yield Figure(rows, f"{k:,}", word, bar, *natural_mean(rows, k, chance, runs))
    for rows, k, bar in ((n, many, 0.0210), (n // 5, many, 0.0465)):
        yield Figure(rows, f"{k:,}", ALONE, bar, *natural_mean(rows, k, chance, runs, 0.0))
    for k, bar in ((many, 0.0081), (10 * many, 0.0083)):
        yield Figure(n, f"{k:,}", "precise, all expected before", bar, precise_after(n, k, chance))
    asked, pair = f"{many:,}", after_surprises(n, many, 3, chance)
    for kind, bar, found in zip(
        ("confirmed, before its tolerance", "precise"), (0.0199, 0.0209), pair, strict=True
    ):
        yield Figure(n, asked, f"{kind}; 3 surprises before, one window off", bar, found)
    for unclear, bar in ((0, 0.0077), (3, 0.0222), (10, 0.0334)):
        case = f"gate at 0.85: how far above a pass is; {unclear} times unclear before"
        yield Figure(n, f"{2 * many:,}", case, bar, gate_needs(n, 2 * many, unclear, chance))
    for last, where in ((False, "evenly spaced"), (True, "the last question of all")):
        for which, name, bar in ((1, "first", 0.0092), (3, "third", 0.0130)):
            case = f'comparison: gain that the {name} "better" needs, {where}'
            yield Figure(n, asked, case, bar, better_needs(n, many, which, chance, last=last))
    case = "difference, precise, all expected before"
    yield Figure(n, asked, case, 0.0085, precise_difference(n, many, chance))
    case = "winner of a batch, ten rounds, its precise score"
    yield Figure(n, f"10 × {many:,}", case, 0.0310, winner(n, 10, many, chance))


_HEAD = ("sealed rows", "questions", "case", "at most", "measured", "")


def page(found: Sequence[Figure], command: str) -> str:
    """The figures as Markdown."""
    today = datetime.now(UTC).date().isoformat()
    made = f"Python {platform.python_version()}, numpy {np.__version__}"
    lines = [_HEAD, ("---",) * len(_HEAD), *map(_cells, found)]
    table = "\n".join(f"| {' | '.join(each)} |" for each in lines)
    return f"""\
# How wide the bars are

Made by the command below on {today} ({made}).
The code is `holdfast_lab.told.figures`. Which rows are sealed is the operating system's chance: in
another run natural runs differ, within their errors.

```{{.console .skip}}
$ {command}
```

Half-widths, and gains that are needed, as holdouts gave them in their own answers: created without
a plan at confidence 0.95, with a tenth of β kept for rows that arrive later and no number of
questions declared; predictions by row id, two classes, and as many open rows as sealed ones, from
which the guesses are. Where nothing else is said 0.9 of the predictions are right, and where models
are compared they differ on 0.05 of the rows. A gain that is needed was found by asking: before each
try the holdout was put back to what it was.

{table}

*Natural run*: models whose true accuracy drifts from 0.85 to 0.93, one question each; they share
most of their errors, so that two of them differ on about 0.05 of the rows, as real ones do. *One
window off*: the guess is beside the sealed count by half a window of 1.5 standard deviations.
"""


def _cells(figure: Figure) -> tuple[str, ...]:
    error = f" (± {figure.error:.4f})" if figure.error else ""
    found = f"{figure.found:.4f}{error}"
    held = "held" if figure.held else "**wider**"
    return f"{figure.rows:,}", figure.questions, figure.case, f"{figure.bar:.4f}", found, held


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the page; exit status 4 if a figure is too wide."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(prog=_PROGRAM)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--runs", type=int, default=RUNS, help="natural runs of each kind")
    parser.add_argument("--small", action="store_true", help="few rows and questions")
    parser.add_argument("--output", type=Path, help="the page to write")
    chosen = parser.parse_args(given)
    found = []
    for figure in figures(np.random.default_rng(chosen.seed), chosen.runs, chosen.small):
        found.append(figure)
        print("  ".join(_cells(figure)), flush=True)  # noqa: T201 – what was asked for
    if chosen.output is not None:
        command = shlex.join([*shlex.split(_PROGRAM), *given])
        chosen.output.write_text(page(found, command), "utf-8")
    return 0 if all(each.held for each in found if "last question" not in each.case) else 4


if __name__ == "__main__":
    sys.exit(main())
