"""What the routes have in common: keys, tokens and errors as OpenAPI describes them."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request, Response, Security
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict, Field

from holdfast.engines.process import Worker, WorkerDied, WorkerTimeout
from holdfast.engines.source import Progress
from holdfast.holdout.check import check_holdout
from holdfast.holdout.doubts import refuse
from holdfast.holdout.left import can_be_asked, left_of
from holdfast.holdout.questions import Verb
from holdfast.holdout.scoring import Submission
from holdfast.holdout.transcripts import audit_of
from holdfast.planning.widths import Study
from holdfast.protocols.guesses import Corrected
from holdfast.server.auth import Seat
from holdfast.server.errors import STATUS, Fault
from holdfast.server.jobs import Job
from holdfast.server.schemas import (
    AnswerShape,
    AskWords,
    CorrectedShape,
    CorrectWords,
    GateShape,
    GrantShape,
    HoldoutShape,
    IntervalWords,
    JobShape,
    JobWords,
    MeanWords,
    PriceShape,
    StandingsShape,
    StatusShape,
    SubmissionShape,
    TranscriptShape,
    VerdictShape,
    VerifyWords,
    Words,
    as_told,
    asked,
    shaped,
)
from holdfast.server.service import Service, service_of

__all__ = [
    "KEY_PATTERN",
    "NAME_PATTERN",
    "TOKEN",
    "Key",
    "answer",
    "asking_router",
    "comparison",
    "custodian_router",
    "holdout_router",
    "leaderboard_router",
    "looking_router",
    "operations_router",
    "responses",
]

_PREFIX = "/api/holdouts/{holdout}"
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
KEY_PATTERN = r"[!-~]{1,128}"
_Name = Annotated[str, Path(pattern=f"^{NAME_PATTERN}$", description="A holdout's name.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=f"^{KEY_PATTERN}$",
        description="A key of yours: asked again with it, nothing is drawn or paid anew. It never "
        "expires.",
    ),
]
_bearer = HTTPBearer(auto_error=False, description="A token that the custodian gave you.")


Reply = dict[str, Any]


class ErrorBody(BaseModel):
    """What an error says."""

    kind: str
    message: str
    parameter: str | None = None
    allowed: str | None = None
    hint: str | None = None
    request: str


class Error(BaseModel):
    """The body of every error."""

    error: ErrorBody


def responses(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for OpenAPI."""
    always = ("bad_question", "unauthorized", "not_found", "too_large", "too_many")
    found: dict[int | str, dict[str, Any]] = {}
    for kind in (*always, *kinds):
        known = found.setdefault(STATUS[kind], {"model": Error, "description": ""})
        names = [each for each in known["description"].split(", ") if each]
        known["description"] = ", ".join([*names, kind])
    return found


async def _named(holdout: _Name) -> None:
    """Have the name in the address checked; `Service` finds the holdout by it."""
    del holdout


TOKEN = Security(_bearer)


def holdout_router() -> APIRouter:
    """A router for what belongs to one holdout; every route of it takes a token."""
    return APIRouter(
        prefix=_PREFIX, dependencies=[Depends(_named), TOKEN], responses=responses("forbidden")
    )


# Asking: the five verbs, their price, and jobs.


asking_router = holdout_router()
_ASKING = responses("conflict", "exhausted", "busy")
JobId = Annotated[str, Path(pattern=r"^[0-9a-f]{24}$")]


@asking_router.post("/ask", responses=shaped(AnswerShape, _ASKING))
async def ask(request: Request, words: AskWords, key: Key = None) -> Reply:
    """An estimator's value on fresh data."""
    return await answer(request, "ask", words, key)


@asking_router.post("/interval", responses=shaped(AnswerShape, _ASKING))
async def interval(request: Request, words: IntervalWords, key: Key = None) -> Reply:
    """An interval that encloses the median of what the estimator gives on fresh blocks."""
    return await answer(request, "interval", words, key)


@asking_router.post("/mean", responses=shaped(AnswerShape, _ASKING))
async def mean(request: Request, words: MeanWords, key: Key = None) -> Reply:
    """The mean of a term of one row, with its error bar."""
    return await answer(request, "mean", words, key)


