"""Predictions keyed by row id: every form in, one array out, or an error that costs nothing."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engines.python.metrics import find_metric
from holdfast.errors import InvalidInput
from holdfast.holdout.submissions import (
    FileToRead,
    Ids,
    PredictionKind,
    RowIds,
    answer,
    most_bytes,
    read_submission,
    wanted_for,
)

NUMBER, TEXT = PredictionKind(label=True), PredictionKind(text=True, label=True)
INTEGERS = RowIds(Ids("row", "integer", 4, ""), pa.array([7, -2, 30, 4]))
NAMES = RowIds(Ids("who", "text", 3, ""), pa.array(["b", "ä c", "7"]))


def read(
    given: Any, ids: RowIds = INTEGERS, wanted: PredictionKind = NUMBER, **more: Any
) -> list[Any]:
    return list(read_submission(given, ids, wanted, **more).by_row().values.tolist())


def parquet(**columns: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


CSV = b"row,prediction\n30,3\n4,4\n7,1\n-2,2\n"


@pytest.mark.parametrize(
    "given",
    [
        CSV,
        CSV.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + CSV,
        b"prediction,row\n3.0,30\n+4,4\n1e0,7\n 2 ,-2\n",
        b'{"30": 3, "4": 4, "7": 1.0, "-2": 2}',
        b'[{"row": 30, "prediction": 3}, {"prediction": "4", "row": "4"},'
        b' {"row": 7, "prediction": "1"}, {"row": -2, "prediction": "2"}]'.replace(
            b'"prediction": 3', b'"prediction": "3"'
        ),
        {30: 3, 4: 4, 7: 1, -2: 2},
        {30: 3.0, "4": 4, 7: 1, -2: 2},
        pd.DataFrame({"row": [4, 7, -2, 30], "prediction": [4, 1, 2, 3]}),
        pd.Series([4, 1, 2, 3], index=[4, 7, -2, 30]),
        pa.table({"row": [4, 7, -2, 30], "prediction": [4, 1, 2, 3]}),
    ],
    ids=[
        *("csv", "crlf", "bom", "turned", "object", "list", "dict", "mixed", "frame", "series"),
        "arrow",
    ],
)
def test_every_form_gives_the_rows_order(given: Any) -> None:
    assert read(given) == [1, 2, 3, 4]


def test_parquet_is_read_in_a_process_of_its_own() -> None:
    assert read(parquet(row=[4, 7, -2, 30], prediction=[4.0, 1, 2, 3])) == [1, 2, 3, 4]


def test_text_ids_and_labels() -> None:
    given = "who,prediction\n7,x\nä c,y z\nb,\n".encode()
    assert read(given, NAMES, TEXT) == ["", "y z", "x"]
    assert read({"7": "u", "b": "v", "ä c": "w"}, NAMES, TEXT) == ["v", "w", "u"]


def test_a_file_by_its_ending(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(CSV)
    assert read(path) == read(str(path)) == [1, 2, 3, 4]
    with pytest.raises(InvalidInput, match="a file that exists"):
        read(tmp_path / "none.csv")


def test_labels_are_integers_where_they_are_whole() -> None:
    assert read_submission(CSV, INTEGERS, NUMBER).values.dtype == np.int64
    assert read_submission(CSV, INTEGERS, PredictionKind()).values.dtype == np.float64
    true = b"row,prediction\n30,true\n4,False\n7,0\n-2,1\n"
    assert read(true, wanted=PredictionKind(label=True, binary=True)) == [0, 1, 1, 0]


WRONG: list[tuple[str, Any, str]] = [
    ("empty", b"", "columns of none"),
    ("header only", b"row,prediction\n", "got 'none'"),
    ("no header", b"7,1\n-2,2\n30,3\n4,4\n", "two columns, row and prediction"),
    ("other names", b"id,prediction\n7,1\n", "the columns id, prediction"),
    ("one column", b"row\n7\n", "two columns"),
    ("three columns", b"row,prediction,x\n7,1,2\n", "two columns"),
    ("an index", b",row,prediction\n0,7,1\n", "write the file with index=False"),
    ("another name", b"row,pred\n7,1\n", "Rename pred to prediction"),
    ("another's ids", b"id,prediction\n7,1\n", "Rename id to row"),
    ("semicolons", b"row;prediction\n7;1\n", "The separator is ';': it must be a comma"),
    ("ragged", b"row,prediction\n7,1,3\n", "Every line has two fields"),
    ("not utf-8", b"row,prediction\n7,\xff\xfe\n", "UTF-8"),
    ("giant field", b"row,prediction\n7," + b"1" * 50_000 + b"\n", "unknown|other|without"),
    ("partial", b"row,prediction\n7,1\n30,1\n", r"2 ids without a prediction \(-2, 4\)"),
    ("unknown", CSV + b"8,1\n9,1\n10,1\n11,1\n", r"4 unknown ids \(8, 9, 10, …\)"),
    ("twice", CSV + b"7,1\n", r"1 ids that come twice \(7\)"),
    ("twice, spelt anew", CSV + b"07,1\n", r"1 ids that come twice \(7\)"),
    ("no integer", b"row,prediction\nx\x1b[31m,1\n", r"no integers \(x\\\\x1b\[31m\)"),
    ("fraction", {7.5: 1, -2: 1, 30: 1, 4: 1}, "fractions"),
    ("nan", CSV.replace(b",3", b",nan"), r"1 other predictions \(for 30\)"),
    ("infinite", CSV.replace(b",3", b",inf"), "finite numbers"),
    ("too large", CSV.replace(b",3", b",1e999"), "finite numbers"),
    ("missing", CSV.replace(b",3", b","), r"1 other predictions \(for 30\)"),
    ("a word", CSV.replace(b",3", b",cat"), "finite numbers"),
    ("json nan", b'{"7": NaN}', "not finite"),
    ("json null", b'{"7": null, "-2": 1, "30": 1, "4": 1}', r"1 missing predictions \(for 7\)"),
    ("json twice", b'{"7": 1, "7": 2, "-2": 1, "30": 1, "4": 1}', "come twice"),
    ("json list of lists", b"[[7, 1]]", "JSON"),
    ("json key twice", b'[{"row": 7, "row": 8}]', "two columns"),
    ("json more keys", b'[{"row": 7, "prediction": 1, "x": 2}]', "two columns"),
    ("json number", b"{]", "JSON"),
    ("json value", b'{"7": [1], "-2": 1, "30": 1, "4": 1}', "other predictions"),
    ("json deep", b"[" * 900, "JSON"),
    ("json wide", b"[" + b"[]," * 30_000 + b"[]]", "more lists and objects than rows"),
    ("json surrogate", b'{"\\ud800": 1}', "not Unicode"),
    ("json huge", b'{"7": 1' + b"0" * 5_000 + b"}", "JSON"),
    ("too many bytes", b"x" * 10**6, "at most"),
    ("mixed kinds", {7: 1, -2: "a", 30: 1, 4: 1}, "several kinds"),
    ("one missing", {7: "a", -2: None, 30: "b", 4: "a"}, r"1 missing predictions \(for -2\)"),
    ("text and nan", {7: "a", -2: float("nan"), 30: "b", 4: "a"}, r"predictions \(for -2\)"),
    ("text", {7: "a", -2: "b", 30: "b", 4: "a"}, r"finite numbers; got \"text \('a', 'b'\)\""),
    ("no table", pd.DataFrame({"row": [1]}), "two columns"),
    ("ids true", {True: 1, False: 2}, "true and false"),
]


@pytest.mark.parametrize(("given", "said"), [each[1:] for each in WRONG], ids=[w[0] for w in WRONG])
def test_what_is_wrong_is_said_and_costs_nothing(given: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        read(given)
    assert "Nothing was charged" in str(caught.value)
    assert str(caught.value).isprintable()


OPEN = RowIds(INTEGERS.about, INTEGERS.values, np.array([0, 2, 3]))  # −2 is an open row's


@pytest.mark.parametrize("kind", ["integer", "far", "text"])
def test_ids_of_open_rows_may_be_left_out(kind: str) -> None:
    """And no others: those of rows that belong to no block are in no file, and needed too."""
    kinds: dict[str, Any] = {"integer": [7, -2, 30, 4], "far": [7, -2, 2**60, 4]}
    keys = {**kinds, "text": ["b", "a", "c", "d"]}[kind]
    about = Ids("row", "text" if kind == "text" else "integer", 4, "")
    ids = RowIds(about, pa.array(keys), OPEN.sealed)
    whole = dict(zip(keys, [1, 2, 3, 4], strict=True))
    found = read_submission(whole, ids, NUMBER).by_row()
    assert found.complete
    assert found.values.tolist() == [1, 2, 3, 4]
    assert found.of_sealed.tolist() == [1, 3, 4]
    some = read_submission(
        {key: whole[key] for key in reversed(keys) if key != keys[1]}, ids, NUMBER
    )
    part = some.by_row()
    assert not part.complete
    assert part.of_sealed.tolist() == [1, 3, 4]
    with pytest.raises(InvalidInput, match=r"for each of the 3 ids .* the 1 of open rows may be"):
        read(dict.fromkeys(keys[:2], 1), ids)
    with pytest.raises(InvalidInput, match=rf"1 ids without a prediction \({keys[3]}\)"):
        read(dict.fromkeys(keys[:3], 1), ids)
    unknown = {**whole, ("z" if kind == "text" else 5): 1}
    with pytest.raises(InvalidInput, match=r"1 unknown ids \((z|5)\)"):
        read(unknown, ids)
    far = {**whole, ("é" if kind == "text" else 2**62): 1}
    with pytest.raises(InvalidInput, match="1 unknown ids"):
        read(far, ids)


def test_text_labels_of_sealed_rows_alone() -> None:
    ids = RowIds(NAMES.about, NAMES.values, np.array([0, 2]))
    part = read_submission({"b": "x", "7": "y"}, ids, TEXT).by_row()
    assert (part.of_sealed.tolist(), part.complete) == (["x", "y"], False)


def test_the_same_ids_again_are_matched_as_the_first_time() -> None:
    """What is remembered of one submission is no answer for another."""
    for order in ([4, 7, -2, 30], [4, 7, -2, 30], [7, 4, -2, 30], [4, 7, -2, 30]):
        values = {7: 1, -2: 2, 30: 3, 4: 4}
        frame = pd.DataFrame({"row": order, "prediction": [values[each] for each in order]})
        assert read(frame) == [1, 2, 3, 4]
    for wrong in ([4, 7, -2, 31], [4, 7, -2, -2], [4, 7, -2]):
        with pytest.raises(InvalidInput, match="ids"):
            read(pd.DataFrame({"row": wrong, "prediction": 1}))


@pytest.mark.parametrize(
    "kind", ["str", "object", "category", "Int64", "int32", "uint64", "float32"]
)
def test_columns_of_every_type_that_can_be_labels(kind: str) -> None:
    text = kind in ("str", "object", "category")
    ids = pd.Series(["b", "7", "ä c"] if text else [7, 30, 4, -2])
    given = pd.Series(["x", "y", "z"] if text else [1, 3, 4, 2]).astype(kind)
    wanted = TEXT if text else NUMBER
    name, known = ("who", NAMES) if text else ("row", INTEGERS)
    frame = pd.DataFrame({name: ids, "prediction": given})
    expected = ["x", "z", "y"] if text else [1, 2, 3, 4]
    assert read(frame, known, wanted) == expected
    assert read(pa.Table.from_pandas(frame), known, wanted) == expected


def test_a_form_that_there_is_not() -> None:
    with pytest.raises(InvalidInput, match="csv, json, parquet"):
        read(CSV, form="xml")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (parquet(row=[7], prediction=[1], x=[2]), b"columns\nrow\nprediction\nx"),
        (parquet(row=[7], prediction=[[1]]), b"columns of other types"),
        (parquet(row=[7] * 10, prediction=[1] * 10), b"10 rows"),
        (b"PAR1" + bytes(100) + b"PAR1", b"something else"),
        (b"", b"something else"),
    ],
    ids=["three", "nested", "rows", "broken", "empty"],
)
def test_parquet_that_is_something_else(content: bytes, said: bytes) -> None:
    assert answer(FileToRead(content, 5)) == said


def test_parquet_that_grows_is_refused() -> None:
    text = pa.array(["x" * 50_000] * 200).dictionary_encode()
    bomb = parquet(row=list(range(200)), prediction=text)
    assert len(bomb) < 100_000  # 10 MB when it is opened
    assert answer(FileToRead(bomb, 5_000)).startswith(b"more rows, or longer text")


def test_a_submission_is_bounded_by_its_rows() -> None:
    assert most_bytes(INTEGERS) == 108_000


@pytest.mark.parametrize(
    ("metric", "kind", "wanted"),
    [
        ("accuracy", "number", PredictionKind(label=True)),
        ("accuracy", "text", PredictionKind(text=True, label=True)),
        ("accuracy", "boolean", PredictionKind(label=True, binary=True)),
        ("f1", "number", PredictionKind(label=True, binary=True)),
        ("f1_macro", "text", PredictionKind(text=True, label=True)),
        ("brier", "number", PredictionKind(within=(0.0, 1.0), called="probabilities")),
        ("log_loss", "boolean", PredictionKind(within=(0.0, 1.0), called="probabilities")),
        ("roc_auc", "number", PredictionKind()),
        ("average_precision", "number", PredictionKind()),
        ("rmse", "number", PredictionKind()),
    ],
)
def test_what_metrics_take(metric: str, kind: str, wanted: PredictionKind) -> None:
    assert wanted_for(find_metric(metric), kind, "y") == wanted


@pytest.mark.parametrize(
    ("metric", "kind", "said"),
    [
        ("f1", "text", "f1_macro"),
        ("roc_auc", "text", "labels that are text"),
        ("rmse", "text", "labels that are text"),
        ("accuracy", "date", "a column of numbers"),
    ],
)
def test_metrics_that_a_target_cannot_have(metric: str, kind: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        wanted_for(find_metric(metric), kind, "y")


def test_predictions_of_another_kind() -> None:
    chance = PredictionKind(within=(0.0, 1.0), called="probabilities")
    with pytest.raises(InvalidInput, match="probabilities between 0 and 1"):
        read(CSV, wanted=chance)
    with pytest.raises(InvalidInput, match="0 or 1"):
        read(CSV, wanted=PredictionKind(label=True, binary=True))
    with pytest.raises(InvalidInput, match="text of at most 200"):
        read({"7": 1, "b": 2, "ä c": 3}, NAMES, TEXT)
    with pytest.raises(InvalidInput, match=r"1 other predictions \(for b\)"):
        read({"7": "a", "b": "x" * 201, "ä c": "b"}, NAMES, TEXT)


@settings(max_examples=60, deadline=None)
@given(st.permutations([7, -2, 30, 4]), st.lists(st.integers(-5, 5), min_size=4, max_size=4))
def test_all_forms_agree_in_every_order(order: list[int], values: list[int]) -> None:
    pairs = dict(zip(order, values, strict=True))
    expected = [pairs[each] for each in (7, -2, 30, 4)]
    frame = pd.DataFrame({"row": order, "prediction": values})
    listed = [{"row": k, "prediction": v} for k, v in pairs.items()]
    forms = [frame.to_csv(index=False).encode(), json.dumps(pairs).encode(), pairs, frame]
    assert all(read(each) == expected for each in [*forms, json.dumps(listed).encode()])


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_nothing_but_its_own_error(content: bytes) -> None:
    for form in ("csv", "json"):
        with pytest.raises(InvalidInput):
            read(content, form=form)
    assert answer(FileToRead(content, 5))[:1] != b"+"
