"""The verbs: what can be asked of a holdout, and with which words.

One table feeds them all. `Holdout` has a method for every verb (a test holds its signature to this
table), the client's methods, the models and routes of HTTP, the commands and the reference are made
from it. To add a word: a line in `WORDS`, its name in the verbs that take it, and the method's
argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from holdfast.errors import InvalidInput, real_number
from holdfast.grids import Grid, grid, parse_grid

__all__ = ["REQUIRED", "SCORES", "TOP", "VERBS", "WORDS", "VerbSchema", "Word"]

REQUIRED = inspect.Parameter.empty
Kind = Literal[
    "text",
    "part",
    "claim",
    "number",
    "distance",
    "flag",
    "grid",
    "pair",
    "metric",
    "name",
    "numbers",
    "predictions",
    "candidates",
    "here",
]


@dataclass(frozen=True)
class Word:
    """One word of a question: its name, what it is, and what it says.

    A word that is only `here` stays with a holdout in Python; `help` says why.
    """

    name: str
    kind: Kind
    help: str
    annotation: str
    default: Any = None

    def parsed(self, text: Any) -> Any:
        """What was typed on a command line."""
        if text is None or self.kind not in ("grid", "pair", "numbers"):
            return text
        if self.kind == "grid":
            return parse_grid(text)
        if self.kind == "numbers":
            return self.read(text)
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
        if self.kind == "numbers":
            known = ("" if each is None else repr(real_number("guess", each)) for each in value)
            return ",".join(known)
        if self.kind == "flag":
            return bool(value)
        if not isinstance(value, str):
            raise InvalidInput(self.name, value, *_TEXTS.get(self.kind, ("text", _SQL)))
        return value

    def read(self, value: Any) -> Any:
        """The value that travelled."""
        if self.kind == "pair":
            low, high = value
            return low, high
        if self.kind == "numbers":
            try:
                return [float(each) if each.strip() else None for each in value.split(",")]
            except ValueError:
                allowed = "numbers with commas between them, empty where there is none"
                raise InvalidInput(self.name, value, allowed) from None
        if self.kind != "grid":
            return value
        if isinstance(value, str):
            return parse_grid(value)
        return grid(value) if isinstance(value, list) else Grid.from_json(value)


_INFINITE = float("inf")
_SQL = "Only SQL text travels to a server; a Python function runs where the holdout is."
_METRIC = "A function of your own runs where the holdout is: `holdfast serve --metrics FILE.py`."
_TEXTS = {
    "text": ("SQL text", _SQL),
    "metric": ("the name of a metric", _METRIC),
    "name": ("text", ""),
}
_AGGREGATE = "An SQL aggregate, or FILE.py:FUNCTION of one block."
_ROW = "SQL of a row: true or false, or a number."
_FUNCTION = "Only SQL text travels to a server; this says how to run a Python function."
_MODEL = "A model stays where it is; its predictions travel to a server."

WORDS: Mapping[str, Word] = {
    word.name: word
    for word in (
        Word("estimator", "text", _AGGREGATE, "Estimator"),
        Word("term", "text", _ROW, "Estimator"),
        Word("guess", "number", "The value that you expect, or ask about.", "float | None"),
        Word(
            "guess_se",
            "distance",
            "The standard error of the guess, if you know it.",
            "float | None",
        ),
        Word("precise", "flag", "Tell more, for a narrower bar.", "bool", False),
        Word(
            "max_level",
            "distance",
            "Refuse, free, if others have asked meanwhile and the level is above this.",
            "float | None",
        ),
        Word("where", "text", "SQL condition on rows.", "str | None"),
        Word("grid", "grid", "Possible answers: LOW:HIGH:STEP, or 1,2,5,10.", "Grid | None"),
        Word(
            "range",
            "pair",
            "LOW:HIGH that the term lies in, if not in 0:1.",
            "tuple[float, float] | None",
        ),
        Word("tolerance", "distance", "How near is near.", "float | None"),
        Word("claim", "claim", "equals, 'at least' or 'at most'.", "Claim", "equals"),
        Word(
            "protocol", "part", "Which protocol of the plan answers, if several can.", "str | None"
        ),
        Word(
            "anyway",
            "flag",
            "Ask even where what is public calls the question a slip.",
            "bool",
            False,
        ),
        # Of scores.
        Word("model_or_predictions", "predictions", "Predictions by row id.", "object"),
        Word("predictions", "predictions", "Predictions by row id.", "object"),
        Word("against", "predictions", "Those that they are compared with.", "object"),
        Word("better_than", "predictions", "Those that must be beaten.", "object"),
        Word(
            "candidates",
            "candidates",
            "Two or more of them.",
            "Sequence[object] | Mapping[str, object]",
        ),
        Word("name", "name", "Name of the entry.", "str"),
        Word(
            "metric",
            "metric",
            "The name of a metric.",
            "Chosen",
            "accuracy",
        ),
        Word("at_least", "number", "The score must reach this.", "float | None"),
        Word("at_most", "number", "The score must not pass this.", "float | None"),
        Word(
            "margin",
            "distance",
            "By how much it must be better, for a verdict: 0 for by anything.",
            "float | None",
        ),
        Word(
            "guesses",
            "numbers",
            "What you expect of each, with commas between; empty where you do not know.",
            "Sequence[float | None] | None",
        ),
        # What stays here.
        Word(
            "shape",
            "here",
            "Only SQL text travels to a server, which finds its shape by itself.",
            "Shape | None",
        ),
        Word("columns", "here", _FUNCTION, "Sequence[str] | None"),
        Word("features", "here", _MODEL, "Sequence[str] | None"),
        Word(
            "target",
            "here",
            "On a server it is the custodian who has named the target.",
            "str | None",
        ),
        # These travel in a way of their own: with the predictions, and as a header.
        Word("names", "here", "", "Sequence[str] | None"),
        Word("form", "here", "", "str | None"),
        Word("request", "here", "", "str | None"),
        Word(
            "progress",
            "here",
            "Submit the question as a job: client.submit(…).wait(progress=…).",
            "Progress | None",
        ),
    )
}


@dataclass(frozen=True)
class VerbSchema:
    """A verb: what it says, what it returns, the words that must be given, and all others in order.

    `options`: what the rest is called, where only Python has it.
    """

    name: str
    help: str
    answer: str
    first: tuple[str, ...]
    others: tuple[str, ...]
    options: str | None = None
    more: str = ""

    @property
    def subject(self) -> str:
        """What is asked about."""
        return self.first[0]

    @property
    def words(self) -> tuple[str, ...]:
        """The names of the words that a server knows, but for the subject."""
        return tuple(word.name for word in self.travelling[1:])

    @property
    def travelling(self) -> tuple[Word, ...]:
        """The words that a server knows, the subject first."""
        known = map(self.word, (*self.first, *self.others))
        return tuple(word for word in known if word.kind != "here")

    def word(self, name: str) -> Word:
        """A word as this verb has it."""
        word = WORDS[name]
        if name in self.first:
            needed = word.annotation.removesuffix(" | None")
            return replace(word, default=REQUIRED, annotation=needed)
        return replace(word, **_APART.get((self.name, name), {}))

    def signature(self) -> inspect.Signature:
        """That of `Holdout`'s method, less `self`."""
        by_name, either = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [
            inspect.Parameter(
                name,
                either if name in self.first else by_name,
                default=word.default,
                annotation=word.annotation,
            )
            for name, word in ((each, self.word(each)) for each in (*self.first, *self.others))
        ]
        if self.options is not None:
            rest = inspect.Parameter(self.options, inspect.Parameter.VAR_KEYWORD, annotation="Any")
            parameters.append(rest)
        return inspect.Signature(parameters, return_annotation=self.answer)


