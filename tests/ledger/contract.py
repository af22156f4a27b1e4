"""What every ledger must do: test classes of an implementation inherit from the contracts."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger.ledger import Ledger, Receipt, check_against, verify_chain

HOLDOUT = "flights-1"
A, B = "aa01", "bb02"


def note(ledger: Ledger, count: int = 1) -> None:
    """Append some rows, each in a transaction of its own."""
    for _ in range(count):
        with ledger.begin() as transaction:
            transaction.append("noted", {"text": "x" * 50})


def check_older(ledger: Ledger, seen: Receipt) -> None:
    """Of a copy from before this receipt: sound by itself, and noticed by whoever has seen it."""
    with ledger:
        ledger.verify()
        with pytest.raises(Damaged, match="older copy"):
            check_against(ledger, seen)
        note(ledger)  # as long again, with another history
        with pytest.raises(Damaged, match="another history"):
            check_against(ledger, seen)


class LedgerContract(ABC):
    @abstractmethod
    def create(self, folder: Path) -> Ledger:
        """A new ledger of the holdout `HOLDOUT`, with the body {"plan": 1}."""

    @abstractmethod
    def reopen(self, folder: Path) -> Ledger:
        """The same ledger, as another process would see it."""

    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Iterator[Ledger]:
        with self.create(tmp_path) as ledger:
            yield ledger

    def test_the_first_row_says_what_was_created(self, ledger: Ledger) -> None:
        [row] = ledger.rows()
        assert (row.number, row.kind, row.body) == (1, "created", {"plan": 1})
        assert ledger.holdout == HOLDOUT
        assert ledger.head() == Receipt(HOLDOUT, 1, row.digest) == ledger.verify()

    def test_rows_come_back_as_they_were_appended(self, ledger: Ledger, tmp_path: Path) -> None:
        bodies: list[dict[str, Any]] = [
            {"price": 0.1 + 0.2, "looks": [1, 2**80, -0.0], "ok": True, "none": None},
            {"text": 'ä "quoted" \ud800 \x00 end', "empty": {}},
        ]
        with ledger.begin() as transaction:
            written = [
                transaction.append("reserved", bodies[0], question=A, request="r-1"),
                transaction.append("noted", bodies[1]),
            ]
        with self.reopen(tmp_path) as other:
            assert other.rows(after=1) == written
            assert [row.body for row in other.rows(after=1)] == bodies
            assert other.row(2) == written[0]
            assert other.row(9) is None
            assert verify_chain(HOLDOUT, other.rows()) == other.verify() == ledger.head()

    def test_a_body_is_copied_not_kept(self, ledger: Ledger) -> None:
        body = {"list": [1]}
        with ledger.begin() as transaction:
            row = transaction.append("noted", body)
            body["list"].append(2)
        assert row.body == {"list": [1]} == ledger.rows()[-1].body

    def test_an_exception_undoes_the_whole_transaction(self, ledger: Ledger) -> None:
        before = ledger.head()

        def fail() -> None:
            with ledger.begin() as transaction:
                transaction.append("noted", {})
                transaction.append("noted", {})
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            fail()
        assert ledger.head() == before
        with ledger.begin() as transaction:  # and the next one works
            transaction.append("noted", {})
        assert ledger.verify().number == 2

    def test_a_transaction_reads_its_own_rows(self, ledger: Ledger) -> None:
        with ledger.begin() as transaction:
            row = transaction.append("recorded", {"drawn": 3}, question=A, request="r")
            assert transaction.rows(after=1) == [row]

    def test_the_answer_of_a_question_is_the_last_recorded_one(self, ledger: Ledger) -> None:
        with ledger.begin() as transaction:
            transaction.append("reserved", {"drawn": 1}, question=A)
        assert ledger.recorded(A) is None
        with ledger.begin() as transaction:
            first = transaction.append("recorded", {"drawn": 0}, question=A)
            transaction.append("recorded", {"drawn": 9}, question=B)
            transaction.append("recorded", {"drawn": None}, question=A)
            transaction.append("recorded", {"price": 1}, question=A)
        assert ledger.recorded(A) == first
        with ledger.begin() as transaction:
            last = transaction.append("recorded", {"drawn": 2}, question=A)
        assert ledger.recorded(A) == last
        assert ledger.recorded("00") is None

    def test_answers_and_requests_are_found_without_a_transaction(
        self, ledger: Ledger, tmp_path: Path
    ) -> None:
        with ledger.begin() as transaction:
            first = transaction.append("reserved", {}, question=A, request="r")
            assert transaction.head.number == 2
            second = transaction.append("recorded", {"drawn": 1}, question=A, request="r")
            assert transaction.head.number == 3
        with self.reopen(tmp_path) as other:
            for each in (ledger, other):
                assert each.recorded(A) == second
                assert each.recorded(B) is None
                assert each.requested("r") == [first, second]
                assert each.requested("s") == []
            with ledger.begin() as transaction:
                transaction.append("recorded", {"drawn": 2}, question=A, request="s")
                assert other.recorded(A) == second  # what is not committed is not seen
                assert other.requested("s") == []
            assert len(other.requested("s")) == 1

    def test_the_rows_of_a_request_in_order(self, ledger: Ledger) -> None:
        with ledger.begin() as transaction:
            rows = [
                transaction.append("reserved", {}, question=A, request="r"),
                transaction.append("reserved", {}, question=A, request="other"),
                transaction.append("recorded", {}, question=A, request="r"),
            ]
        assert ledger.requested("r") == [rows[0], rows[2]]
        assert ledger.requested("s") == []

    def test_reading_on_from_a_row(self, ledger: Ledger) -> None:
        with ledger.begin() as transaction:
            rows = [transaction.append("noted", {"i": i}) for i in range(5)]
        assert ledger.rows(after=3) == rows[2:]
        assert ledger.rows(after=6) == []
        with pytest.raises(Damaged, match="at least 7 rows"):
            ledger.rows(after=7)  # the caller has seen more than there is
        with pytest.raises(InvalidInput, match="after"):
            ledger.rows(after=-1)

    @pytest.mark.parametrize(
        ("kind", "body", "question", "request_"),
        [
            ("created", {}, None, None),
            ("deleted", {}, None, None),
            ("noted", {"x": float("nan")}, None, None),
            ("noted", {"x": float("inf")}, None, None),
            ("noted", {"x": (1, 2)}, None, None),
            ("noted", {1: "x"}, None, None),
            ("noted", {"x": object}, None, None),
            ("noted", ["x"], None, None),
            ("noted", {}, "not hexadecimal", None),
            ("noted", {}, "AB", None),
            ("noted", {}, "", None),
            ("noted", {}, None, ""),
            ("noted", {}, None, "x" * 201),
            ("noted", {}, None, "line\nline"),
            ("noted", {}, None, "\ud800"),
        ],
    )
    def test_what_may_not_be_appended(
        self, ledger: Ledger, kind: str, body: Any, question: str | None, request_: str | None
    ) -> None:
        with pytest.raises(InvalidInput), ledger.begin() as transaction:
            transaction.append(kind, body, question=question, request=request_)
        assert ledger.verify().number == 1

    def test_a_transaction_ends_with_its_block(self, ledger: Ledger) -> None:
        with ledger.begin() as transaction:
            pass
        with pytest.raises(InvalidInput, match="still running"):
            transaction.append("noted", {})
        with pytest.raises(InvalidInput, match="still running"):
            transaction.rows()

    @pytest.mark.parametrize("use", ["begin", "rows", "lock"])
    def test_misuse_inside_a_transaction_is_an_error_not_a_deadlock(
        self, ledger: Ledger, use: str
    ) -> None:
        uses: dict[str, Callable[[], object]] = {
            "begin": lambda: ledger.begin().__enter__(),
            "rows": ledger.rows,
            "lock": lambda: ledger.lock("a").__enter__(),
        }
        with ledger.begin() as transaction:
            with pytest.raises(InvalidInput, match=r"in turn|outside of a transaction"):
                uses[use]()
            transaction.append("noted", {})
        assert ledger.verify().number == 2

    def test_a_second_lock_in_one_thread_is_an_error_not_a_deadlock(
        self, ledger: Ledger, tmp_path: Path
    ) -> None:
        for other in (ledger, self.reopen(tmp_path)):
            with (
                ledger.lock("a", "b", "a"),
                pytest.raises(InvalidInput, match="in one call"),
                other.lock("c"),
            ):
                pass
        with ledger.lock("a"):
            pass

    def test_a_hold_is_good_inside_of_its_transactions(self, ledger: Ledger) -> None:
        with ledger.lock("a", "b") as hold:
            for _ in range(2):
                with ledger.begin() as transaction:
                    hold.check()
                    transaction.append("noted", {})
        assert ledger.verify().number == 3

    def test_a_lock_excludes_other_threads(self, ledger: Ledger) -> None:
        inside, most, guard = 0, 0, threading.Lock()

        def work(names: tuple[str, str]) -> None:
            nonlocal inside, most
            with ledger.lock(*names):
                with guard:
                    inside += 1
                    most = max(most, inside)
                with ledger.begin() as transaction:
                    transaction.append("noted", {})
                with guard:
                    inside -= 1

        with ThreadPoolExecutor(8) as pool:  # in both orders: no deadlock
            list(pool.map(work, [("a", "b"), ("b", "a")] * 20))
        assert most == 1
        assert ledger.verify().number == 41

    def test_check_then_append_is_atomic_between_threads(
        self, ledger: Ledger, tmp_path: Path
    ) -> None:
        others = [ledger, self.reopen(tmp_path), self.reopen(tmp_path)]

        def work(i: int) -> bool:
            with others[i % 3].begin() as transaction:
                spent = sum(row.kind == "reserved" for row in transaction.rows())
                if spent < 10:
                    transaction.append("reserved", {"price": 1})
                return spent < 10

        with ThreadPoolExecutor(6) as pool:
            assert sum(pool.map(work, range(60))) == 10
        assert ledger.verify().number == 11
        for other in others:
            other.close()

    def test_it_can_be_used_again_after_closing(self, ledger: Ledger) -> None:
        ledger.close()
        with ledger.begin() as transaction:
            transaction.append("noted", {})
        assert ledger.rows(after=1)[0].number == 2

    def test_receipts_of_this_history_and_of_no_other(self, ledger: Ledger) -> None:
        first = ledger.head()
        with ledger.begin() as transaction:
            transaction.append("noted", {})
        check_against(ledger, first)
        check_against(ledger, ledger.head())
        with pytest.raises(Damaged, match="older copy"):
            check_against(ledger, Receipt(HOLDOUT, 3, "0" * 64))
        with pytest.raises(Damaged, match="another history"):
            check_against(ledger, Receipt(HOLDOUT, 2, "0" * 64))
        with pytest.raises(InvalidInput, match="receipts of its own"):
            check_against(ledger, Receipt("another", 1, first.digest))

    def test_a_ledger_that_nobody_holds_is_freed_at_once(self, tmp_path: Path) -> None:
        """Not when cycles are next looked for: closed late, a file's log might be another's."""
        gc.disable()
        try:
            ledger = self.create(tmp_path)
            with ledger.lock("a"):
                note(ledger)
            assert len(ledger.rows()) == 2
            assert ledger.recorded(A) is None
            held = weakref.ref(ledger)
            del ledger
            assert held() is None
        finally:
            gc.enable()


# Programs for processes of their own, which may fork: the process of the tests has threads.
START = """
import os, signal, sys, threading, time
from pathlib import Path
from holdfast.errors import HoldfastError

