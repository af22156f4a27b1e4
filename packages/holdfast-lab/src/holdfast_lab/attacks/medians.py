"""Many runs of one attack, on the naive median and on planned looks, over the same blocks.

plan_attack   the promise that covers every look of an analyst, and the coin that keeps it
run_attack    fresh blocks for every run; the most extreme population rank of its answers
"""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput, whole_number
from holdfast.randomness import SeededEntropy, system_entropy
from holdfast.theory.coins import Coin
from holdfast.theory.sizing import Promise, best_steepest
from holdfast_lab.attacks.conversation import interview
from holdfast_lab.attacks.signs import ExactMedian, Looks, SignAggregator, SignAnalyst
from holdfast_lab.statistics import failure_rate_bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NAIVE, HOLDFAST = "naive", "holdfast"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class AttackPlan:
    """A promise for every look of an attack, the blocks it needs, and the coin that keeps it."""

    promise: Promise
    blocks: int
    coin: Coin
    order: float
    budget: float

    @property
    def tail(self) -> float:
        """ρ: the promised interval of ranks is (ρ, 1 − ρ)."""
        return self.promise.tail_low


@lru_cache(maxsize=32)
def plan_attack(looks: int, tail: float = 0.01, confidence: float = 0.95) -> AttackPlan:
    """The fewest blocks on which that many looks keep the promise (theory.md §4, centred).

    An attack of one-look questions and a search counts looks: k questions on two points and one
    on r points are covered by a promise for k + ⌈log₂ r⌉ questions on two points.

    >>> plan_attack(10_000).blocks
    464
    """
    promise = Promise(looks, 2, tail, tail, confidence)
    sized = best_steepest(promise)
    if sized.coin is None:  # best_steepest always has one; the type also serves other methods
        raise AssertionError("steepest looks without a coin")
    order, budget, *_ = sized.parameters
    return AttackPlan(promise, sized.size.blocks, sized.coin, order, budget)


@dataclass(frozen=True, eq=False)
class AttackResult:
    """One attack, many runs: for each responder the most extreme rank of each run."""

    plan: AttackPlan
    analyst: SignAnalyst
    blocks: int
    seed: int | None
    ranks: Mapping[str, NDArray[np.float64]]

    @property
    def runs(self) -> int:
        """How many times the attack was run."""
        return min(ranks.size for ranks in self.ranks.values())

    @property
    def entropy(self) -> str:
        """Where the randomness came from, and what that means."""
        if self.seed is None:
            return "the operating system's entropy"
        return f"seeded ({self.seed}): no certificate"

    def outside(self, name: str) -> NDArray[np.bool_]:
        """Which runs had an answer that left the promised interval of ranks."""
        ranks, tail = self.ranks[name], self.plan.tail
        return (ranks <= tail) | (ranks >= 1 - tail)

    def failures(self, name: str) -> int:
        """How many did."""
        return int(np.count_nonzero(self.outside(name)))

    def failure_bound(self, name: str) -> float:
        """The 95 % Clopper–Pearson upper bound of the rate of failure."""
        return failure_rate_bound(self.failures(name), self.runs)

    def broken(self, name: str) -> bool:
        """Whether the rate of failure is above what is promised, with 95 % confidence."""
        kept = self.runs - self.failures(name)
        lower = 1 - failure_rate_bound(kept, self.runs)
        return lower > self.plan.promise.failure

    def most_extreme(self, name: str) -> float:
        """The rank farthest from 1/2."""
        ranks = self.ranks[name]
        return float(ranks[np.argmax(np.abs(ranks - 0.5))])

    def to_json(self) -> dict[str, object]:
        """Plain numbers: the plan, the runs and what came of them."""
        promise, plan = self.plan.promise, self.plan
        return {
            "looks": promise.looks,
            "tail": plan.tail,
            "confidence": promise.confidence,
            "order": plan.order,
            "budget": plan.budget,
            "blocks_planned": plan.blocks,
            "blocks": self.blocks,
            "runs": self.runs,
            "seed": self.seed,
            "certified": self.seed is None and self.blocks >= plan.blocks,
            "responders": {
                name: {
                    "failures": self.failures(name),
                    "failure_rate_bound": self.failure_bound(name),
                    "most_extreme_rank": self.most_extreme(name),
                    "ranks": ranks.tolist(),
                }
                for name, ranks in self.ranks.items()
            },
        }


