"""What is told, over HTTP: every verb about predictions, quotas in nats, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
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
from tests.server.conftest import Serve, Study

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
def study(folder: Path, served: Serve) -> Study:
    """It is served; tokens may be told anything."""
    with Holdout.open(folder) as holdout:
        tokens = {str(r): holdout.access.grant(r, name=r, nats=None)[1] for r in ROLES}
    return Study(served(folder), tokens, WHERE)


def post(
    study: Study, to: str, given: Any, role: str = "analyst", kind: str | None = None, **words: Any
) -> Any:
    """A reply to predictions: those of one, or of several by their names."""
    if isinstance(given, bytes | str):
        data, found = given, kind or "text/csv"
    else:
        several = isinstance(given, dict) and not isinstance(next(iter(given.values())), int)
        content = contents_of(given) if several else content_of(given)
        data, found = content.data, kind or content.kind
    return study.post(to, role, params=words, content=data, headers={"Content-Type": found})


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


def test_every_verb_is_priced_answered_and_shaped(study: Study) -> None:
    told = []
    for verb, given, words in ASKED:
        if verb != "enter":
            head = study.get("transcript").json()["rows"]
            price = post(study, f"price/{verb}", given, **words)
            assert price.status_code == 200, (verb, price.text)
            offer = PriceShape.model_validate(price.json())
            assert offer.told is not None
            assert offer.told.answers
            assert math.fsum(math.exp(-each.nats) for each in offer.told.answers[:4]) < 1.001
            assert all(each.level >= offer.told.level for each in offer.told.answers)
            assert head == study.get("transcript").json()["rows"]
        reply = post(study, verb, given, **words)
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
    standings = StandingsShape.model_validate(study.get("leaderboard", "viewer").json())
    assert [each.name for each in standings.entries] == ["ann"]
    assert (standings.certified, standings.reading) == (True, "these-rows-fresh-labels")


def enter_three(study: Study) -> None:
    """Another's entries: good, fair and poor."""
    for name, given in (("good", GOOD), ("fair", FAIR), ("poor", POOR)):
        assert post(study, "enter", given, "custodian", name=name).status_code == 200


def test_neighbours_are_priced_compared_and_shaped(study: Study, folder: Path) -> None:
    enter_three(study)
    before = study.get("transcript").json()
    offered = study.post("price/neighbours", params={"top": 3}).json()
    offers = StandingsShape.model_validate(offered).neighbours
    assert offers is not None
    assert [(each.result, each.reason) for each in offers] == [(None, None)] * 2
    assert all(each.price is not None and each.price.told is not None for each in offers)
    assert study.get("transcript").json() == before
    reply = study.post("neighbours", params={"top": 3})
    assert reply.status_code == 200, reply.text
    told = StandingsShape.model_validate(reply.json()).neighbours
    assert told is not None
    assert [each.names for each in told] == [["good", "fair"], ["fair", "poor"]]
    assert [each.result is not None and not each.result.cached for each in told] == [True] * 2
    assert told[1].said.startswith("fair is better than poor by 0.")
    again = study.post("neighbours").json()["neighbours"]
    assert [each["result"]["cached"] for each in again] == [True] * 2
    same = post(study, "compare", {"good": GOOD, "fair": FAIR}).json()
    assert (same["cached"], same["receipt"]) == (True, again[0]["result"]["receipt"])
    assert {each["mine"] for each in reply.json()["entries"]} == {False}
    with Holdout.open(folder) as holdout:
        _, poor = holdout.access.grant("analyst", nats=0.001)
        (kept,) = {each.parent for each in (folder / "predictions").iterdir()}
        assert len([*kept.iterdir()]) == 3
    for name in ("predictions", "predictions/"):  # nobody is ever given them
        assert study.get(name, "custodian").status_code == 404
    refused = study.post("neighbours", "viewer")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "forbidden")
    wrongs = ({"top": 1}, "top"), ({"metric": "f1"}, "a mean over rows"), ({"top": 101}, "top")
    for wrong, reason in wrongs:
        error = study.post("neighbours", params=wrong)
        assert (error.status_code, reason in error.json()["error"]["message"]) == (400, True)
    post(study, "score", FAIR, poor, guess=0.899)
    post(study, "enter", right(FRAME, 0.8), "custodian", name="new")
    limited = study.post("neighbours", poor).json()["neighbours"]
    assert limited[0]["result"]["cached"]
    assert [each["reason"][:23] for each in limited[1:]] == ["Your quota is exhausted"] * 2


