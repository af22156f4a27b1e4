"""A client is asked like a holdout, and a real server says through it what the holdout would."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import httpx2
import pandas as pd
import pytest

import holdfast as hf
from holdfast.client.client import AsyncClient, Client
from holdfast.client.http import NotAllowed, Unreachable
from holdfast.errors import Exhausted, HoldfastError, InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.tokens import Asker
from holdfast.protocols.answers import Answer, Told
from holdfast.protocols.told import told_plan
from holdfast.verbs import SCORES, VERBS
from tests.client.conftest import NO_PACE, Make, Serve, Served
from tests.holdout import plans
from tests.holdout.test_told import right, rows

URL = "http://127.0.0.1"
EIGHT = hf.grid(0, 0.875, step=0.125)
LOG = hf.grid(0.01, 1, points=8, scale="log")


# The same names, the same arguments.


SAME = (*(*VERBS, *SCORES, "leaderboard", "status", "transcript"),)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_the_signatures_are_those_of_the_holdout(kind: type[Any]) -> None:
    for name in SAME:
        own, theirs = getattr(kind, name), getattr(Holdout, name)
        assert inspect.signature(own) == inspect.signature(theirs), name
        assert own.__doc__ is not None
        schema = VERBS.get(name) or SCORES.get(name)
        if schema is not None:  # and both are those of the table
            found = inspect.signature(theirs)
            itself, *parameters = found.parameters.values()
            assert itself.name == "self"
            assert schema.signature() == found.replace(parameters=parameters), name
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
    "ask": lambda h: h.ask("avg(x)", grid=EIGHT, protocol="estimate"),
    "ask again": lambda h: h.ask("avg(x)", grid=EIGHT, protocol="estimate"),
    "where": lambda h: h.ask(
        "avg(x)", grid=hf.grid([0, 0.5, 1]), where="g = 'a'", protocol="estimate"
    ),
    "whole numbers": lambda h: h.ask(
        "sum(y)", grid=hf.grid(0, 7, scale="integer"), protocol="amplified"
    ),
    "ratios": lambda h: h.ask("avg(x)", grid=LOG, protocol="amplified"),
    "key": lambda h: h.ask("max(x)", grid=EIGHT, protocol="amplified", request="mine"),
    "mean": lambda h: h.mean("y = 1", protocol="estimate", grid=EIGHT),
    "interval": lambda h: h.interval("avg(x)", grid=EIGHT),
    "yes": lambda h: h.verify("avg(x)", 0.5, protocol="verify"),
    "no": lambda h: h.verify("avg(x)", 7, protocol="verify"),
    "at least": lambda h: h.verify("avg(x)", -1, claim="at least", protocol="verify"),
    "near": lambda h: h.verify("avg(x)", 0.5, tolerance=0.25, protocol="estimate"),
    "right": lambda h: h.correct("avg(x)", 0.5, grid=EIGHT, protocol="verify"),
    "wrong": lambda h: h.correct("avg(x)", 9.0, grid=EIGHT, protocol="verify"),
    "price": lambda h: h.price("ask", "min(x)", grid=EIGHT, protocol="estimate"),
    "price of a guess": lambda h: h.price("verify", "min(x)", guess=3, protocol="verify"),
}


def shown(result: Any) -> Any:
    """All that a result says, without what names its holdout or its moment."""
    if isinstance(result, dict):
        named = ("receipt", "at", "asker")
        return {name: shown(each) for name, each in result.items() if name not in named}
    return [*map(shown, result)] if isinstance(result, list | tuple) else result


def answered_alike(
    transport: Served, client: Client, holdout: Holdout, questions: dict[str, Asking]
) -> list[tuple[str, Any, Any]]:
    """What the client says, and what one says that awaits holdout "b": all as the holdout does."""

    async def awaited() -> list[Any]:
        async with AsyncClient(URL, holdout="b", transport=transport) as awaiting:
            return [await asking(awaiting) for asking in questions.values()]

    paced = holdout.on_behalf(Asker("anyone"), NO_PACE)  # as a server asks it
    ours = [asking(client) for asking in questions.values()]
    theirs = [asking(paced) for asking in questions.values()]
    later = asyncio.run(awaited())
    for name, own, their, late in zip(questions, ours, theirs, later, strict=True):
        assert type(own) is type(their) is type(late), name
        assert shown(asdict(own)) == shown(asdict(their)) == shown(asdict(late)), name
    return list(zip(questions, ours, later, strict=True))


def test_every_question_has_the_answer_of_the_holdout(made: Make, serve: Serve) -> None:
    every = plans.amplified()
    transport = serve(made("a", every), made("b", every))
    with (
        Holdout.open(made("c", every)) as holdout,
        Client(f"{URL}/holdouts/a", transport=transport) as client,
    ):
        answered_alike(transport, client, holdout, QUESTIONS)
        status, transcript = client.status(), client.transcript()
        there, kept = holdout.status(), holdout.transcript()
    apart = {name: getattr(there, name) for name in ("holdout", "name", "path", "receipt")}
    assert replace(status, **apart) == there
    assert status.path == "http://127.0.0.1/holdouts/a"
    for each in ("question", "answer"):
        assert [shown(row[each]) for row in transcript] == [shown(row[each]) for row in kept]


TWO = ("min(x)", "max(x)")
BAD: dict[str, Asking] = {
    "column": lambda h: h.ask("avg(nobody)", grid=EIGHT, protocol="estimate"),
    "syntax": lambda h: h.ask("avg(", grid=EIGHT, protocol="estimate"),
    "condition": lambda h: h.ask("avg(x)", where="g = 3", grid=EIGHT, protocol="estimate"),
    "part": lambda h: h.ask("avg(x)", grid=EIGHT, protocol="nobody"),
    "no grid": lambda h: h.ask("avg(x)", protocol="estimate"),
    "guess": lambda h: h.verify("avg(x)", math.nan, protocol="verify"),
    "guess in words": lambda h: h.verify("avg(x)", "much", protocol="verify"),
    "tolerance": lambda h: h.verify("avg(x)", 1, tolerance=1.5, protocol="verify"),
    "tolerance below 0": lambda h: h.verify("avg(x)", 1, tolerance=-1, protocol="estimate"),
    "claim": lambda h: h.verify("avg(x)", 1, claim="at most", protocol="estimate"),
    "term": lambda h: h.mean("x", protocol="estimate", where="nobody"),
    "used key": lambda h: [
        h.ask(text, protocol="estimate", grid=EIGHT, request="k") for text in TWO
    ],
}


def facts(wrong: HoldfastError) -> dict[str, Any]:
    return {name: str(value) for name, value in vars(wrong).items()}


def refused_alike(
    client: Client, holdout: Holdout, wrong: dict[str, Asking], *, whole: bool = False
) -> None:
    for name, asking in wrong.items():
        with pytest.raises(HoldfastError) as ours:
            asking(client)
        with pytest.raises(HoldfastError) as theirs:
            asking(holdout)
        assert type(ours.value) is type(theirs.value), name
        if whole:
            assert facts(ours.value) == facts(theirs.value), name
        if name != "used key":  # a server tells its askers' keys apart
            assert str(ours.value) == str(theirs.value), name


def test_every_error_is_the_one_of_the_holdout(made: Make, serve: Serve) -> None:
    with Client(URL, transport=serve(made("a"))) as client, Holdout.open(made("b")) as holdout:
        refused_alike(client, holdout, BAD, whole=True)
        assert client.status().answers == holdout.status().answers == 1


def test_exhausted_like_the_holdout(made: Make, serve: Serve) -> None:
    def all_of_it(place: Any) -> tuple[int, str, dict[str, Any]]:
        for number in range(100):
            try:
                place.ask(f"avg(x) + {number}", grid=EIGHT, protocol="estimate")
            except Exhausted as wrong:
                return number, str(wrong), facts(wrong)
        raise AssertionError("it lasts for ever")

    with (
        Client(URL, transport=serve(made("a"))) as client,
        Holdout.open(made("b")) as holdout,
    ):
        for place in (client, holdout):
            refused = [place.verify("avg(x)", 9.0 + n, protocol="verify").verdict for n in range(4)]
            assert refused == ["not compatible"] * 3 + ["exhausted"]
        assert all_of_it(client) == all_of_it(holdout)
        price = client.price("ask", "min(x)", grid=EIGHT, protocol="estimate")
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
        answer = client.ask("avg(x)", grid=EIGHT, protocol="estimate")
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
            client.ask("avg(x)", grid=EIGHT, protocol="estimate")
        again = client.ask("avg(x)", grid=EIGHT, protocol="estimate", request=wrong.value.request)
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
            client.ask("avg(x)", grid=EIGHT, protocol="estimate")
        assert viewer not in str(denied.value)
    with Client(URL, analyst, transport=transport) as client:
        client.ask("avg(x)", grid=EIGHT, protocol="estimate")
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
            client.ask(f"avg(x) + {number}", grid=hf.grid(0, 1, points=2), protocol="estimate")
        rows = client.transcript()
        numbers = [row["number"] for row in rows]
        assert len(set(numbers)) == 5
        assert client.transcript(limit=3) == rows[:3]
        assert client.transcript(after=numbers[1], limit=2) == rows[2:4]


def test_jobs(made: Make, serve: Serve) -> None:
    transport = serve(made("a"))
    shares: list[float] = []
    with Client(URL, transport=transport) as client:
        job = client.submit("ask", "avg(x)", grid=EIGHT, protocol="estimate")
        answer = job.wait(progress=shares.append)
        assert isinstance(answer, Answer)
        assert job.status().state == "done"
        assert job.status().result == answer
        assert client.ask("avg(x)", grid=EIGHT, protocol="estimate", request=job.request).cached
        assert job.cancel().state == "done"  # too late
        assert client.status().answers == 1
        with pytest.raises(InvalidInput, match="nobody"):
            client.submit("ask", "avg(nobody)", grid=EIGHT, protocol="estimate")
        with pytest.raises(InvalidInput, match="verb must be one of ask"):
            client.submit("guess", "avg(x)")
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_jobs_awaited(made: Make, serve: Serve) -> None:
    transport = serve(made("a"))

    async def work() -> None:
        async with AsyncClient(URL, transport=transport) as client:
            job = await client.submit("verify", "avg(x)", 0.5, protocol="verify")
            verdict = await job.wait()
            assert (verdict.verdict, (await job.status()).state) == ("compatible", "done")
            assert (await job.cancel()).state == "done"
            both = client.ask("avg(x)", grid=EIGHT, protocol="estimate"), client.status()
            await asyncio.gather(*both)
            assert repr(client) == "AsyncClient('http://127.0.0.1/holdouts/a')"

    asyncio.run(work())


# What is told: as the holdout itself tells it.


FRAME = rows(seed=424_242, size=4_000)
PREDICTED = {share: right(FRAME, share) for share in (0.7, 0.8, 0.9, 0.95)}
GOOD, FAIR, POOR = (PREDICTED[share] for share in (0.95, 0.9, 0.7))
BY_ID = dict(zip(FAIR.row.tolist(), FAIR.prediction.tolist(), strict=True))
CENTS = hf.grid(0, 1, step=0.01)
TELLING: dict[str, Asking] = {
    "mean": lambda h: h.mean("x > 0.3", guess=0.7, guess_se=0.05),
    "precise mean": lambda h: h.mean("x", range=(0, 2), precise=True),
    "some rows": lambda h: h.mean("y = 1", where="\"group\" = 'a'"),
    "median": lambda h: h.ask("avg(x)", grid=CENTS, guess=0.5, protocol="told"),
    "interval": lambda h: h.interval("max(x)", grid=CENTS, protocol="told"),
    "verify": lambda h: h.verify("avg(x)", 0.5, tolerance=0.1, protocol="told"),
    "score": lambda h: h.score(FAIR),
    "score again": lambda h: h.score(BY_ID),
    "a guess": lambda h: h.score(GOOD, guess=0.95, guess_se=0.01),
    "a surprise": lambda h: h.score(POOR, guess=0.9),
    "precise": lambda h: h.score(PREDICTED[0.8], precise=True),
    "another metric": lambda h: h.score(POOR, metric="brier"),
    "the other way": lambda h: h.score(GOOD, metric="error_rate"),
    "by looks": lambda h: h.score(FAIR, metric="f1", protocol="estimate"),
    "compare": lambda h: h.compare(GOOD, POOR),
    "a margin": lambda h: h.compare(GOOD, POOR, margin=0, names=["new ü", 'a%22"b']),
    "a precise difference": lambda h: h.compare(FAIR, POOR, precise=True, guess=0.2),
    "pass": lambda h: h.gate(FAIR, at_least=0.5),
    "fail": lambda h: h.gate(POOR, at_least=0.9, tolerance=0.01),
    "at most": lambda h: h.gate(FAIR, metric="error_rate", at_most=0.5, guess=0.1),
    "an incumbent": lambda h: h.gate(GOOD, better_than=POOR, margin=0.01),
    "best": lambda h: h.best([POOR, GOOD, FAIR]),
    "best, precise": lambda h: h.best([POOR, GOOD], precise=True, names=["p", "g"]),
    "scores": lambda h: h.scores([POOR, GOOD], guesses=[0.7, None], metric="brier"),
    "enter": lambda h: h.enter(FAIR, "ann"),
    "enter by name": lambda h: h.enter(GOOD, name="bob", guess=0.9, metric="accuracy"),
    "price": lambda h: h.price("score", PREDICTED[0.8], guess=0.7),
    "price of an old one": lambda h: h.price("score", FAIR),
    "price of a gate": lambda h: h.price("gate", FAIR, at_least=0.6),
    "price of a comparison": lambda h: h.price("compare", FAIR, against=GOOD, margin=0),
    "price of a comparison, as it is asked": lambda h: h.price("compare", FAIR, GOOD, margin=0),
    "price of an entry": lambda h: h.price("enter", GOOD, "cy", guess=0.8),
    "price of a winner": lambda h: h.price("best", [FAIR, GOOD]),
    "price of a batch": lambda h: h.price("scores", [FAIR, GOOD], guesses=[0.5, 0.6]),
    "price of a mean": lambda h: h.price("mean", "x > 0.7", precise=True),
    "board": lambda h: h.leaderboard(),
    "what neighbours tell": lambda h: h.leaderboard(price=True, max_level=3),
    "neighbours": lambda h: h.leaderboard(neighbours=True, top=5),
    "neighbours again": lambda h: h.leaderboard("accuracy", neighbours=True),
}


def made_told(path: Path, **more: Any) -> Path:
    """Rows to tell of, and blocks for looks beside them; seeded: two of them draw the same."""
    more = {"ids": "row", "target": "y", "new_budget": "a test", "open_fraction": 0.3, **more}
    table = FRAME.drop(columns="luck")
    Holdout.create(path, table, [told_plan(300), plans.mixed()], seed=7, **more).close()
    return path


def test_all_that_is_told_is_told_alike(tmp_path: Path, served: Serve) -> None:
    a, b, c = (made_told(tmp_path / f"{name}.holdfast") for name in "abc")
    transport = served(a, b)
    with Client(URL, holdout="a", transport=transport) as client, Holdout.open(c) as holdout:
        found = answered_alike(transport, client, holdout, TELLING)
        assert client.status().sets == holdout.status().sets
    for name, own, late in found:
        assert (own == late) == (name.startswith("price")), name  # receipts name the holdout
    kinds = {type(own).__name__ for _, own, _ in found}
    assert kinds == {"Answer", "Price", "Standings", "Submission", "Told"}
    verdicts = {own.verdict for _, own, _ in found if isinstance(own, Told)} - {None}
    assert verdicts >= {"pass", "fail", "better", "compatible"}
    for path in (a, b, c):
        assert check_holdout(path).passed


WRONG: dict[str, Asking] = {
    "probabilities": lambda h: h.score(FAIR.assign(prediction=0.3)),
    "no numbers": lambda h: h.score(FAIR.assign(prediction=math.nan)),
    "no such label": lambda h: h.score(FAIR.assign(prediction=2)),
    "an id twice": lambda h: h.score(pd.concat([FAIR, FAIR[:1]])),
    "an id less": lambda h: h.gate(FAIR[1:], at_least=0.5),
    "an unknown id": lambda h: h.gate({**BY_ID, 10**6: 1}, at_least=0.5),
    "a guess out of range": lambda h: h.score(POOR, guess=1.5),
    "a guess out of range, in a batch": lambda h: h.scores([POOR, GOOD], guesses=[1.5, 0.5]),
    "too few guesses": lambda h: h.scores([POOR, GOOD], guesses=[0.5]),
    "equal candidates": lambda h: h.best([POOR, GOOD, POOR]),
    "with itself": lambda h: h.compare(FAIR, BY_ID),
    "an incumbent that is it": lambda h: h.gate(FAIR, better_than=BY_ID),
    "two thresholds": lambda h: h.gate(FAIR, at_least=0.5, at_most=0.6),
    "no threshold": lambda h: h.gate(FAIR),
    "a margin without an incumbent": lambda h: h.gate(FAIR, at_least=0.5, margin=0.1),
    "beyond the metric": lambda h: h.gate(FAIR, at_least=2),
    "no mean over rows": lambda h: h.compare(FAIR, GOOD, metric="f1"),
    "no metric": lambda h: h.score(FAIR, metric="nothing"),
    "no name": lambda h: h.enter(FAIR, " "),
    "others have asked": lambda h: h.score(PREDICTED[0.8], max_level=0.5),
    "told words by looks": lambda h: h.mean("x > 0.5", guess=0.5, protocol="estimate"),
    "a guess by looks": lambda h: h.ask("avg(x)", grid=EIGHT, guess=0.5, protocol="estimate"),
}


def test_what_is_wrong_is_wrong_alike_and_nothing_is_told(tmp_path: Path, served: Serve) -> None:
    a, b = (made_told(tmp_path / f"{name}.holdfast", labels=[0, 1]) for name in "ab")
    with Client(URL, transport=served(a)) as client, Holdout.open(b) as holdout:
        before = holdout.receipt
        refused_alike(client, holdout, WRONG)
        assert holdout.receipt == before
        status = client.status()
        assert (status.answers, status.sets) == (0, holdout.status().sets)
