"""Asked again until there is a reply, with the same key, and not for ever."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from holdfast.client.http import (
    Call,
    Lost,
    Outcome,
    Patience,
    Pause,
    Reply,
    Unreachable,
    new_key,
    persistent,
)
from holdfast.errors import InvalidInput

ASKED = Call("POST", "/ask", body={"estimator": "avg(x)"}, key="k")
GOOD = Reply(200, {}, b"{}")


def busy(status: int, **headers: str) -> Reply:
    told = b'{"error": {"kind": "busy", "message": "The holdout is busy."}}'
    return Reply(status, {name.replace("_", "-"): text for name, text in headers.items()}, told)


def conversation(
    call: Call, outcomes: Iterable[Outcome], retries: int = 8, seconds: float = 1000.0
) -> tuple[Reply, list[float]]:
    """The reply after these outcomes, one for each try, and the pauses before it."""
    steps = persistent(call, Patience(retries, seconds), "http://127.0.0.1")
    pauses: list[float] = []
    following = iter(outcomes)
    step = next(steps)
    try:
        while True:
            if isinstance(step, Pause):
                pauses.append(step.seconds)
                step = steps.send(None)
            else:
                assert step is call  # the very same, with its key
                step = steps.send(next(following))
    except StopIteration as end:
        reply: Reply = end.value
        return reply, pauses


@pytest.mark.parametrize(
    "trouble",
    [Lost("ConnectError"), Lost("ReadTimeout"), *(busy(status) for status in (429, 502, 503, 504))],
    ids=["connection", "timeout", "429", "502", "503", "504"],
)
def test_it_is_asked_again(trouble: Outcome) -> None:
    reply, pauses = conversation(ASKED, [trouble, trouble, GOOD])
    assert reply is GOOD
    assert len(pauses) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 500])
def test_what_would_be_refused_again_is_not(status: int) -> None:
    assert conversation(ASKED, [Reply(status, {}, b"")])[0].status == status


def test_pauses_double_and_are_shortened_at_random() -> None:
    pauses = conversation(ASKED, [*[Lost("gone")] * 8, GOOD])[1]
    longest = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert all(most / 2 <= each <= most for each, most in zip(pauses, longest, strict=True))
    assert len({round(each / most, 3) for each, most in zip(pauses, longest, strict=True)}) > 1


def test_the_server_may_ask_for_a_longer_pause() -> None:
    outcomes = [busy(429, retry_after="7"), busy(503, retry_after="soon"), GOOD]
    first, second = conversation(ASKED, outcomes)[1]
    assert first == 7
    assert second < 1


@pytest.mark.parametrize("wait", ["3600", "inf", "1e400"])
def test_nobody_waits_longer_than_patience_lasts(wait: str) -> None:
    with pytest.raises(Unreachable, match=r"once: status 429, The holdout is busy\."):
        conversation(ASKED, [busy(429, retry_after=wait)], seconds=10)


def test_the_number_of_tries_is_bounded() -> None:
    with pytest.raises(Unreachable) as wrong:
        conversation(ASKED, [Lost("ConnectError")] * 10, retries=3)
    assert (wrong.value.tries, wrong.value.request) == (4, "k")
    assert "request='k'" in str(wrong.value)


def test_what_nobody_heard_needs_no_key() -> None:
    refused = Lost("ConnectError", sent=False)
    with pytest.raises(Unreachable, match="Does the server run") as wrong:
        conversation(ASKED, [refused] * 3, retries=2)
    assert wrong.value.request is None
    with pytest.raises(Unreachable, match="request='k'"):
        conversation(ASKED, [refused, Lost("ReadTimeout"), refused], retries=2)


def test_without_a_key_nothing_is_repeated_that_changes_something() -> None:
    with pytest.raises(Unreachable) as wrong:
        conversation(Call("POST", "/ask", body={}), [Lost("ReadTimeout")])
    assert (wrong.value.tries, wrong.value.request) == (1, None)
    assert conversation(Call("GET", "/status", safe=True), [Lost("gone"), GOOD])[0] is GOOD


def test_what_cannot_help_is_not_tried() -> None:
    with pytest.raises(Unreachable, match="once"):
        conversation(ASKED, [Lost("ConnectError: certificate", again=False)])


def test_keys_are_new() -> None:
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100  # by chance: never; 128 bits
    assert {len(key) for key in keys} == {32}


@pytest.mark.parametrize(("retries", "seconds"), [(-1, 1), (1.5, 1), (1, -1), (1, float("nan"))])
def test_patience_is_checked(retries: int, seconds: float) -> None:
    with pytest.raises(InvalidInput):
        Patience(retries, seconds)
