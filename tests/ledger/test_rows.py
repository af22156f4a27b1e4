from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import Damaged, HoldfastError, InvalidInput
from holdfast.ledger.ledger import KINDS, Receipt, Row, canonical, genesis, verify_chain
from holdfast.ledger.sqlite import SqliteLedger
from tests.ledger.contract import HOLDOUT

AT = "2026-01-31T12:00:00.000000+00:00"
START = Receipt(HOLDOUT, 0, genesis(HOLDOUT))

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
bodies = st.dictionaries(st.text(max_size=6), plain, max_size=4)
facts = st.tuples(
    st.sampled_from([kind for kind in KINDS if kind != "created"]),
    bodies,
    st.none() | st.text("0123456789abcdef", min_size=1, max_size=64),
    st.none() | st.text("abc-12 é", min_size=1, max_size=20),
)


def extended(
    rows: list[Row], *more: tuple[str, dict[str, Any], str | None, str | None]
) -> list[Row]:
    rows = list(rows)
    for kind, body, question, request in more:
        head = Receipt(HOLDOUT, rows[-1].number, rows[-1].digest) if rows else START
        rows.append(Row.after(head, kind, body, at=AT, question=question, request=request))
    return rows


chains = st.lists(facts, min_size=1, max_size=6).map(
    lambda some: extended([], ("created", {"plan": 1}, None, None), *some)
)


@given(bodies)
def test_a_body_has_one_text_and_comes_back_as_it_was(body: dict[str, Any]) -> None:
    text = canonical(body)
    assert text.isascii()
    assert json.loads(text) == body
    assert canonical(json.loads(text)) == text
    assert canonical(dict(reversed(body.items()))) == text


@given(chains, st.data())
def test_any_change_of_any_field_breaks_the_chain(rows: list[Row], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    row = rows[at]
    field, value = data.draw(
        st.one_of(
            st.tuples(st.just("number"), st.integers(0, 99)),
            st.tuples(st.just("kind"), st.sampled_from(KINDS)),
            st.tuples(st.just("at"), st.just("2026-01-31T12:00:00.000001+00:00")),
            st.tuples(st.just("question"), st.none() | st.just("00")),
            st.tuples(st.just("request"), st.none() | st.just("r")),
            st.tuples(st.just("body"), bodies),
            st.tuples(st.just("previous"), st.sampled_from([r.previous for r in rows])),
            st.tuples(st.just("digest"), st.sampled_from([r.digest for r in rows])),
        )
    )
    changed = replace(row, **{field: value})
    tampered = [*rows[:at], changed, *rows[at + 1 :]]
    if canonical(changed.__dict__) == canonical(row.__dict__):  # -0.0 is 0.0, but not its text
        verify_chain(HOLDOUT, tampered)
        return
    with pytest.raises(Damaged):
        verify_chain(HOLDOUT, tampered)
    repaired = replace(changed, digest=changed.computed_digest())  # whoever does not know better
    if at < len(rows) - 1 and repaired.digest != row.digest:
        with pytest.raises(Damaged):
            verify_chain(HOLDOUT, [*rows[:at], repaired, *rows[at + 1 :]])


@given(chains, st.data())
def test_rows_left_out_swapped_doubled_or_put_in_break_the_chain(
    rows: list[Row], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(rows) - 2))
    other = data.draw(st.integers(at + 1, len(rows) - 1))
    swapped = list(rows)
    swapped[at], swapped[other] = rows[other], rows[at]
    for tampered in (
        [*rows[:at], *rows[at + 1 :]],
        swapped,
        [*rows[: at + 1], *rows[at:]],
        [*rows[:at], *extended(rows[:at], ("noted", {}, None, None))[at:], *rows[at:]],
    ):
        with pytest.raises(Damaged):
            verify_chain(HOLDOUT, tampered)


@given(chains, st.data())
def test_a_chain_verifies_belongs_to_its_holdout_and_survives_storage(
    rows: list[Row], data: st.DataObject
) -> None:
    """If its tail is cut or replaced, what is left is sound too: only a receipt can tell."""
    head = verify_chain(HOLDOUT, rows)
    assert head == Receipt(HOLDOUT, len(rows), rows[-1].digest)
    assert [Row.from_record(row.record()) for row in rows] == rows
    with pytest.raises(Damaged):
        verify_chain("another", rows)
    keep = data.draw(st.integers(1, len(rows) - 1))
    assert verify_chain(HOLDOUT, rows[:keep]).number < head.number
    other = extended(rows[:keep], *[("noted", {"forged": 1}, None, None)] * (len(rows) - keep))
    forged = verify_chain(HOLDOUT, other)
    assert forged.number == head.number
    assert forged.digest != head.digest


