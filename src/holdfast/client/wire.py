"""Wire: questions as they travel, and what a server sends as the objects that a holdout gives."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, unquote

from holdfast.client.http import Cancelled, HttpRequest, NotAllowed, Reply, ServerFailed, new_key
from holdfast.errors import (
    Damaged,
    Doubtful,
    Exhausted,
    HoldfastError,
    Infeasible,
    InvalidInput,
    Unavailable,
)
from holdfast.protocols.answers import Answer, Corrected, Result, Told, Verdict
from holdfast.verbs import SCORES, VERBS, VerbSchema

if TYPE_CHECKING:
    from holdfast.holdout.answering import Price
    from holdfast.holdout.leaderboard import Standings
    from holdfast.holdout.scoring import Submission
    from holdfast.holdout.state import Status
    from holdfast.holdout.submissions import Pairs

__all__ = [
    "VERBS",
    "ClientQuestion",
    "Content",
    "JobStatus",
    "content_of",
    "contents_of",
    "data_of",
    "error_of",
    "httpx_is_there",
    "key_of",
    "question",
    "read_job",
    "read_page",
    "read_price",
    "read_result",
    "read_standings",
    "read_status",
    "read_submission",
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


def contents_of(given: Mapping[str, object], form: str | None = None) -> Content:
    """Several predictions by id as one body: a part for each, by its name."""
    boundary = new_key()
    lines: list[bytes] = []
    for name, each in given.items():
        content = content_of(each, form)
        shown = quote(name, safe=" ")
        lines += [f"--{boundary}".encode()]
        lines += [f'Content-Disposition: form-data; name="{shown}"'.encode()]
        lines += [f"Content-Type: {content.kind}".encode(), b"", content.data]
    data = b"\r\n".join([*lines, f"--{boundary}--".encode(), b""])
    return Content(data, f"multipart/mixed; boundary={boundary}")


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
    """A dictionary, or a Series with its index."""
    content = _object(_pairs(given, ""))
    if content is None:
        raise InvalidInput("predictions", "numbers that are not finite", "finite numbers")
    return content


def _table(given: Any) -> Content:
    """A table: as a JSON object, for which a server needs no process of its own, or as Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    from holdfast.holdout.submissions import PREDICTION

    names = getattr(given, "column_names", None)
    others = [name for name in (given.columns if names is None else names) if name != PREDICTION]
    column = str(others[0]) if others else ""
    pairs = _pairs(given, column)  # says what is wrong with any other columns
    content = _object(pairs)
    if content is not None:
        return content
    written = io.BytesIO()
    parquet.write_table(pa.table({column: pairs.ids, PREDICTION: pairs.values}), written)
    return Content(written.getvalue(), _TYPES["parquet"])


def _object(pairs: Pairs) -> Content | None:
    """Ids and predictions as a JSON object, also ids that come twice; None if JSON has none."""
    try:
        items = [
            f"{json.dumps(str(each))}: {json.dumps(value, allow_nan=False)}"
            for each, value in zip(pairs.ids.to_pylist(), pairs.values.to_pylist(), strict=True)
        ]
    except ValueError:
        return None
    return Content(f"{{{', '.join(items)}}}".encode(), _TYPES["json"])


def _pairs(given: Mapping[Any, Any] | Any, column: str) -> Pairs:
    from holdfast.holdout.submissions import read_frame

    return read_frame(given, column)


# Replies: the data in what a server says, or the error that a holdout would have raised.


_Maker = Callable[[str, Mapping[str, Any], HttpRequest, str], HoldfastError]


def data_of(reply: Reply, call: HttpRequest, url: str) -> Any:
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


def error_of(told: Mapping[str, Any], call: HttpRequest, url: str) -> HoldfastError:
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


def _invalid(message: str, told: Mapping[str, Any], call: HttpRequest, url: str) -> HoldfastError:
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


def _doubtful(message: str, told: Mapping[str, Any], call: HttpRequest, url: str) -> HoldfastError:
    del call, url
    return _worded(Doubtful(str(told.get("parameter", "question")), message), message)


def _not_found(message: str, told: Mapping[str, Any], call: HttpRequest, url: str) -> HoldfastError:
    """Which part of the address it is that leads nowhere."""
    del told
    _, _, rest = call.path.partition("/holdouts/")
    if not rest:  # the list of all: what the address says is no server's
        allowed = "the address of a holdout, which ends in /holdouts/NAME"
        return InvalidInput("url", url, allowed)
    names = [unquote(part) for part in rest.split("/")]
    if len(names) > 2:  # holdout, jobs, id
        return _worded(InvalidInput("job", names[2], "one that the server knows"), message)
    hint = f"{url}: {message}"
    return InvalidInput("holdout", names[0], "one that your token may see on this server", hint)


