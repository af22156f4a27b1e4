"""The holdout: a sealed dataset, a plan and a ledger, asked through one door."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

from holdfast.arguments import real_number
from holdfast.closing import Closing
from holdfast.engines.source import Limits, Progress
from holdfast.errors import InvalidInput
from holdfast.grids import Grid
from holdfast.holdout.charter import LEDGER, Charter
from holdfast.holdout.clerk import Clerk
from holdfast.holdout.creation import create_holdout
from holdfast.holdout.door import Door
from holdfast.holdout.estimators import Estimator
from holdfast.holdout.sets import AnyPlan
from holdfast.holdout.status import Status, status_of
from holdfast.ledger.receipts import Receipt
from holdfast.planning.shapes import Shape
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.correct import Corrected
from holdfast.protocols.verify import Claim

__all__ = ["Holdout"]


class Holdout(Closing):
    """Make one with `Holdout.create`, come back to it with `Holdout.open`."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        self.path = path
        self._clerk = Clerk(path, limits)

    @property
    def charter(self) -> Charter:
        """What the holdout was created as: plan, data, assumptions."""
        return self._clerk.charter

    @property
    def door(self) -> Door:
        """The ledger, and the books that its rows add up to."""
        return self._clerk.door

    # Making and finding.

    @classmethod
    def create(
        cls,
        path: str | Path,
        data: object,
        plan: AnyPlan | Iterable[AnyPlan] | Callable[[int], AnyPlan | Iterable[AnyPlan]],
        *,
        unit: str | None = None,
        columns: Sequence[str] | None = None,
        open_fraction: float = 0.0,
        block_units: int | None = None,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        universe: Mapping[str, Sequence[object]] | None = None,
        target: str | None = None,
        weight: str | None = None,
        name: str | None = None,
        new_budget: str | None = None,
        seed: int | None = None,
        memory_limit: str | None = None,
        threads: int | None = None,
        progress: Callable[[str, float], None] | None = None,
        limits: Limits | None = None,
    ) -> Self:
        """Seal a table under a plan, in a new folder.

        `unit` names the column whose value tells units apart; without it every row is one.
        `open_fraction` of the units stay open, for training and for guesses. `ranges` declares
        between which values columns of numbers lie; `universe`, for weights, all the values that
        columns can have. Blocks are as large as the data allow, or have `block_units` units. With a
        `seed` nothing is certified.
        """
        folder = Path(path)
        create_holdout(
            folder,
            data,
            plan,
            unit=unit,
            columns=columns,
            open_fraction=open_fraction,
            block_units=block_units,
            ranges=ranges,
            universe=universe,
            target=target,
            weight=weight,
            name=name,
            new_budget=new_budget,
            seed=seed,
            memory_limit=memory_limit,
            threads=threads,
            progress=progress,
        )
        return cls(folder, limits)

    @classmethod
    def open(cls, path: str | Path, *, limits: Limits | None = None) -> Self:
        """The holdout in this folder. An older copy of one that was used since is refused."""
        folder = Path(path)
        if not (folder / LEDGER).is_file():
            hint = "Make one with holdfast.Holdout.create, or `holdfast create`."
            raise InvalidInput("path", str(path), "the folder of a holdout", hint)
        return cls(folder, limits)

    # Asking.

    def ask(
        self,
        estimator: Estimator,
        *,
        grid: Grid | None = None,
        where: str | None = None,
        shape: Shape | None = None,
        by: str | None = None,
        request: str | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Answer:
        """The estimator's value on fresh data, from any estimator of one block.

        SQL text is an aggregate; a callable gets one block. `options` (columns, block, vectorised)
        say how to call it.
        """
        offer = self._clerk.offer("ask", by)
        asked = self._clerk.estimator(estimator, where, options)
        question = self._clerk.question("ask", offer, asked, grid=grid, shape=shape)
        return cast(Answer, self._clerk.answer(offer, question, request, progress))

    def verify(
        self,
        estimator: Estimator,
        guess: float,
        *,
        tolerance: float | None = None,
        claim: Claim = "equals",
        where: str | None = None,
        by: str | None = None,
        request: str | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Verdict:
        """Whether a guess is right: yes, no or exhausted."""
        offer = self._clerk.offer("verify", by)
        asked = self._clerk.estimator(estimator, where, options)
        own = offer.protocol in ("verify", "exact-verify")
        if own and tolerance is not None:
            hint = "This plan has a part for guesses, whose tails say what is near."
            raise InvalidInput("tolerance", tolerance, "left out here", hint)
        if not own:
            if claim != "equals":
                hint = "Only a plan with a part for guesses can be asked for one side."
                raise InvalidInput("claim", claim, "'equals' for this plan", hint)
            tolerance = self._clerk.tolerance(offer, asked) if tolerance is None else tolerance
        question = self._clerk.question(
            "verify",
            offer,
            asked,
            guess=_number("guess", guess),
            tolerance=None if tolerance is None else _number("tolerance", tolerance, 0),
            claim=claim if own else None,
        )
        return cast(Verdict, self._clerk.answer(offer, question, request, progress))

    def correct(
        self,
        estimator: Estimator,
        guess: float,
        *,
        grid: Grid | None = None,
        where: str | None = None,
        shape: Shape | None = None,
        by: str | None = None,
        request: str | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Corrected:
        """Confirm a guess, or answer in its place."""
        offer = self._clerk.offer("correct", by)
        asked = self._clerk.estimator(estimator, where, options)
        question = self._clerk.question(
            "correct", offer, asked, grid=grid, shape=shape, guess=_number("guess", guess)
        )
        return cast(Corrected, self._clerk.answer(offer, question, request, progress))

    def mean(
        self,
        term: Estimator,
        *,
        where: object = None,
        grid: Grid | None = None,
        columns: Sequence[str] | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Answer:
        """The mean of a term between 0 and 1 (true is 1), with its error bar where none filters."""
        offer = self._clerk.offer("mean", by)
        asked = self._clerk.term(term, where, columns)
        question = self._clerk.question("mean", offer, asked, grid=grid)
        return cast(Answer, self._clerk.answer(offer, question, request, None))

    def interval(
        self,
        estimator: Estimator,
        *,
        grid: Grid | None = None,
        where: str | None = None,
        by: str | None = None,
        request: str | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Answer:
        """An interval that encloses the estimator's median on fresh data."""
        offer = self._clerk.offer("interval", by)
        asked = self._clerk.estimator(estimator, where, options)
        question = self._clerk.question("interval", offer, asked, grid=grid)
        return cast(Answer, self._clerk.answer(offer, question, request, progress))

    def score(
        self,
        model_or_predictions: object,
        *,
        metric: str | Callable[..., float] = "accuracy",
        target: str | None = None,
        features: Sequence[str] | None = None,
        **asked: Any,
    ) -> Answer:
        """A model's score on fresh data; `asked` as for `ask`."""
        from holdfast.engines.local import score_estimator

        column = target or self.charter.target
        if column is None:
            hint = "Name the column: score(…, target='y'), or once: create(…, target='y')."
            raise InvalidInput("target", None, "the column that the model predicts", hint)
        estimator = score_estimator(model_or_predictions, metric, target=column, features=features)
        return self.ask(estimator, **asked)

    # Looking back.

    def status(self) -> Status:
        """What is spent, what is left, and what it still buys."""
        with self.door.books() as books:
            return status_of(self.charter, self.path, books, self.door.ledger.head())

    @property
    def receipt(self) -> Receipt:
        """The ledger's head, to be kept elsewhere."""
        return self.door.ledger.head()

    def open_table(self, columns: Sequence[str] | None = None) -> Any:
        """The open part as an Arrow table: for training and for guesses, as often as you like."""
        return self._clerk.store.open_table(columns)

    def close(self) -> None:
        """End the workers and close the ledger."""
        self._clerk.close()

    def __repr__(self) -> str:
        return f"Holdout.open({str(self.path)!r})"


def _number(name: str, value: object, low: float = -math.inf) -> float:
    """One spelling for one number: 7, 7.0 and NumPy's 7 are the same question, 0 and −0 too."""
    return real_number(name, value, low) + 0.0
