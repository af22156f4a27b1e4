"""The benchmarks' own arithmetic, and that the committed pages show the committed results."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

import pytest

from benchmarks import paying, run, service
from benchmarks.comparing import compared, comparison_table
from benchmarks.tables import between_marks, milliseconds, ratio, replace_section, table
from benchmarks.timing import Results, in_turns, process, recorded
from benchmarks.watching import peak_memory


@pytest.fixture(scope="module")
def results() -> Results:
    found: Results = json.loads(run.RESULTS.read_text("utf-8"))
    return found


def test_the_committed_comparisons_follow_from_the_measurements(results: Results) -> None:
    assert run.collected(results)["comparisons"] == results["comparisons"]
    assert len(results["comparisons"]) > 5


def test_the_committed_pages_show_the_committed_results(results: Results) -> None:
    assert run.PAGE.read_text("utf-8") == run.page(results)
    assert between_marks(run.DOCS.read_text("utf-8")) == run.summary(results).strip()


def test_the_committed_results_say_when_and_with_what(results: Results) -> None:
    where = results["machine"]
    assert {"numpy", "opendp", "diffprivlib"} <= set(where["versions"])
    assert where["date"] in run.summary(results)


def test_every_part_is_described(results: Results) -> None:
    page = run.DOCS.read_text("utf-8")
    assert [name for name in run.PARTS if f"| `{name}` |" not in page] == []
    assert set(results["parts"]) <= set(run.PARTS)


def test_a_comparison_is_a_ratio_of_medians_and_its_target_is_met_or_not() -> None:
    ours, floor = {"median": 3.0, "best": 1.0}, {"median": 2.0, "best": 2.0}
    found = compared("this", ours, "that", floor, at_most=1.5)
    assert (found["ratio"], found["ratio of best"], found["met"]) == (1.5, 0.5, True)
    assert compared("this", ours, "that", floor, at_most=1.4)["met"] is False
    assert compared("this", ours, "that", floor, at_least=1.6)["met"] is False
    assert compared("this", ours, "that", floor, at_least=1.5)["target"] == "≥ 1.5"
    assert compared("this", ours, "that", floor)["met"] is None


def test_a_missed_target_is_shown_as_missed() -> None:
    slow, fast = {"median": 4.0, "best": 4.0}, {"median": 0.002, "best": 0.002}
    rows = [
        compared("slow", slow, "fast", fast, at_most=1),
        compared("large", slow, "small", slow, unit="MB", at_most=1),
    ]
    lines = comparison_table(rows).splitlines()
    assert lines[2] == "| slow | 4,000 ms | fast | 2 ms | 2,000 | 2,000 | ≤ 1 | **missed** |"
    assert lines[3] == "| large | 4 MB | small | 4 MB | 1 | 1 | ≤ 1 | yes |"


def test_numbers_are_short() -> None:
    assert [milliseconds(s) for s in (0.0012345, 0.12345, 1234.5)] == [
        "1.23 ms",
        "123 ms",
        "1,234,500 ms",
    ]
    assert [ratio(x) for x in (0.12345, 999.4, 1234.5)] == ["0.123", "999", "1,234"]
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def test_jobs_take_turns_after_a_warm_up() -> None:
    order: list[str] = []
    jobs = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    times = recorded(in_turns(jobs, repeats=2))
    assert order == ["a", "b"] * 3
    assert {name: each["repeats"] for name, each in times.items()} == {"a": 2, "b": 2}
    order.clear()
    assert len(in_turns(jobs, repeats=1, slow=["b"])["a"].seconds) == 5


def test_only_what_is_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before <!-- results --> old <!-- /results --> after\n", "utf-8")
    replace_section(page, "new\n")
    text = page.read_text("utf-8")
    assert text == "before <!-- results -->\n\nnew\n\n<!-- /results --> after\n"
    assert between_marks(text) == "new"


def test_a_fresh_process_returns_what_it_prints() -> None:
    assert process("print(6 * 7)")() == "42\n"


def test_bare_commits_have_as_many_rows_of_the_given_sizes(tmp_path: Path) -> None:
    job = paying.bare(tmp_path / "bare.sqlite", [5, 9], "NORMAL")
    job()
    job()
    with sqlite3.connect(tmp_path / "bare.sqlite") as connection:
        found = connection.execute("SELECT length(body) FROM t ORDER BY number").fetchall()
    connection.close()
    assert found == [(5,), (9,), (5,), (9,)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peak_memory_counts_children_and_sees_what_was_freed() -> None:
    floor = peak_memory("pass")
    large = peak_memory("data = b'x' * 60_000_000; del data")
    assert 55 < large.largest - floor.largest < 75
    both = peak_memory(
        "import subprocess, sys\n"
        "code = 'data = bytes(range(256)) * 160_000; print(1, flush=True); input()'\n"
        "process = subprocess.Popen([sys.executable, '-c', code], stdin=subprocess.PIPE,\n"
        "                           stdout=subprocess.PIPE)\n"
        "process.stdout.readline()\n"
        "data = b'x' * 60_000_000\n"
    )
    assert 55 < both.largest - floor.largest < 75
    assert both.together > both.largest + 35


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_job_that_fails_is_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="did not run"):
        peak_memory("import sys; sys.stderr.close(); raise ValueError")


@pytest.mark.parametrize(
    ("ours", "bare", "met"), [(120, 200, True), (119, 200, False), (200, 5_000, True)]
)
def test_a_service_reaches_a_share_of_bare_commits_or_enough(
    ours: int, bare: int, met: bool
) -> None:
    def runs(rate: int) -> list[Results]:
        return [{"answers": 10 * rate, "seconds": 10.0, "p50": 0.1, "p99": 0.2}] * 3

    found = {
        "clients": 64,
        "workers": 2,
        "blocks": 3_000,
        "questions": 20_000,
        "runs": {service.OURS: runs(ours), service.BARE: runs(bare)},
    }
    (row,) = service.comparisons(found)
    assert (row["measured"], row["floor"], row["met"]) == (ours, bare, met)
    assert f"| {ours:,} | {ours:,} | 100 ms | 200 ms |" in service.section(found)
