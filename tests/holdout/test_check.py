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
from tests.holdout.forging import LEDGER, Entry, failed, forge, found
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

Edit = Callable[[list[Entry]], None]


def lower(entry: Entry, key: str = "charge") -> None:
    entry.body[key]["price"] = str(Fraction(entry.body[key]["price"]) / 2)


def lower_a_reservation(entries: list[Entry]) -> None:
    lower(found(entries, "reserved", "estimate"))


def lower_both(entries: list[Entry]) -> None:
    for each in ("reserved", "recorded"):
        entry = found(entries, each, "estimate", nth=1 if each == "reserved" else 0)
        charge = entry.body["charge"] if each == "reserved" else entry.body["charges"][0]
        charge["price"] = str(Fraction(charge["price"]) / 2)


def give_back_a_search(entries: list[Entry]) -> None:
    found(entries, "recorded", "estimate").body["charges"][0].update(price="0", looks=0)


def half_a_search(entries: list[Entry]) -> None:
    charge = found(entries, "recorded", "estimate").body["charges"][0]
    charge.update(price=str(Fraction(charge["price"]) / 3), looks=1)


def a_no_at_the_price_of_a_yes(entries: list[Entry]) -> None:
    yes = found(entries, "recorded", "verify", "verify", 0).body
    no = found(entries, "recorded", "verify", "verify", 1).body
    assert (yes["drawn"]["yes"], no["drawn"]["yes"] < 2) == (2, True)
    no["charges"] = copy.deepcopy(yes["charges"])


def a_correction_for_nothing(entries: list[Entry]) -> None:
    row = found(entries, "recorded", "verify", "correct", 1).body
    assert "index" in row["drawn"]
    row["charges"][0].update(price="0", looks=0)


def another_part(entries: list[Entry]) -> None:
    """A search charged to the part of intervals."""
    row = found(entries, "reserved", "estimate", nth=1)
    row.body["charge"]["part"] = "interval"
    found(entries, "recorded", "estimate").body["charges"][0]["part"] = "interval"


def skip_the_reservation(entries: list[Entry]) -> None:
    row = found(entries, "reserved", "estimate", nth=1)
    number = entries.index(row) + 1
    entries.remove(row)
    for each in entries:
        if each.kind == "recorded":
            each.body["reserves"] = [n - (n > number) for n in each.body["reserves"]]


def no_reservation(entries: list[Entry]) -> None:
    found(entries, "recorded", "estimate").body["reserves"] = []


def a_reservation_that_is_none(entries: list[Entry]) -> None:
    found(entries, "recorded", "estimate").body["reserves"] = [10**6]


def a_reservation_of_another(entries: list[Entry]) -> None:
    row = found(entries, "recorded", "estimate")
    row.body["reserves"] = [1 + entries.index(found(entries, "reserved", "interval"))]


def an_answer_twice(entries: list[Entry]) -> None:
    first = copy.deepcopy(found(entries, "recorded", "estimate"))
    entries.append(first)


def two_answers_under_two_keys(entries: list[Entry]) -> None:
    two_answers(entries)
    for each in entries[-2:]:
        each.question = "ab" * 32


def two_answers_without_a_key(entries: list[Entry]) -> None:
    two_answers(entries)
    for each in entries[-2:]:
        each.question = None


def another_key(entries: list[Entry]) -> None:
    for kind, nth in (("reserved", 1), ("recorded", 0)):
        found(entries, kind, "estimate", nth=nth).question = "ab" * 32


def a_key_that_did_not_pay(entries: list[Entry]) -> None:
    found(entries, "reserved", "estimate", nth=1).question = "ab" * 32


def another_engine(entries: list[Entry]) -> None:
    """The key of a callable cannot be computed; but there are two engines only."""
    for kind, nth in (("reserved", 1), ("recorded", 0)):
        row = found(entries, kind, "estimate", nth=nth)
        row.body["question"]["estimator"]["engine"], row.question = "other", None


def invented(entries: list[Entry]) -> None:
    found(entries, "recorded", "estimate").body["drawn"]["index"] = 99


def two_answers(entries: list[Entry]) -> None:
    held = copy.deepcopy(found(entries, "reserved", "estimate", nth=1))
    entries.append(held)
    second = copy.deepcopy(found(entries, "recorded", "estimate"))
    second.body["reserves"] = [len(entries)]
    entries.append(second)


def a_set_of_its_own(entries: list[Entry]) -> None:
    found(entries, "reserved", "estimate").body["set"] = "other"


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
        held = copy.deepcopy(found(entries, "reserved", "verify", nth=1))
        entries.append(held)
        no = copy.deepcopy(found(entries, "recorded", "verify", nth=1))
        no.body["reserves"] = [len(entries)]
        held.question = no.question = f"{len(entries):064x}"
        entries.append(no)


