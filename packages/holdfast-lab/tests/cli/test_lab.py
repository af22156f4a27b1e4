"""`holdfast lab list`, `run`, `draw`, `report`: exit status, JSON, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.lab.runner.tiny import CONFIG, MODULE, write_tiny

from holdfast.cli.app import run


class Lab:
    """The lab's commands on a tiny experiment, in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.output, self._capsys = folder, folder / "out", capsys
        self.path = write_tiny(folder)

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        status = run(["lab", *arguments])
        said = self._capsys.readouterr()
        return status, said.out, said.err

    def run(self, *arguments: str) -> tuple[int, str, str]:
        given = (str(self.path), "--output", str(self.output), "--workers", "0", "--quick")
        return self("run", *given, *arguments)

    def json(self, *arguments: str) -> Any:
        status, out, err = self(*arguments, "--json")
        assert (status, err) == (0, "")
        return json.loads(out)


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lab:
    return Lab(tmp_path, capsys)


def test_the_list_names_every_experiment(lab: Lab) -> None:
    listed = lab.json("list", "--output", str(lab.output))
    assert listed["broken"] == []
    status, out, _ = lab("list")
    assert status == 0
    for each in listed["experiments"]:
        assert set(each) == {"name", "title", "group", "cells", "results"}
        assert 0 < each["cells"]["quick"] <= each["cells"]["full"]
        assert each["results"] == {"full": None, "quick": None}
        assert f" {each['name']} " in out


def test_the_list_knows_what_is_done(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.run()
    monkeypatch.setattr("holdfast_lab.runner.experiment._folder", lambda: lab.folder)
    output = ("--output", str(lab.output))
    (each,) = lab.json("list", *output)["experiments"]
    assert each["results"] == {"full": None, "quick": {"done": 4, "all": 4}}
    assert " quick " in lab("list", *output)[1].splitlines()[1]
    write_tiny(lab.folder, config=CONFIG.replace("seed", "sead"))
    status, out, err = lab("list", *output)
    assert (status, "tiny-walk" in out) == (0, False)
    assert "Did you mean 'seed'" in err
    assert lab("run", "--all", *output)[0] == 2


def test_a_run_says_what_it_found(lab: Lab) -> None:
    status, out, err = lab.run()
    assert (status, err) == (0, "")
    assert "tiny-walk (quick): 4 of 4 cells, 4 measured now" in out
    assert "still walks end at 0: 0 (expected 0); holds" in out
    assert "walks < 5: 4 (expected many); DOES NOT HOLD" in out
    assert "4 of 4 cells, 0 measured now" in lab.run()[1]


def test_its_json(lab: Lab) -> None:
    status, out, err = lab.run("--json", "--seed", "9")
    assert (status, err) == (0, "")
    (said,) = json.loads(out)["experiments"]
    assert said["folder"] == str(lab.output / "tiny-walk" / "quick")
    assert (said["name"], said["mode"], said["seed"]) == ("tiny-walk", "quick", 9)
    assert (said["cells"], said["done"], said["measured"], said["failed"]) == (4, 4, 4, [])
    assert [each["holds"] for each in said["findings"]] == [True, False]
    assert said["set_aside"] is None
    _, out, _ = lab.run("--json", "--seed", "10")
    assert Path(json.loads(out)["experiments"][0]["set_aside"]).is_dir()


def test_a_failing_cell_is_status_1(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_WRONG", "9")
    status, out, err = lab.run()
    assert status == 1
    assert "0 of 4 cells" in out
    assert "Failed: steps=9, kind=fair, scale=1.5, repeat 0" in err
    assert err.count("ArithmeticError: a stumble") == 1  # of all four, which fail alike
    assert err.count("Failed: ") == 4
    status, out, _ = lab.run("--json")
    assert status == 1
    (said,) = json.loads(out)["experiments"]
    assert said["failed"][0]["parameters"] == {"steps": 9, "kind": "fair", "scale": 1.5}


def test_ctrl_c_is_status_1(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast_lab.runner.run.run_experiments", stopped)
    status, out, err = lab.run()
    assert (status, out) == (1, "")
    assert err.splitlines() == ["What is finished is kept; the same command continues.", "Stopped."]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "names of experiments, or --all alone"),
        (["run", "x", "--all"], "names of experiments, or --all alone"),
        (["run", "no-such-thing"], "name must be the name of an experiment"),
        (["run", "grid-size", "--seed", "-1"], "seed must be a whole number"),
        (["run", "grid-size", "--workers", "-1"], "workers must be a whole number"),
        (["run", "grid-size", "--repeats", "3"], "--repeats"),
        (["draw", "--all", "--output", "none"], "output must be a folder of results"),
        (["draw", "grid-size", "--output", "none"], "Run it first: holdfast lab run grid-size"),
        (["report", "--results", "none"], "results must be a folder of results"),
    ],
)
def test_bad_questions(lab: Lab, arguments: list[str], message: str) -> None:
    status, out, err = lab(*arguments)
    assert (status, out) == (2, "")
    assert message in err


def test_figures_are_drawn_from_results_alone(lab: Lab) -> None:
    lab.run()
    newer = MODULE.replace("    coins = ", "    raise AssertionError\n    coins = ")
    write_tiny(lab.folder, newer.replace("LIMIT = 5", "LIMIT = 6"))
    for name in ("journal.jsonl", "findings.json", "results.csv", "run.json"):
        (lab.output / "tiny-walk" / "quick" / name).unlink()
    drawn = lab.json("draw", str(lab.path), "--output", str(lab.output))["drawn"]
    assert [each["what"] for each in drawn[0]["findings"]][1] == "walks < 6"
    status, out, _ = lab("draw", str(lab.path), "--output", str(lab.output))
    assert status == 0
    assert "walks < 6" in out


def test_the_report_replaces_only_itself(lab: Lab) -> None:
    lab.run()
    page = lab.folder / "lab.html"
    given = ("report", str(lab.path), "--results", str(lab.output), "-o", str(page))
    said = lab.json(*given)
    assert said["shown"] == ["tiny-walk"]
    assert said["bytes"] == page.stat().st_size
    assert len(said["not_run"]) == len(lab.json("list")["experiments"])
    first = page.read_bytes()
    assert lab("report", "grid-size", *given[1:])[0] == 0  # which is shown anyhow, and once
    assert page.read_bytes() == first
    page.write_text("mine", "utf-8")
    status, _, err = lab(*given)
    assert status == 2
    assert "a page of the lab" in err
    assert page.read_text("utf-8") == "mine"
