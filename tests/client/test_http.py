"""Where a client asks, where it would never send a token, and how long it asks again."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence

import httpx2
import pytest

from holdfast.client.client import Client
from holdfast.client.http import (
    HttpRequest,
    NoReply,
    NotAllowed,
    Outcome,
    Patience,
    Reply,
    Unreachable,
    address_of,
    new_key,
    persistent,
    token_for,
)
from holdfast.errors import HoldfastError, InvalidInput
from tests.client.conftest import carried

TOKEN = "hf_abcdefgh_" + "s3cr3t-_" * 5 + "xyz"
HERE, SAFE, OPEN = "http://127.0.0.1:8000", "https://example.org", "http://example.org"


@pytest.mark.parametrize(
    ("url", "holdout", "expected"),
    [
        (HERE, None, HERE),
        (f"{HERE}/", "a", f"{HERE}/holdouts/a"),
        (f"{HERE}/holdouts/a", None, f"{HERE}/holdouts/a"),
        (f"{HERE}/holdouts/a/", "a", f"{HERE}/holdouts/a"),
        (f"{HERE}/api/holdouts/a", None, f"{HERE}/holdouts/a"),
        (f"{HERE}/#a", None, f"{HERE}/holdouts/a"),
        (f"{SAFE}/behind/holdouts/a%20b", None, f"{SAFE}/behind/holdouts/a%20b"),
        ("HTTPS://[::1]:8000#a", None, "https://[::1]:8000/holdouts/a"),
    ],
)
def test_addresses(url: str, holdout: str | None, expected: str) -> None:
    assert str(address_of(url, holdout)) == expected


@pytest.mark.parametrize(
    ("url", "holdout", "parameter"),
    [
        ("a.holdfast", None, "url"),
        ("ftp://example.org", None, "url"),
        ("http://", None, "url"),
        (f"{OPEN}:port", None, "url"),
        (f"{OPEN}/?token=1", None, "url"),
        (f"https://me:{TOKEN}@example.org", None, "url"),
        (8000, None, "url"),
        ("http://127.0.0.1/holdouts/a", "b", "holdout"),
        ("http://127.0.0.1", "", "holdout"),
        ("http://127.0.0.1", 3, "holdout"),
    ],
)
def test_addresses_that_are_none(url: str, holdout: str | None, parameter: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        address_of(url, holdout)
    assert wrong.value.parameter == parameter
    assert TOKEN not in str(wrong.value)
    assert ("HOLDFAST_TOKEN" in str(wrong.value)) == (TOKEN in str(url))


# Tokens.


@pytest.mark.parametrize(
    ("url", "given", "environment", "expected"),
    [
        *((url, TOKEN, "", TOKEN) for url in (SAFE, "http://localhost:1", "http://127.0.0.5")),
        ("http://[::1]:8000", TOKEN, "", TOKEN),
        (SAFE, None, f" {TOKEN}\n", TOKEN),
        (SAFE, "mine", TOKEN, "mine"),
        (SAFE, None, "", None),
        (OPEN, None, "", None),
        # In the open it does not travel; and what is none is not shown.
        *((url, TOKEN, "", OPEN) for url in (OPEN, "http://10.0.0.1", "http://localhost.org")),
        (OPEN, None, TOKEN, OPEN),
        *((SAFE, wrong, "", SAFE) for wrong in (f"{TOKEN}\r\nHost: b", f"{TOKEN} x", f"{TOKEN}é")),
        (SAFE, "", "", SAFE),
    ],
)
def test_a_token_goes_where_nobody_else_reads_it(
    url: str, given: str | None, environment: str, expected: str | None
) -> None:
    address, there = address_of(url), {"HOLDFAST_TOKEN": environment}
    if expected in (OPEN, SAFE):
        with pytest.raises(InvalidInput) as wrong:
            token_for(address, given, insecure=False, environment=there)
        assert TOKEN not in str(wrong.value)
        if expected == OPEN:
            assert "insecure=True" in str(wrong.value)
            assert token_for(address, given, insecure=True, environment=there) == TOKEN
    else:
        assert token_for(address, given, insecure=False, environment=there) == expected


def refused(request: httpx2.Request) -> httpx2.Response:
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    told = {
        "kind": "unauthorized",
        "message": "This token is unknown, expired or revoked.",
        "request": "1",
    }
    return httpx2.Response(401, json={"error": told})


def failing(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.LocalProtocolError("no", request=request)


@pytest.mark.parametrize("handler", [refused, failing])
def test_the_token_is_never_shown(
    handler: Callable[[httpx2.Request], httpx2.Response], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    transport = httpx2.MockTransport(handler)
    with Client("http://127.0.0.1#a", TOKEN, transport=transport) as client:
        shown = [repr(client), str(client)]
        with pytest.raises(HoldfastError) as wrong:
            client.ask("avg(x)")
        shown += [str(wrong.value), repr(vars(wrong.value)), repr(vars(client))]
        shown += traceback.format_exception(wrong.value)
    assert TOKEN not in "".join(shown) + caplog.text
    assert wrong.value.__cause__ is None
    if handler is refused:
        assert isinstance(wrong.value, NotAllowed)
        assert "holdfast token create" in str(wrong.value)


# Asked again until there is a reply, with the same key, and not for ever.


ASKED = HttpRequest("POST", "/ask", body={"estimator": "avg(x)"}, key="k")
GOOD = Reply(200, {}, b"{}")
GONE, CUT = NoReply("ConnectError"), NoReply("ReadTimeout")
UNHEARD = NoReply("ConnectError", sent=False)


def busy(status: int, after: str | None = None) -> Reply:
    told = b'{"error": {"kind": "busy", "message": "The holdout is busy."}}'
    return Reply(status, {} if after is None else {"retry-after": after}, told)


def conversation(
    outcomes: Sequence[Outcome],
    call: HttpRequest = ASKED,
    retries: int = 8,
    seconds: float = 1000.0,
) -> tuple[Reply, list[float]]:
    """The reply after these outcomes, one for each try, and the pauses before it."""
    steps = persistent(call, Patience(retries, seconds), "http://127.0.0.1")
    reply, calls, pauses = carried(steps, outcomes)
    assert all(each is call for each in calls)  # the very same, with its key
    return reply, pauses


@pytest.mark.parametrize("trouble", [GONE, CUT, *map(busy, (429, 502, 503, 504))], ids=str)
def test_it_is_asked_again(trouble: Outcome) -> None:
    reply, pauses = conversation([trouble, trouble, GOOD])
    assert reply is GOOD
    assert len(pauses) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 500])
def test_what_would_be_refused_again_is_not(status: int) -> None:
    assert conversation([Reply(status, {}, b"")])[0].status == status
    assert conversation([GONE, GOOD], READ)[0] is GOOD  # what only reads needs no key


def test_pauses_double_and_are_shortened_at_random() -> None:
    pauses = conversation([*[GONE] * 8, GOOD])[1]
    longest = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    shares = [each / most for each, most in zip(pauses, longest, strict=True)]
    assert all(0.5 <= share <= 1 for share in shares)
    assert len({round(share, 3) for share in shares}) > 1
    first, second = conversation([busy(429, "7"), busy(503, "soon"), GOOD])[1]
    assert first == 7  # the server may ask for a longer one
    assert second < 1


WRITE, READ = HttpRequest("POST", "/ask", body={}), HttpRequest("GET", "/status", safe=True)


@pytest.mark.parametrize(
    ("outcomes", "more", "said", "tries", "request_key"),
    [
        *(
            ([busy(429, wait)], {"seconds": 10}, "once: status 429, The holdout is busy.", 1, "k")
            for wait in ("3600", "inf", "1e400")
        ),
        ([GONE] * 10, {"retries": 3}, "request='k'", 4, "k"),
        ([UNHEARD] * 3, {"retries": 2}, "Does the server run", 3, None),  # nobody heard: no key
        ([UNHEARD, CUT, UNHEARD], {"retries": 2}, "request='k'", 3, "k"),
        ([CUT], {"call": WRITE}, "", 1, None),  # without a key nothing is repeated
        ([NoReply("ConnectError: certificate", again=False)], {}, "once", 1, "k"),
    ],
)
def test_it_is_given_up(
    outcomes: list[Outcome], more: dict[str, int], said: str, tries: int, request_key: str | None
) -> None:
    with pytest.raises(Unreachable) as wrong:
        conversation(outcomes, **more)  # type: ignore[arg-type]
    assert said in str(wrong.value)
    assert (wrong.value.tries, wrong.value.request) == (tries, request_key)


def test_keys_are_new() -> None:
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100  # by chance: never; 128 bits
    assert {len(key) for key in keys} == {32}


@pytest.mark.parametrize(("retries", "seconds"), [(-1, 1), (1.5, 1), (1, -1), (1, float("nan"))])
def test_patience_is_checked(retries: int, seconds: float) -> None:
    with pytest.raises(InvalidInput):
        Patience(retries, seconds)
