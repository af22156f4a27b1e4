"""`check`: passes on what Holdfast wrote, and finds what somebody else did to it.

The forger here is the worst there is: whoever can write to the folder can also compute digests, so
a forged ledger is one whole chain again. What gives it away must be what it says.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import Damaged, HoldfastError, InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.questions import question_key
from tests.holdout import plans
from tests.holdout.forging import GONE, LEDGER, Entry, failed, forge, found, put
from tests.holdout.tables import broken, sealed, sources

POINTS = hf.grid(0, 1, points=8)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A holdout of every kind of set, with answers, refusals and a question that was lost."""
    path = tmp_path_factory.mktemp("original") / "a.holdfast"
    made = [plans.mixed(), plans.amplified(), plans.rounds(), plans.split()]
    with sealed(path, made, open_fraction=0.0) as holdout:
        with sources(broken(RuntimeError("lost"))), pytest.raises(RuntimeError):
            holdout.ask("min(x)", grid=POINTS)
        with sources():
            for number in range(2):
                holdout.ask(f"avg(x) + {number}", grid=POINTS, protocol="estimate")
                holdout.ask(f"avg(x) + {number}", grid=POINTS, protocol="amplified")
                holdout.ask(f"avg(x) + {number}", protocol="rounds")
                holdout.ask(f"avg(x) + {number}", protocol="split")
                for guess in (0.5, 9):
                    holdout.verify(f"avg(x) + {number}", guess, protocol="verify")
            holdout.correct("avg(c)", 0.5, grid=POINTS, protocol="verify")
            holdout.correct("avg(c)", 9, grid=POINTS, protocol="verify")
            holdout.interval("avg(x)", grid=hf.grid(0, 1, points=4))
    return path


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy to forge."""
    return Path(shutil.copytree(original, tmp_path / "a.holdfast"))


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody has seen a receipt."""
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))


def test_what_holdfast_wrote_passes(original: Path) -> None:
    checked = check_holdout(original)
    assert failed(checked) == {}
    assert [each.name for each in checked.findings] == [
        *("chain", "receipt", "plan", "prices", "budget", "answers", "data")
    ]
    details = {each.name: each.detail for each in checked.findings}
    assert "1 reservations without one" in details["answers"]
    assert checked.to_dict()["passed"] is True
    assert str(checked).count("ok") == 7


def test_what_was_only_copied_or_written_again_passes(folder: Path, forgotten: None) -> None:
    forge(folder, lambda entries: None)
    assert failed(check_holdout(folder)) == {}


# What any row can say, though chained well: nobody has seen a receipt.

Edit = Callable[[list[Entry]], object]
OTHER_KEY = "ab" * 32


def says(kind: str, part: str, *changes: tuple[str, object], verb: str = "", nth: int = 0) -> Edit:
    """A row says something else in these places of its body."""

    def edit(entries: list[Entry]) -> None:
        for place, value in changes:
            put(found(entries, kind, part, verb, nth).body, place, value)

    return edit


def several(*edits: Edit) -> Edit:
    return lambda entries: [edit(entries) for edit in edits]


def half(price: str) -> str:
    return str(Fraction(price) / 2)


def a_no_at_the_price_of_a_yes(entries: list[Entry]) -> None:
    yes = found(entries, "recorded", "verify", "verify", 0).body
    no = found(entries, "recorded", "verify", "verify", 1).body
    assert (yes["drawn"]["yes"], no["drawn"]["yes"] < 2) == (2, True)
    no["charges"] = copy.deepcopy(yes["charges"])


def a_correction_for_nothing(entries: list[Entry]) -> None:
    row = found(entries, "recorded", "verify", "correct", 1).body
    assert "index" in row["drawn"]
    row["charges"][0].update(price="0", looks=0)


def skip_the_reservation(entries: list[Entry]) -> None:
    row = found(entries, "reserved", "estimate", nth=1)
    number = entries.index(row) + 1
    entries.remove(row)
    for each in entries:
        if each.kind == "recorded":
            each.body["reserves"] = [n - (n > number) for n in each.body["reserves"]]


def a_reservation_of_another(entries: list[Entry]) -> None:
    row = found(entries, "recorded", "estimate")
    row.body["reserves"] = [1 + entries.index(found(entries, "reserved", "interval"))]


def again(entries: list[Entry], held: Entry | None, answer: Entry, key: str | None = "") -> None:
    """One more answer, by a reservation of its own or the same; perhaps under another key."""
    made = [copy.deepcopy(each) for each in (held, answer) if each is not None]
    entries += made
    if held is not None:
        made[-1].body["reserves"] = [len(entries) - 1]
    for each in made:
        each.question = each.question if key == "" else key


