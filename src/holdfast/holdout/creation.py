"""Creation: from a table and a plan to a sealed folder, all of it or nothing.

Everything is written into a folder beside the wanted one, synced, and renamed into place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.engines.source import check_engine
from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.holdout.charter import Charter
from holdfast.holdout.ids import write_ids
from holdfast.holdout.labels import check_open_part, checked_labels
from holdfast.holdout.preview import Preview, preview_of
from holdfast.holdout.sets import AnyPlan, BlockSet, planned_universes, sets_for
from holdfast.holdout.unfinished import folder_beside, remove_leftovers
from holdfast.holdout.worlds import Cells, check_cells, read_cells, world_size, write_world
from holdfast.ledger.opening import create_ledger, prepare_ledger
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts.direct import DirectPart
from holdfast.planning.shapes import BoundedMean
from holdfast.randomness import Entropy, SeededEntropy, system_entropy
from holdfast.store.blocks import BlockStore, Contents, write_contents
from holdfast.store.inputs import Input, open_input
from holdfast.store.sealing import split_units, write_store
from holdfast.store.table import Schema
from holdfast.store.user_state import forget, known, remember

if TYPE_CHECKING:
    from holdfast.engines.dask.sealing import ClusterInput

__all__ = ["create_holdout"]

Progress = Callable[[str, float], None]
PlanMaker = Callable[[int], AnyPlan | Iterable[AnyPlan]]


def create_holdout(
    path: Path,
    data: object,
    plan: AnyPlan | Iterable[AnyPlan] | PlanMaker,
    *,
    unit: str | None,
    ids: str | None = None,
    columns: Sequence[str] | None,
    open_fraction: float,
    block_units: int | None,
    ranges: Mapping[str, tuple[float, float]] | None,
    universe: Mapping[str, Sequence[object]] | None,
    target: str | None,
    labels: Sequence[object] | None = None,
    weight: str | None,
    name: str | None,
    new_budget: str | None,
    seed: int | None,
    memory_limit: str | None,
    threads: int | None,
    progress: Progress | None,
    review: Callable[[Preview], None] | None = None,
    ledger: str | None = None,
    engine: str | None = None,
    location: str | None = None,
    categories: Mapping[str, Sequence[str]] | None = None,
) -> Charter:
    """Seal the data under the plan; `plan` may also be a function of the number of units.

    `ledger` is the URL of a database; without it the ledger is a file in the folder. `engine` is
    the address of a cluster that does the work, and `location` where its shards go. `review` sees
    what the holdout is going to be before anything is sealed; what it raises stops the creation.
    """
    _refuse_weight(weight)
    _check_ids(ids, unit, target)
    _check_place(engine, location, universe)
    prepare_ledger(ledger)
    if path.exists():
        hint = "Choose another path, or open the holdout that is there."
        raise InvalidInput("path", str(path), "a path where nothing is yet", hint)
    reason = None if new_budget is None else _line("new_budget", new_budget, 500)
    title = _line("name", path.name.removesuffix(".holdfast") if name is None else name, 200)
    open_fraction = real_number("open_fraction", open_fraction, 0, 1, open_high=True)
    seed = None if seed is None else whole_number("seed", seed, 0, 2**64 - 1)
    entropy = system_entropy() if seed is None else SeededEntropy(seed)
    if location is not None:
        from holdfast.engines.dask.shuffle import check_location

        location = check_location(location)
    remove_leftovers(path, engine, location, progress)
    with folder_beside(path, _identity()[:16], engine, location) as folder:
        options = {
            "unit": unit,
            "ids": ids,
            "columns": columns,
            "memory_limit": memory_limit,
            "threads": threads,
            "progress": progress,
        }
        with _opened(data, folder, entropy, engine, location, options) as table:
            checked = _checked_ranges(ranges, table.schema)
            texts = _checked_categories(categories, table.schema)
            if target is not None and table.schema.find(target) is None:
                raise InvalidInput("target", target, f"one of {', '.join(table.schema.names[:20])}")
            listed = checked_labels(labels, target, table.schema)
            fingerprint = table.fingerprint()
            earlier = _earlier(fingerprint, reason)
            rows, units = table.count()
            named = None if table.ids is None else write_ids(folder, table, table.ids, rows)
            sealed = units - split_units(units, 1, open_fraction).open_units
            cells = None if universe is None else read_cells(universe, table.schema)
            sets = sets_for(plan(sealed) if callable(plan) else plan)
            _check_world(sets, cells, block_units)
            if cells is not None and unit is not None:
                hint = "Weights need to list all blocks, and units of several rows have no end."
                raise InvalidInput("universe", unit, "given where every row is a unit", hint)
            blocks = sum(each.blocks for each in sets)
            split = split_units(units, blocks, open_fraction, block_units)
            _check_units(sets, split.block_units)
            if review is not None:
                review(preview_of(sets, units, split))
            sizes = {"blocks": blocks, "open_fraction": open_fraction, "block_units": block_units}
            contents = _written(folder, table, entropy, progress, sizes)
        if target is not None:
            check_open_part(BlockStore(folder, contents), target, listed)
        if cells is not None:
            check_cells(BlockStore(folder, contents), cells)
            made = write_world(folder, cells, contents.block_units)
            contents = replace(contents, files=(*contents.files, made))
        write_contents(folder, contents)
        charter = Charter(
            identity=_identity(),
            name=title,
            manifest=contents.public,
            sets=sets,
            ranges=checked,
            cells=cells,
            target=target,
            seed=seed,
            new_budget=reason,
            earlier=earlier,
            ids=named,
            categories=texts,
            labels=listed,
        )
        _seal(folder, charter, ledger)
        # First: the folder does not tell of which data it was made, if nobody remembers.
        remember(charter.identity, path.resolve(), contents, fingerprint)
        try:
            folder.rename(path)
        except BaseException:
            forget(charter.identity)
            raise
    _sync(path.parent)
    return charter


def _check_world(sets: Iterable[BlockSet], cells: Cells | None, units: int | None) -> None:
    """Weights need a universe, and blocks of a size that is known before the plan is made."""
    planned = [size for each in sets for size in planned_universes(each.plan)]
    if cells is None or units is None:
        if planned:
            hint = "Say which values columns can have, and how many units a block has."
            raise InvalidInput("universe", None, "given with block_units for weights", hint)
        if cells is not None:
            raise InvalidInput("block_units", units, "given with a universe", "For instance 1.")
        return
    size = world_size(cells, units)
    for each in planned:
        if each != size:
            hint = "Plan weights for the universe that the values and block_units make."
            raise InvalidInput("universe", size, f"the {each:,} blocks of the plan", hint)


def _check_units(sets: Iterable[BlockSet], units: int) -> None:
    """Terms that are 0 or 1 on a unit are not so on average over several."""
    for each in sets:
        parts = each.plan.parts if isinstance(each.plan, JointPlan) else ()
        if units != 1 and any(isinstance(part, DirectPart) and part.exact for part in parts):
            hint = "Plan means with exact=False, or give block_units=1."
            raise InvalidInput("block_units", units, "1 for a plan of exact means", hint)


def _seal(folder: Path, charter: Charter, ledger: str | None) -> None:
    """The ledger, and everything on disk."""
    create_ledger(folder, ledger, charter.identity, charter.to_dict())
    _sync(folder)


def _opened(
    data: object,
    folder: Path,
    entropy: Entropy,
    engine: str | None,
    location: str | None,
    options: dict[str, Any],
) -> Input | ClusterInput:
    """The data, to be sealed on this machine or on a cluster."""
    if engine is None:
        return open_input(data, scratch=folder, **options)
    from holdfast.engines.dask.sealing import open_on_cluster

    return open_on_cluster(data, folder, engine, location, entropy, **options)


def _written(
    folder: Path,
    table: Input | ClusterInput,
    entropy: Entropy,
    progress: Progress | None,
    sizes: dict[str, Any],
) -> Contents:
    if isinstance(table, Input):
        return write_store(folder, table, entropy=entropy, progress=progress, **sizes)
    return table.write(**sizes)


def _identity() -> str:
    """128 bits that no other holdout has."""
    high, low = (int(word) for word in system_entropy().words(2))
    return f"{high:016x}{low:016x}"


def _earlier(fingerprint: str, reason: str | None) -> tuple[str, ...]:
    """Holdouts that were made of the same data; refused unless there is a reason."""
    earlier = tuple(each.holdout_id for each in known(fingerprint))
    if earlier and reason is None:
        hint = (
            "A second holdout of the same data is a second budget for the same units, and neither "
            "promise holds for both. If nothing of these data was ever asked, or you accept that, "
            "say why: new_budget='…' (--new-budget). The reason is shown in every report."
        )
        what = f"those of holdout {earlier[-1]}"
        raise InvalidInput("data", what, "data of which no holdout was made", hint)
    return earlier


def _line(parameter: str, given: object, longest: int) -> str:
    """One line of text that is safe to show: no control characters."""
    text = given.strip() if isinstance(given, str) else ""
    if not 1 <= len(text) <= longest or not text.isprintable():
        raise InvalidInput(parameter, given, f"1 to {longest} printable characters")
    return text


def _check_place(engine: str | None, location: str | None, universe: object) -> None:
    if check_engine(engine) is None:
        if location is not None:
            hint = "Give engine='dask://…'; on one machine the blocks stay in the folder."
            raise InvalidInput("location", location, "left out without a cluster", hint)
    elif universe is not None:
        hint = "Weights keep every block in the memory of one machine: create the holdout there."
        raise InvalidInput("universe", "one", "left out on a cluster", hint)


def _refuse_weight(weight: str | None) -> None:
    if weight is not None:
        hint = (
            "Every unit counts once: the promise is about units drawn alike. An estimator may "
            "weigh by a column itself: sum(w * x) / sum(w)."
        )
        raise InvalidInput("weight", weight, "left out", hint)


def _check_ids(ids: str | None, unit: str | None, target: str | None) -> None:
    if ids is not None and ids in (unit, target):
        hint = "Ids name rows. Where every row is a unit, leave unit out."
        raise InvalidInput("ids", ids, "another column than unit and target", hint)


def _checked_ranges(
    ranges: Mapping[str, tuple[float, float]] | None, schema: Schema
) -> dict[str, tuple[float, float]]:
    checked: dict[str, tuple[float, float]] = {}
    for name, pair in (ranges or {}).items():
        column = schema.find(name)
        if column is None or column.kind != "number":
            numbers = [each.name for each in schema.columns if each.kind == "number"]
            raise InvalidInput("ranges", name, f"a column of numbers: {', '.join(numbers[:20])}")
        try:
            low, high = pair
        except (TypeError, ValueError):
            raise InvalidInput("ranges", pair, f"a pair (low, high) for {name}") from None
        whole = BoundedMean(low, high)  # says what is wrong with the pair
        checked[column.name] = (float(whole.low), float(whole.high))
    return checked


def _checked_categories(
    categories: Mapping[str, Sequence[str]] | None, schema: Schema
) -> dict[str, tuple[str, ...]]:
    checked: dict[str, tuple[str, ...]] = {}
    for name, given in (categories or {}).items():
        column = schema.find(name)
        if column is None or column.kind != "text":
            named = [each.name for each in schema.columns if each.kind == "text"]
            allowed = f"a column of texts: {', '.join(named[:20]) or 'there is none'}"
            raise InvalidInput("categories", name, allowed)
        texts = () if isinstance(given, str) else tuple(given)
        if not texts or not all(isinstance(each, str) for each in texts):
            raise InvalidInput("categories", given, f"a list of all the texts that {name} can be")
        checked[column.name] = tuple(dict.fromkeys(texts))
    return checked


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