def note(ledger, count=1):
    for _ in range(count):
        with ledger.begin() as transaction:
            transaction.append("noted", {})

def child(work):
    process = os.fork()
    if process == 0:
        try:
            work()
        finally:
            sys.stdout.flush()
            os._exit(0)
    return process
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """A program in a process of its own."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", START + program, *arguments]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=root)


class ProcessContract(ABC):
    """Forks, and processes that are killed, on a ledger that has one row."""

    opened: str
    """The program's `opened`, which opens the ledger named by its argument."""

    @abstractmethod
    def made(self, folder: Path) -> tuple[Ledger, str]:
        """A new ledger of the holdout `HOLDOUT`, and the argument that names it."""

    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Iterator[Ledger]:
        ledger, self.place = self.made(tmp_path)
        ledger.close()
        with ledger:
            yield ledger

    def run(self, program: str) -> list[str]:
        """The lines that a program prints."""
        process = start(self.opened + program, self.place)
        try:
            printed, errors = process.communicate(timeout=120)
        finally:
            process.kill()
            process.communicate()
        assert errors == ""
        return printed.splitlines()

    def test_the_names_of_a_killed_process_are_free(self, ledger: Ledger) -> None:
        self.run("""
ready, end = os.pipe()
def hold():
    with opened() as ledger, ledger.lock("a"), ledger.begin() as transaction:
        transaction.append("noted", {})
        os.write(end, b"x")
        time.sleep(60)
process = child(hold)
os.read(ready, 1)
os.kill(process, signal.SIGKILL)
os.waitpid(process, 0)
with opened() as ledger, ledger.lock("a") as hold, ledger.begin() as transaction:
    hold.check()
    transaction.append("noted", {})
""")
        assert ledger.verify().number == 2

    def test_a_child_does_not_keep_the_names_of_its_parent(self, ledger: Ledger) -> None:
        """The parent is killed while it holds the name; its child lives on and must not."""
        printed = self.run("""
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
""")
        assert printed == ["free"]

    def test_parent_and_child_both_write_whoever_ends_first(self, ledger: Ledger) -> None:
        """With an inherited connection, the first to end could delete what the other writes to."""
        self.run("""
ledger = opened()
note(ledger, 5)
stay, leave = os.pipe()
def write():
    os.close(leave)
    note(ledger, 5)
    os.read(stay, 1)
    note(ledger, 5)
process = child(write)
note(ledger, 5)
ledger.close()
del ledger
os.close(leave)
os.waitpid(process, 0)
""")
        assert ledger.verify().number == 21

    def test_a_fork_waits_for_the_transaction_of_another_thread(self, ledger: Ledger) -> None:
        self.run("""
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
""")
        assert ledger.verify().number == 4

    def test_a_child_forked_inside_a_transaction_cannot_end_it(self, ledger: Ledger) -> None:
        printed = self.run("""
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
""")
        assert printed == ["refused: True", "refused: True", "3"]
