"""Answering: an opened holdout, and the one straight line that every question takes.

    1. lock      the question (and its request key), against every other thread and process
    2. known?    a recorded answer is returned, free; a request key that paid names one question
    3. reserve   the worst case is charged in one transaction with the check that it fits
    4. draw      the estimator is evaluated and the coins are flipped
    5. record    what was drawn and what it cost in one transaction; only then is it shown

Whatever happens between 3 and 5, a crash, a signal, a full disk, leaves the worst case charged and
the answer unseen. Asked again, the question is drawn anew and charged again: nobody saw the first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.estimator import ASSUMPTION_PREDICTIONS
from holdfast.engines.python.metrics import Labels
from holdfast.engines.source import (
    Engines,
    Limits,
    Progress,
    check_engine,
    open_engines,
    open_store,
)
from holdfast.errors import (
    Damaged,
    Exhausted,
    HoldfastError,
    InvalidInput,
    Unavailable,
    real_number,
)
from holdfast.grids import Grid
from holdfast.holdout.doubts import Doubt, doubts_of, empty_blocks
from holdfast.holdout.public import (
    OpenPart,
    finer_grid,
    grid_between,
    grid_from_values,
    no_grid,
    public_labels,
)
from holdfast.holdout.questions import (
    Asked,
    Estimand,
    Estimator,
    estimand_of_block,
    estimand_of_rows,
    same_number,
)
from holdfast.holdout.records import (
    answer_in,
    answer_of,
    assumed_codes,
    can_be_empty,
    claim_words,
    marked,
    row_facts,
)
from holdfast.holdout.spec import Answering, BlockSet, HoldoutSpec, chosen_entropy
from holdfast.holdout.state import HoldoutState, Journal, SetState
from holdfast.holdout.tokens import Asker
from holdfast.holdout.universe import World
from holdfast.ledger.ledger import Hold, Ledger, Row, Transaction, check_against
from holdfast.ledger.opening import open_ledger
from holdfast.ledger.witness import Witness
from holdfast.protocols.answers import (
    AT_SHARES,
    ROWS,
    Result,
    Told,
    at_least,
    bar_ends,
    in_full,
    number,
    rounded_up,
)
from holdfast.protocols.base import (
    Drawn,
    Paid,
    PastTold,
    Places,
    Question,
    Reserve,
    Step,
    Steps,
    Sums,
    Terms,
    Values,
    Verb,
    checked_claim,
    checked_grid,
    checked_shape,
    paid,
)
from holdfast.protocols.base import Protocol as Answers
from holdfast.protocols.plans import Account, Charge, Part
from holdfast.protocols.shapes import BoundedMean, Shape
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds, is_within
from holdfast.protocols.told import Expects, Past, forecast, law_of_question
from holdfast.store.user_state import recognise, state_folder

__all__ = [
    "HERE",
    "Backends",
    "OpenHoldout",
    "Pace",
    "Price",
    "ToldPrice",
    "found_by",
    "price_of",
    "refuse_told",
]


class Pace(Protocol):
    """How a server hides from one asker how long the evaluation of one question took."""

    def admit(self, asked: Asked) -> None:
        """Refuse what would take too long, before anything is charged."""
        ...

    def begin(self) -> None:
        """The data are touched from here on; perhaps not at once, if others are at it."""
        ...

    def wait(self) -> None:
        """Until what follows may be seen."""
        ...

    def again(self, seconds: float) -> None:
        """One more slot begins here, for what takes so long at worst."""
        ...


_SHORT = 1_000  # characters of a text that is remembered: what it becomes is larger
_REMEMBERED = 512
_CLOSE = 1e-9  # of a range: what a mean's own rounding may pass it by
_FEW = 10_000  # values on open blocks that are remembered
_FAULTS = (AssertionError, ArithmeticError, LookupError, TypeError, ValueError)
_FEW_ROWS, _FEW_BLOCKS = 20, 10  # of the open part that make no guess


@dataclass(frozen=True)
class Backends:
    """Where the work is done: engine and ledger by their addresses; None: on this machine."""

    engine: str | None = None
    ledger: str | None = None


HERE = Backends()


def refuse_told(words: Mapping[str, Any]) -> None:
    """Refuse what only questions have that are answered by what is told."""
    for name, value in words.items():
        if value is not None and value is not False and name not in ("metric", "share"):
            hint = "Create the holdout without a plan, or with --protocols score."
            raise InvalidInput(name, value, "left out where answers are by looks", hint)


class OpenHoldout:
    """A folder opened: its spec, its journal, its blocks and their engines."""

    def __init__(self, path: Path, limits: Limits | None, place: Backends = HERE) -> None:
        check_engine(place.engine)
        ledger = open_ledger(path, place.ledger)
        witness = Witness(state_folder() / "receipts")
        try:
            self.spec = spec = _spec(ledger, witness)
            self.store = open_store(path, spec.manifest)
            recognise(spec.identity, path.resolve(), self.store.manifest, spec.earlier)
        except BaseException:
            ledger.close()
            raise
        self.journal = Journal(ledger, witness, spec.sets)
        self.store.ranges, self.store.values = spec.ranges, spec.values
        self._engines = open_engines(self.store, limits, place.engine)
        self.open_part = OpenPart(self.store, self._engines.limits)
        self._world = None if spec.cells is None else World(self.store, spec.cells, limits)
        self._admitted: dict[tuple[str, bool, Bounds], tuple[str, ...]] = {}
        self._labels: dict[str, Labels] = {}
        # The same text is priced, asked on several grids, and verified: it is read once.
        self._remembered: dict[tuple[str, str | None], Estimand] = {}
        self._open_values: dict[str | None, NDArray[np.float64]] = {}

    def close(self) -> None:
        """End the workers and close the ledger."""
        for each in (self._engines, self.open_part, self._world):
            if each is not None:
                each.close()
        self.journal.ledger.close()

    def verify_blocks(self) -> None:
        """Raise `Damaged` unless the sealed files are as they were written."""
        self._engines.verify(self.spec.identity)

    # From words to a question. Whatever is wrong with them is said here, at no cost.

    def asked(
        self,
        verb: Verb,
        estimator: Any,
        *,
        where: Any = None,
        protocol: str | None = None,
        grid: Grid | None = None,
        shape: Shape | None = None,
        guess: float | None = None,
        tolerance: float | None = None,
        claim: str = "equals",
        columns: Sequence[str] | None = None,
        range: Bounds | None = None,  # noqa: A002 – as `Holdout.mean` has it
        options: Mapping[str, Any] | None = None,
        others: Sequence[Any] = (),
        names: Sequence[str] = (),
        **told: Any,
    ) -> Asked:
        """The question that these words are.

        `others` are further rules that it is about, `names` what all of them are called, and `told`
        what only questions about single rows have.
        """
        block_set, answers = self.spec.part_for(verb, protocol, one_sided=claim != "equals")
        words: dict[str, Any] = {}
        if answers.told:
            words = {"guess": guess, "tolerance": tolerance, **told}
            words |= {"claim": claim} if verb in ("gate", "verify") else {}
            if verb in ("ask", "interval", "verify"):
                estimands = [self._estimand(estimator, where, options or {})]
                words["grid"] = self._grid(answers, estimands[0], grid)
            else:
                every = (estimator, *others)
                estimands = [self._rows_estimand(each, where, columns, range) for each in every]
            return self._told((block_set, answers), verb, estimands, names, words)
        refuse_told(told if verb in ("verify", "correct") else {"guess": guess, **told})
        if verb == "mean":
            estimand = self._rows_estimand(estimator, where, columns, range)
        else:
            estimand = self._estimand(estimator, where, options or {})
        if verb in ("verify", "correct"):
            words["guess"] = same_number("guess", guess)
        if verb == "verify":
            words |= self._nearness(answers, estimand, tolerance, claim)
        assumptions = estimand.assumptions
        if shape is not None:
            assumptions += (self._claimed(shape, estimand),)
        elif verb in ("ask", "correct"):
            shape = estimand.shape
        if self._world is not None and answers.part.elements is not None:
            assumptions += self._world.admit(estimand.estimator)
        question = Question(
            verb,
            answers.part.name,
            estimand.about,
            grid=self._grid(answers, estimand, grid),
            shape=shape,
            range=estimand.range if estimand.cut else None,
            limits=self._engines.limits.told,
            **words,
        )
        answers.admit(question)
        if verb == "verify" and not answers.part.tells:
            raise _empty(answers)
        return Asked(block_set, answers, question, estimand, assumptions)

    def _rows_estimand(
        self,
        term: Any,
        where: Any,
        columns: Sequence[str] | None,
        range: Bounds | None,  # noqa: A002 – as `Holdout.mean` has it
    ) -> Estimand:
        """A term of one row, admitted."""
        manifest, ranges = self.spec.manifest, self.spec.ranges
        found = estimand_of_rows(term, manifest, ranges, where, columns, range)
        return self._admit(found, rows=True)

    def _told(
        self,
        answering: Answering,
        verb: Verb,
        estimands: Sequence[Estimand],
        names: Sequence[str],
        words: dict[str, Any],
    ) -> Asked:
        """A question that is answered at the level of all that was told before."""
        block_set, answers = answering
        first, *others = estimands
        about = {**first.about, **({"names": list(names)} if names else {})}
        if verb in ("compare", "gate") and others:
            about["against"] = names[1]
        for name in ("guess", "tolerance", "threshold", "margin", "guess_se", "max_level"):
            low = -math.inf if name in ("guess", "threshold") else 0.0
            given = words.get(name)
            words[name] = None if given is None else same_number(name, given, low)
        words["error"], max_level = words.pop("guess_se"), words.pop("max_level")
        words["precise"] = True if words.get("precise") else None
        # A condition in SQL is 0 or 1 of a row; the mean over the rows of a unit need not be.
        condition = self.spec.manifest.one_row_units and first.range == UNIT
        condition = condition and bool(getattr(first.estimator, "boolean", False))
        share = words.pop("share", None) or condition
        reading, differ = words.pop("reading", None), words.pop("differ", None)
        about |= {} if reading is None or "reading" not in about else {"reading": reading}
        about |= {} if words.pop("greater", True) else {"greater": False}
        target = words.pop("target", None)
        about |= {} if target in (None, self.spec.target) else {"target": target}
        if self.spec.split == "stratified":
            about = self._at_shares(verb, about)
        question = Question(
            verb,
            answers.part.name,
            about,
            range=first.range if first.cut else None,
            limits=self._engines.limits.told,
            share=True if share else None,
            candidates=len(estimands) if others else None,
            **words,
        )
        if question.guess is not None and verb not in ("ask", "interval", "verify"):
            low, high = question.bounds
            if question.paired:
                low, high = low - high, high - low
            real_number("guess", question.guess, low, high)
        answers.admit(question)
        assumed = dict.fromkeys(text for each in estimands for text in each.assumptions)
        if question.reading == ROWS:  # it holds whatever the predictions were made from
            assumed.pop(ASSUMPTION_PREDICTIONS, None)
        assumptions = tuple(assumed)
        expects = self._expects(question, estimands)
        if differ is not None:  # of two submissions everybody knows on how many rows they differ
            rows = self.spec.manifest.block_units * self.spec.by_name["told"].blocks
            sd = max(math.sqrt(min(1.0, differ / rows)), 1 / _FEW_ROWS)
            expects = replace(expects, sd=sd, differ=differ)
        made = Asked(block_set, answers, question, first, assumptions, tuple(others), expects)
        return replace(made, max_level=max_level)

    def _at_shares(self, verb: Verb, about: dict[str, Any]) -> dict[str, Any]:
        """What may be claimed of rows that were split class by class."""
        if verb in ("ask", "interval", "verify") or "where" in about:
            hint = "Its rows were split class by class, so that blocks and groups are not random."
            raise InvalidInput("question", verb, "a mean over all rows of this holdout", hint)
        return {**about, "reading": AT_SHARES}

    def _expects(self, question: Question, estimands: Sequence[Estimand]) -> Any:
        """What the open part says of the answer; for a batch, of each."""
        if question.verb == "best":
            return Expects()
        if question.verb in ("ask", "interval", "verify"):
            verdict = question.verb == "verify"  # what is expected of it is that it is right
            values = None if verdict else self.open_part.values(estimands[0].estimator)
            known = None if values is None else values[np.isfinite(values)]
            if known is None or len(known) < _FEW_BLOCKS:
                return Expects()
            with np.errstate(over="ignore"):
                guess, sd = float(np.median(known)), float(np.std(known))
            return Expects(guess=guess, sd=sd) if math.isfinite(guess + sd) else Expects()
        terms = [self.open_part.terms(e.estimator, e.where, question.bounds) for e in estimands]
        if question.verb == "scores":
            return [self._expected(question, [each]) for each in terms]
        return self._expected(question, terms)

    def _expected(self, question: Question, terms: Sequence[Any]) -> Expects:
        """A guess from the terms of open rows, each as parts; None where there are too few."""
        if any(each is None for each in terms):
            return Expects()
        low, high = question.bounds
        unit = (high - low) / WEIGHT_SCALE
        values = low + unit * terms[0] if len(terms) == 1 else unit * (terms[0] - terms[1])
        if len(values) < _FEW_ROWS:
            return Expects()
        rows = self.spec.manifest.block_units * self.spec.by_name["told"].blocks
        kept = None
        if question.filtered:
            kept = rows * len(values) / max(1, self.open_part.rows)
        span = high - low
        sd = max(float(np.std(values)), span / len(values))
        error = sd * math.sqrt(1 / len(values) + 1 / (rows if kept is None else max(1.0, kept)))
        return Expects(open=float(np.mean(values)), error=error, sd=sd, rows=kept)

    def _estimand(
        self, estimator: Estimator, where: str | None, options: Mapping[str, Any]
    ) -> Estimand:
        """An estimator of one block, admitted."""
        text = isinstance(estimator, str) and (where is None or isinstance(where, str))
        short = text and not options and len(str(estimator)) + len(where or "") <= _SHORT
        known = self._remembered.get((str(estimator), where)) if short else None
        if known is not None:
            return known
        found = estimand_of_block(estimator, self.spec.manifest, self.spec.ranges, where, options)
        if not isinstance(estimator, str):
            found = self._admit(found, rows=False)
        if short:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[str(estimator), where] = found
        return found

    def labels(self, target: str) -> Labels:
        """What is public of a target's labels: those declared, else those of the open part."""
        found = self._labels.get(target)
        if found is None:
            kind, values = self.spec.manifest.schema.kind(target), self.spec.values
            declared = (0.0, 1.0) if kind == "boolean" else values.get(target)
            found = public_labels(self.store, target, kind, declared)
            self._labels[target] = found
        return found

    def _admit(self, estimand: Estimand, *, rows: bool) -> Estimand:
        """Try Python on public blocks first; what that cannot prove is an assumption."""
        if not estimand.local:
            return estimand
        self._check_order(estimand)
        bounds = estimand.range if rows and estimand.range is not None else UNIT
        key = None if estimand.identity is None else (estimand.identity, rows, bounds)
        known = None if key is None else self._admitted.get(key)
        if known is None:
            functions = [(estimand.estimator, bounds), (estimand.where, UNIT)]
            found = [
                self._engines.admit(each, rows=rows, bounds=within)
                for each, within in functions
                if each is not None
            ]
            known = tuple(dict.fromkeys(text for each in found for text in each))
            if key is not None:
                self._admitted[key] = known
        return replace(estimand, assumptions=known)

    def _check_order(self, estimand: Estimand) -> None:
        """Refuse predictions by place where it is not public how many rows there are."""
        by_place = getattr(estimand.estimator, "rows", None) is not None
        unit = self.spec.manifest.unit_column
        if by_place and unit is not None and self.spec.ids is None:
            allowed = f"keyed by ids where rows of one {unit} are a unit"
            hint = "How many rows there are is sealed. Create the holdout with ids='COLUMN'."
            raise InvalidInput("predictions", "in the order of the rows", allowed, hint)

    def _claimed(self, shape: Shape, estimand: Estimand) -> str:
        """What a caller's shape takes for granted; only open blocks can show that it is false."""
        checked_shape(shape)
        fixed = self.spec.manifest.one_row_units and "where" not in estimand.about
        if shape.span is not None and not fixed:
            hint = "A block then has a random number of terms: leave shape out, or use mean(…)."
            raise InvalidInput("shape", shape, "left out with a filter or units of rows", hint)
        if shape.span is not None:
            self._refuse_outside(cast(BoundedMean, shape), estimand)
        return claim_words(shape)

    def _refuse_outside(self, shape: BoundedMean, estimand: Estimand) -> None:
        """Refuse a range that the value may leave by its form, or leaves on an open block."""
        ends = (shape.low, shape.high)
        if not estimand.local and not (estimand.range and is_within(estimand.range, ends)):
            hint = (
                "By its form and what is declared it may leave that. mean(term, range=(low, high)) "
                "cuts every term to a range, and says so; or declare the ranges of its columns at "
                "creation. Nothing was charged."
            )
            raise InvalidInput("shape", shape, "a range that holds the value on any block", hint)
        values, room = self.open_part.values(estimand.estimator), _CLOSE * (shape.high - shape.low)
        if values is None:
            return
        out = values[(values < shape.low - room) | (values > shape.high + room)]
        if len(out):
            given = f"An open block gives {in_full(out[0])}."
            hint = f"{given} Name the ends of the terms, or use mean(…)."
            raise InvalidInput("shape", shape, "a range that holds all open blocks", hint)

    def _grid(self, answers: Answers[Any], estimand: Estimand, grid: Grid | None) -> Grid | None:
        given = None if grid is None else checked_grid(grid)
        if not answers.on_grid:
            return None  # one given is no other question
        if given is not None or answers.optional_grid:
            return given
        found = self._default_grid(answers.part, estimand)
        if found is None:
            raise no_grid()
        return found

    def _default_grid(self, part: Part, estimand: Estimand) -> Grid | None:
        points = part.points
        if estimand.range is None:
            values = self.open_part.values(estimand.estimator)
            return None if values is None else grid_from_values(values, points)
        if estimand.local:  # a model may have been fitted to the open part, and be better there
            return grid_between(*estimand.range, points)
        return finer_grid(*estimand.range, self.open_part.values(estimand.estimator), points)

    def _nearness(
        self, answers: Answers[Any], estimand: Estimand, tolerance: float | None, claim: str
    ) -> dict[str, Any]:
        """What a guess claims: by the tails of a part made for guesses, or within a tolerance."""
        checked_claim(claim)
        if not answers.by_tolerance or claim != "equals":
            near = None if tolerance is None else same_number("tolerance", tolerance, 0)
            return {"claim": claim, "tolerance": near}
        if tolerance is None:  # one step of the grid that the question would have had
            found = self._default_grid(answers.part, estimand)
            many = found is not None and found.size > 1
            tolerance = float(found.point(1) - found.point(0)) if found and many else 0.0
        return {"tolerance": same_number("tolerance", tolerance, 0)}

    def open_values(self, asked: Asked) -> NDArray[np.float64] | None:
        """What the estimator gives on the open blocks, which anybody may see; None without any."""
        name = asked.estimand.identity
        known = self._open_values.get(name)  # others may forget it meanwhile
        if known is not None:
            return known
        try:
            found = self.open_part.values(asked.estimand.estimator)
        except HoldfastError:  # it adds something to an answer, and must never take it away
            return None
        if name is not None and found is not None and found.size <= _FEW:
            if len(self._open_values) >= _REMEMBERED:
                self._open_values.clear()
            self._open_values[name] = found
        return found

    # From a question to its answer.

    def answer(
        self,
        asked: Asked,
        request: str | None,
        progress: Progress | None,
        asker: Asker | None = None,
        pace: Pace | None = None,
    ) -> Result:
        """The recorded answer, or a new one.

        `pace` waits after the draw, whatever became of it, before anything more is written.
        """
        if asked.protocol.told:
            return self._tell(asked, request, progress, asker, pace)
        journal, empty = self.journal, None
        if can_be_empty(asked.question, self.spec.manifest.schema):  # before anything is charged
            empty = empty_blocks(self.open_part, asked)
        codes = assumed_codes(asked.assumptions)
        with journal.ledger.lock(*_names(asked, request)) as names:
            known = _known(journal, asked, request)
            if known is None:
                if pace is not None:
                    pace.admit(asked)
                pending = _Pending(journal, names, asked, request, asker, pace)
                try:
                    drawn = self._draw(asked, pending, progress)
                finally:
                    pending.pause()
                settled = pending.settled(drawn)
                result = self._answer(asked, drawn, settled, empty, codes)
                if pending.reserves:  # else it was exhausted: there is nothing to keep
                    row = pending.record(row_facts(settled, drawn, empty, codes))
        if known is not None:
            # Another has recorded it, who may have died before it was witnessed.
            receipt = str(journal.witnessed(known))
            result = answer_in(self.spec, known, receipt, cached=True)
            return journal.read(lambda state: _as_of_now(result, asked, state))
        if drawn is None:  # it may be affordable later
            journal.head()  # what is left is shown now
            return result
        return marked(result, str(journal.witnessed(row)), cached=False)

    def _tell(
        self,
        asked: Asked,
        request: str | None,
        progress: Progress | None,
        asker: Asker | None,
        pace: Pace | None,
    ) -> Result:
        """The recorded answer, or a new one at the level of all that was told before.

        The rows are read first, and nothing is seen of that. The letter is found and recorded
        under the lock of the set: nobody else is told anything in between. It has a slot of its
        own: how long it takes to find depends on the rows too.
        """
        journal, place = self.journal, asked.set.name
        known = _known(journal, asked, request)
        if known is None:
            journal.read(lambda state: self.allow(asked, asker, state.sets[place]))
            if pace is not None:
                pace.admit(asked)
                pace.begin()
            self.verify_blocks()
            steps = asked.protocol.ask(asked.question, chosen_entropy(None, 0), ())
            places = asked.set, asked.estimands, self._engines, None, progress
            try:
                step = next(steps)
                while not isinstance(step, PastTold):
                    step = steps.send(found_by(step, *places))
            except _FAULTS:
                raise _fault() from None
            finally:
                if pace is not None:
                    pace.wait()
            with journal.ledger.lock(*_names(asked, request)) as names:
                known = _known(journal, asked, request)
                if known is None:
                    past = journal.read(lambda state: self.allow(asked, asker, state.sets[place]))
                    codes = assumed_codes(asked.assumptions)
                    drawn, result = self._chosen(asked, steps, past, pace, codes)
                    pending = _Pending(journal, names, asked, request, asker, None)
                    row = pending.record({"drawn": drawn, **({"assumes": codes} if codes else {})})
                    return marked(result, str(journal.witnessed(row)), cached=False)
        receipt = str(journal.witnessed(known))
        told = cast(Told, answer_in(self.spec, known, receipt, cached=True))
        return told.called(asked.question.about.get("names", ()))

    def _chosen(
        self, asked: Asked, steps: Steps, past: Past, pace: Pace | None, codes: list[str]
    ) -> tuple[Drawn, Result]:
        """What is told of the rows that were read, in a slot of its own."""
        if pace is not None:
            protocol: Any = asked.protocol
            pace.again(protocol.seconds(asked.question))
        try:
            steps.send((past, asked.expects))
        except StopIteration as ended:
            drawn: Drawn = ended.value
            return drawn, self._answer(asked, drawn, Paid(), None, codes)
        except _FAULTS:  # its words would depend on the data
            raise _fault() from None
        finally:
            if pace is not None:
                pace.wait()
        raise _fault()

    def allow(self, asked: Asked, asker: Asker | None, found: SetState) -> Past:
        """What was told so far; refused, by that alone, if nothing more may be told like this."""
        found.require_nats(asker)
        past: Past = found.past
        at, protocol = past.level_of(asked.question), cast(Any, asked.protocol)
        if asked.max_level is not None and at > asked.max_level:
            remedy = "Earlier answers have told more than you allow for. Nothing was told."
            most = f"max_level={asked.max_level:g} or less"
            raise Exhausted("Your limit", most, f"a level of {at:.4g}", remedy)
        protocol.refuse_everything(asked.question, asked.expects, past)
        if asked.question.verb == "scores" and asker is not None:
            offers = protocol.price(asked.question, asked.expects, past)
            found.require_nats(asker, _at_most(offers))
        return past

    def _answer(
        self,
        asked: Asked,
        drawn: Drawn | None,
        settled: Paid,
        empty: tuple[int, int] | None,
        codes: list[str],
    ) -> Result:
        """The answer, before it is recorded: what cannot be said is not kept either."""
        try:
            return answer_of(
                self.spec, asked.protocol, asked.question, drawn, settled, empty, codes
            )
        except _FAULTS:
            raise _fault() from None

    def _draw(self, asked: Asked, pending: _Pending, progress: Progress | None) -> Drawn | None:
        """Drive the protocol: reserve what it needs, and find what it asks for."""
        self._engines.verify(self.spec.identity)
        seed, place = self.spec.seed, (asked.set.name, asked.question.part)
        number = 0 if seed is None else self.journal.ledger.head().number
        lessons: Sequence[Drawn] = ()
        if self._world is not None:
            lessons = self.journal.read(lambda state: tuple(state.lessons.get(place, ())))
        steps = asked.protocol.ask(asked.question, chosen_entropy(seed, number), lessons)
        places = asked.set, asked.estimands, self._engines, self._world, progress
        try:
            step = next(steps)
            while True:
                try:
                    if isinstance(step, Reserve):
                        found: object = pending.reserve(step.charge)
                    else:
                        found = found_by(step, *places)
                except Exhausted as refused:
                    step = steps.throw(refused)
                else:
                    step = steps.send(found)
        except StopIteration as ended:
            drawn: Drawn | None = ended.value
            return drawn
        except _FAULTS:
            if not pending.reserves:
                raise
            raise _fault() from None