@asking_router.post("/verify", responses=shaped(VerdictShape, _ASKING))
async def verify(request: Request, words: VerifyWords, key: Key = None) -> Reply:
    """Whether a guess is compatible with fresh data, not compatible, or nobody can tell."""
    return await answer(request, "verify", words, key)


@asking_router.post("/correct", responses=shaped(CorrectedShape, _ASKING))
async def correct(request: Request, words: CorrectWords, key: Key = None) -> Reply:
    """Whether a guess is compatible with fresh data; if not, an answer in its place."""
    return await answer(request, "correct", words, key)


async def answer(request: Request, verb: Verb, words: Words, key: str | None) -> Reply:
    """What the holdout says to a question."""
    service = service_of(request)
    return await service.ask(
        request, lambda seat: _told(service, seat, verb, words, key), light=words.short
    )


def _told(
    service: Service,
    seat: Seat,
    verb: Verb,
    words: Words,
    key: str | None,
    progress: Progress | None = None,
) -> Reply:
    result = asked(seat.holdout, verb, words, seat.request(key), progress)
    cached = result.verdict.cached if isinstance(result, Corrected) else result.cached
    service.counts.answer(seat.hosted.name, verb, cached=cached)
    return as_told(result)


@asking_router.post("/price", responses=shaped(PriceShape))
async def price(request: Request, words: Annotated[JobWords, Body()]) -> Reply:
    """What a question would cost, asked now: nothing is drawn, and nothing charged."""

    def work(seat: Seat) -> Reply:
        first, spoken = words.spoken()
        return seat.holdout.price(words.verb, first, **spoken).to_dict()

    return await service_of(request).read(request, "analyst", work)


@asking_router.post("/jobs", status_code=202, responses=shaped(JobShape, _ASKING, status=202))
async def start_job(request: Request, words: Annotated[JobWords, Body()], key: Key = None) -> Reply:
    """Ask in the background: progress and answer, or what is wrong, come by its id."""
    service = service_of(request)

    def work(seat: Seat) -> Reply:
        first, spoken = words.spoken()
        price = seat.holdout.price(words.verb, first, **spoken)  # says now what is wrong with it
        refuse(() if words.anyway else price.doubts)

        def run(progress: Progress) -> Reply:
            now = service.doorman.again(seat).cancellable(lambda: progress(1, 1))
            return _told(service, now, words.verb, words, key, progress)

        said = words.model_dump_json(exclude_none=True)
        asker = seat.asker.id
        return service.jobs.start(
            seat.hosted.name, asker, words.verb, said, seat.request(key), run
        ).to_dict()

    return await service.read(request, "analyst", work)


@asking_router.get("/jobs", responses=shaped(list[JobShape]))
async def list_jobs(request: Request) -> list[Reply]:
    """Your jobs, the newest first; a custodian sees all."""
    service = service_of(request)

    def work(seat: Seat) -> list[Reply]:
        return [job.to_dict() for job in service.jobs.all(seat.hosted.name, _whose(seat))]

    return await service.read(request, "analyst", work)


@asking_router.get("/jobs/{job}", responses=shaped(JobShape))
async def show_job(request: Request, job: JobId) -> Reply:
    """How a job goes, and its answer when it is done."""
    service = service_of(request)
    return await service.read(request, "analyst", lambda seat: _job(service, seat, job).to_dict())


@asking_router.delete("/jobs/{job}", responses=shaped(JobShape))
async def cancel_job(request: Request, job: JobId) -> Reply:
    """Stop a job. What it has reserved stays paid; an answer that is recorded stays recorded."""
    service = service_of(request)
    return await service.read(
        request, "analyst", lambda seat: service.jobs.cancel(_job(service, seat, job)).to_dict()
    )


def _job(service: Service, seat: Seat, identity: str) -> Job:
    return service.jobs.get(seat.hosted.name, identity, _whose(seat))


def _whose(seat: Seat) -> str | None:
    return None if seat.role == "custodian" else seat.asker.id


# For the custodian: tokens and quotas, who asked what, and whether the ledger is sound.


custodian_router = holdout_router()
TokenId = Annotated[str, Path(pattern=r"^[0-9a-z]{8}$", description="A token's id.")]


