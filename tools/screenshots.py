"""Takes the screenshots of the page that the documentation shows: `python -m tools.screenshots`.

A synthetic registry is sealed, served by a process of its own, asked over HTTP by two analysts, and
shown in Debian's chromium. With a folder as argument the pictures go there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, sync_playwright

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
CHROMIUM = "/usr/bin/chromium"
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
QUIETER = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
HOLDFAST = Path(sys.executable).with_name("holdfast")
ROWS = 400_000
LARGEST = 250_000  # bytes of a picture

MEANS = (
    *("ill", "treated", "ill and treated", "age >= 65", "score > 0.8", "ill or score > 0.5"),
    *("age < 30", "not ill", "score / 2", "ill and age < 50", "treated and age >= 65"),
)
WHERES = (None, None, "region = 'north'", None)
ESTIMATES = ("avg(age)", "median(age)", "quantile_cont(age, 0.9)", "avg(age) filter (where ill)")


def registry(path: Path) -> NDArray[np.bool_]:
    """A table of people who are ill or not, written to a file; who is ill comes back."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(2026)
    age = random.integers(18, 91, ROWS)
    score = random.random(ROWS).round(3)
    odds = np.exp(0.05 * (age - 60) + 2.5 * (score - 0.5))
    ill: NDArray[np.bool_] = random.random(ROWS) < odds / (1 + odds)
    columns: dict[str, Any] = {
        "person": np.arange(ROWS),
        "age": age,
        "score": score,
        "region": random.choice(["north", "south", "east"], ROWS),
        "treated": random.random(ROWS) < 0.4,
        "ill": ill,
    }
    pq.write_table(pa.table(columns), path)
    return ill


