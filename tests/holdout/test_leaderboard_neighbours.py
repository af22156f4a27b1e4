"""Neighbours on a board of told scores: compared in pairs, from predictions that are kept."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from holdfast.errors import HoldfastWarning, InvalidInput
from holdfast.holdout import answering
from holdfast.holdout.answering import found_by
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.leaderboard import Standings
from holdfast.holdout.submissions import KEPT_FOLDER, Kept
from holdfast.holdout.tokens import Asker
from tests.holdout.plans import board
from tests.holdout.tables import refusing, table
from tests.holdout.test_told import made, right, rows

FRAME = rows(seed=41, size=2_000)
SHARES = {"a": 0.95, "b": 0.88, "c": 0.6, "d": 0.599}


@pytest.fixture
def holdout(tmp_path: Path) -> Iterator[Holdout]:
    """A board of four entries; seeded, so that nothing is a surprise by chance."""
    with made(tmp_path / "h", FRAME, seed=3) as opened:
        for name, share in SHARES.items():
            opened.enter(right(FRAME, share), name)
        yield opened


def files(holdout: Holdout) -> set[str]:
    return {each.name for each in (holdout.path / KEPT_FOLDER).iterdir()}


def kept_of(holdout: Holdout, name: str) -> Path:
    """The file of an entry."""
    entry = next(each for each in holdout.leaderboard().entries if each.name == name)
    row = holdout.journal.ledger.row(int(entry.receipt.split(":")[1]))
    assert row is not None
    return holdout.path / KEPT_FOLDER / f"{row.question}.parquet"


def pairs(standings: Standings) -> list[str]:
    """Each pair: whether it was told, cached, the same, or why not."""
    assert standings.neighbours is not None
    return [
        "same"
        if each.same
        else each.reason
        or ("priced" if each.told is None else ("free" if each.told.cached else "told"))
        for each in standings.neighbours
    ]


def retold(holdout: Holdout) -> str:
    check = check_holdout(holdout.path)
    assert check.passed, str(check)
    return check.findings[-1].detail


def test_neighbours_are_compared_as_anybody_would(holdout: Holdout) -> None:
    before = holdout.receipt
    offers: Any = holdout.leaderboard(price=True)
    assert pairs(offers) == ["priced"] * 3
    assert holdout.receipt == before
    assert "if it is as expected, " in str(offers)
    assert "or more as a surprise" in str(offers)
    told: Any = holdout.leaderboard(neighbours=True)
    assert pairs(told) == ["told"] * 3
    one, _, last = told.neighbours
    assert one.told.told == offers.neighbours[0].price.price
    by_hand: Any = holdout.compare(right(FRAME, 0.95), right(FRAME, 0.88))
    assert (by_hand.cached, by_hand.receipt) == (True, one.told.receipt)
    assert by_hand.low > 0
    assert (one.apart, last.apart) == (True, False)
    *lines, seeded = str(told).splitlines()
    assert seeded.startswith("NOT certified")
    assert lines[-4].startswith("a is better than b by ")
    assert lines[-2].startswith("not shown apart: c is between ")
    assert lines[-1].startswith("these comparisons told ")
    after = holdout.receipt
    again = holdout.leaderboard(neighbours=True)
    assert pairs(again) == ["free"] * 3
    assert holdout.receipt == after
    assert pairs(holdout.leaderboard(price=True)) == ["priced"] * 3
    assert "asked before, free" in str(holdout.leaderboard(price=True))
    assert pairs(holdout.leaderboard(neighbours=True, top=2)) == ["free"]
    assert holdout.leaderboard().neighbours is None
    assert "neighbours" not in holdout.leaderboard().to_dict()
    assert retold(holdout) == "7 answers found again in the sealed rows"


def test_the_same_predictions_are_equal_and_nothing_is_told(holdout: Holdout) -> None:
    holdout.on_behalf(Asker("ann", None)).enter(right(FRAME, 0.95), "a")
    holdout.enter(right(FRAME, 0.95), "guessed", guess=0.95)  # another question about them
    answers = holdout.status().answers
    told: Any = holdout.leaderboard(neighbours=True, top=3)
    assert pairs(told) == ["same", "same"]
    names = {name for each in told.neighbours for name in each.names}
    assert len(names) > 2  # two of the three are called alike
    assert holdout.status().answers == answers
    assert "are the same predictions: nothing to tell" in str(told)


def test_the_classes_that_bars_separate_are_said(holdout: Holdout) -> None:
    standings = holdout.leaderboard()
    entries = standings.entries
    classes = [[each.name for each in some] for some in standings.classes]
    assert [name for some in classes for name in some] == [each.name for each in entries]
    ends = np.cumsum([0, *map(len, classes)])
    for place in range(1, len(entries)):
        lows = [each.low or 0.0 for each in entries[:place]]
        highs = [each.high or 1.0 for each in entries[place:]]
        assert (min(lows) > max(highs)) == (place in ends), place
    assert len(classes) == 2
    assert "the bars separate 2 classes: places 1–2, 3–4" in str(standings)


# What is kept.


def test_only_those_of_the_best_are_kept_for_the_owner_alone(
    holdout: Holdout, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = holdout.path / KEPT_FOLDER
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}
    names = {kept_of(holdout, name).name for name in SHARES}
    assert files(holdout) == names
    holdout.enter(right(FRAME, 0.7), "a")  # no better: that of before stays
    assert files(holdout) == names
    old = kept_of(holdout, "d").name
    holdout.enter(right(FRAME, 0.9), "d")
    assert files(holdout) == names - {old} | {kept_of(holdout, "d").name}
    (folder / "left behind.part").write_bytes(b"by a process that was killed")
    monkeypatch.setattr("holdfast.holdout.leaderboard.MOST_KEPT", 2)
    holdout.enter(right(FRAME, 0.6), "e")
    assert files(holdout) == {kept_of(holdout, name).name for name in ("a", "d")}
    holdout.score(right(FRAME, 0.97))  # on no board
    assert len(files(holdout)) == 2


HARMS = ("missing", "damaged", "another's", "empty", "too short", "two columns", "a pipe")


@pytest.mark.parametrize("harm", HARMS)
def test_what_is_not_kept_is_said_and_entered_again_for_free(holdout: Holdout, harm: str) -> None:
    file = kept_of(holdout, "b")
    if harm == "missing":
        file.unlink()
    elif harm == "another's":
        file.write_bytes(kept_of(holdout, "c").read_bytes())
    elif harm == "too short":
        kept = Kept(holdout.path)
        found = kept.read(file.stem)
        assert found is not None
        kept.keep(file.stem, type(found)(found.values[:10]))
    elif harm == "two columns":
        read = pq.read_table(file)
        pq.write_table(read.append_column("prediction", read.column(0)), file)
    elif harm == "a pipe":
        file.unlink()
        os.mkfifo(file)
    else:
        file.write_bytes(file.read_bytes()[:-9] if harm == "damaged" else b"")
    first, second, third = pairs(holdout.leaderboard(neighbours=True))
    assert first == second
    assert first.startswith("the predictions of 'b' ")
    assert "enter them again" in first
    assert ("were not kept" in first) == (harm == "missing")
    assert third == "told"
    found_again = retold(holdout)
    assert found_again.startswith("4 answers found again in the sealed rows; 1 cannot be (its ")
    assert ("1 files of predictions not read" in found_again) == (harm not in {"missing", "a pipe"})
    told = holdout.status().answers
    assert holdout.enter(right(FRAME, SHARES["b"]), "b").result.cached
    assert holdout.status().answers == told
    assert pairs(holdout.leaderboard(neighbours=True)) == ["told", "told", "free"]
    assert retold(holdout) == "7 answers found again in the sealed rows"


def test_predictions_of_open_rows_that_come_later_are_kept_too(tmp_path: Path) -> None:
    with made(tmp_path / "h", FRAME, seed=3) as holdout:
        opened = set(holdout.open_table(["row"]).column("row").to_pylist())
        sealed = ~FRAME.row.isin(opened)

        def price(given: Any) -> float:
            for name, share in (("a", 0.95), ("b", 0.9)):
                holdout.enter(right(FRAME, share)[given], name, guess=share)
            (only,) = holdout.leaderboard(price=True).neighbours or ()
            assert only.price is not None
            return only.price.price

        assert price(sealed) > 5
        answers = holdout.status().answers
        assert price(sealed | True) < 0.1
        assert price(sealed) < 0.1  # what is kept stays
        assert holdout.status().answers == answers


def test_no_room_takes_no_entry_away(holdout: Holdout, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Any, path: Path) -> None:
        path.write_bytes(b"PAR1")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("pyarrow.parquet.write_table", full)
        with pytest.warns(HoldfastWarning, match="'e' were not kept .No space left"):
            holdout.enter(right(FRAME, 0.85), "e")
    assert len(files(holdout)) == len(SHARES)  # and nothing half written
    reasons = pairs(holdout.leaderboard(neighbours=True))
    assert reasons[0] == reasons[3] == "told"
    assert "'e' were not kept" in reasons[1]
    assert holdout.enter(right(FRAME, 0.85), "e").result.cached
    assert "'e'" not in " ".join(pairs(holdout.leaderboard(neighbours=True)))


def test_a_crash_between_answering_and_keeping(
    holdout: Holdout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    for place in ("holdfast.holdout.leaderboard.Submissions.note", f"{Kept.__module__}.Kept.keep"):
        with monkeypatch.context() as patch:
            patch.setattr(place, stopped)
            with pytest.raises(KeyboardInterrupt):
                holdout.enter(right(FRAME, 0.84), "e")
        with Holdout.open(holdout.path) as again:
            on_board = "e" in {each.name for each in again.leaderboard().entries}
            said = " ".join(pairs(again.leaderboard(price=True)))
            assert on_board == ("'e' were not kept" in said)
    answers = holdout.status().answers
    assert holdout.enter(right(FRAME, 0.84), "e").result.cached
    assert holdout.status().answers == answers
    assert pairs(holdout.leaderboard(neighbours=True)) == ["told"] * 4


def test_two_servers_keep_in_one_folder(holdout: Holdout) -> None:
    with Holdout.open(holdout.path) as other:
        other.leaderboard()
        for place, share in enumerate((0.91, 0.92, 0.93, 0.94)):
            (holdout, other)[place % 2].enter(right(FRAME, share), f"new {place}")
        assert pairs(other.leaderboard(neighbours=True)) == ["told"] * 7
        assert pairs(holdout.leaderboard(neighbours=True)) == ["free"] * 7
    assert len(files(holdout)) == 8


def test_a_backup_takes_them_along_and_a_folder_without_them_opens(
    holdout: Holdout, tmp_path: Path
) -> None:
    told = holdout.leaderboard(neighbours=True)
    others = [holdout.path / KEPT_FOLDER / f"{name}.parquet" for name in ("folder", "pipe", "link")]
    others[0].mkdir()
    os.mkfifo(others[1])
    others[2].symlink_to("nothing")
    copy = holdout.backup(tmp_path / "copy")
    for each in others:
        each.rmdir() if each.is_dir() else each.unlink()
    assert {each for each in copy.files if each.startswith(f"{KEPT_FOLDER}/")} == {
        f"{KEPT_FOLDER}/{name}" for name in files(holdout)
    }
    with Holdout.open(tmp_path / "copy") as again:
        assert files(again) == files(holdout)
        assert pairs(again.leaderboard(neighbours=True)) == ["free"] * 3
        for each in (again.path / KEPT_FOLDER).iterdir():
            each.unlink()
        (again.path / KEPT_FOLDER).rmdir()
    with Holdout.open(tmp_path / "copy") as bare:
        assert [e.name for e in bare.leaderboard().entries] == [e.name for e in told.entries]
        assert all("were not kept" in each for each in pairs(bare.leaderboard(neighbours=True)))
        assert bare.backup(tmp_path / "second").files


# Quotas, levels, and what cannot be compared.


def test_quotas_and_levels_are_those_of_compare(holdout: Holdout) -> None:
    poor = holdout.on_behalf(Asker("ann", None, 0.01))
    assert poor.leaderboard(price=True).neighbours is not None
    assert holdout.status().answers == 4
    said = pairs(poor.leaderboard(neighbours=True))
    assert said[0] == "told"  # the last answer may go beyond what was left
    assert all(each.startswith("Your quota is exhausted") for each in said[1:])
    assert said[1:] == pairs(poor.leaderboard(neighbours=True))[1:]
    low = holdout.leaderboard(neighbours=True, max_level=1.0)
    assert pairs(low)[0] == "free"
    assert all("Your limit" in each for each in pairs(low)[1:])
    assert pairs(holdout.leaderboard(neighbours=True)) == ["free", "told", "told"]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "one entry": ({"top": 1}, "top must be"),
    "too many": ({"top": 101}, "top must be"),
    "blocks": ({"metric": "f1"}, "a mean over rows for compare"),
    "no metric": ({"metric": "acuracy"}, "Did you mean accuracy"),
    "a level that is none": ({"max_level": -1.0}, "max_level"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_compared(holdout: Holdout, name: str) -> None:
    words, reason = WRONG[name]
    for how in ({"neighbours": True}, {"price": True}):
        with refusing(holdout, reason):
            holdout.leaderboard(**{**how, **words})


def test_where_answers_are_by_looks_nothing_is_kept(tmp_path: Path, still: None) -> None:
    frame = table(board().blocks).assign(row=range(board().blocks))
    with Holdout.create(tmp_path / "h", frame, board(), ids="row", target="y") as looks:
        looks.enter(dict.fromkeys(range(len(frame)), 1), "ones")
        assert not (looks.path / KEPT_FOLDER).exists()
        with pytest.raises(InvalidInput, match="compare"):
            looks.leaderboard(neighbours=True)


def test_an_empty_board_and_one_entry(tmp_path: Path) -> None:
    with made(tmp_path / "h", FRAME) as holdout:
        assert pairs(holdout.leaderboard(neighbours=True)) == []
        holdout.enter(right(FRAME, 0.9), "a")
        assert "fewer than two entries" in str(holdout.leaderboard(neighbours=True))


# Predictions of every kind are the same again.


def test_predictions_of_every_kind_are_kept(tmp_path: Path) -> None:
    words = np.where(FRAME.y == 1, "yes ü", "no")
    frame = FRAME.assign(word=words)
    with made(tmp_path / "h", frame, target="word", labels=None, seed=5) as holdout:
        opened = set(holdout.open_table(["row"]).column("row").to_pylist())
        sealed = frame[~frame.row.isin(opened)]
        for name, share in (("a", 0.9), ("b", 0.8)):
            given = np.where(sealed.luck < share, sealed.word, "perhaps")
            table = pd.DataFrame({"row": sealed.row, "prediction": given})
            holdout.enter(table, name, guess=share)  # none for open rows
        (only,) = holdout.leaderboard(neighbours=True).neighbours or ()
        assert only.told is not None
        assert only.told.guess is None  # nothing is known of them on the open part
        assert retold(holdout) == "3 answers found again in the sealed rows"
    with made(tmp_path / "g", FRAME, seed=5) as holdout:
        for name, chance in (("a", 0.9), ("b", 0.7)):
            given = np.where(FRAME.y == 1, chance, 1 - chance)
            table = pd.DataFrame({"row": FRAME.row, "prediction": given})
            holdout.enter(table, name, metric="brier")
            holdout.gate(table, metric="brier", at_most=0.5)
        told = holdout.leaderboard("brier", neighbours=True)
        assert pairs(told) == ["told"]
        assert "a is better than b by 0.0" in str(told)
        assert retold(holdout) == "5 answers found again in the sealed rows"


def test_a_letter_that_the_rows_do_not_tell_is_found(
    holdout: Holdout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers about other terms than those of the sealed rows: all else in the rows fits."""

    def nothing(*given: Any, **more: Any) -> Any:
        found: Any = found_by(*given, **more)
        return 0 * found

    with monkeypatch.context() as patch:
        patch.setattr(answering, "found_by", nothing)
        wrong = holdout.enter(right(FRAME, 0.9), "wrong").result
    check = check_holdout(holdout.path)
    assert not check.passed
    number = wrong.receipt.split(":")[1]
    failed = [each for each in check.findings if not each.passed]
    assert [each.name for each in failed] == ["told"]
    assert failed[0].detail == f"row {number} tells what the sealed rows do not"


def test_the_metric_of_a_file_has_a_board_too(tmp_path: Path) -> None:
    near = hf.row_metric(
        lambda target, predicted: abs(target - predicted) < 0.5,
        range=(0, 1),
        greater_is_better=True,
        name="near",
    )
    with made(tmp_path / "h", FRAME, seed=5) as holdout:
        for name, share in (("a", 0.9), ("b", 0.8)):
            holdout.enter(right(FRAME, share), name, metric=near)
        holdout.scorers = type(holdout.scorers)({"near": holdout.scorers.find(near)})
        assert pairs(holdout.leaderboard("near", neighbours=True)) == ["told"]
        assert "; 3 cannot be (their " in retold(holdout)