def found_by(
    step: Step,
    block_set: BlockSet,
    estimands: Sequence[Estimand],
    engines: Engines,
    world: World | None = None,
    progress: Progress | None = None,
) -> object:
    """What a step of a protocol asks of the data."""
    start, stop = block_set.first, block_set.first + block_set.blocks
    first = estimands[0]
    if isinstance(step, Values):
        if step.last is not None:
            start, stop = start + step.first, start + step.last
        return engines.values(first.estimator, start, stop, progress)
    if isinstance(step, Sums):
        term, where = None if step.count else first.estimator, first.where
        return engines.sums(term, where, start, stop, step.bounds, progress)
    if isinstance(step, Terms):
        given = estimands[step.of]
        term = None if step.count else given.estimator
        return engines.sums(term, given.where, start, stop, step.bounds, progress, terms=True)
    assert isinstance(step, Places)
    assert world is not None  # without one no such plan is sealed
    indices = step.grid.ceiling(world.values(first.estimator))
    return indices, world.places(start, stop)


class _Pending:
    """A question being paid: what it has reserved, and what that came to."""

    def __init__(
        self,
        journal: Journal,
        names: Hold,
        asked: Asked,
        request: str | None,
        asker: Asker | None,
        pace: Pace | None,
    ) -> None:
        self._journal, self._names, self._asked = journal, names, asked
        self._request, self._asker, self._pace = request, asker, pace
        self._about = {"set": asked.set.name, "question": asked.question.facts}
        self._about |= {} if asker is None else {"asker": asker.id}
        self._touched = False  # since the last pause: time may depend on the data
        self._account: Account | None = None  # as of the last reservation
        self.reserves: dict[int, Charge] = {}  # by their rows

    def pause(self) -> None:
        """Hide when this was reached, if the question has seen the data: what follows is written.

        A question of two steps reserves twice, and whoever watches the ledger sees the second.
        """
        if self._touched and self._pace is not None:
            self._touched = False
            self._pace.wait()

    def reserve(self, worst: Charge) -> Account:
        """Charge the worst case durably, or raise `Exhausted` and write nothing."""
        self.pause()
        body = {**self._about, "charge": worst.to_dict()}
        asker = None if self._asker is None else self._asker.id

        def work(transaction: Transaction, state: HoldoutState) -> tuple[int, Account]:
            found = state.sets[self._asked.set.name]
            found.require_quota(self._asker, worst)
            found.reserve(state.number + 1, worst, asker)  # raises before anything is written
            account = found.account.copy()
            number = state.number = self._append(transaction, "reserved", body).number
            return number, account

        number, self._account = self._journal.write(work)
        self.reserves[number] = worst
        self._touched = True
        if self._pace is not None:
            self._pace.begin()
        return self._account

    def settled(self, drawn: Drawn | None) -> Paid:
        """What the draw did cost, and what it leaves."""
        protocol, question = self._asked.protocol, self._asked.question
        if self._account is None:  # nothing was reserved
            return self._journal.read(lambda state: _paid_nothing(state, self._asked))
        if drawn is None:
            charges = protocol.given_back(question)
        else:
            charges = protocol.charges(question, drawn)
        for worst, actual in zip(self.reserves.values(), charges, strict=True):
            self._account.settle(worst, actual)
        return paid(self._account, protocol.part, charges)

    def record(self, facts: Mapping[str, object]) -> Row:
        """Write what was drawn, or told, and what it cost, together."""
        paid_by = {"reserves": list(self.reserves)} if self.reserves else {}
        body = {**self._about, **paid_by, **facts}

        def work(transaction: Transaction, state: HoldoutState) -> Row:
            row = self._append(transaction, "recorded", body)
            state.read([row])
            return row

        return self._journal.write(work)

    def _append(self, transaction: Transaction, kind: str, body: dict[str, Any]) -> Row:
        self._names.check()  # else another may be answering the same question
        return transaction.append(kind, body, question=self._asked.key, request=self._request)


