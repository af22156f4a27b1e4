"""Where a client asks, and where it would never send a token."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable

import httpx2
import pytest

from holdfast.client.client import Client
from holdfast.client.http import NotAllowed, address_of, token_for
from holdfast.errors import HoldfastError, InvalidInput

TOKEN = "hf_abcdefgh_" + "s3cr3t-_" * 5 + "xyz"


@pytest.mark.parametrize(
    ("url", "holdout", "expected"),
    [
        ("http://127.0.0.1:8000", None, "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/", "a", "http://127.0.0.1:8000/holdouts/a"),
        ("http://127.0.0.1:8000/holdouts/a", None, "http://127.0.0.1:8000/holdouts/a"),
        ("http://127.0.0.1:8000/holdouts/a/", "a", "http://127.0.0.1:8000/holdouts/a"),
        ("http://127.0.0.1:8000/api/holdouts/a", None, "http://127.0.0.1:8000/holdouts/a"),
        ("http://127.0.0.1:8000/#a", None, "http://127.0.0.1:8000/holdouts/a"),
        ("https://example.org/behind/holdouts/a%20b", None, "https://example.org/behind/holdouts/a%20b"),
        ("HTTPS://[::1]:8000#a", None, "https://[::1]:8000/holdouts/a"),
    ],
)  # fmt: skip
def test_addresses(url: str, holdout: str | None, expected: str) -> None:
    assert str(address_of(url, holdout)) == expected


@pytest.mark.parametrize(
    ("url", "holdout", "parameter"),
    [
        ("a.holdfast", None, "url"),
        ("ftp://example.org", None, "url"),
        ("http://", None, "url"),
        ("http://example.org:port", None, "url"),
        ("http://example.org/?token=1", None, "url"),
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


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(InvalidInput, match="HOLDFAST_TOKEN") as wrong:
        address_of(f"https://me:{TOKEN}@example.org")
    assert TOKEN not in str(wrong.value)


@pytest.mark.parametrize(
    "url",
    ["https://example.org", "http://localhost:1", "http://127.0.0.5", "http://[::1]:8000"],
)
def test_a_token_goes_where_nobody_else_reads_it(url: str) -> None:
    assert token_for(address_of(url), TOKEN, insecure=False) == TOKEN


@pytest.mark.parametrize("url", ["http://example.org", "http://10.0.0.1", "http://localhost.org"])
def test_a_token_does_not_travel_in_the_open(url: str) -> None:
    address = address_of(url)
    with pytest.raises(InvalidInput, match="insecure=True") as wrong:
        token_for(address, TOKEN, insecure=False)
    assert TOKEN not in str(wrong.value)
    assert token_for(address, TOKEN, insecure=True) == TOKEN
    assert token_for(address, None, insecure=False, environment={}) is None


def test_the_token_of_the_environment() -> None:
    address = address_of("https://example.org")
    there = {"HOLDFAST_TOKEN": f" {TOKEN}\n"}
    assert token_for(address, None, insecure=False, environment=there) == TOKEN
    assert token_for(address, "mine", insecure=False, environment=there) == "mine"
    assert token_for(address, None, insecure=False, environment={"HOLDFAST_TOKEN": ""}) is None
    with pytest.raises(InvalidInput):
        token_for(address_of("http://example.org"), None, insecure=False, environment=there)


@pytest.mark.parametrize(
    "token",
    [f"{TOKEN}\r\nHost: b", f"{TOKEN} x", f"{TOKEN}é", ""],
    ids=["header", "space", "letter", "empty"],
)
def test_a_token_that_is_none_is_not_shown(token: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        token_for(address_of("https://example.org"), token, insecure=False)
    assert TOKEN not in str(wrong.value)


def refused(request: httpx2.Request) -> httpx2.Response:
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    told = {"kind": "unauthorized", "message": "A token is needed that holds.", "request": "1"}
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


def test_what_to_do_without_a_token() -> None:
    transport = httpx2.MockTransport(refused)
    with (
        Client("http://127.0.0.1#a", TOKEN, transport=transport) as client,
        pytest.raises(NotAllowed, match="holdfast token create"),
    ):
        client.status()
