"""A crowd: many questions in one thread, none of which waits for another without need."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from holdfast import concurrency
from holdfast.concurrency import Combiner, Job
from holdfast.ledger.locks import Stripes
from holdfast.server import scheduler as crowds
from holdfast.server.auth import Doorman
from holdfast.server.scheduler import Crowd, Ending, pace_of
from holdfast.server.schemas import AskWords
from tests.holdout.plans import verdicts
from tests.server.conftest import auth, made

SECONDS = 120.0  # beyond which a test has failed


@contextmanager
def crowd(most: int = 64) -> Iterator[Crowd]:
    made = Crowd(most)
    try:
        yield made
    finally:
        assert made.close(SECONDS) == 0


def ask(crowd: Crowd, *works: Callable[[], Any]) -> list[Any]:
    """What becomes of all of them, asked at once: results and errors."""

    async def asked() -> list[Any]:
        answers = asyncio.gather(*map(crowd.submit, works), return_exceptions=True)
        return await asyncio.wait_for(answers, SECONDS)

    return asyncio.run(asked())


def slept(seconds: float, result: Any) -> Any:
    concurrency.sleep(seconds)
    return result


def test_questions_are_answered_each_with_its_own_result_or_error() -> None:
    def divide(i: int) -> float:
        concurrency.sleep(0.001 * (i % 3))
        return concurrency.elsewhere(lambda: 6 / i)

    with crowd() as here:
        found = ask(here, *(partial(divide, i) for i in range(7)))
    assert isinstance(found[0], ZeroDivisionError)
    assert found[1:] == [6 / i for i in range(1, 7)]


def test_all_are_in_one_thread_and_what_takes_long_is_not() -> None:
    def where() -> tuple[int, int, bool, bool]:
        mine, shared = threading.get_ident(), concurrency.is_shared()
        return (
            mine,
            *concurrency.elsewhere(lambda: (threading.get_ident(), concurrency.is_shared())),
            shared,
        )

    with crowd() as here:
        found = ask(here, *[where] * 5)
    assert len({mine for mine, *_ in found}) == 1
    assert all(mine != other for mine, other, _, _ in found)
    assert {(there, here) for _, _, there, here in found} == {(False, True)}
    assert not concurrency.is_shared()  # this thread has none


def test_nobody_waits_for_one_who_sleeps_or_has_work_done_elsewhere() -> None:
    asleep, done = threading.Event(), threading.Event()

    def slow() -> str:
        asleep.set()
        assert concurrency.elsewhere(lambda: done.wait(SECONDS))
        return "slow"

    def quick() -> str:
        concurrency.sleep(0.01)
        assert asleep.is_set()
        done.set()
        return "quick"

    with crowd() as here:
        assert ask(here, slow, quick) == ["slow", "quick"]


def test_one_slow_engine_does_not_keep_others_from_theirs() -> None:
    """However many wait in other threads: the commit that another needs still finds one."""
    many, go_on = 40, threading.Event()

    def stuck() -> bool:
        return concurrency.elsewhere(lambda: go_on.wait(SECONDS))

    def frees_them() -> str:
        concurrency.sleep(0.05)
        concurrency.elsewhere(go_on.set)
        return "freed"

    with crowd() as here:
        assert ask(here, *[stuck] * many, frees_them) == [*[True] * many, "freed"]


def test_not_more_at_once_than_allowed_and_the_first_come_first() -> None:
    inside, most, order = 0, 0, []

    def count(i: int) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        order.append(i)
        concurrency.sleep(0.002)
        inside -= 1

    with crowd(most=3) as here:
        ask(here, *(partial(count, i) for i in range(12)))
    assert most == 3
    assert order == list(range(12))


def test_what_many_want_at_once_is_done_once() -> None:
    combiner: Combiner[int, int] = Combiner()
    batches: list[list[int]] = []

    def run(jobs: list[Job[int, int]]) -> None:
        assert not concurrency.is_shared()  # it may take long
        batches.append([job.task for job in jobs])
        for job in jobs:
            if job.task == 5:
                job.fail(KeyError(5))
            else:
                job.succeed(job.task**2)

    with crowd() as here:
        found = ask(here, *(partial(combiner.do, run, i) for i in range(9)))
    assert isinstance(found.pop(5), KeyError)
    assert found == [i**2 for i in range(9) if i != 5]
    assert len(batches) <= 3  # they came at the same moment


def test_a_run_that_fails_is_its_leaders_alone() -> None:
    combiner: Combiner[int, int] = Combiner()

    def run(jobs: list[Job[int, int]]) -> None:
        if any(job.task == 0 for job in jobs):
            raise OSError("the disk is full")
        for job in jobs:
            job.succeed(job.task)

    with crowd() as here:
        found = ask(here, *(partial(combiner.do, run, i) for i in range(5)))
    assert isinstance(found[0], OSError)
    assert found[1:] == [1, 2, 3, 4]


def test_crowd_and_threads_combine_with_each_other() -> None:
    combiner: Combiner[int, int] = Combiner()

    def run(jobs: list[Job[int, int]]) -> None:
        time.sleep(0.001)
        for job in jobs:
            job.succeed(job.task + 1)

    def many(start: int) -> list[int]:
        return [combiner.do(run, start + i) for i in range(50)]

    found: dict[int, list[int]] = {}
    threads = [
        threading.Thread(target=lambda i=i: found.update({i: many(1000 * i)})) for i in range(3)
    ]
    for each in threads:
        each.start()
    with crowd() as here:
        theirs = ask(here, *(partial(many, 1000 * i) for i in range(3, 9)))
    for each in threads:
        each.join(SECONDS)
    found.update(enumerate(theirs, 3))
    assert found == {i: [1000 * i + k + 1 for k in range(50)] for i in range(9)}


def test_a_name_is_held_by_one_question_at_a_time(tmp_path: Path) -> None:
    stripes, holders, most = Stripes(tmp_path), 0, 0

    def hold() -> None:
        nonlocal holders, most
        with stripes.hold("question 1", "request 7"):
            assert stripes.held
            holders += 1
            most = max(most, holders)
            concurrency.sleep(0.003)
            holders -= 1
        assert not stripes.held

    def hold_often() -> None:
        for _ in range(5):
            hold()

    thread = threading.Thread(target=hold_often)
    thread.start()
    with crowd() as here:
        assert ask(here, *[hold] * 8) == [None] * 8
    thread.join(SECONDS)
    assert most == 1


def test_a_question_that_holds_names_does_not_keep_others_from_theirs(tmp_path: Path) -> None:
    stripes = Stripes(tmp_path)

    def hold(name: str, seconds: float) -> float:
        with stripes.hold(name):  # another's names are not this one's: no error here
            concurrency.sleep(seconds)
            return time.monotonic()

    with crowd() as here:
        slow, quick = ask(here, partial(hold, "a", 0.3), partial(hold, "b", 0.0))
    assert quick < slow


def test_whoever_left_is_not_told_and_hurts_nobody() -> None:
    async def leave(here: Crowd) -> str:
        gone = here.submit(partial(slept, 0.02, "untold"))
        stays = here.submit(partial(slept, 0.02, "told"))
        gone.cancel()
        return str(await asyncio.wait_for(stays, SECONDS))

    with crowd() as here:
        assert asyncio.run(leave(here)) == "told"


def test_answers_go_to_the_loop_that_asked() -> None:
    found: list[Any] = []
    with crowd() as here:
        threads = [
            threading.Thread(
                target=lambda i=i: found.extend(ask(here, *[partial(slept, 0.01, i)] * 4))
            )
            for i in range(3)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join(SECONDS)
    assert sorted(found) == sorted([0, 1, 2] * 4)


@pytest.mark.parametrize("_", range(20))
def test_loops_that_come_first_at_once_find_one_crowd(_: int) -> None:
    start, threads = threading.Barrier(4), set[int]()

    def asked() -> None:
        start.wait(SECONDS)
        threads.update(ask(here, *[threading.get_ident] * 3))

    with crowd() as here:
        loops = [threading.Thread(target=asked) for _ in range(4)]
        for each in loops:
            each.start()
        for each in loops:
            each.join(SECONDS)
    assert len(threads) == 1


def test_at_the_end_nobody_waits_for_a_slot() -> None:
    ending = Ending()
    pace = pace_of(600.0, ending)
    here = Crowd(8)

    def paced() -> str:
        pace(time.monotonic())
        return "recorded"

    async def asked() -> list[str]:
        futures = [here.submit(paced) for _ in range(3)]
        await asyncio.sleep(0.05)
        ending.set()
        assert await asyncio.to_thread(here.close, SECONDS) == 0
        return await asyncio.wait_for(asyncio.gather(*futures), SECONDS)

    assert asyncio.run(asked()) == ["recorded"] * 3


def test_at_the_end_one_still_waits_for_anothers_name(tmp_path: Path) -> None:
    """Without sleep between its tries it would keep the thread, and the other would never end."""
    stripes = Stripes(tmp_path)
    here, free = Crowd(8), threading.Event()

    def holds() -> str:
        with stripes.hold("name"):
            concurrency.elsewhere(lambda: free.wait(SECONDS))
        return "first"

    def wants() -> str:
        with stripes.hold("name"):
            return "second"

    async def asked() -> list[str]:
        futures = [here.submit(holds), here.submit(wants)]
        await asyncio.sleep(0.05)
        assert await asyncio.to_thread(here.close, 0.1) == 2
        assert here.size == 2
        free.set()
        return await asyncio.wait_for(asyncio.gather(*futures), SECONDS)

    assert asyncio.run(asked()) == ["first", "second"]


def test_a_crowd_that_nobody_asked_is_closed_at_once() -> None:
    assert Crowd(1).close(0.0) == 0


def test_whoever_left_before_their_turn_has_not_asked() -> None:
    asked: list[int] = []

    async def leave(here: Crowd) -> None:
        first = here.submit(partial(slept, 0.05, None))
        gone = here.submit(lambda: asked.append(1))  # behind the first
        gone.cancel()
        await asyncio.wait_for(first, SECONDS)
        await asyncio.wait_for(here.submit(lambda: None), SECONDS)

    with crowd(most=1) as here:
        asyncio.run(leave(here))
        assert here.size == 0
    assert asked == []


def test_at_the_end_those_who_have_not_begun_do_not() -> None:
    here, asked = Crowd(1), []

    async def end() -> list[Any]:
        futures = [here.submit(partial(slept, 60, "first")), here.submit(lambda: asked.append(1))]
        await asyncio.sleep(0.05)
        assert await asyncio.to_thread(here.close, SECONDS) == 0
        with pytest.raises(RuntimeError, match="ended"):
            here.submit(lambda: None)
        return await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), SECONDS)

    first, second = asyncio.run(end())
    assert first == "first"
    assert isinstance(second, InterruptedError)
    assert asked == []


def test_an_error_that_no_future_takes_hurts_nobody_else() -> None:
    def stop() -> None:
        raise StopIteration

    with crowd() as here:
        found = ask(here, stop, lambda: "told")
    assert isinstance(found[0], RuntimeError)
    assert found[1] == "told"


def test_without_threads_a_question_fails_and_later_ones_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wants() -> int:
        return concurrency.elsewhere(lambda: 7)

    def none(_: object) -> None:
        raise RuntimeError("can't start new thread")

    with crowd() as here:
        with monkeypatch.context() as patch:
            patch.setattr("holdfast.server.scheduler._Hand", none)
            found = ask(here, wants, wants)
        assert all(isinstance(each, RuntimeError) for each in found)
        assert ask(here, wants, wants) == [7, 7]


def test_what_takes_long_begins_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many questions, at multiples of an interval: whatever began before, and when.

    On a busy machine it may begin later; never before the end of the interval it was wanted in.
    """
    interval = 0.2
    monkeypatch.setattr(crowds, "_PAUSE", interval)
    begun: list[int] = []
    early: list[tuple[float, float]] = []
    begin = Crowd._begin

    def watched(here: Crowd) -> None:
        end, now = (here._wanted // interval + 1) * interval, time.monotonic()
        if here._errands and now < end:
            early.append((now, end))
        begin(here)

    def wants(number: int) -> None:
        concurrency.sleep(0.05 + 0.03 * number)
        concurrency.elsewhere(lambda: begun.append(number))

    def stays() -> None:
        """So that there are many."""
        while len(begun) < 12:
            concurrency.sleep(0.01)

    monkeypatch.setattr(Crowd, "_begin", watched)
    with crowd() as here:
        ask(here, *[stays] * 5, *(partial(wants, number) for number in range(12)))
    assert sorted(begun) == list(range(12))
    assert early == []


def test_of_few_questions_it_begins_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowds, "_PAUSE", SECONDS)
    with crowd() as here:
        assert ask(here, lambda: concurrency.elsewhere(lambda: 7)) == [7]


