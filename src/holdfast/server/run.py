"""Running a server: what must hold before it listens, and how it ends."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from holdfast.engines.sql.costs import slowness
from holdfast.errors import HoldfastError, Infeasible, InvalidInput
from holdfast.holdout.scoring import read_scorers
from holdfast.server.app import SETTINGS_VARIABLE
from holdfast.server.auth import Holdouts
from holdfast.server.middleware import HeaderLimits
from holdfast.server.monitoring import set_up_logs
from holdfast.server.settings import Settings, scratch_folder

__all__ = ["serve"]

_FACTORY = "holdfast.server.app:from_environment"
_DESCRIPTORS = 2**16
_LAST_SECONDS = 30  # for questions that are being answered when the server is told to end


def serve(settings: Settings, *, level: str, ready: Callable[[dict[str, Any]], None]) -> int:
    """Serve until a signal ends it. `ready` is told the address when connections are accepted."""
    names = _checked(settings)
    listening = _listen(settings)
    _raise_descriptors()
    host, port = listening[0].getsockname()[:2]
    scheme = "http" if settings.tls_cert is None else "https"
    shown = f"[{host}]" if ":" in host else host
    with scratch_folder() as state:
        told = replace(settings, port=port, state=state, slowness=slowness())
        os.environ[SETTINGS_VARIABLE] = told.to_json()
        if settings.workers > 1:
            counts = state / "counts"
            counts.mkdir()
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(counts)
        ready({"url": f"{scheme}://{shown}:{port}", "holdouts": names})
        return _run(told, listening, level)


def _run(settings: Settings, listening: list[socket.socket], level: str) -> int:
    config = uvicorn.Config(
        _FACTORY,
        factory=True,
        http=HeaderLimits,
        workers=settings.workers,
        log_config=set_up_logs(level),
        access_log=False,  # it would write addresses with what was asked in them
        server_header=False,
        date_header=False,
        proxy_headers=False,  # a client could name any address as its own
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_LAST_SECONDS,
        ssl_certfile=None if settings.tls_cert is None else str(settings.tls_cert),
        ssl_keyfile=None if settings.tls_key is None else str(settings.tls_key),
        lifespan="on",
    )
    server = uvicorn.Server(config)
    for each in (signal.SIGINT, signal.SIGTERM):
        # uvicorn handles them, and raises them again at its end: then there is nothing more to do.
        signal.signal(each, lambda *_: None)
    if settings.workers == 1:
        server.run(sockets=listening)
        return 0 if server.started else 1
    _Workers(config, listening).run()
    return 0


class _Workers(Multiprocess):
    """Processes that each accept connections at a socket of their own.

    The kernel deals out what arrives there. At one socket for all, whoever wakes first takes every
    connection that waits, and the other processes have nothing to do.
    """

    @property
    def sockets(self) -> list[socket.socket]:
        """Of the process that is started next, in the place of one that is given up, or behind all.

        Where it has no place of its own, it accepts at all of them.
        """
        closed = [process.parent_conn.closed for process in self.processes]
        place = closed.index(True) if True in closed else len(closed)
        return self._sockets[place : place + 1] or self._sockets

    @sockets.setter
    def sockets(self, sockets: list[socket.socket]) -> None:
        self._sockets = sockets

    def handle_ttou(self) -> None:
        """Not one process less: at its socket, connections would wait for ever."""


def _checked(settings: Settings) -> list[str]:
    """The names of the holdouts, if they can be opened, are whole, and not open to the world.

    The custodian's metrics are read, too: what is wrong with them is said before anybody connects.
    """
    if settings.metrics is not None:
        read_scorers(settings.metrics)
    with Holdouts(settings.folders) as holdouts:
        for served in holdouts:
            served.holdout.verify_blocks()
            if not settings.loopback and served.open_to_all:
                needed = f"a token for {served.name}"
                remedy = (
                    f"Make one: holdfast token create {served.holdout.path} --role analyst. "
                    "Or serve on loopback: --host 127.0.0.1."
                )
                given = f"it has none and {settings.host} can be reached from elsewhere"
                raise Infeasible("A holdout without tokens", needed, given, remedy)
        return [served.name for served in holdouts]


def _raise_descriptors() -> None:
    """As many files and connections as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _listen(settings: Settings) -> list[socket.socket]:
    for path in (settings.tls_cert, settings.tls_key):
        if path is not None and not path.is_file():
            raise InvalidInput("--tls-cert, --tls-key", str(path), "files that exist")
    try:
        first = _bound(settings.host, settings.port)
    except OSError as wrong:
        # No fault of the command: whoever has the port may soon be gone, and a unit tries again.
        place = f"{settings.host}:{settings.port}"
        hint = "Wait until it is free, or choose another: --port 0 takes any that is."
        raise HoldfastError(f"Cannot listen at {place}: {wrong.strerror}. {hint}") from None
    listening, port = [first], first.getsockname()[1]
    if settings.workers > 1 and sys.platform == "linux":  # elsewhere they are not dealt out
        with suppress(OSError):  # then all share the first
            # Only now: a port that another server has must not be shared with it.
            first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            for _ in range(1, settings.workers):
                listening.append(_bound(settings.host, port, shared=True))  # noqa: PERF401
    for each in listening:
        each.listen(2048)
        each.set_inheritable(True)
    return listening


def _bound(host: str, port: int, *, shared: bool = False) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind((host.strip("[]"), port))
    except BaseException:
        made.close()
        raise
    return made
