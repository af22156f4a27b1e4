"""The holdout: a sealed dataset, a plan and a ledger, and everything that it can be asked."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from holdfast.engines.source import Limits, Progress
from holdfast.errors import Exhausted, InvalidInput
from holdfast.grids import Grid
from holdfast.holdout.answering import HERE, Backends, OpenHoldout, Pace, Price, price_of
from holdfast.holdout.creation import Preview, create_holdout
from holdfast.holdout.custody import Access, Backup, back_up
from holdfast.holdout.doubts import doubts_of, refuse
from holdfast.holdout.public import ranged
from holdfast.holdout.questions import Asked, Estimator
from holdfast.holdout.records import SLOTS, transcript_of
from holdfast.holdout.scoring import Scorers, Scoring, SharedScoring, named_candidates
from holdfast.holdout.spec import AnyPlan
from holdfast.holdout.state import Status, questions_left, status_of
from holdfast.holdout.tokens import Asker
from holdfast.ledger.ledger import Receipt
from holdfast.ledger.opening import has_ledger
from holdfast.protocols.answers import Answer, Claim, Corrected, Result, Verdict, is_answer
from holdfast.protocols.base import VERBS, Verb
from holdfast.protocols.shapes import Shape

if TYPE_CHECKING:
    from holdfast.holdout.check import Checked

__all__ = ["Holdout"]

_FEW_UNITS = 20  # open ones: fewer do not say how many rows units have …
_ROWS_OF_A_UNIT = 16  # … and then it is taken to be so many


class _Quoted(Exception):
    """The question that was made ready, and is only to be priced."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked


