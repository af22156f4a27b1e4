"""How often a plan fails under attack, and how far the best attack is from its certificate.

subject     what is audited: a promise, its coin, its blocks
analysts    who attacks
sessions    conversations that are played, and what came of them
breaking    sizes below the certified one, and where the promise stops breaking
protocols   the attacks on all other protocols
result      what was found
words       the same as a table
run         all of it
"""

from __future__ import annotations

from holdfast_lab.audit.result import Audit, AuditRow, Point
from holdfast_lab.audit.run import audit, audit_subject
from holdfast_lab.audit.sessions import Subject, planned, subject_of

__all__ = [
    "Audit",
    "AuditRow",
    "Point",
    "Subject",
    "audit",
    "audit_subject",
    "planned",
    "subject_of",
]
