"""Places: a holdout, the servers that it is asked through, and the database of its ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from holdfast.concurrency import Closing
from holdfast.holdout.holdout import Holdout
from holdfast.planning.joint import joint_plan
from holdfast.protocols.searches import Estimates
from holdfast.randomness import system_entropy
from tools.crash.serving import PROGRAM, Server
from tools.crash.told import create_told
from tools.postgres import PostgresServer

__all__ = ["ALONE", "SHARED", "Place", "Setup", "Strike"]


@dataclass(frozen=True)
class Strike:
    """What is killed at once."""

    name: str
    servers: tuple[int, ...] = ()
    database: bool = False


ALONE = (Strike("the server", (0,)),)
SHARED = (
    Strike("Postgres", (), database=True),
    Strike("one server", (0,)),
    Strike("the other server", (1,)),
    Strike("all three at once", (0, 1), database=True),
)


@dataclass(frozen=True)
class Setup:
    """How a holdout is served and asked: by how many servers, and with which ledger.

    `budgets`, in turns, are the questions that it can pay for: three that last, and one that is
    exhausted on the way. Clients wait up to `thought` seconds after a reply.
    """

    servers: int = 1
    database: PostgresServer | None = None  # None: the ledger is a file
    strikes: tuple[Strike, ...] = ALONE  # in turns
    budgets: tuple[int, ...] = (5_000, 5_000, 5_000, 200)
    thought: float = 0.02
    program: Sequence[str] = PROGRAM


class Place(Closing):
    """A new holdout that can pay for so many questions, one whose answers are told, and servers."""

    def __init__(self, folder: Path, queries: int, setup: Setup) -> None:
        self.path, self.told = folder / "a.holdfast", folder / "t.holdfast"
        self._database = setup.database
        plan = joint_plan(Estimates(queries, grid=2, tail_low=0.1, tail_high=0.1), confidence=0.5)
        words = system_entropy().words(plan.blocks).astype(np.float64)
        url = None if self._database is None else self._database.url()
        Holdout.create(self.path, {"x": words}, plan, ledger=url).close()
        create_told(self.told, ledger=url)
        served = (self.path, self.told)
        self.servers = [Server(served, setup.program) for _ in range(setup.servers)]
        try:
            self._start(self.servers)
        except BaseException:
            self.close()
            raise

    @property
    def urls(self) -> list[str]:
        """The addresses of the servers."""
        return [server.url for server in self.servers]

    def kill(self, strike: Strike) -> str:
        """Kill −9; when that was, as rows of the ledger say it."""
        moment = datetime.now(UTC).isoformat(timespec="microseconds")
        for number in strike.servers:
            self.servers[number].kill()
        if strike.database:
            assert self._database is not None
            self._database.kill()
        return moment

    def restore(self, strike: Strike) -> None:
        """Start again what was killed: servers, if the database of their ledger runs."""
        if strike.database:
            assert self._database is not None
            self._database.start()
        self._start([self.servers[number] for number in strike.servers])

    def stop(self) -> None:
        """End the servers as an operator does."""
        for server in self.servers:
            server.stop()

    def close(self) -> None:
        """End whatever is left of them."""
        for server in self.servers:
            server.close()

    @staticmethod
    def _start(servers: Sequence[Server]) -> None:
        for server in servers:
            server.launch()
        for server in servers:
            server.listen()
