"""The exception tree. Every error Holdfast raises on purpose is one of these.

    HoldfastError
    ├── InvalidInput     one argument is wrong (also a ValueError)
    │   └── Doubtful     by what is public it is a slip; asked with anyway=True if it is meant
    ├── Infeasible       each argument is fine, together they cannot be met
    ├── Exhausted        what is left of the budget does not pay for the question
    ├── Damaged          what is on disk is not what was written there
    └── Unavailable      the machine did not do its part; what was charged stays charged

A `HoldfastWarning` says what is allowed and hardly meant.

An error carries its facts as attributes; the message is built from them and says
what was wrong, what is allowed, what was received and what to do.
"""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from typing import Any, ClassVar, SupportsFloat, cast

__all__ = [
    "Damaged",
    "Doubtful",
    "Exhausted",
    "HoldfastError",
    "HoldfastWarning",
    "Infeasible",
    "InvalidInput",
    "Unavailable",
    "real_number",
    "whole_number",
]

_SHOWN = 80  # characters of a received value worth repeating


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python will not spell out an integer of more than 4,300 digits
        text = f"a {type(value).__name__} too large to show"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


class HoldfastError(Exception):
    """Base of every error raised on purpose."""

    fields: ClassVar[tuple[str, ...]] = ()
    """The facts that its message is built from, in the order in which it is made of them."""

    def facts(self) -> dict[str, str]:
        """Those that can be told to whoever asked, as text.

        >>> wrong = Infeasible("Size", "9 rows", "there are 3", "Bring more.")
        >>> str(Infeasible(**wrong.facts())) == str(wrong)
        True
        """
        return {name: str(getattr(self, name)) for name in self.fields}


class HoldfastWarning(UserWarning):
    """What is allowed, and hardly meant: nothing is refused because of it."""


class InvalidInput(HoldfastError, ValueError):
    """One argument is outside what is allowed."""

    def __init__(self, parameter: str, value: object, allowed: str, hint: str = "") -> None:
        self.parameter = parameter
        self.value = value
        self.allowed = allowed
        self.hint = hint
        message = f"{parameter} must be {allowed}; got {_shown(value)}."
        super().__init__(f"{message} {hint}" if hint else message)


class Doubtful(InvalidInput):
    """What is public says that the question is a slip: nothing is drawn or charged for it.

    The reasons depend on the question, on what is declared and on the open part.
    """

    def __init__(self, parameter: str, reasons: str) -> None:
        self.parameter = parameter
        self.value = None
        self.allowed = ""
        self.hint = "Nothing was charged. If it is meant, ask with anyway=True (--anyway)."
        HoldfastError.__init__(self, f"{reasons} {self.hint}")


class Infeasible(HoldfastError):
    """The arguments contradict each other, or ask for more than the data can give."""

    fields = ("constraint", "needed", "given", "remedy")

    def __init__(self, constraint: str, needed: str, given: str, remedy: str) -> None:
        self.constraint = constraint
        self.needed = needed
        self.given = given
        self.remedy = remedy
        super().__init__(f"{constraint}: this needs {needed}, but {given}. {remedy}")


class Exhausted(HoldfastError):
    """What is left does not pay for the question: nothing is drawn or charged for it.

    A question of several steps (rounds, weights) may have paid for the steps before.
    """

    fields = ("what", "needed", "left", "remedy")

    def __init__(self, what: str, needed: str, left: str, remedy: str) -> None:
        self.what = what
        self.needed = needed
        self.left = left
        self.remedy = remedy
        super().__init__(f"{what} is exhausted: this needs {needed}, and {left} is left. {remedy}")


class Damaged(HoldfastError):
    """A holdout's files are not as they were written: changed, cut short or put back."""

    def __init__(self, what: str, expected: str, found: str, remedy: str) -> None:
        self.what = what
        self.expected = expected
        self.found = found
        self.remedy = remedy
        super().__init__(f"{what} is damaged: expected {expected}, found {found}. {remedy}")


class Unavailable(HoldfastError):
    """The machine, or a cluster, did not do its part: it is neither the question nor the data.

    Prices are paid before anything is evaluated: asked again, the question is charged again.
    """

    fields = ("what", "needed", "given", "remedy")

    def __init__(self, what: str, needed: str, given: str, remedy: str) -> None:
        self.what = what
        self.needed = needed
        self.given = given
        self.remedy = remedy
        charged = "Whatever was charged stays charged."
        super().__init__(f"{what} failed: this needs {needed}, but {given}. {remedy} {charged}")


# Checks of arguments: each returns the value in its plain type or raises `InvalidInput`.


def whole_number(parameter: str, value: object, low: int, high: int, *, hint: str = "") -> int:
    """An integer in [low, high]; integral floats such as 1e6 are welcome, booleans are not.

    >>> whole_number("queries", 1e3, 1, 10**9)
    1000
    """
    if type(value) is int and low <= value <= high:
        return value  # nearly always, and every question asks a dozen times
    allowed = f"a whole number from {low:,} to {high:,}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(parameter, value, allowed, hint)
    number = cast(Any, value)  # compared as it is: a float would round a large integer
    if not low <= number <= high or number != math.floor(number):  # NaN fails the first test
        raise InvalidInput(parameter, value, allowed, hint)
    return int(number)


def real_number(
    parameter: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
    hint: str = "",
) -> float:
    """A finite float between the limits, either of which may be excluded.

    >>> real_number("confidence", 0.95, 0, 1, open_low=True, open_high=True)
    0.95
    """
    if type(value) is float and low < value < high and math.isfinite(value):
        return value  # nearly always, and searches for plans ask a million times
    left, right = ("(" if open_low else "["), (")" if open_high else "]")
    bounded = math.isfinite(low) or math.isfinite(high)
    allowed = f"a number in {left}{low:g}, {high:g}{right}" if bounded else "a finite number"
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Fraction)):
        raise InvalidInput(parameter, value, allowed, hint)
    try:
        result = float(cast(SupportsFloat, value))
    except OverflowError:  # an integer or fraction beyond every float
        raise InvalidInput(parameter, value, allowed, hint) from None
    below = result <= low if open_low else result < low
    above = result >= high if open_high else result > high
    if not math.isfinite(result) or below or above:
        raise InvalidInput(parameter, value, allowed, hint)
    return result
