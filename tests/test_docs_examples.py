"""The examples of the docs are code: every one runs, and prints what the page says it prints.

- ```python blocks of one file run in order, in one namespace, in an empty folder. When a ```text or
  ```output block follows with nothing in between, it is what the block printed.
- ```pycon blocks are doctests in the same namespace.
- In ```console blocks each `$ holdfast …` is run, and what follows it is its standard output; other
  commands are left alone. `.exit-3` says that the last command ends with status 3.
- `…` stands for any text; a line of only `…` for any number of lines.
- A block marked `drawn` shows one run: where it has a number any other may stand, and after `; as`
  or `; your guess` any words, since what was expected may be a surprise another time.
- A block marked `skip` is not run. In docs/ options are written `{.python .skip}`, for zensical.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tools.fences import Fence, fences

ROOT = Path(__file__).parents[1]
PAGES = [p for p in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if p.exists()]
WIDTH = 100  # columns of the terminal that the examples pretend to have


_NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"


def described(line: str, drawn: bool) -> str:
    """A pattern of the lines that a line of a page stands for."""
    if drawn:
        line = re.sub("(?<=; )(?:as|your guess) .*", "…", line)
    parts = re.split(f"({_NUMBER})", line) if drawn else [line]
    pattern = "".join(
        _NUMBER if number % 2 else re.escape(part).replace("…", ".*")
        for number, part in enumerate(parts)
    )
    if drawn:  # columns are as wide as their numbers
        pattern = re.sub(r"(?:\\ )+", " +", pattern)
    return pattern + r"\n"


def same(shown: str, printed: str, drawn: bool = False) -> bool:
    """Whether a page's output block describes what was printed."""
    lines = [line.rstrip() for line in shown.strip("\n").splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else described(line, drawn) for line in lines)
    got = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, got) is not None


def compare(shown: str, printed: str, fence: Fence, place: str) -> None:
    known = same(shown, printed, "drawn" in fence.words)
    assert known, f"{place} shows\n{shown}\nbut this was printed:\n{printed}"


def run_python(fence: Fence, names: dict[str, object], page: Path) -> str:
    padded = "\n" * (fence.first_line - 1) + fence.text  # a traceback then names the page's line
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(padded, str(page), "exec"), names)
    return printed.getvalue()


def run_doctest(fence: Fence, names: dict[str, object], page: Path) -> None:
    example = doctest.DocTestParser().get_doctest(
        fence.text, names, page.name, str(page), fence.first_line - 1
    )
    doctest.DebugRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(
        example, clear_globs=False
    )
    names.update(example.globs)


def commands(text: str) -> list[tuple[str, str]]:
    """Each command of a console block with the output shown below it."""
    parts = re.split(r"^\$ ((?:.*\\\n)*.*)\n", text, flags=re.MULTILINE)
    return [
        (command.replace("\\\n", " "), shown)
        for command, shown in zip(parts[1::2], parts[2::2], strict=True)
    ]


def run_console(fence: Fence, place: str) -> None:
    held = [(words, shown) for c, shown in commands(fence.text) if (words := shlex.split(c))]
    held = [(words, shown) for words, shown in held if words[0] == "holdfast"]
    program = Path(sys.executable).with_name("holdfast")
    environment = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    for number, (words, shown) in enumerate(held, start=1):
        run = subprocess.run(
            [program, *words[1:]], env=environment, capture_output=True, text=True, check=False
        )
        last = number == len(held)
        status = next((int(w[5:]) for w in fence.words if last and w.startswith("exit-")), 0)
        assert run.returncode == status, f"{place}: {shlex.join(words)}\n{run.stdout}{run.stderr}"
        compare(shown, run.stdout, fence, place)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_do_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = fences(page.read_text("utf-8"))
    for number, fence in enumerate(blocks):
        place = f"{page.relative_to(ROOT)}:{fence.first_line}"
        if "skip" in fence.words:
            continue
        if fence.language == "python":
            printed = run_python(fence, names, page)
            following = blocks[number + 1] if number + 1 < len(blocks) else None
            if following and following.language in {"text", "output"} and not following.gap:
                compare(following.text, printed, following, place)
        elif fence.language == "pycon":
            run_doctest(fence, names, page)
        elif fence.language == "console":
            run_console(fence, place)


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if p.name != "README.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_options_of_fences_are_written_so_that_zensical_reads_them(page: Path) -> None:
    found = fences(page.read_text("utf-8"))
    assert [f.info for f in found if len(f.words) > 1 and not f.info.startswith("{")] == []


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("1\n", "1\n", True),
        ("1\n", "2\n", False),
        ("1\n", "1\n2\n", False),
        ("1\n2\n", "1\n", False),
        ("1\n…\n4\n", "1\n2\n3\n4\n", True),
        ("1\n…\n4\n", "1\n4\n", True),
        ("1\n…\n", "1\n2\n", True),
        ("took … s\n", "took 0.3 s\n", True),
        ("took … s\n", "took 0.3 m\n", False),
        ("a.c\n", "abc\n", False),
        ("", "", True),
        ("", "surprise\n", False),
    ],
)
def test_comparison(shown: str, printed: str, expected: bool) -> None:
    assert same(shown, printed) is expected


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("from 0.61 to 1; told 2.3 nats\n", "from 1 to 1,204.5; told 1e-05 nats\n", True),
        ("from 0.61\n", "to 0.61\n", False),
        ("from 0.61\n", "from -0.61\n", False),
        ("at 0.5; as guessed, 0.6\n", "at 0.7; a surprise\n", True),
        ("at 0.5; as guessed, 0.6\n", "at 0.7\n", False),
        ("…\n2 b\n", "a\n3 b\n", True),
        ("2–3  …   0.7\n", "1–1  a     0.8\n", True),
    ],
)
def test_comparison_of_what_is_drawn(shown: str, printed: str, expected: bool) -> None:
    assert same(shown, printed, drawn=True) is expected


def test_commands_are_told_from_their_output() -> None:
    text = "$ holdfast plan \\\n    --json\n{}\n$ ls\na\nb\n"
    assert commands(text) == [("holdfast plan      --json", "{}\n"), ("ls", "a\nb\n")]