def more_than_the_budget(entries: list[Entry]) -> None:
    held = found(entries, "reserved", "estimate", nth=1)
    for number in range(30):
        entries.append(copy.deepcopy(held))
        entries[-1].question = f"{number:064x}"


def a_smaller_grid_than_asked(entries: list[Entry]) -> None:
    """The reservation says that its grid was smaller than the one recorded."""
    held = found(entries, "reserved", "amplified")
    held.body["question"]["grid"] = hf.grid(0, 1, points=2).to_json()


def an_answer_that_is_none(entries: list[Entry]) -> None:
    found(entries, "recorded", "estimate").body["drawn"] = {"value": 3}


def without_an_answer(entries: list[Entry]) -> None:
    del found(entries, "recorded", "estimate").body["drawn"]


def nonsense(entries: list[Entry]) -> None:
    found(entries, "recorded", "estimate").body["charges"] = 7


def cheaper(entries: list[Entry]) -> None:
    """A plan that proves itself, with coins that cost less than those that were flipped."""
    entries[0].body["sets"][0]["plan"]["plan"]["parts"][0]["look_price"] /= 2


FORGERIES: dict[Edit, str] = {
    cheaper: "prices",
    lower_a_reservation: "prices",
    lower_both: "prices",
    give_back_a_search: "prices",
    half_a_search: "prices",
    a_no_at_the_price_of_a_yes: "prices",
    a_correction_for_nothing: "prices",
    another_part: "prices",
    skip_the_reservation: "answers",
    no_reservation: "answers",
    a_reservation_that_is_none: "answers",
    a_reservation_of_another: "prices",
    an_answer_twice: "answers",
    two_answers: "answers",
    two_answers_under_two_keys: "answers",
    two_answers_without_a_key: "answers",
    another_key: "answers",
    a_key_that_did_not_pay: "answers",
    another_engine: "answers",
    invented: "answers",
    below_nothing: "prices",
    a_set_of_its_own: "prices",
    behind_a_later_question: "prices",
    more_than_planned: "budget",
    more_than_the_budget: "budget",
    a_smaller_grid_than_asked: "prices",
    an_answer_that_is_none: "answers",
    without_an_answer: "prices",
    nonsense: "prices",
}


@pytest.mark.parametrize("edit", FORGERIES, ids=lambda edit: edit.__name__)
def test_a_forged_chain_is_found_by_what_it_says(folder: Path, forgotten: None, edit: Edit) -> None:
    forge(folder, edit)
    checked = check_holdout(folder)
    assert not checked.passed
    wrong = failed(checked)
    assert FORGERIES[edit] in wrong, wrong
    assert "chain" not in wrong
    assert all(detail for detail in wrong.values())


# Plans.


def weaker(entries: list[Entry]) -> None:
    """Half of the blocks: more questions than they can bear."""
    entries[0].body["sets"][-1]["plan"]["queries"] *= 2


def surer(entries: list[Entry]) -> None:
    entries[0].body["sets"][0]["plan"]["plan"]["confidence"] = 0.99


def richer(entries: list[Entry]) -> None:
    entries[0].body["sets"][0]["plan"]["plan"]["budget"] *= 2


def overlapping(entries: list[Entry]) -> None:
    """Two sets on the same blocks: two budgets for one."""
    entries[0].body["sets"][1]["first"] = 0


def same_name(entries: list[Entry]) -> None:
    entries[0].body["sets"][1]["name"] = "main"


def without_a_set(entries: list[Entry]) -> None:
    del entries[0].body["sets"][-1]


def without_plans(entries: list[Entry]) -> None:
    del entries[0].body["sets"]


def newer(entries: list[Entry]) -> None:
    entries[0].body["format"] = 99


@pytest.mark.parametrize(
    "edit",
    [weaker, surer, richer, overlapping, same_name, without_a_set, without_plans, newer],
    ids=lambda edit: edit.__name__,
)
def test_a_plan_that_was_changed_is_found(folder: Path, forgotten: None, edit: Edit) -> None:
    forge(folder, edit)
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


def change_an_answer(entries: list[Entry]) -> None:
    """Another point of its grid: nothing in the row tells."""
    found(entries, "recorded", "estimate").body["drawn"]["index"] -= 1


def test_a_changed_answer_is_found_by_the_receipt(folder: Path) -> None:
    forge(folder, change_an_answer)
    assert set(failed(check_holdout(folder))) == {"receipt"}
    with pytest.raises(Damaged, match="another history"):
        Holdout.open(folder)


def test_a_changed_answer_is_found_by_a_receipt_that_was_kept(
    folder: Path, forgotten: None
) -> None:
    kept = check_holdout(folder).receipt
    forge(folder, change_an_answer)
    assert failed(check_holdout(folder)) == {}  # nobody could know
    assert set(failed(check_holdout(folder, kept))) == {"receipt"}


