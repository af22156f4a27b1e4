"""A crowd: many questions in one thread, which goes on with another wherever one has to wait.

A question waits most of its time: for a commit, for an engine, for the end of its slot. With a
thread for each of them they would take the interpreter from each other at every step, which costs
more than the steps themselves. So each is a greenlet of one thread. The door and everything behind
it are the same; where they wait, they ask `holdfast.concurrency` how.

    the loop's thread   submit ─┐                                         ┌─▶ answers, in one go
    the crowd's thread          └▶ question, question, …, question, … ────┤
    threads beside it                  └▶ one commit for all of them ─────┘

What takes long is done beside it, and begins every few milliseconds: what questions want until then
is done for all of them at once, see `holdfast.concurrency`.
"""

from __future__ import annotations

import asyncio
import errno
import heapq
import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from greenlet import getcurrent, greenlet

from holdfast import concurrency
from holdfast.concurrency import Bell

__all__ = [
    "Beside",
    "Crowd",
    "Ending",
    "Errand",
    "pace_of",
    "slot_end",
]


# Beside a crowd: threads for what takes long, one for each errand that is under way.


T = TypeVar("T")


class Errand(Generic[T]):
    """Work that is done in another thread, for a question that waits for its bell."""

    def __init__(self, work: Callable[[], T], bell: Bell) -> None:
        self._work, self._bell = work, bell
        self._result: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """In the other thread."""
        try:
            self._result = self._work()
        except BaseException as error:
            self._error = error

    def ring(self) -> None:
        """It is over."""
        self._bell.ring()

    def give_up(self, error: BaseException) -> None:
        """There is no thread for it."""
        self._error = error
        self._bell.ring()

    def outcome(self) -> T:
        """Wait for it."""
        self._bell.wait()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # it has run


class Beside:
    """As many threads as there ever were errands at once: no commit waits for a slow query.

    Both methods are called in the thread of the crowd.
    """

    def __init__(self) -> None:
        self._idle: list[_Hand] = []  # the last one has worked last, and is the quickest to begin

    def send(self, errand: Errand[Any]) -> None:
        """Have it run."""
        try:
            hand = self._idle.pop() if self._idle else _Hand(self._idle)
        except RuntimeError as error:  # the machine has no more threads; later it may have
            errand.give_up(error)
        else:
            hand.take(errand)

    def close(self) -> None:
        """End the threads. No errand is under way."""
        while self._idle:
            self._idle.pop().take(None)


class _Hand:
    """A thread that does one errand after another, and is among the idle in between."""

    def __init__(self, idle: list[_Hand]) -> None:
        self._idle = idle
        self._errand: Errand[Any] | None = None
        self._wanted = threading.Lock()
        self._wanted.acquire()
        threading.Thread(target=self._work, name="holdfast-beside", daemon=True).start()

    def take(self, errand: Errand[Any] | None) -> None:
        """Do this next, or end; it does nothing else now."""
        self._errand = errand
        self._wanted.release()

    def _work(self) -> None:
        while self._wanted.acquire() and (errand := self._errand) is not None:
            errand.run()
            self._errand = None  # nobody needs what it holds
            self._idle.append(self)  # before the bell: whoever goes on then finds it there
            errand.ring()
            del errand


_PAUSE = 0.006  # seconds, the interval in which what takes long gathers …
_FEW = 4  # … unless there are so few questions that nobody else would join
_LAST = 0.002  # seconds that a question sleeps at most when all shall end


