"""Talks to a server: the same questions and the same answers as a holdout, from elsewhere.

    client   `Client`, which waits, `AsyncClient`, which is awaited, and the conversations of both
    wire     what is asked, made ready to travel, and what comes back, as objects or errors
    http     addresses, calls, replies and retries; the only place that knows of httpx2

But for `http`, nothing here reads or writes anything.
"""

from __future__ import annotations

from holdfast.client.client import AsyncClient, AsyncJob, Client, Job
from holdfast.client.http import Cancelled, NotAllowed, ServerFailed, Unreachable
from holdfast.client.wire import JobStatus

__all__ = [
    "AsyncClient",
    "AsyncJob",
    "Cancelled",
    "Client",
    "Job",
    "JobStatus",
    "NotAllowed",
    "ServerFailed",
    "Unreachable",
]
