"""The verbs: what can be asked of a holdout, and with which words.

One table feeds them all. `Holdout` has a method for every verb (a test holds its signature to this
table), the client's methods, the models of HTTP, the commands and the reference are made from it.
To add a word: a line in `WORDS`, its name in the verbs that take it, and the method's argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.errors import InvalidInput, real_number
from holdfast.grids import Grid, grid, parse_grid

__all__ = ["HERE_ONLY", "REQUIRED", "VERBS", "WORDS", "VerbSchema", "Word"]

REQUIRED = inspect.Parameter.empty
Kind = Literal["text", "part", "claim", "number", "distance", "flag", "grid", "pair"]


@dataclass(frozen=True)
class Word:
    """One word of a question: its name, what it is, and what it says."""

    name: str
    kind: Kind
    help: str
    annotation: str
    default: Any = None

    def parsed(self, text: Any) -> Any:
        """What was typed on a command line."""
        if text is None or self.kind not in ("grid", "pair"):
            return text
        if self.kind == "grid":
            return parse_grid(text)
        try:
            low, high = map(float, text.split(":"))
        except ValueError:
            raise InvalidInput(f"--{self.name}", text, "LOW:HIGH, two numbers") from None
        return low, high

    def written(self, value: Any) -> Any:
        """The value as it travels, checked as a holdout would check it."""
        if self.kind == "grid":
            if not isinstance(value, Grid):
                hint = "Make one: holdfast.grid(0, 1, step=0.05)."
                raise InvalidInput(self.name, value, "a grid", hint)
            return value.to_json()
        if self.kind in ("number", "distance"):
            return real_number(self.name, value, 0 if self.kind == "distance" else -_INFINITE)
        if self.kind == "pair":
            try:
                low, high = value
            except (TypeError, ValueError):
                allowed = "two numbers, (low, high) with low < high"
                raise InvalidInput(self.name, value, allowed) from None
            return [real_number(self.name, low), real_number(self.name, high)]
        if self.kind == "flag":
            return bool(value)
        if not isinstance(value, str):
            hint = "Only SQL text travels to a server; a Python function runs where the holdout is."
            raise InvalidInput(
                self.name, value, "SQL text" if self.kind == "text" else "text", hint
            )
        return value

    def read(self, value: Any) -> Any:
        """The value that travelled."""
        if self.kind == "pair":
            low, high = value
            return low, high
        if self.kind != "grid":
            return value
        if isinstance(value, str):
            return parse_grid(value)
        return grid(value) if isinstance(value, list) else Grid.from_json(value)


_INFINITE = float("inf")
_AGGREGATE = "An SQL aggregate, or FILE.py:FUNCTION of one block."
_ROW = "SQL of a row: true or false, or a number."

WORDS: Mapping[str, Word] = {
    word.name: word
    for word in (
        Word("estimator", "text", _AGGREGATE, "Estimator", REQUIRED),
        Word("term", "text", _ROW, "Estimator", REQUIRED),
        Word("guess", "number", "The value that is asked about.", "float", REQUIRED),
        Word("where", "text", "SQL condition on rows.", "str | None"),
        Word("grid", "grid", "Possible answers: LOW:HIGH:STEP, or 1,2,5,10.", "Grid | None"),
        Word(
            "range",
            "pair",
            "LOW:HIGH that the term lies in, if not in 0:1.",
            "tuple[float, float] | None",
        ),
        Word(
            "tolerance",
            "distance",
            "How near is near, where the plan has no guesses.",
            "float | None",
        ),
        Word("claim", "claim", "equals, 'at least' or 'at most'.", "Claim", "equals"),
        Word("by", "part", "The part of the plan to ask, where it has several.", "str | None"),
        Word(
            "anyway",
            "flag",
            "Ask even where what is public calls the question a slip.",
            "bool",
            False,
        ),
    )
}

HERE_ONLY: Mapping[str, tuple[str, str]] = {
    "shape": (
        "Shape | None",
        "Only SQL text travels to a server, which finds its shape by itself.",
    ),
    "columns": (
        "Sequence[str] | None",
        "Only SQL text travels to a server; this says how to run a Python function.",
    ),
    "request": ("str | None", ""),
    "progress": (
        "Progress | None",
        "Submit the question as a job: client.submit(…).wait(progress=…).",
    ),
}
"""What stays with a holdout in Python, and why; `request` is a header."""


@dataclass(frozen=True)
class VerbSchema:
    """A verb: what it says, how an answer to it is called, and its words in order.

    `words` may be given by name alone, `here` are those that only Python has.
    """

    name: str
    help: str
    answer: Literal["answer", "verdict", "corrected"]
    subject: str
    words: tuple[str, ...]
    here: tuple[str, ...] = ()
    options: bool = True
    more: str = ""

    @property
    def required(self) -> tuple[str, ...]:
        """The words that must be given, the subject first."""
        needed = (name for name in self.words if WORDS[name].default is REQUIRED)
        return (self.subject, *needed)

    @property
    def travelling(self) -> tuple[Word, ...]:
        """The words that a server knows."""
        return tuple(WORDS[name] for name in (self.subject, *self.words))

    def signature(self) -> inspect.Signature:
        """That of `Holdout`'s method, less `self`."""
        by_name, either = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [
            inspect.Parameter(name, either, annotation=WORDS[name].annotation)
            for name in self.required
        ]
        for name in _ORDER[self.name]:
            here = HERE_ONLY.get(name)
            kind = WORDS[name].annotation if here is None else here[0]
            default = WORDS[name].default if here is None else None
            # A term's filter may be a function, like the term itself.
            kind = "object" if (self.name, name) == ("mean", "where") else kind
            parameters.append(inspect.Parameter(name, by_name, default=default, annotation=kind))
        if self.options:
            rest = inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD, annotation="Any")
            parameters.append(rest)
        return inspect.Signature(parameters, return_annotation=self.answer.capitalize())


