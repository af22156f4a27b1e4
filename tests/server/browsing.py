"""A browser for tests: one visitor at a time, who notes whatever a strict page must not do."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from holdfast.holdout.creation import preview_without_plan

__all__ = ["Visiting", "Visitor", "one_browser", "visiting"]

CHROMIUM = Path("/usr/bin/chromium")
_QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
_QUIETER = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
_PATIENCE = 120_000  # milliseconds: a machine may be busy with other tests
_REFUSED = re.compile(r"Failed to load resource: (?:.* status of (\d+)|net::ERR_FAILED)")
_POLICE = """addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));"""

FOCUSED = """() => {
  const here = document.activeElement;
  const style = getComputedStyle(here.matches(".choices input") ? here.parentElement : here);
  return [[here.id, here.hash ?? "", here.value ?? ""], style.outlineStyle];
}"""
ACROSS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SETTLED = """() => [...document.querySelectorAll("main > section:not([hidden])")].every((view) =>
  !view.innerText.includes("Loading") && !view.querySelector("[aria-busy]"))"""
# What a screen reader could not name, or would name twice.
UNREADABLE = """() => {
  const faults = [];
  const find = (what) => [...document.querySelectorAll(what)];
  const seen = (what) => find(what).filter((e) => e.offsetParent !== null);
  const blame = (what, test) => faults.push(...seen(what).filter(test).map((e) =>
    `${what}: ${e.outerHTML.slice(0, 200)}`));
  const labels = (e) => [...(e.labels ?? [])].map((label) => label.textContent.trim()).join("");
  const label = (e) => e.getAttribute("aria-label") ?? "";
  blame("input, select, textarea", (e) => !label(e) && !labels(e));
  blame("button, a[href], summary", (e) => !label(e) && !e.textContent.trim());
  blame("th", (e) => !e.scope);
  blame("table", (e) => !e.caption?.textContent);
  blame("img", (e) => !e.hasAttribute("alt"));
  blame("main svg", (e) => !label(e) && e.getAttribute("aria-hidden") !== "true");
  const levels = seen("main :is(h1, h2, h3, h4)").map((e) => Number(e.tagName[1]));
  const jumps = levels.some((level, i) => level > (levels[i - 1] ?? 0) + 1);
  if (jumps || levels.filter((level) => level === 1).length !== 1) faults.push(`levels ${levels}`);
  const ids = find("[id]").map((e) => e.id);
  faults.push(...ids.filter((id, i) => ids.indexOf(id) !== i).map((id) => `twice: ${id}`));
  const named = ["aria-describedby", "aria-labelledby", "for"].flatMap((attribute) =>
    find(`[${attribute}]`).flatMap((e) => e.getAttribute(attribute).split(" ")));
  faults.push(...named.filter((id) => !ids.includes(id)).map((id) => `nothing there: ${id}`));
  for (const landmark of ["body > header", "nav#nav", "main"]) {
    if (find(landmark).length !== 1) faults.push(`landmark: ${landmark}`);
  }
  return faults;
}"""

_SEEN = ":visible"
_METHOD = {"blocks": None, "certified": True, "half_width": None, "about": "What it does."}
_STUDY = {
    "rows": 100_000,
    "queries": 500,
    "tail": 0.25,
    "confidence": 0.95,
    "methods": [
        {**_METHOD, "name": "one", "label": "One way", "half_width": 0.04, "blocks": 100_000},
        {
            **_METHOD,
            "name": "other",
            "label": "Another, of which nothing is known",
            "reason": "So.",
        },
        {**_METHOD, "name": "naive", "label": "Naive", "half_width": 0.007, "certified": False},
    ],
    "curve": [
        {"queries": 50, "one": 0.02, "other": 0.1, "naive": 0.006},
        {"queries": 500, "one": 0.04, "other": None, "naive": 0.007},
    ],
    "told": preview_without_plan(100_000, 500).to_dict(),
}


@dataclass
class Visitor:
    """A page, and what it did that it should not. `may` are statuses that a test provokes
    (0: no response); `site` is what a test module says of the server."""

    page: Page
    url: str
    site: Any = None
    may: set[int] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Note errors, violations of the policy, and requests to other places."""
        self.page.add_init_script(_POLICE)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        refused = _REFUSED.match(message.text)
        if refused is not None and int(refused[1] or 0) in self.may:
            return
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.url + "/", "data:")):
            self.faults.append(f"elsewhere: {request.url}")

    def sign_in(self, token: str) -> None:
        """From the first page, which is open to all, to the holdout of a token."""
        self.page.click("#sign-in-again")
        self.page.fill("#token", token)
        self.page.press("#token", "Enter")
        self.page.wait_for_selector("#sign-out")
        self.page.wait_for_selector(f"#columns button{_SEEN}, #model-verbs label{_SEEN}")

    def visit(self, view: str) -> None:
        """Another view."""
        self.page.click(f"#nav a[href='#{view}']")

    def plan_quickly(self) -> None:
        """The planner's first study takes seconds of computing: one is played in its place."""
        self.page.route("**/api/plan?rows=100000&**", lambda route: route.fulfill(json=_STUDY))

    def tab_to(self, identity: str) -> None:
        """Press the tab key until an element (by id, or a link by its hash) has the focus, which
        must be seen."""
        for _ in range(60):
            self.page.keyboard.press("Tab")
            identities, outline = self.page.evaluate(FOCUSED)
            if identity in identities:
                assert outline != "none"
                return
        raise AssertionError(f"the tab key does not lead to {identity}")

    def faults_here(self) -> list[str]:
        """What does not fit the width or cannot be read out, once everything is there."""
        self.page.wait_for_function(SETTLED)
        across = self.page.evaluate(ACROSS)
        wide = [] if across <= 0 else [f"{across} pixels too wide"]
        return [*wide, *self.page.evaluate(UNREADABLE)]

    def ask(self, estimator: str, **fields: str) -> None:
        """Fill in the form, of an estimate where there is a grid, and wait for the price."""
        if "grid" in fields and self.page.locator("input[name=verb][value=mean]").is_checked():
            self.page.check("input[name=verb][value=ask]")
        for name, text in {"estimator": estimator, **fields}.items():
            self.page.fill(f"#{name}", text)
        self.page.wait_for_selector("#ask-button:enabled")


Visiting = Callable[..., AbstractContextManager[Visitor]]


@contextmanager
def one_browser() -> Iterator[Browser]:
    """Debian's chromium. Without one there is nothing to test, which must not go unnoticed."""
    if not CHROMIUM.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{CHROMIUM} is missing")
        pytest.skip(f"{CHROMIUM} is missing: apt install chromium")
    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*_QUIET, *_QUIETER], timeout=_PATIENCE
        )
        yield browser
        browser.close()


@contextmanager
def visiting(browser: Browser, url: str, **how: Any) -> Iterator[Visitor]:
    """A visitor of the page; whatever went wrong fails the test that it went wrong in."""
    context = browser.new_context(**{"viewport": {"width": 1240, "height": 900}, **how})
    context.set_default_timeout(_PATIENCE)
    visitor = Visitor(context.new_page(), url)
    visitor.watch()
    try:
        visitor.page.goto(url)
        visitor.page.wait_for_selector(f"#verbs label{_SEEN}, #model-verbs label{_SEEN}")
        yield visitor
        assert not visitor.faults, visitor.faults
    finally:
        context.close()