@pytest.mark.parametrize("change", [{"version": 2}, {"version": 0}, {"kind": "waived"}])
def test_unknown_versions_and_kinds_are_refused_even_with_a_digest(change: dict[str, Any]) -> None:
    [row] = extended([], ("created", {}, None, None))
    unknown = replace(row, **change)
    unknown = replace(unknown, digest=unknown.computed_digest())
    with pytest.raises(Damaged, match="newer Holdfast"):
        Row.from_record(unknown.record())


@pytest.mark.parametrize(
    "text", ["{}", '{"a": 1}', "[1]", "1", "{", "", '{"a":1,"a":1}', '{"a":1.0}']
)
def test_a_body_that_says_the_same_in_other_words_is_refused(text: str) -> None:
    [row] = extended([], ("created", {"a": 1}, None, None))
    record = list(row.record())
    record[6] = text
    with pytest.raises(Damaged):
        Row.from_record(tuple(record))


@pytest.mark.parametrize("place", range(9))
@pytest.mark.parametrize("value", [b"x", None, 0.5, "x", 7], ids=repr)
def test_a_value_of_another_type_is_damage(place: int, value: object) -> None:
    """As one changed byte of the file can make it: text becomes bytes, a number becomes NULL."""
    [row] = extended([], ("created", {"a": 1}, "ab", "r"))
    record = list(row.record())
    record[place] = record[place].encode() if value == b"x" and place > 1 else value
    with pytest.raises(Damaged):
        Row.from_record(tuple(record))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    path = tmp_path_factory.mktemp("sample") / "ledger.sqlite"
    with SqliteLedger.create(path, HOLDOUT, {"plan": 1}) as ledger:
        for i in range(12):
            with ledger.begin() as transaction:
                keys = {"question": f"{i:02x}", "request": f"r-{i}"}
                transaction.append("recorded", {"drawn": i, "text": "x" * 40}, **keys)
        rows = ledger.rows()
    return path, rows


@given(place=st.integers(0, 10**9), value=st.integers(1, 255))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_changed_byte_of_the_file_changes_what_is_read(
    sample: tuple[Path, list[Row]], tmp_path: Path, place: int, value: int
) -> None:
    """Either the damage is noticed, or every row is as it was written."""
    original, rows = sample
    path = tmp_path / "ledger.sqlite"
    for old in tmp_path.glob("ledger.sqlite*"):
        old.unlink()
    shutil.copy(original, path)
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= value
    path.write_bytes(data)
    try:
        with SqliteLedger.open(path) as ledger:
            ledger.verify()
            read = ledger.rows()
    except (HoldfastError, OSError):
        return
    assert read == rows


def test_a_trigger_whose_text_has_become_bytes_is_damage(
    sample: tuple[Path, list[Row]], tmp_path: Path
) -> None:
    """One bit of the file decides which of the two it is."""
    path = tmp_path / "ledger.sqlite"
    shutil.copy(sample[0], path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        changed = "UPDATE sqlite_schema SET sql = CAST(sql AS BLOB) WHERE type = 'trigger'"
        assert connection.execute(changed).rowcount > 0
        connection.commit()
    with SqliteLedger.open(path) as ledger, pytest.raises(Damaged, match="tables and triggers"):
        ledger.verify()


def test_the_test_of_bytes_reaches_the_rows(sample: tuple[Path, list[Row]]) -> None:
    """A byte of a body is inside the file as it is: the test above can meet it."""
    path, rows = sample
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM ledger").fetchone() == (len(rows),)
    assert path.read_bytes().count(b'"text":"' + b"x" * 40) == len(rows) - 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a:b",
        "x:0:" + "0" * 64,
        "x:1:" + "0" * 63,
        "x:1:" + "G" * 64,
        "../x:1:" + "0" * 64,
        None,
    ],
)
def test_what_is_no_receipt(text: object) -> None:
    with pytest.raises(InvalidInput):
        Receipt.parse(text)


@given(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True),
    st.integers(1, 10**17),
    st.text("0123456789abcdef", min_size=64, max_size=64),
)
def test_a_receipt_is_what_it_says(holdout: str, number: int, digest: str) -> None:
    receipt = Receipt(holdout, number, digest)
    assert Receipt.parse(f" {receipt}\n") == receipt