VERBS = ("ask", "interval", "mean", "verify", "correct")
QUESTIONS: dict[str, dict[str, Any]] = {
    "ask": {"estimator": "avg(c)", "grid": "0:7:1"},
    "ask without a grid": {"estimator": "avg(c)"},
    "interval": {"estimator": "avg(c)", "grid": "0:7:1"},
    "mean": {"term": "c = 5"},
    "verify": {"estimator": "avg(c)", "guess": 5},
    "correct": {"estimator": "avg(c)", "guess": 5, "grid": "0:7:1"},
    "ask what is refused": {"estimator": "avg(nothing)"},
}


@pytest.mark.parametrize("case", QUESTIONS)
def test_no_question_keeps_the_thread_while_others_commit_or_evaluate(
    case: str, client: TestClient, tokens: dict[str, str]
) -> None:
    """Asked while another thread is in the books, the ledger, the engine and the witness."""
    service = client.app.state.service  # type: ignore[attr-defined]
    (hosted,) = service.hosts
    door, engine = hosted.holdout.door, hosted.holdout._clerk._engines.sql
    turn = door.witness._turns.setdefault(door.ledger.holdout, threading.Lock())
    place = f"/api/holdouts/study/{case.split()[0]}"

    def asked() -> int:
        return client.post(place, json=QUESTIONS[case], headers=auth(tokens["analyst"])).status_code

    def is_free() -> bool:
        async def other() -> str:
            return await asyncio.wait_for(service._crowd.submit(lambda: "free"), SECONDS)

        return asyncio.run(other()) == "free"

    statuses = []
    for lock in (door._lock, door.ledger._mutex, engine._lock, turn):  # cold, then cached
        with ThreadPoolExecutor(1) as pool:
            with lock:
                answer = pool.submit(asked)
                for _ in range(20):
                    assert is_free()
                    time.sleep(0.005)
            statuses.append(answer.result(SECONDS))
    assert len(set(statuses)) == 1
    assert statuses[0] == (200 if case in VERBS else 400)


