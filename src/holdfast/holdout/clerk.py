"""The clerk: makes a question of what people ask, and has it answered through the door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from holdfast.engines.open_blocks import open_blocks
from holdfast.engines.opening import check_engine, open_engines, open_store
from holdfast.engines.source import Engines, EngineSource, Limits, Progress
from holdfast.engines.store import known, remember, state_folder
from holdfast.errors import Damaged, HoldfastError, InvalidInput
from holdfast.grids import Grid
from holdfast.holdout.charter import Charter, chosen_entropy
from holdfast.holdout.default_grids import grid_between, grid_from_values, no_grid
from holdfast.holdout.desks import draw
from holdfast.holdout.door import Door, Learnt, Pace, Session
from holdfast.holdout.estimators import Asked, Estimator, asked_estimator, asked_mean
from holdfast.holdout.grants import Asker
from holdfast.holdout.offers import choose_offer, offers_of
from holdfast.holdout.questions import Question, Verb
from holdfast.holdout.records import Result
from holdfast.holdout.remaining import as_of_now
from holdfast.holdout.sets import BlockSet, Offer
from holdfast.holdout.worlds import World
from holdfast.ledger.interface import Ledger
from holdfast.ledger.opening import open_ledger
from holdfast.ledger.receipts import check_against
from holdfast.ledger.witness import Witness
from holdfast.planning.parts import DirectPart
from holdfast.planning.shapes import BoundedMean, Shape
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.asking import checked_grid, checked_shape
from holdfast.protocols.correct import Corrected

__all__ = ["HERE", "Clerk", "Place"]

_SHORT = 1_000  # characters of a text that is remembered: what it becomes is larger
_REMEMBERED = 512


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
            self.charter = _charter(ledger, witness)
            _recognise(self.charter, path.resolve())
        except BaseException:
            ledger.close()
            raise
        self.door = Door(ledger, witness, self.charter.sets)
        self.store = open_store(path, self.charter.manifest)
        self._engines = open_engines(self.store, limits, place.engine)
        self._open_engines: Engines | None = None
        cells = self.charter.cells
        self._world = None if cells is None else World(self.store, cells, limits)
        self._offers = offers_of(self.charter.sets)
        self._admitted: dict[tuple[str, bool], tuple[str, ...]] = {}
        # The same text is priced, asked on several grids, and verified: it is read once.
        self._remembered: dict[tuple[str, str | None], Asked] = {}

    def close(self) -> None:
        """End the workers and close the ledger."""
        for each in (self._engines, self._open_engines, self._world):
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

    def term(self, term: Estimator, where: object, columns: Sequence[str] | None) -> Asked:
        """A term of one unit, between 0 and 1."""
        return self._admit(asked_mean(term, self.charter.manifest, where, columns), rows=True)

    def _admit(self, asked: Asked, *, rows: bool) -> Asked:
        """Try Python on public blocks first; what that cannot prove is an assumption."""
        if not asked.local:
            return asked
        key = None if asked.identity is None else (asked.identity, rows)
        known = None if key is None else self._admitted.get(key)
        if known is None:
            functions = [each for each in (asked.estimator, asked.where) if each is not None]
            found = [self._engines.admit(each, rows=rows) for each in functions]
            known = tuple(dict.fromkeys(text for each in found for text in each))
            if key is not None:
                self._admitted[key] = known
        return replace(asked, assumptions=known)

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
            limits=self._engines.limits.told(),
            assumptions=assumptions,
            **more,
        )

    def _claimed(self, shape: Shape, asked: Asked) -> str:
        """What a caller's shape takes for granted; nothing here could check it."""
        checked_shape(shape)
        fixed = self.charter.manifest.one_row_units and "where" not in asked.about
        if isinstance(shape, BoundedMean) and not fixed:
            hint = "A block then has a random number of terms: leave shape out, or use mean(…)."
            raise InvalidInput("shape", shape, "left out with a filter or units of rows", hint)
        return f"the estimator is {shape.describe()}, and does not fail on a block"

    def _grid(self, verb: Verb, offer: Offer, asked: Asked, grid: Grid | None) -> Grid | None:
        given = None if grid is None else checked_grid(grid)
        if offer.protocol in ("rounds", "split") or isinstance(offer.part, DirectPart):
            return None  # they answer on no grid, or on their own: one given is no other question
        if given is not None or verb in ("verify", "mean"):
            return given
        found = self._default_grid(offer, asked)
        if found is None:
            raise no_grid()
        return found

    def _default_grid(self, offer: Offer, asked: Asked) -> Grid | None:
        points = int(getattr(offer.part or offer.set.plan, "grid", 32))
        if asked.range is not None:
            return grid_between(*asked.range, points)
        source = self._open_source()
        return None if source is None else grid_from_values(source.values(asked.estimator), points)

    def tolerance(self, offer: Offer, asked: Asked) -> float:
        """One step of the grid that the question would have had; 0 if it would have had none."""
        found = self._default_grid(offer, asked)
        return 0.0 if found is None or found.size < 2 else float(found.point(1) - found.point(0))

    def _open_source(self) -> EngineSource | None:
        store = open_blocks(self.store)
        if store is None:
            return None
        if self._open_engines is None:
            self._open_engines = Engines(store, self._engines.limits)
        return EngineSource(self._open_engines, 0, store.blocks)

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

        def drawn(session: Session) -> tuple[Result, Learnt | None]:
            self._engines.verify(self.charter.identity)
            seed = self.charter.seed
            entropy = chosen_entropy(seed, 0 if seed is None else self.door.ledger.head().number)
            source, before = self._source(offer.set, progress), self._learnt(offer)
            result, learnt = draw(offer, question, session, source, entropy, self._world, before)
            return self._promised(result, question), learnt

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

    def _promised(self, result: Result, question: Question) -> Result:
        """The promise of the whole holdout: for all sets at once, with every assumption named."""
        if isinstance(result, Corrected):
            verdict, correction = result.verdict, result.correction
            later = None if correction is None else self._promised(correction, question)
            made = cast(Verdict, self._promised(verdict, question))
            return Corrected(made, cast("Answer | None", later))
        promise = "; assuming that ".join([result.promise, *question.assumptions])
        sure = result.certified and self.charter.seed is None
        sure_of = self.charter.confidence
        return replace(result, confidence=sure_of, promise=promise, certified=sure)


def _recognise(charter: Charter, path: Path) -> None:
    """Refuse a ledger that took another's place; make sure that its data are known from now on."""
    fingerprint = charter.manifest.fingerprint
    for other in known(fingerprint):
        ours = other.holdout_id in (charter.identity, *charter.earlier)
        if other.path == path and not ours:
            expected, found = f"holdout {other.holdout_id}", f"holdout {charter.identity}"
            remedy = "Its ledger was written anew: put back the newest copy of the folder."
            raise Damaged(str(path), expected, found, remedy)
    remember(fingerprint, charter.identity, path)


def _charter(ledger: Ledger, witness: Witness) -> Charter:
    """What the holdout was created as, if its ledger is not older than one seen before."""
    seen = witness.last(ledger.holdout)
    if seen is not None:
        check_against(ledger, seen)
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
