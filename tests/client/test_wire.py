"""What travels, and what comes back: the objects and the errors of a holdout, whatever is said."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.client import wire
from holdfast.client.client import ClientCore
from holdfast.client.http import (
    Cancelled,
    HttpRequest,
    NotAllowed,
    Patience,
    Reply,
    ServerFailed,
    address_of,
)
from holdfast.errors import Damaged, Exhausted, HoldfastError, Infeasible, InvalidInput, Unavailable
from holdfast.holdout.answering import ToldPrice
from holdfast.holdout.doubts import Doubt
from holdfast.protocols.answers import ROWS, Answer, Corrected, Told, Verdict
from holdfast.server.bodies import read_parts
from holdfast.verbs import WORDS
from tests.client.conftest import carried

URL = "http://127.0.0.1/holdouts/a"
QUESTION = wire.question("ask", "avg(x)")
ASKED = HttpRequest("POST", "/api/holdouts/a/ask", body={"estimator": "avg(x)"}, key="k")
ANSWER = Answer(
    *("split", 3.0, None, None, 0.1, 0.1, 0.95, "a promise", 1.0, 2.0, False, True, 9, "split"),
    receipt="a:1:f",
)
VERDICT = Verdict(
    *("verify", 7.0, "equals", None, True, 0.1, 0.2, 0.95, "a promise", 0.5, 1.5, 3, True, 9),
    *(5.0, 6.5, 30),
)

TOLD = Told(
    *("score", "accuracy", 0.9, 0.1 + 0.2, 1 / 3, 0.9, True, None, (0, -1), 0.25, 3.0, 0.95, True),
    *(ROWS, {"precise": True, "cut": [0.0, 2.5]}, 1.25, 4, -0.02, ("B", "A")),
    assumes=("so",),
    receipt="a:1:f",
)
WINNER = Told(
    *("best", "accuracy", None, None, None, None, None, None, (1,), 0.7, 3.0, 0.95, True, ROWS),
    {"of": 2},
    names=("one", "two"),
    batch=(TOLD,),
)


def told(status: int, kind: str, message: str = "So it is.", **more: str) -> Reply:
    error = {"kind": kind, "message": message, "request": "0123", **more}
    return Reply(status, {}, json.dumps({"error": error}).encode())


def whole(status: int, kind: str, error: HoldfastError) -> tuple[Any, ...]:
    return told(status, kind, str(error), **error.facts()), type(error), str(error), vars(error)


FACTS = {"parameter": "estimator", "allowed": "x", "hint": "y"}


@pytest.mark.parametrize(
    ("reply", "expected", "words", "facts"),
    [
        (told(400, "bad_question", **FACTS), InvalidInput, "So it", {**FACTS, "value": "avg(x)"}),
        (told(400, "bad_question"), InvalidInput, "So it is.", {}),
        whole(400, "bad_question", Infeasible("Blocks", "30 rows", "there are 20", "Give more.")),
        (told(401, "unauthorized"), NotAllowed, "HOLDFAST_TOKEN", {}),
        (told(401, "unauthorized", "No token was given."), NotAllowed, "given. Set HOLDFAST", {}),
        (told(403, "forbidden"), NotAllowed, "more rights", {}),
        (told(404, "not_found"), InvalidInput, "holdout must be one that your token may see", {}),
        (told(409, "conflict", parameter="request"), InvalidInput, "So it is.", {"value": "k"}),
        whole(409, "exhausted", Exhausted("Budget", "0.3", "0.2", "Ask less: 3 is left. Or not.")),
        (told(409, "exhausted"), Exhausted, "So it is.", {}),
        (told(409, "cancelled"), Cancelled, "So it is.", {}),
        (told(413, "too_large"), InvalidInput, "So it is.", {}),
        (told(415, "unsupported"), InvalidInput, "So it is.", {}),
        (told(405, "not_allowed"), ServerFailed, "So it is.", {}),
        (told(500, "damaged"), Damaged, "So it is.", {}),
        whole(500, "unavailable", Unavailable("SQL", "a disk", "there is none", "Look. Ask.")),
        (told(500, "unavailable"), Unavailable, "So it is.", {}),
        (told(500, "internal"), ServerFailed, "request 0123", {}),
        (told(418, "teapot"), ServerFailed, "So it is.", {}),
        (Reply(307, {"location": "https://elsewhere"}, b""), ServerFailed, "status 307", {}),
        (Reply(200, {}, b"<html>"), ServerFailed, "not Holdfast's", {}),
        (Reply(500, {}, b'{"error": 3}'), ServerFailed, "status 500", {}),
        (Reply(404, {}, b"[]"), ServerFailed, "status 404", {}),
        (Reply(404, {}, b"\xff"), ServerFailed, "status 404", {}),
    ],
)
def test_errors(
    reply: Reply, expected: type[HoldfastError], words: str, facts: dict[str, Any]
) -> None:
    with pytest.raises(expected) as wrong:
        wire.data_of(reply, ASKED, URL)
    assert type(wrong.value) is expected
    assert words in str(wrong.value)
    assert {name: getattr(wrong.value, name) for name in facts} == facts


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (ANSWER, "answer"),
        (VERDICT, "verdict"),
        (Corrected(VERDICT, ANSWER), "corrected"),
        (Corrected(VERDICT, None), "corrected"),
        (TOLD, "told"),
        (WINNER, "told"),
    ],
    ids=["answer", "verdict", "corrected", "confirmed", "told", "winner"],
)
def test_results_come_back_as_they_were(result: Any, kind: str) -> None:
    sent = json.loads(json.dumps({"type": kind, **result.to_dict(), "of a newer version": 1}))
    assert wire.read_result(sent) == result
    assert not isinstance(result, Told) or {each.name for each in fields(Told)} <= sent.keys()


def test_numbers_that_are_not_finite() -> None:
    without = {**asdict(ANSWER), "budget_left": math.inf, "value": -math.inf}
    sent = {"type": "answer", **Answer(**without).to_dict()}
    assert sent["value"] is sent["budget_left"] is None
    back = wire.read_result(sent)
    assert isinstance(back, Answer)
    assert (back.budget_left, back.low) == (math.inf, None)
    assert math.isnan(back.value)  # which of them it was, JSON does not say


# Conversations, step by step.


def talk(url: str = URL) -> ClientCore:
    return ClientCore(address_of(url), Patience(0, 1))


def job(state: str, identity: str = "1", **more: Any) -> dict[str, Any]:
    empty = {"progress": None, "result": None, "error": None}
    return {"id": identity, "verb": "ask", "state": state, **empty, **more}


def test_a_job_that_a_new_server_does_not_know_is_submitted_again_with_its_key() -> None:
    shares: list[float] = []
    done = {"type": "answer", **ANSWER.to_dict()}
    replies = [
        job("running", progress=0.5),
        told(404, "not_found"),
        job("queued", "2"),
        job("done", "2", progress=1.0, result=done),
    ]
    answer, calls, _ = carried(talk().wait("1", QUESTION, shares.append), replies)
    assert answer == ANSWER
    paths = [call.path.removeprefix("/api/holdouts/a/") for call in calls]
    assert paths == ["jobs/1", "jobs/1", "jobs", "jobs/2"]
    assert (calls[2].key, calls[2].body) == (QUESTION.key, {"verb": "ask", "estimator": "avg(x)"})
    assert shares == [0.5, 1.0]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (job("cancelled"), Cancelled),
        (job("failed", error={"kind": "exhausted", "message": "No."}), Exhausted),
    ],
    ids=["cancelled", "failed"],
)
def test_a_job_without_an_answer(state: dict[str, Any], expected: type[HoldfastError]) -> None:
    with pytest.raises(expected):
        carried(talk().wait("1", QUESTION, None), [state])


@pytest.mark.parametrize(
    "said",
    [{}, {"type": "answer"}, [], {"type": "verdict", **VERDICT.to_dict()}],
    ids=["nothing", "no fields", "a list", "a verdict"],
)
def test_a_server_that_speaks_another_language(said: Any) -> None:
    with pytest.raises(ServerFailed, match=r"127\.0\.0\.1"):
        carried(talk().answer(QUESTION), [said])


def test_without_a_name_the_server_is_asked_once() -> None:
    conversations = talk("http://127.0.0.1:80")
    price = {"verb": "ask", "part": "p", "protocol": "p", "price": 1.0, "currency": "questions"}
    price |= {"budget": 2.0, "budget_left": None, "affordable": True, "cached": False}
    price |= {"reason": None, "grid": {"low": 0.0, "high": 1.0, "points": 2}, "assumes": ["so"]}
    price |= {"doubts": [{"parameter": "grid", "message": "It is.", "refused": True}]}
    offer = {"letter": [0], "nats": 0.1, "low": 0.2, "level": 3.1}
    price["told"] = {"told_so_far": 1.0, "level": 3.0, "half_width": 0.1, "answers": [offer]}
    found, calls, _ = carried(conversations.price(QUESTION), [[{"name": "a b"}], price])
    assert [call.path for call in calls] == ["/api/holdouts", "/api/holdouts/a%20b/price"]
    assert (found.grid, found.assumes, found.budget_left) == ((0.0, 1.0, 2), ("so",), math.inf)
    assert found.doubts == (Doubt("grid", "It is."),)
    assert found.told == ToldPrice(1.0, 3.0, 0.1, (offer,))
    assert len(carried(conversations.look("1"), [job("queued")])[1]) == 1


# What travels.


FRAME = pd.DataFrame({"number": [1, 2, 3], "prediction": [1, 0, 1]})
BY_ID = dict(zip(FRAME["number"].tolist(), FRAME["prediction"].tolist(), strict=True))


class Model:
    def predict(self, rows: object) -> object:
        return rows


def function(block: object) -> float:
    return 0.0


SQL, AVG, ALL = "Only SQL text travels to a server", ("avg(x)",), {"at_least": 1}
IDS = "predictions by row id"


@pytest.mark.parametrize(
    ("verb", "words", "more", "parameter", "said"),
    [
        ("ask", (function,), {}, "estimator", SQL),
        ("mean", (function,), {}, "term", SQL),
        ("mean", ("y",), {"where": function}, "where", SQL),
        ("mean", ("y",), {"columns": ["y"]}, "columns", SQL),
        ("ask", AVG, {"vectorised": True}, "vectorised", SQL),
        ("ask", AVG, {"shape": object()}, "shape", "which finds its shape by itself"),
        ("verify", ("avg(x)", 1), {"progress": print}, "progress", ".wait(progress=…)"),
        ("ask", AVG, {"grid": "0:1:0.1"}, "grid", "holdfast.grid"),
        ("ask", AVG, {"request": "a b"}, "request", "without spaces"),
        ("ask", AVG, {"request": "x" * 129}, "request", "1 to 128"),
        ("ask", AVG, {"request": ""}, "request", "1 to 128"),
        ("verify", ("avg(x)", "7"), {}, "guess", "a finite number"),
        ("correct", ("avg(x)", math.inf), {}, "guess", "a finite number"),
        ("gate", (Model(),), ALL, "predictions", "predict there, and send"),
        ("gate", ([1, 0, 1],), ALL, "predictions", IDS),
        ("gate", (np.zeros(3),), ALL, "predictions", IDS),
        ("gate", ("nowhere.csv",), ALL, "predictions", "in a file that exists"),
        ("gate", ({"a": float("nan")},), ALL, "predictions", "finite numbers"),
        ("gate", ({"a": None},), ALL, "predictions", "1 missing"),
        ("gate", (FRAME.assign(more=1),), ALL, "predictions", "two columns"),
        ("gate", (BY_ID,), {**ALL, "form": "xls"}, "form", "csv, json, parquet"),
        ("gate", (BY_ID,), {**ALL, "metric": max}, "metric", "--metrics FILE.py"),
        ("gate", (BY_ID,), {**ALL, "target": "y"}, "target", "left out here"),
        ("gate", (BY_ID,), {"at_least": math.inf}, "at_least", "a finite number"),
        ("score", (BY_ID,), {"grid": hf.grid([0, 1])}, "grid", "left out here"),
        ("score", (Model(),), {}, "predictions", "predict there, and send"),
        ("score", (BY_ID,), {"guess": math.nan}, "guess", "a finite number"),
        ("score", (BY_ID,), {"guess_se": -1}, "guess_se", "in [0, inf]"),
        ("compare", (BY_ID, Model()), {}, "predictions", "predict there, and send"),
        ("compare", (BY_ID, FRAME), {"names": ["a", "a"]}, "names", "all different"),
        ("best", ([],), {}, "candidates", "from 2"),
        ("best", ([BY_ID],), {}, "candidates", "from 2"),
        ("best", ({"a": BY_ID},), {}, "candidates", "from 2"),
        ("best", (7,), {}, "candidates", "a list of two or more"),
        ("scores", ([BY_ID, FRAME],), {"guesses": [0.5, "x"]}, "guess", "a finite number"),
        ("scores", ([BY_ID, FRAME],), {"names": ["a"]}, "names", "one for each candidate"),
        ("enter", (BY_ID, "a"), {"protocol": "estimate"}, "protocol", "A server chooses the part"),
        ("enter", (BY_ID, 7), {}, "name", "text"),
    ],
)
def test_what_does_not_travel(
    verb: str, words: tuple[Any, ...], more: dict[str, Any], parameter: str, said: str
) -> None:
    with pytest.raises(InvalidInput) as wrong:
        wire.question(verb, *words, **more)
    assert wrong.value.parameter == parameter
    assert said in str(wrong.value)


def test_what_travels() -> None:
    asked = wire.question(
        "verify", "avg(x)", np.float64(7), tolerance=1, where="y > 0", protocol="a"
    )
    common = {"where": "y > 0", "protocol": "a"}
    assert asked.body == {"estimator": "avg(x)", "guess": 7.0, "tolerance": 1.0, **common}
    assert wire.question("verify", "avg(x)", 1, claim="at least").body["claim"] == "at least"
    points = hf.grid(0, 1, step=0.25)
    assert hf.Grid.from_json(wire.question("ask", "avg(x)", grid=points).body["grid"]) == points
    assert wire.question("ask", "avg(x)", request="mine").key == "mine"
    assert wire.question("ask", "avg(x)").key != wire.question("ask", "avg(x)").key


def test_words_about_predictions_are_parameters_and_predictions_the_content() -> None:
    score = wire.question("score", BY_ID, guess=np.float64(0.1) * 3, precise=True, metric="f1")
    assert score.parameters == {"metric": "f1", "guess": repr(0.1 * 3), "precise": "true"}
    assert (score.body, score.content) == ({}, wire.content_of(BY_ID))
    assert wire.question("score", BY_ID, metric="accuracy", precise=False).parameters == {}
    assert wire.question("compare", BY_ID, FRAME, margin=0).parameters == {"margin": "0.0"}
    guesses = wire.question("scores", [BY_ID, FRAME, BY_ID], guesses=[0.5, None, 1]).parameters
    assert guesses == {"guesses": "0.5,,1.0"}
    assert WORDS["guesses"].read(guesses["guesses"]) == [0.5, None, 1.0]


@pytest.mark.parametrize(
    ("verb", "given", "more", "names"),
    [
        ("compare", (BY_ID, FRAME), {}, ["B", "A"]),
        ("compare", (BY_ID, FRAME), {"names": ("new “ü”", 'a%22"; x')}, ["new “ü”", 'a%22"; x']),
        ("best", ([BY_ID, FRAME],), {}, ["candidate 1", "candidate 2"]),
        ("scores", ([BY_ID, FRAME],), {"names": ["x", "y"]}, ["x", "y"]),
        ("gate", (BY_ID,), {"better_than": FRAME}, ["predictions", "better_than"]),
    ],
)
def test_several_predictions_are_parts_with_names(
    verb: str, given: tuple[Any, ...], more: dict[str, Any], names: list[str]
) -> None:
    content = wire.question(verb, *given, **more).content
    assert content is not None
    parts = read_parts(content.data, content.kind)
    assert [name for name, _ in parts] == names
    assert [part for _, part in parts] == [wire.content_of(each).data for each in (BY_ID, FRAME)]


def test_predictions_are_no_job() -> None:
    with pytest.raises(InvalidInput, match="verb must be one of ask"):
        carried(talk().submit(wire.question("score", BY_ID)), [])


def test_predictions_have_the_type_of_their_form(tmp_path: Path) -> None:
    file = tmp_path / "p.parquet"
    FRAME.to_parquet(file)
    forms: dict[str, list[Any]] = {
        "application/json": [
            BY_ID,
            FRAME.set_index("number")["prediction"],
            *(FRAME, pa.Table.from_pandas(FRAME)),
            json.dumps(FRAME.to_dict("records")).encode(),
        ],
        "text/csv": [FRAME.to_csv(index=False).encode()],
        "application/vnd.apache.parquet": [FRAME.assign(prediction=math.nan), file],
    }
    for kind, given in forms.items():
        assert {wire.content_of(each).kind for each in given} == {kind}
    assert wire.content_of(b"{", "csv").kind == "text/csv"
    assert json.loads(wire.content_of({1: 0.5, 2: 1}).data) == {"1": 0.5, "2": 1.0}
    twice = wire.content_of(pd.concat([FRAME[:1], FRAME[:1]])).data
    assert twice == b'{"1": 1, "1": 1}'  # it is the holdout that refuses it
