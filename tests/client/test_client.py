"""A client is asked like a holdout, and a real server says through it what the holdout would."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

import holdfast as hf
from holdfast.client.client import AsyncClient, Client
from holdfast.client.http import NotAllowed, Unreachable
from holdfast.errors import Exhausted, HoldfastError, InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.tokens import Asker
from holdfast.protocols.answers import Answer
from tests.client.conftest import NO_PACE, Make, Serve
from tests.holdout import plans
from tests.holdout.tables import table

URL = "http://127.0.0.1"
EIGHT = hf.grid(0, 0.875, step=0.125)
LOG = hf.grid(0.01, 1, points=8, scale="log")


# The same names, the same arguments.


SAME = (
    *("ask", "correct", "interval", "mean", "verify", "enter", "gate", "leaderboard", "score"),
    *("status", "transcript"),
)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_the_signatures_are_those_of_the_holdout(kind: type[Any]) -> None:
    for name in SAME:
        own, theirs = getattr(kind, name), getattr(Holdout, name)
        assert inspect.signature(own) == inspect.signature(theirs), name
        assert own.__doc__ is not None
    ours, theirs = inspect.signature(kind.price), inspect.signature(Holdout.price)
    assert list(ours.parameters) == list(theirs.parameters)
    assert ours.return_annotation == theirs.return_annotation


def test_both_clients_can_do_the_same() -> None:
    waiting, awaiting = (
        {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
        for kind in (Client, AsyncClient)
    )
    assert waiting.keys() == awaiting.keys()
    for name in waiting:
        assert inspect.iscoroutinefunction(awaiting[name]), name
        own, other = (inspect.signature(each[name]).parameters for each in (waiting, awaiting))
        assert list(own.values()) == list(other.values()), name
    own, other = (inspect.signature(kind).parameters for kind in (Client, AsyncClient))
    assert list(own) == list(other)


def test_importing_the_package_loads_no_client() -> None:
    code = "import sys, holdfast; print(*{'httpx2', 'holdfast.client'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_without_httpx_the_error_says_what_to_install(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.client.wire.find_spec", lambda name: None)
    with pytest.raises(HoldfastError, match=r"pip install httpx2"):
        getattr(hf, kind)(URL)


# The same answers.


Asking = Callable[[Any], Any]
QUESTIONS: dict[str, Asking] = {
    "ask": lambda h: h.ask("avg(x)", grid=EIGHT, by="estimate"),
    "ask again": lambda h: h.ask("avg(x)", grid=EIGHT, by="estimate"),
    "where": lambda h: h.ask("avg(x)", grid=hf.grid([0, 0.5, 1]), where="g = 'a'", by="estimate"),
    "whole numbers": lambda h: h.ask("sum(y)", grid=hf.grid(0, 7, scale="integer"), by="amplified"),
    "ratios": lambda h: h.ask("avg(x)", grid=LOG, by="amplified"),
    "key": lambda h: h.ask("max(x)", grid=EIGHT, by="amplified", request="mine"),
    "mean": lambda h: h.mean("y = 1", by="estimate", grid=EIGHT),
    "interval": lambda h: h.interval("avg(x)", grid=EIGHT),
    "yes": lambda h: h.verify("avg(x)", 0.5, by="verify"),
    "no": lambda h: h.verify("avg(x)", 7, by="verify"),
    "at least": lambda h: h.verify("avg(x)", -1, claim="at least", by="verify"),
    "near": lambda h: h.verify("avg(x)", 0.5, tolerance=0.25, by="estimate"),
    "right": lambda h: h.correct("avg(x)", 0.5, grid=EIGHT, by="verify"),
    "wrong": lambda h: h.correct("avg(x)", 9.0, grid=EIGHT, by="verify"),
    "price": lambda h: h.price("ask", "min(x)", grid=EIGHT, by="estimate"),
    "price of a guess": lambda h: h.price("verify", "min(x)", guess=3, by="verify"),
}


def plain(data: Any) -> Any:
    """Fields without receipts, which name the holdout."""
    if isinstance(data, dict):
        return {name: plain(value) for name, value in data.items() if name != "receipt"}
    return data


def test_every_question_has_the_answer_of_the_holdout(made: Make, serve: Serve) -> None:
    every = plans.amplified()
    transport = serve(made("a", every), made("b", every))

    async def awaited() -> list[Any]:
        async with AsyncClient(URL, holdout="b", transport=transport) as client:
            return [await asking(client) for asking in QUESTIONS.values()]

    with (
        Holdout.open(made("c", every)) as holdout,
        Client(f"{URL}/holdouts/a", transport=transport) as client,
    ):
        ours = [asking(client) for asking in QUESTIONS.values()]
        status, transcript = client.status(), client.transcript()
        paced = holdout.on_behalf(Asker("anyone"), NO_PACE)  # as a server asks it
        theirs = [asking(paced) for asking in QUESTIONS.values()]
        there, kept = holdout.status(), holdout.transcript()
    for name, own, their, later in zip(
        QUESTIONS, ours, theirs, asyncio.run(awaited()), strict=True
    ):
        assert type(own) is type(their) is type(later), name
        assert plain(asdict(own)) == plain(asdict(their)) == plain(asdict(later)), name
    apart = {name: getattr(there, name) for name in ("holdout", "name", "path", "receipt")}
    assert replace(status, **apart) == there
    assert status.path == "http://127.0.0.1/holdouts/a"
    assert [row["question"] for row in transcript] == [row["question"] for row in kept]
    assert [plain(row["answer"]) for row in transcript] == [plain(row["answer"]) for row in kept]


TWO = ("min(x)", "max(x)")
BAD: dict[str, Asking] = {
    "column": lambda h: h.ask("avg(nobody)", grid=EIGHT, by="estimate"),
    "syntax": lambda h: h.ask("avg(", grid=EIGHT, by="estimate"),
    "condition": lambda h: h.ask("avg(x)", where="g = 3", grid=EIGHT, by="estimate"),
    "part": lambda h: h.ask("avg(x)", grid=EIGHT, by="nobody"),
    "no grid": lambda h: h.ask("avg(x)", by="estimate"),
    "guess": lambda h: h.verify("avg(x)", math.nan, by="verify"),
    "guess in words": lambda h: h.verify("avg(x)", "much", by="verify"),
    "tolerance": lambda h: h.verify("avg(x)", 1, tolerance=1.5, by="verify"),
    "tolerance below 0": lambda h: h.verify("avg(x)", 1, tolerance=-1, by="estimate"),
    "claim": lambda h: h.verify("avg(x)", 1, claim="at most", by="estimate"),
    "term": lambda h: h.mean("x", by="estimate", where="nobody"),
    "used key": lambda h: [h.ask(text, by="estimate", grid=EIGHT, request="k") for text in TWO],
}


def facts(wrong: HoldfastError) -> dict[str, Any]:
    return {name: str(value) for name, value in vars(wrong).items()}


def test_every_error_is_the_one_of_the_holdout(made: Make, serve: Serve) -> None:
    with (
        Client(URL, transport=serve(made("a"))) as client,
        Holdout.open(made("b")) as holdout,
    ):
        for name, asking in BAD.items():
            with pytest.raises(HoldfastError) as ours:
                asking(client)
            with pytest.raises(HoldfastError) as theirs:
                asking(holdout)
            assert type(ours.value) is type(theirs.value), name
            assert facts(ours.value) == facts(theirs.value), name
            if name != "used key":  # a server tells its askers' keys apart
                assert str(ours.value) == str(theirs.value), name
        assert client.status().answers == holdout.status().answers == 1


def test_exhausted_like_the_holdout(made: Make, serve: Serve) -> None:
    def all_of_it(place: Any) -> tuple[int, str, dict[str, Any]]:
        for number in range(100):
            try:
                place.ask(f"avg(x) + {number}", grid=EIGHT, by="estimate")
            except Exhausted as wrong:
                return number, str(wrong), facts(wrong)
        raise AssertionError("it lasts for ever")

    with (
        Client(URL, transport=serve(made("a"))) as client,
        Holdout.open(made("b")) as holdout,
    ):
        for place in (client, holdout):
            refused = [place.verify("avg(x)", 9.0 + n, by="verify").verdict for n in range(4)]
            assert refused == ["not compatible"] * 3 + ["exhausted"]
        assert all_of_it(client) == all_of_it(holdout)
        price = client.price("ask", "min(x)", grid=EIGHT, by="estimate")
        assert not price.affordable
        assert price.reason


class Flaky(httpx2.BaseTransport):
    """Loses the first replies to every call, after the server has answered."""

    def __init__(self, transport: httpx2.BaseTransport, losses: int) -> None:
        self._transport, self._losses = transport, losses
        self.keys: list[str] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._transport.handle_request(request)
        self.keys.append(request.headers.get("idempotency-key", ""))
        if len(self.keys) <= self._losses:
            raise httpx2.ReadError("cut off", request=request)
        return response


def test_a_reply_that_is_lost_comes_again_and_is_paid_once(made: Make, serve: Serve) -> None:
    path = made("a")
    flaky = Flaky(serve(path), losses=2)
    with Client(f"{URL}#a", transport=flaky) as client:
        answer = client.ask("avg(x)", grid=EIGHT, by="estimate")
        status = client.status()
    assert answer.cached
    assert len(set(flaky.keys[:3])) == 1
    assert len(flaky.keys[0]) == 32
    with Holdout.open(path) as holdout:
        rows = holdout.journal.ledger.rows()
        assert [row.kind for row in rows] == ["created", "reserved", "recorded"]
        assert rows[-1].body["drawn"] == {"index": int(EIGHT.ceiling(answer.value))}
        assert holdout.status().sets == status.sets
    assert check_holdout(path).passed


def test_given_up_and_asked_again_later(made: Make, serve: Serve) -> None:
    flaky = Flaky(serve(made("a")), losses=1)
    with Client(f"{URL}#a", transport=flaky, retries=0) as client:
        with pytest.raises(Unreachable) as wrong:
            client.ask("avg(x)", grid=EIGHT, by="estimate")
        again = client.ask("avg(x)", grid=EIGHT, by="estimate", request=wrong.value.request)
        assert again.cached
        assert client.status().answers == 1


def test_which_holdout_and_whose_token(made: Make, serve: Serve) -> None:
    path, other = made("a"), made("b")
    with Holdout.open(path) as holdout:
        viewer, analyst = (holdout.access.grant(role)[1] for role in ("viewer", "analyst"))
    transport = serve(path, other)
    for token, name, error, said in (
        (None, "c", NotAllowed, ""),  # without a token nobody learns what is there
        (analyst, "b", InvalidInput, "holdout must be one that your token may see"),
        (analyst[:-1] + "x", "a", NotAllowed, "holdfast token create"),
    ):
        with Client(URL, token, holdout=name, transport=transport) as client:
            with pytest.raises(error) as wrong:
                client.status()
            assert said in str(wrong.value)
    with Client(URL, viewer, transport=transport) as client:
        assert client.status().answers == 0
        with pytest.raises(NotAllowed, match="This needs the role analyst") as denied:
            client.ask("avg(x)", grid=EIGHT, by="estimate")
        assert viewer not in str(denied.value)
    with Client(URL, analyst, transport=transport) as client:
        client.ask("avg(x)", grid=EIGHT, by="estimate")
        assert [row["mine"] for row in client.transcript()] == [True]


def test_the_name_is_looked_up(made: Make, serve: Serve) -> None:
    with (
        Client(URL, transport=serve(made("a"), made("b"))) as client,
        pytest.raises(InvalidInput, match="one of a, b"),
    ):
        client.status()
    with Client(URL, transport=serve(made("only"))) as client:
        assert repr(client) == "Client('http://127.0.0.1')"
        client.status()
        assert repr(client) == "Client('http://127.0.0.1/holdouts/only')"


def test_the_transcript_is_read_page_by_page(
    made: Make, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.client.client._PAGE", 2)
    with Client(URL, transport=serve(made("a"))) as client:
        assert client.transcript() == []
        for number in range(5):
            client.ask(f"avg(x) + {number}", grid=hf.grid(0, 1, points=2), by="estimate")
        rows = client.transcript()
        numbers = [row["number"] for row in rows]
        assert len(set(numbers)) == 5
        assert client.transcript(limit=3) == rows[:3]
        assert client.transcript(after=numbers[1], limit=2) == rows[2:4]


def test_jobs(made: Make, serve: Serve) -> None:
    transport = serve(made("a"))
    shares: list[float] = []
    with Client(URL, transport=transport) as client:
        job = client.submit("ask", "avg(x)", grid=EIGHT, by="estimate")
        answer = job.wait(progress=shares.append)
        assert isinstance(answer, Answer)
        assert job.status().state == "done"
        assert job.status().result == answer
        assert client.ask("avg(x)", grid=EIGHT, by="estimate", request=job.request).cached
        assert job.cancel().state == "done"  # too late
        assert client.status().answers == 1
        with pytest.raises(InvalidInput, match="nobody"):
            client.submit("ask", "avg(nobody)", grid=EIGHT, by="estimate")
        with pytest.raises(InvalidInput, match="verb must be one of ask"):
            client.submit("guess", "avg(x)")
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_jobs_awaited(made: Make, serve: Serve) -> None:
    transport = serve(made("a"))

    async def work() -> None:
        async with AsyncClient(URL, transport=transport) as client:
            job = await client.submit("verify", "avg(x)", 0.5, by="verify")
            verdict = await job.wait()
            assert (verdict.verdict, (await job.status()).state) == ("compatible", "done")
            assert (await job.cancel()).state == "done"
            both = client.ask("avg(x)", grid=EIGHT, by="estimate"), client.status()
            await asyncio.gather(*both)
            assert repr(client) == "AsyncClient('http://127.0.0.1/holdouts/a')"

    asyncio.run(work())


# Predictions: scores, gates and entries as the holdout itself makes them.


ROWS = table(400, seed=424_242)
FRAME = ROWS[["number", "y"]].rename(columns={"y": "prediction"})
BY_ID = dict(zip(ROWS["number"].tolist(), ROWS["y"].tolist(), strict=True))


@pytest.mark.usefixtures("admitted")
def test_scores_are_those_of_the_holdout(tmp_path: Path, serve: Serve) -> None:
    a, b, c = (tmp_path / f"{name}.holdfast" for name in "abc")
    for path in (a, b, c):  # seeded: they draw the same
        more: dict[str, Any] = {"ids": "number", "target": "y", "new_budget": "a test"}
        Holdout.create(path, ROWS, plans.mixed(), seed=7, **more).close()
    transport = serve(a, b)

    def every(place: Any) -> list[Any]:
        if isinstance(place, Holdout):  # a client's score is the result of an entry
            scored = place.enter(BY_ID, name="one", metric="f1").result
        else:
            scored = place.score(BY_ID, name="one", metric="f1")
        return [
            scored,
            place.gate(BY_ID, at_least=0.5),
            place.gate(BY_ID, metric="log_loss", at_most=0.001),
            place.enter(BY_ID, name="two"),
            place.enter(BY_ID, name="three", metric="f1", improve=True, margin=0.5),
        ]

    async def awaited() -> list[Any]:
        async with AsyncClient(URL, holdout="b", transport=transport) as client:
            return [await client.gate(BY_ID, at_least=0.5), await client.leaderboard()]

    with Client(URL, holdout="a", transport=transport) as client, Holdout.open(c) as holdout:
        paced = holdout.on_behalf(Asker("anyone"), NO_PACE)  # as a server asks it
        ours, theirs = every(client), every(paced)
        board, kept = client.leaderboard(), holdout.leaderboard()
        for same in (
            ROWS.set_index("number")["y"],
            FRAME,
            FRAME.to_csv(index=False).encode(),
            json.dumps(FRAME.to_dict("records")).encode(),
        ):  # the same predictions in other forms: all free
            assert client.gate(same, at_least=0.5).verdict.cached
    for own, their in zip(ours, theirs, strict=True):
        assert type(own) is type(their)
        assert str(bare(own)) == str(bare(their))
    assert [each.name for each in board.entries] == [each.name for each in kept.entries] == ["two"]
    assert [each.value for each in board.entries] == [each.value for each in kept.entries]
    passed, empty = asyncio.run(awaited())
    assert passed.passed == ours[1].passed
    assert empty.entries == ()


def bare(result: Any) -> Any:
    """A result without its receipt, which names the holdout."""
    for name in ("verdict", "result"):
        if hasattr(result, name):
            inner = replace(getattr(result, name), receipt="")
            return replace(result, **{name: inner})
    return replace(result, receipt="")
