"""What a server says becomes the objects and the errors of a holdout, whatever it says."""

from __future__ import annotations

import json
import math
from collections.abc import Generator
from dataclasses import asdict
from typing import Any

import pytest

import holdfast as hf
from holdfast.client import wire
from holdfast.client.client import Talk
from holdfast.client.http import (
    Call,
    Cancelled,
    NotAllowed,
    Patience,
    Pause,
    Reply,
    ServerFailed,
    address_of,
)
from holdfast.client.wire import data_of, read_result
from holdfast.errors import Damaged, Exhausted, HoldfastError, Infeasible, InvalidInput, Unavailable
from holdfast.holdout.doubts import Doubt
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.guesses import Corrected

URL = "http://127.0.0.1/holdouts/a"
ASKED = Call("POST", "/api/holdouts/a/ask", body={"estimator": "avg(x)"}, key="k")
ANSWER = Answer(
    *("split", 3.0, None, None, 0.1, 0.1, 0.95, "a promise", 1.0, 2.0, False, True, 9, "split"),
    receipt="a:1:f",
)
VERDICT = Verdict(
    *("verify", 7.0, "equals", None, True, 0.1, 0.2, 0.95, "a promise", 0.5, 1.5, 3, True, 9),
    *(5.0, 6.5, 30),
)
EXHAUSTED = Exhausted("The budget for a", "a price of 0.3", "0.2", "Ask less: 3 is left. Or not.")
INFEASIBLE = Infeasible("Blocks", "30 rows", "there are 20", "Give more.")
UNAVAILABLE = Unavailable("Evaluating SQL", "a disk", "there is none", "Look. Ask again.")


def told(status: int, kind: str, message: str = "So it is.", **more: str) -> Reply:
    error = {"kind": kind, "message": message, "request": "0123", **more}
    return Reply(status, {}, json.dumps({"error": error}).encode())


@pytest.mark.parametrize(
    ("reply", "expected", "words"),
    [
        (told(400, "bad_question", parameter="estimator", allowed="SQL"), InvalidInput, "So it"),
        (told(400, "bad_question"), InvalidInput, "So it is."),
        (told(400, "bad_question", str(INFEASIBLE)), Infeasible, str(INFEASIBLE)),
        (told(401, "unauthorized"), NotAllowed, "HOLDFAST_TOKEN"),
        (told(403, "forbidden"), NotAllowed, "more rights"),
        (told(404, "not_found"), InvalidInput, "holdout must be one that your token may see"),
        (told(409, "conflict", parameter="request"), InvalidInput, "So it is."),
        (told(409, "exhausted", str(EXHAUSTED)), Exhausted, str(EXHAUSTED)),
        (told(409, "exhausted"), Exhausted, "So it is."),
        (told(409, "cancelled"), Cancelled, "So it is."),
        (told(413, "too_large"), InvalidInput, "So it is."),
        (told(415, "unsupported"), InvalidInput, "So it is."),
        (told(405, "not_allowed"), ServerFailed, "So it is."),
        (told(500, "damaged"), Damaged, "So it is."),
        (told(500, "unavailable", str(UNAVAILABLE)), Unavailable, str(UNAVAILABLE)),
        (told(500, "unavailable"), Unavailable, "So it is."),
        (told(500, "internal"), ServerFailed, "request 0123"),
        (told(418, "teapot"), ServerFailed, "So it is."),
        (Reply(307, {"location": "https://elsewhere"}, b""), ServerFailed, "status 307"),
        (Reply(200, {}, b"<html>"), ServerFailed, "not Holdfast's"),
        (Reply(500, {}, b'{"error": 3}'), ServerFailed, "status 500"),
        (Reply(404, {}, b"[]"), ServerFailed, "status 404"),
        (Reply(404, {}, b"\xff"), ServerFailed, "status 404"),
    ],
)
def test_errors(reply: Reply, expected: type[HoldfastError], words: str) -> None:
    with pytest.raises(expected) as wrong:
        data_of(reply, ASKED, URL)
    assert type(wrong.value) is expected
    assert words in str(wrong.value)


def test_an_error_has_its_facts() -> None:
    with pytest.raises(InvalidInput) as wrong:
        data_of(told(400, "bad_question", parameter="estimator", allowed="x", hint="y"), ASKED, URL)
    error = wrong.value
    assert (error.parameter, error.value, error.allowed, error.hint) == (
        *("estimator", "avg(x)", "x", "y"),
    )
    with pytest.raises(InvalidInput) as used:
        data_of(told(409, "conflict", parameter="request"), ASKED, URL)
    assert used.value.value == "k"
    errors = {"exhausted": EXHAUSTED, "bad_question": INFEASIBLE, "unavailable": UNAVAILABLE}
    for kind, given in errors.items():
        with pytest.raises(type(given)) as empty:
            data_of(told(409, kind, str(given)), ASKED, URL)
        assert vars(empty.value) == vars(given)


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (ANSWER, "answer"),
        (VERDICT, "verdict"),
        (Corrected(VERDICT, ANSWER), "corrected"),
        (Corrected(VERDICT, None), "corrected"),
    ],
    ids=["answer", "verdict", "corrected", "confirmed"],
)
def test_results_come_back_as_they_were(result: Any, kind: str) -> None:
    sent = json.loads(json.dumps({"type": kind, **result.to_dict(), "of a newer version": 1}))
    back = read_result(sent)
    assert type(back) is type(result)
    assert back == result


def test_numbers_that_are_not_finite() -> None:
    without = {**asdict(ANSWER), "budget_left": math.inf, "value": -math.inf}
    sent = {"type": "answer", **Answer(**without).to_dict()}
    assert sent["value"] is sent["budget_left"] is None
    back = read_result(sent)
    assert isinstance(back, Answer)
    assert back.budget_left == math.inf
    assert math.isnan(back.value)  # which of them it was, JSON does not say
    assert back.low is None