def _fault() -> Unavailable:
    """An error after the draw: its own words would depend on the data, and be in no ledger."""
    fault = "This is a fault of Holdfast: please report the question."
    return Unavailable("Answering", "an answer", "there is none", fault)


def _names(asked: Asked, request: str | None) -> list[str]:
    """What is locked while a question is answered."""
    if request is not None and asked.key is None:
        hint = "It has no identity that a second request could be compared with."
        raise InvalidInput("request", request, "left out for this estimator", hint)
    names = [] if asked.key is None else [f"question {asked.key}"]
    names += [] if request is None else [f"request {request}"]
    return [*names, f"set {asked.set.name}"] if asked.protocol.one_at_a_time else names


def _known(journal: Journal, asked: Asked, request: str | None) -> Row | None:
    """The answer that this question, or this request key, was given before.

    Whoever may answer this question or use this key waits for the lock that is held here.
    """
    rows = [] if request is None else journal.ledger.requested(request)
    for row in rows:
        if row.body.get("question") != asked.question.facts or row.question != asked.key:
            hint = "Use a new key for a new question."
            raise InvalidInput("request", request, "a key that named no other question", hint)
    for row in reversed(rows):
        if row.kind == "recorded" and row.body["drawn"] is not None:
            return row
    return None if asked.key is None else journal.ledger.recorded(asked.key)