class QuotaWords(BaseModel):
    """Another quota."""

    model_config = ConfigDict(extra="forbid")
    quota: Annotated[float, Field(gt=0, le=1)] | None


class CheckWords(BaseModel):
    """What to check against."""

    model_config = ConfigDict(extra="forbid")
    receipt: Annotated[str, Field(max_length=300)] | None = None


@custodian_router.get("/tokens", responses=shaped(list[GrantShape]))
async def tokens(request: Request) -> list[Reply]:
    """All grants, with what each has used; tokens themselves are kept nowhere."""

    def work(seat: Seat) -> list[Reply]:
        access = seat.hosted.holdout.access
        return [{**each.to_dict(), "used": access.used(each.id)} for each in access.grants()]

    return await service_of(request).read(request, "custodian", work)


@custodian_router.delete("/tokens/{token}", responses=shaped(GrantShape))
async def revoke(request: Request, token: TokenId) -> Reply:
    """End a grant, at once and for good."""
    return await service_of(request).read(
        request, "custodian", lambda seat: seat.hosted.holdout.access.revoke(token).to_dict()
    )


@custodian_router.patch("/tokens/{token}", responses=shaped(GrantShape))
async def change(request: Request, token: TokenId, words: QuotaWords) -> Reply:
    """Give a grant another share of the budget; null for no limit of its own."""

    def work(seat: Seat) -> Reply:
        return seat.hosted.holdout.access.set_quota(token, words.quota).to_dict()

    return await service_of(request).read(request, "custodian", work)


