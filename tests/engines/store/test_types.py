"""Every type is supported, with the values that are stored, or refused by name."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engines.store.tables import check_refused, written

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


@pytest.mark.parametrize("name", SUPPORTED)
def test_a_supported_type_is_stored_as_promised(name: str, tmp_path: Path) -> None:
    array, kind, values = SUPPORTED[name]
    _, store = written(tmp_path, pa.table({"c": array}), blocks=1)
    stored = store.table(hidden=True).sort_by("__row")
    assert store.schema.kind("c") == kind
    assert stored.column("c").to_pylist() == values


@pytest.mark.parametrize("name", SUPPORTED)
def test_a_supported_type_is_the_same_in_parquet(name: str, tmp_path: Path) -> None:
    array, kind, values = SUPPORTED[name]
    pq.write_table(pa.table({"c": array}), tmp_path / "data.parquet")
    _, store = written(tmp_path, tmp_path / "data.parquet", blocks=1)
    assert store.schema.kind("c") == kind
    assert store.table(hidden=True).sort_by("__row").column("c").to_pylist() == values


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_type_is_refused_by_name(name: str) -> None:
    array, words = REFUSED[name]
    check_refused(pa.table({"good": pa.array([1] * len(array)), "c": array}), words)


NOT_IN_PARQUET = ("farthest timestamp",)


@pytest.mark.parametrize("name", [name for name in REFUSED if name not in NOT_IN_PARQUET])
def test_a_refused_type_is_refused_in_parquet_too(name: str, tmp_path: Path) -> None:
    array, words = REFUSED[name]
    pq.write_table(pa.table({"c": array}), tmp_path / "data.parquet")
    check_refused(tmp_path / "data.parquet", words)


CSV_REFUSED = {
    "above 2^53": (str(LARGEST + 1), "2\\^53"),
    "beyond 64 bits": ("12345678901234567890", "2\\^53"),
    "time of day": ("10:30:00", "time of day"),
}


@pytest.mark.parametrize("name", CSV_REFUSED)
def test_what_a_csv_file_may_not_hold(name: str, tmp_path: Path) -> None:
    value, words = CSV_REFUSED[name]
    (tmp_path / "data.csv").write_text(f"good,c\n1,{value}\n2,{value}\n", "utf-8")
    check_refused(tmp_path / "data.csv", words)
