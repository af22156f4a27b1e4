"""The lab's page: figures and findings of all experiments, and nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from tests.lab.runner.tiny import CONFIG, DRAWING, run_tiny, tiny

from holdfast_lab.page import digest_of, inline_svg, lab_html, read_chapters
from holdfast_lab.runner.experiment import Experiment, find_experiments
from tests.report.pages import Page


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Experiment, Path]:
    folder = tmp_path_factory.mktemp("lab")
    experiment = tiny(folder, DRAWING)
    run_tiny(experiment, folder / "out")
    return experiment, folder / "out"


@pytest.fixture(scope="module")
def page(results: tuple[Experiment, Path]) -> Page:
    experiment, output = results
    return Page(lab_html(read_chapters([experiment], output)))


def test_it_needs_nothing_but_itself(page: Page) -> None:
    assert "://" not in page.source
    assert "default-src 'none'" in page.source
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "object", "metadata"})
    links = page.values("href")
    assert links
    assert all(link.startswith("#") for link in links)
    assert page.values("src") == []
    assert page.source.count("<style") == 1
    assert "url(#" in page.source
    assert not re.search(r"url\((?!#)", page.source)


def test_ids_of_several_figures_do_not_meet(page: Page) -> None:
    ids = page.values("id")
    assert page.source.count('<svg class="figure"') == 2  # the same figure, twice
    assert len(ids) == len(set(ids))
    referred = {link[1:] for link in page.values("href")}
    referred |= set(re.findall(r"url\(#([^)]+)\)", page.source))
    assert referred <= set(ids)
    assert {name.split("-")[2] for name in ids if name.startswith("tiny-walk-")} == {"0", "1"}


def test_headlines_open_the_page(results: tuple[Experiment, Path]) -> None:
    experiment, output = results
    path = experiment.config.path
    path.write_text(CONFIG.replace("sources =", 'headlines = ["still walks"]\nsources ='), "utf-8")
    try:
        chosen = find_experiments([str(path)])
        page = Page(lab_html(read_chapters(chosen, output)))
    finally:
        path.write_text(CONFIG, "utf-8")
    assert "How far a <walk> gets, and 1 more there" in page.words
    assert page.words.count("still walks end at 0") == 2
    assert page.cells.count("walks\u00a0<\u00a05") == 1  # beside the figure only


def test_it_says_what_was_found_and_how(page: Page) -> None:
    words = page.words
    assert "1 of 1 experiment run; 1 of 2 expectations met" in words
    assert words.count("still walks end at 0") == 2  # on top, and beside its figure
    row = page.cells.index("walks\u00a0<\u00a05")
    assert page.cells[row + 1 : row + 4] == ["12", "many", "does not hold"]
    assert "Steps of one & no other." in words
    assert "Squares <against> steps" in words
    assert "How far a <walk> gets" in words
    assert "Pearson 1905" in words
    assert "tiny_walk.toml seed 3; the full run, 20" in words
    assert "12 cells in" in words
    assert "numpy" in words
    assert "The same in all: scale = 1.5." in words
    assert "Not run" not in words


def test_what_was_not_run_has_its_command(results: tuple[Experiment, Path], tmp_path: Path) -> None:
    shown = Page(lab_html(read_chapters([results[0]], tmp_path)))
    assert "0 of 1 experiment run" in shown.words
    assert "Not run" in shown.words
    assert shown.cells[1:] == [f"holdfast lab run {results[0].called}", "12 cells"]


def test_unfinished_and_failing_parts_say_so(tmp_path: Path) -> None:
    module = DRAWING.replace("new_figure(width=3", "new_figure(nix=3")
    experiment = tiny(tmp_path, module)
    run_tiny(experiment, tmp_path / "out", mode="quick")
    record = tmp_path / "out" / "tiny-walk" / "quick" / "run.json"
    record.write_text(record.read_text("utf-8").replace('"all": 4', '"all": 9'), "utf-8")
    words = Page(lab_html(read_chapters([experiment], tmp_path / "out"))).words
    assert "Not finished. 4 of 9 cells are done." in words
    assert "Something went wrong in making this part: TypeError" in words
    assert "1 of them quickly" in words


def test_drawings_cannot_act() -> None:
    drawn = inline_svg(
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        'onload="x()" viewBox="0 0 30 20"><script>x()</script><style>*{fill: red}</style>'
        '<g id="a" onclick="x()"><image xlink:href="http://x/y.png"/></g>'
        '<image xlink:href="data:image/png;base64,AAAA"/><use xlink:href="#a"/>'
        "<foreignObject><p/></foreignObject></svg>",
        "one",
        'a "label"',
    )
    assert "x()" not in drawn
    assert "://" not in drawn
    assert "red" not in drawn
    assert "<p" not in drawn
    assert 'href="data:image/png;base64,AAAA"' in drawn
    assert '<g id="one-a">' in drawn
    assert 'href="#one-a"' in drawn


def test_the_digest_groups_by_what_tells_rows_apart() -> None:
    rows = [
        {"size": size, "kind": "x", "repeat": repeat, "method": method, "step": step, "error": 0.5}
        for size in (1, 2)
        for repeat in range(3)
        for method in ("a", "b")
        for step in (10, 20)
    ]
    fixed, means, by, counts = digest_of(pd.DataFrame(rows), ["size", "kind"])
    assert fixed == {"kind": "x"}
    assert by == ["size", "method", "step"]
    assert list(means.columns) == ["size", "method", "step", "error"]
    assert counts == [3] * 8
    alone = digest_of(pd.DataFrame({"repeat": [0, 1], "hits": [1, 3]}), [])
    assert alone.means.to_dict("list") == {"hits": [2.0]}
    assert alone.counts == [2]


def test_other_words_of_a_config_are_only_words(tmp_path: Path) -> None:
    evil = "</p><script>alert(1)</script>"
    experiment = tiny(tmp_path, config=CONFIG.replace("Steps of one", f"{evil} one"))
    run_tiny(experiment, tmp_path / "out", mode="quick")
    shown = Page(lab_html(read_chapters([experiment], tmp_path / "out")))
    assert "script" not in shown.tags
    assert evil in shown.words
