"""What comes out of a protocol: a value or a verdict, what is promised of it, and what it cost.

A holdout adds whether it had been asked before (`cached`), and the ledger's receipt.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import partial
from html import escape
from typing import Any, ClassVar, Literal, cast

from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds

__all__ = [
    "ASSUMPTIONS",
    "AT_SHARES",
    "FAILURES",
    "LEAST_SHARE",
    "NOTHING",
    "READINGS",
    "ROWS",
    "RULE",
    "TOLD_ASSUMES",
    "Answer",
    "Cell",
    "Claim",
    "Corrected",
    "Result",
    "Told",
    "Verdict",
    "VerdictWord",
    "at_least",
    "bar_ends",
    "bar_text",
    "bare",
    "confidence_text",
    "direct_promise",
    "fewer_than",
    "html_bar",
    "html_table",
    "in_full",
    "interval_promise",
    "is_answer",
    "lies_between",
    "mean_promise",
    "near_promise",
    "number",
    "quantile",
    "quantiles",
    "reading_words",
    "rounded_down",
    "rounded_up",
    "search_promise",
    "unit_words",
    "verdict_promise",
    "with_failures",
]


LEAST_SHARE = 0.01
"""The least share of fresh blocks that says anything of a guess: 1 in 100.

A convention, and the only one: nearly every guess has 1 fresh block in a million on either side of
it, so that certifying as little is no verdict. It decides words (`Verdict.verdict`), and what is
refused because no other word could come of it; no bound depends on it.
"""

ASSUMPTIONS = (
    "units are independent draws from one population; blocks are random and fixed at creation; "
    "an estimator sees one block at a time; nobody sees anything else of the holdout"
)


# Readings: what a score is about, as a code that is kept and as the words for people.
#
# A score of predictions, or of a model, can be read in two ways (docs/explanation/promise.md).
# These very rows, with fresh labels: that holds against everybody, whatever they were made from.
# Or the rule that made the predictions, on fresh rows: that needs that the rule was made
# without the features of the sealed rows, for a rule that knows them may be right there and nowhere
# else. Where rows were split by class, it is that rule at the class shares of the sealed rows.


ROWS = "these-rows-fresh-labels"
RULE = "rule-on-fresh-rows"
AT_SHARES = "rule-at-these-class-shares"
READINGS = {
    ROWS: "these rows, fresh labels (against everybody, whatever the predictions were made from)",
    RULE: "this rule, on fresh rows (assumes that it was made without these rows' features)",
    AT_SHARES: "this rule, on fresh rows at these class shares (assumes that it was made without "
    "these rows' features)",
}


def reading_words(code: str | None) -> str | None:
    """The words for a code; None where there is nothing to read in two ways.

    >>> reading_words(RULE)
    "this rule, on fresh rows (assumes that it was made without these rows' features)"
    """
    return None if code is None else READINGS[code]


# The promises in words: what every answer says of itself, and what `check` expects it to say.
#
# A promise is about fresh blocks of so many units, and is said so: in shares of such blocks, with
# numbers that somebody who has never read the theory can repeat. Numbers are rounded so that a
# sentence never says more than was proved.


Cell = tuple[float | None, float | None]
"""The edges of what a point of the grid stands for; None where there is none."""

NOTHING = "nothing was drawn, and nothing is said of the guess"
_LOWEST = " (a block without a value counts as lowest)"
_EMPTY = "; so small a share says nothing by itself"
_DENOMINATORS = (100, 1_000, 10_000)
_DIGITS = 12  # as values are shown
FAILURES = {  # what a failure counts as, by the code that the ledger keeps of an estimator
    "wrong": "a row on which it fails, or without a target, counts as wrong",
    "one": "a row on which it fails, or whose target is not 0 or 1 or probability not between "
    "them, counts as 1, the worst",
    "worst": "a row on which it fails, or without such a target, counts as the worst",
    "highest": "a block on which it fails counts as the highest value",
}


def with_failures(promise: str, failures: str) -> str:
    """A promise about blocks that says of what a failure counts as, and says it once."""
    return f"{promise.replace(_LOWEST, '')}; {failures}"


def search_promise(
    low: float, high: float, units: int, cell: Cell, *, has_bar: bool, as_it_came: bool = False
) -> str:
    r"""Of a value with these tails, and perhaps with bounds on the mean.

    The value is projected upwards onto the grid: it stands for the cell (previous point, point],
    and says nothing on a side where the cell has no edge (`Grid.cell`). One of a block's values,
    `as_it_came`, is both edges itself.

    >>> print(search_promise(0.05, 0.05, 100, (230, 240), has_bar=False).replace(", ", "\n"))
    at least 5 in 100 fresh blocks of 100 units give 240 or less
    and at least 5 in 100 give more than 230 (a block without a value counts as lowest)
    >>> said = search_promise(0.25, 0.25, 1, (0.5, 0.5), has_bar=False, as_it_came=True)
    >>> print(said.replace(", ", "\n"))
    at least 25 in 100 fresh blocks of 1 unit give 0.5 or less
    and at least 25 in 100 give 0.5 or more (a block without a value counts as lowest)
    """
    below = above = None
    if cell[1] is not None:
        below = f"{_up(cell[1])} or less"
    if cell[0] is not None:
        above = f"{_down(cell[0])} or more" if as_it_came else f"more than {_down(cell[0])}"
    said = _sides(low, high, units, below, above)
    if has_bar:
        return f"{said}; the mean lies between low and high"
    return said + _EMPTY if min(low, high) < LEAST_SHARE else said


def interval_promise(tail: float, units: int, low: float | None, high: float | None) -> str:
    """Of two ends that enclose the median of the estimator over blocks."""
    ends = []
    if high is not None:
        ends.append(f"at least half of all {_blocks(units)} give {_up(high)} or less")
    if low is not None:
        of = "" if ends else f" of all {_blocks(units)}"
        ends.append(f"at least half{of} give {_down(low)} or more")
    said = ", and ".join(ends) or "nothing is said: both ends are those of the grid"
    return (
        f"{said}{_LOWEST}; that is the median over blocks, not over units, and but for a cell of "
        f"the grid {_give(tail).replace(' give', ' lie')} beyond either end"
    )


def mean_promise(
    low: float,
    high: float,
    units: int,
    cell: Cell,
    bounds: Bounds = UNIT,
    *,
    cut: bool = False,
    filtered: bool,
    failures: str = "",
) -> str:
    """Of the median of block means; under a filter it has no bar. `cut`: whether it could leave."""
    of, lowest = _of(bounds, cut), _failures(bounds, failures)
    if filtered:
        said = search_promise(low, high, units, cell, has_bar=False).replace(_LOWEST, "")
        return f"{said}{'; of means' + of if of else ''}{lowest}"
    return f"the mean on fresh data{of} lies between low and high{lowest}"


def direct_promise(bounds: Bounds, *, cut: bool, exact: bool, failures: str = "") -> str:
    """Of a search over the sum. `exact`: only the ends are counted."""
    low, high = (in_full(end) for end in bounds)
    of = "" if bounds == UNIT else " of the range"
    ends = (
        f"; a value is rounded to {WEIGHT_SCALE:,}ths{of} and counts as {low} below the middle, as "
        f"{high} from it on"
    )
    ends = ends if exact else ""
    said = f"the mean on fresh data{_of(bounds, cut)} lies between low and high"
    return said + ends + _failures(bounds, failures)


def unit_words(unit: str) -> str:
    """How a mean counts units of several rows.

    >>> unit_words("patient")
    'each patient counted once, with the mean of its rows'
    """
    return f"each {unit} counted once, with the mean of its rows"


def _of(bounds: Bounds, cut: bool) -> str:
    low, high = (in_full(end) for end in bounds)
    return f" of the term cut to [{low}, {high}]" if cut else ""


def _failures(bounds: Bounds, failures: str) -> str:
    return f"; {failures or f'a failure counts as {in_full(bounds[0])}'}"


def in_full(number: float) -> str:
    """A number with all its digits, as Python writes it.

    >>> in_full(-1.0), in_full(0.1), in_full(1234567.25)
    ('-1', '0.1', '1234567.25')
    """
    return repr(float(number)).removesuffix(".0")


def verdict_promise(
    refused: bool | None, guess: float, claim: str, low: float, high: float, units: int
) -> str:
    """Of a guess that a part for guesses has let stand, or refused.

    >>> verdict_promise(False, 60, "at most", 0.05, 0.25, 11).partition(" (")[0]
    'at least 5 in 100 fresh blocks of 11 units give 60 or less'
    >>> verdict_promise(True, 60, "at least", 0.05, 0.25, 11).partition(" (")[0]
    'fewer than 25 in 100 fresh blocks of 11 units give 60 or more'
    """
    if refused is None:
        return NOTHING
    below, above = (_down(guess), _up(guess)) if refused else (_up(guess), _down(guess))
    sides = {"at most": f"{below} or less", "at least": f"{above} or more"}
    if claim != "equals":
        sides = {claim: sides[claim]}
    if not refused:
        said = _sides(low, low, units, sides.get("at most"), sides.get("at least"))
        return f"{said}{_no_confirmation(guess, low)}"
    if 1 - high >= LEAST_SHARE:
        share, both = f"{fewer_than(high)} {_blocks(units)}", f", or {fewer_than(high)} give "
        return f"{share} give {both.join(sides.values())}{_LOWEST}"
    # Close to all of them: what is left says it better.
    beyond = {"at most": f"more than {below}", "at least": f"less than {above}"}
    rest = math.nextafter(1 - high, 0.0)  # rounded down
    either = f", or {_give(rest)} ".join(beyond[side] for side in sides)
    return f"{_give(rest, units)} {either}{_LOWEST}{_EMPTY}"


def near_promise(
    refused: bool | None, guess: float, tolerance: float, low: float, high: float, units: int
) -> str:
    """Of a guess that a search on three points has let stand, or refused."""
    if refused is None:
        return NOTHING
    first, last = guess - tolerance, guess + tolerance
    if not refused:
        said = _sides(low, high, units, f"{_up(last)} or less", f"{_down(first)} or more")
        return f"{said}{_no_confirmation(guess, min(low, high))}"
    below = f"{_give(low, units)} less than {_up(first)}"
    above = f"{_give(high)} more than {_down(last)}"
    return (
        f"{below}, or {above}{_LOWEST}; that does not speak against the guess, for a right one has "
        "blocks on either side too"
    )


def _no_confirmation(guess: float, share: float) -> str:
    if share < LEAST_SHARE:
        return _EMPTY
    return f"; that is no confirmation of {in_full(guess)}, other guesses are compatible too"


def _sides(low: float, high: float, units: int, below: str | None, above: str | None) -> str:
    """So many blocks give this at most, and so many that at least; None: nothing is said of it."""
    said = []
    if below is not None:
        said.append(f"{_give(low, units)} {below}")
    if above is not None:
        said.append(f"{_give(high, None if said else units)} {above}")
    return (", and ".join(said) or "nothing is said: the grid has one point") + _LOWEST


def _blocks(units: int) -> str:
    return f"fresh blocks of {units:,} unit{'' if units == 1 else 's'}"


def at_least(share: float) -> str:
    """A share that is certified to be exceeded, in whole numbers, rounded down.

    >>> at_least(0.05), at_least(0.125), at_least(6.94e-11)
    ('at least 5 in 100', 'at least 125 in 1,000', 'at least 1 in 14,500,000,000')
    """
    exact = Fraction(repr(share))
    if exact < Fraction(1, 100):
        inverse = -(-1 // exact)  # rounded up
        digits = 10 ** max(0, len(str(inverse)) - 3)
        return f"at least 1 in {-(-inverse // digits) * digits:,}"
    return f"at least {_whole(exact, up=False)}"


def fewer_than(share: float) -> str:
    """A share that is certified not to be reached, in whole numbers, rounded up.

    >>> fewer_than(0.25), fewer_than(1 / 3)
    ('fewer than 25 in 100', 'fewer than 3,334 in 10,000')
    """
    return f"fewer than {_whole(Fraction(repr(share)), up=True)}"


def _whole(share: Fraction, *, up: bool) -> str:
    for whole in _DENOMINATORS:  # the first that says it exactly, or else the last
        if (share * whole).denominator == 1:
            break
    count = -(-share * whole // 1) if up else share * whole // 1
    return f"{int(count):,} in {whole:,}"


def _give(share: float, units: int | None = None) -> str:
    """At least so many blocks give, of so many units where that was not said: one of them gives."""
    count = at_least(share)
    of = "" if units is None else f" {_blocks(units)}"
    return f"{count}{of} {'gives' if count.startswith('at least 1 in ') else 'give'}"


def rounded_down(value: float, digits: int = 4) -> str:
    """A bound for people, never above it.

    >>> rounded_down(0.80995), rounded_down(1e-6), rounded_up(0.88491), rounded_up(0.25)
    ('0.8099', '1e-06', '0.885', '0.25')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int = 4) -> str:
    """A bound for people, never below it."""
    return _rounded(value, digits, ROUND_CEILING)


