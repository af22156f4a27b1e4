"""A Postgres of one's own: started on loopback with Debian's programs, killed, and started again.

    python -m tools.postgres        start one, print its URL, and stop it at the end of the input

Postgres refuses to run as root; root starts it as the user `postgres`, in a folder of that user's.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["PostgresServer", "postgres_server"]

_USER = "postgres"  # of the system, if this is root; and the superuser of the database
_PROGRAMS = ("initdb", "pg_dump", "pg_isready", "pg_restore", "postgres", "psql")
_PATIENCE = 60.0  # seconds to start or stop
# Passwords are asked of one role only: whoever is on this machine may use the others.
_ACCESS = """
host all guarded 127.0.0.1/32 scram-sha-256
local all all trust
host all all 127.0.0.1/32 trust
"""


class PostgresServer:
    """One cluster in a folder; its settings are those of Postgres, but for the ones given."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.port = _free_port()
        self._settings = settings
        self._programs = _programs()
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", self._data, "-U", _USER, "-E", "UTF8", "--no-locale", "--no-sync")
        (folder / "data" / "pg_hba.conf").write_text(_ACCESS, "ascii")

    def url(self, database: str = "postgres", user: str = _USER) -> str:
        """Where a database of this server is."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it, again on the same data if it ran before, and wait until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "shared_buffers": "32MB",
            **self._settings,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, *options],
                stdout=log,
                stderr=log,
                start_new_session=True,
                **_identity(),
            )
        self._wait()

    @property
    def is_running(self) -> bool:
        """Whether it was started, and neither stopped nor killed since."""
        return self._process is not None

    def stop(self) -> None:
        """Stop it in an orderly way, without waiting for those who use it."""
        if self._process is not None:
            process, self._process = self._process, None
            process.send_signal(signal.SIGINT)
            process.wait(_PATIENCE)

    def kill(self) -> None:
        """Kill -9: the process that was started, and all that it has started itself."""
        assert self._process is not None
        process, self._process = self._process, None
        tasks = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        children = [int(pid) for pid in tasks.read_text("ascii").split()]
        for pid in (process.pid, *children):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(_PATIENCE)
        end = time.monotonic() + _PATIENCE
        while any(_runs(pid) for pid in children):  # they hold memory that the next one needs
            if time.monotonic() > end:
                raise TimeoutError("The processes of Postgres did not end.")
            time.sleep(0.01)

    def command(self, statement: str, database: str = "postgres") -> str:
        """What psql prints for a statement of the superuser."""
        address = self.url(database)
        quiet = ("-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1")
        return self._run("psql", *quiet, "-d", address, "-c", statement).decode()

    def create_database(self, name: str) -> str:
        """A new, empty database, and its URL."""
        self.command(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def dump(self, database: str, file: Path) -> None:
        """Back up a database, as `pg_dump --format=custom` does."""
        file.write_bytes(self._run("pg_dump", "--format=custom", self.url(database)))

    def restore(self, database: str, file: Path) -> None:
        """Put a back-up in the place of a database."""
        self.command(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
        self.create_database(database)
        self._run("pg_restore", "-d", self.url(database), given=file.read_bytes())

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _wait(self) -> None:
        assert self._process is not None
        end = time.monotonic() + _PATIENCE
        program = str(self._programs / "pg_isready")
        ready = [program, "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > end:
                log = (self.folder / "log").read_text("utf-8", "replace")
                raise OSError(f"Postgres did not start:\n{log[-2000:]}")
            time.sleep(0.05)

    def _run(self, program: str, *arguments: str, given: bytes = b"") -> bytes:
        done: subprocess.CompletedProcess[bytes] = subprocess.run(
            [self._programs / program, *arguments],
            input=given,
            capture_output=True,
            cwd=self.folder,
            check=False,
            **_identity(),
        )
        if done.returncode != 0:
            raise OSError(f"{program}: {done.stderr.decode('utf-8', 'replace').strip()}")
        return done.stdout


@contextmanager
def postgres_server(**settings: str) -> Iterator[PostgresServer]:
    """A server that runs until the block ends; then its data are removed."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-postgres-"))
    server = None
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, _USER, _USER)
        server = PostgresServer(folder, **settings)
        server.start()
        yield server
    finally:
        if server is not None and server.is_running:
            server.kill()  # an orderly end would first write to the disk what is removed next
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """The folder of Postgres' programs: Debian keeps them out of the path."""
    folders = [Path(folder) for folder in os.get_exec_path()]
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    folders += sorted(debian, key=lambda path: int(path.parts[-2]), reverse=True)
    for folder in folders:
        if all((folder / name).is_file() for name in _PROGRAMS):
            return folder
    raise FileNotFoundError("Postgres is not installed: apt-get install postgresql")


def _identity() -> dict[str, Any]:
    """As whom its programs run."""
    if os.geteuid() != 0:
        return {}
    return {"user": _USER, "group": pwd.getpwnam(_USER).pw_gid, "extra_groups": []}


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    with postgres_server() as running:
        print(running.url(), flush=True)
        sys.stdin.read()