def run(*words: object) -> Any:
    """What a command of Holdfast prints, as data."""
    done = subprocess.run(
        [HOLDFAST, *map(str, words), "--json"], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def sealed(folder: Path, data: Path) -> dict[str, str]:
    """Seal the table under a plan of several parts, and make tokens."""
    protocols = "estimate=60,mean=200,verify=60"
    ranges = ("--range", "age=18:90", "--range", "score=0:1")
    made = ("--target", "ill", "--ids", "person", "--name", "Registry 2026")
    run("create", folder, "--data", data, "--queries", 60, "--protocols", protocols, *ranges, *made)
    people: dict[str, tuple[object, ...]] = {
        "Carla": ("--role", "custodian"),
        "Ann": ("--role", "analyst", "--quota", 0.4, "--expires", "90d"),
        "Ben": ("--role", "analyst", "--quota", 0.3, "--expires", "90d"),
        "Vera": ("--role", "viewer"),
        "a contractor": ("--role", "analyst", "--quota", 0.05),
    }
    made_tokens = {
        name: run("token", "create", folder, "--name", name, *words)
        for name, words in people.items()
    }
    run("token", "revoke", folder, made_tokens["a contractor"]["id"])
    return {name: str(made["token"]) for name, made in made_tokens.items()}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of this holdout."""
    options = ("--port", "0", "--json", "--log-level", "warning")
    command = [str(HOLDFAST), "serve", str(folder), *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield str(json.loads(server.stdout.readline())["url"])
    finally:
        server.terminate()
        server.wait(30)


def post(address: str, token: str, body: bytes, kind: str) -> Any:
    """Send something to the server."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
    request = urllib.request.Request(address, body, headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


def asked(api: str, tokens: dict[str, str]) -> None:
    """Questions of two analysts, of every kind."""
    questions: list[tuple[str, dict[str, Any]]] = []
    for i in range(22):
        where = {} if WHERES[i % 4] is None else {"where": WHERES[i % 4]}
        questions.append(("mean", {"term": MEANS[i % 11], **where}))
        if i % 3 == 0:
            questions.append(
                ("ask", {"estimator": ESTIMATES[i // 3 % 4], "grid": "18:90:2", **where})
            )
        if i % 4 == 1:
            questions.append(("verify", {"estimator": "avg(age)", "guess": 53 + i / 8, **where}))
    for i, (verb, words) in enumerate(questions):
        body = json.dumps(words).encode()
        post(f"{api}/{verb}", tokens["Ben" if i % 3 else "Ann"], body, "application/json")


def submitted(api: str, tokens: dict[str, str], ill: NDArray[np.bool_], folder: Path) -> Path:
    """Entries of models that are right more or less often; the file of one more."""
    random = np.random.default_rng(7)
    models = {"boosted trees": 0.86, "forest": 0.845, "logistic": 0.83, "baseline": 0.5}
    for i, (name, right) in enumerate(models.items()):
        body = predictions(ill, right, random)
        query = urllib.parse.urlencode({"metric": "accuracy", "name": name})
        post(f"{api}/enter?{query}", tokens["Ben" if i % 2 else "Ann"], body, "text/csv")
    file = folder / "boosted-trees-2.csv"
    file.write_bytes(predictions(ill, 0.86, random))
    return file


def predictions(ill: NDArray[np.bool_], right: float, random: np.random.Generator) -> bytes:
    """Predictions that are right so often, as CSV."""
    guessed = np.where(random.random(len(ill)) < right, ill, ~ill).astype(int)
    lines = (f"{person},{guess}" for person, guess in enumerate(guessed))
    return ("person,prediction\n" + "\n".join(lines) + "\n").encode()


def signed_in(browser: Browser, url: str, token: str, **context: Any) -> Page:
    """A page that is signed in."""
    page = browser.new_context(**context).new_page()
    page.goto(url)
    page.fill("#token", token)
    page.press("#token", "Enter")
    page.wait_for_selector("#verbs label")
    return page


def price(page: Page, term: str) -> None:
    """Type a question, and wait for its price."""
    page.check("input[name=verb][value=mean]")
    page.fill("#estimator", term)
    page.wait_for_selector("#ask-button:enabled")


def ask(page: Page) -> None:
    """Ask a question; its answer stays until the form is changed."""
    price(page, "ill and not treated")
    page.click("#ask-button")
    page.wait_for_selector(".answer-card")
    page.wait_for_selector(".price.free")
    page.locator("h1:visible").focus()


def visit(page: Page, view: str) -> None:
    """Go to a view, and wait until it is drawn."""
    page.click(f"#nav a[href='#{view}']")
    ready = {
        "answers": "#answer-table tbody tr",
        "leaderboard": "#board-table tbody tr",
        "planner": "#planned .legend",
        "custodian": "#audit tbody tr",
    }
    page.wait_for_selector(ready[view], timeout=120_000)
    page.wait_for_selector("#planned:not(.loading)", state="attached")


def shot(page: Page, folder: Path, name: str, height: int = 900) -> None:
    """Keep what is to be seen, at most so high."""
    path = folder / f"page-{name}.png"
    page.evaluate("window.scrollTo(0, 0)")
    page.wait_for_timeout(400)  # a gauge moves for 0.3 s
    size = page.evaluate("[document.documentElement.clientWidth, document.body.scrollHeight]")
    clip = {"x": 0, "y": 0, "width": size[0], "height": min(height, size[1])}
    page.screenshot(path=path, full_page=True, clip=clip)  # type: ignore[arg-type]
    if path.stat().st_size > LARGEST:
        sys.exit(f"{path.name} is larger than {LARGEST:,} bytes")
    print(f"{path.name}  {path.stat().st_size:,} bytes")


def pictures(browser: Browser, url: str, tokens: dict[str, str], file: Path, to: Path) -> None:
    """All of them."""
    wide = {"viewport": {"width": 1240, "height": 900}}
    page = signed_in(browser, url, tokens["Ann"], **wide)
    ask(page)
    shot(page, to, "ask", 1060)
    visit(page, "answers")
    shot(page, to, "answers", 1000)
    visit(page, "leaderboard")
    page.set_input_files("#file", file)
    page.fill("#entry-name", "boosted trees, second")
    page.click("#submit-button")
    page.wait_for_selector("#submission-result .note", timeout=60_000)
    page.wait_for_timeout(500)
    shot(page, to, "leaderboard", 1100)
    visit(page, "planner")
    shot(page, to, "planner", 1300)
    dark = signed_in(browser, url, tokens["Ben"], color_scheme="dark", **wide)
    visit(dark, "answers")
    shot(dark, to, "dark", 900)
    custodian = signed_in(browser, url, tokens["Carla"], **wide)
    visit(custodian, "custodian")
    custodian.click("#check-button")
    custodian.wait_for_selector("#checked li", timeout=120_000)
    shot(custodian, to, "custodian", 1150)
    small = {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True}
    phone = signed_in(browser, url, tokens["Ann"], device_scale_factor=1.5, **small)
    price(phone, "score > 0.9 and not ill")
    shot(phone, to, "phone", 1150)


def main() -> None:
    """Seal, serve, ask, take pictures."""
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else ASSETS
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HOLDFAST_STATE"] = scratch  # the same table was sealed before, and will be
        folder = Path(scratch) / "registry.holdfast"
        ill = registry(Path(scratch) / "registry.parquet")
        tokens = sealed(folder, Path(scratch) / "registry.parquet")
        with served(folder) as url, sync_playwright() as playwright:
            api = f"{url}/api/holdouts/registry"
            asked(api, tokens)
            file = submitted(api, tokens, ill, Path(scratch))
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *QUIETER])
            pictures(browser, url, tokens, file, to)
            browser.close()


if __name__ == "__main__":
    main()
