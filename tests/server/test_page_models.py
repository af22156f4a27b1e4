"""Tests for what the page asks about models: in a real browser, of a server in its own process."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, FileChooser, Locator, Page, Route, expect
from playwright.sync_api import TimeoutError as Late

from holdfast.holdout.holdout import Holdout
from tests.server.browsing import Visiting, Visitor
from tests.server.processes import serving

ROWS, SEED = 4_000, 2027
SHARES = {"good": 0.95, "fair": 0.9, "poor": 0.7, 'we "quote" 5 % ü': 0.85}


@dataclass(frozen=True)
class Site:
    """A server of two holdouts: one for everybody here, and one whose token may be told little."""

    url: str
    folder: Path
    token: str

    def answers(self) -> list[Any]:
        """What was answered by the one for everybody."""
        with urllib.request.urlopen(f"{self.url}/api/holdouts/models/transcript") as response:
            rows: list[Any] = json.load(response)["rows"]
        return rows

    def file(self, name: str) -> Path:
        """The predictions of this name."""
        return self.folder / f"{name}.csv"


def labels() -> pd.DataFrame:
    """Rows with labels that nothing predicts."""
    random = np.random.default_rng(SEED)
    return pd.DataFrame({"row": np.arange(ROWS), "y": random.integers(0, 2, ROWS)})


def write(frame: pd.DataFrame, folder: Path, name: str, share: float, seed: int) -> None:
    """Predictions that are right on this share of the rows."""
    right = np.random.default_rng(seed).random(len(frame)) < share
    said = pd.DataFrame({"row": frame.row, "prediction": np.where(right, frame.y, 1 - frame.y)})
    said.to_csv(folder / f"{name}.csv", index=False)


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for all tests here; each asks what no other does."""
    del browser  # without one, nothing is served
    folder, frame = tmp_path_factory.mktemp("models"), labels()
    for i, (name, share) in enumerate(SHARES.items()):
        write(frame, folder, name, share, SEED + i)
    models, few = folder / "models.holdfast", folder / "few.holdfast"
    Holdout.create(models, frame, target="y", ids="row").close()
    Holdout.create(few, frame.assign(row=frame.row + 1), target="y", ids="row").close()
    with Holdout.open(few) as holdout:
        token = holdout.access.grant("analyst", name="ann", nats=0.01)[1]
    options = ("--slot", "0.001", "--log-level", "warning", "--rate", "1000", "--burst", "1000")
    with serving(models, few, log=folder / "log", options=options) as running:
        yield Site(running.url, folder, token)
        running.stop()


@dataclass(frozen=True)
class Asked:
    """What is put into the form."""

    verb: str
    files: tuple[str, ...]
    other: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    goal: str | None = None
    metric: str = "accuracy"
    precise: bool = False


def given(page: Page, site: Site, asked: Asked) -> None:
    """Fill in the form."""
    if page.locator("#view-models").is_hidden():
        page.click("#nav a[href='#models']")
    page.check(f"input[name=model-verb][value={asked.verb}]")
    page.select_option("#model-metric", asked.metric)
    if asked.goal is not None:
        page.select_option("#model-goal", asked.goal)
    page.set_input_files("#model-file", [site.file(name) for name in asked.files])
    if asked.other is not None:
        page.set_input_files("#model-other", site.file(asked.other))
    for name, text in asked.fields:
        page.fill(f"#model-{name}", text)
    if asked.precise:
        page.check("#model-precise")


def answered(page: Page, site: Site, asked: Asked) -> Any:
    """Ask; the row of the ledger that its receipt names."""
    given(page, site, asked)
    expect(page.locator("#model-price")).to_contain_text("Tells")
    page.click("#model-button")
    receipt = page.locator("#model-result button.receipt").get_attribute("title")
    (row,) = [each for each in site.answers() if each["receipt"] == receipt]
    return row


