"""What is told, over HTTP: every verb about predictions, quotas in nats, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from holdfast.client.wire import content_of, contents_of
from holdfast.errors import InvalidInput
from holdfast.holdout.answering import OpenHoldout
from holdfast.holdout.check import check_holdout
from holdfast.holdout.custody import Access
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.tokens import ROLES
from holdfast.server.bodies import read_parts
from holdfast.server.schemas import SHAPES, PriceShape, StandingsShape, StatusShape, ToldShape
from holdfast.verbs import SCORES
from tests.holdout.test_told import made, right, rows
from tests.server.conftest import auth

WHERE = "/api/holdouts/play"
FRAME = rows(seed=31, size=1_000)
GOOD, FAIR, POOR = (right(FRAME, share) for share in (0.95, 0.9, 0.7))
PARQUET = "application/vnd.apache.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A holdout without a plan; in the end its ledger must check."""
    path = tmp_path / "play.holdfast"
    made(path, FRAME).close()
    yield path
    check = check_holdout(path)
    assert check.passed, str(check)


@pytest.fixture
def tokens(folder: Path) -> dict[str, str]:
    """One token of every role, that may be told anything."""
    with Holdout.open(folder) as holdout:
        return {role: holdout.access.grant(role, name=role, nats=None)[1] for role in ROLES}


def post(
    client: TestClient, token: str, what: str, given: Any, kind: str | None = None, **words: Any
) -> Any:
    """A reply to predictions: those of one, or of several by their names."""
    if isinstance(given, bytes | str):
        data, found = given, kind or "text/csv"
    else:
        several = isinstance(given, dict) and not isinstance(next(iter(given.values())), int)
        content = contents_of(given) if several else content_of(given)
        data, found = content.data, kind or content.kind
    headers = {**auth(token), "Content-Type": found}
    return client.post(f"{WHERE}/{what}", params=words, content=data, headers=headers)


PAIR = {"new": GOOD, "old": POOR}
INCUMBENT = {"predictions": GOOD, "better_than": POOR}
ASKED: list[tuple[str, Any, dict[str, Any]]] = [
    ("score", FAIR, {"guess": 0.9}),
    ("score", POOR, {"precise": True, "metric": "brier"}),
    ("compare", PAIR, {}),
    ("compare", PAIR, {"margin": 0, "guess": 0.25, "guess_se": 0.01}),
    ("gate", FAIR, {"at_least": 0.6}),
    ("gate", POOR, {"at_least": 0.95, "tolerance": 0.01}),
    ("gate", INCUMBENT, {"margin": 0.01}),
    ("best", {"a": POOR, "b": GOOD, "c": FAIR}, {}),
    ("best", {"a": POOR, "b": GOOD}, {"precise": True}),
    ("scores", {"a": POOR, "b": GOOD}, {"guesses": "0.7,"}),
    ("enter", FAIR, {"name": "ann"}),
]


def test_every_verb_is_priced_answered_and_shaped(
    folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]
) -> None:
    client, token, told = served(folder), tokens["analyst"], []
    for verb, given, words in ASKED:
        if verb != "enter":
            head = client.get(f"{WHERE}/transcript", headers=auth(token)).json()["rows"]
            price = post(client, token, f"price/{verb}", given, **words)
            assert price.status_code == 200, (verb, price.text)
            offer = PriceShape.model_validate(price.json())
            assert offer.told is not None
            assert offer.told.answers
            assert math.fsum(math.exp(-each.nats) for each in offer.told.answers[:4]) < 1.001
            assert all(each.level >= offer.told.level for each in offer.told.answers)
            assert head == client.get(f"{WHERE}/transcript", headers=auth(token)).json()["rows"]
        reply = post(client, token, verb, given, **words)
        assert reply.status_code == 200, (verb, reply.text)
        TypeAdapter(SHAPES[SCORES[verb].answer]).validate_python(reply.json())
        told.append(reply.json())
    verdicts = [each["verdict"] for each in told if each["verdict"]]
    assert verdicts == ["better", "pass", "fail", "pass"]
    winner, precise, batch = told[7], told[8], told[9]
    assert (winner["winner"], winner["names"]) == (1, ["a", "b", "c"])
    assert [each["verb"] for each in precise["batch"]] == ["score"]
    assert [each["low"] < each["value"] < each["high"] for each in batch["batch"]] == [True, True]
    assert (told[10]["name"], told[10]["metric"], told[10]["type"]) == ("ann", "accuracy", "told")
    assert told[3]["facts"]["against"] == "old"
    sums = [each["told_so_far"] for each in told]
    assert sums == sorted(sums)
    board = client.get(f"{WHERE}/leaderboard", headers=auth(tokens["viewer"])).json()
    standings = StandingsShape.model_validate(board)
    assert [each.name for each in standings.entries] == ["ann"]
    assert (standings.certified, standings.reading) == (True, "these-rows-fresh-labels")


