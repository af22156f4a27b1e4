"""What a process that runs a user's function may not do: reach the parent or any other process,
have a socket, outlive the worker, take more memory than allowed, or change a file.

Landlock forbids files, TCP and signals by what they are about; a filter of system calls forbids
sockets of every kind, for there are many (UDP, Unix, netlink, …) and a function needs none.

This keeps accidents from doing harm. It is no wall against malice: a function runs as the user who
asks it, and may read what that user may read.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import struct
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from holdfast.engines.process import limit_memory

__all__ = ["confine"]

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

# Filters of system calls (seccomp): a program of Berkeley packet filters that sees every call.
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_LOAD, _AND, _SAME, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_NUMBER, _MACHINE, _FAMILY, _KIND = 0, 4, 16, 24  # where the call has these, little-endian
_X32 = 0x40000000  # calls of another form, from here on
_UNIX, _STREAM, _KIND_BITS = 1, 1, 0xF


@dataclass(frozen=True)
class _Calls:
    """The numbers of system calls on one kind of machine."""

    machine: int
    pair: int
    """socketpair: a stream between two ends of one's own is all right, event loops have one."""
    refused: tuple[int, ...]
    """socket, bind, connect; io_uring_setup, which makes sockets too; pidfd_getfd, which takes
    another's; and what keeps data for others: shmget, semget, msgget, mq_open, add_key,
    request_key, keyctl."""


_CALLS = {
    "x86_64": _Calls(
        machine=0xC000003E, pair=53, refused=(41, 49, 42, 425, 438, 29, 64, 68, 240, 248, 249, 250)
    ),
    "aarch64": _Calls(
        machine=0xC00000B7,
        pair=199,
        refused=(198, 200, 203, 425, 438, 194, 190, 186, 180, 217, 218, 219),
    ),
}


def adopt_orphans() -> None:
    """Let the orphans of the processes that this one starts come to it, to be ended."""
    _LIBRARY.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def confine(memory: int) -> None:
    """Confine this process, for good; `memory` in bytes, above what it has now."""
    os.closerange(CHANNEL + 1, 4096)
    _LIBRARY.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    limit_memory(memory)
    with contextlib.suppress(OSError):  # if the machine has no memory left, this goes first
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, b"1000")
        os.close(score)
    _LIBRARY.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)  # without it, neither of these may be had
    _forbid_reach()
    _forbid_sockets()


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
    _LIBRARY.syscall(_RESTRICT_SELF, rules, 0)
    os.close(rules)
    os.close(null)


def _forbid_sockets() -> None:
    """No socket can be had any more, on machines whose calls are listed: EPERM.

    Nor can anything be left with the kernel for other processes. Calls of another form than the
    machine's own (32 bits, x32) are refused altogether. It holds in all that is started from here.
    """
    calls = _CALLS.get(os.uname().machine)
    if calls is None or struct.calcsize("P") != 8:
        return
    program = _program(calls)
    steps = ctypes.create_string_buffer(program)
    place = struct.pack("HxxxxxxQ", len(program) // _STEP.size, ctypes.addressof(steps))
    _LIBRARY.prctl(_PR_SET_SECCOMP, _MODE_FILTER, place, 0, 0)


_STEP = struct.Struct("=HBBI")  # code, steps to leave out if so, and if not, the value


def _program(calls: _Calls) -> bytes:
    """The filter: the machine, then the number, then the arguments of socketpair."""
    allow, refuse = _STEP.pack(_RETURN, 0, 0, _ALLOW), _STEP.pack(_RETURN, 0, 0, _REFUSE)

    def load(place: int) -> bytes:
        return _STEP.pack(_LOAD, 0, 0, place)

    def unless(value: int, end: bytes) -> bytes:
        return _STEP.pack(_SAME, 1, 0, value) + end

    def refuse_if(code: int, value: int) -> bytes:
        return _STEP.pack(code, 0, 1, value) + refuse

    steps = [load(_MACHINE), unless(calls.machine, refuse)]
    steps += [load(_NUMBER), refuse_if(_AT_LEAST, _X32)]
    steps += [refuse_if(_SAME, number) for number in calls.refused]
    steps += [unless(calls.pair, allow), load(_FAMILY), unless(_UNIX, refuse)]
    steps += [load(_KIND), _STEP.pack(_AND, 0, 0, _KIND_BITS), unless(_STREAM, refuse), allow]
    return b"".join(steps)


_MODULES = ("builtins", "math", "numpy", "pandas", "polars", "statistics")
_CLASSES = (("pandas", "DataFrame"), ("pandas", "Series"), ("polars", "DataFrame"))


def same_randomness() -> None:
    """Set the global generators to one state: what they give then depends on the block alone."""
    np.random.seed(0)  # noqa: NPY002 – the user's function may draw from it
    generator = sys.modules.get("random")  # it need not be loaded, and is not used here
    if generator is not None:
        generator.seed(0)


class Traces:
    """What a block's evaluation leaves behind in its process, and the next one could meet.

    Blocks share a process because a process for each would cost more than most functions do. The
    function itself is unpickled for every block, and the common generators start in the same state.
    If any trace is found, the process ends and the next block gets a new one. What is not seen here
    is found by asking the first block again (see `worker.Runner`).
    """

    def __init__(self, modules: Iterable[str]) -> None:
        names = {*_MODULES, *modules}
        self._spaces: list[tuple[Mapping[str, Any], dict[str, Any]]] = []
        for name in sorted(names & set(sys.modules)):
            self._spaces.append((vars(sys.modules[name]), dict(vars(sys.modules[name]))))
        for name, kind in _CLASSES:
            if name in sys.modules:
                space = vars(getattr(sys.modules[name], kind))
                self._spaces.append((space, dict(space)))
        self._environment = dict(_environment())
        self._folder = os.getcwd()  # noqa: PTH109 – asked after every block, and Path is slow
        self._depth = sys.getrecursionlimit()

    def found(self) -> bool:
        """Whether anything is left behind; also if it cannot be told."""
        try:
            return (
                threading.active_count() > 1
                or _environment() != self._environment
                or sys.getrecursionlimit() != self._depth
                or os.getcwd() != self._folder  # noqa: PTH109
                or left_processes()
                or any(_changed(*pair) for pair in self._spaces)
            )
        except Exception:
            return True


def _environment() -> Mapping[Any, Any]:
    """The environment as it is held: to compare it decoded would take longer than many blocks."""
    held: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
    return held


def _changed(space: Mapping[str, Any], kept: dict[str, Any]) -> bool:
    """Whether a namespace has changed; a module that was imported into it since is no change."""
    if space == kept:
        return False
    new = {name: value for name, value in space.items() if name not in kept}
    if not all(isinstance(value, ModuleType) for value in new.values()):
        return True
    kept.update(new)
    return bool(space != kept)


def left_processes() -> bool:
    """Whether a process was started, and runs or has ended unnoticed."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
