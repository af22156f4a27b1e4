"""Run every property test with many fresh seeds and no example database, and write down what fell.

    python -m tools.seeds --seeds 100 --output docs/explanation/seeds-results.md
    python -m tools.seeds --seeds 100 --slice 1/4       every fourth seed; the others another time
    python -m tools.seeds --seeds 20 --only tests/theory

A property test is one that Hypothesis finds examples for: pytest marks it `hypothesis`, and a test
that runs a state machine by itself marks itself so. One process runs all of them with one seed; as
many run at once as the machine has cores. Seeds that nobody has tried start at a random number,
unless `--first` says where. What is done is kept in `--folder`: begun again, it goes on where it
was stopped, with the same seeds, as long as the code is the same. Exit status 1 if any test failed.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["main"]

ROOT = Path(__file__).parents[1]
_MARKED = ["-m", "hypothesis and not cluster", "-n", "0", "-p", "no:cacheprovider"]
_CODE = ("src", "tests", "tools", "packages")
_TESTS = ("tests", "packages/holdfast-lab/tests")

_PAGE = """# Property tests, with fresh seeds

Made by the command below on {date} (Python {python}, Hypothesis {hypothesis}).

```{{.console .skip}}
$ python -m tools.seeds {words}
```

{tests:,} property tests were run with each of {seeds:,} seeds, {first} and those after it, without
an example database: what a fresh clone does. {verdict} A test with parameters is counted once for
each of them and each seed.