def test_a_ledger_that_was_cut_short_is_found(folder: Path) -> None:
    forge(folder, lambda entries: entries.__delitem__(slice(-2, None)))
    wrong = failed(check_holdout(folder))
    assert set(wrong) == {"receipt"}
    assert "older copy" in wrong["receipt"]
    with pytest.raises(Damaged, match="older copy"):
        Holdout.open(folder)


def test_an_older_copy_put_back_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.holdfast"
    with sources(), sealed(path, plans.mixed()) as holdout:
        holdout.ask("avg(x)", grid=POINTS)
        older = shutil.copytree(path, tmp_path / "older")
        holdout.ask("avg(c)", grid=POINTS)
    shutil.rmtree(path)
    shutil.copytree(older, path)
    assert set(failed(check_holdout(path))) == {"receipt"}
    with pytest.raises(Damaged, match="older copy was put back"):
        Holdout.open(path)


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


def test_one_byte_of_the_data_is_enough(folder: Path) -> None:
    file = folder / "blocks.parquet"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    assert set(failed(check_holdout(folder))) == {"data"}


def test_a_changed_universe_is_found(tmp_path: Path) -> None:
    plan = plans.weights()
    data = {"y": np.arange(plan.blocks) % 2 == 0, "i": np.arange(plan.blocks) + 0.625}
    made = Holdout.create(tmp_path / "a", data, plan, universe={"y": [False, True]}, block_units=1)
    made.close()
    assert failed(check_holdout(made.path)) == {}
    (file,) = made.path.glob("world*")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    assert set(failed(check_holdout(made.path))) == {"data"}


def test_a_folder_without_a_ledger_is_no_holdout(tmp_path: Path) -> None:
    for use in (check_holdout, Holdout.open):
        with pytest.raises(InvalidInput, match="folder of a holdout"):
            use(tmp_path)


def _told_otherwise(part: str, change: Callable[[Entry], object]) -> Callable[[list[Entry]], None]:
    """Rows of a part, each with the key that its question then has."""

    def edit(entries: list[Entry]) -> None:
        for each in entries:
            if each.kind in ("reserved", "recorded") and each.body["question"]["part"] == part:
                change(each)
                question = each.body["question"]
                each.question = question_key(question, f"sql {question['estimator']}")

    return edit


_NARROW = {"kind": "sd", "sd": 1e-9}


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("verify", lambda each: each.body["question"].pop("guess")),
        ("verify", lambda each: each.body["question"].update(guess=True)),
        ("verify", lambda each: each.body["question"].update(guess="0.5")),
        ("verify", lambda each: each.body["question"].update(gate="no")),
        ("verify", lambda each: each.body["question"].update(limits={"a": 1})),
        ("amplified", lambda each: each.body["question"].update(range=[3.0, 1.0])),
        ("amplified", lambda each: each.body["question"].update(claim="equals")),
        ("amplified", lambda each: each.body["question"].update(shape=_NARROW)),
        ("split", lambda each: each.body["question"].update(shape=_NARROW)),
        ("split", lambda each: each.body.update(note="more")),
    ],
)
def test_a_question_has_the_words_of_its_verb(
    folder: Path, forgotten: None, part: str, change: Callable[[Entry], object]
) -> None:
    forge(folder, _told_otherwise(part, change))
    assert failed(check_holdout(folder))


@pytest.mark.parametrize(
    ("part", "facts"),
    [
        ("amplified", {"left": 0.5}),
        ("amplified", {"left": True}),
        ("amplified", {"assumes": ["anything"]}),
        ("amplified", {"empty": [1, 2]}),
        ("verify", {"refusals": 0}),
        ("rounds", {"left": 0.0}),
        ("split", {"asker": "nobody"}),
        ("split", {"drawn": {"value": " 1_0 "}}),
        ("split", {"drawn": {"value": True}}),
        ("estimate", {"left": 0.0}),
    ],
)
def test_what_stands_beside_an_answer_is_computed_too(
    folder: Path, forgotten: None, part: str, facts: dict[str, object]
) -> None:
    forge(folder, lambda entries: found(entries, "recorded", part).body.update(facts))
    assert failed(check_holdout(folder))


@pytest.mark.parametrize("ends", [[10.0, 0.0], [3.0, 3.0], [0, 10]])
def test_the_range_of_a_mean_has_two_ends(
    tmp_path: Path, forgotten: None, ends: list[float]
) -> None:
    with sealed(tmp_path / "d", plans.direct()) as holdout, sources():
        holdout.mean("x", range=(0, 10))

    def edit(entries: list[Entry]) -> None:
        for each in entries[1:]:
            each.body["question"]["range"] = ends
            question = each.body["question"]
            each.question = question_key(question, f"sql mean {question['estimator']}")

    forge(tmp_path / "d", edit)
    assert {"prices", "answers"} <= set(failed(check_holdout(tmp_path / "d")))
