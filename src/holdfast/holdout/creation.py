"""Creation: from a table and a plan to a sealed folder, all of it or nothing.

Everything is written into a folder beside the wanted one, synced, and renamed into place.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.engines.source import check_engine
from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.holdout.public import check_open_part, checked_labels
from holdfast.holdout.spec import AnyPlan, BlockSet, HoldoutSpec, sets_for
from holdfast.holdout.submissions import write_ids
from holdfast.holdout.universe import Cells, check_cells, read_cells, world_size, write_world
from holdfast.ledger.opening import create_ledger, has_ledger, prepare_ledger
from holdfast.protocols.answers import ROWS, RULE
from holdfast.protocols.shapes import BoundedMean
from holdfast.protocols.told import bars_table, told_plan
from holdfast.randomness import Entropy, SeededEntropy, system_entropy
from holdfast.store.blocks import (
    BlockStore,
    Contents,
    NotOwnError,
    opened_own,
    own_folder,
    remove_in,
    sync_folder,
    write_contents,
)
from holdfast.store.inputs import Input, open_input
from holdfast.store.sealing import UnitSplit, split_units, write_store
from holdfast.store.table import Schema
from holdfast.store.user_state import forget, known, remember

if TYPE_CHECKING:
    from holdfast.engines.dask.sealing import ClusterInput

__all__ = [
    "OPEN_FRACTION",
    "SPLITS",
    "PartPreview",
    "Preview",
    "create_holdout",
    "folder_beside",
    "preview_of",
    "preview_without_plan",
    "remove_leftovers",
]


# A folder in which a holdout is being made, and what is left of one that was never finished.
#
#     .study.holdfast.creating-0123456789abcdef/
#         creating.json   locked by whoever makes the holdout: where else its files are
#
# When the note is there and nobody holds its lock, its process has died. The next creation at the
# same path then removes the folder, and what is elsewhere: under the location, in a folder of this
# creation's own. A folder that has had no note for minutes never got one.
#
# Others may be able to write where the holdout is to be, and to put such a folder there. So nothing
# is done to one that is not this account's own, and nothing is done because a note says so: what it
# says is compared with what the present creation was told, and if it differs, a person has to look.


_NOTE = "creating.json"
_DRAFT = f"{_NOTE}.draft"
_NOTE_BYTES = 2**16
_NOTE_SECONDS = 600.0  # until a folder surely has its note
_REMOVED = "removing what an interrupted creation left"
_TRIES, _PAUSE = 50, 0.1  # a worker that writes its last file may be in the way


@contextmanager
def folder_beside(
    path: Path, identity: str, engine: str | None, location: str | None
) -> Iterator[Path]:
    """A new folder on the same disk, to be renamed; after an error it is removed.

    So is all that is in it, and what a creation on a cluster has written under `location`. Its name
    ends with `identity`, 16 hexadecimal digits.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.with_name(f".{path.name}.creating-{identity}")
    folder.mkdir(mode=0o700)
    draft = folder / _DRAFT
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, _written(engine, location))
        os.fsync(descriptor)
        draft.rename(folder / _NOTE)  # under its name it is whole, and locked
        yield folder
        # After the rename: until then, whoever comes next has to know what to remove.
        (path / _NOTE).unlink(missing_ok=True)
    except BaseException:
        with suppress(Exception), own_folder(folder) as place:  # what remains, the next removes
            if (folder / _NOTE).exists():
                _discard(folder, place, engine, location)
            else:
                _discard_unnoted(folder, place)
        raise
    finally:
        os.close(descriptor)


def remove_leftovers(
    path: Path,
    engine: str | None,
    location: str | None,
    progress: Callable[[str, float], None] | None,
) -> None:
    """Remove what creations at this path have left that were killed.

    Only what this account made, for this engine and location; a warning names what is left alone.
    """
    ours = re.compile(rf"\.{re.escape(path.name)}\.creating-[0-9a-f]{{16}}")
    for folder in sorted(path.parent.glob(".*.creating-*")):
        if not ours.fullmatch(folder.name):
            continue
        try:
            with own_folder(folder) as place:
                _remove_leftover(folder, place, engine, location, progress)
        except FileNotFoundError:  # another one has just removed it
            continue
        except NotOwnError as reason:
            text = f"{folder} was left alone: {reason} If it is no longer needed, remove it."
            warnings.warn(text, stacklevel=2)