def test_neighbours_are_priced_compared_and_shaped(
    folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]
) -> None:
    client, token = served(folder), auth(tokens["analyst"])
    for name, given in (("good", GOOD), ("fair", FAIR), ("poor", POOR)):
        assert post(client, tokens["custodian"], "enter", given, name=name).status_code == 200
    place, words = f"{WHERE}/neighbours", {"top": 3}
    before = client.get(f"{WHERE}/transcript", headers=token).json()
    offered = client.post(f"{WHERE}/price/neighbours", params=words, headers=token).json()
    offers = StandingsShape.model_validate(offered).neighbours
    assert offers is not None
    assert [(each.result, each.reason) for each in offers] == [(None, None)] * 2
    assert all(each.price is not None and each.price.told is not None for each in offers)
    assert client.get(f"{WHERE}/transcript", headers=token).json() == before
    reply = client.post(place, params=words, headers=token)
    assert reply.status_code == 200, reply.text
    told = StandingsShape.model_validate(reply.json()).neighbours
    assert told is not None
    assert [each.names for each in told] == [["good", "fair"], ["fair", "poor"]]
    assert [each.result is not None and not each.result.cached for each in told] == [True] * 2
    assert told[1].said.startswith("fair is better than poor by 0.")
    again = client.post(place, headers=token).json()["neighbours"]
    assert [each["result"]["cached"] for each in again] == [True] * 2
    same = post(client, tokens["analyst"], "compare", {"good": GOOD, "fair": FAIR}).json()
    assert (same["cached"], same["receipt"]) == (True, again[0]["result"]["receipt"])
    mine = {each["mine"] for each in reply.json()["entries"]}
    assert mine == {False}
    with Holdout.open(folder) as holdout:
        _, poor = holdout.access.grant("analyst", nats=0.001)
        (kept,) = {each.parent for each in (folder / "predictions").iterdir()}
        assert len([*kept.iterdir()]) == 3
    for name in ("predictions", "predictions/"):  # nobody is ever given them
        assert client.get(f"{WHERE}/{name}", headers=auth(tokens["custodian"])).status_code == 404
    refused = client.post(place, headers=auth(tokens["viewer"]))
    assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "forbidden")
    for wrong, reason in (
        ({"top": 1}, "top"),
        ({"metric": "f1"}, "a mean over rows"),
        ({"top": 101}, "top"),
    ):
        error = client.post(place, params=wrong, headers=token)
        assert (error.status_code, reason in error.json()["error"]["message"]) == (400, True)
    post(client, poor, "score", FAIR, guess=0.899)
    post(client, tokens["custodian"], "enter", right(FRAME, 0.8), name="new")
    limited = client.post(place, headers=auth(poor)).json()["neighbours"]
    assert limited[0]["result"]["cached"]
    assert [each["reason"][:23] for each in limited[1:]] == ["Your quota is exhausted"] * 2


def test_neighbours_take_no_word_that_means_nothing(
    folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]
) -> None:
    client, token = served(folder), auth(tokens["analyst"])
    for where in ("neighbours", "price/neighbours"):
        for words in ({"price": True}, {"margin": 0}):  # which would have told nothing, or less
            reply = client.post(f"{WHERE}/{where}", params=words, headers=token)
            assert (reply.status_code, reply.json()["error"]["parameter"]) == (400, *words)


