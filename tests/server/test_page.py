"""Tests for src/holdfast/server/page: in a real browser, against a server in its own process."""

from __future__ import annotations

import json
import math
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from holdfast.holdout.creation import preview_without_plan
from holdfast.holdout.holdout import Holdout
from holdfast.protocols.answers import rounded_up
from holdfast.report.html import number, outwards, percent
from tests.holdout.plans import board, estimates
from tests.holdout.registry import made as registry_made
from tests.holdout.tables import table
from tests.server.browsing import Visiting, Visitor
from tests.server.conftest import made, tokens_of
from tests.server.processes import serving

ENTRIES, SEED = 320, 4711  # rows of the leaderboard's table
TOLD = 2_000  # rows of the table whose answers count what they tell


@dataclass(frozen=True)
class Site:
    """A server of five holdouts: one with tokens, four that are open to all on this machine."""

    url: str
    tokens: dict[str, str]

    def get(self, what: str, role: str = "custodian", holdout: str = "study") -> Any:
        """What the server says, without the page."""
        headers = {"Authorization": f"Bearer {self.tokens[role]}"} if holdout == "study" else {}
        address = f"{self.url}/api/holdouts/{holdout}/{what}"
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as response:
            return json.load(response)

    def spent(self, holdout: str = "study") -> list[float]:
        """What is spent of every set."""
        return [each["spent"] for each in self.get("status", holdout=holdout)["sets"]]

    def answers(self, holdout: str = "study") -> list[Any]:
        """What was answered."""
        rows: list[Any] = self.get("transcript?limit=1000", holdout=holdout)["rows"]
        return rows


def text_of(row: Any) -> str:
    """What a row of the transcript says was asked; SQL comes back in capitals."""
    return str(row["question"]["estimator"]["text"]).lower()


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for all tests here; each asks what no other does."""
    del browser  # without one, nothing is served
    folder = tmp_path_factory.mktemp("page")
    study = made(folder / "study.holdfast", units=4, name="The study")
    tokens = tokens_of(study)
    tokens |= {f"second {role}": token for role, token in tokens_of(study).items()}
    entries = folder / "board.holdfast"
    rows = table(ENTRIES, seed=SEED)
    Holdout.create(entries, rows, board(), target="y", ids="number").close()
    plain = made(folder / "plain.holdfast", estimates(), units=2, open_fraction=0.3)
    registry = folder / "registry.holdfast"
    texts = {"sex": ["female", "male"]}
    registry_made(registry, ranges={"age": (18, 102)}, categories=texts).close()
    told = folder / "told.holdfast"
    Holdout.create(told, table(TOLD, seed=SEED), target="y", ids="number").close()
    options = ("--slot", "0.001", "--log-level", "warning", "--rate", "1000", "--burst", "1000")
    folders = (entries, plain, registry, study, told)
    with serving(*folders, log=folder / "log", options=options) as running:
        yield Site(running.url, tokens)
        running.stop()


def test_an_analyst_asks_and_sees_the_answer(visitor: Visitor, page: Page, site: Site) -> None:
    visitor.sign_in(site.tokens["analyst"])
    expect(page.locator("#role")).to_have_text("analyst, analyst")
    visitor.ask("avg(x)", grid="0:7:1")
    expect(page.locator("#price")).to_contain_text("of what is left")
    before = site.spent()
    page.dblclick("#ask-button")  # a double click is one question
    card = page.locator(".answer-card")
    expect(card).to_contain_text("confidence 0.4")
    (row,) = [row for row in site.answers() if text_of(row) == "avg(x)"]
    expect(card.locator(".value")).to_have_text(f"{row['answer']['value']:.0f}")
    expect(card.locator("button.receipt")).to_have_attribute("title", row["receipt"])
    assert site.spent() > before
    expect(page.locator("#price")).to_contain_text("Free.")
    visitor.visit("answers")
    line = page.locator(f"#answer-{row['number']}")
    expect(line).to_contain_text("avg(x)")
    expect(line.locator(".value")).to_have_text(f"{row['answer']['value']:.0f}")
    point = page.locator("#answer-plot g.point")
    expect(point).to_have_attribute("aria-label", re.compile(r"^avg\(x\)"))
    page.reload()
    expect(line).to_contain_text("avg(x)")  # the tab keeps its token, and the view
    page.click("#sign-out")
    expect(page.locator("#view-sign-in")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_a_verdict_says_no_more_than_it_certifies(visitor: Visitor, page: Page, site: Site) -> None:
    """Every row's `c` is 5: no look errs, but with less than 1e-7."""
    visitor.sign_in(site.tokens["analyst"])
    card, word = page.locator(".answer-card"), page.locator(".answer-card .pill").first
    for guess, said in (("5", "compatible"), ("6", "not compatible")):
        page.check("input[name=verb][value=verify]")
        visitor.ask("avg(c) + 0", guess=guess)
        page.click("#ask-button")
        expect(word).to_have_text(said)
        expect(card).to_contain_text("fresh blocks of 4 units give")
    expect(word).to_have_class("pill bad")
    visitor.visit("answers")
    page.select_option("#answer-group", label="guesses of avg(c) + 0 (2)")
    expect(page.locator("#answer-key")).to_contain_text("A ring is a guess that is compatible")
    expect(page.locator("#answer-plot .mark-compatible")).to_have_count(1)
    expect(page.locator("#answer-plot .mark-refuted")).to_have_count(1)