def _again(kind: type[E], message: str, told: Mapping[str, Any]) -> E:
    """The same error, made of the facts that were told of it."""
    facts = {name: _printable(str(told.get(name, ""))) for name in kind.fields}
    return _worded(kind(**facts), message)


def _exhausted(message: str, told: Mapping[str, Any], call: HttpRequest, url: str) -> HoldfastError:
    del call, url
    return _again(Exhausted, message, told)


def _unavailable(
    message: str, told: Mapping[str, Any], call: HttpRequest, url: str
) -> HoldfastError:
    del call, url
    return _again(Unavailable, message, told)


def _damaged(message: str, told: Mapping[str, Any], call: HttpRequest, url: str) -> HoldfastError:
    del told, call, url  # what was found is for the custodian alone
    return _worded(Damaged("The holdout", "what was written", "something else", ""), message)


def _not_allowed(
    message: str, told: Mapping[str, Any], call: HttpRequest, url: str
) -> HoldfastError:
    del call
    remedy = "Set HOLDFAST_TOKEN (the custodian makes one: `holdfast token create`)."
    if told["kind"] == "forbidden":
        remedy = "Ask the custodian for a token with more rights."
    return NotAllowed(url, message, str(told.get("hint", remedy)))


def _cancelled(message: str, told: Mapping[str, Any], call: HttpRequest, url: str) -> HoldfastError:
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
    """An answer, a verdict, a corrected guess, or what was told."""
    if data["type"] == "answer":
        return _made(Answer, data)
    if data["type"] == "verdict":
        return _made(Verdict, data)
    if data["type"] == "told":
        return _read_told(data)
    later = data["correction"]
    return Corrected(
        _made(Verdict, data["verdict"]), None if later is None else _made(Answer, later)
    )


def _read_told(data: Mapping[str, Any]) -> Told:
    many = {name: tuple(data[name]) for name in ("letter", "names", "assumes")}
    return _made(Told, data, **many, batch=tuple(_read_told(each) for each in data["batch"]))


def _reader(*kinds: type[Any]) -> Callable[[Any], Any]:
    """What reads results of these kinds, and nothing else."""

    def read(data: Mapping[str, Any]) -> Any:
        result = read_result(data)
        if not isinstance(result, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"{type(result).__name__} in place of {wanted}")
        return result

    return read


def read_submission(data: Mapping[str, Any]) -> Submission:
    """A submission with its score."""
    from holdfast.holdout.scoring import Submission

    return _made(Submission, data, result=_reader(Answer, Told)(data))


def read_standings(data: Mapping[str, Any]) -> Standings:
    """A leaderboard, and its first entries compared if that was asked for."""
    from holdfast.holdout.leaderboard import Neighbours, Standings

    def read(each: Mapping[str, Any]) -> Neighbours:
        result, price = each["result"], each["price"]
        told = None if result is None else _read_told(result)
        offered = None if price is None else read_price(price)
        return Neighbours(tuple(each["names"]), each["same"], told, offered, each["reason"])

    pairs = data.get("neighbours")
    return Standings.from_dict(data, None if pairs is None else [*map(read, pairs)])


def read_status(data: Mapping[str, Any], path: str) -> Status:
    """A holdout's status; its path is where this client finds it."""
    from holdfast.holdout.state import PartStatus, SetStatus, Status, ToldStatus

    def read_set(each: Mapping[str, Any]) -> SetStatus:
        parts, told = tuple(_made(PartStatus, part) for part in each["parts"]), each["told"]
        made = None if told is None else _made(ToldStatus, told, bars=tuple(told["bars"]))
        return _made(SetStatus, each, parts=parts, told=made)

    sets = tuple(map(read_set, data["sets"]))
    return _made(Status, data, sets=sets, path=path)


def read_price(data: Mapping[str, Any]) -> Price:
    """What a question would cost."""
    from holdfast.holdout.answering import Price, ToldPrice
    from holdfast.holdout.doubts import Doubt

    grid, told = data["grid"], data["told"]
    points = None if grid is None else (grid["low"], grid["high"], grid["points"])
    doubts = tuple(_made(Doubt, each) for each in data["doubts"])
    made = None if told is None else _made(ToldPrice, told, answers=tuple(told["answers"]))
    known = {"assumes": tuple(data["assumes"]), "doubts": doubts, "told": made}
    return _made(Price, data, grid=points, **known)