def _paid_nothing(state: HoldoutState, asked: Asked) -> Paid:
    return paid(state.sets[asked.set.name].account, asked.protocol.part, ())


def _as_of_now(result: Result, asked: Asked, state: HoldoutState) -> Result:
    """A recorded answer, with what is left of the budget and of the refusals by now."""
    now = _paid_nothing(state, asked)

    def renewed(step: Any) -> Any:
        counted = getattr(step, "refusals_left", None) is not None
        more = {"refusals_left": now.refusals} if counted else {}
        return replace(step, budget_left=now.left, **more)

    return result.each(renewed)


def _empty(answers: Answers[Any]) -> InvalidInput:
    """The refusal of a guess if no verdict on it could say anything, whatever the data are."""
    share = at_least(answers.part.least_tail).removeprefix("at least ")
    instead = "Ask for the value instead"
    if not answers.by_tolerance:
        instead = "These guesses are for gates of scores"
    hint = (
        f"A verdict by {answers.part.name} would speak of {share} fresh blocks, and every one "
        f"would be 'cannot tell'. Nothing was charged. {instead}, or seal data under a plan "
        "with a part for guesses (--protocols estimate,verify) or a larger tail (--tail 0.05)."
    )
    return InvalidInput("question", "verify", "one whose verdict can say something", hint)