_APART: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("mean", "where"): {"annotation": "object"},  # it may be a function, like the term itself
    ("gate", "better_than"): {"default": None},
    ("gate", "margin"): {"annotation": "float", "default": 0.0},
    ("gate", "tolerance"): {"annotation": "float", "default": 0.0},
    ("compare", "names"): {"annotation": "Sequence[str]", "default": ("B", "A")},
    ("enter", "protocol"): {"kind": "here", "help": "A server chooses the part that answers."},
}
_LAST = ("protocol", "anyway", "request", "progress")
_HOW = ("target", "features", "form", "max_level")

VERBS: Mapping[str, VerbSchema] = {
    verb.name: verb
    for verb in (
        VerbSchema(
            "ask",
            "An estimator's value on fresh data.",
            "Answer",
            ("estimator",),
            ("grid", "where", "shape", "guess", "max_level", *_LAST),
            "options",
            'holdfast ask flights.holdfast "avg(arr_delay)" --where "carrier = \'UA\'" '
            "--grid -20:60:2",
        ),
        VerbSchema(
            "interval",
            "An interval that encloses the median of what the estimator gives on fresh blocks.",
            "Answer",
            ("estimator",),
            ("grid", "where", "guess", "max_level", *_LAST),
            "options",
        ),
        VerbSchema(
            "mean",
            "The mean of a term, with its error bar (with a plan: where no condition filters).",
            "Answer",
            ("term",),
            (
                *("where", "range", "grid", "columns", "guess", "guess_se", "precise"),
                *("max_level", *_LAST),
            ),
            more='holdfast mean flights.holdfast "arr_delay > 60"\n\n'
            'holdfast mean flights.holdfast "arr_delay - dep_delay" --range -120:120',
        ),
        VerbSchema(
            "verify",
            "Whether a guess is compatible with fresh data: compatible, not compatible, cannot "
            "tell.",
            "Verdict",
            ("estimator", "guess"),
            ("tolerance", "claim", "where", "max_level", *_LAST),
            "options",
            '"Compatible" is no confirmation: with an open part, the range says which other '
            "guesses are.",
        ),
        VerbSchema(
            "correct",
            "Whether a guess is compatible with fresh data, and an answer if it is not.",
            "Corrected",
            ("estimator", "guess"),
            ("grid", "where", "shape", *_LAST),
            "options",
        ),
    )
}
"""Questions in SQL, or about a function."""

