"""Takes the screenshots of the page that the documentation shows: `python -m tools.screenshots`.

Labels of customers are sealed, and models of them scored, compared and gated by two analysts;
beside them is a synthetic registry under a plan of looks. Both are served by one process, asked
over HTTP and in the page, and shown in Debian's chromium. With a folder as argument the pictures go
there.
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
CUSTOMERS = 20_000
LARGEST = 250_000  # bytes of a picture

MEANS = (
    *("ill", "treated", "ill and treated", "age >= 65", "score > 0.8", "ill or score > 0.5"),
    *("age < 30", "not ill", "score / 2", "ill and age < 50", "treated and age >= 65"),
)
WHERES = (None, None, "region = 'north'", None)
ESTIMATES = ("avg(age)", "median(age)", "quantile_cont(age, 0.9)", "avg(age) filter (where ill)")


def registry(path: Path) -> None:
    """A table of people who are ill or not, written to a file."""
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


def customers(folder: Path) -> Path:
    """Labels of customers, written to a file, and beside it predictions of five models."""
    random = np.random.default_rng(2027)
    x = random.normal(size=(CUSTOMERS, 3))
    churned = x[:, 0] - x[:, 1] + 0.5 * random.normal(size=CUSTOMERS) > 0
    models = {
        "baseline": x[:, 2],
        "logistic": x[:, 0] - 0.3 * x[:, 1],
        "forest": x[:, 0] - 0.6 * x[:, 1],
        "trees": x[:, 0] - 0.9 * x[:, 1],
        "trees-2": x[:, 0] - x[:, 1] + 0.05 * x[:, 2],
    }
    for name, score in models.items():
        (folder / f"{name}.csv").write_text(lines("prediction", score > 0), encoding="utf-8")
    (folder / "labels.csv").write_text(lines("churned", churned), encoding="utf-8")
    return folder / "labels.csv"


def lines(name: str, values: NDArray[np.bool_]) -> str:
    """A column by customer, as CSV."""
    rows = (f"{customer},{int(value)}" for customer, value in enumerate(values))
    return "\n".join([f"customer,{name}", *rows, ""])


def run(*words: object) -> Any:
    """What a command of Holdfast prints, as data."""
    done = subprocess.run(
        [HOLDFAST, *map(str, words), "--json"], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def granted(folder: Path, *quota: object) -> dict[str, str]:
    """Tokens of a holdout; one that was revoked is not among them."""
    people: dict[str, tuple[object, ...]] = {
        "Carla": ("--role", "custodian"),
        "Ann": ("--role", "analyst", "--expires", "90d", *quota),
        "Ben": ("--role", "analyst", "--expires", "90d", *quota),
        "Vera": ("--role", "viewer"),
        "a contractor": ("--role", "analyst"),
    }
    made = {
        name: run("token", "create", folder, "--name", name, *words)
        for name, words in people.items()
    }
    run("token", "revoke", folder, made.pop("a contractor")["id"])
    return {name: str(each["token"]) for name, each in made.items()}


def told(folder: Path, data: Path) -> dict[str, str]:
    """Seal the labels, without a plan, and make tokens."""
    run(
        "create",
        folder,
        "--data",
        data,
        "--ids",
        "customer",
        "--target",
        "churned",
        "--name",
        "Churn 2026",
    )
    return granted(folder)


def looked_at(folder: Path, data: Path) -> dict[str, str]:
    """Seal the registry under a plan of several parts, and make tokens."""
    protocols = "estimate=60,mean=200,verify=60"
    ranges = ("--range", "age=18:90", "--range", "score=0:1")
    named = ("--target", "ill", "--ids", "person", "--name", "Registry 2026")
    run(
        "create", folder, "--data", data, "--queries", 60, "--protocols", protocols, *ranges, *named
    )
    return granted(folder, "--quota", 0.4)


@contextmanager
def served(*folders: Path) -> Iterator[str]:
    """The address of a server of these holdouts."""
    options = ("--port", "0", "--json", "--log-level", "warning")
    command = [str(HOLDFAST), "serve", *map(str, folders), *options]
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


def submitted(api: str, tokens: dict[str, str], folder: Path) -> None:
    """Entries of the models, and questions about some of them."""
    for i, name in enumerate(("baseline", "logistic", "forest", "trees")):
        body = (folder / f"{name}.csv").read_bytes()
        query = urllib.parse.urlencode({"metric": "accuracy", "name": name})
        post(f"{api}/enter?{query}", tokens["Ben" if i % 2 else "Ann"], body, "text/csv")
    for name, least in (("trees", 0.85), ("forest", 0.85), ("logistic", 0.75), ("baseline", 0.6)):
        body = (folder / f"{name}.csv").read_bytes()
        post(f"{api}/gate?at_least={least}", tokens["Ann"], body, "text/csv")


def signed_in(browser: Browser, url: str, token: str, **context: Any) -> Page:
    """A page that is signed in."""
    page = browser.new_context(**context).new_page()
    page.goto(url)
    page.fill("#token", token)
    page.press("#token", "Enter")
    page.wait_for_selector("#verbs label:visible, #model-verbs label:visible")
    return page


def price(page: Page, term: str) -> None:
    """Type a question in SQL, and wait for its price."""
    page.click("#nav a[href='#ask']")
    page.check("input[name=verb][value=mean]")
    page.fill("#estimator", term)
    page.wait_for_selector("#ask-button:enabled")


def ask(page: Page) -> None:
    """Ask a question in SQL; its answer stays until the form is changed."""
    price(page, "ill and not treated")
    page.click("#ask-button")
    page.wait_for_selector("#result .answer-card")
    page.wait_for_selector("#price.free")
    page.locator("h1:visible").focus()


def fill(page: Page, verb: str, folder: Path, files: str, **fields: str) -> None:
    """Put a question about models into the form, and wait for its price."""
    page.click("#nav a[href='#models']")
    page.check(f"input[name=model-verb][value={verb}]")
    for place, name in zip(("file", "other"), files.split(), strict=False):
        page.set_input_files(f"#model-{place}", folder / f"{name}.csv")
    for name, text in fields.items():
        page.fill(f"#model-{name}", text)
    page.wait_for_selector("#model-button:enabled")


def answer(page: Page) -> None:
    """Ask it."""
    page.click("#model-button")
    page.wait_for_selector("#model-result .answer-card svg[role=img]")
    page.wait_for_selector("#model-price.free")
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


def pictures(
    browser: Browser,
    url: str,
    churn: dict[str, str],
    registry: dict[str, str],
    files: Path,
    to: Path,
) -> None:
    """All of them."""
    wide = {"viewport": {"width": 1240, "height": 900}}
    page = signed_in(browser, url, churn["Ann"], **wide)
    fill(page, "score", files, "trees-2", guess="0.88")
    shot(page, to, "price", 950)
    answer(page)
    shot(page, to, "score", 1200)
    fill(page, "compare", files, "trees-2 forest")
    answer(page)
    shot(page, to, "compare", 1340)
    fill(page, "gate", files, "trees-2", threshold="0.85")
    answer(page)
    shot(page, to, "gate", 1300)
    fill(page, "enter", files, "trees-2", name="trees, second", guess="0.88")
    answer(page)
    visit(page, "leaderboard")
    page.wait_for_load_state("networkidle")  # the price of comparing neighbours
    shot(page, to, "leaderboard", 1100)
    visit(page, "answers")
    shot(page, to, "answers", 1000)
    visit(page, "planner")
    shot(page, to, "planner", 1300)
    dark = signed_in(browser, url, churn["Ben"], color_scheme="dark", **wide)
    fill(dark, "compare", files, "trees forest", margin="0")
    answer(dark)
    shot(dark, to, "dark", 1340)
    custodian = signed_in(browser, url, churn["Carla"], **wide)
    visit(custodian, "custodian")
    custodian.click("#check-button")
    custodian.wait_for_selector("#checked li", timeout=120_000)
    shot(custodian, to, "custodian", 1150)
    small = {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True}
    phone = signed_in(browser, url, churn["Ben"], device_scale_factor=1.25, **small)
    fill(phone, "score", files, "forest", guess="0.86")
    answer(phone)
    shot(phone, to, "phone", 1800)
    looks = signed_in(browser, url, registry["Ann"], **wide)
    ask(looks)
    shot(looks, to, "ask", 1060)


def main() -> None:
    """Seal, serve, ask, take pictures."""
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else ASSETS
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HOLDFAST_STATE"] = scratch  # the same tables were sealed before, and will be
        folder = Path(scratch)
        registry(folder / "registry.parquet")
        churn = told(folder / "churn.holdfast", customers(folder))
        looks = looked_at(folder / "registry.holdfast", folder / "registry.parquet")
        with (
            served(folder / "churn.holdfast", folder / "registry.holdfast") as url,
            sync_playwright() as playwright,
        ):
            submitted(f"{url}/api/holdouts/churn", churn, folder)
            asked(f"{url}/api/holdouts/registry", looks)
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *QUIETER])
            pictures(browser, url, churn, looks, folder, to)
            browser.close()


if __name__ == "__main__":
    main()