@custodian_router.get("/audit")
async def audit(
    request: Request,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Reply:
    """Who did what, row by row of the ledger: grants, reservations, answers."""

    def work(seat: Seat) -> Reply:
        rows = audit_of(seat.hosted.holdout.door, after, limit)
        return {"rows": rows, "next": rows[-1]["number"] if len(rows) == limit else None}

    return await service_of(request).read(request, "custodian", work)


@custodian_router.post("/check")
async def check(request: Request, words: CheckWords | None = None) -> Reply:
    """Verify chain, plan, prices, budget, answers and files again, from what is on disk."""
    receipt = None if words is None else words.receipt

    def work(seat: Seat) -> Reply:
        return check_holdout(seat.hosted.holdout.path, receipt).to_dict()

    return await service_of(request).read(request, "custodian", work)


# Leaderboard and gate: predictions keyed by row id, as the body of a request.


leaderboard_router = holdout_router()

_FORMS = {
    "text/csv": "csv",
    "application/json": "json",
    "application/vnd.apache.parquet": "parquet",
}
_SCORING = responses("conflict", "exhausted", "busy", "unsupported")
_BODY = {
    "requestBody": {
        "required": True,
        "description": "Predictions for every row: a table with the ids' own column and "
        '`prediction`, or in JSON {"id": prediction, …}.',
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/json": {
                "schema": {
                    "anyOf": [
                        {"type": "object", "additionalProperties": True},
                        {"type": "array", "items": {"type": "object"}},
                    ]
                }
            },
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
Metric = Annotated[
    str, Query(pattern=r"^[A-Za-z0-9_]{1,100}$", description="The name of a metric.")
]
Name = Annotated[str, Query(min_length=1, max_length=100, description="Name of the entry.")]


@leaderboard_router.get("/leaderboard", responses=shaped(StandingsShape))
async def leaderboard(request: Request, metric: Metric = "accuracy") -> Reply:
    """The best submission of every name, with the ranks that their error bars allow."""

    def work(seat: Seat) -> Reply:
        standings = seat.holdout.leaderboard(metric)
        told = standings.to_dict()
        for entry, each in zip(standings.entries, told["entries"], strict=True):
            each["mine"] = entry.asker == seat.asker.id
        return told

    return await service_of(request).read(request, "viewer", work)


@leaderboard_router.post(
    "/submissions", responses=shaped(SubmissionShape, _SCORING), openapi_extra=_BODY
)
async def submit(
    request: Request,
    name: Name,
    metric: Metric = "accuracy",
    improve: Annotated[
        bool,
        Query(description="Verify first whether it is no better than the best."),
    ] = False,
    margin: Annotated[float, Query(description="By how much better.")] = 0.0,
    key: Key = None,
) -> Reply:
    """Score predictions, and enter them on the leaderboard."""
    service = service_of(request)
    form = await _form(request)
    content = await request.body()

    def work(seat: Seat) -> Reply:
        made: Submission = seat.holdout.enter(
            content,
            name=name,
            metric=metric,
            improve=improve,
            margin=margin,
            form=form,
            request=seat.request(key),
        )
        service.counts.answer(seat.hosted.name, "submit", cached=made.result.cached)
        return made.to_dict()

    return await service.ask(request, work)


@leaderboard_router.post("/gate", responses=shaped(GateShape, _SCORING), openapi_extra=_BODY)
async def gate(
    request: Request,
    metric: Metric = "accuracy",
    at_least: Annotated[float | None, Query(description="The score must reach this.")] = None,
    at_most: Annotated[float | None, Query(description="The score must not pass this.")] = None,
    key: Key = None,
) -> Reply:
    """Whether predictions reach a threshold: one verification on one side."""
    service = service_of(request)
    form = await _form(request)
    content = await request.body()

    def work(seat: Seat) -> Reply:
        made = seat.holdout.gate(
            content,
            metric=metric,
            at_least=at_least,
            at_most=at_most,
            form=form,
            request=seat.request(key),
        )
        service.counts.answer(seat.hosted.name, "gate", cached=made.verdict.cached)
        return made.to_dict()

    return await service.ask(request, work)


async def _form(request: Request) -> str:
    """The form of the body by its type, once it is known that whoever sends it may ask."""
    await service_of(request).admit(request, "analyst")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if kind not in _FORMS:
        raise Fault("unsupported", f"Content-Type must be one of {', '.join(_FORMS)}.")
    return _FORMS[kind]


# Looking: what is left, what was answered, what can be asked.


looking_router = holdout_router()
After = Annotated[int, Query(ge=0, le=2**53, description="Rows after this one.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many.")]


@looking_router.get("/status", responses=shaped(StatusShape))
async def status(request: Request) -> Reply:
    """What is spent, what is left, and what it still buys."""

    def work(seat: Seat) -> Reply:
        told = seat.holdout.status().to_dict()
        del told["path"]  # where it lies on the server is nobody's business
        return {**told, "role": seat.role, "quota": _quota(seat)}

    return await service_of(request).read(request, "viewer", work)


def _quota(seat: Seat) -> Reply | None:
    if seat.grant is None or seat.grant.quota is None:
        return None
    return {"share": seat.grant.quota, "used": seat.holdout.access.used(seat.grant.id)}


@looking_router.get("/columns")
async def columns(request: Request) -> Reply:
    """What can be asked: columns, verbs and parts of the plan."""
    service = service_of(request)

    def work(seat: Seat) -> Reply:
        return {**can_be_asked(seat.holdout.charter), "metrics": service.metric_names}

    return await service.read(request, "viewer", work)


@looking_router.get("/transcript", responses=shaped(TranscriptShape))
async def transcript(request: Request, after: After = 0, limit: Limit = 100) -> Reply:
    """Questions and answers, the oldest first."""

    def work(seat: Seat) -> Reply:
        rows = seat.holdout.transcript(after, limit)
        for row in rows:
            row["mine"] = row["asker"] == seat.asker.id
            if seat.role != "custodian":
                del row["asker"]
        return {"rows": rows, "next": rows[-1]["number"] if len(rows) == limit else None}

    return await service_of(request).read(request, "viewer", work)


@looking_router.get("/left")
async def left(
    request: Request,
    by: Annotated[str | None, Query(max_length=100, description="A part of the plan.")] = None,
    queries: Annotated[int | None, Query(ge=1, le=10**9, description="Questions wanted.")] = None,
    grid: Annotated[int | None, Query(ge=2, le=10**6, description="Points of their grids.")] = None,
) -> Reply:
    """Plan what is left: how many more questions, on grids of which size, it pays for."""
    return await service_of(request).read(
        request,
        "viewer",
        lambda seat: left_of(seat.holdout.charter, seat.holdout.door, by, queries, grid),
    )


# The planner of the page: how narrow answers can be, by method. It never sees a holdout.
#
# Half-widths take a second or more of computing, so they are found in a process of their own, one
# after the other, and remembered.


_MODULE = "holdfast.planning.widths"
_SECONDS = 60.0  # for one comparison
_WAITING = 4  # comparisons that may wait for their turn
_MOST_KNOWN = 2_000
_waiting = threading.Semaphore(_WAITING)
_known: dict[tuple[Study, bool], dict[str, Any]] = {}
_workers: list[Worker] = []  # the one that is alive; only the planner's thread touches it


async def comparison(
    rows: int, queries: int, tail: float, confidence: float, curve: bool
) -> dict[str, Any]:
    """The half-width of every method's bar for the mean of a term between 0 and 1.

    With a curve, also for other numbers of questions; that takes a few times as long.
    """
    key = Study(rows, queries, tail, confidence), curve
    if key in _known:
        return _known[key]
    if not _waiting.acquire(blocking=False):
        raise Fault("busy", "The planner is busy. Ask again soon.", wait=2.0)
    try:
        found = await asyncio.get_running_loop().run_in_executor(_thread(), _compare, *key)
    finally:
        _waiting.release()
    if len(_known) < _MOST_KNOWN:
        _known[key] = found
    return found


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "holdfast-plan")


def _compare(study: Study, curve: bool) -> dict[str, Any]:
    message = (study.rows, study.queries, study.tail, study.confidence, curve)
    try:
        found: dict[str, Any] = json.loads(_worker().call(message, _SECONDS))
    except WorkerTimeout:
        hint = "Plan it with `holdfast plan`, or ask for fewer questions."
        raise Fault("bad_question", f"This takes too long to plan here. {hint}") from None
    except WorkerDied:
        raise Fault("busy", "The planner has to start again. Ask again soon.", wait=2.0) from None
    return found


def _worker() -> Worker:
    """The process; another one if it has ended. It ends with this one."""
    if not _workers or not _workers[-1].alive:
        _workers[:] = [Worker(_MODULE, environment={"HOLDFAST_CACHE": "off"})]
    return _workers[-1]


# Operations: whether the server is up, what it counts, which holdouts it has, and the planner.


operations_router = APIRouter()
_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}