SCORES: Mapping[str, VerbSchema] = {
    verb.name: verb
    for verb in (
        VerbSchema(
            "score",
            "The score of predictions, with its bar.",
            "Answer | Told",
            ("model_or_predictions",),
            ("metric", "guess", "guess_se", "precise", *_HOW, *_LAST),
            "asked",
        ),
        VerbSchema(
            "compare",
            "Whether predictions are better than others, on the same rows.",
            "Told",
            ("model_or_predictions", "against"),
            (
                *("metric", "margin", "guess", "guess_se", "precise", "names"),
                *(*_HOW, "request", "progress"),
            ),
        ),
        VerbSchema(
            "gate",
            "Whether a score is proved to reach a threshold (pass), to miss it (fail), or neither.",
            "Told",
            ("model_or_predictions",),
            (
                *("metric", "at_least", "at_most", "better_than", "margin", "tolerance"),
                *("guess", "guess_se", *_HOW, "request", "progress"),
            ),
        ),
        VerbSchema(
            "best",
            "Which of several has the best score on the sealed rows; `precise`: with its bar.",
            "Told",
            ("candidates",),
            ("metric", "names", "precise", *_HOW, "request", "progress"),
        ),
        VerbSchema(
            "scores",
            "The scores of several, all fixed before any of them is answered.",
            "Told",
            ("candidates",),
            ("metric", "guesses", "names", "precise", *_HOW, "request", "progress"),
        ),
        VerbSchema(
            "enter",
            "Score predictions, and enter them on the leaderboard under a name.",
            "Submission",
            ("predictions", "name"),
            (*("metric", "guess", "guess_se", "precise", "form", "max_level", *_LAST),),
        ),
    )
}
"""Questions about models and their predictions by row id."""

TOP = 10
"""How many entries of a leaderboard are compared with the next one, as `Holdout` has it."""