class _Asked(Generic[T]):
    """A question, and whoever waits for its answer."""

    __slots__ = ("_error", "_future", "_result", "_work", "loop")

    def __init__(self, work: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self._work, self.loop = work, loop
        self._future: asyncio.Future[T] = loop.create_future()
        self._result: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """In a greenlet of the crowd."""
        try:
            self._result = self._work()
        except StopIteration as error:  # which no future takes
            self._error = RuntimeError(repr(error))
        except BaseException as error:
            self._error = error

    def give_up(self, error: BaseException) -> None:
        """It will not be run, or not to its end."""
        self._error = error

    def deliver(self) -> None:
        """In the loop's thread."""
        if self._future.done():  # cancelled: nobody waits any more
            return
        if self._error is None:
            self._future.set_result(self._result)  # type: ignore[arg-type]  # it has run
        else:
            self._future.set_exception(self._error)

    @property
    def future(self) -> asyncio.Future[T]:
        """What its answer comes in."""
        return self._future


class _Bell:
    """Rung in any thread, it has the crowd go on with a question."""

    __slots__ = ("_inbox", "_question", "_rung", "_waits")

    def __init__(self, question: greenlet, inbox: SimpleQueue[Any]) -> None:
        self._question, self._inbox = question, inbox
        self._rung = self._waits = False

    def wait(self) -> None:
        if not self._rung:
            self._waits = True
            _step_aside()

    def ring(self) -> None:
        if not self._rung:
            self._rung = True
            self._inbox.put(self)

    def answer(self) -> None:
        """In the crowd's thread: go on, if the question waits for this bell and for no other."""
        if self._waits:
            self._waits = False
            self._question.switch()


class Crowd:
    """Answers at most so many questions at once; the others wait until one is done."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._inbox: SimpleQueue[_Bell | _Asked[Any] | None] = SimpleQueue()
        self._backlog: deque[_Asked[Any]] = deque()
        self._inside = 0  # questions that have begun, and not ended
        self._idle: list[greenlet] = []  # that have ended theirs
        self._answered: list[_Asked[Any]] = []  # in this turn
        self._asleep: list[tuple[float, int, greenlet]] = []  # a heap
        self._numbers = itertools.count()  # two may wake at the same moment
        self._counting = threading.Lock()  # there may be several loops
        self._submitted = self._delivered = 0
        self._ending = self._closing = False  # as others have said, and as the thread has heard
        self._beside = Beside()
        self._errands: list[Errand[Any]] = []  # that have not begun
        self._wanted = 0.0  # since when the first of them
        self._thread: threading.Thread | None = None

    @property
    def size(self) -> int:
        """How many questions have not been answered yet."""
        return self._submitted - self._delivered

    def submit(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """What the work will return; called in the thread of an event loop."""
        asked = _Asked(work, asyncio.get_running_loop())
        if self._ending:
            raise RuntimeError("the crowd has ended")
        with self._counting:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="holdfast-crowd", daemon=True)
                thread.start()
                self._thread = thread
            self._submitted += 1
        asked.future.add_done_callback(self._count)
        self._inbox.put(asked)
        return asked.future

    def _count(self, _: object) -> None:
        with self._counting:
            self._delivered += 1

    def end(self) -> None:
        """Take no more questions, begin none that waits, and let nobody sleep for long."""
        self._ending = True
        self._inbox.put(None)

    def close(self, seconds: float) -> int:
        """End; how many questions are not answered within these seconds."""
        self.end()
        if self._thread is not None:
            self._thread.join(seconds)
        return self._inside

    # What questions call that have to wait: see `waiting.Host`.

    def bell(self) -> _Bell:
        return _Bell(getcurrent(), self._inbox)

    def elsewhere(self, work: Callable[[], T], *, now: bool) -> T:
        errand = Errand(work, self.bell())
        if now:
            self._beside.send(errand)
        else:
            self._wanted = self._wanted if self._errands else time.monotonic()
            self._errands.append(errand)
        return errand.outcome()

    def sleep(self, seconds: float) -> None:
        moment = time.monotonic() + min(seconds, _LAST if self._closing else seconds)
        heapq.heappush(self._asleep, (moment, next(self._numbers), getcurrent()))
        _step_aside()

    # The thread.

    def _run(self) -> None:
        concurrency.host(self)
        while self._inside or not self._closing:
            self._turn()
        self._idle.clear()  # here, in the thread that they are of
        self._beside.close()

    def _turn(self) -> None:
        """Go on with whatever can, then begin what they wait for and hand over what is done."""
        for each in self._messages():
            if isinstance(each, _Bell):
                each.answer()
            elif each is None:
                self._wake_all()
            else:
                self._backlog.append(each)
        now = time.monotonic()  # once: those who wake may soon sleep again
        while self._asleep and self._asleep[0][0] <= now:
            heapq.heappop(self._asleep)[2].switch()
        while self._backlog and self._inside < self._most:
            asked = self._backlog.popleft()
            if not asked.future.done():  # else whoever asked has left, and it has cost nothing
                self._inside += 1
                (self._idle.pop() if self._idle else greenlet(self._answer)).switch(asked)
        if self._errands and time.monotonic() >= self._due:
            self._begin()
        if self._answered:
            self._hand_over()

    def _messages(self) -> list[_Bell | _Asked[Any] | None]:
        """All that have come; if there are none, the first that does before something is due."""
        due = [self._asleep[0][0]] if self._asleep else []
        if self._errands:
            due.append(self._due)
        try:
            timeout = max(0.0, min(due) - time.monotonic()) if due else None
            first = self._inbox.get(timeout=timeout)
            return [first, *(self._inbox.get_nowait() for _ in range(self._inbox.qsize()))]
        except Empty:
            return []

    def _wake_all(self) -> None:
        self._closing = True
        for asked in self._backlog:
            asked.give_up(InterruptedError(errno.EINTR, "The server ends; ask again"))
        self._answered += self._backlog
        self._backlog.clear()
        asleep, self._asleep = self._asleep, []
        for _, _, question in asleep:
            question.switch()

    def _answer(self, asked: _Asked[Any]) -> None:
        """What a greenlet does: one question after another, for each has to map its own memory."""
        while True:
            Context().run(asked.run)  # of what it sets there, the next one sees nothing
            self._inside -= 1
            self._answered.append(asked)
            self._idle.append(getcurrent())
            del asked  # nobody needs what it holds
            asked = _step_aside()

    @property
    def _due(self) -> float:
        """When the errands begin: at the end of the clock's interval in which one was wanted.

        The interval is the clock's, not counted from what began before: that may depend on data.
        """
        return self._wanted if self._inside <= _FEW else (self._wanted // _PAUSE + 1) * _PAUSE

    def _begin(self) -> None:
        errands, self._errands = self._errands, []
        for errand in errands:
            self._beside.send(errand)

    def _hand_over(self) -> None:
        answered, self._answered = self._answered, []
        for loop in {each.loop for each in answered}:
            theirs = [each for each in answered if each.loop is loop]
            with suppress(RuntimeError):  # the loop has ended, and with it all connections
                loop.call_soon_threadsafe(_deliver, theirs)


def _step_aside() -> Any:
    """Back to the thread's own loop; it comes back here by `switch`, with what that is given."""
    parent = getcurrent().parent
    assert parent is not None  # questions are greenlets of the crowd
    return parent.switch()


def _deliver(answered: list[_Asked[Any]]) -> None:
    for each in answered:
        each.deliver()


# Slots: when an answer is recorded, and leaves.
#
# How long an evaluation takes can depend on the data. What anyone but the custodian sees of it is
# the
# slot that it ended in: after a draw, whatever became of it, the server waits until s, 2s, 4s,
# 8s, …
# since the data were first touched, which is when its price is paid, and only then records the
# answer. Whoever asked, whoever watches the transcript and whoever waits for a job then all see
# the
# same: which power of two.


class Ending:
    """That a server is closing, as an event: set once, and waited for by all of its questions.

    Every answer waits for it, in vain. `threading.Event` makes a lock for each wait and has all
    threads queue for another one; here they wait for one lock that is held until the end.
    """

    def __init__(self) -> None:
        self._held = threading.Lock()
        self._held.acquire()
        self._set = False

    def is_set(self) -> bool:
        """Whether it has come."""
        return self._set

    def set(self) -> None:
        """Let everyone go."""
        if not self._set:
            self._set = True
            self._held.release()

    def wait(self, seconds: float) -> None:
        """Until it comes, but not longer. A crowd is told by itself that it has come."""
        if concurrency.is_shared():
            concurrency.sleep(seconds)
        elif self._held.acquire(timeout=seconds):
            self._held.release()  # for the next one


def slot_end(elapsed: float, slot: float) -> float:
    """The end of the slot that a time lies in, both in seconds from the start.

    >>> [slot_end(elapsed, 0.05) for elapsed in (0.0, 0.049, 0.051, 0.11, 0.3)]
    [0.05, 0.05, 0.1, 0.2, 0.4]
    """
    if elapsed <= slot:
        return slot
    end: float = slot * 2.0 ** math.ceil(math.log2(elapsed / slot))
    return end if end >= elapsed else 2 * end  # the logarithm may be rounded down


def pace_of(slot: float, closing: Ending) -> Callable[[float], None]:
    """What waits for the end of a slot since a moment of the monotonic clock.

    A server that is closing waits no more: nobody but its custodian can close it.
    """

    def pace(start: float) -> None:
        end = start + slot_end(time.monotonic() - start, slot)
        closing.wait(max(0.0, end - time.monotonic()))

    return pace
