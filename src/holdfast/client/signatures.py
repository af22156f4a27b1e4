"""Signatures: a question's own, as the method that asks it has it.

The questions are written down once, and asked by two clients. What `help` and an editor show of a
client's method is then the signature of `Holdout`'s.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["as_method"]


def as_method(question: Callable[..., Any], method: Callable[..., Any]) -> None:
    """Give a method the question's signature: with `self`, and the answer that it returns.

    >>> def ask(estimator: str, *, by: str | None = None) -> Asked[Answer]: ...
    >>> def method(self, *words, **more): ...
    >>> as_method(ask, method)
    >>> inspect.signature(method)
    <Signature (self, estimator: 'str', *, by: 'str | None' = None) -> 'Answer'>
    """
    own = inspect.signature(question)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    answer = str(own.return_annotation).removeprefix("Asked[").removesuffix("]")
    method.__signature__ = own.replace(  # type: ignore[attr-defined]  # inspect looks for it
        parameters=[itself, *own.parameters.values()], return_annotation=answer
    )
