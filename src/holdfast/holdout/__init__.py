"""Holdouts: data is reached through them alone. Charge, draw, record, answer, in that order."""

from __future__ import annotations

from holdfast.holdout.check import Checked, Finding, check_holdout
from holdfast.holdout.custody import Backup
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.spec import BlockSet
from holdfast.holdout.state import PartStatus, SetStatus, Status

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
