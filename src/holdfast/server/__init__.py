"""The server: analysts ask over HTTP, and a holdout answers as it does everywhere.

settings     how it is run                     run          the processes that listen
app          all of it put together            middleware   every request, first
routes       the addresses                     schemas      what comes and goes
auth         who asks, what they may do        service      what requests share
schedule     when answers leave                jobs         questions that take long
monitoring   counts and the log                errors       what is said when it fails
page/        what a browser shows
"""

from __future__ import annotations
