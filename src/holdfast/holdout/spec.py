"""What a holdout was created as: its plans and their blocks, its data, what was declared public.

It is the first row of the ledger. Protocols that share a budget share a set of blocks. Those that
answer exactly have blocks of their own, for nothing else about these may be seen. Sets are
disjoint; what they promise holds for all of them at once with probability at least 1 minus the sum
of their β.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.errors import Damaged, InvalidInput
from holdfast.holdout.public import checked_labels
from holdfast.holdout.submissions import Ids
from holdfast.holdout.universe import Cells, read_cells
from holdfast.protocols.answers import ROWS
from holdfast.protocols.base import VERBS, Protocol, Question, Verb
from holdfast.protocols.plans import Part, SetPlan, plan_from_dict
from holdfast.protocols.registry import PROTOCOLS, protocols_for
from holdfast.randomness import Entropy, SeededEntropy, system_entropy
from holdfast.store.blocks import Manifest

if TYPE_CHECKING:  # the planner is not needed to ask
    from holdfast.planning.plan import Plan

__all__ = [
    "FORMAT",
    "Answering",
    "AnyPlan",
    "BlockSet",
    "HoldoutSpec",
    "chosen_entropy",
    "joint_confidence",
    "read_sets",
    "sets_for",
]

FORMAT = 3
AnyPlan: TypeAlias = "Plan | SetPlan"


@dataclass(frozen=True)
class BlockSet:
    """One plan and the blocks first, …, first + blocks − 1 that it was made for."""

    name: str
    plan: SetPlan
    first: int

    @cached_property
    def blocks(self) -> int:
        """How many blocks the set has; sub-blocks, where the plan takes medians of them."""
        return int(self.plan.blocks * self.plan.subblocks)

    @property
    def failure(self) -> Fraction:
        """β: 1/20 for a confidence of 0.95, as written."""
        return 1 - Fraction(repr(float(self.plan.confidence)))

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        return {"name": self.name, "first": self.first, "plan": self.plan.kept()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BlockSet:
        """The set that `to_dict` wrote; its plan proves itself again."""
        return cls(str(data["name"]), plan_from_dict(data["plan"]), int(data["first"]))


Answering = tuple[BlockSet, Protocol[Any]]
"""Who answers one verb about one part of a plan, and the blocks that the plan is for."""


def sets_for(plans: AnyPlan | Iterable[AnyPlan]) -> tuple[BlockSet, ...]:
    """The sets that plans need, one after the other."""
    given: Sequence[object] = [*plans] if isinstance(plans, Iterable) else [plans]
    if not given:
        raise InvalidInput("plan", given, "at least one plan", "Make one with holdfast.plan(…).")
    made: list[BlockSet] = []
    first = 0
    for plan in given:
        kept = _checked(plan)
        if any(other.name == kept.set_name for other in made):
            hint = "Protocols that may share blocks belong into one plan: holdfast.joint_plan."
            raise InvalidInput("plan", kept.set_name, "given once for each kind", hint)
        made.append(BlockSet(kept.set_name, kept, first))
        first += made[-1].blocks
    joint_confidence(made)
    names = [name for each in made for name in each.plan.names]
    if len(set(names)) != len(names):
        hint = "A question names the part that it asks: give each a name of its own."
        raise InvalidInput("plan", names, "parts with different names", hint)
    return tuple(made)


def _checked(plan: object) -> SetPlan:
    if not hasattr(plan, "as_set"):
        hint = "Make one with holdfast.plan, holdfast.joint_plan or holdfast.planning."
        raise InvalidInput("plan", type(plan).__name__, "a plan", hint)
    made: SetPlan = plan.as_set()
    if not made.verify():
        raise InvalidInput("plan", made.blocks, "a plan that certifies itself", "Make it again.")
    return made


def read_sets(data: Sequence[Mapping[str, Any]], blocks: int) -> tuple[BlockSet, ...]:
    """The sets as they were written. No block may serve two of them: that would be two budgets."""
    sets = tuple(BlockSet.from_dict(each) for each in data)
    ends = accumulate((each.blocks for each in sets), initial=0)
    names = [each.name for each in sets]
    parts = [name for each in sets for name in each.plan.names]
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


@dataclass(frozen=True)
class HoldoutSpec:
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
    reading: str = ROWS
    """What scores of predictions by id are about, as the custodian chose."""
    split: str = "simple"
    """How the sealed rows were split off: at random, or class by class."""

    def __post_init__(self) -> None:
        """Known from the start: how sure all of it is together, and who answers what."""
        _ = self.confidence, self.answerable

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
    def has_budget(self) -> bool:
        """Whether anything is charged to a budget; what is told is not."""
        return any(each.plan.past() is None for each in self.sets)

    @cached_property
    def has_told(self) -> bool:
        """Whether anything is told, and counted in nats."""
        return any(each.plan.past() is not None for each in self.sets)

    @cached_property
    def parts(self) -> tuple[tuple[BlockSet, Part], ...]:
        """Everything that can be asked of it."""
        return tuple((each, part) for each in self.sets for part in each.plan.parts)

    @cached_property
    def by_name(self) -> dict[str, BlockSet]:
        """The sets by their names."""
        return {each.name: each for each in self.sets}

    @cached_property
    def answerable(self) -> dict[Verb, list[Answering]]:
        """For every verb who can answer it, of which set: the first choice first."""
        sets = {id(each.plan): each for each in self.sets}
        pairs = [(each.plan, part) for each, part in self.parts]
        units, sure, certified = self.manifest.block_units, self.confidence, self.seed is None
        return {
            verb: [
                (sets[id(plan)], kind(plan, part, units, sure, certified=certified))
                for kind, (plan, part) in protocols_for(verb, pairs)
            ]
            for verb in VERBS
        }

    def part_for(
        self, verb: Verb, protocol: str | None = None, *, one_sided: bool = True
    ) -> Answering:
        """The part named, or the best one for the verb: without `one_sided`, one for equalities."""
        able = self.answerable[verb]
        if protocol is not None:
            for each in able:
                if each[1].part.name == protocol:
                    return each
            names = ", ".join(answers.part.name for _, answers in able) or "none in this plan"
            raise InvalidInput("protocol", protocol, f"the name of a part that can {verb}: {names}")
        for each in able:  # of all parts, only those for guesses may have one side
            if one_sided or verb != "verify" or not each[1].part.one_sided:
                return each
        if able:
            return able[0]
        raise self._uncovered(verb)

    def _uncovered(self, verb: Verb) -> InvalidInput:
        """The refusal of a verb that nothing here answers."""
        able = [
            each
            for each, parts in self.answerable.items()
            if any(each != "verify" or answers.part.tells for _, answers in parts)
        ]
        allowed = f"one that can be asked here ({', '.join(able) or 'none'})"
        kinds = [kind for kind in PROTOCOLS if kind.verb == verb]
        kind = min(kinds, key=lambda kind: kind.told)  # by looks, where there is one
        needed = "score" if kind.told else kind.of[0]
        needed = "verify and estimate" if verb == "correct" else needed
        if not self.has_budget:
            hint = (
                f"{verb} needs a plan with {needed}, and this holdout has none: ask verify, and "
                "then ask(…) if the guess is not compatible."
            )
            return InvalidInput("question", verb, allowed, hint)
        planned = ", ".join(part.name for _, part in self.parts)
        hint = (
            f"{verb} needs a plan with {needed}, and this holdout was planned for {planned}. A "
            "plan is made before the data are sealed."
        )
        return InvalidInput("question", verb, allowed, hint)

    def protocol_of(self, set_name: str, question: Question) -> Protocol[Any]:
        """Who answers a question; a LookupError if nobody does."""
        for block_set, answers in self.answerable[question.verb]:
            if (block_set.name, answers.part.name) == (set_name, question.part):
                return answers
        raise LookupError(f"{question.verb} of {question.part}")

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
            "reading": self.reading,
            "split": self.split,
        }
        return data if self.ids is None else {**data, "ids": self.ids.to_dict()}

    @classmethod
    def from_dict(cls, identity: str, data: Mapping[str, Any]) -> HoldoutSpec:
        """What `to_dict` wrote; every plan proves itself again."""
        if data.get("format") != FORMAT:
            hint = f"Holdfast {data.get('holdfast')} made it: open it with that version."
            raise InvalidInput("holdout", data.get("format"), f"of format {FORMAT}", hint)
        manifest, universe = Manifest.from_dict(data["manifest"]), data["universe"]
        ids = data.get("ids")
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
            reading=str(data["reading"]),
            split=str(data["split"]),
        )


def chosen_entropy(seed: int | None, number: int) -> Entropy:
    """The operating system's; or, for a seeded holdout, one that depends on the draw's number."""
    if seed is None:
        return system_entropy()
    digest = hashlib.sha256(f"{seed} {number}".encode()).digest()
    return SeededEntropy(int.from_bytes(digest[:8], "big"))
