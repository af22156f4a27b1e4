"""Labels: what is public of a target's values, and where predictions contradict it.

A prediction that is no label counts as wrong, and so would a whole column of probabilities, of
labels in capitals or of numbers for text: a score of 0, certified and charged. What can be told
apart by what is public is refused first: by the labels that were declared; else by the target's
kind and by the labels of the open part, which are some of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Labels", "WrongLabels", "listed", "missing_labels", "plain"]

_NAMED = 3
_LONGEST = 40
_ENOUGH = 20  # open rows from which their labels are taken for a sample of all
_FRACTIONS = 20  # more different ones are no labels

Contradiction = tuple[str, str]
"""What was found, and what is allowed."""


class WrongLabels(ValueError):
    """A model predicts on public rows what can be no label."""


@dataclass(frozen=True)
class Labels:
    """What is public of a target's values.

    >>> Labels("text", ("ham", "spam")).contradiction(np.array(["ham", "Spam"]))
    ("1 prediction that is no label ('Spam')", "one of the labels 'ham', 'spam'")
    >>> Labels("number", seen=(0.0, 1.0), rows=50).contradiction(np.array([0.25, 1.0]))
    ('1 fraction (0.25)', 'whole numbers, as all labels of the open part are')
    """

    kind: str
    """The target's kind: boolean, number or text."""
    declared: tuple[object, ...] | None = None
    """All labels there are, if the custodian has said so."""
    seen: tuple[object, ...] = ()
    """Those of the open part."""
    rows: int = 0
    """How many open rows have one."""

    @cached_property
    def known(self) -> tuple[object, ...]:
        """Labels that are public, all or some."""
        return self.seen if self.declared is None else self.declared

    @cached_property
    def _all(self) -> frozenset[object]:
        return frozenset(plain(each) for each in self.known)

    def contradiction(
        self, predicted: NDArray[Any], own: Sequence[object] = (), *, model: bool = False
    ) -> Contradiction | None:
        """What says that predictions are no labels; None if nothing public does.

        `own` are the classes that a model names. Of a `model` a few rows are seen, not all.
        """
        missing = missing_labels(predicted)
        if missing.any() and not model:
            return f"{_count(missing, 'missing prediction')}", "a label for every row"
        values, counts = _distinct(predicted[~missing])
        text = [type(each) is str for each in values]
        if self.kind == "text" and not all(text):
            return f"numbers ({listed(values)})", "text, as the target is"
        if self.kind != "text" and any(text):
            named = [each for each in values if type(each) is str]
            return f"text ({listed(named)})", "numbers, as the target is"
        other = np.array([each not in self._all for each in values], np.bool_)
        if self.declared is not None:
            if not other.any():
                return None
            found = (
                f"{_count(counts[other], 'prediction that is', 'predictions that are')} no label"
            )
            allowed = f"one of the labels {listed(self.declared, 10)}"
            return f"{found} ({listed(_picked(values, other))})", allowed
        return self._unlike(values, counts, other, own, model)

    def _unlike(
        self,
        values: list[object],
        counts: NDArray[np.int64],
        other: NDArray[np.bool_],
        own: Sequence[object],
        model: bool,
    ) -> Contradiction | None:
        """What the open part's labels say against predictions, or what no label can be."""
        spelled = {str(each).strip().casefold(): each for each in self.seen if type(each) is str}
        for each in _picked(values, other):
            near = spelled.get(str(each).strip().casefold()) if type(each) is str else None
            if near is not None:
                return listed([each]), f"spelled as the open part spells it: {listed([near])}"
        theirs = {plain(each) for each in own}
        fractional = other & np.array([_is_fraction(each) for each in values], np.bool_)
        named = listed(_picked(values, fractional))
        if fractional.any() and self._enough and not any(map(_is_fraction, self._all)):
            found = f"{_count(counts[fractional], 'fraction')} ({named})"
            return found, "whole numbers, as all labels of the open part are"
        foreign = fractional & np.array([each not in theirs for each in values], np.bool_)
        share = counts[foreign].sum() / max(1, counts.sum())
        if share > 0.5 if model else np.count_nonzero(foreign) > _FRACTIONS:
            found = f"{_count(foreign, 'different fraction')} ({named})"
            return found, "labels: for probabilities there are brier, log_loss and roc_auc"
        if self._enough and other.all() and len(values) and not (model and len(values) < 2):
            found = f"predictions that are no label of the open part ({listed(values)})"
            return found, f"labels such as the open part has: {listed(self.seen, 10)}"
        return None

    @property
    def _enough(self) -> bool:
        return self.rows >= _ENOUGH

    def unknown(self, predicted: NDArray[Any]) -> tuple[str, ...]:
        """What has to be taken for granted of predictions that nothing public contradicts."""
        if self.declared is not None:
            return ()
        values, _ = _distinct(predicted[~missing_labels(predicted)])
        other = [each for each in values if each not in self._all]
        if not other:
            return ()
        fractions = [each for each in other if _is_fraction(each)]
        shown = listed(fractions or other)
        if self.rows:
            return (f"{shown}, which no row of the open part has, can be labels",)
        return (f"predictions such as {shown} are spelled as the labels are: none are public",)

    def beside(self, allowed: Iterable[object]) -> list[object]:
        """Public labels that are none of these."""
        among = {plain(each) for each in allowed}
        return [each for each in self.known if plain(each) not in among]


