"""Several processes on one ledger, and processes that fork."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.ledger.ledger import Ledger
from holdfast.ledger.postgres import PostgresLedger
from tests.ledger.contract import HOLDOUT, ProcessContract
from tests.ledger.postgres_tests import OPENED, start, together

pytestmark = pytest.mark.cluster


class TestPostgresProcesses(ProcessContract):
    opened = OPENED

    @pytest.fixture(autouse=True)
    def _database(self, database: str) -> None:
        self.url = database

    def made(self, folder: Path) -> tuple[Ledger, str]:
        return PostgresLedger.create(self.url, HOLDOUT, {"plan": 1}), self.url

    def test_a_fork_leaves_the_parent_its_names_and_the_child_none(self, ledger: Ledger) -> None:
        printed = self.run("""
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
    with other._reaching() as table:
        from holdfast.ledger.postgres import key
        name = key("name", "flights-1", "a")
        print("others:", table.one("SELECT pg_try_advisory_lock(%s)", name))
    other.close()
ledger.close()
""")
        assert printed == ["child: ConnectionResetError", "parent: holds", "others: False"]
        assert ledger.verify().number == 3

    def test_a_child_that_ends_does_not_end_the_parents_connection(self, ledger: Ledger) -> None:
        printed = self.run("""
import gc
ledger = opened()
before = ledger._table
process = os.fork()
if process == 0:
    del ledger, before
    gc.collect()
    sys.exit(0)  # in an orderly way: everything is freed
os.waitpid(process, 0)
note(ledger)
print(ledger._table is before)
ledger.close()
""")
        assert printed == ["True"]


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