@operations_router.get("/health")
async def health() -> dict[str, str]:
    """Whether the server is up. It says nothing of the holdouts."""
    return {"status": "ok"}


@operations_router.get(
    "/metrics",
    dependencies=[TOKEN],
    responses={200: _TEXT, **responses()},
    response_class=Response,
)
async def metrics(request: Request) -> Response:
    """Counts for Prometheus, of the holdouts that the token may see."""
    service = service_of(request)
    text = await service.read_all(request, service.counts.text)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


@operations_router.get(
    "/api/holdouts",
    dependencies=[TOKEN],
    responses=shaped(list[HoldoutShape], responses()),
)
async def holdouts(request: Request) -> list[Reply]:
    """The holdouts that the token may see, and what it may do there."""
    return await service_of(request).read_all(request, lambda seats: [*map(_listed, seats)])


def _listed(seat: Seat) -> Reply:
    grant = seat.grant
    token = None
    if grant is not None:
        facts = ("id", "name", "expires", "quota")
        token = {name: getattr(grant, name) for name in facts}
    title = seat.holdout.charter.name
    return {"name": seat.hosted.name, "title": title, "role": seat.role, "token": token}


@operations_router.get("/api/plan", dependencies=[TOKEN], responses=responses("busy"))
async def plan(
    request: Request,
    rows: Annotated[int, Query(ge=100, le=10**9)] = 100_000,
    queries: Annotated[int, Query(ge=1, le=10**6)] = 1000,
    tail: Annotated[float, Query(gt=0, lt=0.5)] = 0.25,
    confidence: Annotated[float, Query(ge=0.5, le=0.9999)] = 0.95,
    curve: Annotated[bool, Query(description="Also for other numbers of questions.")] = True,
) -> Reply:
    """How narrow answers can be with so many rows and questions, by method."""
    service = service_of(request)
    await service.read_all(request, lambda seats: len(seats))
    return await comparison(rows, queries, tail, confidence, curve)