def _remove_leftover(
    folder: Path,
    place: int,
    engine: str | None,
    location: str | None,
    progress: Callable[[str, float], None] | None,
) -> None:
    try:
        # To be written, though nothing is: some network disks give no other an exclusive lock.
        descriptor = opened_own(place, _NOTE)
    except FileNotFoundError:
        if time.time() - os.fstat(place).st_mtime > _NOTE_SECONDS:
            _discard_unnoted(folder, place)
        return
    with os.fdopen(descriptor, "r+b", buffering=0) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # it is being made now
            return
        said = _named(stream.read(_NOTE_BYTES), engine, location)
        if progress is not None:
            progress(_REMOVED, 0.0)
        _discard(folder, place, *said)
        if progress is not None:
            progress(_REMOVED, 1.0)


def _written(engine: str | None, location: str | None) -> bytes:
    return json.dumps({"engine": engine, "location": location}).encode("utf-8")


def _named(text: bytes, engine: str | None, location: str | None) -> tuple[str | None, str | None]:
    """Engine and location of the note: none, or those of this creation."""
    for each in ((None, None), (engine, location)):
        if text == _written(*each):
            return each
    try:
        note = json.loads(text)
        said = f"{note['engine']!r:.200} and {note['location']!r:.200}"
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NotOwnError(f"its {_NOTE} is not whole.") from None
    raise NotOwnError(f"its {_NOTE} speaks of another engine and location, {said}.")


def _discard_unnoted(folder: Path, place: int) -> None:
    """Remove a folder whose process was killed before its note was there, or after."""
    with suppress(OSError):  # gone, or there is something in it of which nothing is known
        with suppress(FileNotFoundError):
            os.unlink(_DRAFT, dir_fd=place)
        folder.rmdir()


def _discard(folder: Path, place: int, engine: str | None, location: str | None) -> None:
    if engine is not None:
        from holdfast.engines.dask.sealing import give_up

        give_up(engine, folder, location)
    for _ in range(_TRIES):
        remove_in(place, _NOTE)  # which goes last: as long as anything is there, somebody knows
        with suppress(OSError):
            with suppress(FileNotFoundError):
                os.unlink(_NOTE, dir_fd=place)
            folder.rmdir()
            return
        time.sleep(_PAUSE)


# What a holdout is going to be: how large its blocks are, what is left over, what bars to expect.
#
# All of it follows from the plan and the number of units: it is known before anything is sealed.


_EXPECTED = (
    "Bars to expect about a share near 0.9, such as an accuracy, that you guess about right (a "
    "guess that is off is a surprise):"
)


@dataclass(frozen=True)
class PartPreview:
    """What one part of the plan will be worth."""

    name: str
    questions: int
    half_width: float | None
    """Of the widest bar around a share of units; None where there is none, or it says nothing."""
    words: str
    bars: tuple[dict[str, Any], ...] = ()
    """Half-widths by how many questions were asked and how many surprised, for what is told."""


