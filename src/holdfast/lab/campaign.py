"""The evidence, as a page: the attack at the planned size, and where the promise breaks below it.

`python -m holdfast.lab.attack --runs 1000 --questions 5000 --seed 1 --output PAGE.md`
"""

from __future__ import annotations

import argparse
import platform
import shlex
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from holdfast.lab.analysts import PersistentAnalyst, SignAggregator
from holdfast.lab.attack import HOLDFAST, NAIVE, AttackResult, run_attack

__all__ = ["Campaign", "Row", "main", "page", "run_campaign"]

FRACTIONS = (1.0, 0.9, 0.8, 0.76, 0.74, 0.72, 0.7, 0.6, 0.5, 0.2, 0.1)
NAIVE_MUST_FAIL = 0.95


@dataclass(frozen=True)
class Row:
    """Both attacks at one share of the planned blocks."""

    fraction: float
    aggregator: AttackResult
    persistent: AttackResult


@dataclass(frozen=True)
class Campaign:
    """The attack at the planned size, and both attacks at shares of it."""

    main: AttackResult
    rows: tuple[Row, ...]

    @property
    def passed(self) -> bool:
        """Naive fails nearly always; the upper bound of our failure rate is within the promise."""
        naive = self.main.failures(NAIVE) / self.main.runs
        allowed = self.main.plan.promise.failure
        return naive > NAIVE_MUST_FAIL and self.main.failure_bound(HOLDFAST) <= allowed


def run_campaign(
    runs: int,
    questions: int,
    *,
    seed: int | None,
    tail: float = 0.01,
    confidence: float = 0.95,
    fractions: Iterable[float] = FRACTIONS,
) -> Campaign:
    """Every attack is planned for all its looks; below the planned size the coin stays the same."""
    aggregator = SignAggregator(questions)
    persistent = PersistentAnalyst(aggregator.looks, tail=tail)

    def attack(analyst: SignAggregator | PersistentAnalyst, fraction: float) -> AttackResult:
        planned = full.plan.blocks
        return run_attack(
            analyst,
            runs=runs,
            blocks=max(1, round(fraction * planned)),
            tail=tail,
            confidence=confidence,
            seed=seed,
            against=(NAIVE, HOLDFAST) if analyst is aggregator else (HOLDFAST,),
        )

    full = run_attack(aggregator, runs=runs, tail=tail, confidence=confidence, seed=seed)
    rows = [
        Row(share, full if share == 1 else attack(aggregator, share), attack(persistent, share))
        for share in fractions
    ]
    return Campaign(full, tuple(rows))


def page(campaign: Campaign, command: str, date: str) -> str:
    """The campaign as Markdown."""
    below = _below(campaign) if campaign.rows else ""
    text = _head(campaign.main, command, date) + below
    return "\n\n".join(map(_wrapped, text.strip().split("\n\n"))) + "\n"


def _wrapped(paragraph: str) -> str:
    """Numbers differ in length: lines are broken when they are known."""
    return paragraph if paragraph[0] in "#|`" else textwrap.fill(paragraph, 99)


def _head(result: AttackResult, command: str, date: str) -> str:
    plan, promise = result.plan, result.plan.promise
    return f"""\
# Attacks on a plan

Made by the command below on {date} (Python {platform.python_version()}, numpy {np.__version__});
{result.entropy}. The code is in `holdfast.lab`; the same seed gives the same numbers.

```console
$ {command}
```

## The sign aggregator

Every run draws fresh blocks of independent fair signs, asks {result.analyst.features:,} yes/no
questions ("is the median of sign j low?", one look each), orients every sign as it was answered,
and asks one search for the median of the sum: {promise.looks:,} looks. The sum's law is binomial,
so the population rank of the answer is known exactly. A run fails if the rank of an answer is
outside ({plan.tail:g}, {1 - plan.tail:g}).

Both holdouts have the same {result.blocks:,} blocks, as many as the plan asks for at tail
{plan.tail:g} and confidence {promise.confidence:g} (steepest coin, Rényi order {plan.order:.3f},
budget {plan.budget:.4f}).

| holdout | runs | failed | failure rate, 95 % upper bound | allowed | most extreme rank |
|---|---|---|---|---|---|
{_cells("naive median", *_held(result, NAIVE, "–"))}
{_cells("Holdfast", *_held(result, HOLDFAST, f"{promise.failure:.4f}"))}

The upper bound is Clopper and Pearson's, one-sided.
"""