def run_attack(
    analyst: SignAnalyst | None = None,
    *,
    runs: int = 100,
    blocks: int | None = None,
    tail: float = 0.01,
    confidence: float = 0.95,
    seed: int | None = None,
    against: Sequence[str] = (NAIVE, HOLDFAST),
    progress: Progress | None = None,
) -> AttackResult:
    """Fresh blocks and a new conversation in every run; both responders hold the same blocks.

    The coin is the one planned for the analyst's looks; `blocks` defaults to what that plan needs,
    and fewer show where the promise breaks.
    """
    analyst = SignAggregator() if analyst is None else analyst
    runs = whole_number("runs", runs, 1, 10**6)
    plan = plan_attack(analyst.looks, tail, confidence)
    blocks = plan.blocks if blocks is None else whole_number("blocks", blocks, 1, 10**6)
    if unknown := set(against) - {NAIVE, HOLDFAST}:
        raise InvalidInput("against", min(unknown), f"{NAIVE!r} or {HOLDFAST!r}")
    ranks = {name: np.empty(runs) for name in against}
    for run in range(runs):
        entropy = system_entropy() if seed is None else SeededEntropy((seed, run))
        sample = analyst.sample(blocks, entropy)
        for name in against:
            heard = interview(
                analyst, sample, (ExactMedian() if name == NAIVE else Looks(plan.coin, entropy))
            )
            if heard.looks > plan.promise.looks:
                given = f"the plan has {plan.promise.looks:,}"
                raise Infeasible(
                    "Looks", f"{heard.looks:,} looks", given, "Let the analyst count all its looks."
                )
            ranks[name][run] = heard.rank
        if progress is not None:
            progress(run + 1, runs)
    return AttackResult(plan, analyst, blocks, seed, ranks)


# `holdfast demo`: plan, attack the naive median and the planned looks, show who kept the promise.
#
# One picture and three lines; the plan above them, and where the picture is below.


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
        from holdfast_lab.figures import save_figure

        return save_figure(draw_attack(result), folder, _STEM)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        return []


def _to_standard_output(line: str) -> None:
    sys.stdout.write(f"{line}\n")


# The picture of an attack: the population rank of every run's answer, against the promise.
#
# Needs matplotlib (the extra `plot`), which is imported when a picture is drawn. Nothing here uses
# pyplot: no window, no global state.


# Okabe & Ito's palette: told apart by every kind of colour vision, and by lightness in grey.
_COLOURS = {NAIVE: "#D55E00", HOLDFAST: "#0072B2"}
_MARKERS = {NAIVE: "^", HOLDFAST: "o"}
_LABELS = {NAIVE: "Naive median", HOLDFAST: "Holdfast"}
_PROMISED = "#009E73"
_INK, _FAINT = "#222222", "#767676"
_DEEP, _SHALLOW = (
    1e-5,
    2e-3,
)  # tails that are shown: where marks are, and where none are
_TICKS = (0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)


def draw_attack(result: AttackResult) -> Figure:
    """A point per run and responder, on a logit scale; the promised interval is shaded."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    ranks = np.concatenate(list(result.ranks.values()))
    low = _DEEP if float(ranks.min()) < _SHALLOW else _SHALLOW
    high = 1 - (_DEEP if float(ranks.max()) > 1 - _SHALLOW else _SHALLOW)
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_yscale("logit")
    axes.set_ylim(low, high)
    axes.set_yticks(ticks)
    axes.set_yticklabels([f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.axhspan(result.plan.tail, 1 - result.plan.tail, color=_PROMISED, alpha=0.13, linewidth=0)
    for edge in (result.plan.tail, 1 - result.plan.tail):
        axes.axhline(edge, color=_PROMISED, linewidth=1.2)
    axes.text(
        0.5,  # between the two columns
        result.plan.tail * 1.2,
        f"promised: rank between {result.plan.tail:g} and {1 - result.plan.tail:g}",
        ha="center",
        va="bottom",
        color="#00664B",
        fontsize=10,
    )
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", colors=_FAINT)
    for column, name in enumerate(result.ranks):
        _column(axes, column, name, result)
    axes.set_xlim(-0.5, len(result.ranks) - 0.5)
    axes.set_xticks(range(len(result.ranks)))
    labels = [
        f"{_LABELS[name]}\n{result.failures(name):,} of {result.runs:,} runs outside"
        for name in result.ranks
    ]
    for name, text in zip(result.ranks, axes.set_xticklabels(labels, fontsize=13), strict=True):
        text.set_color(_COLOURS[name])
        text.set_fontweight("bold")
    axes.tick_params(axis="x", length=0, pad=8)
    looks, blocks = result.plan.promise.looks, result.blocks
    figure.suptitle(
        "One attack, the same blocks, two ways to answer",
        fontsize=14,
        fontweight="bold",
        color=_INK,
    )
    axes.set_title(
        f"{looks:,} looks on {blocks:,} blocks; the last question is made from all earlier answers",
        fontsize=10,
        color=_FAINT,
        pad=10,
    )
    axes.set_ylabel("population rank of the last answer", color=_INK, fontsize=11)
    figure.supxlabel(
        f"one mark per run, {result.runs:,} runs; {result.entropy}", fontsize=9, color=_FAINT
    )
    return figure


def _column(axes: Axes, column: int, name: str, result: AttackResult) -> None:
    ranks = np.clip(result.ranks[name], *axes.get_ylim())  # those beyond are drawn at the edge
    axes.scatter(
        column + (np.linspace(-0.22, 0.22, ranks.size) if ranks.size > 1 else np.zeros(1)),
        ranks,
        s=26,
        marker=_MARKERS[name],
        color=_COLOURS[name],
        alpha=0.65,
        linewidth=0,
        clip_on=False,
        zorder=3,
    )