def test_short_questions_on_plain_holdouts_are_light(
    folder: Path, tmp_path: Path, served: Callable[..., TestClient]
) -> None:
    seeded, tallied = made(tmp_path / "seeded", seed=7), made(tmp_path / "tallied", verdicts())
    hosts = served(folder, seeded, tallied).app.state.service.hosts  # type: ignore[attr-defined]
    assert {each.name: each.is_light for each in hosts} == {
        "study": True,
        "seeded": False,  # reads the ledger's head, by itself
        "tallied": False,  # its coins are numbers of thousands of digits
    }


@pytest.mark.parametrize(
    ("words", "short"),
    [
        ({"estimator": "avg(x)"}, True),
        ({"estimator": "avg(x)", "grid": "0:1:0.01"}, True),
        ({"estimator": "avg(x)", "grid": [0, 1, 2]}, True),
        ({"estimator": "avg(x)", "grid": {"scale": "explicit", "values": [1, 2]}}, True),
        ({"estimator": "avg(x)" + " + 1" * 200}, False),
        ({"estimator": "avg(x)", "where": "x > 0" + " + 1" * 200}, False),
        ({"estimator": "avg(x)", "grid": list(range(1000))}, False),
        ({"estimator": "avg(x)", "grid": {"scale": "explicit", "values": [1] * 1000}}, False),
    ],
)
def test_which_words_are_short(words: dict[str, Any], short: bool) -> None:
    assert AskWords.model_validate(words).short is short


def test_a_light_question_runs_in_the_crowd_and_others_do_not(
    client: TestClient, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared: list[bool] = []
    seat = Doorman.seat

    def spied(*words: Any) -> Any:
        shared.append(concurrency.is_shared())
        return seat(*words)

    monkeypatch.setattr(Doorman, "seat", spied)
    for text in ("avg(c)", "avg(c)" + " " * 600):
        words = {"estimator": text, "grid": "0:7:1"}
        told = client.post("/api/holdouts/study/ask", json=words, headers=auth(tokens["analyst"]))
        assert told.status_code == 200
    assert shared == [True, False]


def test_what_a_question_sets_is_its_own() -> None:
    """Though a greenlet has one after another."""
    mine: ContextVar[int] = ContextVar("mine", default=0)

    def sets() -> int:
        before = mine.get()
        mine.set(7)
        concurrency.sleep(0.001)
        assert mine.get() == 7
        return before

    with crowd() as here:
        assert [ask(here, sets, sets) for _ in range(3)] == [[0, 0]] * 3
