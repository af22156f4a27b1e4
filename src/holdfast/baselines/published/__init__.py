"""Published widths: how near the papers prove k answers to be, in numbers one can compare.

The task is the same in all of them: n rows, k adaptively chosen means of functions with values in
[0, 1], every answer within the half-width of the population's mean, all at once, but for a
probability β (`failure`).

    split     fresh rows for every question                     the textbook
    bassily   Gaussian noise, a transfer theorem by a monitor   Bassily et al. 2016
    rogers    Gaussian noise, mutual information                Rogers et al. 2020, theorem 2.1
    jung      Gaussian noise, posterior stability               Jung et al. 2020
    noise     what the last three say about the noise
    search    the smallest width, the largest number of questions

Each module has `width(rows, queries, failure)` and `queries_at(rows, half_width, failure)`. What
can be chosen (noise, δ, shares of β) is chosen best, as their authors do. These are other people's
theorems, derived again in docs/explanation/published-widths.md; Holdfast certifies none of them.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.baselines.published import bassily, jung, rogers, split

__all__ = ["QUERIES_AT", "WIDTHS", "bassily", "jung", "rogers", "split"]

WIDTHS: dict[str, Callable[[int, int, float], float]] = {
    "split": split.width,
    "bassily": bassily.width,
    "rogers": rogers.width,
    "jung": jung.width,
}
"""The half-width for (rows, queries, failure), by the name of the method."""

QUERIES_AT: dict[str, Callable[[int, float, float], int]] = {
    "split": split.queries_at,
    "bassily": bassily.queries_at,
    "rogers": rogers.queries_at,
    "jung": jung.queries_at,
}
"""The most questions for (rows, half_width, failure), by the name of the method."""