def _rounded(value: float, digits: int, direction: str) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    number = Context(digits, direction).create_decimal(repr(float(value)))
    return f"{float(number):.{digits}g}"


_down = partial(_rounded, digits=_DIGITS, direction=ROUND_FLOOR)
_up = partial(_rounded, digits=_DIGITS, direction=ROUND_CEILING)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None, digits: int = 4) -> str:
    """A number in at most so many digits, without trailing zeros.

    >>> number(0.1 + 0.2), number(-12345.678), number(4.69e-10), number(None), number(math.inf)
    ('0.3', '−12,346', '4.69×10⁻¹⁰', '–', '∞')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size and not 1e-4 <= size < 1e9:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        raised = str(int(power)).translate(_SUPERSCRIPTS)
        return f"{bare(mantissa)}×10{raised}"
    decimals = max(0, digits - 1 - math.floor(math.log10(size))) if size else 0
    return bare(f"{value:,.{min(decimals, digits + 3)}f}")


def bare(text: str) -> str:
    """A number without trailing zeros, and with a real minus."""
    bare = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if bare in ("-0", "") else bare.replace("-", "−")


def quantile(level: float) -> str:
    r"""A quantile's level: in percent, unless it is tiny.

    >>> quantile(0.25), quantile(0.001), quantile(4.69e-10)
    ('25\xa0%', '0.1\xa0%', '4.69×10⁻¹⁰')
    """
    return f"{number(100 * level)}\u00a0%" if level >= 1e-4 else number(level, 3)


def quantiles(low: float, high: float) -> str:
    """Where an answer with these tails lies.

    >>> quantiles(0.05, 0.05).replace("\u00a0", " ")
    'between the 5 % and 95 % quantiles'
    """
    top = quantile(1 - high) if high >= 1e-4 else f"1 − {quantile(high)}"
    return f"between the {quantile(low)} and {top} quantiles"


def lies_between(low: float, high: float) -> str:
    """What is promised of answers with these tails."""
    return f"The answer lies {quantiles(low, high)} of its estimator on a fresh block."


def bar_text(low: float | None, high: float | None) -> str:
    """A bar for people: to six digits, or as many as a hundredth of its width needs, outwards.

    >>> bar_text(0.1234567, 0.4567891), bar_text(1700000369.88, 1700000630.12)
    ('[0.123456, 0.45679]', '[1700000369, 1700000631]')
    >>> bar_text(None, 12.5), bar_text(0.0, 1.0)
    ('[−∞, 12.5]', '[0, 1]')
    """
    ends = [abs(end) for end in (low, high) if end is not None]
    digits = _DIGITS + 5 if len(ends) < 2 else 6
    if low is not None and high is not None and high > low and max(ends) > 0:
        digits = max(6, math.ceil(math.log10(max(ends) / (high - low))) + 3)
    digits = min(digits, 17)
    below = "−∞" if low is None else rounded_down(low, digits)
    above = "∞" if high is None else rounded_up(high, digits)
    return f"[{below}, {above}]"


def confidence_text(confidence: float) -> str:
    """A confidence for people, never more than it is.

    >>> confidence_text(0.95), confidence_text(0.9999996)
    ('0.95', '0.999999')
    """
    return rounded_down(confidence, 6)


# Tables: how values look in a notebook. Styled inline, nothing is fetched from anywhere.


_TABLE = "border-collapse:collapse;font-size:90%;line-height:1.4"
_LABEL = "text-align:left;vertical-align:top;padding:1px 12px 1px 0;opacity:.65;font-weight:normal"
_VALUE = "text-align:left;padding:1px 0;max-width:60em"


def html_table(title: str, items: Mapping[str, str]) -> str:
    """A title and labelled lines. Everything is escaped.

    >>> "avg(x) &lt; 3" in html_table("avg(x) < 3", {"answer": "yes"})
    True
    """
    rows = "".join(
        f'<tr><th style="{_LABEL}">{escape(label)}</th>'
        f'<td style="{_VALUE}">{escape(text)}</td></tr>'
        for label, text in items.items()
    )
    caption = (
        f'<caption style="text-align:left;font-weight:bold;caption-side:top">{escape(title)}'
        "</caption>"
    )
    return f'<table style="{_TABLE}">{caption}{rows}</table>'


def html_bar(share: float) -> str:
    """How full something is, as a bar of 12em.

    >>> "width:25.0%" in html_bar(0.25)
    True
    """
    width = f"width:{100 * min(max(share, 0.0), 1.0):.1f}%"
    outer = "display:inline-block;width:12em;height:.7em;border:1px solid;border-radius:3px"
    inner = f"display:block;height:100%;{width};background:currentColor;opacity:.5"
    return f'<span style="{outer}"><span style="{inner}"></span></span>'


# Answers: a value, a verdict, or what is told, with all that goes with it.


Claim = Literal["equals", "at least", "at most"]
VerdictWord = Literal["compatible", "not compatible", "cannot tell", "exhausted"]


class _Accounted(ABC):
    """The part that answers and verdicts have in common."""

    tail_low: float
    tail_high: float

    @property
    def tail(self) -> float:
        """The smaller of the two tails."""
        return min(self.tail_low, self.tail_high)

    confidence: float
    promise: str
    price: float
    budget_left: float
    certified: bool
    block_units: int
    cached: bool
    receipt: str
    reading: str | None

    def _accounts(self) -> dict[str, str]:
        """What is promised and what it cost, for people."""
        sure = "for all answers at once" if self.certified else "NOT certified"
        price = "free: asked before" if self.cached else f"{self.price:.4g}"
        words = reading_words(self.reading)
        items = {} if words is None else {"reading": words}
        items |= {
            "promise": f"{self.promise}; confidence {confidence_text(self.confidence)}, {sure}",
            "assumes": ASSUMPTIONS,
            "price": f"{price}; {self.budget_left:.4g} left",
        }
        return {**items, "receipt": self.receipt} if self.receipt else items

    @abstractmethod
    def described(self) -> dict[str, str]:
        """What it says, in labelled lines, for people."""

    def __str__(self) -> str:
        return "\n".join(f"{label:<9}{text}" for label, text in self.described().items())

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text; a number that is not finite is None."""
        # Not `asdict`, which copies deeply: all fields are plain.
        data = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        data |= {"tail": self.tail, "assumes": ASSUMPTIONS}
        data["reading_words"] = reading_words(self.reading)
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in data.items()
        }


