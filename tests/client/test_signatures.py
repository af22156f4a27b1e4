"""A client is asked like a holdout: the same names, the same arguments, the same answers."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.client.client import AsyncClient, Client
from holdfast.errors import HoldfastError
from holdfast.holdout.holdout import Holdout

SAME = (
    *("ask", "correct", "interval", "mean", "verify"),
    *("enter", "gate", "leaderboard", "score"),
    *("status", "transcript"),
)


def signature(function: Callable[..., Any]) -> tuple[list[inspect.Parameter], str]:
    found = inspect.signature(function)
    return list(found.parameters.values()), str(found.return_annotation)


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_the_signature_is_that_of_the_holdout(kind: type[Any], name: str) -> None:
    own, theirs = getattr(kind, name), getattr(Holdout, name)
    assert signature(own) == signature(theirs)
    assert own.__doc__ is not None


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_price_is_asked_for_with_the_same_words(kind: type[Any]) -> None:
    ours, theirs = inspect.signature(kind.price), inspect.signature(Holdout.price)
    assert list(ours.parameters) == list(theirs.parameters)
    assert ours.return_annotation == theirs.return_annotation


def public(kind: type[Any]) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_both_clients_can_do_the_same() -> None:
    assert public(Client) == public(AsyncClient)
    for name in public(Client):
        assert inspect.iscoroutinefunction(getattr(AsyncClient, name)), name
        assert signature(getattr(Client, name))[0] == signature(getattr(AsyncClient, name))[0]
    assert list(inspect.signature(Client).parameters) == list(
        inspect.signature(AsyncClient).parameters
    )


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
        getattr(holdfast, kind)("http://127.0.0.1")
