from __future__ import annotations

import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger import Receipt, Witness, witness


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
    replace = witness._replace

    def slow(path: Path, text: str) -> None:
        written.append(text.split(":")[1])
        entered.set()
        assert go_on.wait(30)
        replace(path, text)

    monkeypatch.setattr(witness, "_replace", slow)
    shared = Witness(tmp_path)
    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(shared.see, receipt(1))]
        assert entered.wait(30)
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


def test_an_id_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holdout"):
        Witness(tmp_path).last("../one")
