from __future__ import annotations

import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger import witness
from holdfast.ledger.ledger import Receipt
from holdfast.ledger.witness import Witness


def receipt(number: int, digit: str = "0", holdout: str = "one") -> Receipt:
    return Receipt(holdout, number, digit * 64)


def test_it_remembers_the_last_of_every_holdout(tmp_path: Path) -> None:
    witness = Witness(tmp_path / "state" / "receipts")
    assert witness.last("one") is None
    witness.see(receipt(3))
    witness.see(receipt(1, holdout="two"))
    assert Witness(witness.folder).last("one") == receipt(3)
    assert witness.last("two") == receipt(1, holdout="two")
    assert stat.S_IMODE(witness.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in witness.folder.iterdir()} == {0o600}


def test_it_never_goes_back(tmp_path: Path) -> None:
    witness = Witness(tmp_path)
    witness.see(receipt(3))
    witness.see(receipt(2, "7"))  # an older answer arrives late
    witness.see(receipt(3))
    assert witness.last("one") == receipt(3)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(witness.see, [receipt(n) for n in (9, 4, 30, 12, 25, 29, 7, 28)] * 4))
    assert witness.last("one") == receipt(30)


def test_whoever_returns_finds_a_receipt_at_least_as_new_on_the_disk(tmp_path: Path) -> None:
    shared = Witness(tmp_path)

    def see(number: int) -> bool:
        shared.see(receipt(number))
        kept = Witness(tmp_path).last("one")  # as another process reads it
        return kept is not None and kept.number >= number

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(see, [n * 37 % 200 + 1 for n in range(200)]))


def test_those_who_wait_are_written_once_with_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    entered, go_on = threading.Event(), threading.Event()
    write = witness._write

    def slow(path: Path, receipt: Receipt, place: int | None) -> None:
        written.append(str(receipt.number))
        entered.set()
        assert go_on.wait(120)
        write(path, receipt, place)

    monkeypatch.setattr(witness, "_write", slow)
    shared = Witness(tmp_path)
    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(shared.see, receipt(1))]
        assert entered.wait(120)
        futures += [pool.submit(shared.see, receipt(n)) for n in (2, 5, 3, 4)]
        while shared._newest["one"].number < 5:
            pass
        assert not any(future.done() for future in futures)
        go_on.set()
        for future in futures:
            future.result(30)
    assert written[0] == "1"
    assert "5" in written
    assert Witness(tmp_path).last("one") == receipt(5)
    count = len(written)
    shared.see(receipt(4))
    shared.see(receipt(5))
    assert len(written) == count


def test_two_histories_are_noticed(tmp_path: Path) -> None:
    witness = Witness(tmp_path)
    witness.see(receipt(3))
    with pytest.raises(Damaged, match="Two histories"):
        witness.see(receipt(3, "1"))
    assert witness.last("one") == receipt(3)


@pytest.mark.parametrize(
    "text", [b"", b"one:1:abc", b"\xff\xfe", str(receipt(1, holdout="two")).encode()]
)
def test_a_file_that_says_nothing_is_not_taken_for_nothing_seen(
    tmp_path: Path, text: bytes
) -> None:
    (tmp_path / "one.receipt").write_bytes(text)
    witness = Witness(tmp_path)
    with pytest.raises(Damaged, match=r"Delete .*one\.receipt"):
        witness.last("one")
    with pytest.raises(Damaged):
        witness.see(receipt(2))
    with pytest.raises(InvalidInput, match="holdout"):
        witness.last("../one")


def test_a_receipt_is_written_over_the_last_but_one(tmp_path: Path) -> None:
    witness, path = Witness(tmp_path), tmp_path / "one.receipt"
    witness.see(receipt(1))
    inode = path.stat().st_ino
    for number in range(2, 8):
        before = path.read_bytes()
        witness.see(receipt(number))
        after = path.read_bytes()
        kept = [place for place in (0, 512) if before[place : place + 512] == after[place:][:512]]
        assert any(str(receipt(number - 1)).encode() in before[p : p + 512] for p in kept)
        assert path.stat().st_ino == inode
        assert len(after) == 1024


@pytest.mark.parametrize("half", [0, 1, 5, 6, 40, 70, 75, 80, 87, 300])
def test_a_receipt_that_is_half_written_leaves_the_one_before(tmp_path: Path, half: int) -> None:
    """As a machine that stops leaves it: some bytes of the new one, the rest of the old."""
    path = tmp_path / "one.receipt"
    for last in (5, 6):  # in either place
        witness = Witness(tmp_path)
        path.unlink(missing_ok=True)
        for number in range(1, last + 1):
            witness.see(receipt(number, "a"))
        before = path.read_bytes()
        Witness(tmp_path).see(receipt(last + 1, "b"))
        after = path.read_bytes()
        place = 0 if before[:512] != after[:512] else 512
        path.write_bytes(
            before[:place]
            + after[place : place + half]
            + before[place + half : place + 512]
            + before[place + 512 :]
        )
        found = Witness(tmp_path).last("one")
        whole = half >= len(f"{receipt(last + 1)} ") + 16
        assert found == (receipt(last + 1, "b") if whole else receipt(last, "a"))
        Witness(tmp_path).see(receipt(last + 2, "c"))
        assert Witness(tmp_path).last("one") == receipt(last + 2, "c")