def _below(campaign: Campaign) -> str:
    plan, looks = campaign.main.plan, campaign.main.plan.promise.looks
    learnt = campaign.rows[0].persistent.analyst.features
    titles = (
        *("share of the plan", "blocks", "aggregator, naive", "aggregator, Holdfast"),
        *("its most extreme rank", "persistent, Holdfast"),
    )
    return f"""
## Below the planned size

The coin stays the one planned for {looks:,} looks and {plan.blocks:,} blocks; only the blocks
become fewer. The persistent analyst is the strongest attack on looks that we know: it spends
{learnt:,} looks to learn as the aggregator does, then asks {looks - learnt:,} times about events of
population tail at most {plan.tail:g}, chosen from what it learnt, and wins when one look slips. The
table has the failures of {campaign.main.runs:,} runs, and in brackets the 95 % upper bound of their
rate.

{_cells(*titles)}
|---|---|---|---|---|---|
{"".join(_row(row) for row in campaign.rows)}{_verdict(campaign)}"""


def _held(result: AttackResult, name: str, allowed: str) -> tuple[str, ...]:
    bound = f"{result.failure_bound(name):.4f}"
    return f"{result.runs:,}", f"{result.failures(name):,}", bound, allowed, _rank(result, name)


def _row(row: Row) -> str:
    cells = _cells(
        f"{row.fraction:g}",
        f"{row.aggregator.blocks:,}",
        f"{row.aggregator.failures(NAIVE):,}",
        _count(row.aggregator),
        _rank(row.aggregator, HOLDFAST),
        _count(row.persistent),
    )
    return f"{cells}\n"


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _count(result: AttackResult) -> str:
    return f"{result.failures(HOLDFAST):,} ({result.failure_bound(HOLDFAST):.4f})"


def _rank(result: AttackResult, name: str) -> str:
    rank = result.most_extreme(name)
    if 0.001 < rank < 0.999:
        return f"{rank:.3f}"
    tail = f"{min(rank, 1 - rank):.1e}" if 0 < rank < 1 else "less than 1e-16"
    return tail if rank < 0.5 else f"1 − {tail}"


def _verdict(campaign: Campaign) -> str:
    broken = [row.fraction for row in campaign.rows if row.persistent.broken(HOLDFAST)]
    if not broken:
        return "\nThe persistent analyst broke the promise at none of these sizes.\n"
    most = max(broken)
    return f"""
At {most:g} of the planned blocks the persistent analyst breaks the promise: more than
{campaign.main.plan.promise.failure:.2g} of its runs fail. So no proof, however clever, can certify
this coin for this promise on so few; the plan asks for {1 / most:.2f} times as many.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; exit status 4 if the evidence does not support the promise."""
    parser = argparse.ArgumentParser(prog="python -m holdfast.lab.attack", description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="runs of each attack")
    parser.add_argument("--questions", type=int, default=5_000, help="yes/no questions in a run")
    parser.add_argument("--tail", type=float, default=0.01)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--seed", type=int, help="repeatable, and not certified")
    parser.add_argument("--fractions", type=float, nargs="*", default=FRACTIONS, metavar="SHARE")
    parser.add_argument("--output", type=Path, help="the page to write; else standard output")
    given = sys.argv[1:] if arguments is None else list(arguments)
    chosen = parser.parse_args(given)
    campaign = run_campaign(
        chosen.runs,
        chosen.questions,
        seed=chosen.seed,
        tail=chosen.tail,
        confidence=chosen.confidence,
        fractions=chosen.fractions,
    )
    command = shlex.join(["python", "-m", "holdfast.lab.attack", *given])
    text = page(campaign, command, datetime.now(UTC).date().isoformat())
    if chosen.output is None:
        sys.stdout.write(text)
    else:
        chosen.output.write_text(text, "utf-8")
    return 0 if campaign.passed else 4
