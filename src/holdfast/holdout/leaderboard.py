"""The leaderboard: entries as a fold over the ledger, ranked with their error bars.

A submission is answered like any question. Then a note is written beside the answer:

    noted   {submission: {name, metric, greater, asker?, recorded: row number}}

The value of an entry is that of the recorded row, so that a note can add nothing but a name to it.
Error bars hold for all answers at once: an entry may be the best of many, and two entries whose
bars overlap are tied.
"""

from __future__ import annotations

import math
import re
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import Damaged, InvalidInput
from holdfast.holdout.records import answer_in
from holdfast.holdout.spec import HoldoutSpec
from holdfast.holdout.state import Journal
from holdfast.ledger.ledger import Row
from holdfast.protocols.answers import (
    READINGS,
    Answer,
    Told,
    number,
    reading_words,
    rounded_down,
    rounded_up,
)

if TYPE_CHECKING:
    from holdfast.holdout.answering import Price

__all__ = [
    "MOST_KEPT",
    "MOST_NAMES",
    "TOP",
    "Entry",
    "Neighbours",
    "Standings",
    "Submissions",
    "is_score",
    "is_told",
    "submission_fits",
]


MOST_NAMES = 10_000
TOP = 10  # entries that are compared with the next one, unless others are wanted
MOST_KEPT = 100  # entries by one metric whose predictions are kept: an entry's place only falls


@dataclass(frozen=True)
class Entry:
    """The best submission of one name, and how many there were."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    at: str
    receipt: str
    asker: str | None
    submissions: int
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without who asked."""
        return {name: value for name, value in asdict(self).items() if name != "asker"}


@dataclass(frozen=True)
class Neighbours:
    """Two entries next to each other, compared on the same rows; or what that would tell."""

    names: tuple[str, str]
    """What they are called, the one with the higher place first."""
    same: bool = False
    """Whether they are the same predictions: then there is nothing to tell."""
    told: Told | None = None
    price: Price | None = None
    """What it would tell, where only that was asked for."""
    reason: str | None = None
    """Why they were not compared."""

    @property
    def apart(self) -> bool:
        """Whether one is shown to be better."""
        told = self.told
        return told is not None and not (
            (told.low is None or told.low <= 0) and (told.high is None or told.high >= 0)
        )

    def __str__(self) -> str:
        one, other = self.names
        if self.same:
            return f"{one} and {other} are the same predictions: nothing to tell"
        if self.reason is not None:
            return f"{one} and {other} were not compared: {self.reason}"
        if self.told is not None:
            nats = "asked before, free" if self.told.cached else f"{_nats(self.told.told)} told"
            return f"{'' if self.apart else 'not shown apart: '}{self.told.said}; {nats}"
        assert self.price is not None  # else it was compared
        return f"{one} and {other}: {_price(self.price)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        told, price = self.told, self.price
        return {
            "names": list(self.names),
            "same": self.same,
            "apart": self.apart,
            "result": None if told is None else {"type": told.kind, **told.to_dict()},
            "price": None if price is None else price.to_dict(),
            "reason": self.reason,
            "said": str(self),
        }


def _nats(nats: float) -> str:
    return f"{number(nats, 2)} nats"


def _price(price: Price) -> str:
    """What a comparison would tell, in words."""
    if price.cached:
        return "asked before, free"
    if price.reason is not None:
        return price.reason
    offers = () if price.told is None else price.told.answers
    if any(each["expected"] for each in offers):
        surprises = [each["nats"] for each in offers if each["expected"] is False]
        more = f", {number(min(surprises), 2)} or more as a surprise" if surprises else ""
        return f"{_nats(price.price)} if it is as expected{more}"
    return f"about {_nats(price.price)}: nothing is known of both on open rows"


