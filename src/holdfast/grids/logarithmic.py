"""Equal ratios: low, low·q, low·q², …, high."""

from __future__ import annotations

import math
import sys
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids.base import MOST_POINTS, Json
from holdfast.grids.computed import ComputedGrid
from holdfast.grids.exact import exact, shown, written, written_integer
from holdfast.grids.integer import whole

__all__ = ["LogarithmicGrid"]

# All arithmetic is this context's, none the caller's.
_DIGITS = Context(100, ROUND_HALF_EVEN, -999999, 999999, clamp=0, traps=[InvalidOperation])
# 1 + 2^-52, and a little for the last of the 100 digits: so much apart, points are different.
_SMALLEST_RATIO = _DIGITS.add(Decimal(1 + 2.0**-52), Decimal("1e-40"))


def _decimal(value: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


class LogarithmicGrid(ComputedGrid):
    """The given number of points from low to high, each the same multiple of the one before.

    Point i is the float nearest to low·q^i with q = (high/low)^(1/(points−1)), computed in
    decimals: 100 digits, of which a power up to 2**62 leaves 80. The result is the same on every
    machine, which the logarithms of a C library do not promise.

    Neighbouring points differ: if x and qx, q − 1 > 2^-52, both rounded to f in [2^e, 2^(e+1)),
    they would be no more than the gap 2^(e−52) apart if f > 2^e, and 3/4 of it if f = 2^e (the
    gap below a power of two is half as wide); yet x ≥ 2^e, or x ≥ 2^e·(1 − 2^-54), puts them
    (q − 1)·x apart, which is more.

    >>> LogarithmicGrid(0.001, 1000, 7)
    grid(0.001, 1000, points=7, scale='log')
    >>> LogarithmicGrid(0.001, 1000, 7).project([0, 0.002, 10, 11]).tolist()
    [0.001, 0.01, 10.0, 100.0]
    """

    __slots__ = ("_base", "_end", "_ratio", "_start")
    _start: Fraction
    _end: Fraction
    _base: Decimal
    _ratio: Decimal

    def __init__(self, low: object, high: object, points: object) -> None:
        start, end = exact("low", low), exact("high", high)
        if start < sys.float_info.min:
            allowed = f"at least {sys.float_info.min:.3g} on a logarithmic grid"
            raise InvalidInput("low", low, allowed)
        if end < start:
            raise InvalidInput("high", high, f"at least low, {shown(start)}")
        size = whole("points", points, 1, MOST_POINTS)
        if (size == 1) != (start == end):
            wanted = "1, since low and high are equal" if start == end else "at least 2"
            raise InvalidInput("points", points, wanted)
        ratio = Decimal(1)
        if size > 1:
            logarithm = _DIGITS.ln(_decimal(end / start))
            ratio = _DIGITS.exp(_DIGITS.divide(logarithm, Decimal(size - 1)))
            self._refuse_equal_points(start, end, ratio, size)
        self._set(
            _start=start,
            _end=end,
            _base=_decimal(start),
            _ratio=ratio,
            _size=size,
            _ends=(float(start), float(end)),
            _key=(start, end, size),
        )

    @staticmethod
    def _refuse_equal_points(start: Fraction, end: Fraction, ratio: Decimal, size: int) -> None:
        if float(start) == float(end):
            raise InvalidInput("high", written(end), f"a float above low, {shown(start)}")
        if ratio < _SMALLEST_RATIO and size != 2:  # two points: the ends, just compared
            steps = _DIGITS.divide(_DIGITS.ln(_decimal(end / start)), _DIGITS.ln(_SMALLEST_RATIO))
            hint = "More would not be different floats."
            raise InvalidInput("points", size, f"at most {max(int(steps) + 1, 2):,}", hint)

    @property
    def ratio(self) -> float:
        """The quotient of neighbouring points, as the nearest float."""
        return float(self._ratio)

    def _point(self, index: int) -> float:
        if index in (0, self._size - 1):
            return self._ends[index > 0]
        power = _DIGITS.power(self._ratio, index)
        return float(_DIGITS.multiply(self._base, power))

    def _position(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if math.isinf(self.high / self.low):
            logarithms = np.log(values) - math.log(self.low)
        else:  # more digits for a narrow grid
            logarithms = np.log1p((values - self.low) / self.low)
        return np.asarray(logarithms / float(_DIGITS.ln(self._ratio)))

    def describe(self) -> str:
        """One line for people: `7 points from 0.001 to 1000, each 10 times the one before`."""
        if self._size == 1:
            return f"{self._count()}, {shown(self._start)}"
        ends = f"from {shown(self._start)} to {shown(self._end)}"
        return f"{self._count()} {ends}, each {self.ratio:.6g} times the one before"

    def to_json(self) -> Json:
        """`{"scale": "log", "low": 0.001, "high": 1000, "points": 7}`."""
        low, high = written(self._start), written(self._end)
        return {"scale": "log", "low": low, "high": high, "points": written_integer(self._size)}

    def __repr__(self) -> str:
        low, high = written(self._start), written(self._end)
        return f"grid({low!r}, {high!r}, points={self._size}, scale='log')"