def test_a_token_that_ends_between_two_neighbours_is_told_no_more(
    folder: Path,
    tokens: dict[str, str],
    served: Callable[..., TestClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, token = served(folder), auth(tokens["analyst"])
    for name, given in (("good", GOOD), ("fair", FAIR), ("poor", POOR)):
        assert post(client, tokens["custodian"], "enter", given, name=name).status_code == 200
    answer = OpenHoldout.answer

    def ended_after(self: OpenHoldout, *given: Any) -> Any:
        found = answer(self, *given)
        access = Access(self.journal)
        for each in access.holding().values():
            if each.role == "analyst":
                access.revoke(each.id)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(OpenHoldout, "answer", ended_after)
        assert client.post(f"{WHERE}/neighbours", headers=token).status_code == 401
    with Holdout.open(folder) as holdout:
        assert holdout.status().answers == 4


def test_questions_in_sql_are_told_too(
    folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]
) -> None:
    client, headers = served(folder), auth(tokens["analyst"])
    asked: dict[str, dict[str, Any]] = {
        "mean": {"term": "x > 0.3", "guess": 0.7, "guess_se": 0.02},
        "ask": {"estimator": "avg(x)", "grid": "0:1:0.01", "guess": 0.5},
        "interval": {"estimator": "max(x)", "grid": "0:1:0.01"},
        "verify": {"estimator": "avg(x)", "guess": 0.5, "tolerance": 0.2, "max_level": 50},
    }
    for verb, words in asked.items():
        price = client.post(f"{WHERE}/price", json={"verb": verb, **words}, headers=headers)
        assert PriceShape.model_validate(price.json()).currency == "nats"
        reply = client.post(f"{WHERE}/{verb}", json=words, headers=headers)
        assert ToldShape.model_validate(reply.json()).verb == verb
        again = client.post(f"{WHERE}/price", json={"verb": verb, **words}, headers=headers)
        assert (again.json()["cached"], again.json()["price"]) == (True, 0)
    wrong = {"term": "x > 0.4", "max_level": 0.1}
    refused = client.post(f"{WHERE}/mean", json=wrong, headers=headers)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "exhausted")
    job = client.post(f"{WHERE}/jobs", json={"verb": "mean", "term": "x > 0.6"}, headers=headers)
    assert job.status_code == 202


def test_predictions_come_in_every_form_and_are_one_question(
    folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]
) -> None:
    client, token = served(folder), tokens["analyst"]
    csv, by_id = FAIR.to_csv(index=False), FAIR.set_index("row")["prediction"].to_json()
    first = post(client, token, "score", csv).json()
    forms = [(by_id, "application/json"), (FAIR.to_parquet(index=False), PARQUET)]
    forms += [(FAIR.to_json(orient="records"), "application/json; charset=utf-8")]
    for data, kind in forms:
        same = post(client, token, "score", data, kind).json()
        assert (same["cached"], same["receipt"]) == (True, first["receipt"])
    parts = {"a": csv.encode(), "b": POOR.to_parquet(index=False)}
    one = post(client, token, "compare", parts).json()
    same = post(client, token, "compare", {"a": FAIR, "b": POOR}).json()
    assert (same["cached"], same["receipt"]) == (True, one["receipt"])


# Quotas in nats.


def test_a_token_is_told_so_many_nats(
    folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]
) -> None:
    with Holdout.open(folder) as holdout:
        grant, token = holdout.access.grant("analyst", name="ann")
        _, rich = holdout.access.grant("analyst", name="bob", nats=50)
        assert (grant.nats, grant.quota) == (5, None)
    client, keeper = served(folder), auth(tokens["custodian"])
    first = post(client, token, "score", POOR, guess=0.9).json()  # a surprise
    assert first["told"] > 5  # the last answer may go beyond what was left
    before = client.get(f"{WHERE}/status", headers=auth(token)).json()
    StatusShape.model_validate(before)
    assert before["quota"]["nats"] == 5
    assert before["quota"]["told"] == first["told"]
    refused = post(client, token, "score", GOOD)
    error = refused.json()["error"]
    assert (refused.status_code, error["kind"]) == (409, "exhausted")
    assert error["message"] == (
        "Your quota is exhausted: this needs more nats, and none of 5 is left. "
        "Ask the custodian for a larger quota. Questions asked before are free."
    )
    assert {"what", "needed", "left", "remedy"} <= set(error)
    priced = post(client, token, "price/score", GOOD).json()
    assert (priced["affordable"], priced["reason"]) == (False, error["message"])
    assert (priced["budget"], priced["budget_left"]) == (5, 0)
    assert post(client, token, "score", POOR, guess=0.9).json()["cached"]  # it is free
    assert post(client, rich, "score", GOOD).status_code == 200  # others have their own
    listed = client.get(f"{WHERE}/tokens", headers=keeper).json()
    mine = next(each for each in listed if each["id"] == grant.id)
    assert (mine["nats"], mine["told"]) == (5, before["quota"]["told"])
    place = f"{WHERE}/tokens/{grant.id}"
    assert client.patch(place, json={"nats": 20}, headers=keeper).json()["nats"] == 20
    assert post(client, token, "gate", GOOD, at_least=0.5).status_code == 200
    assert client.patch(place, json={"nats": None}, headers=keeper).json()["nats"] is None
    status = client.get(f"{WHERE}/status", headers=auth(token)).json()
    assert status["quota"]["nats"] is None
    notes = client.get(f"{WHERE}/audit", headers=keeper, params={"limit": 1000}).json()["rows"]
    changes = [each["note"]["access"] for each in notes if "access" in each.get("note", {})]
    assert [each for each in changes if "role" not in each] == [
        {"token": grant.id, "nats": 20.0},
        {"token": grant.id, "nats": None},
    ]


