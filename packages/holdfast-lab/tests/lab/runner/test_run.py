"""Runs: resumed, not mixed, the same whoever measures; and what is left when something fails."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NoReturn

import pytest
from tests.lab.runner.tiny import CONFIG, DRAWING, MODULE, Notes, run_tiny, tiny, write_tiny

from holdfast.errors import Damaged, HoldfastError, InvalidInput
from holdfast_lab.runner import results
from holdfast_lab.runner.results import Place, best_place, cells_of, read_pictured
from holdfast_lab.runner.run import Job, _Queue

DEADLINE = 120  # seconds that a test waits for what should happen at once


def lines(journal: Path) -> list[bytes]:
    return journal.read_bytes().splitlines() if journal.exists() else []


def test_a_run_leaves_a_table_figures_findings_and_its_origin(tmp_path: Path) -> None:
    watch = Notes()
    outcome = run_tiny(tiny(tmp_path, DRAWING), tmp_path / "out", watch=watch)
    folder = tmp_path / "out" / "tiny-walk" / "full"
    assert outcome.place.folder == folder
    assert (outcome.cells, outcome.done, outcome.measured, outcome.good) == (12, 12, 12, True)
    assert watch.begun == [12]
    assert watch.advanced == ["tiny-walk"] * 12
    text = (folder / "results.csv").read_text("utf-8").splitlines()
    assert text[0] == "steps,kind,scale,repeat,end,coins"
    assert [line.split(",")[:4] for line in text[1:5]] == [
        ["9", "fair", "1.5", "0"],
        ["9", "fair", "1.5", "1"],
        ["9", "fair", "1.5", "2"],
        ["9", "still", "1.5", "0"],
    ]
    assert {path.name for path in folder.glob("*.*g")} == {
        *("walk.svg", "walk.png", "twin.svg", "twin.png")
    }
    findings = json.loads((folder / "findings.json").read_text("utf-8"))
    assert [(each["measured"], each["holds"]) for each in findings] == [("0", True), ("12", False)]
    run = json.loads((folder / "run.json").read_text("utf-8"))
    assert run["cells"] == {"done": 12, "all": 12}
    assert run["command"].endswith("tiny_walk.toml")
    assert run["parameters"]["steps"] == [9, 16]
    assert run["versions"]["holdfast"]


def test_one_worker_and_two_write_the_same_bytes(tmp_path: Path) -> None:
    experiment = tiny(tmp_path, config=CONFIG.replace("repeats = 3", "repeats = 8"))
    tables = []
    for workers in (1, 2):
        outcome = run_tiny(experiment, tmp_path / f"by{workers}", workers=workers)
        assert outcome.measured == 32
        tables.append((outcome.place.folder / "results.csv").read_bytes())
    inline = run_tiny(experiment, tmp_path / "inline")
    assert {*tables} == {(inline.place.folder / "results.csv").read_bytes()}
    other = run_tiny(experiment, tmp_path / "inline", seed=4)
    assert (other.place.folder / "results.csv").read_bytes() not in tables


def test_a_torn_journal_goes_on_where_it_was_torn(tmp_path: Path) -> None:
    experiment, output = tiny(tmp_path), tmp_path / "out"
    first = run_tiny(experiment, output)
    journal = first.place.journal
    whole, table = journal.read_bytes(), (first.place.folder / "results.csv").read_bytes()
    for cut in (10, whole.find(b"\n") + 1, len(whole) // 2, len(whole) - 1):
        journal.write_bytes(whole[:cut])
        kept = max(0, whole[:cut].count(b"\n") - 1)
        again = run_tiny(experiment, output)
        assert (again.measured, again.done) == (12 - kept, 12)
        assert (first.place.folder / "results.csv").read_bytes() == table
        assert len(lines(journal)) == 13
        assert again.set_aside is None
    torn = whole.replace(b'"repeat"', b'\0\0"repeat"', 1)  # a line inside that a disk has lost
    journal.write_bytes(torn)
    assert run_tiny(experiment, output).measured == 1


def test_cells_that_nobody_vouches_for_are_set_aside(tmp_path: Path) -> None:
    experiment, output, watch = tiny(tmp_path), tmp_path / "out", Notes()
    journal = run_tiny(experiment, output).place.journal
    damaged = b"{" + journal.read_bytes()
    journal.write_bytes(damaged)
    again = run_tiny(experiment, output, watch=watch)
    assert again.measured == 12
    assert again.set_aside == output / "tiny-walk" / "full-unknown"
    assert (again.set_aside / "journal.jsonl").read_bytes() == damaged
    assert "the first line of their journal is damaged" in watch.notes[0]


def test_damaged_files_are_named_or_made_again(tmp_path: Path) -> None:
    experiment, output = tiny(tmp_path), tmp_path / "out"
    first = run_tiny(experiment, output, mode="quick")
    place, folder = first.place, first.place.folder
    for text in ("{", "{}", "[]"):
        (folder / "figures.json").write_text(text, "utf-8")
        assert read_pictured(experiment, place) == first.pictured
        (folder / "run.json").write_text(text, "utf-8")
        with pytest.raises(Damaged, match=r"run\.json is damaged"):
            best_place(output, "tiny-walk")
    for bytes_kept in (5, place.table.stat().st_size - 9):
        place.table.write_bytes(place.table.read_bytes()[:bytes_kept])
        with pytest.raises(Damaged, match=r"results\.parquet is damaged"):
            results.picture(experiment, place)
        again = run_tiny(experiment, output, mode="quick")
        assert (again.measured, again.good) == (0, True)
    assert best_place(output, "tiny-walk") == place


def test_quick_and_full_are_apart_and_share_their_cells_numbers(tmp_path: Path) -> None:
    experiment, output = tiny(tmp_path), tmp_path / "out"
    quick = run_tiny(experiment, output, mode="quick")
    assert best_place(output, "tiny-walk") == quick.place
    assert quick.measured == 4
    full = run_tiny(experiment, output)
    assert full.measured == 12
    assert best_place(output, "tiny-walk") == full.place
    rows = [(each.place.folder / "results.csv").read_text().splitlines() for each in (quick, full)]
    assert set(rows[0]) < set(rows[1])


def test_a_new_value_leaves_what_is_measured(tmp_path: Path) -> None:
    output = tmp_path / "out"
    before = run_tiny(tiny(tmp_path), output)
    old = set((before.place.folder / "results.csv").read_text().splitlines())
    more = CONFIG.replace("steps = [9, 16]", "steps = [25, 16, 9]")
    after = run_tiny(tiny(tmp_path, config=more), output)
    assert (after.measured, after.done) == (6, 18)
    assert old < set((after.place.folder / "results.csv").read_text().splitlines())
    fewer = CONFIG.replace("steps = [9, 16]", "steps = [16]")
    less = run_tiny(tiny(tmp_path, config=fewer), output)
    assert (less.measured, less.done, less.cells) == (0, 6, 6)


@pytest.mark.parametrize(
    ("old", "new", "measured"),
    [
        ("A walk", "A stroll", 0),
        ("    return {}", "    return {}  # none", 0),
        ("LIMIT = 5", "LIMIT = 6", 0),
        ("[-1, 1]", "[-1, 2]", 12),
        ("% 1000", "% 999", 12),
    ],
)
def test_other_code_is_not_mixed(tmp_path: Path, old: str, new: str, measured: int) -> None:
    output, watch = tmp_path / "out", Notes()
    first = run_tiny(tiny(tmp_path), output)
    kept = first.place.journal.read_bytes()
    assert old in MODULE
    again = run_tiny(tiny(tmp_path, MODULE.replace(old, new)), output, watch=watch)
    assert (again.measured, again.done) == (measured, 12)
    if measured:
        assert again.set_aside is not None
        assert (again.set_aside / "journal.jsonl").read_bytes() == kept
        assert "the code that measured them has changed" in watch.notes[0]
    else:
        assert again.set_aside is None
        assert watch.notes == []


def test_another_seed_is_not_mixed(tmp_path: Path) -> None:
    output, watch = tmp_path / "out", Notes()
    run_tiny(tiny(tmp_path), output)
    for seed in (4, 3, 4):
        outcome = run_tiny(tiny(tmp_path), output, seed=seed, watch=watch)
        assert outcome.measured == 12
        run = json.loads((outcome.place.folder / "run.json").read_text("utf-8"))
        assert run["seed"] == seed
        assert run["command"].endswith("--seed 4") is (seed == 4)
    assert "they were measured with seed 3, not 4" in watch.notes[0]
    assert len(list((output / "tiny-walk").glob("full-*"))) == 3


def test_a_cell_that_fails_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, output = tiny(tmp_path), tmp_path / "out"
    monkeypatch.setenv("TINY_WRONG", "9")
    outcome = run_tiny(experiment, output)
    assert (outcome.done, outcome.measured, len(outcome.failed)) == (6, 6, 6)
    assert not outcome.good
    assert "ArithmeticError: a stumble" in outcome.failed[0].traceback
    monkeypatch.delenv("TINY_WRONG")
    assert run_tiny(experiment, output).measured == 6


def test_a_process_that_dies_stops_no_other_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = tiny(tmp_path)
    monkeypatch.setenv("TINY_DEADLY", "16 fair 1")
    outcome = run_tiny(experiment, tmp_path / "out", workers=1)
    (failed,) = outcome.failed
    assert outcome.done == 11
    assert "died" in failed.traceback
    assert (failed.cell["steps"], failed.cell["kind"], failed.cell.repeat) == (16, "fair", 1)


class Broken(ProcessPoolExecutor):
    """A pool whose processes died while they had nothing to do."""

    def submit(self, *_: object, **__: object) -> NoReturn:
        raise BrokenProcessPool


def test_a_pool_that_broke_while_idle_is_left_with_nothing_lost(tmp_path: Path) -> None:
    experiment = tiny(tmp_path)
    (cell, *_) = cells_of(experiment.config.modes["quick"], 1)
    queue = _Queue([Job(experiment.name, experiment.source, "", cell)])
    assert list(queue.drain(Broken(1), 1)) == []
    assert queue


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"steps": 1}', r"a row names \['steps'\], which the cell names already"),
        ('{"x": [1]}', "a row's 'x' is a list"),
    ],
)
def test_rows_that_no_table_can_hold_are_refused(tmp_path: Path, row: str, message: str) -> None:
    module = MODULE.replace('yield {"end"', f'yield {row}\n    yield {{"end"')
    outcome = run_tiny(tiny(tmp_path, module), tmp_path / "out", mode="quick")
    assert len(outcome.failed) == 4
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(outcome.failed[0].traceback)


def test_a_column_of_two_types_is_named(tmp_path: Path) -> None:
    module = MODULE.replace('"coins": coins', '"coins": "x" if cell.repeat else 1')
    outcome = run_tiny(tiny(tmp_path, module), tmp_path / "out", mode="quick")
    assert not outcome.good
    assert "'coins' must be of one type everywhere; it is int, s" in outcome.pictured.problems[0]


def test_what_goes_wrong_in_drawing_loses_no_results(tmp_path: Path) -> None:
    module = MODULE.replace("return {}", "return results.nix").replace("return [", "return [1, ")
    outcome = run_tiny(tiny(tmp_path, module), tmp_path / "out", mode="quick")
    assert not outcome.good
    findings, draw = outcome.pictured.problems
    assert "TypeError: findings gave a int" in findings
    assert "nix" in draw
    assert (outcome.place.folder / "results.csv").exists()


def test_figures_are_drawn_again_only_when_what_they_show_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = tiny(tmp_path)
    outcome = run_tiny(experiment, tmp_path / "out", mode="quick")
    drawn: list[str] = []

    def draw(*_: object) -> dict[str, str]:
        drawn.append("again")
        return {}

    monkeypatch.setattr(results, "_draw", draw)
    assert read_pictured(experiment, outcome.place) == outcome.pictured
    assert drawn == []
    newer = tiny(tmp_path, MODULE.replace("LIMIT = 5", "LIMIT = 6"))
    read_pictured(newer, outcome.place)
    assert drawn == ["again"]
    for wrong, said in (("1 / 0", "ZeroDivisionError"), ("1 +", "SyntaxError")):
        assert said in read_pictured(tiny(tmp_path, wrong), outcome.place).problems[0]


def test_without_matplotlib_there_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = run_tiny(tiny(tmp_path), tmp_path / "out", mode="quick")
    assert outcome.good
    assert "pip install matplotlib" in outcome.pictured.note
    assert (len(outcome.pictured.findings), outcome.pictured.figures) == (2, {})


def test_two_runs_of_one_experiment_do_not_meet(tmp_path: Path) -> None:
    place = Place(tmp_path / "out", "tiny-walk", "full")
    with place.held(), pytest.raises(HoldfastError, match="Another process is running tiny-walk"):
        run_tiny(tiny(tmp_path), tmp_path / "out")
    with pytest.raises(InvalidInput, match="output must be a folder"):
        run_tiny(tiny(tmp_path), tmp_path / "tiny_walk.toml")


class Impatient(Notes):
    """Stops a run after four cells, as Ctrl-C does."""

    def advance(self, experiment: str) -> None:
        super().advance(experiment)
        if len(self.advanced) == 4:
            raise KeyboardInterrupt


def test_an_interrupted_run_keeps_what_is_done_and_waits_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, output = tiny(tmp_path), tmp_path / "out"
    monkeypatch.setenv("TINY_SLOW", "yes")
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_tiny(experiment, output, workers=1, watch=Impatient())
    assert time.monotonic() - begin < DEADLINE  # the cell that was running takes ten minutes
    assert multiprocessing.active_children() == []
    place = Place(output, "tiny-walk", "full")
    assert len((place.folder / "results.csv").read_text().splitlines()) == 5
    assert place.read_json("run.json")["cells"] == {"done": 4, "all": 12}
    monkeypatch.delenv("TINY_SLOW")
    outcome = run_tiny(experiment, output)
    assert (outcome.measured, outcome.done) == (8, 12)


def test_a_killed_run_continues(tmp_path: Path) -> None:
    path, output = write_tiny(tmp_path), tmp_path / "out"
    code = "from holdfast.cli import main; main()"
    arguments = ["lab", "run", str(path), "--output", str(output), "--workers", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], env={**os.environ, "TINY_SLOW": "yes"}
    )
    place = Place(output, "tiny-walk", "full")
    wait_until(lambda: len(lines(place.journal)) == 5)  # its head, and the first repeat of all
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 2  # a worker, and the tracker that every spawning process has
    process.kill()
    assert process.wait(DEADLINE) == -signal.SIGKILL
    wait_until(lambda: not any(map(alive, children)))  # no worker outlives its parent
    outcome = run_tiny(tiny(tmp_path), output)
    assert (outcome.measured, outcome.done) == (8, 12)


def alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
