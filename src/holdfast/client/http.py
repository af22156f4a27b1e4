"""Addresses, calls and retries; the only place that knows of httpx2."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import count
from typing import Any, TypeVar
from urllib.parse import SplitResult, quote, unquote, urlsplit

import httpx2

from holdfast.errors import HoldfastError, InvalidInput, real_number, whole_number
from holdfast.randomness import system_entropy, uniform_index

__all__ = [
    "Address",
    "AsyncConnection",
    "Cancelled",
    "Connection",
    "HttpRequest",
    "NoReply",
    "NotAllowed",
    "Outcome",
    "Patience",
    "Pause",
    "Reply",
    "ServerFailed",
    "Steps",
    "Unreachable",
    "address_of",
    "new_key",
    "persistent",
    "token_for",
]


# Addresses: where a server is, which holdout is meant, and when a token may travel there.


_FORMS = "http(s)://HOST[:PORT], or http(s)://HOST[:PORT]/holdouts/NAME"
_TOKEN = re.compile(r"[!-~]+")
_NAMED = re.compile(r"(?P<base>.*?)(?:/api)?/holdouts/(?P<name>[^/]+)")
_HIDDEN = "(not shown)"


@dataclass(frozen=True)
class Address:
    """A server and, where it is known, the name of one of its holdouts."""

    server: str
    holdout: str | None
    loopback: bool

    @property
    def secret(self) -> bool:
        """Whether nobody on the way can read what is sent."""
        return self.loopback or self.server.startswith("https:")

    def __str__(self) -> str:
        return self.server if self.holdout is None else self.of(self.holdout)

    def of(self, holdout: str) -> str:
        """The address of a holdout."""
        return f"{self.server}/holdouts/{quote(holdout, safe='')}"


def address_of(url: str, holdout: str | None = None) -> Address:
    """The address that a URL names; `holdout` may name what the URL does not.

    >>> address_of("http://127.0.0.1:8000/holdouts/flights")
    Address(server='http://127.0.0.1:8000', holdout='flights', loopback=True)
    >>> str(address_of("https://data.example.org", "flights"))
    'https://data.example.org/holdouts/flights'
    """
    parts = _split(url)
    path = parts.path.rstrip("/")
    found = _NAMED.fullmatch(path)
    base = path if found is None else found["base"]
    named = unquote(parts.fragment if found is None else found["name"]).strip("/") or None
    if holdout is not None and named is not None and holdout != named:
        raise InvalidInput("holdout", holdout, f"{named!r}, as in the URL, or left out")
    server = f"{parts.scheme}://{parts.netloc}{base}"
    return Address(server, named or _name(holdout), _loopback(parts.hostname or ""))


def _name(holdout: object) -> str | None:
    if holdout is None or (isinstance(holdout, str) and holdout):
        return holdout
    raise InvalidInput("holdout", holdout, "the name of a holdout")


def _split(url: object) -> SplitResult:
    if not isinstance(url, str):
        raise InvalidInput("url", url, _FORMS)
    if "@" in url.partition("#")[0]:  # first: no other error may repeat it
        hint = "A token goes into token=… or the variable HOLDFAST_TOKEN, never into a URL."
        raise InvalidInput("url", _HIDDEN, "without a name and a password", hint)
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # it is looked at only here
    except ValueError:
        raise InvalidInput("url", url, _FORMS) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise InvalidInput("url", url, _FORMS, "As `holdfast serve` prints it.")
    return parts


def _loopback(host: str) -> bool:
    """Whether what is sent stays on this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def token_for(
    address: Address,
    token: str | None,
    *,
    insecure: bool,
    environment: Mapping[str, str] | None = None,
) -> str | None:
    """The token, or the one in the environment, if it may be sent to this address."""
    variables = os.environ if environment is None else environment
    given = variables.get("HOLDFAST_TOKEN") or None if token is None else token
    if given is None:
        return None
    given = str(given).strip()
    if not _TOKEN.fullmatch(given):  # checked here: an error elsewhere might show it
        hint = "Copy the whole of it, as `holdfast token create` printed it."
        raise InvalidInput("token", _HIDDEN, "text without spaces, in ASCII", hint)
    if not address.secret and not insecure:
        hint = (
            "Whoever is on the way could read the token and ask in your name. Only on a network "
            "that you trust: Client(…, insecure=True)."
        )
        raise InvalidInput("url", str(address), "https:// where a token is sent", hint)
    return given


