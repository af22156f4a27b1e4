"""The floor for a service: the same framework, and for each request two bare durable commits.

python -m benchmarks.peer FILE PORT WORKERS      FastAPI on uvicorn; SQLite, WAL, synchronous = FULL

No question is read, nothing is evaluated, no lock is taken but SQLite's own and one for the
connection, which all threads of a process share: commits wait for each other in any case.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

__all__ = ["create_app"]

SIZES = (510, 870)  # characters of the rows that a question writes, digests included
_FILE = "HOLDFAST_PEER_FILE"


class Words(BaseModel):
    """A question, as it is sent."""

    estimator: str
    grid: str | None = None


def create_app() -> FastAPI:
    """An app that writes two rows for each request."""
    connection = sqlite3.connect(
        os.environ[_FILE], timeout=60, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS t (number INTEGER PRIMARY KEY, body TEXT)")
    lock, app = threading.Lock(), FastAPI()

    @app.post("/ask")
    def ask(words: Words) -> dict[str, object]:
        for size in SIZES:
            with lock:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO t (body) VALUES (?)", ("x" * size,))
                connection.execute("COMMIT")
        return {"value": 0.5, "estimator": words.estimator, "receipt": "x" * 100}

    return app


if __name__ == "__main__":
    os.environ[_FILE] = sys.argv[1]
    uvicorn.run(
        "benchmarks.peer:create_app",
        factory=True,
        port=int(sys.argv[2]),
        workers=int(sys.argv[3]),
        log_level="error",
        access_log=False,
    )
