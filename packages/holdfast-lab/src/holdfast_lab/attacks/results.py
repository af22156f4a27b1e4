"""Many runs of one attack, and what they say."""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from holdfast.errors import whole_number
from holdfast_lab.attacks.protocols import Attack, Run, Side, Trial
from holdfast_lab.statistics import failure_rate_bound

Progress = Callable[[], None]


@dataclass(frozen=True)
class Result:
    """One attack, many runs against all responders."""

    attack: Attack
    naive: tuple[Run, ...]
    unerring: tuple[Run, ...]
    holdfast: tuple[Run, ...]

    @property
    def runs(self) -> int:
        """How many times Holdfast was attacked."""
        return len(self.holdfast)

    @property
    def failures(self) -> int:
        """In how many of them a promise broke."""
        return sum(run.broken for run in self.holdfast)

    @property
    def naive_failures(self) -> int:
        """The same of naive."""
        return sum(run.broken for run in self.naive)

    @property
    def unerring_failures(self) -> int:
        """The same of Holdfast with looks that never err."""
        return sum(run.broken for run in self.unerring)

    @property
    def bound(self) -> float:
        """The 95 % Clopper–Pearson upper bound of Holdfast's rate of failure."""
        return failure_rate_bound(self.failures, self.runs)

    @property
    def polite(self) -> bool:
        """Whether every budget ended as it should."""
        return all(run.polite for run in self.holdfast)

    @property
    def kept(self) -> bool:
        """Whether the runs support the promise."""
        return self.bound <= self.attack.failure and self.polite

    @property
    def passed(self) -> bool:
        """Whether they do, and the attack is one: it breaks naive in most runs."""
        return self.kept and 2 * self.naive_failures > len(self.naive)

    def answered(self, side: Side) -> float:
        """Questions answered in a run, on average."""
        runs = self.naive if side == "naive" else self.holdfast
        return sum(run.answered for run in runs) / len(runs)

    def to_json(self) -> dict[str, object]:
        """Plain numbers and text."""
        attack = self.attack
        return {
            "protocol": attack.name,
            "promise": attack.promise,
            "questions": attack.questions,
            "blocks": attack.blocks,
            "failure": attack.failure,
            "runs": self.runs,
            "naive_runs": len(self.naive),
            "naive_failures": self.naive_failures,
            "naive_answered": self.answered("naive"),
            "unerring_runs": len(self.unerring),
            "unerring_failures": self.unerring_failures,
            "failures": self.failures,
            "answered": self.answered("holdfast"),
            "failure_rate_bound": self.bound,
            "polite": self.polite,
            "passed": self.passed,
        }


def run_attack(
    attack: Attack,
    runs: int,
    seed: int | None,
    *,
    others: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Fresh blocks for every run; run number i of all responders has the same ones.

    `others` is the number of runs of those that are no Holdfast, if fewer are enough. `progress`
    is called after every run.
    """
    runs = whole_number("runs", runs, 1, 10**6)
    others = runs if others is None else whole_number("others", others, 1, runs)
    naive, unerring, holdfast = [], [], []
    for number in range(runs):
        trial = Trial(seed, number)
        if number < others:
            naive.append(attack.run("naive", trial))
            unerring.append(attack.run("holdfast", replace(trial, unerring=True)))
        holdfast.append(attack.run("holdfast", trial))
        if progress is not None:
            progress()
    return Result(attack, tuple(naive), tuple(unerring), tuple(holdfast))


# The evidence as a page: one row and one paragraph for every protocol.


_WIDTH = 99


def page(results: Sequence[Result], command: str, date: str, seed: int | None) -> str:
    """The results as Markdown.

    Paragraphs are broken into lines when their numbers are known.
    """
    text = _head(command, date, seed, results) + "\n\n".join(map(_section, results))
    return "\n\n".join(map(_wrapped, text.strip().split("\n\n"))) + "\n"


def _wrapped(paragraph: str) -> str:
    return paragraph if paragraph[0] in "#|`" else textwrap.fill(paragraph, _WIDTH)


def _head(command: str, date: str, seed: int | None, results: Sequence[Result]) -> str:
    entropy = "the operating system's entropy" if seed is None else f"seeded ({seed})"
    return f"""\
# Attacks on every protocol

Made by the command below on {date} (Python {platform.python_version()}, numpy {np.__version__};
{entropy}). The code is in `holdfast_lab.attacks`; the same seed gives the same numbers.

```console
$ {command}
```

Each row is one protocol, planned for k questions at confidence 1 − β, with the blocks that its plan
asks for. An adaptive analyst, who knows the protocol, the plan and the law of the data, but not the
blocks, tries to break the promise; it has broken if any answer of the run breaks it. All laws are
known exactly: nothing about the population is estimated. *Naive* is the same protocol without
protection, on the same blocks: exact, with promises that would hold for questions fixed in advance,
and without a budget. The attack breaks it in most runs, so it is an attack. *No coin* is Holdfast
with looks that never err, on the same budget. The last column is Clopper and Pearson's one-sided
upper bound of Holdfast's rate of failure; it is to be at most β.

{_table(results)}

{_verdict(results)}

What these runs do not show: they bound what these analysts achieve, not what the best one would;
that is what the [proofs](theory/index.md) are for. And where the column "no coin" is 0, so few
questions on so small a budget would not have broken exact looks either: such a row is evidence for
the budget and the targets, not for the coin. For the coin there are the rows where it is not 0, and
the long attacks on estimates in [attacks on a plan](attack-results.md).

## The two analysts

The *collector* gives every block a label and learns labels, one a question: everything below the
first answer counts as low, every label known so far as high, and then the exact median is the next
label. Each such answer is right. In the end it asks whether a label is one of those it knows: many
of these blocks have one, fresh blocks next to never.

The *aggregator* asks on which side of the protocol's own target the counts of many independent
features are, which is right either way, adds up all features as they were answered, and asks about
the event of high scores. [Attacks on a plan](attack-results.md) has the same analyst with thousands
of questions against estimates, and finds the sizes at which promises do break.

"""


def _table(results: Sequence[Result]) -> str:
    titles = (
        *("protocol", "promise", "k", "blocks", "β", "runs"),
        *("naive broken", "no coin, broken", "Holdfast broken", "95 % upper bound"),
    )
    head = f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"
    return "\n".join([*head, *map(_row, results)])


def _row(result: Result) -> str:
    attack = result.attack
    cells = (
        attack.name,
        attack.promise,
        f"{attack.questions:,}",
        f"{attack.blocks:,}",
        f"{attack.failure:g}",
        f"{result.runs:,}",
        f"{result.naive_failures:,}",
        f"{result.unerring_failures:,}",
        f"{result.failures:,}",
        f"{result.bound:.4f}",
    )
    return f"| {' | '.join(cells)} |"


def _verdict(results: Sequence[Result]) -> str:
    if all(result.passed for result in results):
        return (
            "No promise failed more often than planned. Every budget that was used to its end was "
            "exhausted politely: from then on nothing was answered, drawn or charged."
        )
    wrong = ", ".join(result.attack.name for result in results if not result.passed)
    return f"**Not supported by these runs:** {wrong}."


def _section(result: Result) -> str:
    attack = result.attack
    naive, ours = (result.answered(side) for side in ("naive", "holdfast"))
    asked = f"Naive answered {naive:,.0f} questions a run on average, Holdfast {ours:,.0f}."
    return f"## {attack.name[0].upper()}{attack.name[1:]}\n\n{attack.story} {asked}"