# Steps: what a conversation with a server consists of, whoever carries it out.
#
# A conversation is a generator. It yields a call or a pause, is told what came of it, and returns
# its
# result. `Client` carries the steps out one after another; `AsyncClient` awaits them.


T = TypeVar("T")


@dataclass(frozen=True)
class HttpRequest:
    """One request to the server: a path below its address, and what travels with it.

    A call with a key, or one that changes nothing (`safe`), may be repeated.
    """

    method: str
    path: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content: bytes | None = None
    kind: str | None = None  # the media type of the content
    key: str | None = None
    safe: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether a second call of it does no harm."""
        return self.safe or self.key is not None

    @property
    def headers(self) -> dict[str, str]:
        """The headers that belong to this call alone."""
        headers = {} if self.key is None else {"Idempotency-Key": self.key}
        return headers if self.kind is None else {**headers, "Content-Type": self.kind}


@dataclass(frozen=True)
class Reply:
    """What the server said. Names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class NoReply:
    """No reply came. Another try may help (`again`); this one may have been heard (`sent`)."""

    reason: str
    again: bool = True
    sent: bool = True


@dataclass(frozen=True)
class Pause:
    """Wait so long."""

    seconds: float


Outcome = Reply | NoReply | None  # of a pause there is none
Steps = Generator[HttpRequest | Pause, Outcome, T]

_CONNECTING = 10.0  # seconds at most: an address that is wrong should say so soon
_HOPELESS = (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol)
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, *_HOPELESS)


def _options(address: Address, token: str | None, timeout: float) -> dict[str, Any]:
    seconds = real_number("timeout", timeout, 0, open_low=True)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return {
        "headers": {"Accept": "application/json", **headers},
        "timeout": httpx2.Timeout(seconds, connect=min(seconds, _CONNECTING)),
        # A proxy that the environment names would read what is not encrypted.
        "trust_env": address.server.startswith("https:"),
        "follow_redirects": False,  # a token goes where it was meant for, and nowhere else
    }


def _request(address: Address, call: HttpRequest) -> dict[str, Any]:
    return {
        "method": call.method,
        "url": address.server + call.path,
        "params": dict(call.parameters) or None,
        "json": call.body,
        "content": call.content,
        "headers": call.headers,
    }


def _reply(response: httpx2.Response) -> Reply:
    return Reply(response.status_code, dict(response.headers), response.content)


def _lost(wrong: httpx2.RequestError) -> NoReply:
    """What to tell of an error; nothing of the request, which holds the token."""
    text = f"{type(wrong).__name__}: {wrong}".rstrip(": ")
    if "CERTIFICATE_VERIFY_FAILED" in text:
        hint = "a certificate of your own is trusted if SSL_CERT_FILE names it"
        return NoReply(f"{text}; {hint}", again=False, sent=False)
    return NoReply(text, not isinstance(wrong, _HOPELESS), not isinstance(wrong, _NOT_SENT))


class Connection:
    """Connections to a server that wait for their replies. Threads may share it."""

    def __init__(
        self,
        address: Address,
        token: str | None,
        timeout: float,
        transport: httpx2.BaseTransport | None,
    ) -> None:
        self._address = address
        self._http = httpx2.Client(transport=transport, **_options(address, token, timeout))

    def send(self, call: HttpRequest) -> Reply | NoReply:
        """Send a call and wait for what comes of it."""
        try:
            return _reply(self._http.request(**_request(self._address, call)))
        except httpx2.RequestError as wrong:
            return _lost(wrong)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()


class AsyncConnection:
    """The same, for programs that do something else meanwhile."""

    def __init__(
        self,
        address: Address,
        token: str | None,
        timeout: float,
        transport: httpx2.AsyncBaseTransport | None,
    ) -> None:
        self._address = address
        self._http = httpx2.AsyncClient(transport=transport, **_options(address, token, timeout))

    async def send(self, call: HttpRequest) -> Reply | NoReply:
        """Send a call and wait for what comes of it."""
        try:
            return _reply(await self._http.request(**_request(self._address, call)))
        except httpx2.RequestError as wrong:
            return _lost(wrong)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()


