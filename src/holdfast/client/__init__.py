"""Talks to a server: the same questions and the same answers as a holdout, from elsewhere.

    address      where the server is, which holdout, and when a token may travel there
    steps        calls, replies and pauses: what a conversation consists of, whoever carries it out
    questions    what is asked, checked and made ready to travel
    scores       the same for scores, gates and entries of the leaderboard
    predictions  predictions as the body of a call
    replies      the data in what a server says, or the error that a holdout would have raised
    results      the data as the objects that a holdout gives
    retries      asking again until there is a reply, with the same key
    talk         the conversations: questions, status, pages of the transcript, jobs
    signatures   a question's signature, as the method that asks it has it
    sync         `Client`, which waits
    asynchronous `AsyncClient`, which is awaited

Only `transport` knows of httpx2. All the rest reads and writes nothing, and is there once.
"""

from __future__ import annotations

from holdfast.client.asynchronous import AsyncClient, AsyncJob
from holdfast.client.errors import Cancelled, NotAllowed, ServerFailed, Unreachable
from holdfast.client.results import JobStatus
from holdfast.client.sync import Client, Job

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
