"""Where and with what a run was made."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import sqlite3
from pathlib import Path

from benchmarks import others
from benchmarks.timing import Results

__all__ = ["described", "machine"]

_PACKAGES = ("holdfast", "numpy", "scipy", "duckdb", "pyarrow", "pandas")


def machine(folder: Path) -> Results:
    """`folder` is where the parts keep their files."""
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {
        "date": datetime.date.today().isoformat(),
        "cores": os.cpu_count(),
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "disk": _file_system(folder),
        "load": [round(x, 2) for x in os.getloadavg()],
        "python": platform.python_version(),
        "versions": versions | {"SQLite": sqlite3.sqlite_version} | others.versions(),
    }


def described(where: Results) -> str:
    """All of it in one line."""
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    disk = f", {where['disk']}" if where["disk"] else ""
    return (
        f"{where['date']}, {where['cores']} cores ({where['cpu']}){disk}, Python "
        f"{where['python']}, {versions}. Load average at the end: {where['load'][0]}."
    )


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _file_system(folder: Path) -> str:
    """The type of the file system, such as ext4: what a commit costs depends on it."""
    mounts = Path("/proc/mounts")
    lines = mounts.read_text().splitlines() if mounts.exists() else []
    kinds = {Path(line.split()[1]): line.split()[2] for line in lines}
    here = folder.resolve()
    return next((kinds[each] for each in (here, *here.parents) if each in kinds), "")
