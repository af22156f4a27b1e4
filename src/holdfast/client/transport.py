"""The only place that knows of httpx2: calls carried out, and what came of them."""

from __future__ import annotations

from typing import Any

import httpx2

from holdfast.client.address import Address
from holdfast.client.steps import Call, Lost, Reply
from holdfast.errors import real_number

__all__ = ["AsyncConnection", "Connection"]

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


def _request(address: Address, call: Call) -> dict[str, Any]:
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


def _lost(wrong: httpx2.RequestError) -> Lost:
    """What to tell of an error; nothing of the request, which holds the token."""
    text = f"{type(wrong).__name__}: {wrong}".rstrip(": ")
    if "CERTIFICATE_VERIFY_FAILED" in text:
        hint = "a certificate of your own is trusted if SSL_CERT_FILE names it"
        return Lost(f"{text}; {hint}", again=False, sent=False)
    return Lost(text, not isinstance(wrong, _HOPELESS), not isinstance(wrong, _NOT_SENT))


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

    def send(self, call: Call) -> Reply | Lost:
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

    async def send(self, call: Call) -> Reply | Lost:
        """Send a call and wait for what comes of it."""
        try:
            return _reply(await self._http.request(**_request(self._address, call)))
        except httpx2.RequestError as wrong:
            return _lost(wrong)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()
