"""Locks, threads and forks. What forks does so in a process of its own, without threads."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from holdfast.ledger.locks import STRIPES, Stripes, exclusive
from holdfast.ledger.sqlite import SqliteLedger
from tests.ledger.children import BOTH_WRITE, START
from tests.ledger.contract import HOLDOUT


def run(tmp_path: Path, program: str) -> str:
    """What a program prints, run in a folder with a ledger that has one row."""
    SqliteLedger.create(tmp_path / "ledger.sqlite", HOLDOUT, {"plan": 1}).close()
    start = """
from holdfast.ledger import SqliteLedger

path = Path("ledger.sqlite")

def opened():
    return SqliteLedger.open(path)
"""
    done = subprocess.run(
        [sys.executable, "-c", START + start + program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    return done.stdout


def total(tmp_path: Path) -> int:
    with SqliteLedger.open(tmp_path / "ledger.sqlite") as ledger:
        return ledger.verify().number


def test_a_wait_ends_and_says_for_what(tmp_path: Path) -> None:
    with (
        exclusive(tmp_path / "a"),
        pytest.raises(TimeoutError, match=r"held .*a for more than 0\.01 seconds"),
        exclusive(tmp_path / "a", timeout=0.01),
    ):
        pass
    with exclusive(tmp_path / "a", timeout=0.01):
        pass


def test_names_spread_over_the_stripes_and_no_more(tmp_path: Path) -> None:
    stripes = Stripes(tmp_path)
    for i in range(3 * STRIPES):
        with stripes.hold(str(i)):
            assert stripes.held
    assert not stripes.held
    assert STRIPES // 2 < len(list(tmp_path.iterdir())) <= STRIPES


def test_an_error_inside_releases_the_lock(tmp_path: Path) -> None:
    stripes = Stripes(tmp_path)
    with pytest.raises(KeyError), stripes.hold("a"):
        raise KeyError
    done = threading.Event()

    def other() -> None:
        with stripes.hold("a"):
            done.set()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(120)
    assert done.is_set()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        """
ledger = SqliteLedger.open(path)
ready, end = os.pipe()
def hold():
    with ledger.lock("a"), ledger.begin() as transaction:
        transaction.append("noted", {})
        os.write(end, b"x")
        time.sleep(60)
process = child(hold)
os.read(ready, 1)
os.kill(process, signal.SIGKILL)
os.waitpid(process, 0)
with ledger.lock("a"):
    note(ledger)
print(ledger.verify().number)
""",
    )
    assert printed.split() == ["2"]


def test_a_child_does_not_keep_the_lock_of_its_parent(tmp_path: Path) -> None:
    """The parent is killed while it holds the lock; its child lives on and must not hold it."""
    printed = run(
        tmp_path,
        """
ledger = SqliteLedger.open(path)
ready, end = os.pipe()
stay, leave = os.pipe()
def hold():
    with ledger.lock("a"):
        child(lambda: (os.close(leave), os.read(stay, 1)))
        os.write(end, b"x")
        time.sleep(60)
process = child(hold)
os.read(ready, 1)
os.kill(process, signal.SIGKILL)
os.waitpid(process, 0)
with ledger.lock("a"):
    print("free")
os.close(leave)
""",
    )
    assert printed.split() == ["free"]


def test_parent_and_child_both_write_whoever_ends_first(tmp_path: Path) -> None:
    """With an inherited connection, the first to end deletes the log that the other writes to."""
    run(tmp_path, BOTH_WRITE)
    assert total(tmp_path) == 21


def test_a_fork_waits_for_the_transaction_of_another_thread(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
ledger = SqliteLedger.open(path)
begun = threading.Event()
def slow():
    with ledger.begin() as transaction:
        begun.set()
        time.sleep(0.2)
        transaction.append("noted", {})
thread = threading.Thread(target=slow)
thread.start()
begun.wait()
process = child(lambda: note(ledger))
thread.join()
note(ledger)
os.waitpid(process, 0)
""",
    )
    assert total(tmp_path) == 4


def test_a_child_forked_inside_a_transaction_cannot_end_it(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        """
ledger = SqliteLedger.open(path)
process = None
try:
    with ledger.begin() as transaction:
        transaction.append("noted", {"who": "parent"})
        process = os.fork()
except HoldfastError as error:
    print("refused:", "forked inside" in str(error), flush=True)
    try:
        ledger.rows()
    except HoldfastError as error:
        print("refused:", "forked inside" in str(error), flush=True)
    os._exit(0)
os.waitpid(process, 0)
note(ledger)
print(ledger.verify().number)
""",
    )
    assert printed.splitlines() == ["refused: True", "refused: True", "3"]