class Holdout(Scoring):
    """Make one with `Holdout.create`, come back to it with `Holdout.open`."""

    def __init__(self, path: Path, limits: Limits | None = None, place: Backends = HERE) -> None:
        self.path = path
        self._open = OpenHoldout(path, limits, place)
        self.spec, self.journal = self._open.spec, self._open.journal
        self._asker: Asker | None = None
        self._pace: Pace | None = None
        self._quoting = False
        self._shared = SharedScoring(self._open)
        self.scorers = Scorers()

    # Making and finding.

    @classmethod
    def create(
        cls,
        path: str | Path,
        data: object,
        plan: AnyPlan
        | Iterable[AnyPlan]
        | Callable[[int], AnyPlan | Iterable[AnyPlan]]
        | None = None,
        *,
        unit: str | None = None,
        ids: str | None = None,
        columns: Sequence[str] | None = None,
        open_fraction: float | None = None,
        queries: int | None = None,
        confidence: float = 0.95,
        reading: str = "rows",
        split: str = "simple",
        block_units: int | None = None,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        universe: Mapping[str, Sequence[object]] | None = None,
        target: str | None = None,
        labels: Sequence[object] | None = None,
        weight: str | None = None,
        name: str | None = None,
        new_budget: str | None = None,
        seed: int | None = None,
        memory_limit: str | None = None,
        threads: int | None = None,
        progress: Callable[[str, float], None] | None = None,
        review: Callable[[Preview], None] | None = None,
        limits: Limits | None = None,
        engine: str | None = None,
        location: str | None = None,
        ledger: str | None = None,
    ) -> Self:
        """Seal a table in a new folder.

        Without a plan, 0.4 of the units stay open and all others answer by what is told: `queries`
        is about how many questions are expected, `confidence` holds for all of them at once.
        `reading` says what scores of predictions by id are about: "rows" (these rows, fresh labels)
        or "rule" (this rule, on fresh rows). `split` says how the table was split off from what
        people see, if that was elsewhere: "simple" (at random), or "stratified" by the target.

        `unit` names the column whose value tells units apart; without it every row is one. `ids`
        names one that predictions are keyed by: its values are public, and not sealed.
        `open_fraction` of the units stay open, for training and for guesses. `ranges` declares
        between which values columns of numbers lie, `categories` all that columns of texts can be;
        `universe`, for weights, all the values that columns can have. `target` is what models
        predict, and `labels` are all the labels that it has: they are public then, and any other
        prediction is refused. Blocks are as large as the data allow, or have `block_units` units.
        With a `seed` nothing is certified. `review=print` shows how large the blocks and how wide
        the bars will be, before anything is sealed; what it raises stops the creation.

        `engine`, the address of a Dask scheduler (dask://…), creates and asks on its cluster, from
        Parquet files; `location`, a URL, is where the sealed files then go. `ledger`
        (postgresql://…) is a database that several servers can share.
        """
        folder = Path(path)
        create_holdout(
            folder,
            data,
            plan,
            unit=unit,
            ids=ids,
            columns=columns,
            open_fraction=open_fraction,
            queries=queries,
            confidence=confidence,
            reading=reading,
            split=split,
            block_units=block_units,
            ranges=ranges,
            categories=categories,
            universe=universe,
            target=target,
            labels=labels,
            weight=weight,
            name=name,
            new_budget=new_budget,
            seed=seed,
            memory_limit=memory_limit,
            threads=threads,
            progress=progress,
            review=review,
            engine=engine,
            location=location,
            ledger=ledger,
        )
        return cls(folder, limits, Backends(engine, ledger))

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        limits: Limits | None = None,
        engine: str | None = None,
        ledger: str | None = None,
    ) -> Self:
        """The holdout in this folder. An older copy of one that was used since is refused.

        Questions are evaluated here, or by the cluster at `engine`. `ledger` is for a database that
        is not where the folder says.
        """
        folder = Path(path)
        if not has_ledger(folder):
            hint = "Make one with holdfast.Holdout.create, or `holdfast create`."
            raise InvalidInput("path", str(path), "the folder of a holdout", hint)
        return cls(folder, limits, Backends(engine, ledger))

    # Asking.

    def ask(
        self,
        estimator: Estimator,
        *,
        grid: Grid | None = None,
        where: str | None = None,
        shape: Shape | None = None,
        guess: float | None = None,
        max_level: float | None = None,
        protocol: str | None = None,
        anyway: bool = False,
        request: str | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Answer:
        """The estimator's value on fresh data, from any estimator of one block.

        SQL text is an aggregate; a callable gets one block. `options` (columns, block, vectorised)
        say how to call it. What is public and looks like a slip is refused, free: `Doubtful`;
        `anyway` asks it all the same. The other verbs do likewise.

        Where answers are by what is told, a `guess` makes an expected one cheaper; without one it
        is that of the open part. `max_level` refuses if others have asked meanwhile.
        """
        words: dict[str, Any] = {"grid": grid, "where": where, "shape": shape, "protocol": protocol}
        words |= {"options": options, "guess": guess, "max_level": max_level}
        asked = self._open.asked("ask", estimator, **words)
        return cast(Answer, self._asked(asked, request, progress, anyway))

    def verify(
        self,
        estimator: Estimator,
        guess: float,
        *,
        tolerance: float | None = None,
        claim: Claim = "equals",
        where: str | None = None,
        max_level: float | None = None,
        protocol: str | None = None,
        anyway: bool = False,
        request: str | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Verdict:
        """Whether a guess is compatible with fresh data, not compatible, or nobody can tell.

        "Compatible" is no confirmation: `range_low` and `range_high` say which other guesses are.
        """
        words: dict[str, Any] = {"guess": guess, "tolerance": tolerance, "claim": claim}
        words |= {"where": where, "protocol": protocol, "options": options, "max_level": max_level}
        return cast(Verdict, self._ranged("verify", estimator, words, request, progress, anyway))

    def correct(
        self,
        estimator: Estimator,
        guess: float,
        *,
        grid: Grid | None = None,
        where: str | None = None,
        shape: Shape | None = None,
        protocol: str | None = None,
        anyway: bool = False,
        request: str | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Corrected:
        """Whether a guess is compatible with fresh data; if not, an answer in its place."""
        words: dict[str, Any] = {"guess": guess, "grid": grid, "where": where, "shape": shape}
        words |= {"protocol": protocol, "options": options}
        found = self._ranged("correct", estimator, words, request, progress, anyway)
        return cast(Corrected, found)

    def mean(
        self,
        term: Estimator,
        *,
        where: object = None,
        range: tuple[float, float] | None = None,  # noqa: A002 – what everybody calls it
        grid: Grid | None = None,
        columns: Sequence[str] | None = None,
        guess: float | None = None,
        guess_se: float | None = None,
        precise: bool = False,
        max_level: float | None = None,
        protocol: str | None = None,
        anyway: bool = False,
        request: str | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """The mean of a term (true is 1), with its error bar.

        With a plan there is a bar only where no condition filters.

        The term lies in [0, 1] by its form and the declared ranges of its columns, or else in
        `range`, a pair (low, high), which a Python function must have. What leaves a declared
        range on a sealed row is cut to it, and the promise says so.

        `guess`, `guess_se`, `precise` and `max_level` as for `score`, where answers are by what is
        told.
        """
        words: dict[str, Any] = {"where": where, "range": range, "grid": grid}
        words |= {"columns": columns, "protocol": protocol, "guess": guess, "guess_se": guess_se}
        words |= {"precise": precise, "max_level": max_level}
        asked = self._open.asked("mean", term, **words)
        return cast(Answer, self._asked(asked, request, progress, anyway))

    def interval(
        self,
        estimator: Estimator,
        *,
        grid: Grid | None = None,
        where: str | None = None,
        guess: float | None = None,
        max_level: float | None = None,
        protocol: str | None = None,
        anyway: bool = False,
        request: str | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Answer:
        """An interval that encloses the median of what the estimator gives on fresh blocks."""
        words: dict[str, Any] = {"grid": grid, "where": where, "protocol": protocol}
        words |= {"options": options, "guess": guess, "max_level": max_level}
        asked = self._open.asked("interval", estimator, **words)
        return cast(Answer, self._asked(asked, request, progress, anyway))

    def price(self, verb: str, estimator: object, *given: Any, **words: Any) -> Price:
        """What a question would cost, asked now: nothing is drawn, told or charged.

        After the verb comes what it is asked with: holdout.price("ask", "avg(x)", grid=…), or
        holdout.price("compare", b, a, margin=0). What would be refused without `anyway` is
        priced, and told in `doubts`. The price of `best(…, precise=True)` is that of the winner and
        of its bar.
        """
        priced = (*VERBS, "enter")
        if verb not in priced:
            raise InvalidInput("verb", verb, f"one of {', '.join(priced)}")
        quoting = copy.copy(self)
        quoting._quoting = True
        try:
            getattr(quoting, verb)(estimator, *given, **words)
        except _Quoted as quoted:
            asked = quoted.asked
        bar = 0.0
        if asked.question.verb == "best" and words.pop("precise", False):
            (first, *_), _ = named_candidates(estimator, words.get("names"))  # any tells as much
            about = {name: words[name] for name in words if name not in ("names", "request")}
            bar = self.price("score", first, precise=True, **about).price
        return self._priced(asked, bar)

    def _priced(self, asked: Asked, bar: float = 0.0) -> Price:
        price = price_of(self._open, asked, self._asker, bar)
        if self._pace is not None and not price.cached:
            self._pace.admit(asked)
        return price

    @property
    def planned_rows(self) -> int:
        """The sealed rows that a server plans its time for: a function of what is public.

        How many rows units have is not: there may be twice as many a unit as in the open part.
        """
        contents = self._open.store.manifest
        units = contents.blocks * contents.block_units
        if contents.one_row_units:
            return units
        opened, rows = contents.open_units, contents.open_rows
        return math.ceil(units * (2 * rows / opened if opened >= _FEW_UNITS else _ROWS_OF_A_UNIT))

    def verify_blocks(self) -> None:
        """Raise `Damaged` unless the sealed files are as they were written."""
        self._open.verify_blocks()

    def _ranged(
        self,
        verb: Verb,
        estimator: Estimator,
        words: dict[str, Any],
        request: str | None,
        progress: Progress | None,
        anyway: bool,
    ) -> Result:
        asked = self._open.asked(verb, estimator, **words)
        result = self._asked(asked, request, progress, anyway)
        if not is_answer(result):
            return result
        values = self._open.open_values(asked)
        worst = math.inf if asked.question.about.get("failure") == "highest" else -math.inf
        if asked.protocol.told:
            protocol: Any = asked.protocol
            return cast(Result, protocol.ranged(asked.question, result, values, worst))
        return ranged(result, values, worst)

    def _asked(
        self, asked: Asked, request: str | None, progress: Progress | None, anyway: bool
    ) -> Result:
        if self._quoting:
            raise _Quoted(asked)
        doubts = () if anyway else doubts_of(self.spec, self._open.open_part, asked)
        if doubts and not self.journal.is_known(asked.key):  # else it is free anyway
            refuse(doubts)
        asked = asked if self._pace is None else asked.assuming(SLOTS)
        try:
            return self._open.answer(asked, request, progress, self._asker, self._pace)
        except Exhausted:
            self.journal.head()  # what is left is shown now
            raise

    # Who asks.

    def on_behalf(self, asker: Asker, pace: Pace | None = None) -> Holdout:
        """The holdout for one asker: what they ask is recorded as theirs, within their quota.

        It shares everything with this one, which is the one to close. `pace` hides from them how
        long a draw took: it waits before the answer is recorded.
        """
        theirs = copy.copy(self)
        theirs._asker, theirs._pace = asker, pace
        return theirs

    @property
    def access(self) -> Access:
        """Tokens and quotas of those who ask through a server."""
        return Access(self.journal)

    # Looking back.

    def status(self) -> Status:
        """What is spent, what is left, and what it still buys."""
        with self.journal.state() as state:
            return status_of(self.spec, self.path, state, self.journal.head())

    def questions_left(
        self, protocol: str | None = None, queries: int | None = None, grid: int | None = None
    ) -> dict[str, Any]:
        """How many more questions there are for each part, and on grids of other sizes."""
        with self.journal.state() as state:
            left = questions_left(self.spec, state, protocol, queries, grid)
        self.journal.head()  # what was read is shown now
        return left

    def transcript(self, after: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
        """Questions and answers as plain data, those after a row of the ledger, oldest first."""
        return transcript_of(self.spec, self.journal, after, limit)

    @property
    def receipt(self) -> Receipt:
        """The ledger's head, to be kept elsewhere."""
        return self.journal.head()

    def check(self, receipt: str | None = None) -> Checked:
        """What `holdfast check` finds: `print` it, or look at its `passed`.

        Chain, plan, prices, budget, answers and files are computed again from what is on disk;
        the ledger must continue a `receipt` that you kept.
        """
        from holdfast.holdout.check import check_holdout

        return check_holdout(self.path, receipt)

    def report(self, path: str | Path) -> None:
        """Write what `holdfast report` does, one HTML page; a file that is there is replaced."""
        import_module("holdfast.report.page").write_report(self, path)  # it builds on this package

    def backup(self, path: str | Path) -> Backup:
        """Copy the holdout as of now into a new folder that its owner alone can read.

        For disaster only: to go on with an older copy is to hand out budget twice.
        """
        return back_up(self._open.store, self.spec, self.journal.ledger, Path(path))

    def open_table(self, columns: Sequence[str] | None = None) -> Any:
        """The open part as an Arrow table: for training and for guesses, as often as you like.

        Where rows have ids, theirs come first.
        """
        return self._shared.open_table(columns)

    def close(self) -> None:
        """End the workers and close the ledger."""
        self._open.close()

    def __repr__(self) -> str:
        return f"Holdout.open({str(self.path)!r})"
