"""Tests for `holdfast serve --tls-cert --tls-key`."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import httpx2
import pytest
import trustme

from tests.server.processes import serving


def test_tokens_travel_encrypted(folder: Path, tokens: dict[str, str], tmp_path: Path) -> None:
    authority = trustme.CA()
    cert, key = tmp_path / "server.pem", tmp_path / "server.key"
    issued = authority.issue_cert("127.0.0.1", "localhost")
    issued.private_key_pem.write_to_path(key)
    issued.cert_chain_pems[0].write_to_path(cert)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    options = ("--tls-cert", str(cert), "--tls-key", str(key))
    with serving(folder, log=tmp_path / "log", options=options) as running:
        assert running.url.startswith("https://")
        headers = {"Authorization": f"Bearer {tokens['viewer']}"}
        with httpx2.Client(verify=trusting) as client:
            told = client.get(f"{running.url}/api/holdouts", headers=headers).json()
        assert [each["name"] for each in told] == ["study"]
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"{running.url}/health")  # whoever does not know the authority
        assert running.stop() == 0
    lines = [json.loads(line) for line in (tmp_path / "log").read_text("utf-8").splitlines()]
    assert any(line.get("route") == "/api/holdouts" for line in lines)
    assert tokens["viewer"] not in (tmp_path / "log").read_text("utf-8")
