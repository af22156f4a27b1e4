"""`careless.py MISTAKE serve …`: a server with a mistake. The campaign must find every one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from holdfast.cli import main
from holdfast.holdout import answering
from holdfast.holdout.state import Journal
from holdfast.ledger import postgres
from holdfast.ledger.ledger import Row
from holdfast.protocols.told import Past


def hasty() -> None:
    """Answers leave before the disk has them: Postgres writes them some time later."""
    postgres._WAIT_FOR_THE_DISK = "SELECT set_config('synchronous_commit', 'off', false)"


def alone() -> None:
    """Names are held against the threads of this server only: two draw for the same question."""
    postgres._take = lambda table, keys: keys


def forgetful() -> None:
    """What other servers have charged after the start is not counted."""
    catch_up = Journal._catch_up

    def once(self: Journal, rows: list[Row]) -> None:
        if self._state.number == 0:
            catch_up(self, rows)

    Journal._catch_up = once  # type: ignore[method-assign]


def talkative() -> None:
    """What was told before is told anew, at the level of now."""
    known = answering._known

    def unless_told(journal: Any, asked: Any, request: str | None) -> Row | None:
        return None if asked.protocol.told else known(journal, asked, request)

    answering._known = unless_told


def thoughtless() -> None:
    """What was told is not added up."""
    Past.tell = lambda *_: None  # type: ignore[method-assign]


if __name__ == "__main__":
    mistakes: dict[str, Callable[[], None]] = {
        "alone": alone,
        "forgetful": forgetful,
        "hasty": hasty,
        "talkative": talkative,
        "thoughtless": thoughtless,
    }
    mistakes[sys.argv.pop(1)]()
    main()
