"""Labels: what predictions contradict of what is public, and what they leave open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from holdfast.engines.python.engine import LocalEngine
from holdfast.engines.python.metrics import (
    Labels,
    find_metric,
    listed,
    missing_labels,
    plain,
    term_estimator,
)
from holdfast.protocols.shapes import BoundedMean, shape_from_dict
from holdfast.protocols.source import WEIGHT_SCALE
from tests.engines.local.stores import make_store

TEXT = Labels("text", seen=("ham", "spam"), rows=50)
WHOLE = Labels("number", seen=(0.0, 1.0, 2.0), rows=50)


@pytest.mark.parametrize(
    ("labels", "predicted", "said"),
    [
        (Labels("text", ("a", "b")), ["a", "b"], None),
        (Labels("text", ("a", "b")), ["a", "B"], "1 prediction that is no label ('B')"),
        (Labels("number", (0.0, 1.0)), [True, False], None),
        (Labels("number", (0.0, 1.0)), [0, 2, 2], "2 predictions that are no label (2)"),
        (Labels("boolean", (0.0, 1.0)), [0.5, 1], "1 prediction that is no label (0.5)"),
        (Labels("number"), ["1", "0"], "text ('1', '0')"),
        (Labels("text"), [1, 0], "numbers (0, 1)"),
        (Labels("text"), ["x"], None),
        (Labels("number"), [0.0, np.nan, np.inf], "2 missing predictions"),
        (Labels("text"), np.array(["a", None, pd.NA], object), "2 missing predictions"),
        (TEXT, ["ham", " Spam"], "' Spam'"),
        (TEXT, ["ham", "phishing"], None),
        (TEXT, ["a", "b"], "predictions that are no label of the open part ('a', 'b')"),
        (WHOLE, [0, 1, 3], None),
        (WHOLE, [0, 0.25], "1 fraction (0.25)"),
        (WHOLE, [7, 8], "predictions that are no label of the open part (7, 8)"),
        (Labels("number", seen=(0.0, 0.5), rows=50), [0.25, 0.5], None),
        (Labels("number", seen=(0.0, 1.0), rows=5), [0.25, 0.5], None),  # too few to say
        (Labels("number"), np.arange(20) + 0.5, None),
        (Labels("number"), np.arange(21) + 0.5, "21 different fractions (0.5, 1.5, 2.5, …)"),
    ],
    ids=range(20),
)
def test_contradictions(labels: Labels, predicted: Any, said: str | None) -> None:
    found = labels.contradiction(np.asarray(predicted))
    assert (None if found is None else found[0]) == said
    if said is not None:
        assert found is not None
        assert found[1]


def test_what_a_model_predicts_on_a_few_rows() -> None:
    halves = np.array([0.5, 1.5, 1.0], object)
    assert Labels("number").contradiction(halves, model=True) is not None
    assert (
        Labels("number").contradiction(halves, (0.5, 1.0, 1.5), model=True) is None
    )  # its classes
    assert Labels("number").contradiction(np.array([0.5, 1, 2]), model=True) is None
    assert Labels("number").contradiction(np.array([np.nan, 1.0]), model=True) is None
    assert TEXT.contradiction(np.array(["rare"] * 9, object), model=True) is None
    assert TEXT.contradiction(np.array(["x", "y"], object), model=True) is not None


def test_what_is_left_open_is_said() -> None:
    assert Labels("text", ("a",)).unknown(np.array(["a"])) == ()
    assert TEXT.unknown(np.array(["ham"])) == ()
    assert (
        "'other', which no row of the open part has" in TEXT.unknown(np.array(["ham", "other"]))[0]
    )
    (said,) = Labels("number").unknown(np.array([0.0, 0.25, 1.0]))
    assert "such as 0.25 are spelled as the labels are" in said
    assert WHOLE.beside((0.0, 1.0)) == [2.0]
    assert WHOLE.beside(np.arange(3)) == []


def test_values_are_shown_short_and_harmless() -> None:
    assert listed(["a" * 99, "\x1b[31m", 1.0, 2.0]) == f"'{'a' * 39}…', '\\x1b[31m', 1, …"
    assert plain(np.bool_(True)) == 1.0
    assert missing_labels(np.array([1, "a", None, object()], object)).tolist() == [0, 0, 1, 1]


class Weak:
    """Fails where x is 1, ends its process where it is 2, and says 1 of all others."""

    classes_ = np.array([0, 1])

    def predict(self, frame: Any) -> Any:
        import os

        x = frame["x"].to_numpy()
        if (x == 2).any():
            os._exit(1)
        if (x == 1).any():
            raise ValueError
        return np.ones(len(x))

    def predict_proba(self, frame: Any) -> Any:
        ones = self.predict(frame)
        return np.stack([1 - ones, ones], axis=1)


def test_what_a_model_fails_on_counts_as_the_worst(tmp_path: Path) -> None:
    """Of a row alone if it raises, of the whole block if it ends the process."""
    x = np.repeat([0.0, 1.0, 2.0], 20)
    x[0] = 1.0  # a failure wherever that row comes to lie
    store = make_store(tmp_path, pd.DataFrame({"x": x, "y": 1.0}), 15)
    frames = [store.table(k, k + 1).to_pandas() for k in range(15)]
    right = np.array([0 if (f.x == 2).any() else int((f.x == 0).sum()) for f in frames])
    assert 0 < np.count_nonzero(right) < 15
    with LocalEngine(store, workers=1) as engine:
        for metric, expected in (("accuracy", right), ("brier", 4 - right)):
            given = (Weak(), find_metric(metric), "y", ["x"])
            sums = engine.sums(term_estimator(*given))
            assert (sums / WEIGHT_SCALE).tolist() == expected.tolist()
            means = engine.values(term_estimator(*given, mean=True))
            assert means.tolist() == (expected / 4).tolist()


def test_one_end_of_a_bar_is_sure_where_blocks_can_fail() -> None:
    cell, tails = (0.4, 0.5), (100, 0.01, 0.01)
    whole = BoundedMean(0, 1).bar(cell, *tails)
    low = BoundedMean(0, 1, can_fail=True).bar(cell, *tails)
    high = BoundedMean(0, 1, can_fail=True, fails_high=True).bar(cell, *tails)
    assert whole[0] is not None
    assert 0 < whole[0] < 0.4
    assert (low, high) == ((whole[0], 1.0), (0.0, whole[1]))
    for shape in (
        BoundedMean(0, 1),
        BoundedMean(0, 1, can_fail=True),
        BoundedMean(0, 1, can_fail=True, fails_high=True),
    ):
        assert shape_from_dict(shape.to_dict()) == shape