@dataclass(frozen=True)
class Preview:
    """A holdout before it is sealed."""

    units: int
    blocks: int
    block_units: int
    open_units: int
    leftover_units: int
    parts: tuple[PartPreview, ...]

    @property
    def mostly_left_over(self) -> bool:
        """Whether more of the units outside of the open part are thrown away than are used."""
        return self.leftover_units > self.blocks * self.block_units

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text."""
        return asdict(self)

    def __str__(self) -> str:
        units = "unit" if self.block_units == 1 else "units"
        lines = [
            f"{self.blocks:,} blocks of {self.block_units:,} {units}: of {self.units:,} units "
            f"{self.open_units:,} stay open and {self.leftover_units:,} are left over, never used"
        ]
        if all(part.bars for part in self.parts):  # blocks are of no interest then
            sealed = f"{self.blocks * self.block_units:,} of {self.units:,} units are sealed"
            kept = f"{self.open_units:,} stay open, to look at and to guess from"
            left = self.leftover_units
            over = f"; {left:,} {'is' if left == 1 else 'are'} left over, never used"
            lines = [
                f"{sealed}; {kept if self.open_units else 'none stays open'}{over if left else ''}"
            ]
        for part in self.parts:
            if part.bars:
                lines += [_EXPECTED, *bars_table(part.bars)]
                continue
            asked = "1 question" if part.questions == 1 else f"{part.questions:,} questions"
            lines.append(f"  {part.name:<15}{asked:<18}{part.words}")
        return "\n".join(lines)


def preview_of(sets: Iterable[BlockSet], units: int, split: UnitSplit) -> Preview:
    """What units, cut like this, will be under these plans.

    >>> from holdfast.store.sealing import split_units
    >>> from holdfast.holdout.spec import sets_for
    >>> from holdfast.protocols.split import split_plan
    >>> sets = sets_for(split_plan(20, tail_low=0.1, tail_high=0.1))
    >>> print(preview_of(sets, 10_000, split_units(10_000, sets[0].blocks)))
    180 blocks of 55 units: of 10,000 units 0 stay open and 100 are left over, never used
      split          20 questions      a share of units within ±0.15 or less
    """
    units_each, parts = split.block_units, []
    for each in sets:
        for part in each.plan.parts:
            width, words = part.preview(each.plan, units_each)
            bars = part.forecast(units_each, split.open_units)
            parts.append(PartPreview(part.name, part.queries, width, words, bars))
    sizes = split.blocks, split.block_units, split.open_units, split.leftover_units
    return Preview(units, *sizes, tuple(parts))


def preview_without_plan(
    units: int, queries: int | None = None, confidence: float = 0.95
) -> Preview:
    """What so many units will be if no plan is made.

    >>> print(str(preview_without_plan(10_000)).splitlines()[0])
    6,000 of 10,000 units are sealed; 4,000 stay open, to look at and to guess from
    """
    units = whole_number("rows", units, 2, 10**12)
    sealed = units - split_units(units, 1, OPEN_FRACTION).open_units
    expected = 0 if queries is None else whole_number("queries", queries, 1, 10**9)
    sets = sets_for(told_plan(sealed, confidence, queries=expected))
    return preview_of(sets, units, split_units(units, sets[0].blocks, OPEN_FRACTION))


OPEN_FRACTION = 0.4
"""Of the units, where there is no plan: the best for answers that a guess from them confirms."""
SPLITS = ("simple", "stratified")
_READINGS = {"rows": ROWS, "rule": RULE}

Progress = Callable[[str, float], None]
PlanMaker: TypeAlias = "Callable[[int], AnyPlan | Iterable[AnyPlan]]"


def create_holdout(
    path: Path,
    data: object,
    plan: AnyPlan | Iterable[AnyPlan] | PlanMaker | None,
    *,
    unit: str | None,
    ids: str | None = None,
    columns: Sequence[str] | None,
    open_fraction: float | None,
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
    queries: int | None = None,
    confidence: float = 0.95,
    reading: str = "rows",
    split: str = "simple",
) -> HoldoutSpec:
    """Seal the data under the plan; `plan` may also be a function of the number of units.

    Without a plan all sealed units are for what is told, and `queries` and `confidence` are its.

    `ledger` is the URL of a database; without it the ledger is a file in the folder. `engine` is
    the address of a cluster that does the work, and `location` where its shards go. `review` sees
    what the holdout is going to be before anything is sealed; what it raises stops the creation.
    """
    _refuse_weight(weight)
    _check_ids(ids, unit, target)
    _check_place(engine, location, universe)
    prepare_ledger(ledger)
    _check_free(path)
    reason = None if new_budget is None else _line("new_budget", new_budget, 500)
    title = _line("name", path.name.removesuffix(".holdfast") if name is None else name, 200)
    plan, open_fraction = _planned(plan, open_fraction, queries, confidence)
    for parameter, given, allowed in (("reading", reading, _READINGS), ("split", split, SPLITS)):
        if given not in allowed:
            raise InvalidInput(parameter, given, f"one of {', '.join(allowed)}")
    seed = None if seed is None else whole_number("seed", seed, 0, 2**64 - 1)
    entropy = system_entropy() if seed is None else SeededEntropy(seed)
    if location is not None:
        from holdfast.engines.dask.shuffle import check_location

        location = check_location(location)
    remove_leftovers(path, engine, location, progress)
    with folder_beside(path, _identity()[:16], engine, location) as folder:
        options: dict[str, Any] = {"unit": unit, "ids": ids, "columns": columns}
        options |= {"memory_limit": memory_limit, "threads": threads, "progress": progress}
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
            cut = split_units(units, blocks, open_fraction, block_units)
            _check_units(sets, cut.block_units)
            if review is not None:
                review(preview_of(sets, units, cut))
            sizes = {"blocks": blocks, "open_fraction": open_fraction, "block_units": block_units}
            contents = _creation_written(folder, table, entropy, progress, sizes)
        if target is not None:
            check_open_part(BlockStore(folder, contents), target, listed)
        if cells is not None:
            check_cells(BlockStore(folder, contents), cells)
            made = write_world(folder, cells, contents.block_units)
            contents = replace(contents, files=(*contents.files, made))
        write_contents(folder, contents)
        spec = HoldoutSpec(
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
            reading=_READINGS[reading],
            split=split,
        )
        create_ledger(folder, ledger, spec.identity, spec.to_dict())
        sync_folder(folder)
        # First: the folder does not tell of which data it was made, if nobody remembers.
        remember(spec.identity, path.resolve(), contents, fingerprint)
        try:
            folder.rename(path)
        except BaseException:
            forget(spec.identity)
            raise
    sync_folder(path.parent)
    return spec


def _check_free(path: Path) -> None:
    if path.exists():
        hint = "Choose another path, or open the holdout that is there."
        raise InvalidInput("path", str(path), "a path where nothing is yet", hint)


def _planned(
    plan: Any, open_fraction: float | None, queries: int | None, confidence: float
) -> tuple[Any, float]:
    """The plan, or what is told over all sealed units; and how much stays open."""
    share = OPEN_FRACTION if plan is None else 0.0
    share = real_number(
        "open_fraction", share if open_fraction is None else open_fraction, 0, 1, open_high=True
    )
    if plan is not None:
        if queries is not None:
            raise InvalidInput("queries", queries, "left out with a plan, which has its own")
        return plan, share
    expected = 0 if queries is None else whole_number("queries", queries, 1, 10**9)
    return lambda units: told_plan(units, confidence, queries=expected), share


def _check_world(sets: Iterable[BlockSet], cells: Cells | None, units: int | None) -> None:
    """Weights need a universe, and blocks of a size that is known before the plan is made."""
    planned = [size for each in sets for size in each.plan.universes]
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
        if units != 1 and any(getattr(part, "exact", False) for part in each.plan.parts):
            hint = "Plan means with exact=False, or give block_units=1."
            raise InvalidInput("block_units", units, "1 for a plan of exact means", hint)


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


def _creation_written(
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
    found = known(fingerprint)
    earlier = tuple(each.holdout_id for each in found)
    if found and reason is None:
        last = found[-1]
        there = f"it was at {last.path}"
        if has_ledger(last.path):
            there = f"open it by holdfast.Holdout.open({str(last.path)!r})"
        hint = (
            f"That was made on {last.date[:10]}: {there}. "
            "A second holdout of the same data is a second budget for the same units, and neither "
            "promise holds for both. If nothing of these data was ever asked, or you accept that, "
            "say why: new_budget='…' (--new-budget). The reason is shown in every report."
        )
        what = f"those of {last.path.name}"
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
