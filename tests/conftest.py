"""What every test shares: how Hypothesis searches, and folders that are not the user's."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Deadlines measure the machine, not the code. In CI the examples are the same on every run, so
# that a red run can be repeated and a green one stays green.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Caches and state go to folders of this run: a test neither reads nor leaves the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HOLDFAST_STATE", str(tmp_path_factory.mktemp("state")))
        patch.setenv("MPLBACKEND", "Agg")
        yield
