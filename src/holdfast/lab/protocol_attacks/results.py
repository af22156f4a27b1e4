"""Many runs of one attack, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from holdfast.errors import whole_number
from holdfast.lab.protocol_attacks.base import Attack, Run, Side
from holdfast.lab.protocol_attacks.correct import CorrectAttack
from holdfast.lab.protocol_attacks.fresh import RoundsAttack, SplitAttack
from holdfast.lab.protocol_attacks.guesses import OneSidedAttack, TwoSidedAttack
from holdfast.lab.protocol_attacks.intervals import IntervalAttack
from holdfast.lab.protocol_attacks.means import DirectMeanAttack, MedianMeanAttack
from holdfast.lab.protocol_attacks.mixture import MixtureAttack
from holdfast.lab.protocol_attacks.sample import Trial
from holdfast.lab.protocol_attacks.searches import AmplifiedAttack, EstimateAttack, SimpleAttack
from holdfast.lab.protocol_attacks.weights import WeightsAttack
from holdfast.lab.statistics import failure_rate_bound

__all__ = ["ATTACKS", "Result", "run_attack"]

ATTACKS: tuple[Attack, ...] = (
    EstimateAttack(),
    IntervalAttack(),
    MedianMeanAttack(),
    DirectMeanAttack(),
    OneSidedAttack(),
    TwoSidedAttack(),
    CorrectAttack(),
    RoundsAttack(),
    WeightsAttack(),
    SimpleAttack(),
    AmplifiedAttack(),
    SplitAttack(),
    MixtureAttack(),
)

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
