"""What an operator relies on: limits, one sick holdout among others, and a log that says why."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.engines.process import Worker
from holdfast.engines.sql.engine import SqlEngine
from holdfast.errors import Damaged, InvalidInput
from holdfast.holdout.creation import preview_without_plan
from holdfast.holdout.submissions import read_json
from holdfast.server import routes, run, service
from holdfast.server.errors import HttpError
from holdfast.server.run import _checked
from holdfast.server.service import Bodies
from holdfast.server.settings import Settings
from tests.planning.test_widths import NAMES
from tests.server.conftest import Serve, Study, auth, listening, made, tokens_of

ASK = {"estimator": "avg(x)", "grid": "0:7:1"}
STRANGER = "hf_abcdefgh_" + "a" * 43


Lines = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Lines:
    """The facts of the log's lines about an event."""
    monkeypatch.setattr(logging.getLogger("holdfast.server"), "propagate", True)
    caplog.set_level(logging.INFO, "holdfast.server")

    def found(event: str) -> list[dict[str, Any]]:
        return [each.facts for each in caplog.records if each.getMessage() == event]  # type: ignore[attr-defined]

    return found


# One sick holdout.


@pytest.fixture
def two(tmp_path: Path, served: Serve) -> Iterator[dict[str, Study]]:
    """Holdouts a and b on one server; the ledger of a is gone."""
    folders = {name: made(tmp_path / name) for name in "ab"}
    tokens = {name: tokens_of(path) for name, path in folders.items()}
    client = served(*folders.values())
    away = tmp_path / "away"
    away.mkdir()
    ledger = sorted(folders["a"].glob("ledger.sqlite*"))
    for each in ledger:
        each.rename(away / each.name)
    yield {name: Study(client, tokens[name], f"/api/holdouts/{name}") for name in "ab"}
    for each in ledger:
        (away / each.name).rename(each)