def test_neighbours_take_no_word_that_means_nothing(study: Study) -> None:
    for where in ("neighbours", "price/neighbours"):
        for words in ({"price": True}, {"margin": 0}):  # which would have told nothing, or less
            reply = study.post(where, params=words)
            assert (reply.status_code, reply.json()["error"]["parameter"]) == (400, *words)


def test_a_token_that_ends_between_two_neighbours_is_told_no_more(
    study: Study, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter_three(study)
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
        assert study.post("neighbours").status_code == 401
    with Holdout.open(folder) as holdout:
        assert holdout.status().answers == 4


def test_questions_in_sql_are_told_too(study: Study) -> None:
    asked: dict[str, dict[str, Any]] = {
        "mean": {"term": "x > 0.3", "guess": 0.7, "guess_se": 0.02},
        "ask": {"estimator": "avg(x)", "grid": "0:1:0.01", "guess": 0.5},
        "interval": {"estimator": "max(x)", "grid": "0:1:0.01"},
        "verify": {"estimator": "avg(x)", "guess": 0.5, "tolerance": 0.2, "max_level": 50},
    }
    for verb, words in asked.items():
        price = study.post("price", json={"verb": verb, **words})
        assert PriceShape.model_validate(price.json()).currency == "nats"
        reply = study.post(verb, json=words)
        assert ToldShape.model_validate(reply.json()).verb == verb
        again = study.post("price", json={"verb": verb, **words}).json()
        assert (again["cached"], again["price"]) == (True, 0)
    refused = study.post("mean", json={"term": "x > 0.4", "max_level": 0.1})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "exhausted")
    assert study.post("jobs", json={"verb": "mean", "term": "x > 0.6"}).status_code == 202


def test_predictions_come_in_every_form_and_are_one_question(study: Study) -> None:
    csv, by_id = FAIR.to_csv(index=False), FAIR.set_index("row")["prediction"].to_json()
    first = post(study, "score", csv).json()
    forms = [(by_id, "application/json"), (FAIR.to_parquet(index=False), PARQUET)]
    forms += [(FAIR.to_json(orient="records"), "application/json; charset=utf-8")]
    for data, kind in forms:
        same = post(study, "score", data, kind=kind).json()
        assert (same["cached"], same["receipt"]) == (True, first["receipt"])
    one = post(study, "compare", {"a": csv.encode(), "b": POOR.to_parquet(index=False)}).json()
    same = post(study, "compare", {"a": FAIR, "b": POOR}).json()
    assert (same["cached"], same["receipt"]) == (True, one["receipt"])


# Quotas in nats.


