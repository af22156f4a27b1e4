"""The ledger in Postgres: several holdouts in a database, several servers on a holdout.

    ledger       the ledger: transactions, names, forks
    sessions     one connection, durable, and noticed when it is lost
    names        names that are held across machines
    formats      the tables, made and brought up to date
    catalog      whether the tables are as they were made
    statements   the SQL
    addresses    URLs, which hold no password
    faults       what an error of Postgres means for the ledger

It is loaded only when a URL asks for it; `pip install 'psycopg[binary]'`.
"""

from __future__ import annotations

from holdfast.ledger.postgres.ledger import PostgresLedger

__all__ = ["PostgresLedger"]