def _spec(ledger: Ledger, witness: Witness) -> HoldoutSpec:
    """What the holdout was created as, if its ledger is not older than one seen before."""
    seen = witness.last(ledger.holdout)
    if seen is not None:
        check_against(ledger, seen)
    witness.see(ledger.head())  # what is shown from now on is not from an older one
    first = ledger.row(1)
    assert first is not None  # a ledger is created with its first row
    try:
        return HoldoutSpec.from_dict(ledger.holdout, first.body)
    except HoldfastError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as wrong:
        remedy = "Put back the newest copy of the folder, and check it against the last receipt."
        what, expected = "The ledger's first row", "what the holdout was created as"
        raise Damaged(what, expected, repr(wrong), remedy) from wrong


# Quotes: what a question would cost if it were asked now. Nothing is drawn, nothing charged.


@dataclass(frozen=True)
class ToldPrice:
    """What an answer would tell, and what that does to later bars.

    `level` and `half_width`, of an expected share near 0.9, are those of the next answer as of now.
    Every likely answer has its `nats`, what it says (`low`, `high`, `verdict`), whether it is as
    `expected`, and the `level` and `half_width` after it; of a batch, those of each `candidate`.
    """

    told_so_far: float
    level: float
    half_width: float
    answers: tuple[dict[str, Any], ...]

    def lines(self) -> list[str]:
        """For people: a line for each likely answer, and how things are now."""
        lines = [f"{'you would be told':<36}{'it tells':>12}{'later bars':>12}"]
        for each in self.answers:
            place = "" if each.get("candidate") is None else f"{each['candidate'] + 1}. "
            what = f"{place}{_offered(each)}{_EXPECTED[each['expected']]}"
            nats, then = f"{number(each['nats'], 2)} nats", f"±{rounded_up(each['half_width'], 2)}"
            lines.append(f"{what:<36}{nats:>12}{then:>12}")
        so_far = f"told so far {number(self.told_so_far, 3)} nats"
        bar = f"±{rounded_up(self.half_width, 2)}"
        return [*lines, f"{so_far}; now an expected share near 0.9 is within {bar}"]