def two_answers(key: str | None = "") -> Edit:
    def edit(entries: list[Entry]) -> None:
        held, answer = (found(entries, *each, nth=nth) for each, nth in ((HELD, 1), (TOLD, 0)))
        again(entries, held, answer, key)

    return edit


def keys(key: str | None, *rows: tuple[str, int]) -> Edit:
    def edit(entries: list[Entry]) -> None:
        for kind, nth in rows:
            found(entries, kind, "estimate", nth=nth).question = key

    return edit


def behind_a_later_question(entries: list[Entry]) -> None:
    """A lost question of fresh blocks is recorded after a later one."""
    first = found(entries, "recorded", "split", nth=0)
    entries.remove(first)
    at = entries.index(found(entries, "recorded", "split", nth=0))
    entries.insert(at + 1, first)


def below_nothing(entries: list[Entry]) -> None:
    for each in entries:
        if each.kind == "recorded" and each.body["set"] == "split":
            each.body["charges"][0]["price"] = "-1000"


def more_than_planned(entries: list[Entry]) -> None:
    """A fourth refusal, at its right price."""
    while len([e for e in entries if e.kind == "recorded"]) < 60:
        held, no = (found(entries, kind, "verify", nth=1) for kind in ("reserved", "recorded"))
        again(entries, held, no, f"{len(entries) + 1:064x}")


def more_than_the_budget(entries: list[Entry]) -> None:
    held = found(entries, "reserved", "estimate", nth=1)
    for number in range(30):
        entries.append(copy.deepcopy(held))
        entries[-1].question = f"{number:064x}"


HELD, TOLD = ("reserved", "estimate"), ("recorded", "estimate")  # the first held was lost
BOTH = (("reserved", 1), ("recorded", 0))
ENGINE = ("question.estimator.engine", "other")  # the key of a callable cannot be computed
CHEAPER = "sets.0.plan.plan.parts.0.look_price"  # than the coins that were flipped
FORGERIES: dict[str, tuple[str, Edit]] = {
    "a cheaper plan": ("prices", lambda entries: put(entries[0].body, CHEAPER, lambda p: p / 2)),
    "a lower reservation": ("prices", says(*HELD, ("charge.price", half))),
    "both lower": (
        "prices",
        several(says(*HELD, ("charge.price", half), nth=1), says(*TOLD, ("charges.0.price", half))),
    ),
    "a search given back": (
        "prices",
        says(*TOLD, ("charges.0.price", "0"), ("charges.0.looks", 0)),
    ),
    "half a search": (
        "prices",
        says(*TOLD, ("charges.0.price", lambda p: str(Fraction(p) / 3)), ("charges.0.looks", 1)),
    ),
    "a No at the price of a Yes": ("prices", a_no_at_the_price_of_a_yes),
    "a correction for nothing": ("prices", a_correction_for_nothing),
    "charged to the part of intervals": (
        "prices",
        several(
            says(*HELD, ("charge.part", "interval"), nth=1),
            says(*TOLD, ("charges.0.part", "interval")),
        ),
    ),
    "the reservation skipped": ("answers", skip_the_reservation),
    "no reservation": ("answers", says(*TOLD, ("reserves", []))),
    "a reservation that is none": ("answers", says(*TOLD, ("reserves", [10**6]))),
    "a reservation of another": ("prices", a_reservation_of_another),
    "an answer twice": ("answers", lambda entries: again(entries, None, found(entries, *TOLD))),
    "two answers": ("answers", two_answers()),
    "two answers under two keys": ("answers", two_answers(OTHER_KEY)),
    "two answers without a key": ("answers", two_answers(None)),
    "another key": ("answers", keys(OTHER_KEY, *BOTH)),
    "a key that did not pay": ("answers", keys(OTHER_KEY, BOTH[0])),
    "another engine": (
        "answers",
        several(says(*HELD, ENGINE, nth=1), says(*TOLD, ENGINE), keys(None, *BOTH)),
    ),
    "an invented answer": ("answers", says(*TOLD, ("drawn.index", 99))),
    "below nothing": ("prices", below_nothing),
    "a set of its own": ("prices", says(*HELD, ("set", "other"))),
    "behind a later question": ("prices", behind_a_later_question),
    "more than planned": ("budget", more_than_planned),
    "more than the budget": ("budget", more_than_the_budget),
    "reserved for a smaller grid": (
        "prices",
        says("reserved", "amplified", ("question.grid", hf.grid(0, 1, points=2).to_json())),
    ),
    "an answer that is none": ("answers", says(*TOLD, ("drawn", {"value": 3}))),
    "without an answer": ("prices", says(*TOLD, ("drawn", GONE))),
    "nonsense": ("prices", says(*TOLD, ("charges", 7))),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_chain_is_found_by_what_it_says(folder: Path, forgotten: None, name: str) -> None:
    finding, edit = FORGERIES[name]
    forge(folder, edit)
    checked = check_holdout(folder)
    assert not checked.passed
    wrong = failed(checked)
    assert finding in wrong, wrong
    assert "chain" not in wrong
    assert all(detail for detail in wrong.values())


# Plans.


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("sets.-1.plan.queries", lambda queries: queries * 2),  # more than the blocks can bear
        ("sets.0.plan.plan.confidence", 0.99),
        ("sets.0.plan.plan.budget", lambda budget: budget * 2),
        ("sets.1.first", 0),  # two sets on the same blocks: two budgets for one
        ("sets.1.name", "main"),
        ("sets.-1", GONE),
        ("sets", GONE),
        ("format", 99),
    ],
)
def test_a_plan_that_was_changed_is_found(
    folder: Path, forgotten: None, place: str, value: object
) -> None:
    forge(folder, lambda entries: put(entries[0].body, place, value))
    assert set(failed(check_holdout(folder))) == {"plan"}
    with pytest.raises(HoldfastError):
        Holdout.open(folder)