# What can go wrong between a client and a server, beside what a holdout itself would say.
#
# HoldfastError
# ├── Unreachable    no reply, however often the question was repeated
# ├── NotAllowed     the token is missing, has ended, or is for less than this
# ├── Cancelled      the job was cancelled
# └── ServerFailed   the server has failed, or is no server that this client knows


class Unreachable(HoldfastError):
    """No reply came. Where `request` is a key, the server may have heard the question.

    Asked again with that key it has the same answer, and is paid for once.
    """

    def __init__(self, url: str, reason: str, tries: int, request: str | None = None) -> None:
        self.url = url
        self.reason = reason
        self.tries = tries
        self.request = request
        times = "once" if tries == 1 else f"{tries} times"
        message = f"No reply from {url}, which was asked {times}: {reason}."
        if request is None:
            super().__init__(f"{message} Does the server run, and is the address right?")
        else:
            super().__init__(
                f"{message} It may have been answered and paid for: ask the same again with "
                f"request={request!r}, and it is not paid for twice."
            )


class NotAllowed(HoldfastError):
    """The server does not allow it with this token."""

    def __init__(self, url: str, reason: str, remedy: str) -> None:
        self.url = url
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{url} does not allow this: {reason} {remedy}")


class Cancelled(HoldfastError):
    """The job was cancelled. What its question had cost by then stays paid."""

    def __init__(self, job: str, reason: str) -> None:
        self.job = job
        self.reason = reason
        super().__init__(f"Job {job} was cancelled: {reason}")


class ServerFailed(HoldfastError):
    """The reply is not one that a working server of this version gives."""

    def __init__(self, url: str, reason: str, remedy: str) -> None:
        self.url = url
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{url} {reason} {remedy}")


# Retries: ask again until there is a reply, and no question twice.
#
# A call is repeated after a lost connection, a timeout, and when the server says that it is busy
# or
# not there (429, 502, 503, 504), only if that does no harm: it has a key, or it only looks. Pauses
# double, and are shortened at random, so that many clients do not come back at the same moment.


_NOT_NOW = (429, 502, 503, 504)
_FIRST = 0.1  # seconds of the first pause
_PARTS = 2**16


@dataclass(frozen=True)
class Patience:
    """How often a call is repeated at most, for how many seconds, and the longest pause."""

    retries: int
    seconds: float
    longest: float = 5.0

    def __post_init__(self) -> None:
        whole_number("retries", self.retries, 0, 10**6)
        real_number("patience", self.seconds, 0)


def new_key() -> str:
    """A key that no other question has: 128 bits from the operating system."""
    first, second = system_entropy().words(2)
    return f"{int(first):016x}{int(second):016x}"


def persistent(call: HttpRequest, patience: Patience, url: str) -> Steps[Reply]:
    """The reply to a call, which is repeated while that may help."""
    end, heard = time.monotonic() + patience.seconds, False
    for tries in count(1):
        outcome = yield call
        heard |= not isinstance(outcome, NoReply) or outcome.sent
        if isinstance(outcome, Reply) and outcome.status not in _NOT_NOW:
            return outcome
        pause = _pause(tries, patience.longest, outcome)
        last = tries > patience.retries or time.monotonic() + pause > end
        if last or not call.repeatable or (isinstance(outcome, NoReply) and not outcome.again):
            raise Unreachable(url, _reason(outcome), tries, call.key if heard else None)
        yield Pause(pause)
    raise AssertionError("count has no end")


def _pause(tries: int, longest: float, outcome: Outcome) -> float:
    """Between a half and the whole of a pause that doubles; or longer, if the server says so."""
    own = min(longest, _FIRST * 2.0 ** min(tries - 1, 30))
    own *= 0.5 + 0.5 * uniform_index(_PARTS, system_entropy()) / _PARTS
    return max(own, _asked_for(outcome))


def _asked_for(outcome: Outcome) -> float:
    """Retry-After, where it is a number of seconds. A date would need two clocks that agree."""
    text = outcome.headers.get("retry-after", "") if isinstance(outcome, Reply) else ""
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return seconds if seconds > 0 and not math.isnan(seconds) else 0.0


def _reason(outcome: Outcome) -> str:
    if isinstance(outcome, NoReply):
        return outcome.reason
    assert outcome is not None  # only a pause has no outcome
    try:
        said = json.loads(outcome.body)["error"]["message"]
    except (ValueError, LookupError, TypeError):
        said = "no reason given"
    return f"status {outcome.status}, {str(said).rstrip('.')}"