@dataclass(frozen=True)
class Answer(_Accounted):
    """A value, with D[φ ≤ value] > tail_low and D[φ ≥ value] > tail_high for all answers at once.

    `low` and `high` bound what `promise` says, and are None where nothing is certified. Values are
    projected upwards onto the grid; the bounds allow for it. A value is about the estimator on a
    block of `block_units` units, and nothing else.
    """

    protocol: str
    value: float
    low: float | None
    high: float | None
    tail_low: float
    tail_high: float
    confidence: float
    promise: str
    price: float
    budget_left: float
    at_grid_end: bool
    certified: bool
    block_units: int
    method: str = "search"
    cached: bool = False
    receipt: str = ""
    reading: str | None = None
    """What a score is about, as a code: see `readings`. None where there is no choice."""

    kind: ClassVar[Literal["answer"]] = "answer"

    @property
    def steps(self) -> tuple[Answer | Verdict, ...]:
        """What it was found by: itself."""
        return (self,)

    def each(self, change: Callable[[Any], Any]) -> Answer:
        """The same, changed."""
        return cast(Answer, change(self))

    def described(self) -> dict[str, str]:
        value = f"{self.value:.12g}"
        if self.low is not None or self.high is not None:
            value += f"   {bar_text(self.low, self.high)}"
        if self.protocol != "mean" or self.low is None:  # a bar of a mean is not about blocks
            value += f"   on blocks of {self.block_units:,} unit{'s'[: self.block_units != 1]}"
        if self.at_grid_end and (self.low is None or self.high is None):
            value += "   at the end of its grid: the value may lie beyond"
        return {"answer": value, **self._accounts()}

    def _repr_html_(self) -> str:
        return html_table(self.protocol, self.described())