@dataclass(frozen=True)
class Standings:
    """The entries for one metric, the best first."""

    metric: str
    greater_is_better: bool
    entries: tuple[Entry, ...]
    reading: str | None = None
    """What the scores are about, as a code; None while there is none."""
    certified: bool = True
    """Whether bars and ranks are certified: those of a seeded holdout are not."""
    neighbours: tuple[Neighbours, ...] | None = None
    """The first entries compared in pairs, where that was asked for."""

    @property
    def best(self) -> Entry | None:
        """The entry with the best score, if there is one."""
        return next((each for each in self.entries if each.value is not None), None)

    @property
    def ties(self) -> int:
        """How many entries could be the best: no other's bar lies beyond theirs."""
        return sum(each.rank_low == 1 for each in self.entries)

    @property
    def classes(self) -> tuple[tuple[Entry, ...], ...]:
        """The entries that the bars separate: each bar of a class lies beyond all of the next."""
        made: list[list[Entry]] = []
        lowest = 0  # place that one above could have
        for place, each in enumerate(each for each in self.entries if each.value is not None):
            if lowest <= place:
                made.append([])
            made[-1].append(each)
            lowest = max(lowest, each.rank_high or 0)
        return tuple(map(tuple, made))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        told = self.neighbours
        compared = {} if told is None else {"neighbours": [each.to_dict() for each in told]}
        return {
            "metric": self.metric,
            "greater_is_better": self.greater_is_better,
            "entries": [each.to_dict() for each in self.entries],
            "ties": self.ties,
            "certified": self.certified,
            "reading": self.reading,
            "reading_words": reading_words(self.reading),
            **compared,
        }

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], neighbours: Sequence[Neighbours] | None = None
    ) -> Standings:
        """What `to_dict` wrote; who asked is not in it, and `neighbours` were read elsewhere."""
        names = {each.name for each in fields(Entry)} - {"asker"}
        entries = tuple(
            Entry(**{name: each[name] for name in names}, asker=None) for each in data["entries"]
        )
        return cls(
            data["metric"],
            data["greater_is_better"],
            entries,
            data["reading"],
            data["certified"],
            None if neighbours is None else tuple(neighbours),
        )

    def __str__(self) -> str:
        lines = [f"{'rank':>9}  {'name':<24} {self.metric}"]
        for each in self.entries:
            rank = f"{each.rank_low}–{each.rank_high}"
            low = "?" if each.low is None else rounded_down(each.low)
            high = "?" if each.high is None else rounded_up(each.high)
            lines.append(f"{rank:>9}  {each.name:<24} {each.value:.4g}   [{low}, {high}]")
        words = reading_words(self.reading)
        lines += [] if words is None else [f"scores of {words}"]
        lines += [*self._separated(), *map(str, self.neighbours or ())]
        if self.neighbours is not None:
            lines.append(self._cost(self.neighbours))
        return "\n".join(lines if self.certified else [*lines, "NOT certified: it is seeded"])

    def _separated(self) -> list[str]:
        """Which classes the bars separate, by the places of their entries."""
        found, places, first = self.classes, [], 1
        for each in found:
            last = first + len(each) - 1
            places.append(f"{first}" if first == last else f"{first}–{last}")
            first = last + 1
        if len(found) > 1:
            return [f"the bars separate {len(found):,} classes: places {', '.join(places)}"]
        return ["the bars separate no classes"] if first > 2 else []

    def _cost(self, neighbours: Sequence[Neighbours]) -> str:
        """What comparing them told, or would tell."""
        if not neighbours:
            return "nothing to compare: fewer than two entries"
        if any(each.price is not None for each in neighbours):
            nats = math.fsum(each.price.price for each in neighbours if each.price is not None)
            return f"nothing was asked: all of them tell about {_nats(nats)}"
        told = [each.told for each in neighbours if each.told is not None]
        nats = math.fsum(each.told for each in told if not each.cached)
        sure = f"; {max(told, key=lambda each: each.answers).sure}" if told else ""
        return f"these comparisons told {_nats(nats)}{sure if self.certified else ''}"