_EXPECTED = {None: "", True: " (as expected)", False: " (a surprise)"}


def _offered(answer: Mapping[str, Any]) -> str:
    low, high = answer["low"], answer["high"]
    if answer["verdict"] is not None:
        return str(answer["verdict"])
    if low is not None and high is not None:
        return "{} to {}".format(*bar_ends(low, high))
    if low is None and high is None:
        return "any"
    return f"at most {number(high)}" if low is None else f"at least {number(low)}"


@dataclass(frozen=True)
class Price:
    """What one question costs at worst, and whether that can still be paid.

    `cached`: it was answered before, and is free. `reason` says why it is not affordable. `doubts`
    are what is public and speaks against it: those that are `refused` need `anyway`.
    """

    verb: str
    part: str
    protocol: str
    price: float
    currency: str
    budget: float
    budget_left: float
    affordable: bool
    cached: bool
    reason: str | None
    grid: tuple[float, float, int] | None
    assumes: tuple[str, ...]
    doubts: tuple[Doubt, ...] = ()
    told: ToldPrice | None = None
    """Where it is what is told that counts."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        grid = self.grid
        shown = None if grid is None else dict(zip(("low", "high", "points"), grid, strict=True))
        doubts = [each.to_dict() for each in self.doubts]
        plain: dict[str, Any] = {"grid": shown, "assumes": list(self.assumes), "doubts": doubts}
        for name in ("budget", "budget_left"):
            value = getattr(self, name)
            plain[name] = value if math.isfinite(value) else None
        if self.told is not None:
            plain["told"] = {**asdict(self.told), "answers": list(self.told.answers)}
        return {**asdict(self), **plain}

    def __str__(self) -> str:
        if self.cached:
            lines = ["asked before, free"]
        elif self.told is None:
            lines = [f"{self.price:.4g} {self.currency} at most; {self.budget_left:.4g} left"]
        else:
            lines = self.told.lines()
        return "\n".join(lines if self.reason is None else [*lines, self.reason])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def price_of(holdout: OpenHoldout, asked: Asked, asker: Asker | None, bar: float = 0.0) -> Price:
    """The price of a question, for this asker; of a winner with the `bar` asked for next."""
    cached = holdout.journal.is_known(asked.key)
    price, currency, budget, left, reason, told = (
        _told_price(holdout, asked, asker, bar, cached=cached)
        if asked.protocol.told
        else _charged_price(holdout, asked, asker)
    )
    price, cached = bar if cached else price, cached and not bar
    holdout.journal.head()  # what was read is shown now
    grid, part = asked.question.grid, asked.protocol.part
    return Price(
        asked.question.verb,
        part.name,
        part.protocol,
        price,
        currency,
        budget,
        left,
        cached or reason is None,
        cached,
        None if cached else reason,
        None if grid is None else (float(grid.low), float(grid.high), grid.size),
        asked.assumptions,
        () if cached else doubts_of(holdout.spec, holdout.open_part, asked),
        told,
    )


def _at_most(offers: Sequence[Mapping[str, Any]]) -> float:
    """The nats of a batch if each of its answers is the dearest of those that are listed."""
    dearest: dict[int, float] = {}
    for each in offers:
        place = each["candidate"]
        dearest[place] = max(dearest.get(place, 0.0), each["nats"])
    return sum(dearest.values())


_Quote = tuple[float, str, float, float, str | None, ToldPrice | None]
"""The price, in what, the budget, what is left of it, why that is too little, what is told."""


def _charged_price(holdout: OpenHoldout, asked: Asked, asker: Asker | None) -> _Quote:
    """What a question reserves."""
    plan, worst, reason = asked.set.plan, asked.protocol.worst(asked.question), None
    with holdout.journal.state() as state:
        found = state.sets[asked.set.name]
        used, budget, currency = plan.use(found.account)
        left = found.account.left if currency == "stability" else budget - used
        account = found.account.copy()
        try:
            for each in worst:
                account.hold(each)
                found.require_quota(asker, each)
        except Exhausted as wrong:
            reason = str(wrong)
    price = float(sum((plan.price(each) for each in worst), start=Fraction(0)))
    return price, currency, budget, left, reason, None


def _told_price(
    holdout: OpenHoldout, asked: Asked, asker: Asker | None, bar: float, *, cached: bool
) -> _Quote:
    """What the likely answers would tell: a function of the history and of what is public."""
    question, reason = asked.question, None
    rows = asked.set.blocks * holdout.spec.manifest.block_units
    with holdout.journal.state() as state:
        found = state.sets[asked.set.name]
        past = found.past
        try:
            holdout.allow(asked, asker, found)
        except Exhausted as wrong:
            reason = str(wrong)
        limit = math.inf if asker is None or asker.nats is None else asker.nats
        left = max(0.0, limit - (0.0 if asker is None else past.askers.get(asker.id, 0.0)))
        protocol: Any = asked.protocol
        offers = protocol.price(question, asked.expects, past)
        opened = holdout.spec.manifest.open_units
        expected = asked.protocol.part.queries
        law = law_of_question(question)
        now = forecast(past, rows, expected, open_rows=opened, law=law)[0]["half_widths"][0]
        answers = []
        for each in offers:
            surprise = None if each["expected"] is None else not each["expected"]
            nats = bar + each["nats"] * (not cached or not bar)
            later = past.later(question, nats, surprise)
            then = forecast(later, rows, expected, open_rows=opened, law=law)[0]
            width = then["half_widths"][0]
            after = {"nats": nats, "level": later.level_about(law), "half_width": width}
            answers.append({**each, **after})
        told = ToldPrice(past.nats, past.level_about(law), now, tuple(answers))
    # That of what is expected; of a batch, of each.
    firsts = {each.get("candidate"): each["nats"] for each in reversed(answers)}
    return sum(firsts.values()), "nats", limit, left, reason, told
