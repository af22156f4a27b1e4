"""The folder in which Holdfast remembers things between holdouts."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import InvalidInput

__all__ = ["state_folder"]


def state_folder() -> Path:
    """The user's own folder, made with mode 0700 if it is not there.

    `$HOLDFAST_STATE`, else `$XDG_STATE_HOME/holdfast`, else `~/.local/state/holdfast`.
    """
    own, shared = os.environ.get("HOLDFAST_STATE"), os.environ.get("XDG_STATE_HOME")
    if own:
        folder = Path(own).expanduser()
    elif shared and Path(shared).is_absolute():  # the XDG rules: a relative one is ignored
        folder = Path(shared) / "holdfast"
    else:
        folder = Path.home() / ".local" / "state" / "holdfast"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        hint = f"{error.strerror}: set HOLDFAST_STATE to a folder of yours."
        allowed = "a folder that can be made"
        raise InvalidInput("the state folder", str(folder), allowed, hint) from None
    return folder