| test | runs | failures |
|---|---:|---:|
{rows}
"""

Counts = dict[str, list[int]]  # by test: runs and failures


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run what is left to run; 1 if anything failed, or is left for another slice."""
    given = list(sys.argv[1:] if words is None else words)
    options = _options(given)
    folder = options.folder or root / ".scratch" / "seeds"
    files = _property_files(root, options.only)
    about = _begun(root, folder, options)
    every = range(about["first"], about["first"] + options.seeds)
    place, slices = options.slice
    mine = [seed for seed in every[place - 1 :: slices] if not _results(folder, seed).exists()]
    print(f"{len(mine)} of {options.seeds} seeds to run, from {about['first']}, {len(files)} files")
    with ThreadPoolExecutor(options.jobs) as pool:
        for seed, failed in pool.map(lambda seed: _run(root, folder, files, seed), mine):
            print(f"seed {seed}: {', '.join(failed) or 'nothing fell'}", flush=True)
    done = [seed for seed in every if _results(folder, seed).exists()]
    if len(done) < options.seeds:
        print(f"{options.seeds - len(done)} seeds are left for other slices")
    counts = _counted(root, (_results(folder, seed) for seed in done))
    page = _page(counts, done, given)
    if options.output is None:
        print(page)
    elif len(done) == options.seeds:
        options.output.write_text(page, "utf-8")
    return int(len(done) < options.seeds or any(failures for _, failures in counts.values()))


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.seeds", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, help="the first of them, in place of a random one")
    parser.add_argument("--slice", type=_slice, default=(1, 1), metavar="K/N", help="of the seeds")
    parser.add_argument("--only", nargs="*", default=[], help="files or folders of tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    parser.add_argument("--folder", type=Path, help="where what is done is kept")
    parser.add_argument("--output", type=Path, help="the page to write, once all seeds are done")
    return parser.parse_args(words)


def _slice(text: str) -> tuple[int, int]:
    place, _, slices = text.partition("/")
    if not 1 <= int(place) <= int(slices):
        raise ValueError(text)
    return int(place), int(slices)


def _property_files(root: Path, only: Sequence[str]) -> list[str]:
    """The files with property tests; one that imports Hypothesis and has none has lost its mark."""
    found = _pytest(root, ["--collect-only", "-q", *_MARKED, *(only or _tests(root))])
    lines = [line for line in found.stdout.splitlines() if "::" in line]
    if found.returncode or not lines:
        raise SystemExit(f"The tests cannot be collected:\n{found.stdout[-3000:]}{found.stderr}")
    files = sorted({line.partition("::")[0] for line in lines})
    if not only:
        unmarked = [name for name in _importing(root) if name not in files]
        if unmarked:
            raise SystemExit(f"No test is marked `hypothesis` in {', '.join(unmarked)}")
    return files


def _tests(root: Path) -> list[str]:
    return [folder for folder in _TESTS if (root / folder).is_dir()]


def _importing(root: Path) -> list[str]:
    """The test files that import from Hypothesis."""
    return [
        str(path.relative_to(root))
        for folder in _tests(root)
        for path in sorted((root / folder).rglob("test_*.py"))
        if any(
            isinstance(node, ast.ImportFrom) and node.module == "hypothesis"
            for node in ast.parse(path.read_text("utf-8")).body
        )
    ]


def _begun(root: Path, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The first seed of what was begun on this code, or of what begins now."""
    digest = hashlib.sha256()
    for path in sorted(path for part in _CODE for path in (root / part).rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    code, file = digest.hexdigest(), folder / "about.json"
    known = json.loads(file.read_text("utf-8")) if file.exists() else {}
    first = known.get("first") if options.first is None else options.first
    if known.get("code") != code or known.get("first") != first or first is None:
        if options.first is None:
            first = secrets.randbelow(10**9)
        folder.mkdir(parents=True, exist_ok=True)
        for old in (*folder.glob("[0-9]*.xml"), *folder.glob("[0-9]*.log")):
            old.unlink()
        known = {"first": first, "code": code}
        file.write_text(json.dumps(known), "utf-8")
    return known


def _results(folder: Path, seed: int) -> Path:
    return folder / f"{seed}.xml"


def _run(root: Path, folder: Path, files: list[str], seed: int) -> tuple[int, list[str]]:
    """All property tests with one seed, and those that failed; what pytest said is kept then."""
    unfinished, scratch = folder / f"{seed}.unfinished", folder / f"{seed}.scratch"
    fresh = [f"--hypothesis-seed={seed}", "--hypothesis-profile=fresh", f"--basetemp={scratch}"]
    done = _pytest(root, ["-q", *_MARKED, *fresh, f"--junitxml={unfinished}", *files])
    shutil.rmtree(scratch, ignore_errors=True)
    if done.returncode:
        (folder / f"{seed}.log").write_text(done.stdout + done.stderr, "utf-8")
    if done.returncode not in (0, 1):  # 1: some tests failed
        raise SystemExit(
            f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr}"
        )
    unfinished.replace(_results(folder, seed))
    counts = _counted(root, [_results(folder, seed)])
    return seed, [name for name, (_, failures) in counts.items() if failures]


def _pytest(root: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    # In CI examples would be the same on every run.
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "PYTEST_ADDOPTS")}
    command = [sys.executable, "-m", "pytest", *words]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)


def _counted(root: Path, results: Iterable[Path]) -> Counts:
    """Runs and failures of each test, all its parameters together."""
    counts: Counts = {}
    for file in results:
        for case in ElementTree.parse(file).iter("testcase"):
            both = counts.setdefault(_name(root, case), [0, 0])
            both[0] += case.find("skipped") is None
            both[1] += case.find("failure") is not None or case.find("error") is not None
    return dict(sorted(counts.items()))


def _name(root: Path, case: ElementTree.Element) -> str:
    """File, class and test. The class says which file: that of a state machine is Hypothesis'."""
    parts = case.get("classname", "").split(".")
    length = len(parts)
    while length > 1 and not (root / ("/".join(parts[:length]) + ".py")).exists():
        length -= 1
    test = case.get("name", "").partition("[")[0]
    return "::".join(["/".join(parts[:length]) + ".py", *parts[length:], test])


def _page(counts: Counts, seeds: list[int], words: list[str]) -> str:
    fell = [name for name, (_, failures) in counts.items() if failures]
    return _PAGE.format(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        python=platform.python_version(),
        hypothesis=version("hypothesis"),
        words=" ".join(words),
        tests=len(counts),
        seeds=len(seeds),
        first=min(seeds, default="none"),
        verdict=f"**{len(fell)} of them fell.**" if fell else "None fell.",
        rows="\n".join(
            f"| `{name}` | {runs:,} | {failures:,} |" for name, (runs, failures) in counts.items()
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