ASKED = (
    Asked("score", ("fair",)),
    Asked("score", ("fair",), fields=(("guess", "0.7"),)),
    Asked("score", ("fair",), precise=True),
    Asked("compare", ("good",), "fair"),
    Asked("compare", ("fair",), "good", precise=True, metric="error_rate"),
    Asked("gate", ("good",), fields=(("threshold", "0.5"), ("tolerance", "0.01")), goal="at_least"),
    Asked("gate", ("good",), "poor", goal="better_than", fields=(("margin", "0.01"),)),
    Asked("scores", ("good", "poor", 'we "quote" 5 % ü')),
    Asked("enter", ("poor",), fields=(("name", "the poor one"), ("guess", "0.69"))),
)


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked.verb} {asked.metric}")
def test_an_answer_is_a_sentence_a_picture_and_what_it_told(
    visitor: Visitor, page: Page, site: Site, asked: Asked
) -> None:
    before = len(site.answers())
    given(page, site, asked)
    expect(page.locator("#model-price")).to_contain_text(re.compile(r"Tells [\d.]+ nats"))
    offers = page.locator("#models .offers tbody tr")
    expect(offers).to_have_count({"gate": 3, "scores": 3, "compare": 4}.get(asked.verb, 5))
    expect(offers.first).to_contain_text(re.compile(r"nats±0\.\d+$"))
    assert len(site.answers()) == before  # a price tells nothing
    row = answered(page, site, asked)
    answer, card = row["answer"], page.locator("#model-result .answer-card")
    assert len(site.answers()) == before + 1
    expect(card.locator(".sentence")).to_have_text(f"{answer['promise']}.")
    picture = card.locator("svg[role=img]")
    expect(picture).to_have_attribute("aria-label", answer["promise"])
    expect(picture.locator(".whisker")).to_have_count(len(answer["batch"]) or 1)
    expect(card).to_contain_text("these rows, fresh labels")
    expect(card).to_contain_text(f"in {answer['answers']} answer")
    expect(card.get_by_text("a surprise", exact=True)).to_have_count(
        1 if answer["expected"] is False else 0
    )
    expect(page.locator("#model-price")).to_contain_text("Free.")
    expect(page.locator("#budget")).to_contain_text(f"in {answer['answers']} answer")
    assert visitor.faults_here() == []
    if asked.verb == "scores":
        assert row["question"]["estimator"]["names"] == list(asked.files)
    if asked.verb == "enter":
        visitor.visit("leaderboard")
        expect(page.locator("#board-table")).to_contain_text("the poor one")


def test_the_best_is_named_and_its_bar_is_a_second_answer(page: Page, site: Site) -> None:
    files = ("poor", "good", "fair")
    before = len(site.answers())
    given(page, site, Asked("best", files))
    expect(page.locator("#model-price")).to_contain_text("Tells 1.1 nats, whatever the answer")
    page.click("#model-button")
    card = page.locator("#model-result .answer-card")
    expect(card.locator(".sentence")).to_contain_text("good has the best accuracy of 3")
    expect(card.locator("svg .dot:not(.none)")).to_have_count(1)
    expect(card.locator("svg text.strong")).to_have_text("good: best")
    expect(card.locator("svg text.other")).to_have_text(["poor", "fair"])
    expect(card.locator("svg .whisker")).to_have_count(0)
    page.check("#model-precise")
    page.click("#model-button")
    expect(card.locator("svg .whisker")).to_have_count(1)
    best, score = site.answers()[before:]
    expect(card.locator("button.receipt")).to_have_attribute("title", score["receipt"])
    assert (best["question"]["verb"], score["question"]["verb"]) == ("best", "score")
    told = f"{score['answer']['told']:.2g} nats; so far"  # the best was asked before
    expect(card).to_contain_text(told)


VERDICTS = (
    (Asked("gate", ("good",), goal="at_least", fields=(("threshold", "0.6"),)), "pass"),
    (Asked("gate", ("fair",), goal="at_least", fields=(("threshold", "0.9"),)), "unclear"),
    (Asked("gate", ("poor",), goal="at_least", fields=(("threshold", "0.9"),)), "fail"),
    (Asked("gate", ("poor",), goal="at_most", fields=(("threshold", "0.9"),)), "pass"),
    (Asked("gate", ("poor",), "good", goal="better_than"), "fail"),
    (Asked("compare", ("good",), "poor", fields=(("margin", "0"),)), "better"),
    (Asked("compare", ("poor",), "good", fields=(("margin", "0.02"),)), "worse"),
    (Asked("compare", ("fair",), "good", fields=(("margin", "0.3"),)), "not shown"),
    (
        Asked("compare", ("good",), "poor", metric="error_rate", fields=(("margin", "0.01"),)),
        "better",
    ),
)
SHAPE = {"better": "compatible", "pass": "compatible", "worse": "refuted", "fail": "refuted"}


