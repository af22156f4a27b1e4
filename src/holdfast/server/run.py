"""Running a server: what must hold before it listens, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn

from holdfast.errors import Infeasible, InvalidInput
from holdfast.server.app import SETTINGS_VARIABLE
from holdfast.server.heads import BoundedHeads
from holdfast.server.hosting import Hosts
from holdfast.server.logs import set_up_logs
from holdfast.server.settings import Settings

__all__ = ["serve"]

_FACTORY = "holdfast.server.app:from_environment"
_LAST_SECONDS = 30  # for questions that are being answered when the server is told to end


def serve(settings: Settings, *, level: str, ready: Callable[[dict[str, Any]], None]) -> int:
    """Serve until a signal ends it. `ready` is told the address when connections are accepted."""
    names = _checked(settings)
    listening = _listen(settings)
    host, port = listening.getsockname()[:2]
    scheme = "http" if settings.tls_cert is None else "https"
    shown = f"[{host}]" if ":" in host else host
    with tempfile.TemporaryDirectory(prefix="holdfast-server-") as state:
        told = replace(settings, port=port, state=Path(state))
        os.environ[SETTINGS_VARIABLE] = told.to_json()
        if settings.workers > 1:
            counts = Path(state) / "counts"
            counts.mkdir()
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(counts)
        ready({"url": f"{scheme}://{shown}:{port}", "holdouts": names})
        return _run(told, listening, level)


def _run(settings: Settings, listening: socket.socket, level: str) -> int:
    config = uvicorn.Config(
        _FACTORY,
        factory=True,
        http=BoundedHeads,
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
        server.run(sockets=[listening])
        return 0 if server.started else 1
    from uvicorn.supervisors import Multiprocess

    Multiprocess(config, sockets=[listening]).run()
    return 0


def _checked(settings: Settings) -> list[str]:
    """The names of the holdouts, if they can be opened and are not open to the world."""
    with Hosts(settings.folders) as hosts:
        for hosted in hosts:
            if not settings.loopback and hosted.open_to_all:
                needed = f"a token for {hosted.name}"
                remedy = (
                    f"Make one: holdfast token create {hosted.holdout.path} --role analyst. "
                    "Or serve on loopback: --host 127.0.0.1."
                )
                given = f"it has none and {settings.host} can be reached from elsewhere"
                raise Infeasible("A holdout without tokens", needed, given, remedy)
        return [hosted.name for hosted in hosts]


def _listen(settings: Settings) -> socket.socket:
    for path in (settings.tls_cert, settings.tls_key):
        if path is not None and not path.is_file():
            raise InvalidInput("--tls-cert, --tls-key", str(path), "files that exist")
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host.strip("[]"), settings.port))
    except OSError as wrong:
        listening.close()
        hint = f"{wrong.strerror}. Choose another: --port 0 takes any that is free."
        raise InvalidInput("--port", settings.port, f"free on {settings.host}", hint) from None
    listening.listen(2048)
    listening.set_inheritable(True)
    return listening
