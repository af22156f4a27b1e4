"""Identity: the hash that says whether two Python functions ask the same question.

    encoder     one pass over everything that a function's value can depend on, into one sha256
    data        plain values, containers, arrays, frames
    functions   code, defaults, closures, the globals that the code names; classes
    modules     which modules have a version, and which are the user's own files

Two functions have the same identity only if what travels to a worker process is the same: code
(not its file name or line numbers), constants, defaults, closure, the values of the global names
that it uses, the versions of the packages that those come from, and Python's version. Whatever
cannot be read that way has no identity: each time it is asked it is a new question, and is charged.
"""

from __future__ import annotations

from holdfast.engines.local.identity.encoder import Encoder, Identity, Unhashable, identify

__all__ = ["Encoder", "Identity", "Unhashable", "identify"]
