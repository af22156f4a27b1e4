"""Numbers without rounding: what was written, read exactly, and shown so that it reads back."""

from __future__ import annotations

import math
import sys
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np

from holdfast.errors import InvalidInput

__all__ = ["exact", "plain", "shown", "written", "written_integer"]

_LARGEST = Fraction(sys.float_info.max)
_SMALLEST = Fraction(math.ulp(0.0))
_EXACT_INTEGERS = 2**53  # beyond, floats (and the numbers of JavaScript) skip some
_LONGEST_TEXT = 100
_MOST_DIGITS = 400  # decimal exponents beyond are larger, or smaller, than every float


def _decimal(value: Decimal) -> float | Fraction:
    """Its exact value; too large or too small for any float, one of that kind (1e999999999)."""
    if not value.is_finite():
        return math.nan if value.is_nan() else float(value)
    if value and abs(value.adjusted()) > _MOST_DIGITS:
        sign = -1 if value < 0 else 1
        return sign * (math.inf if value.adjusted() > 0 else Fraction(1, 10**_MOST_DIGITS))
    return Fraction(value)


def plain(value: object) -> int | float | Fraction | None:
    """The same number in a plain type, without rounding; None for what is not a real number.

    Never raises: a value whose own methods do is not a number.

    >>> plain(np.int64(2**60 + 1)), plain(Decimal("0.1")), plain(None), plain("1")
    (1152921504606846977, Fraction(1, 10), None, None)
    """
    try:
        return _plain(value)
    except Exception:  # what it says may hold data (theory §2)
        return None


def _plain(value: object) -> int | float | Fraction | None:
    """Exactly an int, a float or a Fraction: of a subclass, only the number is kept."""
    result: int | float | Fraction | None = None
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.timedelta64):  # numpy calls it an integer
        pass
    elif isinstance(value, int | np.integer | np.bool_):
        result = int(value)
    elif isinstance(value, float | np.float32 | np.float16):
        result = float(value)
    elif isinstance(value, np.floating):  # longdouble
        result = Fraction(*value.as_integer_ratio()) if np.isfinite(value) else float(value)
    elif isinstance(value, Decimal):
        result = _decimal(Decimal(value))
    elif isinstance(value, Fraction):
        result = Fraction(int(value.numerator), int(value.denominator))
    return result


def _from_text(text: str) -> int | float | Fraction | None:
    """The number that a text such as `0.1`, `1e-3` or `1/3` stands for; None if it is none."""
    if len(text) > _LONGEST_TEXT:
        return None
    try:
        parts = [_decimal(Decimal(part.strip())) for part in text.split("/")]
    except InvalidOperation:
        return None
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2 and all(isinstance(part, Fraction) for part in parts) and parts[1]:
        return Fraction(parts[0]) / Fraction(parts[1])
    return None


def exact(parameter: str, value: object, *, binary: bool = False) -> Fraction:
    """The exact value of a finite number, or of a text that holds one, else `InvalidInput`.

    A float is read as the shortest decimal that gives it, which is what was typed; with `binary`
    as the dyadic fraction that it is.

    >>> exact("step", 0.02), exact("step", "1/3")
    (Fraction(1, 50), Fraction(1, 3))
    >>> exact("step", 0.02, binary=True)
    Fraction(5764607523034235, 288230376151711744)
    """
    number = _from_text(value) if isinstance(value, str) else plain(value)
    real = number is not None and not isinstance(value, bool | np.bool_)
    if number is None or not real or not -_LARGEST <= number <= _LARGEST:  # NaN fails too
        raise InvalidInput(parameter, value, "a finite number")
    if number != 0 and -_SMALLEST < number < _SMALLEST:
        raise InvalidInput(parameter, value, f"0 or at least {math.ulp(0.0)} in size")
    if isinstance(number, float) and not binary:
        return Fraction(repr(number))
    return Fraction(number)


def written(value: Fraction) -> int | float | str:
    """The simplest of int, float and text that `exact` reads back as the same number.

    >>> written(Fraction(1, 50)), written(Fraction(3)), written(Fraction(1, 3))
    (0.02, 3, '1/3')
    """
    if value.denominator == 1 and abs(value) <= _EXACT_INTEGERS:
        return int(value)
    nearest = float(value)
    return nearest if Fraction(repr(nearest)) == value else str(value)


def written_integer(value: int) -> int | str:
    """The integer, or its text where other readers of JSON would round it.

    >>> written_integer(2**53), written_integer(2**53 + 1)
    (9007199254740992, '9007199254740993')
    """
    return value if abs(value) <= _EXACT_INTEGERS else str(value)


def shown(value: float | Fraction) -> str:
    """A number for people: 0.02, 3, 1e+20, and about 0.333333 where no short decimal is exact.

    >>> shown(Fraction(1, 50)), shown(3.0), shown(2**61), shown(Fraction(1, 3))
    ('0.02', '3', '2305843009213693952', 'about 0.333333')
    """
    if isinstance(value, float):
        value = Fraction(repr(value))
    text = str(written(Fraction(value)))
    return f"about {float(value):.6g}" if "/" in text else text