def test_a_token_is_told_so_many_nats(study: Study, folder: Path) -> None:
    with Holdout.open(folder) as holdout:
        grant, token = holdout.access.grant("analyst", name="ann")
        _, rich = holdout.access.grant("analyst", name="bob", nats=50)
        assert (grant.nats, grant.quota) == (5, None)
    first = post(study, "score", POOR, token, guess=0.9).json()  # a surprise
    assert first["told"] > 5  # the last answer may go beyond what was left
    before = study.get("status", token).json()
    StatusShape.model_validate(before)
    assert before["quota"]["nats"] == 5
    assert before["quota"]["told"] == first["told"]
    refused = post(study, "score", GOOD, token)
    error = refused.json()["error"]
    assert (refused.status_code, error["kind"]) == (409, "exhausted")
    assert error["message"] == (
        "Your quota is exhausted: this needs more nats, and none of 5 is left. "
        "Ask the custodian for a larger quota. Questions asked before are free."
    )
    assert {"what", "needed", "left", "remedy"} <= set(error)
    priced = post(study, "price/score", GOOD, token).json()
    assert (priced["affordable"], priced["reason"]) == (False, error["message"])
    assert (priced["budget"], priced["budget_left"]) == (5, 0)
    assert post(study, "score", POOR, token, guess=0.9).json()["cached"]  # it is free
    assert post(study, "score", GOOD, rich).status_code == 200  # others have their own
    listed = study.get("tokens", "custodian").json()
    mine = next(each for each in listed if each["id"] == grant.id)
    assert (mine["nats"], mine["told"]) == (5, before["quota"]["told"])

    def given(nats: float | None) -> Any:
        return study.send("PATCH", f"tokens/{grant.id}", "custodian", json={"nats": nats}).json()

    shared = study.send("PATCH", f"tokens/{grant.id}", "custodian", json={"quota": 0.5, "nats": 9})
    assert (shared.status_code, shared.json()["error"]["parameter"]) == (400, "quota")
    assert "limit what is told with nats" in shared.json()["error"]["message"]
    assert given(20)["nats"] == 20
    assert post(study, "gate", GOOD, token, at_least=0.5).status_code == 200
    assert given(None)["nats"] is None
    assert study.get("status", token).json()["quota"]["nats"] is None
    notes = study.get("audit", "custodian", params={"limit": 1000}).json()["rows"]
    changes = [each["note"]["access"] for each in notes if "access" in each.get("note", {})]
    changed = [{"token": grant.id, "nats": nats} for nats in (20.0, None)]
    assert [each for each in changes if "role" not in each] == changed


def test_status_and_counts_say_what_was_told(study: Study) -> None:
    told = post(study, "score", FAIR).json()
    (only,) = StatusShape.model_validate(study.get("status", "viewer").json()).sets
    assert only.told is not None
    assert (only.currency, only.budget, only.told.answers) == ("nats", None, 1)
    assert only.told.nats == only.spent == told["told_so_far"]
    left = study.get("left", "viewer", params={"queries": 10**6}).json()
    assert (left["parts"], left["fits"]) == ([], True)  # nothing is used up
    counted = study.get("/metrics", "viewer").text
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
    "equal candidates": ("best", {"a": GOOD, "b": POOR, "c": GOOD}, {}, "predictions twice"),
    "with itself": ("compare", {"a": GOOD, "b": GOOD}, {}, "predictions twice"),
    "three of them": ("compare", {"a": GOOD, "b": FAIR, "c": POOR}, {}, "two parts"),
    "an incumbent that is it": (
        "gate",
        {**INCUMBENT, "better_than": GOOD},
        {},
        "predictions twice",
    ),
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


def test_what_is_wrong_is_refused_and_nothing_is_told(study: Study, folder: Path) -> None:
    with Holdout.open(folder) as holdout:
        before = holdout.receipt
        for name, (verb, given, words, reason) in WRONG.items():
            for place in (verb, f"price/{verb}") if verb != "enter" else (verb,):
                reply = post(study, place, given, **words)
                error = reply.json()["error"]
                assert reply.status_code in (400, 415), (name, place, error)
                assert reason in error["message"], (name, place, error)
                assert post(study, place, given, "viewer", **words).status_code == 403
        assert holdout.receipt == before
        assert holdout.status().answers == 0


def test_too_much_is_refused_before_it_is_read(study: Study, folder: Path, served: Serve) -> None:
    here = Study(served(folder, submission_limit=3_000, body_limit=2_000), study.tokens, WHERE)
    for verb in SCORES:
        for size, status in ((3_001, 413), (2_999, 400)):
            kind = MIXED if verb in ("best", "compare", "scores") else "text/csv"
            reply = post(here, verb, "x" * size, kind=kind, name="n", at_least=0)
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


def test_a_key_is_answered_once(study: Study) -> None:
    sent, key = contents_of({"a": GOOD, "b": POOR}), {"Idempotency-Key": "k"}
    mixed = {**key, "Content-Type": sent.kind}
    first, again = (
        study.post("best?precise=true", content=sent.data, headers=mixed).json() for _ in range(2)
    )
    assert (again["cached"], again["batch"][0]["cached"]) == (True, True)
    assert (again["receipt"], again["letter"]) == (first["receipt"], first["letter"])
    conflict = study.post("score", content=CSV, headers={**key, "Content-Type": "text/csv"})
    assert (conflict.status_code, conflict.json()["error"]["kind"]) == (409, "conflict")
