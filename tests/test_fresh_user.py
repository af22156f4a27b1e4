"""A fresh user's path: clone, then the commands of the README, on a machine with nothing set up.

The clone builds an environment of its own. Packages that the tests run with lie in it already, for
unpacking a gigabyte takes a minute and a half of CI, and `make` has done it there once, in the
environment of these tests: pip looks at all of them, and installs what the lock of the clone wants
and does not find. `make test` in the clone runs one file: the whole suite is what this test is a
part of.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = ("make demo", "make test")


def commands() -> list[str]:
    """The commands that the README tells a new user to run."""
    section = (ROOT / "README.md").read_text("utf-8").split("## Two commands")[1].split("\n## ")[0]
    return re.findall(r"^(make [a-z]+)", section, flags=re.MULTILINE)


def test_the_readme_has_two_commands() -> None:
    assert tuple(commands()) == COMMANDS


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("there is nothing to clone: this is no git checkout")
    folder = tmp_path_factory.mktemp("fresh") / "holdfast"
    settings = folder.with_name("gitconfig")
    settings.write_text("[safe]\n\tdirectory = *\n", "utf-8")  # whoever owns the checkout
    clone = ["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", str(folder)]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": str(settings)}
    subprocess.run(clone, check=True, timeout=120, env=environment)
    link_packages(folder)
    return folder


def link_packages(folder: Path) -> None:
    """Put the packages of this environment, but not the project, where `make` will make another.

    Links to files, not to folders: what pip replaces there stays as it is here.
    """
    packages = Path(sysconfig.get_path("purelib"))
    if sys.prefix == sys.base_prefix or not packages.is_relative_to(sys.prefix):
        return  # no environment of its own: the clone then installs everything

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:  # another file system
            shutil.copy2(source, target)

    def own(_: str, names: list[str]) -> list[str]:
        return [name for name in names if "holdfast" in name.lower()]

    place = folder / ".venv" / packages.relative_to(sys.prefix)
    shutil.copytree(packages, place, copy_function=link, ignore=own)


def run(command: str, folder: Path) -> str:
    """What the command prints, as a user without caches, state or settings sees it."""
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    pip = {name: text for name, text in os.environ.items() if name.startswith(("PIP_", "UV_"))}
    environment = {**kept, **pip, "HOME": str(home)}
    done = subprocess.run(
        command.split(" ", 2),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def test_both_commands_work_in_a_fresh_clone(clone: Path) -> None:
    said = run("make demo", clone)
    assert "at once" in said
    assert list((clone / "demo").glob("*.html"))
    assert list((clone / "demo").glob("*.png"))
    made_here = (clone / ".venv").glob("lib/*/site-packages/holdfast-*.dist-info")
    assert len(list(made_here)) == 1
    tested = run("make test PYTEST_ARGS=tests/test_architecture.py", clone)
    assert re.search(r"\d+ passed", tested)