@pytest.mark.parametrize("number", [None, 1, 99])
def test_a_folder_of_another_format_is_refused_by_its_number(
    folder: Path, forgotten: None, number: int | None
) -> None:
    forge(folder, lambda entries: entries[0].body.update(format=number))
    with pytest.raises(InvalidInput, match=r"of format 3; got .* made it: open it with that"):
        Holdout.open(folder)


# What only a receipt can tell.


def cut_short(entries: list[Entry]) -> None:
    del entries[-2:]


CHANGED = says(*TOLD, ("drawn.index", lambda index: index - 1))  # nothing in the row tells


@pytest.mark.parametrize(
    ("edit", "words"),
    [(CHANGED, "another history"), (cut_short, "older copy")],
    ids=["changed", "cut short"],
)
def test_another_history_is_found_by_the_receipt(folder: Path, edit: Edit, words: str) -> None:
    forge(folder, edit)
    wrong = failed(check_holdout(folder))
    assert set(wrong) == {"receipt"}
    assert words in wrong["receipt"]
    with pytest.raises(Damaged, match=words):
        Holdout.open(folder)


def test_a_changed_answer_is_found_by_a_receipt_that_was_kept(
    folder: Path, forgotten: None
) -> None:
    kept = check_holdout(folder).receipt
    forge(folder, CHANGED)
    assert failed(check_holdout(folder)) == {}  # nobody could know
    assert set(failed(check_holdout(folder, kept))) == {"receipt"}


def test_an_older_copy_put_back_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.holdfast"
    with sources(), sealed(path, plans.mixed()) as holdout:
        grant, _ = holdout.access.grant("analyst")
        for number in range(2):
            older = shutil.copytree(path, tmp_path / f"older {number}")
            if number:
                holdout.ask("avg(x)", grid=POINTS)
            else:
                holdout.access.revoke(grant.id)  # the copy brings nobody back
            newer = path.rename(tmp_path / f"newer {number}")
            older.rename(path)
            assert set(failed(check_holdout(path))) == {"receipt"}
            with pytest.raises(Damaged, match="older copy was put back"):
                Holdout.open(path)
            shutil.rmtree(path)
            newer.rename(path)


def test_a_copy_used_beside_the_original_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.holdfast"
    with sources(), sealed(path, plans.mixed()) as holdout:
        twin = Path(shutil.copytree(path, tmp_path / "twin"))
        with Holdout.open(twin) as other:
            other.ask("avg(x)", grid=POINTS)
            with pytest.raises(Damaged, match="Two histories"):
                holdout.ask("avg(c)", grid=POINTS)
    with pytest.raises(Damaged):
        Holdout.open(path)


