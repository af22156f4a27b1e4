"""Who may do what: every route × every sort of token × two holdouts on one server.

The routes are read from the app: one that is not in the table here fails the test.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from holdfast.client.wire import contents_of
from holdfast.holdout.holdout import Holdout
from holdfast.server import routes
from holdfast.server.app import create_app
from holdfast.server.settings import Settings
from tests.server.conftest import FAST, ROLES, Serve, Study, ended, made, tokens_of

HOLDOUTS = ("one", "two")
COMMAND = str(Path(sys.executable).with_name("holdfast"))
ASK = {"estimator": "avg(x)", "grid": "0:7:1"}
CSV = {"content": b"id,prediction\n1,1\n", "headers": {"Content-Type": "text/csv"}}

_SEVERAL = contents_of(dict.fromkeys("ab", CSV["content"]))
PARTS = {"content": _SEVERAL.data, "headers": {"Content-Type": _SEVERAL.kind}}


@dataclass(frozen=True)
class Entry:
    """The least role that a route is for, a request of it, and what it is answered by."""

    least: str | None
    """None: for everyone, with or without a token."""
    status: int = 200
    request: dict[str, Any] = field(default_factory=dict)


OF_HOLDOUT = "/api/holdouts/{holdout}"
TABLE = {
    ("GET", "/"): Entry(None),
    ("GET", "/page/{file}"): Entry(None),
    ("GET", "/health"): Entry(None),
    ("GET", "/ready"): Entry(None),
    ("GET", "/api/openapi.json"): Entry(None),
    ("GET", "/metrics"): Entry("viewer"),
    ("GET", "/api/holdouts"): Entry("viewer"),
    ("GET", "/api/plan"): Entry("viewer"),
    ("GET", f"{OF_HOLDOUT}/status"): Entry("viewer"),
    ("GET", f"{OF_HOLDOUT}/columns"): Entry("viewer"),
    ("GET", f"{OF_HOLDOUT}/transcript"): Entry("viewer"),
    ("GET", f"{OF_HOLDOUT}/left"): Entry("viewer"),
    ("GET", f"{OF_HOLDOUT}/leaderboard"): Entry("viewer"),
    # No target is named here, and without one nothing is scored.
    ("POST", f"{OF_HOLDOUT}/neighbours"): Entry("analyst", 400),
    ("POST", f"{OF_HOLDOUT}/price/neighbours"): Entry("analyst", 400),
    # The holdouts here have no ids: whoever is let in is told so.
    ("POST", f"{OF_HOLDOUT}/enter"): Entry("analyst", 400, {"params": {"name": "n"}} | CSV),
    **{
        ("POST", f"{OF_HOLDOUT}/{place}{verb}"): Entry("analyst", 400, sent)
        for place in ("", "price/")
        for verb, sent in {
            "score": CSV,
            "compare": PARTS,
            "gate": {"params": {"at_least": 0.5}} | CSV,
            "best": PARTS,
            "scores": PARTS,
        }.items()
    },
    ("POST", f"{OF_HOLDOUT}/ask"): Entry("analyst", 200, {"json": ASK}),
    ("POST", f"{OF_HOLDOUT}/interval"): Entry("analyst", 200, {"json": ASK}),
    ("POST", f"{OF_HOLDOUT}/verify"): Entry(
        "analyst", 200, {"json": {"estimator": "avg(x)", "guess": 5}}
    ),
    ("POST", f"{OF_HOLDOUT}/correct"): Entry("analyst", 200, {"json": ASK | {"guess": 5}}),
    ("POST", f"{OF_HOLDOUT}/mean"): Entry("analyst", 200, {"json": {"term": "x > 5"}}),
    ("POST", f"{OF_HOLDOUT}/price"): Entry("analyst", 200, {"json": {"verb": "ask", **ASK}}),
    ("POST", f"{OF_HOLDOUT}/jobs"): Entry("analyst", 202, {"json": {"verb": "ask", **ASK}}),
    ("GET", f"{OF_HOLDOUT}/jobs"): Entry("analyst"),
    ("GET", f"{OF_HOLDOUT}/jobs/{{job}}"): Entry("analyst"),
    ("DELETE", f"{OF_HOLDOUT}/jobs/{{job}}"): Entry("analyst"),
    ("GET", f"{OF_HOLDOUT}/tokens"): Entry("custodian"),
    ("DELETE", f"{OF_HOLDOUT}/tokens/{{token}}"): Entry("custodian"),
    ("PATCH", f"{OF_HOLDOUT}/tokens/{{token}}"): Entry("custodian", 200, {"json": {"quota": 0.1}}),
    ("GET", f"{OF_HOLDOUT}/audit"): Entry("custodian"),
    ("POST", f"{OF_HOLDOUT}/check"): Entry("custodian", 200, {"json": {}}),
}


def routes_of(routes: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Method and address of every route, those of included routers too."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from routes_of(inner.routes)
        elif getattr(route, "methods", None) is None:  # files
            yield "GET", f"{route.path}/{{file}}"
        else:
            yield from ((method, route.path) for method in route.methods if method != "HEAD")


@dataclass
class World:
    """Two holdouts behind one server, and every sort of token for both."""

    client: TestClient
    folders: dict[str, Path]
    tokens: dict[str, dict[str, str | None]]
    targets: dict[str, str]
    jobs: dict[str, str]

    def heads(self) -> list[str]:
        """Where both ledgers are."""
        service = self.client.app.state.service  # type: ignore[attr-defined]
        return [str(service.holdouts.get(name).holdout.receipt) for name in HOLDOUTS]

    def send(self, method: str, place: str, entry: Entry, name: str, token: str | None) -> Any:
        """The request of an entry, with this token."""
        named = {"job": self.jobs[name], "token": self.targets[name], "file": "index.html"}
        address = place.format(holdout=name, **named)
        return Study(self.client, {}).send(method, address, token, **entry.request)

    def of(self, name: str) -> Study:
        """One of the holdouts, asked with its own tokens."""
        tokens = {role: str(self.tokens[name][role]) for role in ROLES}
        return Study(self.client, tokens, f"/api/holdouts/{name}")


def _sorts(holdout: Holdout, path: Path) -> tuple[dict[str, str | None], datetime]:
    """A token of every sort for one holdout, and when the short one has ended."""
    tokens: dict[str, str | None] = dict(tokens_of(path))
    grant, tokens["revoked"] = holdout.access.grant("custodian")
    holdout.access.revoke(grant.id)
    soon = datetime.now(UTC) + timedelta(seconds=2)
    _, tokens["expired"] = holdout.access.grant("custodian", expires=soon)
    return tokens, soon


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("matrix")
    folders = {name: made(folder / name) for name in HOLDOUTS}
    tokens, targets, last = {}, {}, datetime.now(UTC)
    jobs: dict[str, str] = {}
    for name, path in folders.items():
        with Holdout.open(path) as holdout:
            tokens[name], last = _sorts(holdout, path)
            targets[name] = holdout.access.grant("viewer")[0].id
    rates = {**FAST}

    async def quickly(*_: object) -> dict[str, Any]:
        return {"methods": []}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routes, "comparison", quickly)
        patch.setattr("holdfast.server.service._FAILURES", 10**6)
        app = create_app(Settings(folders=tuple(folders.values()), **rates))  # type: ignore[arg-type]
        with TestClient(app, base_url="http://127.0.0.1") as client:
            world = World(client, folders, tokens, targets, jobs)
            for name in HOLDOUTS:
                here = world.of(name)
                jobs[name] = here.post("jobs", json={"verb": "ask", **ASK}).json()["id"]
                told = ended(lambda here=here, name=name: here.get(f"jobs/{jobs[name]}").json())  # type: ignore[misc]
                assert told["state"] == "done", told
            time.sleep(max(0.0, (last - datetime.now(UTC)).total_seconds()))
            yield world


def test_the_table_has_every_route(world: World) -> None:
    assert sorted(routes_of(world.client.app.routes)) == sorted(TABLE)  # type: ignore[attr-defined]


def expected(entry: Entry, own: bool, sort: str, *, of_holdout: bool) -> int:
    """The status that a token of this sort must get."""
    if entry.least is None:
        return entry.status
    if sort not in ROLES:
        return 401
    if not of_holdout:
        return entry.status
    if not own:
        return 404
    return entry.status if ROLES.index(sort) >= ROLES.index(entry.least) else 403


SORTS = (*ROLES, "revoked", "expired", "malformed", "none")
ODD = {"malformed": "hf_abcdefgh_short", "none": None}


@pytest.mark.parametrize(("method", "place"), TABLE, ids=lambda text: text)
def test_nobody_is_let_in_wrongly(world: World, method: str, place: str) -> None:
    entry, wrong = TABLE[method, place], []
    of_holdout = "{holdout}" in place
    for name in HOLDOUTS:
        for owner in HOLDOUTS:
            for sort in SORTS:
                token = ODD.get(sort, world.tokens[owner].get(sort))
                before = world.heads()
                response = world.send(method, place, entry, name, token)
                wanted = expected(entry, owner == name, sort, of_holdout=of_holdout)
                if response.status_code != wanted:
                    wrong.append((name, owner, sort, wanted, response.status_code))
                if wanted >= 400:
                    assert world.heads() == before, (name, owner, sort)
                    assert set(response.json()) == {"error"}
    assert wrong == []


def test_a_holdout_of_others_looks_like_none(world: World) -> None:
    for token in (None, "hf_nonsense", "custodian"):
        told = []
        for name in ("two", "three"):
            response = world.of("one").get(f"/api/holdouts/{name}/status", token)
            error = response.json()["error"]
            told.append((response.status_code, error["kind"], error["message"]))
        assert told[0] == told[1]


def test_lists_show_only_what_the_token_may_see(world: World) -> None:
    for name, other in (HOLDOUTS, HOLDOUTS[::-1]):
        here = world.of(name)
        listed = here.get("/api/holdouts", "viewer").json()
        assert [(each["name"], each["role"]) for each in listed] == [(name, "viewer")]
        counts = here.get("/metrics", "viewer").text
        assert f'holdout="{name}"' in counts
        assert f'holdout="{other}"' not in counts


def test_jobs_of_others_look_like_none(world: World) -> None:
    with Holdout.open(world.folders["one"]) as holdout:
        _, colleague = holdout.access.grant("analyst")
    here, job = world.of("one"), world.jobs["one"]
    for method in ("GET", "DELETE"):
        theirs = here.send(method, f"jobs/{job}", colleague)
        absent = here.send(method, f"jobs/{'0' * 24}", colleague)
        across = world.of("two").send(method, f"jobs/{job}", "custodian")
        assert {each.status_code for each in (theirs, absent, across)} == {404}
        assert len({each.json()["error"]["message"] for each in (theirs, absent, across)}) == 1
    assert here.get("jobs", colleague).json() == []


def test_another_process_revokes_at_once(world: World) -> None:
    path, here = world.folders["two"], world.of("two")
    with Holdout.open(path) as holdout:
        grant, token = holdout.access.grant("analyst", quota=0.2)
    assert here.get("status", token).json()["quota"]["share"] == 0.2
    command = [COMMAND, "token", "revoke", str(path), grant.id]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert here.get("status", token).status_code == 401
    assert here.post("ask", token, json=ASK).status_code == 401  # not even what is recorded


def test_without_tokens_everyone_is_an_analyst_until_there_is_one(
    folder: Path, served: Serve
) -> None:
    here = Study(served(folder), {})
    assert here.post("price", None, json={"verb": "ask", **ASK}).status_code == 200
    assert here.get("tokens", None).status_code == 403
    assert here.get("status", "hf_guess").status_code == 401
    with Holdout.open(folder) as holdout:
        grant, _ = holdout.access.grant("viewer")
        assert here.get("status", None).status_code == 401
        holdout.access.revoke(grant.id)
    assert here.get("status", None).status_code == 401  # closed for good


def test_quotas_are_of_every_token_and_change_at_once(folder: Path, served: Serve) -> None:
    with Holdout.open(folder) as holdout:
        grant, token = holdout.access.grant("analyst", quota=0.06)  # one question of eight points
        _, keeper = holdout.access.grant("custodian")
    here = Study(served(folder), {})

    def ask(column: str, where: str = "ask", **more: str) -> Any:
        return here.post(where, token, json={**ASK, "estimator": f"avg({column})", **more})

    def change(**quotas: Any) -> Any:
        return here.send("PATCH", f"tokens/{grant.id}", keeper, json=quotas)

    assert [ask(each).status_code for each in "xyx"] == [200, 409, 200]
    assert "quota" in ask("y").json()["error"]["message"]
    assert not ask("y", "price", verb="ask").json()["affordable"]
    larger = change(quota=0.12).json()
    assert (larger["quota"], larger["nats"]) == (0.12, 5)
    assert [ask(each).status_code for each in "yc"] == [200, 409]
    for body in ({"quota": 1.5}, {"nats": 0}, {"nats": -1}, {"more": 1}, {}):
        assert change(**body).status_code == 400, body
    both = change(quota=None, nats=7.5).json()
    assert (both["quota"], both["nats"]) == (None, 7.5)
    freed = change(nats=None).json()
    assert (freed["quota"], freed["nats"]) == (None, None)