@dataclass(frozen=True)
class Verdict(_Accounted):
    """What became of a guess, in one word, `verdict`.

    `refused` is what was drawn: False, the guess stands; True, it does not, which is what is
    counted as a refusal; None, nothing was drawn. `tolerance` is that of a guess that a search has
    checked, and None where the plan has a part for guesses.

    `range_low` and `range_high` enclose the guesses that would be compatible, were fresh blocks
    like the `open_blocks` blocks of the open part. They are None where there is no such end, or
    where the open blocks are too few to say. Nothing of the sealed blocks is in them.
    """

    protocol: str
    guess: float
    claim: Claim
    tolerance: float | None
    refused: bool | None
    tail_low: float
    tail_high: float
    confidence: float
    promise: str
    price: float
    budget_left: float
    refusals_left: int | None
    certified: bool
    block_units: int
    range_low: float | None = None
    range_high: float | None = None
    open_blocks: int = 0
    cached: bool = False
    receipt: str = ""
    reading: str | None = None

    kind: ClassVar[Literal["verdict"]] = "verdict"

    @property
    def steps(self) -> tuple[Answer | Verdict, ...]:
        """What it was found by: itself."""
        return (self,)

    def each(self, change: Callable[[Any], Any]) -> Verdict:
        """The same, changed."""
        return cast(Verdict, change(self))

    @property
    def verdict(self) -> VerdictWord:
        """The word: what is certified of the guess, and `cannot tell` where that is nothing.

        A share of fresh blocks below `LEAST_SHARE` says nothing. And where a search has refused a
        guess, it is certified that some fresh blocks lie beyond it, as they do beyond a right one.
        """
        if self.refused is None:
            return "exhausted"
        if not self.refused:
            near = self.tail if self.tolerance is not None else self.tail_low
            return "compatible" if near >= LEAST_SHARE else "cannot tell"
        known = self.tolerance is None and 1 - self.tail_high >= LEAST_SHARE
        return "not compatible" if known else "cannot tell"

    def to_dict(self) -> dict[str, object]:
        return {"verdict": self.verdict, **super().to_dict()}

    def described(self) -> dict[str, str]:
        claim = "" if self.claim == "equals" else f"{self.claim} "
        near = f" ± {self.tolerance:.12g}" if self.tolerance else ""
        items = {"verdict": f"{self.verdict}   (guess: {claim}{in_full(self.guess)}{near})"}
        if self.open_blocks:
            items["range"] = self._range()
        items |= self._accounts()
        left = self.refusals_left
        return items if left is None else {**items, "refusals": f"{left:,} left"}

    def _range(self) -> str:
        low, high, blocks = self.range_low, self.range_high, f"{self.open_blocks:,} open blocks"
        ends = [] if low is None else [f"from {rounded_down(low, 6)}"]
        ends += [] if high is None else [f"up to {rounded_up(high, 6)}"]
        if not ends:
            needed = math.ceil(1 / self.tail)
            return f"{blocks} are too few to say which guesses are compatible: {needed:,} would do"
        return f"guesses {' '.join(ends)} are compatible, going by {blocks}"

    def _repr_html_(self) -> str:
        return html_table(self.protocol, self.described())


