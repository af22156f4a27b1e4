"""The charter: what a holdout was created as. It is the first row of its ledger."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from itertools import accumulate
from typing import Any

from holdfast.errors import Damaged, InvalidInput
from holdfast.holdout.labels import checked_labels
from holdfast.holdout.submissions import Ids
from holdfast.holdout.universe import Cells, read_cells
from holdfast.planning.exact import ExactCorrections, ExactEstimates, ExactVerdicts, ExactWeights
from holdfast.planning.joint import JointPlan, joint_from
from holdfast.planning.kept import KeptPlan, kept_dict, kept_plan
from holdfast.planning.parts import Part, WeightsPart
from holdfast.planning.plan import Plan
from holdfast.planning.rounds import RoundsPlan
from holdfast.planning.splits import SplitPlan, split_plan
from holdfast.randomness import Entropy, SeededEntropy, system_entropy
from holdfast.store.blocks import Manifest

__all__ = [
    "FORMAT",
    "BlockSet",
    "Charter",
    "Offer",
    "chosen_entropy",
    "joint_confidence",
    "planned_universes",
    "protocol_of",
    "read_sets",
    "sets_for",
]


# Sets: which blocks serve which plan.
#
# Protocols that share a budget share a set. Those that answer exactly have blocks of their own,
# for
# nothing else about these may be seen. Sets are disjoint; what they promise holds for all of them
# at
# once with probability at least 1 minus the sum of their β.


AnyPlan = Plan | KeptPlan


@dataclass(frozen=True)
class BlockSet:
    """One plan and the blocks first, …, first + blocks − 1 that it was made for."""

    name: str
    plan: KeptPlan
    first: int

    @property
    def blocks(self) -> int:
        """How many blocks the set has; sub-blocks, where the plan takes medians of them."""
        return self.plan.blocks * _subblocks(self.plan)

    @property
    def failure(self) -> Fraction:
        """β: 1/20 for a confidence of 0.95, as written."""
        return 1 - Fraction(repr(float(self.plan.confidence)))

    @property
    def protocols(self) -> tuple[str, ...]:
        """What can be asked of it, as the plan names it."""
        return self.plan.names if isinstance(self.plan, JointPlan) else (self.name,)

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        return {"name": self.name, "first": self.first, "plan": kept_dict(self.plan)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BlockSet:
        """The set that `to_dict` wrote; its plan proves itself again."""
        return cls(str(data["name"]), kept_plan(data["plan"]), int(data["first"]))


@dataclass(frozen=True)
class Offer:
    """One thing that can be asked: a part of a joint plan, or a plan of its own."""

    set: BlockSet
    part: Part | None

    @property
    def name(self) -> str:
        """How the user names it."""
        return self.set.name if self.part is None else self.part.name

    @property
    def protocol(self) -> str:
        """Its protocol."""
        return protocol_of(self.set.plan) if self.part is None else self.part.protocol


def protocol_of(plan: KeptPlan) -> str:
    """The protocol of a plan that is not joint."""
    if isinstance(plan, RoundsPlan):
        return "rounds"
    if isinstance(plan, SplitPlan):
        return "split"
    if isinstance(plan, ExactEstimates):
        return "exact"
    assert isinstance(plan, ExactVerdicts | ExactCorrections | ExactWeights)
    return f"exact-{plan.protocol}"


def planned_universes(plan: KeptPlan) -> tuple[int, ...]:
    """The numbers of blocks that weights were planned for; none if the plan has no weights."""
    if isinstance(plan, ExactWeights):
        return (plan.universe,)
    parts = plan.parts if isinstance(plan, JointPlan) else ()
    return tuple(part.universe for part in parts if isinstance(part, WeightsPart))


def _subblocks(plan: KeptPlan) -> int:
    return plan.subblocks if isinstance(plan, JointPlan) else 1


def sets_for(plans: AnyPlan | Iterable[AnyPlan]) -> tuple[BlockSet, ...]:
    """The sets that plans need, one after the other."""
    given: Sequence[object] = [*plans] if isinstance(plans, Iterable) else [plans]
    if not given:
        raise InvalidInput("plan", given, "at least one plan", "Make one with holdfast.plan(…).")
    made: list[BlockSet] = []
    first = 0
    for plan in given:
        kept = _checked(plan)
        name = _set_name(kept)
        if any(other.name == name for other in made):
            hint = "Protocols that may share blocks belong into one plan: holdfast.joint_plan."
            raise InvalidInput("plan", name, "given once for each kind", hint)
        made.append(BlockSet(name, kept, first))
        first += made[-1].blocks
    joint_confidence(made)
    names = [name for each in made for name in each.protocols]
    if len(set(names)) != len(names):
        hint = "A question names the part that it asks: give each a name of its own."
        raise InvalidInput("plan", names, "parts with different names", hint)
    return tuple(made)


def _set_name(plan: KeptPlan) -> str:
    """Plans of looks share the main set, unless their blocks are made of sub-blocks."""
    if isinstance(plan, ExactVerdicts) and plan.sides == 1:
        return "gate"
    if not isinstance(plan, JointPlan):
        return protocol_of(plan)
    return "main" if _subblocks(plan) == 1 else "amplified"


def _checked(plan: object) -> KeptPlan:
    if isinstance(plan, Plan) and plan.method == "split":
        return split_plan(plan.queries, plan.tail_low, plan.tail_high, plan.confidence)
    if isinstance(plan, Plan):
        return joint_from(plan)
    if not isinstance(plan, KeptPlan):
        hint = "Make one with holdfast.plan, holdfast.joint_plan or holdfast.planning."
        raise InvalidInput("plan", type(plan).__name__, "a plan", hint)
    if not plan.verify():
        raise InvalidInput("plan", plan.blocks, "a plan that certifies itself", "Make it again.")
    if isinstance(plan, RoundsPlan) and isinstance(plan.verification, JointPlan):
        hint = "Make it with rounds_plan(…, exact=True), or without --looks on the command line."
        raise InvalidInput("plan", "verification by looks", "rounds verified exactly", hint)
    return plan


def read_sets(data: Sequence[Mapping[str, Any]], blocks: int) -> tuple[BlockSet, ...]:
    """The sets as they were written. No block may serve two of them: that would be two budgets."""
    sets = tuple(BlockSet.from_dict(each) for each in data)
    ends = accumulate((each.blocks for each in sets), initial=0)
    names = [each.name for each in sets]
    parts = [name for each in sets for name in each.protocols]
    twice = len(set(names)) != len(names) or len(set(parts)) != len(parts)
    if [*(each.first for each in sets), blocks] != [*ends] or twice:
        found = ", ".join(f"{each.name} from {each.first:,}" for each in sets)
        remedy = "Ask nothing more of this holdout, and put back the newest copy of the folder."
        raise Damaged("The plan", f"disjoint sets of all {blocks:,} blocks", found, remedy)
    return sets


def joint_confidence(sets: Iterable[BlockSet]) -> float:
    """The confidence that holds for the promises of all sets at once."""
    together = 1 - sum((one.failure for one in sets), start=Fraction(0))
    if together <= 0:
        hint = "Plan each with a higher confidence: what they may fail adds up."
        raise InvalidInput("confidence", float(together), "above 0 for all plans together", hint)
    rounded = float(together)
    return rounded if Fraction(repr(rounded)) <= together else math.nextafter(rounded, 0.0)


FORMAT = 1


@dataclass(frozen=True)
class Charter:
    """What a holdout was created as: the first row of its ledger."""

    identity: str
    name: str
    manifest: Manifest
    sets: tuple[BlockSet, ...]
    ranges: Mapping[str, tuple[float, float]]
    cells: Cells | None
    target: str | None
    seed: int | None
    new_budget: str | None
    earlier: tuple[str, ...]
    ids: Ids | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[object, ...] | None = None
    """All labels that the target has, if they were declared."""

    @cached_property
    def values(self) -> Mapping[str, Sequence[object]]:
        """All values of columns for which they were declared."""
        values: dict[str, Sequence[object]] = {} if self.cells is None else {**self.cells.values}
        values |= self.categories
        column = None if self.target is None else self.manifest.schema.find(self.target)
        if column is not None and self.labels is not None:
            values[column.name] = self.labels
        return values

    def texts(self, column: str) -> Sequence[str] | None:
        """All that a column of texts is declared to be; None if nothing is declared."""
        values = self.values.get(column)
        return None if values is None else tuple(each for each in values if isinstance(each, str))

    @cached_property
    def confidence(self) -> float:
        """For all answers of all sets at once."""
        return joint_confidence(self.sets)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        data = {
            "format": FORMAT,
            "holdfast": version("holdfast"),
            "name": self.name,
            "manifest": self.manifest.to_dict(),
            "sets": [each.to_dict() for each in self.sets],
            "ranges": {name: list(pair) for name, pair in self.ranges.items()},
            "categories": {name: list(texts) for name, texts in self.categories.items()},
            "universe": None if self.cells is None else self.cells.to_dict(),
            "target": self.target,
            "labels": None if self.labels is None else list(self.labels),
            "seed": self.seed,
            "new_budget": self.new_budget,
            "earlier": list(self.earlier),
        }
        return data if self.ids is None else {**data, "ids": self.ids.to_dict()}

    @classmethod
    def from_dict(cls, identity: str, data: Mapping[str, Any]) -> Charter:
        """What `to_dict` wrote; every plan proves itself again."""
        if data.get("format") != FORMAT:
            hint = "Open it with the version of Holdfast that made it, or a newer one."
            raise InvalidInput("holdout", data.get("format"), f"of format {FORMAT}", hint)
        manifest, universe = Manifest.from_dict(data["manifest"]), data["universe"]
        ids = data.get("ids")  # holdouts without ids, and older ones, say nothing of them
        return cls(
            identity=identity,
            name=data["name"],
            manifest=manifest,
            sets=read_sets(data["sets"], manifest.blocks),
            ranges={name: (low, high) for name, (low, high) in data["ranges"].items()},
            cells=None if universe is None else read_cells(universe, manifest.schema),
            target=data["target"],
            seed=data["seed"],
            new_budget=data["new_budget"],
            earlier=tuple(data["earlier"]),
            ids=None if ids is None else Ids.from_dict(ids),
            categories={name: tuple(texts) for name, texts in data["categories"].items()},
            labels=checked_labels(data["labels"], data["target"], manifest.schema),
        )


def chosen_entropy(seed: int | None, number: int) -> Entropy:
    """The operating system's; or, for a seeded holdout, one that depends on the draw's number."""
    if seed is None:
        return system_entropy()
    digest = hashlib.sha256(f"{seed} {number}".encode()).digest()
    return SeededEntropy(int.from_bytes(digest[:8], "big"))
