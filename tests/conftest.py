"""What every test shares: how Hypothesis searches, and folders that are not the user's."""

from __future__ import annotations

import compileall
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Deadlines measure the machine, not the code. In CI the examples are the same on every run, so
# that a red run can be repeated and a green one stays green.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
# tools/seeds.py: as in a fresh clone, whatever the environment says.
settings.register_profile(
    "fresh", settings.get_profile("dev"), derandomize=False, database=None, print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

_LONGEST = ("test_fresh_user.py", "test_docs_examples.py")


def pytest_configure(config: pytest.Config) -> None:
    """Compile the project once, where Python is told not to.

    The tests start hundreds of processes, and each would compile what it imports.
    """
    if sys.dont_write_bytecode and not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(__file__).parents[1] / "src", quiet=2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: at the end of a run no process then waits long for another."""
    items.sort(key=lambda item: item.path.name not in _LONGEST)


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Caches and state go to folders of this run: a test neither reads nor leaves the user's.

    The processes of a run share the cache of plans: what one has found, another proves again.
    """
    run = tmp_path_factory.getbasetemp()
    run = run.parent if "PYTEST_XDIST_WORKER" in os.environ else run  # each has a folder in it
    (run / "cache").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(run / "cache"))
        patch.setenv("HOLDFAST_STATE", str(tmp_path_factory.mktemp("state")))
        patch.setenv("MPLBACKEND", "Agg")
        yield


@pytest.fixture(scope="module", autouse=True)
def own_state(own_folders: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A module may be set up twice in one process, by `--dist worksteal`, with the same data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_STATE", str(tmp_path_factory.mktemp("state")))
        yield