@dataclass(frozen=True)
class Corrected:
    """The verdict on the guess, and the answer that took its place if it was refused."""

    verdict: Verdict
    correction: Answer | None

    kind: ClassVar[Literal["corrected"]] = "corrected"

    @property
    def steps(self) -> tuple[Answer | Verdict, ...]:
        """The verdict and, if there is one, the answer."""
        return (self.verdict,) if self.correction is None else (self.verdict, self.correction)

    @property
    def cached(self) -> bool:
        """Whether it was asked before."""
        return self.verdict.cached

    def each(self, change: Callable[[Any], Any]) -> Corrected:
        """Both steps changed."""
        later = None if self.correction is None else change(self.correction)
        return Corrected(change(self.verdict), later)

    @property
    def value(self) -> float | None:
        """The guess if it is compatible, or the correction; None if nothing is known."""
        if self.correction is not None:
            return self.correction.value
        return self.verdict.guess if self.verdict.verdict == "compatible" else None

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text: the value, and both steps."""
        correction = None if self.correction is None else self.correction.to_dict()
        steps = {"verdict": self.verdict.to_dict(), "correction": correction}
        return {"value": self.value, "tail": self.tail, "price": self.price, **steps}

    def _repr_html_(self) -> str:
        correction = "" if self.correction is None else self.correction._repr_html_()
        return self.verdict._repr_html_() + correction

    @property
    def tail(self) -> float:
        """The value lies in qi(tail, 1 − tail), whichever way it was found."""
        return self.verdict.tail_low if self.correction is None else self.correction.tail

    @property
    def price(self) -> float:
        """What both steps cost together."""
        return self.verdict.price + (0.0 if self.correction is None else self.correction.price)


_SHORT_READINGS = {
    ROWS: "these rows, fresh labels",
    RULE: "this rule, on fresh rows (if it was made without these rows' features)",
    AT_SHARES: "this rule, on fresh rows at these class shares (if it was made without these rows' "
    "features)",
}
_WHERE = {
    ROWS: "on these rows with fresh labels",
    RULE: "on fresh rows",
    AT_SHARES: "on fresh rows at these class shares",
}
TOLD_ASSUMES = (
    "sealed rows are independent draws from one population, split off at random; nobody sees "
    "anything else of them"
)
_LABELS = "labels are independent of each other, given the rows"
_WITHOUT = " (a row without one counts as wrong)"
_LARGE = 1e12  # from here on numbers are not written in full
_OF_BLOCKS = ("ask", "interval", "verify")
_FUNCTION = re.compile(r"^(.+) of .+ \(\w+, (?:[0-9a-f]{12}|no identity)\)$")
_FOUND_BEST = "that alone says nothing of fresh data"
_METRICS = {"brier": "Brier score", "error_rate": "error rate"}


def bar_ends(low: float, high: float) -> tuple[str, str]:
    """Both ends of a bar for people, rounded outwards to about a hundredth of its width.

    >>> bar_ends(0.879244, 0.910576), bar_ends(-0.00952, 0.0344), bar_ends(123456.2, 130000.7)
    (('0.8792', '0.9106'), ('−0.0096', '0.0344'), ('123456', '130001'))
    """
    width = high - low
    if not 0 < width < math.inf or max(abs(low), abs(high)) > _LARGE:
        return _minus(rounded_down(low)), _minus(rounded_up(high))
    step = Decimal(1).scaleb(-max(0, math.ceil(-math.log10(width)) + 2))
    below = Decimal(repr(low)).quantize(step, ROUND_FLOOR)
    return bare(f"{below:f}"), bare(f"{Decimal(repr(high)).quantize(step, ROUND_CEILING):f}")


def _minus(text: str) -> str:
    return text.replace("-", "−") if "e" not in text else text


def _exact(value: float) -> str:
    """A number with all its digits, for people: a claim is not rounded."""
    return _minus(in_full(value))


def _nats(nats: float) -> str:
    """Nats for people.

    >>> _nats(0.1611), _nats(2.294), _nats(12.28), _nats(0.00004)
    ('0.16', '2.3', '12.3', '0.00004')
    """
    return bare(f"{nats:.1f}") if nats >= 1 else number(nats, 2) if nats >= 1e-4 else f"{nats:.5f}"


@dataclass(frozen=True)
class Told:
    """What is told by one answer over single rows: a bar, a verdict or a winner.

    `value` is the centre of what was told, and for a confirmed answer the guess: the sealed mean
    itself is never shown or stored. `told` are the nats of this answer, `told_so_far` those of all
    answers up to it, `answers` how many these are.
    """

    verb: str
    about: str
    value: float | None
    low: float | None
    high: float | None
    guess: float | None
    expected: bool | None
    """Whether it was as expected; None where nothing was: a precise answer, a winner."""
    verdict: str | None
    letter: tuple[int, ...]
    told: float
    level: float
    confidence: float
    certified: bool
    reading: str | None
    facts: Mapping[str, Any]
    told_so_far: float = 0.0
    answers: int = 0
    leaning: float | None = None
    """By how much guesses from the open part were too high, if surprises lean to one side."""
    names: tuple[str, ...] = ()
    """What the candidates are called."""
    batch: tuple[Told, ...] = ()
    assumes: tuple[str, ...] = ()
    cached: bool = False
    receipt: str = ""

    kind: ClassVar[Literal["told"]] = "told"

    @property
    def steps(self) -> tuple[Told, ...]:
        """What it was found by: itself."""
        return (self,)

    def each(self, change: Callable[[Any], Any]) -> Told:
        """The same, changed."""
        return cast(Told, change(self))

    def called(self, names: Sequence[str]) -> Told:
        """The same, of candidates that are called otherwise."""
        if "against" not in self.facts:
            return replace(self, names=tuple(names))
        return replace(self, names=tuple(names), facts={**self.facts, "against": names[1]})

    @property
    def _fresh(self) -> str:
        """What it is about, where it has no reading."""
        unit = self.facts.get("unit")
        return "on fresh rows" if unit is None else f"on fresh data, {unit_words(unit)}"

    @property
    def winner(self) -> int | None:
        """The place of the best candidate."""
        return self.letter[0] if self.verb == "best" else None

    # What it says, in words.

    @property
    def said(self) -> str:
        """What is claimed, in one sentence without its confidence."""
        if self.verb == "best":
            return f"{self._name(self.letter[0])} has the best {self._what()} of {self.facts['of']}"
        if self.verb == "scores":
            told = (f"{self._name(k)} {each._bar()}" for k, each in enumerate(self.batch))
            return f"{self._what()}: {', '.join(told)}"
        if self.verb in _OF_BLOCKS:
            units = self.facts["block_units"]
            over = f"over fresh blocks of {units:,} unit{'s' if units != 1 else ''}"
            return f"the median of {self._what()} {over} {self._of_guess()}"
        if self.facts.get("against") is not None:
            return f"{self._name(0)} {self._difference()}"
        return f"{self._what()} {self._of_threshold() if self.verb == 'gate' else self._bar()}"

    def _name(self, place: int) -> str:
        return self.names[place] if place < len(self.names) else f"candidate {place + 1}"

    def _what(self) -> str:
        """What is asked about."""
        if self.verb in _OF_BLOCKS:  # of a function its name: columns and hash are in the question
            text = _FUNCTION.sub(r"\1", self.about)
        elif self.verb != "mean":
            text = _METRICS.get(self.about, self.about)
        elif self.facts.get("share"):
            text = f"the share of rows with {self.about}"
        elif self.facts.get("condition"):
            text = f"the mean share of a {self.facts['unit']}'s rows with {self.about}"
        else:
            text = f"the mean of {self.about}"
        cut, where = self.facts.get("cut"), self.facts.get("where")
        text = text if cut is None else f"{text} cut to {bar_text(*cut)}"
        return text if where is None else f"{text} where {where}"

    def _bar(self) -> str:
        low, high = self.low, self.high
        if low is not None and high is not None:
            return "is between {} and {}".format(*bar_ends(low, high))
        if low is not None:
            return f"is at least {_minus(rounded_down(low))}"
        return "may be anything" if high is None else f"is at most {_minus(rounded_up(high))}"

    def _of_guess(self) -> str:
        """Of a median that is guessed at: whether it is shown to be another."""
        if self.verdict is None or self.guess is None:
            return self._bar()
        if self.low is not None:
            return f"is above {_minus(rounded_down(self.low))}"
        if self.high is not None:
            return f"is below {_minus(rounded_up(self.high))}"
        near, guess = self.facts.get("tolerance") or 0.0, self.guess
        if self.facts.get("claim") == "at least":
            return f"is not shown to be below {_exact(guess - near)}"
        if self.facts.get("claim") == "at most":
            return f"is not shown to be above {_exact(guess + near)}"
        within = f" by more than {_exact(near)}" if near else ""
        return f"is not shown to differ from {_exact(guess)}{within}"

    def _of_threshold(self) -> str:
        """Of a score and a threshold."""
        threshold, near = self.facts["threshold"], self.facts.get("tolerance") or 0.0
        upwards = self.facts.get("claim") != "at most"
        reached = _exact(threshold - near if upwards else threshold + near)
        reach, miss = ("at least", "below") if upwards else ("at most", "above")
        if self.verdict == "pass":
            return f"is {reach} {reached}"
        if self.verdict == "fail":
            return f"is {miss} {_exact(threshold)}"
        return f"is neither shown to be {reach} {reached} nor to be {miss} {_exact(threshold)}"

    def _difference(self) -> str:
        """Of two rules: how much better the first is."""
        other, low, high = self.facts["against"], self.low, self.high
        if not self.facts.get("greater", True):
            low, high = (None if each is None else -each for each in (high, low))
        than, by = f"than {other}", f" in {self._what()}"
        if low is not None and high is not None:
            if low <= 0 <= high:
                less, more = (each.lstrip("−-") for each in bar_ends(low, high))
                return f"is between {less} worse and {more} better {than}{by}"
            word, ends = ("better", (low, high)) if low > 0 else ("worse", (-high, -low))
            return f"is {word} {than} by {' to '.join(bar_ends(*ends))}{by}"
        if low is not None:
            if low < 0:
                return f"is not worse {than} by more than {_exact(-low)}{by}"
            return f"is better {than}{f' by at least {_exact(low)}' if low else ''}{by}"
        if high is not None:
            if high > 0:
                return f"is not better {than} by {_exact(high)} or more{by}"
            return f"is worse {than}{f' by at least {_exact(-high)}' if high else ''}{by}"
        wanted = self.facts.get("margin") or abs(self.facts.get("threshold") or 0.0)
        more = f" by {_exact(wanted)}" if wanted else ""
        return f"is not shown to be better or worse {than}{more}{by}"

    @property
    def surprise_words(self) -> str:
        """Whether it was as expected, in words."""
        if self.expected is None or (self.expected and self.verb == "verify"):
            return ""  # that nothing speaks against a guess confirms nothing
        plain, yours = self._guess(), self.facts.get("guessed")
        guess = plain if self.facts.get("against") is None else f"({plain})"
        if self.verdict == "unclear" and self.expected and self.guess is not None:
            return f"as the guess {guess} made likely"  # that it is unclear is nothing to wish for
        if self.verdict is not None or self.guess is None:
            return "as expected" if self.expected else "a surprise"
        if self.expected:
            return (
                f"your guess {guess} is confirmed"
                if yours
                else f"as guessed from {self._source()}, {plain}"
            )
        whose = "your guess" if yours else f"the guess from {self._source()}"
        return f"a surprise: not within the interval announced around {guess}, {whose}"

    def _guess(self) -> str:
        """What was guessed; of two rules by how much the first is better."""
        if self.facts.get("against") is None or self.guess is None:
            return number(self.guess)
        gain = self.guess if self.facts.get("greater", True) else -self.guess
        if gain == 0:
            return "no difference"
        return f"{'better' if gain > 0 else 'worse'} by {number(abs(gain))}"

    def _source(self) -> str:
        """What a guess that nobody gave is from."""
        more = " and earlier answers" if self.facts.get("corrected") else ""
        return f"the open part{more}"

    @property
    def sure(self) -> str:
        """Its confidence, in words."""
        if not self.certified:
            return "NOT certified: the holdout is seeded"
        many = "" if self.answers <= 1 else f", for all {self.answers:,} answers at once"
        return f"with {100 * float(confidence_text(self.confidence)):g} % confidence{many}"

    @property
    def claims(self) -> bool:
        """Whether anything is certified of fresh data."""
        return any(each.low is not None or each.high is not None for each in (self, *self.batch))

    @property
    def promise(self) -> str:
        """One sentence with numbers."""
        if self.verb == "best":
            bar = self.batch[0].promise if self.batch else _FOUND_BEST
            bar = f"{self.said} on the sealed rows; {bar[0].lower()}{bar[1:]}"
            return bar if self.batch or not self._fails else f"{bar}; {self._fails}"
        said, fails = self.said, self._fails
        if self.verb not in _OF_BLOCKS or self.reading is not None:
            without = "" if fails else _WITHOUT
            said = f"{_WHERE.get(self.reading or '', self._fresh)}{without}, {said}"
        said += f"; {fails}" if fails else ""
        if not self.claims:
            said = "; ".join(filter(None, (said, self._no_confirmation)))
            return f"{said[0].upper()}{said[1:]}"
        return f"{self.sure[0].upper()}{self.sure[1:]}: {said}"

    def lines(self) -> list[str]:
        """The answer in two to four short lines, and a line for each of a batch."""
        if self.verb == "best":
            said = f"{self.said} on the sealed rows"
            said += "" if self.batch else f"; {_FOUND_BEST}"
            lines = [said, *(f"its {each._first()}" for each in self.batch)]
        elif self.verb == "scores":
            lines = [f"{len(self.batch)} scores by {self._what()} ({self.sure}):"]
            width = max(len(self._name(k)) for k in range(len(self.batch)))
            for k, each in enumerate(self.batch):
                words = each.surprise_words
                told = f"{each._bar()}{'; ' + words if words else ''}"
                lines.append(f"  {self._name(k):<{width}}  {told}")
        else:
            lines = [self._first()]
        fails = self._fails
        short = self._fresh if self.reading is None else _SHORT_READINGS[self.reading]
        short += "" if fails else _WITHOUT
        last = [] if self.verb in _OF_BLOCKS and self.reading is None else [short]
        lines.append("; ".join([*last, self._cost()]))
        if self._no_confirmation:
            lines.append(self._no_confirmation)
        lines += [fails] if fails else []
        if self.leaning is not None:
            lines.append(self._leans())
        return lines

    @property
    def _fails(self) -> str:
        """What a failure counts as; empty where predictions by id lack no more than a label."""
        fails = self.assumes[0] if self.assumes else FAILURES["wrong"]
        return "" if self.reading == ROWS and fails == FAILURES["wrong"] else fails

    @property
    def _no_confirmation(self) -> str:
        """Which other guesses at a median are as good, where nothing speaks against one."""
        if self.verb != "verify" or self.verdict != "compatible":
            return ""
        blocks = self.facts.get("open_blocks")
        if blocks is None:
            return "no confirmation: other guesses are compatible too"
        low, high = self.facts.get("range_low"), self.facts.get("range_high")
        ends = (("from ", low, _down), ("up to " if low is None else "to ", high, _up))
        others = " ".join(f"{word}{show(end)}" for word, end, show in ends if end is not None)
        others = others or "of any size"
        return (
            f"no confirmation: guesses {others} would be compatible, were fresh blocks like the "
            f"{blocks:,} open ones"
        )

    def _first(self) -> str:
        """The claim with its confidence, and whether it was expected."""
        said = self.said
        if self.verdict is not None and self.verb != "compare":  # whose sentence has the word
            said = f"{self.verdict}: {said}"
        sure = f" ({self.sure})" if self.claims or not self.certified else ""
        return f"{said}{sure}{'; ' + self.surprise_words if self.surprise_words else ''}"

    def _cost(self) -> str:
        parts = (self, *self.batch) if self.verb == "best" else (self,)
        new = [each for each in parts if not each.cached]
        if not new:
            return "asked before, free"
        nats = math.fsum(each.told for each in new)
        return f"told {_nats(nats)} nats, {_nats(new[-1].told_so_far)} so far"

    def _leans(self) -> str:
        assert self.leaning is not None
        way = "higher" if self.leaning > 0 else "lower"
        return (
            "in the surprises so far, your guesses and the scores on the open part were "
            f"{way} than what was told, by {number(abs(self.leaning), 2)} on average"
        )

    def described(self) -> dict[str, str]:
        """All that it says, in labelled lines, for people."""
        first, *more = self.lines()
        batch = more[: len(self.batch)]
        items = {"answer": "\n".join([first, *batch])}
        if self.leaning is not None:
            items["note"] = self._leans()
        read = reading_words(self.reading)
        if read is None and "unit" in self.facts:
            read = self._fresh
        items |= {} if read is None else {"reading": read}
        assumed = [TOLD_ASSUMES]
        if self.reading == ROWS:  # whatever else is known of them
            assumed = [f"{TOLD_ASSUMES.removesuffix('them')}their labels", _LABELS]
        items["assumes"] = "; ".join([*assumed, *self.assumes])
        items["told"] = self._cost().removeprefix("told ")
        return {**items, "receipt": self.receipt} if self.receipt else items

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return html_table(self.verb, self.described())

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text."""
        names = ("verb", "about", "value", "low", "high", "guess", "expected", "verdict", "told")
        data: dict[str, object] = {name: getattr(self, name) for name in names}
        data |= {"told_so_far": self.told_so_far, "level": self.level, "answers": self.answers}
        data |= {"confidence": self.confidence, "certified": self.certified}
        data |= {"reading": self.reading, "reading_words": reading_words(self.reading)}
        data |= {"letter": list(self.letter), "facts": dict(self.facts), "leaning": self.leaning}
        data |= {"winner": self.winner, "names": list(self.names), "promise": self.promise}
        data |= {"batch": [each.to_dict() for each in self.batch], "assumes": list(self.assumes)}
        return data | {"cached": self.cached, "receipt": self.receipt}


Result = Answer | Verdict | Corrected | Told


def is_answer(result: Result) -> bool:
    """Whether anything was said of the data: `exhausted` says nothing, and is never kept."""
    return getattr(result.steps[0], "refused", False) is not None


# In a notebook: one small table, styled inline, nothing fetched from anywhere.
