"""Every way to give the data leads to the same rows; what cannot be read says where and why."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from holdfast.errors import InvalidInput
from holdfast.store.inputs import open_input
from tests.engines.store.tables import (
    fingerprint,
    mixed,
    row_set,
    stored_rows,
    to_csv,
    to_parquet,
    to_text,
    written,
)


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
def test_every_form_gives_the_same_rows_and_fingerprint(form: str, tmp_path: Path) -> None:
    frame = mixed()
    data = as_form(form, frame, tmp_path)
    assert fingerprint(data) == fingerprint(frame)
    expected = frame.astype(object).where(frame.notna(), None)
    wanted = row_set(pa.Table.from_pandas(expected), sorted(frame.columns))
    assert stored_rows(data, tmp_path / "out") == wanted


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_numbered_in_the_order_of_the_input(form: str, tmp_path: Path) -> None:
    frame = mixed(1000)
    data = as_form(form, frame, tmp_path)
    (tmp_path / "out").mkdir()
    _, store = written(tmp_path / "out", data, blocks=5)
    stored = store.table(hidden=True)
    x = frame["x"].where(frame["x"].notna(), None).astype(object).to_numpy()
    assert stored["x"].to_pylist() == [None if v != v else v for v in x[stored["__row"].to_numpy()]]
    assert sorted(stored["__row"].to_pylist()) == list(range(1000))


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


def test_types_of_a_csv_file_come_from_all_of_it(tmp_path: Path) -> None:
    early = "1,1,x,2026-01-01,01/02/2020,true\n" * 50_000
    late = "y,1.5,,,03/04/2020,false\n"
    file = to_text(tmp_path / "data.csv", "a,b,c,d,e,f\n" + early + late)
    with open_input(file) as rows:
        kinds = [rows.schema.kind(name) for name in "abcdef"]
        assert kinds == ["text", "number", "text", "date", "text", "boolean"]
        assert rows.count() == (50_001, 50_001)


def test_types_of_several_csv_files_come_from_all_of_them(tmp_path: Path) -> None:
    for i in range(15):
        last = "x" if i == 14 else "1"
        to_text(tmp_path / f"{i:02}.csv", f"a,b\n1,{last}\n")
    with open_input(tmp_path / "*.csv") as rows:
        assert [rows.schema.kind(name) for name in "ab"] == ["number", "text"]
        assert rows.count() == (15, 15)


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_other_delimiters(sign: str, tmp_path: Path) -> None:
    file = to_text(tmp_path / "data.tsv", f'"a,b"{sign}c\r\n1{sign}"x{sign} ""y"""\r\n')
    with open_input(file) as rows:
        assert rows.schema.names == ("a,b", "c")
    assert fingerprint(file) == fingerprint({"a,b": [1], "c": [f'x{sign} "y"']})


def test_what_means_missing_in_a_csv_file(tmp_path: Path) -> None:
    file = to_text(tmp_path / "data.csv", "a,b\nNA,x\n2,NA\n,\n")
    with open_input(file) as rows:
        assert rows.schema.kind("a") == "text"
    wanted = fingerprint({"a": [None, 2.0, None], "b": ["x", None, None]})
    assert fingerprint(file, missing=["", "NA"]) == wanted


def test_leading_zeros_and_marks_at_the_start_are_kept(tmp_path: Path) -> None:
    file = to_text(tmp_path / "data.csv", "\ufeffzip,n\n01234,1\n99999,2\n")
    assert fingerprint(file) == fingerprint({"zip": ["01234", "99999"], "n": [1, 2]})


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


def test_progress_is_told_from_start_to_end(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    file = to_csv(mixed(), tmp_path / "data.csv")
    with open_input(file, progress=lambda *step: told.append(step)) as rows:
        rows.survey(lambda *step: told.append(step))
    stages = list(dict.fromkeys(stage for stage, _ in told))
    assert stages == ["finding types", "reading"]
    for stage in stages:
        steps = [fraction for name, fraction in told if name == stage]
        assert (steps[0], steps[-1]) == (0.0, 1.0)
        assert steps == sorted(steps)


def test_nothing_is_left_in_the_scratch_folder(tmp_path: Path) -> None:
    with open_input({"a": [1, 2]}, scratch=tmp_path, unit=None) as rows:
        rows.count()
    assert list(tmp_path.iterdir()) == []
