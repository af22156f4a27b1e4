"""`python -m tools.crash.cluster --kills 100`: two servers on one ledger, in Postgres.

First many clients at once on a budget that does not last: exactly what it pays for may be granted.
Then they ask without end, while one server, the other, Postgres, or all of them are killed and
started again: nothing that a client was told may be lost, unpaid or changed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tools.crash.cluster_page import page
from tools.crash.page import reported
from tools.crash.places import SHARED, Setup
from tools.crash.rush import rush
from tools.crash.server import campaign
from tools.crash.serving import PROGRAM
from tools.postgres import PostgresServer, postgres_server

__all__ = ["main", "shared"]

_AMPLE = 50_000  # a budget that lasts
_THOUGHT = 0.006  # seconds of each client, for every client


def shared(
    database: PostgresServer, budget: int, clients: int, program: Sequence[str] = PROGRAM
) -> Setup:
    """Two servers on one ledger in the database; every fourth budget does not last."""
    ample = max(_AMPLE, budget)
    return Setup(2, database, SHARED, (ample, ample, ample, budget), _THOUGHT * clients, program)


def main(words: list[str]) -> int:
    """Run, write the page, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.crash.cluster", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--budget", type=int, default=1_000, help="answers that it pays for")
    parser.add_argument("--output", type=Path, help="write the page here instead of printing it")
    wanted = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as state, postgres_server() as run:
        os.environ["HOLDFAST_STATE"] = state  # of the servers, too: the user's own stays clean
        version = run.command("SHOW server_version").split()[0]
        setup = shared(run, wanted.budget, wanted.clients)
        rushed = rush(setup, wanted.clients, wanted.requests, wanted.budget)
        killed = campaign(wanted.kills, wanted.clients, setup)
    command = " ".join(["python -m tools.crash.cluster", *words])
    text = page(rushed, killed, command, datetime.now(UTC).date().isoformat(), version)
    return reported(text, wanted.output, [*rushed.faults, *killed.faults])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