def test_one_sick_holdout_does_not_touch_the_others(
    two: dict[str, Study], lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def planned(*_: Any) -> dict[str, Any]:
        return {}

    monkeypatch.setattr("holdfast.server.routes.comparison", planned)
    sick, ours = two["a"], two["b"]
    for place in ("/api/holdouts", "/metrics", "/api/plan", "status"):
        assert ours.get(place).status_code == 200
    assert ours.post("ask", json=ASK).status_code == 200
    for name in ("a", "zzz"):  # as ever: a token of b does not learn that there is an a
        assert ours.get(f"/api/holdouts/{name}/status").status_code == 404
    statuses = [f"/api/holdouts/{name}/status" for name in ("a", "b", "zzz")]
    for place in ("/api/holdouts", "/metrics", "/api/plan", *statuses):
        assert ours.get(place, STRANGER).status_code == 401
    for place in ("status", "/api/holdouts"):
        told = sick.get(place, "viewer")
        assert (told.status_code, told.json()["error"]["kind"]) == (500, "damaged")
    assert 'holdfast_holdout_up{holdout="b"} 1.0' in ours.get("/metrics").text
    seen = sick.get("/metrics", "viewer").text
    assert 'holdfast_holdout_up{holdout="a"} 0.0' in seen
    assert 'holdout="b"' not in seen
    assert {each["holdout"] for each in lines("holdout away")} == {"a"}
    assert all("ledger" in each["reason"] for each in lines("holdout away"))
    failed = [each for each in lines("request") if each["status"] == 500]
    assert [each.get("holdout") for each in failed] == ["a", None]
    damaged = "Damaged at holdfast"
    assert all(each["reason"] and each["error"].startswith(damaged) for each in failed)


def test_ready_says_whether_every_holdout_can_be_asked(
    two: dict[str, Study], tmp_path: Path
) -> None:
    client = two["a"].client
    assert client.get("/health").json() == {"status": "ok"}
    told = client.get("/ready")
    assert (told.status_code, told.json()["error"]["kind"]) == (503, "busy")
    assert "ledger" not in told.text
    for each in (tmp_path / "away").iterdir():
        each.rename(tmp_path / "a" / each.name)
    assert client.get("/ready").json() == {"status": "ok"}
    for each in (tmp_path / "a").glob("ledger.sqlite*"):
        each.rename(tmp_path / "away" / each.name)


def test_ready_goes_through_the_threads_that_requests_need(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As everything has a deadline: whoever waits is told to come again."""
    monkeypatch.setattr(service, "_READ_SECONDS", 0.05)
    free = threading.Event()
    for _ in range(service._READERS):
        study.app.state.service._reading.submit(free.wait, 120)
    try:
        for place in ("/ready", "/api/holdouts", "status"):
            told = study.get(place, STRANGER)
            assert (told.status_code, told.json()["error"]["kind"]) == (503, "busy")
        assert study.client.get("/health").status_code == 200
    finally:
        free.set()


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """An evaluation that has begun, and one that may end."""
    begun, free, values = threading.Event(), threading.Event(), SqlEngine.values

    def waiting(*words: Any, **more: Any) -> Any:
        begun.set()
        assert free.wait(120)
        return values(*words, **more)

    monkeypatch.setattr(SqlEngine, "values", waiting)
    return begun, free


def test_a_question_that_never_ends_has_a_deadline(
    study: Study, stuck: tuple[threading.Event, threading.Event]
) -> None:
    begun, free = stuck
    study.app.state.service._ask_seconds = 0.5
    told = study.post("ask", json=ASK)
    assert (told.status_code, told.json()["error"]["kind"]) == (503, "busy")
    free.set()
    study.app.state.service._ask_seconds = 120.0
    again = study.post("ask", json=ASK).json()
    assert again["cached"] == begun.is_set()  # asked or, on a busy machine, not begun


# What is counted.


def test_what_is_under_way_is_told_with_its_age(
    study: Study, stuck: tuple[threading.Event, threading.Event]
) -> None:
    begun, free = stuck
    asker = threading.Thread(target=lambda: study.post("ask", json=ASK))
    asker.start()
    assert begun.wait(120)
    during = study.get("/metrics").text
    free.set()
    asker.join(120)
    after = study.get("/metrics").text
    assert 'holdfast_requests_under_way{holdout="study"} 1.0' in during
    assert 'holdfast_requests_under_way{holdout="study"} 0.0' in after
    age = 'holdfast_oldest_request_seconds{holdout="study"} '
    ages = [float(text.partition(age)[2].split()[0]) for text in (during, after)]
    assert ages[0] > 0
    assert ages[1] == 0


def test_requests_are_counted_by_holdout_and_shown_to_those_who_may_see_it(
    tmp_path: Path, served: Serve
) -> None:
    tokens = {name: tokens_of(made(tmp_path / name)) for name in "ab"}
    client = served(tmp_path / "a", tmp_path / "b")
    for name in "ab":
        client.get(f"/api/holdouts/{name}/status", headers=auth(tokens[name]["viewer"]))
    seen = client.get("/metrics", headers=auth(tokens["a"]["viewer"])).text
    route = 'route="/api/holdouts/{holdout}/status",status="200"'
    assert f'holdfast_requests_total{{holdout="a",method="GET",{route}}} 1.0' in seen
    assert 'holdout="b"' not in seen


def test_only_custodians_learn_that_an_answer_was_late(study: Study, lines: Lines) -> None:
    """It may be late because of what is in the rows."""
    study.app.state.service.counts.late("study", 0.125)
    line = 'holdfast_late_answers_total{holdout="study"} 1.0'
    told = [role for role in study.tokens if line in study.get("/metrics", role).text]
    assert told == ["custodian"]
    assert lines("late") == [{"holdout": "study", "seconds": 0.125}]


def test_refused_tokens_are_logged_with_an_address(
    folder: Path, tokens: dict[str, str], served: Serve, lines: Lines
) -> None:
    here = Study(served(folder, rate=0.001, burst=1), tokens)
    for token in (STRANGER, "viewer", "viewer"):
        here.get("status", token)
    told = [(each["status"], each.get("client")) for each in lines("request")]
    assert told == [(401, "testclient"), (200, None), (429, "testclient")]


# Bodies.


def test_without_a_token_nobody_learns_what_is_wrong_with_a_request(study: Study) -> None:
    for token in (None, STRANGER):
        for content in (b"{", b"[]", b'{"estimator": 1}', b"[" * 60_000, b"\xff"):
            json_ = {"Content-Type": "application/json"}
            assert study.post("ask", token, content=content, headers=json_).status_code == 401
        for place in ("/api/plan?rows=x", "/api/holdouts/%20/status", "jobs/x"):
            assert study.get(place, token).status_code == 401
        odd = {"Idempotency-Key": "a b", "Content-Type": "text/plain"}
        assert study.post("gate", token, headers=odd).status_code == 401


def test_bytes_in_flight_are_bounded_for_one_and_for_all() -> None:
    bodies = Bodies(of_one=100, of_all=250)
    with bodies.held("ann", 60), bodies.held("ann", 40), bodies.held("bob", 100):
        with pytest.raises(HttpError) as one, bodies.held("ann", 1):
            pass
        with pytest.raises(HttpError) as every, bodies.held("eve", 51):
            pass
        with bodies.held("eve", 50):
            pass
    assert (one.value.kind, every.value.kind) == ("too_many", "busy")
    with bodies.held("ann", 100):  # all of it was given back
        pass
    assert not bodies._held


CSV = {"Content-Type": "text/csv"}


def test_a_body_is_counted_before_it_is_read(
    folder: Path, tokens: dict[str, str], served: Serve
) -> None:
    here = Study(served(folder, body_limit=2_000, submission_limit=2_000), tokens)
    asker = f"study/{tokens['analyst'].split('_')[1]}"
    with here.app.state.service.bodies.held(asker, 1_500):
        sent = here.post("gate", content=b"x" * 600, headers=CSV)
        assert (sent.status_code, sent.json()["error"]["kind"]) == (429, "too_many")
        assert sent.headers["retry-after"] == "1"
        pieces = here.post("gate", content=iter([b"x"]), headers=CSV)  # as much as may come
        assert pieces.status_code == 429
    assert here.post("gate", content=b"x" * 600, headers=CSV).status_code == 400


def test_submissions_count_against_the_rate_before_they_are_read(
    folder: Path, tokens: dict[str, str], served: Serve
) -> None:
    here = Study(served(folder, rate=0.001, burst=2), tokens)
    seen = [here.post("gate", content=b"x", headers=CSV).status_code for _ in range(3)]
    assert seen == [400, 400, 429]


# Descriptors, disks and files.


def test_no_room_after_the_charge_is_not_told_as_busy(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again by itself, it would be paid again."""

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SqlEngine, "values", full)
    told = study.post("ask", json=ASK)
    assert (told.status_code, told.json()["error"]["kind"]) == (500, "internal")


def test_connections_leave_descriptors_for_everything_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (8, 8))

    async def connect(*place: Any) -> list[bool]:
        made = [await asyncio.open_connection(*place) for _ in range(5)]
        last = made[-1][0]
        try:
            ended = await asyncio.wait_for(last.read(), 20) == b""
        except ConnectionResetError:
            ended = True
        open_ones = [not reader.at_eof() for reader, _ in made[:4]]
        for _, writer in made:
            writer.close()
        return [ended, *open_ones]

    assert listening(connect) == [True] * 5


