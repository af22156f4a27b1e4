"""Formats of the file, and the steps from each to the next.

A step changes how rows are stored, never what they say: their digests stay. All steps and the new
version number are one transaction, so that a crash leaves the old format or the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger.sessions import Session
from holdfast.ledger.statements import APPLICATION_ID, FORMAT

__all__ = ["MIGRATIONS", "Step", "check_format", "migrate"]

Step = Callable[[Session], None]

MIGRATIONS: Mapping[int, Step] = {}  # from this format to the next; format 1 is the first


def check_format(session: Session, path: str, steps: Mapping[int, Step]) -> int:
    """The format of the file, if it is a ledger that can be read or migrated."""
    application = session.one("PRAGMA application_id")
    version = session.one("PRAGMA user_version")
    if application == 0 and session.one("SELECT count(*) FROM sqlite_schema") == 0:
        remedy = (
            "If its creation was interrupted, delete the folder and create the holdout again. If "
            "not, ledger.sqlite-wal is missing: put it back."
        )
        raise Damaged(f"The ledger {path}", "a finished one", "an empty database", remedy)
    if application != APPLICATION_ID:
        raise InvalidInput("path", path, "a ledger", "This is a database of another program.")
    if version > FORMAT:
        hint = f"A newer Holdfast wrote it (format {version}). Install that one."
        raise InvalidInput("path", path, f"a ledger of format {FORMAT} or older", hint)
    missing = [old for old in range(version, FORMAT) if old not in steps]
    if missing:
        hint = f"Its format, {version}, is too old. Open it with an earlier Holdfast first."
        raise InvalidInput("path", path, f"a ledger of format {FORMAT}", hint)
    return int(version)


def migrate(session: Session, path: str, steps: Mapping[int, Step]) -> None:
    """Bring the file to the present format. The caller's transaction makes it all or nothing."""
    for old in range(check_format(session, path, steps), FORMAT):
        steps[old](session)
        session.all(f"PRAGMA user_version = {old + 1}")