@dataclass
class _Kept:
    """The best submission of one asker under one name."""

    best: tuple[Row, Row]  # the note, and the answer
    value: float | None
    recorded: set[int] = field(default_factory=set)

    @property
    def reading(self) -> str:
        """What the score is about, as a code."""
        return str(self.best[1].body["question"]["estimator"]["reading"])

    @property
    def _sign(self) -> float:
        return 1.0 if self.best[0].body["submission"]["greater"] else -1.0

    def beaten(self, value: float) -> bool:
        """Whether another value is better."""
        return self.value is None or self._sign * value > self._sign * self.value

    def place(self) -> tuple[float, str]:
        """What entries are ordered by, the best first."""
        return math.inf if self.value is None else -self._sign * self.value, self.best[0].at


class Submissions:
    """What the ledger says of submissions, read on from where it was left."""

    def __init__(self, spec: HoldoutSpec, journal: Journal) -> None:
        self._spec, self._journal = spec, journal
        self._lock = threading.Lock()
        self._number = 0
        self._kept: dict[str, dict[tuple[str | None, str], _Kept]] = {}
        self._scores: dict[int, Row] = {}  # answers that a note may name

    def check_room(self, name: str, metric: str, asker: str | None) -> None:
        """Refuse yet another name, before anything is asked: names are free, and rows are not."""
        with self._lock:
            self._read(self._journal.ledger.rows(self._number))
            names = [each for who, each in self._kept.get(metric, {}) if who == asker]
        if name not in names and len(names) >= MOST_NAMES:
            hint = "Submit under a name that you have used."
            raise InvalidInput("name", name, f"one of at most {MOST_NAMES:,} for each asker", hint)

    def note(
        self,
        name: str,
        metric: str,
        greater_is_better: bool,
        asker: str | None,
        recorded: int,
    ) -> None:
        """Write that a recorded answer is a submission; the second time there is nothing to do."""
        with self._lock, self._journal.writing() as (transaction, state):
            self._read(transaction.rows(self._number))
            kept = self._kept.get(metric, {}).get((asker, name))
            if kept is not None and recorded in kept.recorded:
                return
            note: dict[str, Any] = {
                "name": name,
                "metric": metric,
                "greater": greater_is_better,
                "recorded": recorded,
            }
            note |= {} if asker is None else {"asker": asker}
            row = transaction.append("noted", {"submission": note})
            state.read([row])
        self._journal.witnessed(row)

    def standings(self, metric: str, greater_is_better: bool) -> Standings:
        """The entries of a metric as of now."""
        with self._lock:
            self._read(self._journal.ledger.rows(self._number))
            kept = self._kept.get(metric, {})
            made = [self._entry(name, asker, each) for (asker, name), each in kept.items()]
            readings = {each.reading for each in kept.values()}  # there is one, or none
        self._journal.head()
        entries = ranked(made, greater_is_better)
        reading = next(iter(readings), None)
        certified = self._spec.seed is None
        return Standings(metric, greater_is_better, entries, reading, certified or not made)

    def kept(self) -> set[str]:
        """The keys of scores whose predictions are kept: of the first entries that were told."""
        with self._lock:
            self._read(self._journal.ledger.rows(self._number))
            boards = [[*each.values()] for each in self._kept.values()]
        leading = (
            each.best[1]
            for board in boards
            for each in nsmallest(MOST_KEPT, board, key=_Kept.place)
            if each.value is not None
        )
        return {row.question for row in leading if row.question and is_told(row)}

    def _read(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row.kind == "recorded" and "reading" in row.body["question"]["estimator"]:
                self._scores[row.number] = row
            elif row.kind == "noted" and "submission" in row.body:
                self._add(row)
            self._number = row.number

    def _add(self, row: Row) -> None:
        note = row.body["submission"]
        recorded = self._scores.get(note["recorded"])
        if not submission_fits(row, recorded):
            remedy = "Put back the newest copy of the folder, and check it."
            what, expected = f"Row {row.number} of the ledger", "a submission with its answer"
            raise Damaged(what, expected, repr(note)[:80], remedy)
        assert recorded is not None
        board = self._kept.setdefault(note["metric"], {})
        value = _number(self._answer(recorded).value)
        kept = board.setdefault((note.get("asker"), note["name"]), _Kept((row, recorded), value))
        kept.recorded.add(recorded.number)
        if value is not None and kept.beaten(value):
            kept.best, kept.value = (row, recorded), value

    def _entry(self, name: str, asker: str | None, kept: _Kept) -> Entry:
        note, recorded = kept.best
        answer = self._answer(recorded)
        return Entry(
            name=name,
            value=_number(answer.value),
            low=_number(answer.low),
            high=_number(answer.high),
            at=note.at,
            receipt=str(self._journal.receipt(recorded)),
            asker=asker,
            submissions=len(kept.recorded),
        )

    def _answer(self, row: Row) -> Answer | Told:
        # It fits: it names one.
        return cast("Answer | Told", answer_in(self._spec, row, "", cached=False))


def submission_fits(row: Row, recorded: Row | None) -> bool:
    """Whether a note names a recorded score of predictions by its metric."""
    note: Mapping[str, Any] = row.body["submission"]
    if recorded is None or recorded.kind != "recorded" or recorded.number >= row.number:
        return False
    drawn, question = recorded.body["drawn"], recorded.body["question"]
    if drawn is None or not isinstance(note["name"], str) or not isinstance(note["greater"], bool):
        return False
    scored = question["verb"] in ("ask", "mean", "score")
    estimator = question["estimator"]
    known = scored and estimator.get("reading") in READINGS
    return known and _is_score_of(str(note["metric"]), estimator["text"])


def is_told(row: Row) -> bool:
    """Whether a recorded score is one that was told over single rows."""
    return str(row.body["question"]["verb"]) == "score"


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def ranked(entries: Iterable[Entry], greater_is_better: bool) -> tuple[Entry, ...]:
    """The entries in order, with the ranks that their error bars allow.

    rank_low is 1 + the entries whose bar lies entirely beyond, rank_high the entries less those
    whose bar lies entirely behind.
    """
    sign = 1.0 if greater_is_better else -1.0
    every = sorted(entries, key=lambda each: each.at)
    scored = [each for each in every if each.value is not None]
    scored.sort(key=lambda each: -sign * (each.value or 0.0))
    bars = [_bar(each, sign) for each in scored]
    lows, highs = sorted(low for low, _ in bars), sorted(high for _, high in bars)
    values = sorted(sign * (each.value or 0.0) for each in scored)
    made = []
    for each, (low, high) in zip(scored, bars, strict=True):
        beyond = len(lows) - bisect_right(lows, high)
        behind = bisect_left(highs, low)
        better = len(values) - bisect_right(values, sign * (each.value or 0.0))
        ranks = {"rank": 1 + better, "rank_low": 1 + beyond, "rank_high": len(scored) - behind}
        made.append(Entry(**{**asdict(each), **ranks}))
    return (*made, *(each for each in every if each.value is None))


def _bar(entry: Entry, sign: float) -> tuple[float, float]:
    """The bar with larger numbers for better scores; where there is no end, it has none."""
    low = -math.inf if entry.low is None else entry.low
    high = math.inf if entry.high is None else entry.high
    return (low, high) if sign > 0 else (-high, -low)


def is_score(text: object) -> bool:
    """Whether the ledger's words for an estimator are those of a score of predictions."""
    return " of predictions for " in str(text)


def _is_score_of(metric: str, text: object) -> bool:
    """Likewise, by this metric."""
    return re.match(rf"{re.escape(metric)} of predictions for ", str(text)) is not None
