"""Power cuts: write to a forgetful disk, cut, read what is left with the standard SQLite.

The control is the same ledger with synchronous=NORMAL, which is what most programs that use a
write-ahead log choose. It must lose rows that were acknowledged, or the disk forgets too little.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import apsw

from holdfast.errors import HoldfastError
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.randomness import Entropy, system_entropy, uniform_index
from tools.crash.account import Account, Acknowledged
from tools.crash.disk import Disk, connector
from tools.crash.holdout_writer import ToldWriter

__all__ = ["Cut", "power_campaign"]

Powered = type[Account] | type[ToldWriter]
_FILE = "ledger.sqlite"
_BUDGET = 100_000
_MOST_CUTS = 5  # on one disk
_OPERATIONS = 400  # at most so many writes and syncs until the next cut


class _Relaxed(SqliteLedger):
    synchronous = 1  # NORMAL


@dataclass
class Cut:
    """What a campaign of power cuts did and found."""

    durable: bool
    subject: Powered = Account
    cuts: int = 0
    disks: int = 0
    acknowledged: int = 0
    during: Counter[str] = field(default_factory=Counter)
    lossy: int = 0  # cuts after which something acknowledged was missing
    lost: int = 0  # answers
    faults: list[str] = field(default_factory=list)  # anything else


def power_campaign(
    cuts: int,
    *,
    durable: bool = True,
    entropy: Entropy | None = None,
    subject: Powered = Account,
) -> Cut:
    """Cut the power so often, and collect what was lost and what is wrong.

    Of what is more than its ledger the rest is made before, on a disk that forgets nothing.
    """
    result = Cut(durable, subject)
    entropy = entropy or system_entropy()
    while result.cuts < cuts:
        with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as folder:
            _disk(Path(folder), min(_MOST_CUTS, cuts - result.cuts), result, entropy)
        result.disks += 1
    return result


def _disk(folder: Path, cuts: int, result: Cut, entropy: Entropy) -> None:
    """The life of one disk: write, cut, look, and go on with what is left."""
    ledgers = SqliteLedger if result.durable else _Relaxed
    files: dict[str, bytes] = {}
    if result.subject is ToldWriter:
        result.subject.create(folder, _BUDGET)
        files = {_FILE: (folder / result.subject.ledger_file).read_bytes()}
    seen: list[Acknowledged] = []
    for number in range(cuts):
        disk = Disk(files, entropy)
        here = folder / str(number)
        here.mkdir()
        (here / _FILE).touch()
        disk.left = 1 + uniform_index(_OPERATIONS if seen else _OPERATIONS // 4, entropy)
        result.during[_use(disk, here / _FILE, ledgers, seen, result.subject)] += 1
        result.cuts += 1
        files = disk.files
        if not _look(folder / f"{number}-left", files, seen, result):
            return  # a ledger that is not whole is not used again


def _use(
    disk: Disk,
    path: Path,
    ledgers: type[SqliteLedger],
    seen: list[Acknowledged],
    subject: Powered,
) -> str:
    """Ask until the power is cut; say during what that was."""
    doing = "opening"
    try:
        if _FILE in disk.names:
            ledger = ledgers.open(path, connect=connector(disk))
        else:
            doing = "creating"
            path.unlink()
            ledger = ledgers.create(path, "account", {"budget": _BUDGET}, connect=connector(disk))
            disk.sync_folder()  # `create` ends with this, on the real disk
        doing = "asking"
        account = subject.on(path.parents[1], ledger)
        while True:
            request = str(len(seen))
            question = sha256(request.encode()).hexdigest()
            seen.append(Acknowledged(request, question, account.ask(question, request)))
    except apsw.Error:
        if not disk.cut:
            raise
        disk.start_again()
    return doing


def _look(folder: Path, files: dict[str, bytes], seen: list[Acknowledged], result: Cut) -> bool:
    """Read what is left with the standard library; false if it cannot be gone on with."""
    subject = result.subject
    file = folder / subject.ledger_file
    if subject is ToldWriter:
        shutil.copytree(folder.parent / file.parent.name, file.parent)
    else:
        folder.mkdir()
    for name, data in files.items():
        (file.parent / name).write_bytes(data)
    if not seen and not _whole(file):
        return False  # cut during creation: nobody was told that there is a ledger
    try:
        kept = subject.kept(folder)
    except HoldfastError as wrong:
        result.faults.append(str(wrong))
        return False
    lost = [each for each in seen if each.answer not in kept]
    # What is left of a ledger that has lost rows is not what its witness has seen.
    faults = [] if lost else subject.faults(folder, _BUDGET, [])
    result.faults += faults
    if faults:
        return False
    result.acknowledged = result.acknowledged + len(seen)
    result.lossy += bool(lost)
    result.lost += len(lost)
    return not lost


def _whole(path: Path) -> bool:
    """Whether a ledger whose creation was cut off can be opened; an error must say so clearly."""
    try:
        SqliteLedger.open(path).close()
    except HoldfastError:
        return False
    return True
