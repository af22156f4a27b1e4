"""Attacks on the server, one by one: what a hostile client sends, and what must come of it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import Infeasible, InvalidInput
from holdfast.holdout.holdout import Holdout
from holdfast.server.errors import HttpError
from holdfast.server.jobs import Jobs, StoredJob
from holdfast.server.run import _checked
from holdfast.server.service import Rates
from holdfast.server.settings import Settings
from holdfast.verbs import SCORES
from tests.server.conftest import Serve, Study, auth, ended, listening, tokens_of

BASE = "/api/holdouts/study"
ASK = {"estimator": "avg(x)", "grid": "0:7:1"}


@pytest.fixture
def study(shared: Study) -> Study:
    """The attacks must not change anything."""
    return shared


# Tokens.


@pytest.mark.parametrize(
    "value",
    [
        "Basic {token}",
        "Bearer",
        "Bearer {token}x",
        "Bearer {token} {token}",
        "{token}",
        "Bearer\t{token}",
        "Bearer " + "a" * 60_000,
        "Bearer {token}\u00e4",
        'Bearer "{token}"',
    ],
    ids=["basic", "empty", "longer", "twice", "bare", "tab", "long", "latin", "quoted"],
)
def test_a_token_is_sent_in_one_way(study: Study, value: str) -> None:
    sent = value.format(token=study.tokens["custodian"]).encode("latin-1")
    assert study.get("status", None, headers={b"Authorization": sent}).status_code == 401


def test_two_tokens_and_two_hosts_are_none(study: Study) -> None:
    good, bad = (f"Bearer {token}" for token in (study.tokens["viewer"], "hf_x"))
    for pair in ((good, bad), (bad, good), (good, good)):
        headers = [("Authorization", each) for each in pair]
        assert study.client.get(f"{BASE}/status", headers=headers).status_code == 401
    two = [("Host", "evil.example"), ("Host", "127.0.0.1")]
    for hosts in (two, two[::-1]):
        assert study.client.get("/health", headers=hosts).status_code == 400


def test_tokens_elsewhere_do_not_count(study: Study) -> None:
    token = study.tokens["custodian"]
    places = {"token": token, "access_token": token, "authorization": f"Bearer {token}"}
    assert study.get("status", None, params=places).status_code == 401
    cookies = "; ".join(f"{name}={value}" for name, value in places.items())
    others = {"Cookie": cookies, "X-Authorization": f"Bearer {token}", "Proxy-Authorization": token}
    assert study.get("status", None, headers=others).status_code == 401
    spelt = {"Authorization": f"bEARER {token}"}  # schemes have no case (RFC 9110, section 11.1)
    assert study.get("status", None, headers=spelt).status_code == 200


def test_guesses_do_not_lock_out_the_others(folder: Path, served: Serve) -> None:
    """Behind a proxy all clients have one address, and none may name another."""
    here = Study(served(folder), tokens_of(folder))
    for number in range(60):
        named = {"X-Forwarded-For": f"10.0.0.{number}"}
        last = here.get("status", f"hf_guess{number}", headers=named)
    assert last.status_code == 429
    assert here.get("status", "viewer").status_code == 200


def test_rates_are_not_cheated_by_headers(folder: Path, served: Serve) -> None:
    here = Study(served(folder, rate=0.001, burst=3), tokens_of(folder))
    named = [{"X-Forwarded-For": f"10.0.0.{number}"} for number in range(5)]
    seen = [here.get("status", "viewer", headers=each).status_code for each in named]
    assert seen == [200, 200, 200, 429, 429]
    assert here.get("status").status_code == 200  # a token's rate is its own


def test_rates_remember_so_many_names_and_no_more() -> None:
    rates = Rates(rate=1.0, burst=1, names=100)
    for number in range(1000):
        rates.wait(str(number))
    assert len(rates._buckets) == 100


# What a page of another site can make a browser send, without being asked first.


PRICED = [f"price/{name}" for name in SCORES if name != "enter"]
SIMPLE = ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")


def test_simple_requests_of_other_sites_ask_nothing(folder: Path, served: Serve) -> None:
    client = served(folder)  # without tokens: whoever reaches it may ask
    for kind in SIMPLE:
        headers = {"Origin": "http://evil.example"} | ({"Content-Type": kind} if kind else {})
        for place in ("ask", "jobs", "enter?name=n", *SCORES, *PRICED):
            sent = client.post(f"{BASE}/{place}", content=json.dumps(ASK).encode(), headers=headers)
            assert sent.status_code in (400, 415)
            assert "access-control-allow-origin" not in sent.headers
    first = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    asked = client.options(f"{BASE}/ask", headers=first)
    assert asked.status_code == 405
    assert not [name for name in asked.headers if name.startswith("access-control")]


HOSTS = ("evil.example", "127.0.0.1.evil.example", "evil.example:8000", "0.0.0.0", "", "[::2]")


@pytest.mark.parametrize("host", [*HOSTS, "10.0.0.1"])
def test_names_that_lead_here_are_refused(study: Study, host: str) -> None:
    assert study.client.get("/health", headers={"Host": host}).status_code == 400


# Addresses and methods.


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py",
        "/page/%2e%2e/app.py",
        "/page/..%2fapp.py",
        "/page/..%5capp.py",
        "/page//etc/passwd",
        "/page/%00",
        "/page/",
        "/page",
        "/api/holdouts/",
        "//api/holdouts",
        "/api/holdouts/study/status/",
        "/api/holdouts/../holdouts/study/statu%73/..",
        "/docs",
        "/redoc",
        "/" + "a" * 5_000,
    ],
)
def test_paths_lead_nowhere(study: Study, path: str) -> None:
    response = study.get(path, "custodian", follow_redirects=False)
    assert response.status_code == 404
    assert response.json()["error"]["kind"] == "not_found"


@pytest.mark.parametrize(
    "name", ["study%00", "study%0a", "%2e%2e", "st%C3%BCdy", "study%20", "a" * 200]
)
def test_odd_names_are_no_holdouts(study: Study, name: str) -> None:
    response = study.get(f"/api/holdouts/{name}/status", "custodian")
    assert response.status_code in (400, 404)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PUT", "CONNECT", "BREW"])
def test_other_methods_do_nothing(study: Study, method: str) -> None:
    meant = {"X-HTTP-Method-Override": "GET"}
    assert study.send(method, "status", "custodian", headers=meant).status_code == 405
    text = study.get("/metrics", "viewer").text
    assert "BREW" not in text  # what clients make up is not remembered
    assert "TRACE" not in text


# Bodies.


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b'{"estimator": ' + b"9" * 60_000 + b"}",
        b'{"estimator": "avg(x)", "grid": [NaN, Infinity]}',
        b'{"estimator": "avg(x)", "grid": [1e400]}',
        b'{"estimator": "avg(x)", "grid": "0:1e308:1e-308"}',
        b'{"estimator": "avg(x)", "grid": {"low": 0, "high": {"high": []}}}',
        b'{"estimator": "\\ud800"}',
        b'{"\\ud800": 1}',
        b'{"' + b"k" * 50_000 + b'": 1}',
        b"\xff\xfe\x00",
        b"\xef\xbb\xbf{}",
        b"",
        b"null",
        b'{"estimator": ["avg(x)"]}',
        b'{"estimator": "avg(x)", "where": {"$ne": null}}',
        b'{"estimator": "avg(x)", "__class__": "x"}',
    ],
    ids=lambda body: repr(body[:24]),
)
def test_bodies_that_are_no_questions(study: Study, body: bytes) -> None:
    response = study.post("ask", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["kind"] == "bad_question"
    assert len(response.content) < 2_000  # what was sent is not sent back


@pytest.mark.parametrize(
    "text",
    [
        "avg(\uff58)",
        "avg(x)\u202e",
        "avg(x\u0000)",
        "avg(\u0445)",
        "avg(x)\u2028; drop table t",
        "(" * 2_000 + "avg(x)" + ")" * 2_000,
        "avg(x)" + " + avg(x)" * 1_000,
        "avg(x) " + "-- \n" * 2_000 + " + nothing(x)",
        "avg(case " + "when x > 1 then 1 " * 500 + "end)",
    ],
    ids=["wide", "turned", "nul", "cyrillic", "separator", "deep", "long", "comments", "cases"],
)
def test_odd_sql_is_refused_or_answered(study: Study, text: str) -> None:
    response = study.post("price", json={"verb": "ask", **ASK, "estimator": text})
    assert response.status_code in (200, 400)
    assert len(response.content) < 2_000


def test_rows_to_come_are_none(study: Study) -> None:
    for name in ("transcript", "audit"):
        for after in (5, 10**6, 2**53):
            response = study.get(name, "custodian", params={"after": after})
            assert response.json() == {"rows": [], "next": None}


# Keys and jobs.


def test_a_key_of_a_job_names_one_question(study: Study) -> None:
    job, key = {"verb": "ask", **ASK}, {"Idempotency-Key": "k"}
    first, again = (study.post("jobs", json=job, headers=key).json() for _ in range(2))
    assert first["id"] == again["id"]
    other = {**job, "estimator": "avg(y)"}
    clash = study.post("jobs", json=other, headers=key)
    assert (clash.status_code, clash.json()["error"]["kind"]) == (409, "conflict")
    assert study.post("jobs", "custodian", json=other, headers=key).status_code == 202


@pytest.mark.parametrize("key", ["", "a" * 129, "a b", "\u00e4", "a\tb"])
def test_odd_keys_are_refused(study: Study, key: str) -> None:
    token = auth(study.tokens["analyst"])["Authorization"].encode()
    headers = {b"Authorization": token, b"Idempotency-Key": key.encode("latin-1")}
    response = study.post("ask", None, json=ASK, headers=headers)
    assert response.status_code == 400
    assert response.json()["error"]["parameter"] == "Idempotency-Key"


def test_a_job_that_waits_does_not_outlive_its_token(folder: Path, served: Serve) -> None:
    here, gate = Study(served(folder), tokens_of(folder)), threading.Event()
    for _ in range(4):  # all places are taken
        here.app.state.service.jobs._pool.submit(gate.wait, 20)
    place = f"jobs/{here.post('jobs', json={'verb': 'ask', **ASK}).json()['id']}"
    with Holdout.open(folder) as holdout:
        holdout.access.revoke(here.tokens["analyst"].split("_")[1])
        rows = len(holdout.journal.ledger.rows())
        gate.set()
        job = ended(lambda: here.get(place, "custodian").json())
        assert (job["state"], job["error"]["kind"]) == ("failed", "unauthorized")
        assert len(holdout.journal.ledger.rows()) == rows
    assert here.get(place).status_code == 401


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    made = Jobs(Settings(folders=(tmp_path,), state=tmp_path / "state"), threading.Event())
    yield made
    made.close()


def test_what_was_cancelled_stays_so_whoever_writes_last(jobs: Jobs) -> None:
    go, begun = threading.Event(), threading.Event()

    def work(_: object) -> dict[str, Any]:
        begun.set()
        go.wait(120)
        return {"value": 1}

    job = jobs.start("h", "ann", "ask", "q", "ann/1", work)
    assert begun.wait(120)
    told = jobs.cancel(jobs.get("h", job.id, "ann"))
    jobs._write(replace(told, state="done", result={"value": 1}))  # as another process might
    go.set()
    assert jobs.end(20)
    seen = jobs.get("h", job.id, "ann")
    assert (told.state, seen.state, seen.result) == ("cancelled", "cancelled", None)


def test_jobs_of_a_process_that_died_have_failed(jobs: Jobs) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait(120)
    jobs._write(StoredJob("a" * 24, "h", "ann", "ask", state="running", worker=gone.pid))
    told = jobs.get("h", "a" * 24, "ann")
    assert (told.state, told.to_dict()["error"]["kind"]) == ("failed", "busy")


def test_jobs_have_no_names_of_files(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "state" / "secret.json").write_text("{}")
    for name in ("../secret", "..", "", "a/b", "\0"):
        with pytest.raises(HttpError):
            jobs.get("h", name, None)


# Who may be reached from where.


def test_without_tokens_nothing_beyond_loopback(folder: Path) -> None:
    hosts = ("0.0.0.0", "192.0.2.1", "::", "example.org")
    for host in hosts:
        with pytest.raises(Infeasible, match="token"):
            _checked(Settings(folders=(folder,), host=host))
    with Holdout.open(folder) as holdout:
        grant, _ = holdout.access.grant("viewer")
        holdout.access.revoke(grant.id)  # nobody can ask, so nobody can be reached
    for host in hosts:
        assert _checked(Settings(folders=(folder,), host=host)) == ["study"]


def test_beyond_loopback_a_token_is_needed_whatever_happened(folder: Path, served: Serve) -> None:
    client = served(folder, host="192.0.2.1")
    assert client.get(f"{BASE}/status", headers={"Host": "h.example"}).status_code == 401


def test_names_of_tokens_cannot_write_the_log(folder: Path) -> None:
    with Holdout.open(folder) as holdout:
        for name in ("a\nb", "a\x1b[2Jb", "\u2028", " "):
            with pytest.raises(InvalidInput):
                holdout.access.grant("viewer", name=name)


def test_openapi_names_no_holdout(study: Study) -> None:
    text = study.client.get("/api/openapi.json").text
    assert "study" not in text
    told = json.loads(text)
    assert "422" not in told["paths"]["/api/holdouts/{holdout}/ask"]["post"]["responses"]


# Heads that never end.


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "])
def test_a_head_that_does_not_come_ends_the_connection(
    begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.server.middleware._SECONDS", 0.05)

    async def wait_for_the_end(*place: Any) -> bytes:
        reader, writer = await asyncio.open_connection(*place)
        writer.write(begun)
        told = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        return told

    assert listening(wait_for_the_end) == b""