def test_status_and_counts_say_what_was_told(
    folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]
) -> None:
    client, viewer = served(folder), auth(tokens["viewer"])
    told = post(client, tokens["analyst"], "score", FAIR).json()
    status = client.get(f"{WHERE}/status", headers=viewer).json()
    (only,) = StatusShape.model_validate(status).sets
    assert only.told is not None
    assert (only.currency, only.budget, only.told.answers) == ("nats", None, 1)
    assert only.told.nats == only.spent == told["told_so_far"]
    left = client.get(f"{WHERE}/left", headers=viewer, params={"queries": 10**6}).json()
    assert (left["parts"], left["fits"]) == ([], True)  # nothing is used up
    counted = client.get("/metrics", headers=viewer).text
    labels = '{holdout="play",set="told"}'
    assert f"holdfast_told_nats{labels} {only.told.nats}" in counted
    assert f"holdfast_level_nats{labels} {only.told.level}" in counted
    assert "holdfast_budget_used_ratio{" not in counted


# What is wrong, each refused with the reason, and nothing told.


TWICE = pd.concat([FAIR, FAIR[:1]])
BY_ID = dict(zip(FAIR.row.tolist(), FAIR.prediction.tolist(), strict=True))
CSV = FAIR.to_csv(index=False)
MIXED = "multipart/mixed; boundary=x"


def part(name: str = "a", content: str = CSV, head: str = "Content-Disposition: form-data") -> str:
    return f'--x\r\n{head}; name="{name}"\r\n\r\n{content}\r\n'


