"""Two servers on one ledger in Postgres: a short version of `python -m tools.crash.cluster`.

What clients were told is kept, paid and the same, whatever is killed; and a budget that many spend
at once pays for what it was made for. The same campaign finds servers that are careless.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tools.crash.cluster import shared
from tools.crash.cluster_page import page
from tools.crash.places import SHARED, Setup, Strike
from tools.crash.rush import Rushed, rush
from tools.crash.server import Results, campaign
from tools.postgres import PostgresServer, postgres_server

pytestmark = pytest.mark.cluster

CLIENTS, BUDGET = 16, 50
CARELESS = Path(__file__).with_name("careless.py")


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    # Where commits do not wait for the disk, they then wait for long.
    with postgres_server(wal_writer_delay="10s") as server:
        yield server


def test_exactly_what_the_budget_pays_for_is_granted(postgres: PostgresServer) -> None:
    rushed = rush(shared(postgres, BUDGET, CLIENTS), CLIENTS, 400, BUDGET)
    assert rushed.faults == []
    assert (rushed.granted, rushed.granted + rushed.free + rushed.refused) == (BUDGET, 400)
    assert rushed.refused > rushed.free > 0
    text = page(rushed, Results(CLIENTS), "command", "2026-11-16", "15").replace("\n", " ")
    assert "16 clients made 400 requests on a budget for 50 answers" in text


def test_nothing_that_was_told_is_lost(postgres: PostgresServer) -> None:
    killed = campaign(4, CLIENTS, shared(postgres, BUDGET, CLIENTS))
    assert killed.faults == []
    assert killed.struck == {strike.name: 1 for strike in SHARED}
    assert killed.answers > 4 * CLIENTS
    assert sum(killed.where.values()) == 4 * CLIENTS
    nothing = Rushed(0, 0, 0, 0, 0, 0, 0, 0.0, [])
    text = page(nothing, killed, "command", "2026-11-16", "15").replace("\n", " ")
    assert "No fault was found." in text
    assert "4 kills on 1 holdouts" in text


def careless(postgres: PostgresServer, mistake: str) -> Setup:
    """The same with a mistake in both servers."""
    program = (sys.executable, str(CARELESS), mistake)
    return shared(postgres, BUDGET, CLIENTS, program)


@pytest.mark.parametrize(
    ("mistake", "fault"), [("alone", "has two answers"), ("forgetful", "on a budget for 50")]
)
def test_a_server_that_forgets_the_other_is_found(
    postgres: PostgresServer, mistake: str, fault: str
) -> None:
    rushed = rush(careless(postgres, mistake), CLIENTS, 400, BUDGET)
    assert any(fault in each for each in rushed.faults)


def test_a_server_that_tells_before_the_disk_has_it_is_found(postgres: PostgresServer) -> None:
    setup = replace(careless(postgres, "hasty"), strikes=(Strike("Postgres", database=True),))
    killed = campaign(3, CLIENTS, setup)
    # The servers may notice by themselves, before a client is told anything else.
    assert any("which the ledger does not say" in f or "damaged" in f for f in killed.faults)
