"""Scales and ticks of the page's drawings, which are plain SVG: styled by the page, no script."""

from __future__ import annotations

import math
from dataclasses import dataclass

from holdfast.report.text import number

__all__ = ["Scale", "label", "line", "round_ticks", "whole_ticks"]


@dataclass(frozen=True)
class Scale:
    """A linear map from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high == self.low:
            return (self.start + self.end) / 2
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def round_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between low and high, at most so many, evenly spaced.

    >>> round_ticks(0.13, 0.87)
    [0.2, 0.4, 0.6, 0.8]
    """
    if not low < high:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10, 20) if m * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def whole_ticks(first: int, last: int, most: int = 9) -> list[int]:
    """Question numbers for an axis: the first, some round ones, the last.

    >>> whole_ticks(1, 43), whole_ticks(1, 3)
    ([1, 10, 20, 30, 43], [1, 2, 3])
    """
    if last - first < most:
        return list(range(first, last + 1))
    rough = (last - first) / (most - 3)
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    inner = range(-(-first // step) * step, last, step)
    apart = 0.6 * step
    return [first, *(x for x in inner if x - first > apart and last - x > apart), last]


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """A straight line of one of the page's styles."""
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def label(x: float, y: float, text: str, anchor: str = "middle", style: str = "tick") -> str:
    """Text at a place; it is the caller who makes it safe."""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def value_label(value: float) -> str:
    """A tick's number."""
    return number(value, 6)
