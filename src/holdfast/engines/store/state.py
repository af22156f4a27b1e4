"""The folder in which Holdfast remembers things between holdouts, and the secret of its account.

    secret   32 random bytes, made once

Whoever had a plain hash of rows, or of a file of them, could try out rows until one fits. What is
kept here of such hashes is keyed by the secret, which leaves the folder in no file and no message.
"""

from __future__ import annotations

import hmac
import os
import uuid
from contextlib import suppress
from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.randomness import system_entropy

__all__ = ["SECRET_FILE", "keyed", "state_folder"]

SECRET_FILE = "secret"
_SECRET_WORDS = 4  # of 64 bits


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


def keyed(text: str) -> str:
    """HMAC-SHA-256 under the account's secret: without it nobody can compare the text with it."""
    return hmac.new(_secret(), text.encode("utf-8"), "sha256").hexdigest()


def _secret() -> bytes:
    """The secret of this account; whoever needs it first makes it."""
    file = state_folder() / SECRET_FILE
    with suppress(FileNotFoundError):
        return file.read_bytes()
    draft = file.with_name(f"{SECRET_FILE}.{uuid.uuid4().hex}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(system_entropy().words(_SECRET_WORDS).tobytes())
            stream.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):  # another process was first: its secret counts
            os.link(draft, file)
    finally:
        draft.unlink()
    return file.read_bytes()
