"""Wire: questions as they travel, and what a server sends as the objects that a holdout gives."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import unquote

from holdfast.client.http import Call, Cancelled, NotAllowed, Reply, ServerFailed, new_key
from holdfast.errors import (
    Damaged,
    Doubtful,
    Exhausted,
    HoldfastError,
    Infeasible,
    InvalidInput,
    Unavailable,
    real_number,
)
from holdfast.protocols.answers import Answer, Corrected, Verdict
from holdfast.verbs import HERE_ONLY, REQUIRED, VERBS

if TYPE_CHECKING:
    from holdfast.engines.source import Progress
    from holdfast.holdout.answering import Price
    from holdfast.holdout.leaderboard import Standings
    from holdfast.holdout.scoring import Gate, Submission
    from holdfast.holdout.state import Status
    from holdfast.holdout.submissions import Pairs

__all__ = [
    "VERBS",
    "Asked",
    "Content",
    "JobStatus",
    "content_of",
    "data_of",
    "enter",
    "error_of",
    "gate",
    "httpx_is_there",
    "key_of",
    "question",
    "read_answer",
    "read_corrected",
    "read_gate",
    "read_job",
    "read_page",
    "read_price",
    "read_result",
    "read_standings",
    "read_status",
    "read_submission",
    "read_verdict",
    "score",
    "stays_here",
    "understood",
]


# Predictions on their way to a server: keyed by row id, checked, as the body of a call.


_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}


@dataclass(frozen=True)
class Content:
    """Bytes, and what they are."""

    data: bytes
    kind: str


def content_of(given: object, form: str | None = None) -> Content:
    """What `Holdout` takes as predictions by id, as bytes: a file or its content, a table, a map.

    >>> content_of({"a": 1, "b": 0})
    Content(data=b'{"a": 1, "b": 0}', kind='application/json')
    """
    from holdfast.holdout.submissions import form_of, is_keyed

    if form is not None and form not in _TYPES:
        raise InvalidInput("form", form, f"one of {', '.join(_TYPES)}")
    if isinstance(given, str | Path):
        data, found = _file(Path(given))
        return Content(data, _TYPES[form or found or form_of(data)])
    if isinstance(given, bytes | bytearray | memoryview):
        data = bytes(given)
        return Content(data, _TYPES[form or form_of(data)])
    if is_keyed(given):
        return _table(given) if hasattr(given, "columns") else _mapping(given)
    hint = (
        "A model runs where you are: predict there, and send {id: prediction, …}, a table with "
        "the ids and `prediction`, or a file of CSV, JSON or Parquet."
    )
    raise InvalidInput("predictions", type(given).__name__, "predictions by row id", hint)


def _file(path: Path) -> tuple[bytes, str | None]:
    if not path.is_file():
        raise InvalidInput("predictions", str(path), "in a file that exists")
    form = {".csv": "csv", ".json": "json", ".parquet": "parquet", ".pq": "parquet"}
    return path.read_bytes(), form.get(path.suffix.lower())


def _mapping(given: Any) -> Content:
    """A dictionary, or a Series with its index, as a JSON object."""
    pairs = _pairs(given, "")
    values = dict(zip(map(str, pairs.ids.to_pylist()), pairs.values.to_pylist(), strict=True))
    if len(values) < len(pairs):
        raise InvalidInput("predictions", "an id twice", "one for every id")
    try:
        text = json.dumps(values, allow_nan=False)
    except ValueError:
        raise InvalidInput("predictions", "numbers that are not finite", "finite numbers") from None
    return Content(text.encode(), _TYPES["json"])


def _table(given: Any) -> Content:
    """A table as Parquet, which keeps the types of its two columns."""
    import pyarrow as pa
    from pyarrow import parquet

    from holdfast.holdout.submissions import PREDICTION

    names = getattr(given, "column_names", None)
    others = [name for name in (given.columns if names is None else names) if name != PREDICTION]
    column = str(others[0]) if others else ""
    pairs = _pairs(given, column)  # says what is wrong with any other columns
    written = io.BytesIO()
    parquet.write_table(pa.table({column: pairs.ids, PREDICTION: pairs.values}), written)
    return Content(written.getvalue(), _TYPES["parquet"])


def _pairs(given: Mapping[Any, Any] | Any, column: str) -> Pairs:
    from holdfast.holdout.submissions import read_frame

    return read_frame(given, column)


# Replies: the data in what a server says, or the error that a holdout would have raised.


_Maker = Callable[[str, Mapping[str, Any], Call, str], HoldfastError]


def data_of(reply: Reply, call: Call, url: str) -> Any:
    """The data in a reply, or the error that it tells of."""
    try:
        data = json.loads(reply.body)
    except (ValueError, RecursionError):
        data = None
    if 200 <= reply.status < 300 and data is not None:
        return data
    told = data.get("error") if isinstance(data, dict) else None
    if isinstance(told, dict) and isinstance(told.get("message"), str):
        raise error_of(told, call, url)
    reason = f"gave a reply that is not Holdfast's, status {reply.status}."
    raise ServerFailed(url, reason, "Is the address that of a Holdfast server?")


def error_of(told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    """The exception that a holdout would have raised, with the server's words."""
    kind, message = told.get("kind"), _printable(str(told["message"]))
    make = _ERRORS.get(str(kind))
    if make is not None:
        return make(message, told, call, url)
    number = f" Its log says more about request {told['request']}." if "request" in told else ""
    return ServerFailed(url, f"has failed: {message}", f"Tell its custodian.{number}")