def good(data: Any) -> Reply:
    return Reply(200, {}, json.dumps(data).encode())


def carried(steps: Generator[Any, Any, Any], replies: list[Any]) -> tuple[Any, list[Call]]:
    """The result of a conversation in which the server says this, and the calls that were made."""
    calls, outcome = [], None
    try:
        while True:
            step = steps.send(outcome)
            outcome = None
            if not isinstance(step, Pause):
                calls.append(step)
                said = replies.pop(0)
                outcome = said if isinstance(said, Reply) else good(said)
    except StopIteration as end:
        return end.value, calls


def talk(url: str = URL) -> Talk:
    return Talk(address_of(url), Patience(0, 1))


def job(state: str, identity: str = "1", **more: Any) -> dict[str, Any]:
    empty = {"progress": None, "result": None, "error": None}
    return {"id": identity, "verb": "ask", "state": state, **empty, **more}


def test_a_job_that_a_new_server_does_not_know_is_submitted_again_with_its_key() -> None:
    asked = wire.ask("avg(x)")
    shares: list[float] = []
    done = {"type": "answer", **ANSWER.to_dict()}
    replies = [
        job("running", progress=0.5),
        told(404, "not_found"),
        job("queued", "2"),
        job("done", "2", progress=1.0, result=done),
    ]
    answer, calls = carried(talk().wait("1", asked, shares.append), replies)
    assert answer == ANSWER
    assert [call.path.removeprefix("/api/holdouts/a/") for call in calls] == [
        *("jobs/1", "jobs/1", "jobs", "jobs/2"),
    ]
    assert (calls[2].key, calls[2].body) == (asked.key, {"verb": "ask", "estimator": "avg(x)"})
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
        carried(talk().wait("1", wire.ask("avg(x)"), None), [state])


@pytest.mark.parametrize(
    "said",
    [{}, {"type": "answer"}, [], {"type": "verdict", **VERDICT.to_dict()}],
    ids=["nothing", "no fields", "a list", "a verdict"],
)
def test_a_server_that_speaks_another_language(said: Any) -> None:
    with pytest.raises(ServerFailed, match=r"127\.0\.0\.1"):
        carried(talk().answer(wire.ask("avg(x)")), [said])


def test_without_a_name_the_server_is_asked_once() -> None:
    conversations = talk("http://127.0.0.1:80")
    price = {"verb": "ask", "part": "p", "protocol": "p", "price": 1.0, "currency": "questions"}
    price |= {"budget": 2.0, "budget_left": None, "affordable": True, "cached": False}
    price |= {"reason": None, "grid": {"low": 0.0, "high": 1.0, "points": 2}, "assumes": ["so"]}
    price |= {"doubts": [{"parameter": "grid", "message": "It is.", "refused": True}]}
    found, calls = carried(conversations.price(wire.ask("avg(x)")), [[{"name": "a b"}], price])
    assert [call.path for call in calls] == ["/api/holdouts", "/api/holdouts/a%20b/price"]
    assert (found.grid, found.assumes, found.budget_left) == ((0.0, 1.0, 2), ("so",), math.inf)
    assert found.doubts == (Doubt("grid", "It is."),)
    assert len(carried(conversations.look("1"), [job("queued")])[1]) == 1


def function(block: object) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("verb", "words", "more", "parameter", "hint"),
    [
        ("ask", (function,), {}, "estimator", "Only SQL text travels to a server"),
        ("mean", (function,), {}, "term", "Only SQL text travels to a server"),
        ("mean", ("y",), {"where": function}, "where", "Only SQL text travels to a server"),
        ("mean", ("y",), {"columns": ["y"]}, "columns", "Only SQL text travels to a server"),
        ("ask", ("avg(x)",), {"vectorised": True}, "vectorised", "Only SQL text travels"),
        ("ask", ("avg(x)",), {"shape": object()}, "shape", "which finds its shape by itself"),
        ("verify", ("avg(x)", 1), {"progress": print}, "progress", r"\.wait\(progress=…\)"),
        ("ask", ("avg(x)",), {"grid": "0:1:0.1"}, "grid", r"holdfast\.grid"),
        ("ask", ("avg(x)",), {"request": "a b"}, "request", "without spaces"),
        ("ask", ("avg(x)",), {"request": "x" * 129}, "request", "1 to 128"),
        ("ask", ("avg(x)",), {"request": ""}, "request", "1 to 128"),
        ("verify", ("avg(x)", "7"), {}, "guess", "a finite number"),
        ("correct", ("avg(x)", math.inf), {}, "guess", "a finite number"),
    ],
)  # fmt: skip
def test_what_does_not_travel(
    verb: str, words: tuple[Any, ...], more: dict[str, Any], parameter: str, hint: str
) -> None:
    with pytest.raises(InvalidInput, match=hint) as wrong:
        wire.question(verb, *words, **more)
    assert wrong.value.parameter == parameter


def test_what_travels() -> None:
    import numpy as np

    asked = wire.verify("avg(x)", np.float64(7), tolerance=1, where="y > 0", by="a")
    common = {"where": "y > 0", "by": "a"}
    assert asked.body == {"estimator": "avg(x)", "guess": 7.0, "tolerance": 1.0, **common}
    assert wire.verify("avg(x)", 1, claim="at least").body["claim"] == "at least"
    points = hf.grid(0, 1, step=0.25)
    assert hf.Grid.from_json(wire.ask("avg(x)", grid=points).body["grid"]) == points
    assert wire.ask("avg(x)", request="mine").key == "mine"
    assert wire.ask("avg(x)").key != wire.ask("avg(x)").key
