"""The server: analysts ask over HTTP, through the same door as everywhere.

settings     how it is run                     run          the processes that listen
app          all of it put together            middleware   every request, first
routes       the addresses                     schemas      what comes and goes
auth         who asks, what they may do        service      the way to the holdout
scheduler    many questions in one thread      jobs         questions that take long
monitoring   counts and the log                errors       what is said when it fails
methods, widths  the planner's comparison      page/        what a browser shows
"""

from __future__ import annotations