@pytest.mark.parametrize(("asked", "verdict"), VERDICTS)
def test_a_verdict_is_a_word_and_a_shape_on_the_right_side(
    page: Page, site: Site, asked: Asked, verdict: str
) -> None:
    """More is to the right and, of differences, so is better, whatever the metric."""
    row = answered(page, site, asked)
    assert row["answer"]["verdict"] == verdict
    card = page.locator("#model-result .answer-card")
    pill, picture = card.locator(".pill").first, card.locator(".picture svg")
    expect(pill).to_have_text(verdict)
    shape = f".mark-{SHAPE.get(verdict, 'unknown')}"
    expect(pill.locator(shape)).to_have_count(1)
    expect(picture.locator(shape)).to_have_count(1)
    bar = picture.locator(".whisker")
    if shape == ".mark-unknown":
        expect(bar).to_have_count(0)
        return
    left, right = ends(bar)
    at = middle(picture.locator(shape))
    upwards = verdict == "better" or (verdict == "pass") == (asked.goal != "at_most")
    upwards = upwards and verdict not in ("worse", "fail")
    assert abs((left if upwards else right) - at) < 1.5
    assert right - left > 50


def ends(bar: Locator) -> tuple[float, float]:
    """The ends of a bar, in pixels."""
    left, right = sorted(float(bar.get_attribute(name) or "nan") for name in ("x1", "x2"))
    return left, right


def middle(mark: Locator) -> float:
    """The place of a mark, in pixels."""
    circle = mark.get_attribute("cx")
    if circle is not None:
        return float(circle)
    moved = re.match(r"translate\(([\d.]+)", mark.get_attribute("transform") or "")
    assert moved is not None
    return float(moved[1])


@pytest.mark.parametrize("metric", ["accuracy", "error_rate"])
def test_a_difference_is_drawn_on_the_side_that_the_sentence_names(
    page: Page, site: Site, metric: str
) -> None:
    for new, old, word in (("good", "poor", "better"), ("poor", "fair", "worse")):
        row = answered(page, site, Asked("compare", (new,), old, metric=metric, precise=True))
        assert f"{new} is {word} than {old} by" in row["answer"]["promise"]
        picture = page.locator("#model-result .picture svg")
        left, right = ends(picture.locator(".whisker"))
        zero = float(picture.locator("line.here").get_attribute("x1") or "nan")
        assert left > zero if word == "better" else right < zero
        expect(picture).to_contain_text(f"{new} is better →")


def test_what_is_wrong_is_said_at_its_field_and_nothing_is_told(
    visitor: Visitor, page: Page, site: Site, tmp_path: Path
) -> None:
    broken, empty, text = (tmp_path / name for name in ("broken.csv", "empty.csv", "notes.txt"))
    broken.write_text("row,prediction\n1,1\n", encoding="utf-8")
    empty.touch()
    text.write_text("?", encoding="utf-8")
    visitor.may.add(400)
    before = site.answers()
    button, file = page.locator("#model-button"), page.locator("#model-file-error")
    visitor.visit("models")
    expect(page.locator("#model-price")).to_have_text("Choose a file to see the price.")
    for path, said in ((broken, "one prediction for each of the"), (empty, "is empty")):
        page.set_input_files("#model-file", path)
        expect(file).to_contain_text(said)
        expect(page.locator("#model-file")).to_have_attribute("aria-invalid", "true")
        expect(button).to_be_disabled()
    page.set_input_files("#model-file", text)
    expect(file).to_contain_text("must end in .csv, .parquet or .json; notes.txt does not")
    page.set_input_files("#model-file", site.file("good"))
    expect(file).to_be_empty()
    page.fill("#model-guess", "about 1")
    expect(page.locator("#model-guess-error")).to_have_text("Expected score must be a number.")
    page.fill("#model-guess", "1.5")
    expect(page.locator("#model-guess-error")).to_contain_text("in [0, 1]; got 1.5")
    page.fill("#model-guess", "")
    given(page, site, Asked("gate", ("good",), fields=(("threshold", "3"),)))
    expect(page.locator("#model-threshold-error")).to_contain_text("where every accuracy lies")
    given(page, site, Asked("compare", ("good",), "good"))
    expect(file).to_contain_text("the same predictions twice")
    names = page.locator("#model-names input")
    expect(names.nth(1)).to_have_value("good 2")  # of two files that are called the same
    names.nth(1).fill("good")
    expect(page.locator("#model-names-error")).to_contain_text("different names")
    names.nth(1).fill("")
    expect(page.locator("#model-names-error")).to_contain_text("needs a name")
    names.nth(1).fill("twin")
    page.select_option("#model-metric", "brier")
    expect(names.nth(1)).to_have_value("twin")  # it is still that of this file
    given(page, site, Asked("compare", ("good",), "fair", metric="roc_auc"))
    expect(page.locator("#model-metric-error")).to_contain_text("must be a mean over rows")
    page.check("input[name=model-verb][value=score]")
    for hidden in ("guess", "precise"):  # a value of a block takes none of them
        expect(page.locator(f"#model-{hidden}")).to_be_hidden()
    page.select_option("#model-metric", "brier")
    expect(page.locator("#model-guess")).to_be_visible()
    given(page, site, Asked("compare", ("good",), "fair", metric="roc_auc"))
    expect(button).to_be_disabled()
    assert visitor.faults_here() == []
    assert site.answers() == before