def test_a_range_comes_from_the_open_part(visitor: Visitor, page: Page) -> None:
    """A plan without guesses: what is refused is not told to be wrong."""
    page.select_option("#holdout", "plain")
    expect(page.locator("#where")).to_contain_text("plain")
    card, word = page.locator(".answer-card"), page.locator(".answer-card .pill").first
    for guess, said in (("5", "compatible"), ("6", "cannot tell")):
        page.check("input[name=verb][value=verify]")
        visitor.ask("avg(c)", guess=guess, tolerance="0.5")
        page.click("#ask-button")
        expect(word).to_have_text(said)
        expect(card).to_contain_text(re.compile(r"Guesses in \[4\.5.*, 5\.5.*\] are compatible"))
        expect(card).to_contain_text("going by 240 open blocks")


def test_the_page_of_a_token_that_does_not_hold(visitor: Visitor, page: Page) -> None:
    visitor.may.add(401)
    page.click("#sign-in-again")
    page.fill("#token", "hf_00000000_" + "x" * 43)
    page.press("#token", "Enter")
    expect(page.locator("#token-error")).to_contain_text("unknown")
    assert page.evaluate("sessionStorage.length") == 0


def test_a_wrong_question_is_said_at_its_field_and_costs_nothing(
    visitor: Visitor, page: Page, site: Site
) -> None:
    visitor.may.add(400)
    before = site.spent()
    visitor.sign_in(site.tokens["analyst"])
    expect(page.locator("input[name=verb][value=mean]")).to_be_checked()
    page.check("input[name=verb][value=ask]")
    page.fill("#estimator", "avg(xx)")
    expect(page.locator("#estimator-error")).to_contain_text("There is no column 'xx'")
    expect(page.locator("#estimator")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#ask-button")).to_be_disabled()
    page.fill("#estimator", "avg(c)")
    page.fill("#grid", "0:7")
    expect(page.locator("#grid-error")).to_contain_text("LOW:HIGH:STEP")
    expect(page.locator("#estimator-error")).to_be_empty()
    page.fill("#grid", "0:7:1")
    page.fill("#where-text", "g >")
    expect(page.locator("#where-text-error")).not_to_be_empty()
    page.check("input[name=verb][value=verify]")
    page.fill("#guess", "many")
    expect(page.locator("#guess-error")).to_have_text("guess must be a number.")
    expect(page.locator("#ask-button")).to_be_disabled()
    assert site.spent() == before


def test_a_mean_of_a_term_in_a_range(visitor: Visitor, page: Page, site: Site) -> None:
    visitor.may.add(400)
    before = site.spent()
    visitor.sign_in(site.tokens["analyst"])
    page.check("input[name=verb][value=ask]")
    expect(page.locator("#range")).to_be_hidden()  # it is for means alone
    page.check("input[name=verb][value=mean]")
    page.fill("#estimator", "x - c")
    expect(page.locator("#estimator-error")).to_contain_text("declare its range")
    page.fill("#range", "-9")
    expect(page.locator("#range-error")).to_have_text("range must be LOW:HIGH, two numbers.")
    page.fill("#range", "9:-9")
    expect(page.locator("#range-error")).to_contain_text("low < high")
    expect(page.locator("#ask-button")).to_be_disabled()
    assert site.spent() == before
    page.fill("#range", "-9:9")
    expect(page.locator("#price")).to_contain_text("of what is left")
    page.click("#ask-button")
    card = page.locator(".answer-card")
    expect(card).to_contain_text("cut to [−9, 9]")
    expect(card).to_contain_text("of the term cut to [-9, 9]")
    (row,) = [row for row in site.answers() if text_of(row) == "x - c"]
    assert row["question"]["range"] == [-9, 9]
    visitor.visit("answers")
    expect(page.locator(f"#answer-{row['number']}")).to_contain_text("cut to [−9, 9]")
    expect(page.locator("#answer-group")).to_contain_text("means from −9 to 9")


def test_what_is_told_has_its_sentence_and_no_budget(visitor: Visitor, page: Page) -> None:
    page.select_option("#holdout", "told")
    visitor.visit("ask")
    budget, price = page.locator("#budget"), page.locator("#price")
    expect(budget).to_contain_text(re.compile(r"told [\d.]+ nats in \d+ answers?"))
    page.check("input[name=verb][value=mean]")
    expect(page.locator("#grid")).to_be_hidden()
    visitor.ask("y = 1", guess="0.3")
    expect(price).to_contain_text(re.compile(r"Tells [\d.]+ nats if it is as expected, \[0\."))
    expect(price).to_contain_text(re.compile(r"a surprise: [\d.]+ nats or more"))
    page.click("#ask-button")
    card = page.locator(".answer-card")
    expect(card).to_contain_text("on fresh rows, the share of rows with y = 1 is between")
    expect(price).to_contain_text("Free.")
    (row,) = [row for row in visitor.site.answers("told") if row["question"]["verb"] == "mean"]
    answer = row["answer"]
    assert answer["guess"] == 0.3
    expect(card).to_contain_text(answer["promise"])
    so_far = f"{nats(answer['told_so_far'])} in {answer['answers']} answer"
    expect(card).to_contain_text(f"so far {so_far}")
    expect(budget).to_contain_text(f"told {so_far}")
    expect(budget).to_contain_text("later bars widen with it")
    expect(page.locator("#buys-body tbody tr")).to_have_count(4)
    heads = page.locator("#buys-body thead th").all_inner_texts()
    assert heads == ["Questions", "0 surprises", "1 surprise", "3 surprises"]
    page.check("#precise")
    expect(price).to_contain_text("another likely answer: up to")
    assert visitor.faults_here() == []
    page.check("input[name=verb][value=verify]")
    visitor.ask("avg(c)", guess="6")
    page.click("#ask-button")
    expect(card.locator(".pill").first).to_have_text("not compatible")
    expect(card).to_contain_text("is below 6")
    visitor.visit("answers")
    line = page.locator(f"#answer-{row['number']}")
    expect(line).to_contain_text(answer["promise"])
    expect(line).to_contain_text(nats(answer["told"]))
    expect(page.locator("#answer-table")).to_contain_text("is below 6")
    assert visitor.faults_here() == []


def nats(told: float) -> str:
    """How much is told, as the page writes it."""
    return f"{number(told, 3 if told >= 10 else 2)} nats"


def test_a_slip_is_told_and_asked_only_if_it_is_meant(visitor: Visitor, page: Page) -> None:
    before = visitor.site.spent("registry")
    page.select_option("#holdout", "registry")
    expect(page.locator("#columns li", has_text="sex")).to_contain_text("text: female, male")
    page.check("input[name=verb][value=ask]")
    page.fill("#estimator", "avg(age)")
    page.fill("#where-text", "sex = 'Male'")
    said = page.locator("#where-text-error")
    expect(said).to_contain_text("there is 'female' or 'male'. Did you mean 'male'?")
    expect(page.locator("#where-text")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#price")).to_contain_text("of what is left")
    expect(page.locator("#ask-button")).to_be_disabled()
    assert visitor.faults_here() == []
    page.check("#anyway")
    expect(page.locator("#ask-button")).to_be_enabled()
    expect(said).to_be_empty()
    expect(page.locator("#price")).to_contain_text("Did you mean 'male'?")  # still told
    page.uncheck("#anyway")
    expect(said).to_contain_text("Did you mean")
    expect(page.locator("#ask-button")).to_be_disabled()
    page.check("#anyway")
    page.fill("#where-text", "race = 'black'")  # another question, which nobody has meant
    expect(page.locator("#anyway")).to_be_hidden()
    expect(page.locator("#anyway")).not_to_be_checked()
    expect(page.locator("#price")).to_contain_text("answers are lower for it")
    expect(page.locator("#ask-button")).to_be_enabled()
    page.fill("#where-text", "sex = 'Male'")
    page.check("#anyway")
    assert visitor.site.spent("registry") == before
    page.click("#ask-button")
    card = page.locator(".answer-card")
    expect(card).to_contain_text("a block without such rows counts as the lowest point")
    expect(page.locator("#price")).to_contain_text("Free.")
    expect(page.locator("#anyway")).to_be_hidden()
    assert visitor.site.spent("registry") > before


def test_a_grid_belongs_to_its_verb_and_an_answer_to_its_form(visitor: Visitor, page: Page) -> None:
    visitor.may.add(400)
    page.select_option("#holdout", "registry")
    expect(page.locator("#columns li", has_text="sex")).to_be_visible()
    visitor.ask("median(days)", grid="0:700:100")
    page.click("#ask-button")
    card = page.locator(".answer-card")
    expect(card).to_contain_text("rounded up to a grid with step 100")
    page.check("input[name=verb][value=mean]")
    expect(page.locator("#grid")).to_have_value("")
    expect(card).to_have_count(0)
    visitor.ask("died = 1")
    page.click("#ask-button")
    expect(card).to_contain_text("mean of died = 1")
    (row,) = [
        each for each in visitor.site.answers("registry") if each["question"]["verb"] == "mean"
    ]
    assert 0 <= row["answer"]["value"] <= 1
    page.fill("#grid", "0:800:10")
    expect(card).to_have_count(0)
    expect(page.locator("#grid-error")).to_contain_text("between 0 and 1")
    page.check("input[name=verb][value=ask]")
    expect(page.locator("#grid")).to_have_value("0:700:100")
    page.check("input[name=verb][value=mean]")
    expect(page.locator("#grid")).to_have_value("0:800:10")
    page.select_option("#holdout", "plain")
    expect(page.locator("#columns li", has_text="sex")).to_have_count(0)
    expect(page.locator("#grid")).to_have_value("")


def test_an_error_takes_the_answer_before_it_away(visitor: Visitor, page: Page) -> None:
    visitor.may.add(500)
    page.select_option("#holdout", "registry")
    expect(page.locator("#columns li", has_text="sex")).to_be_visible()
    visitor.ask("avg(days)", grid="0:700:100")
    page.click("#ask-button")
    expect(page.locator(".answer-card")).to_be_visible()
    expect(page.locator("#price")).to_contain_text("Free.")
    busy = {"error": {"kind": "internal", "message": "It went wrong.", "request": "1"}}
    page.route("**/ask", lambda route: route.fulfill(status=500, json=busy))
    page.click("#ask-button")
    expect(page.locator("#ask-error")).to_contain_text("It went wrong.")
    expect(page.locator(".answer-card")).to_have_count(0)


def test_a_question_can_be_asked_with_the_keyboard_alone(visitor: Visitor, page: Page) -> None:
    visitor.tab_to("sign-in-again")
    page.keyboard.press("Enter")
    page.keyboard.type(visitor.site.tokens["second analyst"])
    page.keyboard.press("Enter")
    expect(page.locator("#view-ask h1")).to_be_focused()
    expect(page.locator("#verbs label").first).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")  # from the verb that is chosen to the next, and back
    expect(page.locator("input[name=verb][value=interval]")).to_be_checked()
    page.keyboard.press("ArrowLeft")
    visitor.tab_to("estimator")
    page.keyboard.type("y = 1")
    visitor.tab_to("grid")
    page.keyboard.type("0:1:0.2")
    expect(page.locator("#ask-button")).to_be_enabled()
    visitor.tab_to("ask-button")
    page.keyboard.press("Enter")
    expect(page.locator("#result .answer-card")).to_contain_text("y = 1")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") != "ask-button"


def test_a_long_question_runs_as_a_job(visitor: Visitor, page: Page, site: Site) -> None:
    visitor.sign_in(site.tokens["analyst"])
    page.check("input[name=verb][value=interval]")
    page.check("#as-job")
    visitor.ask("median(x)", grid="0:7:1")
    page.click("#ask-button")
    card = page.locator(".answer-card")
    expect(card).to_contain_text("interval for median(x)")
    expect(page.locator("#jobs li")).to_have_count(0)
    assert "interval" in [row["question"]["verb"] for row in site.answers()]


def test_a_job_can_be_cancelled_and_says_that_it_stays_paid(visitor: Visitor, page: Page) -> None:
    """The job is played, for a real one is done before it can be cancelled."""
    job = {"id": "0" * 24, "verb": "ask", "state": "running", "progress": 0.4}

    def play(route: Route) -> None:
        cancelled = route.request.method == "DELETE"
        job["state"] = "cancelled" if cancelled else job["state"]
        route.fulfill(json={**job, "result": None, "error": None})

    visitor.sign_in(visitor.site.tokens["analyst"])
    page.route("**/jobs", play)
    page.route("**/jobs/*", play)
    page.check("#as-job")
    visitor.ask("max(x)", grid="0:7:1")
    page.click("#ask-button")
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "40")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#jobs li")).to_contain_text("Cancelled. The question stays paid.")


def test_a_lost_answer_comes_again_and_is_paid_once(visitor: Visitor, page: Page) -> None:
    keys = []

    def lose_the_first(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        answer = route.fetch()
        if len(keys) == 1:
            route.abort()
        else:
            route.fulfill(response=answer)

    visitor.may.add(0)
    visitor.sign_in(visitor.site.tokens["analyst"])
    page.route("**/ask", lose_the_first)
    visitor.ask("min(x)", grid="0:7:1")
    page.click("#ask-button")
    expect(page.locator(".answer-card")).to_contain_text("min(x)")
    assert len(keys) == 2
    assert len({*keys}) == 1
    assert [*map(text_of, visitor.site.answers())].count("min(x)") == 1


def test_predictions_become_an_entry(visitor: Visitor, page: Page, tmp_path: Path) -> None:
    broken = tmp_path / "broken.csv"
    broken.write_text("number,prediction\n1,1\n", encoding="utf-8")
    visitor.may.add(400)
    expect(page.locator("#view-models")).to_be_visible()  # without being asked for
    visitor.visit("leaderboard")
    page.select_option("#holdout", "plain")  # which has neither labels nor row ids
    expect(page.locator("#view-ask")).to_be_visible()
    for view in ("models", "leaderboard"):
        expect(page.locator(f"#nav a[href='#{view}']")).to_be_hidden()
    page.select_option("#holdout", "board")
    expect(page.locator("#board-table")).to_contain_text("No entry yet")
    page.click("#submit-entry")
    expect(page.locator("input[name=model-verb][value=enter]")).to_be_checked()
    expect(page.locator("#model-verbs label")).to_have_count(2)  # it cannot compare
    price, result = page.locator("#model-price"), page.locator("#model-result")
    page.fill("#model-name", "always no")
    page.set_input_files("#model-file", broken)
    expect(page.locator("#model-file-error")).to_contain_text("predictions must")
    expect(page.locator("#model-button")).to_be_disabled()
    assert visitor.site.answers("board") == []
    page.set_input_files("#model-file", {"name": "p.csv", "mimeType": "", "buffer": guesses()})
    expect(price).to_contain_text("of what is left")
    page.click("#model-button")
    expect(result).to_contain_text("always no: ")
    reading = "this rule, on fresh rows (assumes that it was made without these rows' features)"
    expect(result).to_contain_text(reading)
    visitor.visit("leaderboard")
    expect(page.locator("#board-table caption")).to_contain_text(f"Scores of {reading}")
    line = page.locator("#board-table tbody tr")
    expect(line).to_contain_text("always no")
    expect(line.locator("svg.spark")).to_be_visible()
    (row,) = visitor.site.answers("board")
    expect(line.locator("button.receipt")).to_have_attribute("title", row["receipt"])
    visitor.visit("answers")
    expect(page.locator("#answer-table tbody tr")).to_contain_text(reading)
    visitor.visit("models")
    expect(page.locator("#model-guess")).to_be_hidden()
    page.select_option("#holdout", "told")
    visitor.visit("leaderboard")
    page.click("#submit-entry")
    expect(page.locator("#model-guess")).to_be_visible()
    page.fill("#model-name", "always no")
    page.fill("#model-guess", "some")
    page.set_input_files("#model-file", {"name": "p.csv", "mimeType": "", "buffer": guesses(TOLD)})
    expect(page.locator("#model-guess-error")).to_contain_text("must be a number")
    page.fill("#model-guess", "0.7")
    expect(price).to_contain_text("nats if it is as expected")
    page.click("#model-button")
    expect(result).to_contain_text("these rows, fresh labels")
    expect(result).to_contain_text("nats in")
    visitor.visit("leaderboard")
    expect(line).to_contain_text("always no")
    (score,) = [row for row in visitor.site.answers("told") if row["question"]["verb"] == "score"]
    assert score["answer"]["guess"] == 0.7


def test_a_question_about_models_is_not_asked_of_another_holdout(
    visitor: Visitor, page: Page
) -> None:
    """What can be asked of the other one never comes."""
    page.select_option("#holdout", "told")
    visitor.visit("models")
    page.set_input_files("#model-file", {"name": "p.csv", "mimeType": "", "buffer": guesses(TOLD)})
    expect(page.locator("#model-button")).to_be_enabled()
    page.route("**/board/columns", lambda route: None)
    page.select_option("#holdout", "board")
    expect(page.locator("#model-button")).to_be_disabled()
    assert page.evaluate("document.querySelector('#model-file').files.length") == 0


def guesses(rows: int = ENTRIES) -> bytes:
    """Predictions for every row of a table, all of them 0."""
    lines = [f"{number},0" for number in table(rows, seed=SEED)["number"]]
    return "\n".join(["number,prediction", *lines, ""]).encode()


def test_the_planner_answers_its_sliders(visitor: Visitor, page: Page) -> None:
    visitor.plan_quickly()
    visitor.visit("planner")
    page.fill("#rows", "5,000")
    page.fill("#queries", "20")
    told, headline = (page.locator("#planned .headline").nth(i) for i in (0, 1))
    expect(headline).to_contain_text("20 questions to 5,000 rows: every mean within ±")
    bars = preview_without_plan(5_000, 20).parts[0].bars
    half = f"±{rounded_up(bars[0]['half_widths'][0], 2)}"
    expect(told).to_contain_text("5,000 rows, of which 3,000 are sealed")
    expect(told.locator("b").first).to_have_text(half)
    expect(page.locator("#planned svg .series").first).to_be_attached()
    page.focus("#queries-slider")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#queries")).to_have_value("30")
    expect(page.locator("#queries-slider")).to_have_attribute("aria-valuetext", "30")
    names = page.locator("#planned .card").last.locator("tbody th").all_inner_texts()
    spoken = page.locator("#planned figure svg").first.get_attribute("aria-label") or ""
    assert names
    assert all(name in spoken for name in names)
    page.fill("#confidence", "2")
    expect(page.locator("#confidence-error")).to_contain_text("from 0.5 to 0.9999")


def test_the_custodian_divides_revokes_and_checks(visitor: Visitor, page: Page, site: Site) -> None:
    secret = site.tokens["second viewer"]
    visitor.sign_in(site.tokens["custodian"])
    visitor.visit("custodian")
    line = page.locator("#tokens tbody tr", has_text=secret.split("_")[1])
    line.get_by_role("button", name="Revoke viewer").click()
    page.click("#confirm-no")
    expect(line.locator(".pill")).to_have_text("good")
    line.get_by_role("button", name="Revoke viewer").click()
    page.click("#confirm-yes")
    expect(line.locator(".pill")).to_have_text("revoked")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        site.get("status", "second viewer")
    quota = page.locator("#tokens tbody tr", has_text=site.tokens["analyst"].split("_")[1])
    quota.locator("input").fill("90")
    quota.get_by_role("button", name="Save").click()
    expect(page.locator("#tokens-said")).to_contain_text("may spend 90 %")
    assert [each["quota"] for each in site.get("tokens") if each["quota"]] == [0.9]
    page.click("#check-button")
    expect(page.locator("#checked")).to_contain_text("Everything is as it should be.")
    expect(page.locator("#checked li").first).to_contain_text("chain")
    page.click("#nav a[href='#ask']")  # and back: the log has it all
    visitor.visit("custodian")
    expect(page.locator("#audit")).to_contain_text("revoked the token of viewer")


def test_who_is_no_custodian_does_not_see_the_view(visitor: Visitor, page: Page) -> None:
    visitor.sign_in(visitor.site.tokens["viewer"])
    expect(page.locator("#nav-custodian")).to_be_hidden()
    expect(page.locator("#ask")).to_be_hidden()
    expect(page.locator("#viewer-note")).to_be_visible()
    page.evaluate("location.hash = 'custodian'")
    expect(page.locator("#view-ask")).to_be_visible()


def test_every_view_fits_and_can_be_read_out(visitor: Visitor, page: Page) -> None:
    visitor.plan_quickly()
    for views in (("models", "leaderboard"), ("ask", "answers", "planner", "custodian")):
        if "custodian" in views:
            visitor.sign_in(visitor.site.tokens["custodian"])
        for width in (360, 1240):
            page.set_viewport_size({"width": width, "height": 740})
            page.reload()
            for view in views:
                visitor.visit(view)
                expect(page.locator(f"#view-{view} h1")).to_be_visible()
                expect(page.locator("[aria-current=page]")).to_have_count(1)
                assert visitor.faults_here() == [], (view, width)


def test_numbers_are_written_as_in_reports_and_themes_can_be_chosen(visit: Visiting) -> None:
    with visit(color_scheme="light") as visitor:
        numbers = [0, 0.3, -12345.678, 4.69e-10, 8.1645e-5, 0.00064115, 56, 1e9, 123456.789, -0.25]
        shares = [0, 1e-9, 0.00012, 0.0068, 0.055, 0.25, 0.99996, 1]
        ends = [(0.0001752, 0.1441), (0.100390601524, 0.660004477506), (12, 13.5), (-3.25, 8)]
        script = """async ([numbers, shares, ends]) => {
          const { bar, number, percent } = await import("/page/format.js");
          return [numbers.map((value) => number(value, 3)), shares.map(percent),
            ends.map(([low, high]) => bar({ low, high }))];
        }"""
        assert visitor.page.evaluate(script, [numbers, shares, ends]) == [
            [number(each, 3) for each in numbers],
            [percent(each) for each in shares],
            [
                f"[{fully(low, high - low, False)}, {fully(high, high - low, True)}]"
                for low, high in ends
            ],
        ]
        paper = "getComputedStyle(document.documentElement).backgroundColor"
        seen = [visitor.page.evaluate(paper)]
        for _ in range(3):
            visitor.page.click("#theme")
            seen.append(visitor.page.evaluate(paper))
        assert seen == [seen[0], seen[0], "rgb(18, 22, 28)", seen[0]]


def fully(end: float, width: float, up: bool) -> str:
    """An end of a bar as reports write it, with the zeros that align a column."""
    shown = outwards(end, width, up=up)
    decimals = max(0, 2 - math.floor(math.log10(width)))
    return f"{float(shown.replace('−', '-')):.{decimals}f}".replace("-", "−")


def test_a_page_that_breaks_the_policy_would_be_noticed(visit: Visiting) -> None:
    with pytest.raises(AssertionError, match="policy: style-src"), visit() as visitor:
        visitor.page.evaluate("document.body.setAttribute('style', 'color: red')")
