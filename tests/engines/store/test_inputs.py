"""Every way to give the data leads to the same rows; what cannot be read says where and why."""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.store.inputs import open_input
from tests.engines.store.tables import fingerprint, mixed, to_csv, to_parquet, to_text, written


def gzipped(frame: pd.DataFrame, file: Path) -> Path:
    file.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    return file


def halves(frame: pd.DataFrame, folder: Path, form: str) -> Path:
    """Two files, and the pattern that finds both."""
    half = len(frame) // 2
    write = to_parquet if form == "parquet" else to_csv
    write(frame[:half], folder / f"part 1.{form}")
    write(frame[half:], folder / f"part 2.{form}")
    return folder / f"part *.{form}"


def as_form(form: str, frame: pd.DataFrame, folder: Path) -> Any:
    forms: dict[str, Any] = {
        "pandas": lambda: frame,
        "polars": lambda: pl.from_pandas(frame),
        "arrow": lambda: pa.Table.from_pandas(frame, preserve_index=False),
        "record batch": lambda: pa.RecordBatch.from_pandas(frame, preserve_index=False),
        "dictionary": lambda: {name: frame[name].to_numpy() for name in frame},
        "parquet": lambda: to_parquet(frame, folder / "data.parquet"),
        "parquet as text": lambda: str(to_parquet(frame, folder / "data.pq")),
        "several groups": lambda: to_parquet(frame, folder / "data.parquet", row_group_size=7),
        "csv": lambda: to_csv(frame, folder / "data.csv"),
        "csv.gz": lambda: gzipped(frame, folder / "data.csv.gz"),
        "parquet pattern": lambda: halves(frame, folder, "parquet"),
        "csv list": lambda: [halves(frame, folder, "csv").with_name(f"part {i}.csv") for i in "12"],
        "odd name": lambda: to_csv(frame, folder / "it's [a] *.csv"),
    }
    return forms[form]()