def test_a_guess_of_one_kind_is_none_of_another(page: Page, site: Site) -> None:
    """A score of 0.9 that is left in the form would be a very wrong difference."""
    guess = page.locator("#model-guess")
    given(page, site, Asked("score", ("good",), fields=(("guess", "0.95"),)))
    page.check("input[name=model-verb][value=gate]")
    expect(guess).to_have_value("0.95")
    page.select_option("#model-goal", "better_than")
    expect(guess).to_have_value("")
    expect(page.get_by_label("Expected difference")).to_be_visible()
    page.fill("#model-guess", "0.05")
    page.check("input[name=model-verb][value=compare]")
    expect(guess).to_have_value("0.05")
    page.select_option("#model-metric", "error_rate")
    expect(guess).to_have_value("")


def test_a_gate_against_an_incumbent_is_drawn_with_the_comparisons(
    visitor: Visitor, page: Page, site: Site
) -> None:
    """At 0 on an axis of differences: among scores it would make all bars small."""
    answered(page, site, Asked("gate", ("fair",), "poor", (("margin", "0.03"),), "better_than"))
    visitor.visit("answers")
    expect(page.locator("#answer-group option:checked")).to_contain_text("differences in accuracy")


def test_a_token_that_may_not_be_told_so_much_sees_it_before_asking(
    visitor: Visitor, page: Page, site: Site, tmp_path: Path
) -> None:
    frame = labels()
    write(frame.assign(row=frame.row + 1), tmp_path, "mine", 0.9, SEED)
    page.click("#sign-in-again")
    page.fill("#token", site.token)
    page.press("#token", "Enter")
    page.wait_for_selector("#sign-out")
    visitor.visit("models")
    page.set_input_files("#model-file", tmp_path / "mine.csv")
    expect(page.locator("#model-button")).to_be_enabled()
    page.click("#model-button")  # what takes it beyond its quota is still told
    expect(page.locator("#model-result .answer-card")).to_be_visible()
    page.fill("#model-guess", "0.8")
    expect(page.locator("#model-price.unpaid")).to_contain_text("quota")
    expect(page.locator("#model-button")).to_be_disabled()


def test_a_double_click_and_a_lost_answer_are_one_question(visitor: Visitor, page: Page) -> None:
    keys = []

    def lose_the_first(route: Route) -> None:
        if "/price/" in route.request.url:
            route.fallback()
            return
        keys.append(route.request.headers["idempotency-key"])
        answer = route.fetch()
        if len(keys) == 1:
            route.abort()
        else:
            route.fulfill(response=answer)

    visitor.may.add(0)
    before = len(visitor.site.answers())
    page.route("**/score?**", lose_the_first)
    given(page, visitor.site, Asked("score", ("good",), fields=(("guess", "0.93"),)))
    expect(page.locator("#model-button")).to_be_enabled()
    page.dblclick("#model-button")
    expect(page.locator("#model-result .answer-card")).to_be_visible()
    expect(page.locator("#model-price")).to_contain_text("Free.")
    assert (len(keys), len({*keys})) == (2, 1)
    assert len(visitor.site.answers()) == before + 1
    page.fill("#model-guess", "0.94")  # another question: another key
    expect(page.locator("#model-price")).to_contain_text("Tells")
    expect(page.locator("#model-result .answer-card")).to_have_count(0)
    page.click("#model-button")
    expect(page.locator("#model-result .answer-card")).to_be_visible()
    assert len({*keys}) == 2
    assert len(visitor.site.answers()) == before + 2