def read_page(data: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int | None]:
    """Rows of the transcript, and after which row there may be more."""
    return list(data["rows"]), data["next"]


def read_job(data: Mapping[str, Any], call: HttpRequest, url: str) -> JobStatus:
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

    A budget, and what is left of it, can only have been without a bound; of other numbers nothing
    is known.
    """
    values = {}
    for each in fields(kind):  # type: ignore[arg-type]
        value = made[each.name] if each.name in made else data[each.name]
        if value is None and each.type == "float":
            value = math.inf if each.name in ("budget", "budget_left") else math.nan
        values[each.name] = value
    return kind(**values)


# Questions on their way to a server: checked as a holdout checks them, and made ready to travel.
#
# These have the signatures of `Holdout`'s methods. What runs here, a function, a model, a progress
# bar, cannot travel, and is refused with a word on what to do instead.


R = TypeVar("R")

_HOW = "Only SQL text travels to a server; this says how to run a Python function."
_KEY = re.compile(r"[!-~]{1,128}")


@dataclass(frozen=True)
class ClientQuestion(Generic[R]):
    """A question as it travels, its key, and how its answer is read.

    What is asked of predictions has parameters and content in place of a body.
    """

    verb: str
    body: dict[str, Any]
    key: str
    read: Callable[[Any], R]
    parameters: Mapping[str, str] = field(default_factory=dict)
    content: Content | None = None


def question(verb: str, *given: Any, **words: Any) -> ClientQuestion[Any]:
    """The question that a verb and its arguments are: those of `Holdout`'s method."""
    schema = VERBS.get(verb) or SCORES.get(verb)
    if schema is None:
        raise InvalidInput("verb", verb, f"one of {', '.join([*VERBS, *SCORES])}")
    bound = schema.signature().bind(*given, **words).arguments
    for name, value in bound.pop(schema.options or "", {}).items():
        raise InvalidInput(name, value, "left out here", _HOW)
    key, content = key_of(bound.pop("request", None)), _predictions(schema, bound)
    body = {}
    for name, value in bound.items():
        word = schema.word(name)
        if value is not None and word.kind == "here":  # it says how to evaluate
            raise InvalidInput(name, value, "left out here", word.help)
        if value is not None and value != word.default:
            body[name] = word.written(value)
    if content is None:
        return ClientQuestion(verb, body, key, _READ[schema.answer])
    parameters = {name: _parameter(value) for name, value in body.items()}
    return ClientQuestion(verb, {}, key, _READ[schema.answer], parameters, content)


def _predictions(schema: VerbSchema, bound: dict[str, Any]) -> Content | None:
    """Take the predictions out of the words of a question; None if it is in SQL."""
    from holdfast.holdout.scoring import candidate_names, named_candidates

    if schema.name in VERBS:
        return None
    subject, form = bound.pop(schema.subject), bound.pop("form", None)
    names = bound.pop("names", schema.word("names").default)
    if schema.subject == "candidates":
        listed, titles = named_candidates(subject, names)
        return contents_of(dict(zip(titles, listed, strict=True)), form)
    if schema.name == "compare":
        one, other = candidate_names(2, names)
        return contents_of({one: subject, other: bound.pop("against")}, form)
    incumbent = bound.pop("better_than", None)
    if incumbent is not None:
        return contents_of({"predictions": subject, "better_than": incumbent}, form)
    return content_of(subject, form)


def _parameter(value: object) -> str:
    """A word as a parameter of an address."""
    return str(value).lower() if isinstance(value, bool) else str(value)


_READ: dict[str, Callable[[Any], Any]] = {
    "Answer": _reader(Answer, Told),
    "Answer | Told": _reader(Answer, Told),
    "Verdict": _reader(Verdict, Told),
    "Corrected": _reader(Corrected),
    "Told": _reader(Told),
    "Submission": read_submission,
}


def key_of(request: object) -> str:
    """The key that was given, or a new one."""
    if request is None:
        return new_key()
    if not isinstance(request, str) or not _KEY.fullmatch(request):
        raise InvalidInput("request", request, "1 to 128 ASCII characters without spaces")
    return request


# The library that a client needs and a holdout does not.


def httpx_is_there() -> None:
    """Raise an error that says what to install, if it is not."""
    if find_spec("httpx2") is None:
        raise HoldfastError("A client needs httpx2: pip install httpx2.")
