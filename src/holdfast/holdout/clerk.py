"""The clerk: makes a question of what people ask, and has it answered through the door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.metrics import Labels
from holdfast.engines.source import (
    EngineSource,
    Limits,
    Progress,
    check_engine,
    open_engines,
    open_store,
)
from holdfast.errors import Damaged, HoldfastError, InvalidInput, Unavailable
from holdfast.grids import Grid
from holdfast.holdout.default_grids import finer_grid, grid_between, grid_from_values, no_grid
from holdfast.holdout.desks import draw
from holdfast.holdout.door import Door
from holdfast.holdout.doubts import Doubt, doubts_of, empty_blocks
from holdfast.holdout.estimators import Asked, Estimator, asked_estimator, asked_mean, is_within
from holdfast.holdout.grants import Asker
from holdfast.holdout.labels import public_labels
from holdfast.holdout.offers import choose_offer, offers_of
from holdfast.holdout.open_part import OpenPart
from holdfast.holdout.questions import Question, Verb, can_be_empty, notes, open_note
from holdfast.holdout.records import Result
from holdfast.holdout.remaining import as_of_now
from holdfast.holdout.sessions import Learnt, Pace, Session
from holdfast.holdout.spec import BlockSet, Charter, Offer, chosen_entropy
from holdfast.holdout.universe import World
from holdfast.ledger.ledger import Ledger, check_against
from holdfast.ledger.opening import open_ledger
from holdfast.ledger.witness import Witness
from holdfast.planning.parts import DirectPart, SearchPart
from holdfast.planning.shapes import BoundedMean, Shape
from holdfast.protocols.answers import Answer, Verdict, in_full, with_failures
from holdfast.protocols.base import checked_grid, checked_shape
from holdfast.protocols.guesses import Corrected
from holdfast.protocols.means import range_grid
from holdfast.protocols.source import UNIT, Bounds
from holdfast.store.user_state import recognise, state_folder

__all__ = ["HERE", "Clerk", "Place"]

_SHORT = 1_000  # characters of a text that is remembered: what it becomes is larger
_REMEMBERED = 512
_CLOSE = 1e-9  # of a range: what a mean's own rounding may pass it by
_FEW = 10_000  # values on open blocks that are remembered


@dataclass(frozen=True)
class Place:
    """Where the work is done: engine and ledger by their addresses; None: on this machine."""

    engine: str | None = None
    ledger: str | None = None


HERE = Place()


class Clerk:
    """A folder opened: its charter, its ledger's door, its blocks and their engines."""

    def __init__(self, path: Path, limits: Limits | None, place: Place = HERE) -> None:
        check_engine(place.engine)
        ledger = open_ledger(path, place.ledger)
        witness = Witness(state_folder() / "receipts")
        try:
            self.charter = charter = _charter(ledger, witness)
            self.store = open_store(path, charter.manifest)
            recognise(charter.identity, path.resolve(), self.store.manifest, charter.earlier)
        except BaseException:
            ledger.close()
            raise
        self.door = Door(ledger, witness, self.charter.sets)
        self.store.ranges, self.store.values = self.charter.ranges, self.charter.values
        self._engines = open_engines(self.store, limits, place.engine)
        self._open = OpenPart(self.store, self._engines.limits)
        cells = self.charter.cells
        self._world = None if cells is None else World(self.store, cells, limits)
        self._offers = offers_of(self.charter.sets)
        self._admitted: dict[tuple[str, bool, Bounds], tuple[str, ...]] = {}
        self._labels: dict[str, Labels] = {}
        # The same text is priced, asked on several grids, and verified: it is read once.
        self._remembered: dict[tuple[str, str | None], Asked] = {}
        self._open_values: dict[str | None, NDArray[np.float64]] = {}

    def close(self) -> None:
        """End the workers and close the ledger."""
        for each in (self._engines, self._open, self._world):
            if each is not None:
                each.close()
        self.door.ledger.close()

    @property
    def offers(self) -> tuple[Offer, ...]:
        """Everything that can be asked."""
        return self._offers

    def offer(self, verb: Verb, by: str | None, *, one_sided: bool = True) -> Offer:
        """The part of the plan that answers."""
        return choose_offer(self._offers, verb, by, one_sided=one_sided)

    def estimator(
        self, estimator: Estimator, where: str | None, options: Mapping[str, Any]
    ) -> Asked:
        """An estimator of one block, admitted."""
        text = isinstance(estimator, str) and (where is None or isinstance(where, str))
        if options or not text or len(str(estimator)) + len(where or "") > _SHORT:
            return self._read(estimator, where, options)
        key = (str(estimator), where)
        asked = self._remembered.get(key)
        if asked is None:
            asked = self._read(estimator, where, options)
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = asked
        return asked

    def _read(self, estimator: Estimator, where: str | None, options: Mapping[str, Any]) -> Asked:
        charter = self.charter
        asked = asked_estimator(estimator, charter.manifest, charter.ranges, where, options)
        return self._admit(asked, rows=False)

    def term(
        self,
        term: Estimator,
        where: object,
        columns: Sequence[str] | None,
        bounds: tuple[float, float] | None,
    ) -> Asked:
        """A term of one unit, and the range that its values are cut to, if they could leave it."""
        charter = self.charter
        asked = asked_mean(term, charter.manifest, charter.ranges, where, columns, bounds)
        return self._admit(asked, rows=True)

    def labels(self, target: str) -> Labels:
        """What is public of a target's labels: those declared, else those of the open part."""
        found = self._labels.get(target)
        if found is None:
            kind, values = self.charter.manifest.schema.kind(target), self.charter.values
            declared = (0.0, 1.0) if kind == "boolean" else values.get(target)
            found = public_labels(self.store, target, kind, declared)
            self._labels[target] = found
        return found

    def _admit(self, asked: Asked, *, rows: bool) -> Asked:
        """Try Python on public blocks first; what that cannot prove is an assumption."""
        if not asked.local:
            return asked
        self._check_order(asked)
        bounds = asked.range if rows and asked.range is not None else UNIT
        key = None if asked.identity is None else (asked.identity, rows, bounds)
        known = None if key is None else self._admitted.get(key)
        if known is None:
            functions = [(asked.estimator, bounds), (asked.where, UNIT)]
            found = [
                self._engines.admit(each, rows=rows, bounds=within)
                for each, within in functions
                if each is not None
            ]
            known = tuple(dict.fromkeys(text for each in found for text in each))
            if key is not None:
                self._admitted[key] = known
        return replace(asked, assumptions=known)

    def _check_order(self, asked: Asked) -> None:
        """Refuse predictions by place where it is not public how many rows there are."""
        by_place = getattr(asked.estimator, "rows", None) is not None
        unit = self.charter.manifest.unit_column
        if by_place and unit is not None and self.charter.ids is None:
            allowed = f"keyed by ids where rows of one {unit} are a unit"
            hint = "How many rows there are is sealed. Create the holdout with ids='COLUMN'."
            raise InvalidInput("predictions", "in the order of the rows", allowed, hint)

    def question(
        self,
        verb: Verb,
        offer: Offer,
        asked: Asked,
        *,
        grid: Grid | None = None,
        shape: Shape | None = None,
        **more: Any,
    ) -> Question:
        """The question that `answer` takes."""
        points = self._grid(verb, offer, asked, grid)
        assumptions = asked.assumptions
        if shape is not None:
            assumptions += (self._claimed(shape, asked),)
        elif verb in ("ask", "correct"):
            shape = asked.shape
        if self._world is not None and offer.protocol in ("weights", "exact-weights"):
            assumptions += self._world.admit(asked.estimator)
        return Question(
            verb,
            offer.name,
            asked.estimator,
            asked.identity,
            asked.about,
            where=asked.where,
            grid=points,
            shape=shape,
            range=asked.range if asked.cut else None,
            limits=self._engines.limits.told(),
            assumptions=assumptions,
            **more,
        )

    def _claimed(self, shape: Shape, asked: Asked) -> str:
        """What a caller's shape takes for granted; only open blocks can show that it is false."""
        checked_shape(shape)
        fixed = self.charter.manifest.one_row_units and "where" not in asked.about
        if isinstance(shape, BoundedMean) and not fixed:
            hint = "A block then has a random number of terms: leave shape out, or use mean(…)."
            raise InvalidInput("shape", shape, "left out with a filter or units of rows", hint)
        if isinstance(shape, BoundedMean):
            self._refuse_outside(shape, asked)
        return f"the estimator is {shape.describe()}, and does not fail on a block"

    def _refuse_outside(self, shape: BoundedMean, asked: Asked) -> None:
        """Refuse a range that the value may leave by its form, or leaves on an open block."""
        ends = (shape.low, shape.high)
        if not asked.local and not (asked.range and is_within(asked.range, ends)):
            hint = (
                "By its form and what is declared it may leave that. mean(term, range=(low, high)) "
                "cuts every term to a range, and says so; or declare the ranges of its columns at "
                "creation. Nothing was charged."
            )
            raise InvalidInput("shape", shape, "a range that holds the value on any block", hint)
        values, room = self._open.values(asked.estimator), _CLOSE * (shape.high - shape.low)
        if values is None:
            return
        out = values[(values < shape.low - room) | (values > shape.high + room)]
        if len(out):
            given = f"An open block gives {in_full(out[0])}."
            hint = f"{given} Name the ends of the terms, or use mean(…)."
            raise InvalidInput("shape", shape, "a range that holds all open blocks", hint)

    def _grid(self, verb: Verb, offer: Offer, asked: Asked, grid: Grid | None) -> Grid | None:
        given = None if grid is None else checked_grid(grid)
        if offer.protocol in ("rounds", "split") or isinstance(offer.part, DirectPart):
            return None  # they answer on no grid, or on their own: one given is no other question
        if verb == "mean" and given is None:
            assert isinstance(offer.part, SearchPart)
            range_grid(offer.part, asked.range or UNIT)  # a range may have too few floats for it
        if given is not None or verb in ("verify", "mean"):
            return given
        found = self._default_grid(offer, asked)
        if found is None:
            raise no_grid()
        return found

    def _default_grid(self, offer: Offer, asked: Asked) -> Grid | None:
        points = int(getattr(offer.part or offer.set.plan, "grid", 32))
        if asked.range is None:
            values = self._open.values(asked.estimator)
            return None if values is None else grid_from_values(values, points)
        if asked.local:  # a model may have been fitted to the open part, and be better there
            return grid_between(*asked.range, points)
        return finer_grid(*asked.range, self._open.values(asked.estimator), points)

    def tolerance(self, offer: Offer, asked: Asked) -> float:
        """One step of the grid that the question would have had; 0 if it would have had none."""
        found = self._default_grid(offer, asked)
        return 0.0 if found is None or found.size < 2 else float(found.point(1) - found.point(0))

    def doubts(self, asked: Asked, question: Question) -> tuple[Doubt, ...]:
        """What is public and speaks against a question."""
        return doubts_of(self.charter, self._open, asked, question)

    def open_values(self, question: Question) -> NDArray[np.float64] | None:
        """What the estimator gives on the open blocks, which anybody may see; None without any."""
        name = question.identity
        known = self._open_values.get(name)  # others may forget it meanwhile
        if known is not None:
            return known
        try:
            found = self._open.values(question.estimator)
        except HoldfastError:  # it adds something to an answer, and must never take it away
            return None
        if name is not None and found is not None and found.size <= _FEW:
            if len(self._open_values) >= _REMEMBERED:
                self._open_values.clear()
            self._open_values[name] = found
        return found

    def answer(
        self,
        offer: Offer,
        question: Question,
        request: str | None,
        progress: Progress | None,
        asker: Asker | None = None,
        pace: Pace | None = None,
    ) -> Result:
        """The recorded answer, or a new one."""
        seen = self._seen(question)  # before anything is charged

        def drawn(session: Session) -> tuple[Result, Learnt | None]:
            self._engines.verify(self.charter.identity)
            seed = self.charter.seed
            entropy = chosen_entropy(seed, 0 if seed is None else self.door.ledger.head().number)
            source, before = self._source(offer.set, progress), self._learnt(offer)
            try:
                result, learnt = draw(
                    offer, question, session, source, entropy, self._world, before
                )
            except InvalidInput:
                if not session.charged:
                    raise
                # After the draw its words would depend on the data, and be in no ledger.
                fault = "This is a fault of Holdfast: please report the question."
                raise Unavailable("Answering", "an answer", "there is none", fault) from None
            return self._promised(result, offer, question, seen), learnt

        result = self.door.answer(question, offer.set, request, asker, pace, drawn)
        cached = result.verdict.cached if isinstance(result, Corrected) else result.cached
        return self.door.read(partial(as_of_now, result, offer)) if cached else result

    def _learnt(self, offer: Offer) -> tuple[Learnt, ...]:
        """What weights have been taught so far; only a plan with a world has any."""
        if self._world is None:
            return ()
        place = (offer.set.name, offer.name)
        return self.door.read(lambda books: tuple(books.learnt.get(place, ())))

    def _source(self, block_set: BlockSet, progress: Progress | None) -> EngineSource:
        first = block_set.first
        return EngineSource(self._engines, first, first + block_set.blocks, progress)

    def _seen(self, question: Question) -> str:
        """What the open part says of blocks that a filter leaves empty."""
        if not can_be_empty(question.to_dict(), self.charter.manifest.schema):
            return ""
        counted = empty_blocks(self._open, question)
        return "" if counted is None else open_note(*counted)

    def _promised(self, result: Result, offer: Offer, question: Question, seen: str) -> Result:
        """The promise of the whole holdout: for all sets at once, with every assumption named."""
        if isinstance(result, Corrected):
            verdict, correction = result.verdict, result.correction
            later = None
            if correction is not None:
                later = self._promised(correction, offer, question, seen)
            made = cast(Verdict, self._promised(verdict, offer, question, seen))
            return Corrected(made, cast("Answer | None", later))
        plan, schema = offer.set.plan, self.charter.manifest.schema
        value = isinstance(result, Answer)
        told = result.promise
        if question.failures and question.verb != "mean":  # a mean's promise has them already
            told = with_failures(told, question.failures)
        told += notes(question.to_dict(), plan, schema, value=value) + seen
        promise = "; assuming that ".join([told, *question.assumptions])
        sure = result.certified and self.charter.seed is None
        sure_of, reading = self.charter.confidence, question.reading
        return replace(result, confidence=sure_of, promise=promise, certified=sure, reading=reading)


def _charter(ledger: Ledger, witness: Witness) -> Charter:
    """What the holdout was created as, if its ledger is not older than one seen before."""
    seen = witness.last(ledger.holdout)
    if seen is not None:
        check_against(ledger, seen)
    witness.see(ledger.head())  # what is shown from now on is not from an older one
    first = ledger.row(1)
    assert first is not None  # a ledger is created with its first row
    try:
        return Charter.from_dict(ledger.holdout, first.body)
    except HoldfastError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as wrong:
        remedy = "Put back the newest copy of the folder, and check it against the last receipt."
        what, expected = "The ledger's first row", "what the holdout was created as"
        raise Damaged(what, expected, repr(wrong), remedy) from wrong
