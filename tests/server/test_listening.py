"""Several processes at one port: each gets its share of connections, no other server does."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import httpx2
import pytest

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.server.run import _listen, _Workers
from holdfast.server.settings import Settings
from tests.server.conftest import auth, made, tokens_of, until
from tests.server.processes import serving

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they share one socket")


def settings(port: int, workers: int = 1) -> Settings:
    return Settings((Path("study.holdfast"),), port=port, workers=workers)


@pytest.fixture
def three() -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(each) for each in _listen(settings(port=0, workers=3))]


@LINUX
def test_connections_are_dealt_out(three: list[socket.socket]) -> None:
    place = three[0].getsockname()
    assert [each.getsockname() for each in three] == [place] * 3
    with ExitStack() as stack:
        for _ in range(60):  # each goes to one of three: some socket has none once in 10^10
            stack.enter_context(socket.create_connection(place, 10))
        assert set(select.select(three, [], [], 10)[0]) == set(three)


@LINUX
@pytest.mark.parametrize("workers", [1, 3])
def test_a_port_that_another_server_has_is_not_shared(
    three: list[socket.socket], workers: int
) -> None:
    port = three[0].getsockname()[1]
    with pytest.raises(HoldfastError, match="in use") as error:
        _listen(settings(port=port, workers=workers))
    assert not isinstance(error.value, InvalidInput)  # with status 2 no unit would try again


def test_one_process_has_one_socket() -> None:
    (only,) = _listen(settings(port=0))
    with only:
        assert only.getsockname()[1] > 0


class Started:
    """What a supervisor knows of a process."""

    def __init__(self, *, given_up: bool = False) -> None:
        self.parent_conn = SimpleNamespace(closed=given_up)


def test_a_new_process_takes_the_place_of_the_dead_one() -> None:
    workers = object.__new__(_Workers)
    sockets = [socket.socket() for _ in range(3)]
    try:
        workers.processes_num, workers.processes = 3, []
        workers.sockets = sockets
        for each in sockets:  # started one after the other
            assert workers.sockets == [each]
            workers.processes.append(Started())  # type: ignore[arg-type]
        assert workers.sockets == sockets  # one more than there are places: it takes from all
        # Two may have died: the one that is given up now is the one that is replaced.
        workers.processes[1] = Started(given_up=True)  # type: ignore[call-overload]
        assert workers.sockets == [sockets[1]]
    finally:
        for each in sockets:
            each.close()


@LINUX
def test_a_worker_that_dies_is_replaced_and_nobody_is_turned_away(tmp_path: Path) -> None:
    path = made(tmp_path / "study")
    token = tokens_of(path)["analyst"]
    with serving(path, log=tmp_path / "log", options=("--workers", "2", "--rate", "1e6")) as server:

        def ask(number: int) -> None:
            body = {"estimator": f"avg(c) + {number}", "grid": "0:7:1"}
            place = f"{server.url}/api/holdouts/study/ask"
            answer = httpx2.post(place, json=body, headers=auth(token), timeout=60)
            assert answer.status_code == 200, answer.text

        ask(0)
        killed, other = workers_of(server.process.pid)
        os.kill(killed, signal.SIGKILL)
        for number in range(1, 12):  # by new connections, each to either socket
            ask(number)

        def replaced() -> bool:
            after = workers_of(server.process.pid)
            return len(after) == 2 and other in after and killed not in after

        until(replaced)
        assert server.stop() == 0


def workers_of(parent: int) -> list[int]:
    """The processes that a server has started and that live: those that run its app."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                words = (place / "cmdline").read_bytes()
                state = (place / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(state[1]) == parent and state[0] != "Z" and b"spawn_main" in words:
                found.append(int(place.name))
    return sorted(found)
