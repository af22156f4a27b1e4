"""What can go wrong between a client and a server, beside what a holdout itself would say.

HoldfastError
├── Unreachable    no reply, however often the question was repeated
├── NotAllowed     the token is missing, has ended, or is for less than this
├── Cancelled      the job was cancelled
└── ServerFailed   the server has failed, or is no server that this client knows
"""

from __future__ import annotations

from holdfast.errors import HoldfastError

__all__ = ["Cancelled", "NotAllowed", "ServerFailed", "Unreachable"]


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