FORMS = [
    *("pandas", "polars", "arrow", "record batch", "dictionary", "parquet", "parquet as text"),
    *("several groups", "csv", "csv.gz", "parquet pattern", "csv list", "odd name"),
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows_in_their_order_and_fingerprint(
    form: str, tmp_path: Path
) -> None:
    frame = mixed(1000)
    data = as_form(form, frame, tmp_path)
    assert fingerprint(data) == fingerprint(frame)
    (tmp_path / "out").mkdir()
    _, store = written(tmp_path / "out", data, blocks=5)
    stored = store.table(hidden=True).sort_by("__row")
    expected = frame.astype(object).where(frame.notna(), None)
    assert stored["__row"].to_pylist() == list(range(1000))  # none is left over
    for name in frame.columns:
        assert stored[name].to_pylist() == pa.Table.from_pandas(expected)[name].to_pylist()


def test_rows_of_a_large_file_are_numbered_in_its_order(tmp_path: Path) -> None:
    """Many row groups and threads: the numbers still say which row it was."""
    numbers = np.arange(600_000)
    file = to_parquet(pd.DataFrame({"x": numbers}), tmp_path / "a.parquet", row_group_size=10_000)
    _, store = written(tmp_path, file, blocks=10, threads=4)
    stored = store.table(hidden=True)
    assert np.array_equal(stored["x"].to_numpy(), stored["__row"].to_numpy())
    assert np.array_equal(np.sort(stored["x"].to_numpy()), numbers)


def test_arrays_with_names(tmp_path: Path) -> None:
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    fields = np.array([(1, 2.0), (3, 4.0), (5, 6.0)], dtype=[("a", "u1"), ("b", "f4")])
    frame = pd.DataFrame(rows, columns=["a", "b"])
    wanted = fingerprint(frame)
    assert fingerprint(rows, columns=["a", "b"]) == wanted
    assert fingerprint(np.asfortranarray(rows), columns=["a", "b"]) == wanted
    assert fingerprint(fields) == wanted
    assert fingerprint(rows[:, 0], columns=["a"]) == fingerprint(frame[["a"]])
    assert fingerprint({"a": [1, 3, 5], "b": (2.0, 4.0, 6.0)}) == wanted
    assert fingerprint(rows.astype(">f8"), columns=["a", "b"]) == wanted
    masked = np.ma.masked_array([1.0, 9.0], mask=[False, True])
    assert fingerprint({"a": masked}) == fingerprint({"a": [1.0, None]})


def test_columns_keeps_those_columns(tmp_path: Path) -> None:
    frame = mixed()
    file = to_csv(frame.assign(**{"": 1, "__own": 2}), tmp_path / "data.csv")
    for data in (frame, file, to_parquet(frame, tmp_path / "data.parquet")):
        with open_input(data, columns=["x", "arm"], unit="id") as rows:
            assert rows.schema.names == ("x", "arm")
            assert rows.count() == (40, 14)


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "number": (3, {}, "pandas or Polars"),
    "generator": (iter([1]), {}, "pandas or Polars"),
    "empty list": ([], {}, "pandas or Polars"),
    "series": (pd.Series([1]), {}, "to_frame"),
    "lazy frame": (pl.LazyFrame({"a": [1]}), {}, "collect"),
    "no such file": ("nothing.csv", {}, "No file has this name"),
    "no such files": ("nothing*.parquet", {}, "fits this pattern"),
    "address": ("https://example.org/a.csv", {}, "Download"),
    "three axes": (np.zeros((1, 1, 1)), {"columns": ["a"]}, "rows and columns"),
    "no names": (np.zeros((3, 2)), {}, "2 names"),
    "too few names": (np.zeros((3, 2)), {"columns": ["a"]}, "2 names"),
    "one text": (np.zeros((3, 1)), {"columns": "a"}, r"Write \['a'\]"),
    "two axes in one column": ({"a": np.zeros((3, 2))}, {}, "'a'.*one axis"),
    "a text for a column": ({"a": "abc"}, {}, "'a'.*one axis"),
    "lengths": ({"a": [1, 2], "b": [1]}, {}, "one length"),
    "no rows": ({"a": np.zeros(0)}, {}, "at least one row"),
    "no such column": ({"a": [1]}, {"columns": ["b"]}, r"columns must be among .*\(a\)"),
    "no such unit": ({"a": [1]}, {"unit": "b"}, r"unit must be among .*\(a\)"),
    "only a unit": ({"a": [1]}, {"unit": "a"}, "besides the id"),
    "index": (
        pd.DataFrame({"a": [1]}, index=pd.Index([1], name="b")),
        {"unit": "b"},
        "reset_index",
    ),
    "memory": ({"a": [1]}, {"memory_limit": "much"}, "1GB"),
    "threads": ({"a": [1]}, {"threads": 0}, "threads"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_table_is_refused(name: str) -> None:
    data, options, words = REFUSED[name]
    with pytest.raises(InvalidInput, match=words), open_input(data, **options) as rows:
        rows.count()


CSV_REFUSED = {
    "short row": ("a,b\n1,2\n3\n4,5\n", r"2 values.*data\.csv, line 3.*has 1"),
    "long row": ("a,b\n1,2\n3,4,5\n", r"2 values.*data\.csv, line 3.*has 3"),
    "late long row": ("a,b\n" + "x,2\n" * 100_000 + "3,4,5\n", r"line 100,002.*has 3"),
    "open quotation": ('a,b\n"x,2\n3,4\n', "line 2.*Close"),
    "no names": ("1,2\n3,4\n", "first line.*add a line"),
    "empty": ("", "first line is empty"),
    "names only": ("a,b\n", "at least one row"),
    "name twice": ("a,b,A\n1,2,3\n", "upper from lower"),
    "no name": (",b\n1,2\n", "columns="),
}


@pytest.mark.parametrize("name", CSV_REFUSED)
def test_a_csv_file_that_cannot_be_read_says_where(name: str, tmp_path: Path) -> None:
    text, words = CSV_REFUSED[name]
    file = to_text(tmp_path / "data.csv", text)
    with pytest.raises(InvalidInput, match=words), open_input(file) as rows:
        rows.count()


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_csv_file_in_another_encoding_is_refused(encoding: str, tmp_path: Path) -> None:
    early = to_text(tmp_path / "early.csv", "ä,b\n1,2\n", encoding)
    late = to_text(tmp_path / "late.csv", "a,b\n" + "x,2\n" * 90_000 + "ä,2\n", encoding)
    for file in (early, late):
        with pytest.raises(InvalidInput, match="UTF-8"), open_input(file) as rows:
            rows.count()


def test_types_of_csv_files_come_from_all_of_them(tmp_path: Path) -> None:
    early = "1,1,x,2026-01-01,01/02/2020,true\n" * 50_000
    late = "y,1.5,,,03/04/2020,false\n"
    file = to_text(tmp_path / "data.csv", "a,b,c,d,e,f\n" + early + late)
    with open_input(file) as rows:
        kinds = [rows.schema.kind(name) for name in "abcdef"]
        assert kinds == ["text", "number", "text", "date", "text", "boolean"]
        assert rows.count() == (50_001, 50_001)
    for i in range(15):
        last = "x" if i == 14 else "1"
        to_text(tmp_path / f"{i:02}.csv", f"a,b\n1,{last}\n")
    with open_input(tmp_path / "[01]*.csv") as rows:
        assert [rows.schema.kind(name) for name in "ab"] == ["number", "text"]
        assert rows.count() == (15, 15)


CSV: dict[str, tuple[str, dict[str, Any], dict[str, list[Any]]]] = {
    **{
        sign: (
            f'"a,b"{sign}c\r\n1{sign}"x{sign} ""y"""\r\n',
            {},
            {"a,b": [1], "c": [f'x{sign} "y"']},
        )
        for sign in (";", "\t", "|")
    },
    "empty is missing": (
        "a,b\nNA,x\n2,NA\n,\n",
        {},
        {"a": ["NA", "2", None], "b": ["x", "NA", None]},
    ),
    "what means missing": (
        "a,b\nNA,x\n2,NA\n,\n",
        {"missing": ["", "NA"]},
        {"a": [None, 2.0, None], "b": ["x", None, None]},
    ),
    "leading zeros and a mark at the start": (
        "\ufeffzip,n\n01234,1\n99999,2\n",
        {},
        {"zip": ["01234", "99999"], "n": [1, 2]},
    ),
}


@pytest.mark.parametrize("name", CSV)
def test_what_a_csv_file_says(name: str, tmp_path: Path) -> None:
    text, options, wanted = CSV[name]
    file = to_text(tmp_path / "data.csv", text)
    assert fingerprint(file, **options) == fingerprint(wanted)


def test_files_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    one = pd.DataFrame({"a": [1], "b": [2]})
    first = to_parquet(one, tmp_path / "1.parquet")
    other = {
        "only in 2.parquet": one.assign(c=1),
        "only in 1.parquet": one[["a"]],
        "int64 in 1.parquet, double in 2.parquet": one.astype({"b": "float64"}),
    }
    for words, frame in other.items():
        second = to_parquet(frame, tmp_path / "2.parquet")
        with pytest.raises(InvalidInput, match=words):
            open_input([first, second])
    swapped = to_parquet(one[["b", "a"]], tmp_path / "3.parquet")
    assert fingerprint([first, swapped]) == fingerprint(pd.concat([one, one]))
    text = to_csv(one, tmp_path / "1.csv")
    with pytest.raises(InvalidInput, match="one format"):
        open_input([first, text])
    with pytest.raises(InvalidInput, match="same first line"):
        open_input([text, to_csv(one[["b", "a"]], tmp_path / "2.csv")])
    with pytest.raises(InvalidInput, match="its files"):
        open_input(tmp_path)
    with pytest.raises(InvalidInput, match="says the format"):
        open_input(to_text(tmp_path / "data.xlsx", "x"))
    with pytest.raises(InvalidInput, match="readable Parquet"):
        open_input(to_text(tmp_path / "bad.parquet", "x"))
    cases = pa.table([pa.array([1]), pa.array([2])], ["a", "A"])
    pa.parquet.write_table(cases, tmp_path / "cases.parquet")
    with pytest.raises(InvalidInput, match="upper from lower"):
        open_input(tmp_path / "cases.parquet", columns=["A"])


def test_a_closed_input_says_so() -> None:
    rows = open_input({"a": [1]})
    rows.close()
    with pytest.raises(InvalidInput, match="closed"):
        rows.count()


# The fingerprint: the same for the same rows, another for any change.


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


def test_what_does_not_matter() -> None:
    same = fingerprint(BASE)
    assert {name: fingerprint(data) for name, data in SAME.items()} == dict.fromkeys(SAME, same)


def test_what_does_and_all_changes_differ_from_each_other() -> None:
    found = {fingerprint(data): name for name, data in {**OTHER, "none": BASE}.items()}
    assert set(found.values()) == {*OTHER, "none"}


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
