"""Every type is supported, with the values that are stored, or refused by name; names and ids."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.errors import InvalidInput
from holdfast.store.inputs import open_input
from holdfast.store.table import plain_array
from tests.engines.store.tables import check_refused, stored_column, to_text, written

NOON = dt.datetime(2026, 6, 1, 12)
DAY = dt.date(2026, 6, 1)
LARGEST = 2**53

# name: (array, kind, the values as they are stored)
SUPPORTED: dict[str, tuple[pa.Array, str, list[object]]] = {
    "int8": (pa.array([1, None], pa.int8()), "number", [1, None]),
    "uint16": (pa.array([1, 65535], pa.uint16()), "number", [1, 65535]),
    "uint64": (pa.array([LARGEST], pa.uint64()), "number", [LARGEST]),
    "int64": (pa.array([-LARGEST, LARGEST, None]), "number", [-LARGEST, LARGEST, None]),
    "float16": (pa.array(np.array([0.5], np.float16)), "number", [0.5]),
    "float32": (pa.array([0.5, None], pa.float32()), "number", [0.5, None]),
    "NaN is missing": (pa.array([1.5, float("nan")]), "number", [1.5, None]),
    "infinity": (pa.array([float("-inf")]), "number", [float("-inf")]),
    "decimal": (pa.array([Decimal("0.10"), None]), "number", [0.1, None]),
    "long decimal": (
        pa.array([Decimal("12345678901234567.89")], pa.decimal128(38, 2)),
        "number",
        [12345678901234567.89],
    ),
    "decimal256": (pa.array([Decimal("0.3")], pa.decimal256(38, 1)), "number", [0.3]),
    "decimal32": (pa.array([Decimal("0.3")], pa.decimal32(3, 1)), "number", [0.3]),
    "boolean": (pa.array([True, None, False]), "boolean", [True, None, False]),
    "text": (pa.array(["a", "", None, "ß\n'\""]), "text", ["a", "", None, "ß\n'\""]),
    "large text": (pa.array(["a"], pa.large_string()), "text", ["a"]),
    "text view": (pa.array(["a"], pa.string_view()), "text", ["a"]),
    "category": (pa.array(["a", "b", None]).dictionary_encode(), "text", ["a", "b", None]),
    "category of numbers": (pa.array([7, 8]).dictionary_encode(), "number", [7, 8]),
    "uuid": (
        pa.array([uuid.UUID(int=1).bytes], pa.uuid()),
        "text",
        ["00000000-0000-0000-0000-000000000001"],
    ),
    "date": (pa.array([DAY, None]), "date", [DAY, None]),
    "date64": (pa.array([DAY], pa.date64()), "date", [DAY]),
    "timestamp in seconds": (pa.array([NOON], pa.timestamp("s")), "timestamp", [NOON]),
    "timestamp in ms": (pa.array([NOON], pa.timestamp("ms")), "timestamp", [NOON]),
    "timestamp in ns": (pa.array([NOON, None], pa.timestamp("ns")), "timestamp", [NOON, None]),
    "time zone": (
        pa.array([NOON, None], pa.timestamp("us", "Europe/Berlin")),  # pyarrow: noon of UTC
        "timestamp",
        [NOON, None],
    ),
    "offset": (pa.array([NOON], pa.timestamp("s", "+05:30")), "timestamp", [NOON]),
    "years 1 and 9999": (
        pa.array([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]),
        "timestamp",
        [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)],
    ),
}

# name: (array, words of the message)
REFUSED: dict[str, tuple[pa.Array, str]] = {
    "integer above 2^53": (pa.array([LARGEST + 1]), "2\\^53.*text"),
    "integer below −2^53": (pa.array([-LARGEST - 1]), "2\\^53.*text"),
    "unsigned above 2^53": (pa.array([2**64 - 1], pa.uint64()), "2\\^53.*text"),
    "decimal of 40 digits": (pa.array([Decimal("0.3")], pa.decimal256(40, 1)), "float"),
    "null": (pa.nulls(1), "null.*missing.*columns="),
    "list": (pa.array([[1]]), "[Nn]ested"),
    "struct": (pa.array([{"a": 1}]), "[Nn]ested"),
    "map": (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "[Nn]ested"),
    "binary": (pa.array([b"a"]), "[Bb]inary.*text"),
    "fixed binary": (pa.array([b"a"], pa.binary(1)), "[Bb]inary.*text"),
    "time of day": (pa.array([dt.time(1)]), "time of day.*number"),
    "time of day in seconds": (pa.array([dt.time(1)], pa.time32("s")), "time of day.*number"),
    "duration": (pa.array([dt.timedelta(1)]), "duration.*days or seconds"),
    "far date": (pa.array([2**30], pa.int32()).cast(pa.date32()), "years 1 to 9999"),
    "far timestamp": (pa.array([2**62]).cast(pa.timestamp("us")), "years 1 to 9999"),
    "farthest timestamp": (pa.array([2**62]).cast(pa.timestamp("s", "UTC")), "correct"),
}


@pytest.mark.parametrize("form", ["table", "file"])
def test_a_supported_type_is_stored_as_promised(form: str, tmp_path: Path) -> None:
    """All in one table, filled up with missing values."""
    rows = max(len(array) for array, _, _ in SUPPORTED.values())
    arrays = {
        name: pa.chunked_array([array, pa.nulls(rows - len(array), array.type)])
        for name, (array, _, _) in SUPPORTED.items()
    }
    data: Any = pa.table(arrays)
    if form == "file":
        pq.write_table(data, tmp_path / "data.parquet")
        data = tmp_path / "data.parquet"
    (tmp_path / "out").mkdir()
    _, store = written(tmp_path / "out", data, blocks=1)
    stored = store.table(hidden=True).sort_by("__row")
    for name, (_, kind, values) in SUPPORTED.items():
        filled = [*values, *[None] * (rows - len(values))]
        assert (name, store.schema.kind(name)) == (name, kind)
        assert (name, stored.column(name).to_pylist()) == (name, filled)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_type_is_refused_by_name(name: str, tmp_path: Path) -> None:
    array, words = REFUSED[name]
    table = pa.table({"good": pa.array([1] * len(array)), "c": array})
    check_refused(table, words)
    if name != "farthest timestamp":  # which Parquet cannot hold
        pq.write_table(table, tmp_path / "data.parquet")
        check_refused(tmp_path / "data.parquet", words)


@pytest.mark.parametrize(
    ("value", "words"),
    [(str(LARGEST + 1), "2\\^53"), ("12345678901234567890", "2\\^53"), ("10:30:00", "time of day")],
)
def test_what_a_csv_file_may_not_hold(value: str, words: str, tmp_path: Path) -> None:
    check_refused(to_text(tmp_path / "data.csv", f"good,c\n1,{value}\n2,{value}\n"), words)


# Python objects, and types of pandas and Polars.

# name: (values, kind, the values as they are stored)

OBJECTS: dict[str, tuple[list[object], str, list[object]]] = {
    "text": (["a", None, float("nan")], "text", ["a", None, None]),
    "booleans": ([True, None], "boolean", [True, None]),
    "decimals": ([Decimal("0.5"), Decimal("10.25")], "number", [0.5, 10.25]),
    "dates": ([DAY, None], "date", [DAY, None]),
    "times with zone": (
        [NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)))],
        "timestamp",
        [dt.datetime(2026, 6, 1, 10)],
    ),
    "integers": ([1, 2, None], "number", [1, 2, None]),
    "integers and floats": ([1, 2.5], "number", [1.0, 2.5]),
}


MIXED: dict[str, tuple[list[object], str]] = {
    "text and numbers": (["a", 1], "mixed.*all text"),
    "booleans and numbers": ([True, 1], "mixed.*all text"),
    "dates and timestamps": ([DAY, NOON], "mixed.*all text"),
    "lists": ([[1]], "mixed.*all text"),
    "bytes": ([b"a"], "[Bb]inary"),
    "times": ([dt.time(1)], "time of day"),
    "all missing": ([None, None], "missing"),
    "beyond 64 bits": ([2**70], "text"),
    "complex objects": ([1 + 2j], "complex.*all text"),
}


PANDAS: dict[str, tuple[pd.Series, str, list[object]]] = {
    "Int64": (pd.Series([1, None], dtype="Int64"), "number", [1, None]),
    "Float64": (pd.Series([1.5, None], dtype="Float64"), "number", [1.5, None]),
    "boolean": (pd.Series([True, None], dtype="boolean"), "boolean", [True, None]),
    "str": (pd.Series(["a", None], dtype="str"), "text", ["a", None]),
    "string[pyarrow]": (pd.Series(["a", None], dtype="string[pyarrow]"), "text", ["a", None]),
    "arrow decimal": (
        pd.Series([Decimal("0.25")], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        "number",
        [0.25],
    ),
    "category": (pd.Series(["a", None], dtype="category"), "text", ["a", None]),
    "float16": (pd.Series([0.5], dtype="float16"), "number", [0.5]),
    "zone": (
        pd.Series([pd.Timestamp("2026-06-01 12:00", tz="Asia/Kolkata")]),
        "timestamp",
        [dt.datetime(2026, 6, 1, 6, 30)],
    ),
    **{name: (pd.Series(o, dtype=object), *more) for name, (o, *more) in OBJECTS.items()},
}


@pytest.mark.parametrize("name", PANDAS)
def test_types_of_pandas_and_python_objects_of_one_kind(name: str, tmp_path: Path) -> None:
    series, kind, values = PANDAS[name]
    assert stored_column(pd.DataFrame({"c": series}), tmp_path / "frame") == (kind, values)
    if name in OBJECTS:
        assert stored_column({"c": series.to_numpy()}, tmp_path / "dict") == (kind, values)


PANDAS_REFUSED: dict[str, tuple[pd.Series, str]] = {
    "complex": (pd.Series([1 + 2j]), "complex.*two columns"),
    "timedelta": (pd.Series([pd.Timedelta(1, "s")]), "duration"),
    "period": (pd.Series([pd.Period("2026-01")]), "convert"),
    "interval": (pd.Series([pd.Interval(0, 1)]), "."),
    "sparse": (pd.Series([1.0, 0.0], dtype="Sparse[float]"), "."),
    **{name: (pd.Series(objects, dtype=object), words) for name, (objects, words) in MIXED.items()},
}


@pytest.mark.parametrize("name", PANDAS_REFUSED)
def test_types_of_pandas_and_mixed_objects_that_are_refused(name: str) -> None:
    series, words = PANDAS_REFUSED[name]
    check_refused(pd.DataFrame({"c": series}), words)
    if name in MIXED:
        with pytest.raises(InvalidInput) as caught:
            open_input({"c": MIXED[name][0]})
        assert str(caught.value).count("must be") == 1  # one complaint, not one inside another


def test_types_of_polars(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "c": pl.Series(["a", "b"], dtype=pl.Categorical),
            "e": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])),
            "n": pl.Series([1, None], dtype=pl.UInt8),
            "t": pl.Series([NOON, None], dtype=pl.Datetime("ns", "Europe/Berlin")),
        }
    )
    _, store = written(tmp_path, frame, blocks=1)
    assert [store.schema.kind(name) for name in "cent"] == ["text", "text", "number", "timestamp"]
    stored = store.table(hidden=True).sort_by("__row")
    assert stored.column("e").to_pylist() == ["a", "b"]
    assert stored.column("t").to_pylist() == [NOON, None]


def test_text_that_is_no_text_is_refused() -> None:
    offsets, data = pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")
    broken = pa.Array.from_buffers(pa.string(), 1, [None, offsets, data])
    check_refused(pa.table({"c": broken}), "UTF8")


@pytest.mark.parametrize("weight", ["w", [1.0, 2.0]])
def test_weights_are_refused_with_the_way_to_use_them(weight: object) -> None:
    with pytest.raises(InvalidInput, match=r"sum\(w \* x\) / sum\(w\)"):
        open_input({"w": np.ones(2)}, weight=weight)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "A"], "upper from lower"),
        (["a", "a"], "upper from lower"),
        (["__block"], "own"),
        ([""], "empty"),
        (["a\n"], "printable"),
        ([3], "astype"),
        ([f"c{i}" for i in range(2001)], "1 to 2,000"),
        ([], "1 to 2,000"),
    ],
    ids=["case", "twice", "own", "empty", "line", "number", "many", "none"],
)
def test_names_that_cannot_be_asked_for(names: list[str], words: str) -> None:
    frame = pd.DataFrame(np.zeros((2, len(names))), columns=pd.Index(names, dtype=object))
    with pytest.raises(InvalidInput, match=words):
        open_input(frame)


IDS: dict[str, pa.Array] = {
    "integer above 2^53": pa.array([2**60, 2**60, 2**60 + 1]),
    "unsigned": pa.array([2**64 - 1, 2**64 - 1, 2**64 - 2], pa.uint64()),
    "text": pa.array(["1", "1", "01"]),
    "category": pa.array(["a", "a", "b"]).dictionary_encode(),
    "binary": pa.array([b"\x00", b"\x00", b"\x00\x00"]),
    "uuid": pa.array([b"0" * 16, b"0" * 16, b"1" * 16], pa.uuid()),
    "date": pa.array([DAY, DAY, DAY + dt.timedelta(1)]),
    "nanoseconds with zone": pa.array([5, 5, 6]).cast(pa.timestamp("ns", "UTC")),
    "nanoseconds": pa.array([5, 5, 6]).cast(pa.timestamp("ns")),
    "zone": pa.array([5, 5, 6]).cast(pa.timestamp("us", "Europe/Berlin")),
    "time": pa.array([dt.time(1), dt.time(1), dt.time(2)]),
    "boolean": pa.array([True, True, False]),
    "float": pa.array([0.0, -0.0, 5e-324]),
    "decimal": pa.array([Decimal("0.10"), Decimal("0.10"), Decimal("0.11")]),
}


@pytest.mark.parametrize("name", IDS)
def test_an_id_of_units_may_have_any_plain_type(name: str, tmp_path: Path) -> None:
    table = pa.table({"c": IDS[name], "x": pa.array([1, 2, 3])})
    manifest, store = written(tmp_path, table, blocks=2, unit="c")
    assert (manifest.units, manifest.block_units) == (2, 1)
    assert sorted(map(sorted, (store.table(i, i + 1)["x"].to_pylist() for i in (0, 1)))) == [
        [1, 2],
        [3],
    ]
    assert store.schema.names == ("x",)


def test_an_id_that_is_missing_or_has_no_one_form_is_refused() -> None:
    for ids in (pa.array([1, None]), pa.array([1.0, float("nan")]), pa.array(["a", None])):
        check_refused(pa.table({"c": ids, "x": [1, 2]}), "1 missing.*own", unit="c")
    for ids in (pa.array([[1], [2]]), pa.array([dt.timedelta(1)] * 2)):
        check_refused(pa.table({"c": ids, "x": [1, 2]}), ".", unit="c")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.5, -0.0, math.inf, math.nan]),
        pa.array([1.5, None, 3.0, None, 5.0]).slice(1, 3),
        pa.array([1, 2, 3], pa.int64()).slice(1),
        pa.array([1, 2, 3], pa.int32()),
        pa.array([1.0, 2.0], pa.float32()),
        pa.array([True, False, True] * 7).slice(3, 11),
        pa.array([True, None]),
        pa.array([1, None], pa.int64()),
        pa.array(["a", None]),
        pa.array([], pa.int64()),
        pa.array([1, 2], pa.int8()),
        pa.array([0, 1], pa.date32()),
    ],
    ids=lambda column: f"{column.type} {column.null_count} {column.offset}",
)
def test_columns_are_arrays_as_pyarrow_has_them(column: Any) -> None:
    """By their buffers, where they are plain: pandas is not needed for that."""
    for given in (column, pa.chunked_array([column]), pa.chunked_array([column, column])):
        words = {"zero_copy_only": False} if isinstance(given, pa.Array) else {}
        expected = np.asarray(given.to_numpy(**words))
        found = plain_array(given)
        assert found.dtype == expected.dtype
        assert found.tolist() == pytest.approx(expected.tolist(), nan_ok=True)
