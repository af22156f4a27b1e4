"""Settings: how a server is run. Plain data, so that worker processes can be told of it."""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.store.blocks import NotOwnError, opened_own, own_folder, remove_in

__all__ = [
    "Settings",
    "is_loopback",
    "scratch_folder",
    "use",
]

_PATHS = ("tls_cert", "tls_key", "metrics", "state")


@dataclass(frozen=True)
class Settings:
    """Which holdouts are served, where, and within which limits.

    slot              seconds: answers leave at the end of 1, 2, 4, 8, … of them
    rate, burst       requests a second that one token may make, and how many at once
    body_limit        bytes of a question; submission_limit of predictions
    threads           questions that are answered at the same time in one process
    waiting           questions that may wait for one of them before the server says that it is busy
    engine            where blocks are evaluated, dask://HOST:PORT; None: here
    question_seconds  what a question may take at worst; one that could take longer is refused, free
    slowness          how much slower this machine is than the one that costs were measured on
    metrics           a Python file with metrics of the custodian's own
    state             a folder that all worker processes share, for jobs; made by `serve`
    """

    folders: tuple[Path, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    slot: float = 0.05
    rate: float = 50.0
    burst: int = 100
    body_limit: int = 64 * 2**10
    submission_limit: int = 50 * 2**20
    threads: int = 64
    waiting: int = 256
    question_seconds: float = 30.0
    slowness: float = 1.0
    tls_cert: Path | None = None
    tls_key: Path | None = None
    engine: str | None = None
    metrics: Path | None = None
    state: Path | None = None
    open_to_all: bool = field(default=True)
    """Whether a holdout that never had a token may be asked without one: only on loopback."""

    def __post_init__(self) -> None:
        if not self.folders:
            raise InvalidInput("DIR", None, "the folder of at least one holdout")
        whole_number("port", self.port, 0, 65535)
        whole_number("workers", self.workers, 1, 256)
        real_number("slot", self.slot, 0.001, 60)
        real_number("rate", self.rate, 0, open_low=True)
        whole_number("burst", self.burst, 1, 10**6)
        whole_number("body_limit", self.body_limit, 2**10, 2**30)
        whole_number("submission_limit", self.submission_limit, 2**10, 2**36)
        whole_number("threads", self.threads, 1, 1024)
        whole_number("waiting", self.waiting, 1, 10**6)
        real_number("question_seconds", self.question_seconds, 0, 3600, open_low=True)
        real_number("slowness", self.slowness, 0, open_low=True)
        if (self.tls_cert is None) != (self.tls_key is None):
            hint = "A certificate and its key belong together: --tls-cert FILE --tls-key FILE."
            raise InvalidInput("tls_key", self.tls_key, "given with tls_cert", hint)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def to_json(self) -> str:
        """Text that `from_json` reads."""
        plain = asdict(self)
        plain["folders"] = [str(each) for each in self.folders]
        for name in _PATHS:
            plain[name] = None if plain[name] is None else str(plain[name])
        return json.dumps(plain)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """The settings that `to_json` wrote."""
        plain = json.loads(text)
        plain["folders"] = tuple(Path(each) for each in plain["folders"])
        for name in _PATHS:
            plain[name] = None if plain[name] is None else Path(plain[name])
        return cls(**plain)


@lru_cache(maxsize=64)  # every request names one, and most the same
def is_loopback(host: str) -> bool:
    """Whether a name or address means this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("[::1]"), is_loopback("localhost")
    (True, True, True)
    >>> is_loopback("0.0.0.0"), is_loopback("example.org")
    (False, False)
    """
    if host.casefold() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# The folder that a server has while it runs, for jobs and counts, in the temporary folder.
#
#     holdfast-server-…/
#         in-use   locked by every process of the server
#
# A server that is killed leaves it behind, with answers in it. The next one of the same account
# finds that nobody holds the lock, and removes it.


_PREFIX = "holdfast-server-"
_LOCK = "in-use"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder, until the block ends; before that, those of servers that were killed go."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError, NotOwnError):
            _remove_unused(left)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as made:
        draft = Path(made, f"{_LOCK}.draft")
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        lock = _locked(draft)
        try:
            draft.rename(Path(made, _LOCK))  # under its name it is locked
            yield Path(made)
        finally:
            os.close(lock)


def use(folder: Path) -> int:
    """Hold the lock of such a folder together with others, until the descriptor is closed."""
    return _locked(folder / _LOCK)


def _locked(file: Path) -> int:
    descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _remove_unused(folder: Path) -> None:
    """Remove a folder of this account's, unless somebody holds its lock or it has none yet."""
    with own_folder(folder) as place:
        descriptor = opened_own(place, _LOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_in(place, _LOCK)
            os.unlink(_LOCK, dir_fd=place)
            folder.rmdir()
        finally:
            os.close(descriptor)
