"""The tables of all ledgers in a database: made, checked, and brought up to date.

A step changes how rows are stored, never what they say: their digests stay. All steps and the new
version number are one transaction. Whoever is connected holds the format as it is, so that no
tables change under a Holdfast that does not know the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger.postgres import statements as sql
from holdfast.ledger.postgres.sessions import Session
from holdfast.ledger.tables import STOP

__all__ = ["MIGRATIONS", "Step", "enter", "install"]

Step = Callable[[Session], None]

MIGRATIONS: Mapping[int, Step] = {}  # from this format to the next; format 1 is the first

_KEY = sql.key("format")
# Asked of the catalogue as of now: `to_regclass` may answer as of before a lock was waited for.
_IS_THERE = (
    "SELECT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
    "WHERE n.nspname = 'holdfast' AND c.relname = 'format')"
)


def install(session: Session) -> None:
    """Make the tables, unless they are there."""
    if session.one(_IS_THERE):
        return
    _alone(session, _make)


def enter(session: Session, url: str, steps: Mapping[int, Step]) -> None:
    """Hold the format as it is, as long as the session lives; brought up to date before."""
    session.all(f"SELECT pg_advisory_lock_shared({_KEY})")
    if _check(session, url, steps) < sql.FORMAT:
        session.all(f"SELECT pg_advisory_unlock_shared({_KEY})")
        _alone(session, lambda alone: _migrate(alone, url, steps))
        session.all(f"SELECT pg_advisory_lock_shared({_KEY})")
        _check(session, url, {})


def _alone(session: Session, work: Callable[[Session], None]) -> None:
    """Do the work in one transaction, while nobody else holds the format."""
    session.all("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")  # whatever the role has
    try:
        session.all(f"SELECT pg_advisory_xact_lock({_KEY})")
        work(session)
        session.commit()
    except BaseException:
        session.rollback()
        raise


def _make(session: Session) -> None:
    if not session.one(_IS_THERE):  # nobody else has made them meanwhile
        for statement in sql.SCHEMA:
            session.all(statement)


def _migrate(session: Session, url: str, steps: Mapping[int, Step]) -> None:
    for old in range(_check(session, url, steps), sql.FORMAT):
        steps[old](session)
        session.all("UPDATE holdfast.format SET version = %s", old + 1)


def _check(session: Session, url: str, steps: Mapping[int, Step]) -> int:
    """The format of the tables, if they can be used or migrated."""
    if not session.one(_IS_THERE):
        hint = "Is it the database in which the holdout was created?"
        raise InvalidInput("ledger", url, "a database with ledgers", hint)
    version = session.one("SELECT version FROM holdfast.format")
    if version is None:
        raise Damaged("The ledger", "the format of its tables", "none", STOP)
    if version > sql.FORMAT:
        hint = f"A newer Holdfast has changed it (format {version}). Install that one."
        raise InvalidInput("ledger", url, f"a database of format {sql.FORMAT} or older", hint)
    if any(old not in steps for old in range(version, sql.FORMAT)):
        hint = f"Its format, {version}, is too old. Open it with an earlier Holdfast first."
        raise InvalidInput("ledger", url, f"a database of format {sql.FORMAT}", hint)
    return int(version)
