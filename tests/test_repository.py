"""What must be true of the files that are committed."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.custody import _PACKAGES

ROOT = Path(__file__).parents[1]
LAB = ROOT / "packages" / "holdfast-lab"
LOCKS = sorted(ROOT.glob("requirements*.lock"))
MACHINE_PATH = re.compile(r"(^|[^\w.])/(work|farm|root|home)/", re.MULTILINE)
LARGEST = 1_000_000


@pytest.fixture(scope="module")
def committed() -> list[Path]:
    """Every file git has, or would take: an error is found before the commit, not after."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git repository")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_file_names_a_place_on_one_machine(committed: list[Path]) -> None:
    wrong = [
        path.relative_to(ROOT)
        for path in committed
        if MACHINE_PATH.search(path.read_text("utf-8", errors="replace"))
    ]
    assert wrong == []


def test_the_pattern_of_machine_paths_works() -> None:
    assert MACHINE_PATH.search('open("/' + 'home/me/data.csv")')
    assert MACHINE_PATH.search("/" + "work/main")
    assert not MACHINE_PATH.search("https://example.org/" + "home/page")


def test_no_file_is_large(committed: list[Path]) -> None:
    assert [path for path in committed if path.stat().st_size > LARGEST] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_locks_pin_versions_and_hashes_and_name_no_registry(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert "://" not in text
    assert "--index" not in text
    for requirement in text.replace("\\\n", " ").splitlines():
        if not requirement.startswith("#"):
            assert "==" in requirement
            assert "--hash=sha256:" in requirement


def pins(lock: Path) -> dict[str, str]:
    found = re.findall(r"^([a-z0-9._-]+)(?:\[[a-z]+\])?==([^\s;]+)", lock.read_text("utf-8"), re.M)
    return dict(found)


def project(folder: Path = ROOT) -> dict[str, Any]:
    about: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    return about


def needed(*extras: str) -> set[str]:
    """The names of the packages that Holdfast needs with these extras; `lab` is the lab."""
    optional = {**project()["optional-dependencies"], "lab": project(LAB)["dependencies"]}
    named = [*project()["dependencies"], *(each for extra in extras for each in optional[extra])]
    return {re.split(r"[^a-z0-9-]", each)[0] for each in named}


@pytest.mark.parametrize(
    ("name", "extras"),
    [
        ("requirements-runtime.lock", ()),
        ("requirements-server.lock", ("client", "postgres", "server")),
        ("requirements-demo.lock", ("lab",)),
        ("requirements.lock", ("client", "dask", "lab", "plot", "polars", "postgres", "server")),
    ],
)
def test_locks_hold_what_is_needed_in_the_versions_that_are_tested(
    name: str, extras: tuple[str, ...]
) -> None:
    locked, tested = pins(ROOT / name), pins(ROOT / "requirements.lock")
    assert needed(*extras) <= set(locked)
    assert {package: tested.get(package) for package in locked} == locked


def test_the_server_says_all_that_it_needs() -> None:
    assert set(_PACKAGES.split()) == needed("server") - needed()


BARE_NAME = re.compile(
    r"(?:pipx?|uv|tool) (?:install|add|run)\b[^\n]*(?<![\w./-])" + "hold" + r"fast(?![\w-])"
)


def test_nobody_is_told_to_install_a_name_that_is_not_ours(committed: list[Path]) -> None:
    """Holdfast is not on PyPI: who installs its name from there gets whatever has taken it."""
    texts = {".md", ".py", ".toml", ".sh", ".yml", ".js", ".html", ".ipynb", ""}
    told = [
        (path.relative_to(ROOT).as_posix(), each.group())
        for path in committed
        if path.suffix in texts
        for each in BARE_NAME.finditer(path.read_text("utf-8", "replace"))
    ]
    assert told == []
    for wrong in ("", "'", "[server]", "==0.6"):
        assert BARE_NAME.search(f"pip install -U {chr(39)}hold{'fast'}{wrong}{chr(39)}")
    for right in ("'.[server]'", "--no-deps dist/hold" + "fast-*.whl", "hold" + "fast-*.whl"):
        assert not BARE_NAME.search(f"pip install {right}")


def test_the_changelog_mentions_the_version() -> None:
    version = project()["version"]
    assert project(LAB)["version"] == version
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda path: path.name)
def test_links_of_the_front_pages_lead_somewhere(page: Path) -> None:
    """The build of the site checks the pages in docs/; this checks those beside it."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_the_map_names_the_modules_that_there_are() -> None:
    """Every module of the package stands in the paragraph of CONTRIBUTING about its package."""
    package, page = ROOT / "src" / "holdfast", (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    paragraphs = page.partition("The packages of `src/holdfast`")[2].split("\n\n")
    missing = []
    for folder in sorted(path for path in package.iterdir() if (path / "__init__.py").exists()):
        about = [each for each in paragraphs if f"**{folder.name}**" in each]
        words = " ".join(about)
        modules = {path.stem for path in folder.glob("*.py")} - {"__init__", folder.name}
        missing += [f"{folder.name}/{each}" for each in sorted(modules) if f"`{each}`" not in words]
    assert missing == []
