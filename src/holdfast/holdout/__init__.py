"""The one door to the data: charge, draw, record, answer, in that order."""

from __future__ import annotations

from holdfast.holdout.backups import Backup
from holdfast.holdout.check import Checked, Finding, check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.spec import BlockSet
from holdfast.holdout.status import PartStatus, SetStatus, Status

__all__ = [
    "Backup",
    "BlockSet",
    "Checked",
    "Finding",
    "Holdout",
    "PartStatus",
    "SetStatus",
    "Status",
    "check_holdout",
]