def plain(value: object) -> object:
    """One spelling of a label: text, or a float; true and false are 1 and 0.

    >>> plain(True), plain(np.int64(3)), plain(np.str_("a"))
    (1.0, 3.0, 'a')
    """
    if isinstance(value, str):
        return str(value)
    return float(value)  # type: ignore[arg-type]


def listed(values: Sequence[object], most: int = _NAMED) -> str:
    """At most so many values, short, and without what a terminal would obey.

    >>> listed([0.0, 1.0, 2.5, 3.0]), listed(["a"])
    ('0, 1, 2.5, …', "'a'")
    """
    shown = [_short(each) for each in values[:most]]
    return ", ".join(shown) + (", …" if len(values) > most else "")


def _short(value: object) -> str:
    if not isinstance(value, str):
        return f"{float(value):.12g}"  # type: ignore[arg-type]
    text = value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…"
    return f"'{text}'" if text.isprintable() else ascii(text)


def missing_labels(predicted: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a prediction is none: missing, infinite, or no value at all."""
    if predicted.dtype.kind in "biuU":
        return np.zeros(predicted.shape, np.bool_)
    if predicted.dtype.kind == "f":
        return np.asarray(~np.isfinite(predicted))
    return np.array([not _is_label(each) for each in predicted], np.bool_)


def _is_label(value: object) -> bool:
    if isinstance(value, str):
        return True
    try:
        return bool(np.isfinite(float(value)))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def _distinct(predicted: NDArray[Any]) -> tuple[list[object], NDArray[np.int64]]:
    """The different predictions, in one spelling, and how many there are of each."""
    if predicted.dtype.kind in "biuf":
        values, counts = np.unique(predicted.astype(np.float64), return_counts=True)
        return values.tolist(), counts
    found: dict[object, int] = {}
    for each in predicted.tolist():
        label = plain(each)
        found[label] = found.get(label, 0) + 1
    return [*found], np.array([*found.values()], np.int64)


def _is_fraction(value: object) -> bool:
    return isinstance(value, float) and not value.is_integer()


def _picked(values: list[object], mask: NDArray[np.bool_]) -> list[object]:
    return [each for each, chosen in zip(values, mask, strict=True) if chosen]


def _count(counted: NDArray[Any], one: str, several: str | None = None) -> str:
    count = int(counted.sum())
    return f"{count:,} {one if count == 1 else several or one + 's'}"
