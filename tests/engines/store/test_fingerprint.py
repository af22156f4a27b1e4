"""The fingerprint: the same for the same rows, another for any change."""

from __future__ import annotations

import hashlib
import json
import struct
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.store.tables import fingerprint, mixed, to_parquet

BASE: dict[str, list[Any]] = {"a": [1, 2, None, 2], "b": ["x", "y", "z", None]}

SAME: dict[str, dict[str, Any]] = {
    "rows in another order": {"a": [2, None, 2, 1], "b": [None, "z", "y", "x"]},
    "columns in another order": {"b": BASE["b"], "a": BASE["a"]},
    "floats": {"a": np.array([1.0, 2.0, np.nan, 2.0]), "b": BASE["b"]},
    "small integers": {"a": pa.array([1, 2, None, 2], pa.uint8()), "b": BASE["b"]},
    "decimals": {"a": [Decimal("1.00"), Decimal(2), None, Decimal("2.0")], "b": BASE["b"]},
    "categories": {"a": BASE["a"], "b": pd.Series(BASE["b"], dtype="category")},
}

OTHER: dict[str, dict[str, Any]] = {
    "a value": {"a": [1, 2, None, 3], "b": BASE["b"]},
    "the last bit": {"a": [1, 2, None, np.nextafter(2, 3)], "b": BASE["b"]},
    "a missing value": {"a": [1, 2, 0, 2], "b": BASE["b"]},
    "an empty text": {"a": BASE["a"], "b": ["x", "y", "z", ""]},
    "values swapped between rows": {"a": [2, 1, None, 2], "b": BASE["b"]},
    "a space": {"a": BASE["a"], "b": ["x ", "y", "z", None]},
    "a row more": {"a": [*BASE["a"], 1], "b": [*BASE["b"], "x"]},
    "a row less": {"a": BASE["a"][1:], "b": BASE["b"][1:]},
    "a column more": {**BASE, "c": [1, 1, 1, 1]},
    "a column less": {"a": BASE["a"]},
    "a name": {"a": BASE["a"], "c": BASE["b"]},
    "columns swapped": {"a": BASE["b"], "b": BASE["a"]},
    "numbers as text": {"a": ["1", "2", None, "2"], "b": BASE["b"]},
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_matter(name: str) -> None:
    assert fingerprint(SAME[name]) == fingerprint(BASE)


@pytest.mark.parametrize("name", OTHER)
def test_what_does(name: str) -> None:
    assert fingerprint(OTHER[name]) != fingerprint(BASE)


def test_all_changes_differ_from_each_other() -> None:
    assert len({fingerprint(data) for data in OTHER.values()}) == len(OTHER)


def test_the_id_of_units_is_part_of_it_whether_it_is_one_or_not() -> None:
    frame = mixed()
    assert fingerprint(frame) == fingerprint(frame, unit="id")
    assert fingerprint(frame, unit="id") != fingerprint(frame.assign(id=frame["id"] + 1), unit="id")
    large = pa.table({"id": [2**60, 2**60 + 1], "x": [1, 2]})
    next_to_it = pa.table({"id": [2**60, 2**60 + 2], "x": [1, 2]})
    assert fingerprint(large, unit="id") != fingerprint(next_to_it, unit="id")


def test_two_zeros_are_one_and_a_date_is_its_midnight() -> None:
    assert fingerprint({"x": [0.0]}) == fingerprint({"x": [-0.0]}) == fingerprint({"x": [0]})
    midnight = fingerprint({"x": [datetime(2026, 1, 2)]})
    assert fingerprint({"x": [date(2026, 1, 2)]}) == midnight
    zoned = pa.array([datetime(2026, 1, 2)], pa.timestamp("ns", "Asia/Tokyo"))
    assert fingerprint({"x": zoned}) == midnight


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"a": ["x;1:y"], "b": ["z"]}, {"a": ["x"], "b": ["y;1:z"]}),
        ({"a": ["n"]}, {"a": pa.array([None], pa.string())}),
        ({"a": ["b1"]}, {"a": [True]}),
        ({"a": ["ab", "c"]}, {"a": ["a", "bc"]}),
        ({"a": ["x"], "b": ["t1:x"]}, {"a": ["x;t1:x"], "b": [""]}),
    ],
    ids=["separators", "missing", "boolean", "shifted", "frames"],
)
def test_texts_that_look_like_the_frame_around_them(one: Any, two: Any) -> None:
    assert fingerprint(one) != fingerprint(two)


def by_hand(rows: list[tuple[float | None, str | None]]) -> str:
    """The documented definition, for a column of numbers "n" and one of text "t"."""
    low = high = 0
    for number, text in rows:
        bits = (
            "n" if number is None else str(struct.unpack("<q", struct.pack("<d", number + 0.0))[0])
        )
        words = "n" if text is None else f"t{len(text.encode())}:{text}"
        digest = hashlib.md5(f"{bits};{words}".encode()).digest()
        low += int.from_bytes(digest[:8], "little")
        high += int.from_bytes(digest[8:], "little")
    facts = json.dumps([1, len(rows), low, high, ["n", "t"]], separators=(",", ":"))
    return hashlib.sha256(facts.encode()).hexdigest()


numbers = st.none() | st.floats(allow_nan=False)
texts = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@settings(max_examples=25)
@given(st.lists(st.tuples(numbers, texts), min_size=1, max_size=6), st.randoms())
def test_it_is_what_its_definition_says(rows: list[Any], random: Any) -> None:
    columns = {
        "n": pa.array([n for n, _ in rows], pa.float64()),
        "t": pa.array([t for _, t in rows], pa.string()),
    }
    table = pa.table(columns)
    assert fingerprint(table) == by_hand(rows)
    order = list(range(len(rows)))
    random.shuffle(order)
    assert fingerprint(table.take(order)) == by_hand(rows)


def test_it_does_not_depend_on_threads_or_row_groups(tmp_path: Path) -> None:
    frame = mixed(5_000)
    one = to_parquet(frame, tmp_path / "1.parquet", row_group_size=100)
    assert fingerprint(one, threads=1) == fingerprint(one, threads=4) == fingerprint(frame)