def _printable(text: str) -> str:
    """Without what would steer a terminal."""
    return "".join(each if each.isprintable() or each == "\n" else "�" for each in text)


E = TypeVar("E", bound=HoldfastError)


def _worded(error: E, message: str) -> E:
    """The error with the server's own message, which it would otherwise put together again."""
    error.args = (message,)
    return error


def _invalid(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    del url
    if "constraint" in told:
        return _again(Infeasible, message, told)
    name = str(told.get("parameter", "question"))
    allowed, hint = str(told.get("allowed", "as the server takes it")), str(told.get("hint", ""))
    sent = {**call.parameters, **(call.body or {}), "request": call.key}
    for value in (sent.get(name), *sent.values()):  # a parameter may go by another name there
        error = InvalidInput(name, value, allowed, hint)
        if str(error) == message:
            return error
    return _worded(InvalidInput(name, sent.get(name), allowed, hint), message)


def _doubtful(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    del call, url
    return _worded(Doubtful(str(told.get("parameter", "question")), message), message)


def _not_found(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    """Which part of the address it is that leads nowhere."""
    del told
    _, _, rest = call.path.partition("/holdouts/")
    names = [unquote(part) for part in rest.split("/")]
    if len(names) > 2:  # holdout, jobs, id
        return _worded(InvalidInput("job", names[2], "one that the server knows"), message)
    hint = f"{url}: {message}"
    return InvalidInput("holdout", names[0], "one that your token may see on this server", hint)


def _again(kind: type[E], message: str, told: Mapping[str, Any]) -> E:
    """The same error, made of the facts that were told of it."""
    facts = {name: _printable(str(told.get(name, ""))) for name in kind.fields}
    return _worded(kind(**facts), message)


def _exhausted(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    del call, url
    return _again(Exhausted, message, told)


def _unavailable(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    del call, url
    return _again(Unavailable, message, told)


def _damaged(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    del told, call, url  # what was found is for the custodian alone
    return _worded(Damaged("The holdout", "what was written", "something else", ""), message)


def _not_allowed(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    del call
    remedy = (
        "Give token=…, or set HOLDFAST_TOKEN; the custodian makes one: `holdfast token create`."
    )
    if told["kind"] == "forbidden":
        remedy = "Ask the custodian for a token with more rights."
    return NotAllowed(url, message, str(told.get("hint", remedy)))


def _cancelled(message: str, told: Mapping[str, Any], call: Call, url: str) -> HoldfastError:
    del told, url
    return Cancelled(call.path.rpartition("/")[2], message)


_ERRORS: dict[str, _Maker] = {
    "bad_question": _invalid,
    "cancelled": _cancelled,
    "conflict": _invalid,
    "damaged": _damaged,
    "doubtful": _doubtful,
    "exhausted": _exhausted,
    "forbidden": _not_allowed,
    "not_found": _not_found,
    "too_large": _invalid,
    "unauthorized": _not_allowed,
    "unavailable": _unavailable,
    "unsupported": _invalid,
}

T = TypeVar("T")
Result = Answer | Verdict | Corrected

_VERSION = "Does it run another version of Holdfast than this one?"


@dataclass(frozen=True)
class JobStatus:
    """A job at one moment: its state, how much of it is done, and its answer when there is one."""

    id: str
    verb: str
    state: str  # queued, running, done, failed or cancelled
    progress: float | None
    result: Result | None
    error: HoldfastError | None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("done", "failed", "cancelled")


def read_result(data: Mapping[str, Any]) -> Result:
    """An answer, a verdict or a corrected guess."""
    if data["type"] == "answer":
        return _made(Answer, data)
    if data["type"] == "verdict":
        return _made(Verdict, data)
    later = data["correction"]
    return Corrected(
        _made(Verdict, data["verdict"]), None if later is None else _made(Answer, later)
    )


def read_answer(data: Mapping[str, Any]) -> Answer:
    """An answer, and nothing else."""
    return _only(Answer, data)


def read_verdict(data: Mapping[str, Any]) -> Verdict:
    """A verdict, and nothing else."""
    return _only(Verdict, data)


def read_corrected(data: Mapping[str, Any]) -> Corrected:
    """A corrected guess, and nothing else."""
    return _only(Corrected, data)


def _only(kind: type[T], data: Mapping[str, Any]) -> T:
    result = read_result(data)
    if not isinstance(result, kind):
        raise TypeError(f"{type(result).__name__} in place of {kind.__name__}")
    return result


def read_gate(data: Mapping[str, Any]) -> Gate:
    """A verdict on a threshold."""
    from holdfast.holdout.scoring import Gate

    return _made(Gate, data, verdict=read_verdict(data))


def read_submission(data: Mapping[str, Any]) -> Submission:
    """A submission with its score, or with the verdict that it is no improvement."""
    from holdfast.holdout.scoring import Submission

    return _made(Submission, data, result=read_result(data))


def read_standings(data: Mapping[str, Any]) -> Standings:
    """A leaderboard."""
    from holdfast.holdout.leaderboard import Standings

    return Standings.from_dict(data)


def read_status(data: Mapping[str, Any], path: str) -> Status:
    """A holdout's status; its path is where this client finds it."""
    from holdfast.holdout.state import PartStatus, SetStatus, Status

    sets = tuple(
        _made(SetStatus, each, parts=tuple(_made(PartStatus, part) for part in each["parts"]))
        for each in data["sets"]
    )
    return _made(Status, data, sets=sets, path=path)


def read_price(data: Mapping[str, Any]) -> Price:
    """What a question would cost."""
    from holdfast.holdout.answering import Price
    from holdfast.holdout.doubts import Doubt

    grid = data["grid"]
    points = None if grid is None else (grid["low"], grid["high"], grid["points"])
    doubts = tuple(_made(Doubt, each) for each in data["doubts"])
    return _made(Price, data, grid=points, assumes=tuple(data["assumes"]), doubts=doubts)


def read_page(data: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int | None]:
    """Rows of the transcript, and after which row there may be more."""
    return list(data["rows"]), data["next"]


def read_job(data: Mapping[str, Any], call: Call, url: str) -> JobStatus:
    """A job's state."""
    result, error = data["result"], data["error"]
    return JobStatus(
        data["id"],
        data["verb"],
        data["state"],
        data["progress"],
        None if result is None else read_result(result),
        None if error is None else error_of(error, call, url),
    )


def understood(read: Callable[[], T], url: str) -> T:
    """What was read, or an error that says that the server speaks another language."""
    try:
        return read()
    except (AttributeError, LookupError, TypeError, ValueError) as wrong:
        if isinstance(wrong, HoldfastError):
            raise
        reason = f"gave a reply that this client cannot read ({wrong!r})."
        raise ServerFailed(url, reason, _VERSION) from None


def _made(kind: type[T], data: Mapping[str, Any], **made: Any) -> T:
    """A dataclass from its dictionary. JSON has no infinity: a number that is null was not finite.

    What is left of a budget can only have been without a bound; of other numbers nothing is known.
    """
    values = {}
    for each in fields(kind):  # type: ignore[arg-type]
        value = made[each.name] if each.name in made else data[each.name]
        if value is None and each.type == "float":
            value = math.inf if each.name == "budget_left" else math.nan
        values[each.name] = value
    return kind(**values)


# Questions on their way to a server: checked as a holdout checks them, and made ready to travel.
#
# These have the signatures of `Holdout`'s methods. What runs here, a function, a progress bar,
# cannot
# travel, and is refused with a word on what to do instead.


R = TypeVar("R")

_HOW = "Only SQL text travels to a server; this says how to run a Python function."
_WHY = {
    "by": "A server chooses the part of its plan that answers.",
    "features": "A model stays where it is; its predictions travel to a server.",
    "target": "On a server it is the custodian who has named the target.",
}
_KEY = re.compile(r"[!-~]{1,128}")


@dataclass(frozen=True)
class Asked(Generic[R]):
    """A question as it travels, its key, and how its answer is read.

    What is asked of predictions has parameters and content in place of a body.
    """

    verb: str
    body: dict[str, Any]
    key: str
    read: Callable[[Any], R]
    parameters: Mapping[str, str] = field(default_factory=dict)
    content: Content | None = None


def question(verb: str, *given: Any, **words: Any) -> Asked[Any]:
    """The question that a verb and its arguments are: those of `Holdout`'s method."""
    schema = VERBS.get(verb)
    if schema is None:
        raise InvalidInput("verb", verb, f"one of {', '.join(VERBS)}")
    bound = schema.signature().bind(*given, **words).arguments
    stays_here(**bound.pop("options", {}))
    key = key_of(bound.pop("request", None))
    stays_here(**{name: bound.pop(name) for name in HERE_ONLY if name in bound})
    body = {
        word.name: word.written(bound[word.name])
        for word in schema.travelling
        if bound.get(word.name, word.default) not in (None, word.default)
        or word.default is REQUIRED
    }
    return Asked(verb, body, key, _READ[schema.answer])


_READ: dict[str, Callable[[Any], Any]] = {
    "answer": read_answer,
    "verdict": read_verdict,
    "corrected": read_corrected,
}


def key_of(request: object) -> str:
    """The key that was given, or a new one."""
    if request is None:
        return new_key()
    if not isinstance(request, str) or not _KEY.fullmatch(request):
        raise InvalidInput("request", request, "1 to 128 ASCII characters without spaces")
    return request


def stays_here(**given: object) -> None:
    """Refuse what says how to evaluate, and cannot travel."""
    for name, value in given.items():
        if value is not None:
            why = HERE_ONLY.get(name, ("", _WHY.get(name, _HOW)))[1]
            raise InvalidInput(name, value, "left out here", why)


# Scores, gates and entries on their way to a server: predictions by row id, made ready to travel.
#
# These have the signatures of `Holdout`'s methods. A model stays where it is: its predictions
# travel.


def score(
    model_or_predictions: object,
    *,
    metric: str | Callable[..., float] = "accuracy",
    target: str | None = None,
    features: Sequence[str] | None = None,
    by: str | None = None,
    request: str | None = None,
    progress: Progress | None = None,
    **asked: Any,
) -> Asked[Answer]:
    """The score of predictions by row id on fresh data.

    On a server every score is an entry of the leaderboard, and needs a name: score(…, name="…").
    """
    name = asked.pop("name", None)
    if name is None:
        hint = "On a server every score is an entry of the leaderboard: score(…, name='…')."
        raise InvalidInput("name", name, "the name of the entry", hint)
    stays_here(target=target, features=features, by=by, progress=progress, **asked)
    parameters = {"name": str(name), "metric": _metric(metric)}
    content = content_of(model_or_predictions)
    return Asked("submissions", {}, key_of(request), read_answer, parameters, content)


def gate(
    model_or_predictions: object,
    *,
    metric: str | Callable[..., float] = "accuracy",
    at_least: float | None = None,
    at_most: float | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    form: str | None = None,
    by: str | None = None,
    request: str | None = None,
    progress: Progress | None = None,
) -> Asked[Gate]:
    """Whether a score reaches a threshold: one verification on one side.

    It is free if it does and the plan has gates of their own, and cheap if it is by looks.
    """
    from holdfast.holdout.scoring import side_of

    stays_here(target=target, features=features, by=by, progress=progress)
    side, threshold = side_of(at_least, at_most)
    name = side.replace(" ", "_")
    parameters = {"metric": _metric(metric), name: repr(real_number(name, threshold))}
    content = content_of(model_or_predictions, form)
    return Asked("gate", {}, key_of(request), read_gate, parameters, content)


def enter(
    predictions: object,
    *,
    name: str,
    metric: str = "accuracy",
    improve: bool = False,
    margin: float = 0.0,
    form: str | None = None,
    by: str | None = None,
    request: str | None = None,
    progress: Progress | None = None,
) -> Asked[Submission]:
    """Score predictions keyed by row id, and enter them on the leaderboard under a name.

    With `improve` the best score so far, and a margin, is verified first: if the submission is
    confirmed to be no better, that is all that is asked, and it gets no score of its own.
    """
    stays_here(by=by, progress=progress)
    parameters = {"name": str(name), "metric": _metric(metric)}
    if improve:
        parameters |= {"improve": "true", "margin": repr(real_number("margin", margin))}
    content = content_of(predictions, form)
    return Asked("submissions", {}, key_of(request), read_submission, parameters, content)


def _metric(metric: object) -> str:
    if isinstance(metric, str):
        return metric
    hint = "A function of your own runs where the holdout is: `holdfast serve --metrics FILE.py`."
    raise InvalidInput("metric", metric, "the name of a metric", hint)


# The library that a client needs and a holdout does not.


def httpx_is_there() -> None:
    """Raise an error that says what to install, if it is not."""
    if find_spec("httpx2") is None:
        raise HoldfastError("A client needs httpx2: pip install httpx2.")
