"""Addresses of databases: URLs as libpq reads them. A password has no place in one.

A URL is written into the holdout's folder, given on command lines, and shown in messages.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.errors import InvalidInput

__all__ = ["parameters"]

# A server or a network that goes away silently is noticed within a minute.
_DEFAULTS = {
    "application_name": "holdfast",
    "client_encoding": "UTF8",
    "connect_timeout": "10",
    "keepalives_count": "3",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "target_session_attrs": "primary",  # a standby may be behind: an older copy of the ledger
    "tcp_user_timeout": "60000",
}


def parameters(url: str) -> dict[str, Any]:
    """What libpq is told for a URL; what it leaves open is chosen here.

    >>> sorted(set(parameters("postgresql://db.example/holdouts")) - set(_DEFAULTS))
    ['dbname', 'host']
    """
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:
        # Not with the words of libpq: they may repeat a part of the password.
        raise InvalidInput("ledger", _masked(url), "a URL: postgresql://host/database") from None
    if "password" in given or "sslpassword" in given:
        hint = (
            "It would be stored and shown. Put it into PGPASSWORD, a file ~/.pgpass (mode 0600) or "
            "a service file."
        )
        raise InvalidInput("ledger", _masked(url), "a URL without a password", hint)
    return {**_DEFAULTS, **given}


def _masked(url: str) -> str:
    """The URL without anything that may be a password."""
    return re.sub(r"password=[^&\s]*", "password=…", re.sub(r"//.*@", "//…@", url))
