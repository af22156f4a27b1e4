"""Addresses of databases: URLs as libpq reads them. A password has no place in one.

A URL is written into the holdout's folder, given on command lines, and shown in messages.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.errors import InvalidInput
from holdfast.ledger.addresses import masked

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
_SECRETS = frozenset(
    {"oauth_client_secret", "password", "scram_client_key", "scram_server_key", "sslpassword"}
)
# One @, and no colon before it. libpq would take `me:sesame/1@host` for a port and a database.
_PLAIN = re.compile(r"[a-z]+://([^/?:@]*@)?[^@]*")


def parameters(url: str) -> dict[str, Any]:
    """What libpq is told for a URL; what it leaves open is chosen here.

    >>> sorted(set(parameters("postgresql://db.example/holdouts")) - set(_DEFAULTS))
    ['dbname', 'host']
    """
    try:
        given = conninfo_to_dict(url)  # percent-decoded; a name in capitals is unknown to libpq
    except psycopg.Error:
        # Not with the words of libpq: they may repeat a part of the password.
        raise InvalidInput("ledger", masked(url), "a URL: postgresql://host/database") from None
    if not _SECRETS.isdisjoint(given) or not _PLAIN.fullmatch(url):
        hint = (
            "It would be stored and shown. Put it into PGPASSWORD, a file ~/.pgpass (mode 0600) or "
            "a service file; write %40 for an @ in a name."
        )
        raise InvalidInput("ledger", masked(url), "a URL without a password", hint)
    return {**_DEFAULTS, **given}