WRONG: dict[str, tuple[str, Any, dict[str, Any], str]] = {
    "probabilities": ("score", FAIR.assign(prediction=0.3), {}, "labels"),
    "no such label": ("score", FAIR.assign(prediction=2), {}, "labels"),
    "not a number": ("score", FAIR.assign(prediction=math.nan), {}, "other predictions"),
    "not a number in JSON": ("score", '{"0": NaN}', {"kind": "application/json"}, "finite"),
    "an id twice": ("score", TWICE, {}, "come twice"),
    "half of the ids": ("score", FAIR[len(FAIR) // 2 :], {}, "without a prediction"),
    "unknown ids": ("score", {**BY_ID, 10**6: 1}, {}, "unknown ids"),
    "no guess": ("score", FAIR, {"guess": "nan"}, "guess: Input should be a finite number"),
    "an endless guess": ("score", FAIR, {"guess": "inf"}, "guess: Input should be a finite"),
    "a guess beyond 1": ("score", FAIR, {"guess": 1.01}, "in [0, 1]"),
    "a guess below −1": ("compare", PAIR, {"guess": -1.01}, "in [-1, 1]"),
    "an error below 0": ("score", FAIR, {"guess": 0.5, "guess_se": -1}, "guess_se"),
    "guesses in words": ("scores", PAIR, {"guesses": "a,b"}, "numbers with commas"),
    "a guess too few": ("scores", PAIR, {"guesses": "0.5"}, "one for each of 2"),
    "a guess that is none": ("scores", PAIR, {"guesses": "nan,0.5"}, "in [0, 1]"),
    "best of one": ("best", {"a": GOOD}, {}, "from 2"),
    "best of none": ("best", "--x--\r\n", {"kind": MIXED}, "from 2"),
    "equal candidates": ("best", {"a": GOOD, "b": POOR, "c": GOOD}, {}, "different rules"),
    "with itself": ("compare", {"a": GOOD, "b": GOOD}, {}, "different rules"),
    "three of them": ("compare", {"a": GOOD, "b": FAIR, "c": POOR}, {}, "two parts"),
    "an incumbent that is it": ("gate", {**INCUMBENT, "better_than": GOOD}, {}, "different rules"),
    "other parts": ("gate", PAIR, {}, "predictions and better_than"),
    "both sides": ("gate", FAIR, {"at_least": 0.5, "at_most": 0.6}, "only one of them"),
    "no side": ("gate", FAIR, {}, "only one of them"),
    "two incumbents": ("gate", INCUMBENT, {"at_least": 0.5}, "only one of them"),
    "a margin alone": ("gate", FAIR, {"at_least": 0.5, "margin": 0.1}, "without better_than"),
    "beyond the metric": ("gate", FAIR, {"at_least": 1.5}, "where every accuracy lies"),
    "a threshold of nothing": ("gate", FAIR, {"at_least": "nan"}, "finite"),
    "less than no margin": ("compare", PAIR, {"margin": -0.1}, "margin"),
    "no mean over rows": ("compare", PAIR, {"metric": "f1"}, "a mean over rows"),
    "another verb's word": ("score", FAIR, {"margin": 0}, "margin: Extra inputs"),
    "a target": ("score", FAIR, {"target": "x"}, "target: Extra inputs"),
    "no name": ("enter", FAIR, {}, "name: Field required"),
    "one where two are wanted": ("compare", FAIR, {}, "multipart/mixed"),
    "two where one is wanted": ("score", PAIR, {}, "text/csv"),
    "a form": ("best", CSV, {"kind": "multipart/form-data; boundary=x"}, "multipart/mixed"),
    "a name twice": ("best", part() + part() + "--x--", {"kind": MIXED}, "a name twice"),
    "no boundary": ("best", part() + "--x--", {"kind": "multipart/mixed"}, "no boundary"),
    "no end": ("best", part() + part("b"), {"kind": MIXED}, "no end"),
    "no headers": ("best", "--x\r\na--x--", {"kind": MIXED}, "no end"),
    "no name of a part": ("best", part(head="X: y") + "--x--", {"kind": MIXED}, "without a name"),
    "an odd name": ("best", part("%0a") + part("b") + "--x--", {"kind": MIXED}, "printable"),
    "no predictions": ("best", part() + part("b", "x") + "--x--", {"kind": MIXED}, "columns"),
}


def test_what_is_wrong_is_refused_and_nothing_is_told(
    folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]
) -> None:
    client = served(folder)
    with Holdout.open(folder) as holdout:
        before = holdout.receipt
        for name, (verb, given, words, reason) in WRONG.items():
            for place in (verb, f"price/{verb}") if verb != "enter" else (verb,):
                reply = post(client, tokens["analyst"], place, given, **words)
                error = reply.json()["error"]
                assert reply.status_code in (400, 415), (name, place, error)
                assert reason in error["message"], (name, place, error)
                asked = post(client, tokens["viewer"], place, given, **words)
                assert asked.status_code == 403
        assert holdout.receipt == before
        assert holdout.status().answers == 0


def test_too_much_is_refused_before_it_is_read(
    folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]
) -> None:
    client = served(folder, submission_limit=3_000, body_limit=2_000)
    for verb in SCORES:
        for size, status in ((3_001, 413), (2_999, 400)):
            kind = MIXED if verb in ("best", "compare", "scores") else "text/csv"
            reply = post(client, tokens["analyst"], verb, "x" * size, kind, name="n", at_least=0)
            assert reply.status_code == status, verb
    many = "".join(part(str(k), "x") for k in range(1_001)) + "--x--"
    with pytest.raises(InvalidInput, match="more than 1,000 parts"):
        read_parts((many[:-5] + part("last", "x") + "--x--").encode(), MIXED)


def test_parts_are_taken_as_they_are() -> None:
    contents = {"a": b"\r\n--y\r\n\r\n", "b": b"", "c": b"PAR1\x00\xff\r\n", 'd "ü" %22': b"--x"}
    sent = contents_of(contents)
    assert dict(read_parts(sent.data, sent.kind)) == contents
    quoted = sent.kind.replace("boundary=", 'charset=x; boundary="') + '"'
    assert dict(read_parts(b"before\r\n" + sent.data + b"after", quoted)) == contents


def test_a_key_is_answered_once(
    folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]
) -> None:
    client = served(folder)
    headers = {**auth(tokens["analyst"]), "Idempotency-Key": "k"}
    sent = contents_of({"a": GOOD, "b": POOR})
    mixed = {**headers, "Content-Type": sent.kind}
    place = f"{WHERE}/best?precise=true"
    first = client.post(place, content=sent.data, headers=mixed).json()
    again = client.post(place, content=sent.data, headers=mixed).json()
    assert (again["cached"], again["batch"][0]["cached"]) == (True, True)
    assert (again["receipt"], again["letter"]) == (first["receipt"], first["letter"])
    other = {**headers, "Content-Type": "text/csv"}
    conflict = client.post(f"{WHERE}/score", content=CSV, headers=other)
    assert (conflict.status_code, conflict.json()["error"]["kind"]) == (409, "conflict")
