"""Several processes on one ledger, and processes that fork."""

from __future__ import annotations

import os
import signal

import pytest

from holdfast.ledger.postgres import PostgresLedger
from tests.ledger.children import BOTH_WRITE
from tests.ledger.contract import HOLDOUT
from tests.ledger.postgres_tests import run, start, together

pytestmark = pytest.mark.cluster


def total(url: str) -> int:
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        return ledger.verify().number


def test_processes_that_append_at_once_make_one_chain(url: str) -> None:
    program = """
ledger = opened()
print("ready", flush=True)
sys.stdin.readline()
def work(name):
    for i in range(20):
        with ledger.begin() as transaction:
            transaction.append("noted", {"who": sys.argv[2], "thread": name, "i": i})
threads = [threading.Thread(target=work, args=(name,)) for name in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    together(*(start(url, program, str(number)) for number in range(3)))
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        assert ledger.verify().number == 4 + 180
        bodies = [row.body for row in ledger.rows(after=4)]
    for who in range(3):
        for name in range(3):
            mine = [b["i"] for b in bodies if (b["who"], b["thread"]) == (str(who), name)]
            assert mine == list(range(20))


def test_a_name_excludes_processes_and_their_threads(url: str) -> None:
    """All take the name, look whether somebody else is inside, and stay for a moment."""
    program = """
ledger = opened()
print("ready", flush=True)
sys.stdin.readline()
def work():
    for _ in range(5):
        with ledger.lock("shared", f"own {os.getpid()} {threading.get_ident()}"):
            with ledger.begin() as transaction:
                transaction.append("noted", {"inside": 1})
            time.sleep(0.002)
            with ledger.begin() as transaction:
                transaction.append("noted", {"inside": 0})
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    together(*(start(url, program) for _ in range(3)))
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        inside = [row.body["inside"] for row in ledger.rows(after=4)]
    assert inside == [1, 0] * 45


def test_the_names_of_a_killed_process_are_free(url: str) -> None:
    program = """
ledger = opened()
with ledger.lock("a"), ledger.begin() as transaction:
    transaction.append("noted", {})
    print("in", flush=True)
    time.sleep(60)
"""
    with start(url, program) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "in\n"
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait(30)
        with (
            PostgresLedger.open(url, HOLDOUT) as ledger,
            ledger.lock("a") as hold,
            ledger.begin() as transaction,
        ):
            hold.check()
            transaction.append("noted", {})
    assert total(url) == 5


def test_a_child_does_not_keep_the_names_of_its_parent(url: str) -> None:
    """The parent is killed while it holds the name; its child lives on and must not hold it."""
    printed = run(
        url,
        """
ready, end = os.pipe()
stay, leave = os.pipe()
def hold():
    ledger = opened()
    with ledger.lock("a"):
        child(lambda: (os.close(leave), os.read(stay, 1)))
        os.write(end, b"x")
        time.sleep(60)
process = child(hold)
os.read(ready, 1)
os.kill(process, signal.SIGKILL)
os.waitpid(process, 0)
with opened() as ledger, ledger.lock("a"):
    print("free")
os.close(leave)
""",
    )
    assert printed == ["free"]


def test_a_fork_leaves_the_parent_its_names_and_the_child_none(url: str) -> None:
    printed = run(
        url,
        """
ledger = opened()
with ledger.lock("a") as hold:
    def work():
        note(ledger)  # on a connection of its own
        try:
            with ledger.begin():
                hold.check()
        except OSError as error:
            print("child:", type(error).__name__)
    os.waitpid(child(work), 0)
    with ledger.begin() as transaction:
        hold.check()
        transaction.append("noted", {})
        print("parent: holds", flush=True)
    other = opened()
    with other._reaching() as session:
        from holdfast.ledger.postgres import _take
        from holdfast.ledger.postgres import key
        print("others:", len(_take(session, frozenset({key("name", "flights-1", "a")}))))
    other.close()
ledger.close()
""",
    )
    assert printed == ["child: ConnectionResetError", "parent: holds", "others: 0"]
    assert total(url) == 6


def test_parent_and_child_both_write_whoever_ends_first(url: str) -> None:
    run(url, BOTH_WRITE)
    assert total(url) == 24


def test_a_child_that_ends_does_not_end_the_parents_connection(url: str) -> None:
    printed = run(
        url,
        """
import gc
ledger = opened()
before = ledger._session
process = os.fork()
if process == 0:
    del ledger, before
    gc.collect()
    sys.exit(0)  # in an orderly way: everything is freed
os.waitpid(process, 0)
note(ledger)
print(ledger._session is before)
ledger.close()
""",
    )
    assert printed == ["True"]


def test_a_fork_waits_for_the_transaction_of_another_thread(url: str) -> None:
    run(
        url,
        """
ledger = opened()
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
ledger.close()
""",
    )
    assert total(url) == 7


def test_a_child_forked_inside_a_transaction_cannot_end_it(url: str) -> None:
    printed = run(
        url,
        """
ledger = opened()
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
ledger.close()
""",
    )
    assert printed == ["refused: True", "refused: True", "6"]