def test_the_ledger_of_another_holdout_is_found(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    sealed(other, plans.mixed()).close()
    for file in folder.glob(f"{LEDGER}*"):
        file.unlink()
    shutil.copy(other / LEDGER, folder / LEDGER)
    assert set(failed(check_holdout(folder))) == {"data"}


def test_a_receipt_of_another_holdout_is_refused(folder: Path, tmp_path: Path) -> None:
    with sealed(tmp_path / "other", plans.mixed()) as other:
        receipt = str(other.receipt)
    assert "one of the holdout" in failed(check_holdout(folder, receipt))["receipt"]
    with pytest.raises(InvalidInput, match="receipt"):
        check_holdout(folder, "nonsense")


# Files.


def test_bytes_changed_in_the_ledger_are_found(folder: Path) -> None:
    file = folder / LEDGER
    data = file.read_bytes()
    at = data.index(b'"drawn":')
    file.write_bytes(data[:at] + b'"DRAWN":' + data[at + 8 :])
    assert set(failed(check_holdout(folder))) == {"chain"}


def test_a_swapped_data_file_is_found(folder: Path, tmp_path: Path) -> None:
    with sealed(tmp_path / "other", plans.mixed()) as other:
        shutil.copy(other.path / "blocks.parquet", folder / "blocks.parquet")
    assert set(failed(check_holdout(folder))) == {"data"}
    (folder / "blocks.parquet").unlink()
    assert set(failed(check_holdout(folder))) == {"data"}


def flip_a_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))


def test_one_bit_of_the_data_is_enough(folder: Path) -> None:
    flip_a_bit(folder / "blocks.parquet")
    assert set(failed(check_holdout(folder))) == {"data"}


def test_a_changed_universe_is_found(tmp_path: Path) -> None:
    plan = plans.weights()
    data = {"y": np.arange(plan.blocks) % 2 == 0, "i": np.arange(plan.blocks) + 0.625}
    made = Holdout.create(tmp_path / "a", data, plan, universe={"y": [False, True]}, block_units=1)
    made.close()
    assert failed(check_holdout(made.path)) == {}
    (file,) = made.path.glob("world*")
    flip_a_bit(file)
    assert set(failed(check_holdout(made.path))) == {"data"}


def test_a_folder_without_a_ledger_is_no_holdout(tmp_path: Path) -> None:
    for use in (check_holdout, Holdout.open):
        with pytest.raises(InvalidInput, match="folder of a holdout"):
            use(tmp_path)


# Other words of a question, under the key that it then has, and what stands beside an answer.


def rekeyed(part: str, prefix: str, place: str, value: object) -> Edit:
    def edit(entries: list[Entry]) -> None:
        for each in entries:
            if each.kind in ("reserved", "recorded") and each.body["question"]["part"] == part:
                put(each.body, place, value)
                question = each.body["question"]
                each.question = question_key(question, f"{prefix} {question['estimator']}")

    return edit


_NARROW = {"kind": "sd", "sd": 1e-9}


@pytest.mark.parametrize(
    ("part", "place", "value"),
    [
        ("verify", "question.guess", GONE),
        ("verify", "question.guess", True),
        ("verify", "question.guess", "0.5"),
        ("verify", "question.gate", "no"),
        ("verify", "question.limits", {"a": 1}),
        ("amplified", "question.range", [3.0, 1.0]),
        ("amplified", "question.claim", "equals"),
        ("amplified", "question.shape", _NARROW),
        ("split", "question.shape", _NARROW),
        ("split", "note", "more"),
    ],
)
def test_a_question_has_the_words_of_its_verb(
    folder: Path, forgotten: None, part: str, place: str, value: object
) -> None:
    forge(folder, rekeyed(part, "sql", place, value))
    assert failed(check_holdout(folder))


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("amplified", "left", 0.5),
        ("amplified", "left", True),
        ("amplified", "assumes", ["anything"]),
        ("amplified", "empty", [1, 2]),
        ("verify", "refusals", 0),
        ("rounds", "left", 0.0),
        ("split", "asker", "nobody"),
        ("split", "drawn", {"value": " 1_0 "}),
        ("split", "drawn", {"value": True}),
        ("estimate", "left", 0.0),
    ],
)
def test_what_stands_beside_an_answer_is_computed_too(
    folder: Path, forgotten: None, part: str, name: str, value: object
) -> None:
    forge(folder, says("recorded", part, (name, value)))
    assert failed(check_holdout(folder))


@pytest.mark.parametrize("ends", [[10.0, 0.0], [3.0, 3.0], [0, 10]])
def test_the_range_of_a_mean_has_two_ends(
    tmp_path: Path, forgotten: None, ends: list[float]
) -> None:
    with sealed(tmp_path / "d", plans.direct()) as holdout, sources():
        holdout.mean("x", range=(0, 10))
    forge(tmp_path / "d", rekeyed("mean", "sql mean", "question.range", ends))
    assert {"prices", "answers"} <= set(failed(check_holdout(tmp_path / "d")))
