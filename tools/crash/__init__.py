"""The crash campaign: processes killed, power cut, many writers at once; then look what is left.

    account     what is tested: a small account on a ledger, asked like a holdout
    writers     processes that ask and report what they were told
    kills       kill −9 at random moments, and where it struck
    disk        a disk that forgets what was not synced
    power       power cuts on such disks, and a control that must lose rows
    crowd       many processes on one budget, and many retries of one request
    speed       what a durable row costs
    told        a holdout whose answers are told, and what its rows must say

`python -m tools.crash --kills 2000 --cuts 2000` runs it all and writes a page.

    serving     servers that are killed and started again, and clients that ask on and on
    places      a holdout with its servers, and the database of its ledger
    promises    what clients were told, held against the ledger
    server      a server under load, killed: python -m tools.crash.server
    rush        many clients of several servers at once on one budget
    cluster     two servers and Postgres, killed: python -m tools.crash.cluster
"""

from __future__ import annotations
