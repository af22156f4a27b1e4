"""`holdfast demo`: plan, attack the naive median and the planned looks, show who kept the promise.

One picture and three lines; the plan above them, and where the picture is below.
"""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from holdfast.lab.signs.analysts import SignAggregator
from holdfast.lab.signs.attack import HOLDFAST, NAIVE, AttackResult, Progress, run_attack

__all__ = ["demo_lines", "plan_lines", "run_demo"]

_STEM = "demo"
_NO_PICTURE = "none: matplotlib is not installed (pip install matplotlib)"


def run_demo(
    output_dir: str | Path,
    seed: int | None = None,
    runs: int = 100,
    json: bool = False,
    *,
    questions: int = 9_990,
    blocks: int | None = None,
    echo: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> AttackResult:
    """Run the attack, print what came of it, draw the picture into `output_dir`.

    `blocks` defaults to what the plan needs. Without matplotlib everything but the picture is
    there. With `json` one JSON object is printed instead of the text.
    """
    say = _to_standard_output if echo is None else echo
    result = run_attack(
        SignAggregator(questions), runs=runs, blocks=blocks, seed=seed, progress=progress
    )
    pictures = _draw(result, Path(output_dir))
    if json:
        shown = {**result.to_json(), "pictures": [str(path) for path in pictures]}
        say(json_format.dumps(shown))
        return result
    where = " and ".join(str(path) for path in pictures) or _NO_PICTURE
    for line in (*plan_lines(result), "", *demo_lines(result), "", f"Picture   {where}"):
        say(line)
    return result


def plan_lines(result: AttackResult) -> tuple[str, ...]:
    """What was planned, and what the attack is."""
    plan, promise, analyst = result.plan, result.plan.promise, result.analyst
    enough = "" if result.blocks >= plan.blocks else f", but {result.blocks:,} are used"
    search = promise.looks - analyst.features
    return (
        f"Plan      {analyst.features:,} yes/no questions and one search of {search} looks: "
        f"{promise.looks:,} looks need {plan.blocks:,} blocks{enough}",
        f"          (steepest coin, Rényi order {plan.order:.2f}, budget {plan.budget:.3f}, "
        f"tail {plan.tail:g}, confidence {promise.confidence:g})",
        f"Attack    {result.runs:,} runs, {result.entropy}; "
        "the last question adds up what the answers gave away",
    )


def demo_lines(result: AttackResult) -> tuple[str, str, str]:
    """Exactly three lines: the promise, and how each responder kept it."""
    tail, confidence = result.plan.tail, result.plan.promise.confidence
    return (
        f"Promise   every answer's population rank lies between {tail:g} and {1 - tail:g}, "
        f"with probability {confidence:g}",
        _kept("Naive     ", NAIVE, result),
        _kept("Holdfast  ", HOLDFAST, result)
        + f"; it fails in less than {_percent(result.failure_bound(HOLDFAST))} (95 % sure)",
    )


def _kept(label: str, name: str, result: AttackResult) -> str:
    ranks = result.ranks[name]
    low, high = _rank(float(np.min(ranks))), _rank(float(np.max(ranks)))
    outside = f"outside in {result.failures(name):,} of {result.runs:,} runs"
    return f"{label}{outside}: ranks {low} to {high}"


def _percent(share: float) -> str:
    """Rounded up: a bound stays one.

    >>> _percent(0.02951)
    '3.0 %'
    """
    return f"{np.ceil(1000 * share) / 10:.1f} %"


def _rank(rank: float) -> str:
    """Enough digits to tell a rank from 0 and from 1.

    >>> _rank(0.5), _rank(0.99987), _rank(1.0)
    ('0.50', '0.99987', '1')
    """
    side = min(rank, 1 - rank)
    if side < 1e-12:
        return f"{rank:.0f}"
    return f"{rank:.{max(2, 1 - int(np.floor(np.log10(side))))}f}"


def _draw(result: AttackResult, folder: Path) -> list[Path]:
    try:
        from holdfast.lab.signs.figures import draw_attack
        from holdfast.lab.style import save_figure

        return save_figure(draw_attack(result), folder, _STEM)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        return []


def _to_standard_output(line: str) -> None:
    sys.stdout.write(f"{line}\n")