_ASKED = ("where", "by", "anyway")
VERBS: Mapping[str, VerbSchema] = {
    verb.name: verb
    for verb in (
        VerbSchema(
            "ask",
            "An estimator's value on fresh data.",
            "answer",
            "estimator",
            ("where", "grid", "by", "anyway"),
            ("shape",),
            more='holdfast ask flights.holdfast "avg(arr_delay)" --where "carrier = \'UA\'" '
            "--grid -20:60:2",
        ),
        VerbSchema(
            "interval",
            "An interval that encloses the median of what the estimator gives on fresh blocks.",
            "answer",
            "estimator",
            ("where", "grid", "by", "anyway"),
        ),
        VerbSchema(
            "mean",
            "The mean of a term, with its error bar where none filters.",
            "answer",
            "term",
            ("where", "range", "grid", "by", "anyway"),
            ("columns",),
            options=False,
            more='holdfast mean flights.holdfast "arr_delay > 60"\n'
            'holdfast mean flights.holdfast "arr_delay - dep_delay" --range -120:120',
        ),
        VerbSchema(
            "verify",
            "Whether a guess is compatible with fresh data: compatible, not compatible, cannot "
            "tell.",
            "verdict",
            "estimator",
            ("guess", "where", "tolerance", "claim", "by", "anyway"),
            more='"Compatible" is no confirmation: with an open part, the range says which other '
            "guesses are.",
        ),
        VerbSchema(
            "correct",
            "Whether a guess is compatible with fresh data, and an answer if it is not.",
            "corrected",
            "estimator",
            ("guess", "where", "grid", "by", "anyway"),
            ("shape",),
        ),
    )
}
_LAST = ("by", "anyway", "request", "progress")
_ORDER = {  # of the arguments that `Holdout`'s methods take by name
    "ask": ("grid", "where", "shape", *_LAST),
    "interval": ("grid", "where", *_LAST),
    "mean": ("where", "range", "grid", "columns", *_LAST),
    "verify": ("tolerance", "claim", "where", *_LAST),
    "correct": ("grid", "where", "shape", *_LAST),
}
