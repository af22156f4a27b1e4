"""What every answer of a baseline is: not certified, and with no way to become so."""

from __future__ import annotations

from inspect import get_annotations
from typing import ClassVar, Literal

__all__ = ["Uncertified"]


class Uncertified:
    """Base of all answers in this folder: `certified` is False, always.

    It is a property without a setter: no argument, no assignment and no `dataclasses.replace`
    reaches it, and a subclass that redefines it is refused when it is defined. `statement` says
    in one sentence what the textbook proves and what nobody promises here.

    >>> class Answer(Uncertified):
    ...     statement = "an example"
    >>> Answer().certified
    False
    >>> Answer().certified = True
    Traceback (most recent call last):
    AttributeError: property 'certified' of 'Answer' object has no setter
    """

    __slots__ = ()

    statement: ClassVar[str] = "nothing is promised"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # An annotation alone would make a dataclass field, and with slots a new attribute.
        if "certified" in {*vars(cls), *get_annotations(cls)}:
            raise TypeError(f"{cls.__name__} redefines certified; no baseline can certify")

    @property
    def certified(self) -> Literal[False]:
        """False: Holdfast certifies no answer of a baseline."""
        return False