def test_the_soft_limit_of_descriptors_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.setrlimit", lambda _, limits: raised.append(limits))
    for soft, hard in (
        (256, 4096),
        (1024, 10**6),
        (1024, resource.RLIM_INFINITY),
        (10**6,) * 2,
    ):
        monkeypatch.setattr("resource.getrlimit", lambda _, limits=(soft, hard): limits)
        run._raise_descriptors()
    assert raised == [(4096, 4096), (2**16, 10**6), (2**16, resource.RLIM_INFINITY)]


def test_damaged_blocks_are_found_before_anybody_connects(folder: Path) -> None:
    assert _checked(Settings(folders=(folder,))) == ["study"]
    blocks = folder / "blocks.parquet"
    content = bytearray(blocks.read_bytes())
    content[len(content) // 2] ^= 1
    blocks.write_bytes(content)
    with pytest.raises(Damaged):
        _checked(Settings(folders=(folder,)))


def test_json_with_many_more_values_than_rows_is_not_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was parsed")

    content = json.dumps({str(k): 1 for k in range(5_000)}).encode()
    assert len(read_json(content, "id", 5_000)) == 5_000
    monkeypatch.setattr("holdfast.holdout.submissions.json.loads", never)
    with pytest.raises(InvalidInput, match="Nothing was charged"):
        read_json(content, "id", 100)


def test_strict_transport_security_goes_with_a_certificate(
    folder: Path, served: Serve, tmp_path: Path
) -> None:
    plain = served(folder)
    assert "strict-transport-security" not in plain.get("/health").headers
    encrypted = served(folder, tls_cert=tmp_path / "c", tls_key=tmp_path / "k")
    assert "max-age" in encrypted.get("/health").headers["strict-transport-security"]


# The planner.


def test_the_server_plans_in_a_process_of_its_own_and_starts_it_again(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = Worker("holdfast.planning.widths")
    dead.kill()
    monkeypatch.setattr(routes, "_workers", [dead])
    asked: dict[str, int | str] = {"rows": 1_000, "queries": 3, "curve": "false"}
    told = study.get("/api/plan", "viewer", params=asked).json()
    assert [each["name"] for each in told["methods"]] == NAMES
    assert told["curve"] == []
    assert told["told"] == json.loads(json.dumps(preview_without_plan(1_000, 3).to_dict()))
    monkeypatch.setattr(routes, "_compare", _never)
    assert study.get("/api/plan", "viewer", params=asked).json() == told  # remembered
    wrongs = {"rows": 1, "queries": 0, "tail": 0.5, "confidence": 2}
    for name, wrong in [*wrongs.items(), ("rows", "x")]:
        refused = study.get("/api/plan", "viewer", params={name: wrong})
        assert refused.status_code == 400
        assert refused.json()["error"]["parameter"] == name


def test_too_many_at_once_are_told_to_wait(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes._waiting, "acquire", lambda blocking: False)
    busy = study.get("/api/plan", "viewer", params={"rows": 1_001})
    assert busy.status_code == 503
    assert busy.headers["Retry-After"]


def test_a_plan_that_no_blocks_can_have_is_refused_with_the_reason(study: Study) -> None:
    asked = {"rows": 100, "queries": 10**6, "tail": 0.499999, "confidence": 0.9999}
    refused = study.get("/api/plan", "viewer", params={**asked, "curve": False})
    assert refused.status_code == 400
    assert "Ask fewer questions" in refused.json()["error"]["message"]


def _never(*_: object) -> Any:
    raise AssertionError("it was remembered")
