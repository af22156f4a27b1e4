"""The charter: what a holdout was created as. It is the first row of its ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.holdout.ids import Ids
from holdfast.holdout.labels import checked_labels
from holdfast.holdout.sets import BlockSet, joint_confidence, read_sets
from holdfast.holdout.worlds import Cells, read_cells
from holdfast.randomness import Entropy, SeededEntropy, system_entropy
from holdfast.store.blocks import Manifest

__all__ = ["FORMAT", "Charter", "chosen_entropy"]

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
