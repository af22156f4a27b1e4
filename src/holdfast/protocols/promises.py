"""The promises in words: what every answer says of itself, and what `check` expects it to say."""

from __future__ import annotations

__all__ = [
    "BAR",
    "FILTERED_MEAN",
    "SPLIT",
    "direct_promise",
    "interval_promise",
    "mean_promise",
    "middle_promise",
    "near_promise",
    "search_promise",
    "verdict_promise",
]

BAR = "the mean on fresh data lies between low and high"
FILTERED_MEAN = "fresh blocks have such means with more than tail on either side"
SPLIT = "its rank on fresh data is above tail_low from below and tail_high from above"
_FAILURES = "; a failure counts as 0"


def search_promise(low: float, high: float, *, has_bar: bool) -> str:
    """Of a value with these tails, and perhaps with bounds on the mean."""
    text = f"fresh data give at most this with more than {low:.4g}, at least with {high:.4g}"
    return f"{text}; the mean lies between low and high" if has_bar else text


def interval_promise(tail: float) -> str:
    """Of two ends that enclose the median."""
    return (
        "the median on fresh data lies between low and high, which are, but for the grid's "
        f"cells, inside the quantiles {tail:.4g} and {1 - tail:.4g}"
    )


def mean_promise(*, filtered: bool) -> str:
    """Of the median of block means."""
    return FILTERED_MEAN if filtered else BAR + _FAILURES


def direct_promise(*, exact: bool) -> str:
    """Of a search over the sum."""
    return BAR + ("; a value counts as 0 below 1/2, as 1 above" if exact else "") + _FAILURES


def verdict_promise(low: float, high: float) -> str:
    """Of a Yes and of a No."""
    below = f"{high:.4g}" if high < 0.99995 else f"{high:.12g}"  # not 1: that would say nothing
    return f"yes: every tail on fresh data is above {low:.4g}; no: one of them is below {below}"


def near_promise(low: float, high: float, tolerance: float) -> str:
    """Of a guess that a search on three points has confirmed or refused."""
    return (
        f"yes: fresh data give at most the guess + {tolerance:g} with more than {low:.4g}, and at "
        f"least the guess − {tolerance:g} with more than {high:.4g}; no: they lie above both with "
        f"more than {high:.4g}, or below both with more than {low:.4g}"
    )


def middle_promise(tail: float) -> str:
    """Of a value with one tail for both sides."""
    return f"fresh data lie on either side of it with more than {tail:.4g}"