def test_what_was_priced_is_asked_though_the_file_changes(
    visitor: Visitor, page: Page, site: Site, tmp_path: Path
) -> None:
    write(labels(), tmp_path, "mine", 0.8, SEED + 10)
    visitor.visit("models")
    page.set_input_files("#model-file", tmp_path / "mine.csv")
    page.fill("#model-guess", "0.8")
    expect(page.locator("#model-price")).to_contain_text("Tells")
    write(labels(), tmp_path, "mine", 0.2, SEED + 11)
    page.click("#model-button")
    expect(page.locator("#model-result .answer-card")).to_be_visible()
    assert site.answers()[-1]["answer"]["expected"]


def chosen_by_keyboard(visitor: Visitor, page: Page, place: str) -> FileChooser:
    """The dialog for a file. The browser now and then swallows the key that opens it."""
    for _ in range(5):
        visitor.tab_to(place)
        try:
            with page.expect_file_chooser(timeout=3_000) as chooser:
                page.keyboard.press("Space")
        except Late:
            continue
        return chooser.value
    raise AssertionError(f"no dialog opened at {place}")


def test_models_are_compared_with_the_keyboard_alone(visitor: Visitor, page: Page) -> None:
    visitor.tab_to("#models")
    page.keyboard.press("Enter")
    expect(page.locator("#view-models h1")).to_be_focused()
    visitor.tab_to("score")
    page.keyboard.press("ArrowRight")
    expect(page.locator("input[name=model-verb][value=compare]")).to_be_checked()
    for place, name in (("model-file", "fair"), ("model-other", "poor")):
        chosen_by_keyboard(visitor, page, place).set_files(visitor.site.file(name))
    visitor.tab_to("model-margin")
    page.keyboard.type("0.05")
    expect(page.locator("#model-button")).to_be_enabled()
    visitor.tab_to("model-button")
    page.keyboard.press("Enter")
    expect(page.locator("#model-result .pill").first).to_have_text("better")
    expect(page.locator("#model-result .sentence")).to_contain_text("by at least 0.05")


def test_every_verb_fits_a_phone_and_can_be_read_out(visit: Visiting, site: Site) -> None:
    narrow = "[...document.querySelectorAll('.picture svg text')].filter((e) => {"
    narrow += "const b = e.getBBox(); return b.x < -1 || b.x + b.width > 361; }).length"
    with visit(viewport={"width": 360, "height": 740}) as visitor:
        page = visitor.page
        for asked in (*ASKED, Asked("best", ("good", "fair", "poor"), precise=True)):
            given(page, site, asked)
            expect(page.locator("#model-button")).to_be_enabled()
            page.click("#model-button")
            expect(page.locator("#model-result .answer-card svg[role=img]")).to_be_visible()
            expect(page.locator("#model-price")).to_contain_text("Free.")
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                assert visitor.faults_here() == [], (asked, scheme)
        assert page.evaluate(narrow) == 0


def test_neighbours_of_the_board_are_compared_once_with_their_price_before(
    visitor: Visitor, page: Page, site: Site
) -> None:
    """The route is played: what it answers is tested with the leaderboard."""
    asked = []
    pair = {"names": ["one", "other"], "same": False, "apart": False, "reason": None}
    price = {"price": 0.25, "affordable": True, "cached": False}
    offered = {**pair, "price": price, "result": None, "said": "one and other: 0.25 nats"}
    answer = {"cached": False}
    said = "one is better than other by 0.01 to 0.02 in accuracy; 0.25 nats told"
    compared = {**pair, "price": None, "apart": True, "result": answer, "said": said}
    same = {**pair, "same": True, "price": None, "result": None, "said": "the same predictions"}

    def play(route: Route) -> None:
        pricing = "/price/" in route.request.url
        asked.append("price" if pricing else "ask")
        route.fulfill(json={"neighbours": [offered if pricing else compared, same]})

    page.route("**/neighbours?metric=accuracy", play)
    for name, share in (("one", "good"), ("other", "fair")):
        given(page, site, Asked("enter", (share,), fields=(("name", name),)))
        expect(page.locator("#model-button")).to_be_enabled()
        page.click("#model-button")
        expect(page.locator("#model-result .answer-card")).to_be_visible()
    visitor.visit("leaderboard")
    board = page.locator("#neighbours")
    expect(board).to_contain_text(
        "tells about 0.25 nats in 1 comparison, more where one is a surprise"
    )
    assert asked == ["price"]
    page.dblclick("#neighbours button")
    expect(board.locator("li").first).to_contain_text("one is better than other by 0.01")
    expect(board.locator("li").first.locator(".mark-compatible")).to_be_visible()
    expect(board.locator("button")).to_have_count(0)
    assert visitor.faults_here() == []
    assert asked == ["price", "ask"]
