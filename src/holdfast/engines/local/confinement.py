"""What a process that runs a user's function may not do: reach the parent or any other process,
connect to anything, outlive the worker, take more memory than allowed, or change a file.

This keeps accidents from doing harm. It is no wall against malice: a function runs as the user who
asks it, and may read what that user may read.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct

__all__ = ["CHANNEL", "adopt_orphans", "confine"]

CHANNEL = 3  # the one file beside the standard ones that stays open

_LIBRARY = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

# Landlock, Linux 5.13: numbers of its calls, and of the rights to change files.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_WRITE, _TRUNCATE = 1 << 1, 1 << 14
_CHANGES = _WRITE | sum(1 << right for right in range(4, 13))  # remove and make, of every kind
_TRUNCATE_VERSION = 3
_NETWORK_VERSION, _SCOPE_VERSION = 4, 6
_BIND, _CONNECT = 1 << 0, 1 << 1  # of TCP
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1  # to processes outside


def adopt_orphans() -> None:
    """Let the orphans of the processes that this one starts come to it, to be ended."""
    _LIBRARY.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def confine(memory: int) -> None:
    """Confine this process, for good; `memory` in bytes, above what it has now."""
    os.closerange(CHANNEL + 1, 4096)
    _LIBRARY.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _limit_memory(memory)
    with contextlib.suppress(OSError):  # if the machine has no memory left, this goes first
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, b"1000")
        os.close(score)
    _forbid_reach()


def _limit_memory(memory: int) -> None:
    file = os.open("/proc/self/statm", os.O_RDONLY)
    pages = int(os.read(file, 100).split()[0])
    os.close(file)
    limit = pages * resource.getpagesize() + memory
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _forbid_reach() -> None:
    """No file can be written, cut, made or removed any more, where the kernel has Landlock.

    From Linux 6.7 on no TCP connection can be made either, and from 6.12 on no signal be sent, to
    a process that was not started from here: not to the worker, and not to those of a cluster.
    Elsewhere nothing can be added to a file (RLIMIT_FSIZE is 0), but one could be removed.
    """
    version = _LIBRARY.syscall(_CREATE_RULESET, None, 0, _VERSION)
    if version < 1:
        return
    cut = _TRUNCATE if version >= _TRUNCATE_VERSION else 0
    rights = struct.pack("=Q", _CHANGES | cut)  # what is named here, and not allowed below
    rights += struct.pack("=Q", _BIND | _CONNECT) if version >= _NETWORK_VERSION else b""
    rights += struct.pack("=Q", _ABSTRACT_SOCKETS | _SIGNALS) if version >= _SCOPE_VERSION else b""
    rules = _LIBRARY.syscall(_CREATE_RULESET, rights, len(rights), 0)
    if rules < 0:
        return
    null = os.open(os.devnull, os.O_RDWR)
    _LIBRARY.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", _WRITE | cut, null), 0)
    _LIBRARY.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _LIBRARY.syscall(_RESTRICT_SELF, rules, 0)
    os.close(rules)
    os.close(null)
