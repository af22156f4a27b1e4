"""The addresses. Each is a plain function of who calls and what was sent.

A router's class of routes says who may call, and which threads do the work: the token is looked at
before anything else of a request is, so that whoever has none learns nothing, not even that their
body is malformed.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict, Field

from holdfast.engines.process import Worker, WorkerDied, WorkerTimeout
from holdfast.errors import InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.creation import preview_without_plan
from holdfast.holdout.doubts import refuse
from holdfast.holdout.leaderboard import MOST_KEPT, TOP, Standings
from holdfast.holdout.records import audit_of
from holdfast.holdout.state import can_be_asked
from holdfast.holdout.tokens import Role
from holdfast.planning.compare import PlannerInput
from holdfast.protocols.answers import Result
from holdfast.server.auth import Caller
from holdfast.server.bodies import read_parts
from holdfast.server.errors import STATUS, HttpError
from holdfast.server.jobs import StoredJob, Tick
from holdfast.server.schemas import (
    JOBS,
    QUESTIONS,
    SHAPES,
    FailureShape,
    GrantShape,
    HoldoutShape,
    JobShape,
    PriceShape,
    StandingsShape,
    StatusShape,
    TranscriptShape,
    Words,
    shaped,
)
from holdfast.server.service import Callers, Service, service_of, with_room
from holdfast.verbs import SCORES, VERBS, VerbSchema

__all__ = ["ROUTERS", "comparison"]

_NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_Name = Annotated[str, Path(pattern=f"^{_NAME_PATTERN}$", description="A holdout's name.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern="^[!-~]{1,128}$",
        description="A key of yours: asked again with it, nothing is drawn or paid anew. It never "
        "expires.",
    ),
]
_TOKEN = Security(HTTPBearer(auto_error=False, description="A token that the custodian gave you."))
_here: ContextVar[Service] = ContextVar("_here")
_caller: ContextVar[Caller] = ContextVar("_caller")
_callers: ContextVar[Callers] = ContextVar("_callers")

Reply = dict[str, Any]
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class ErrorBody(FailureShape):
    """What an error says."""

    request: str


class Error(BaseModel):
    """The body of every error."""

    error: ErrorBody


def _errors(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for OpenAPI."""
    always = ("bad_question", "unauthorized", "not_found", "too_large", "too_many", "busy")
    found: dict[int | str, dict[str, Any]] = {}
    for kind in (*always, *kinds):
        known = found.setdefault(STATUS[kind], {"model": Error, "description": ""})
        names = [each for each in known["description"].split(", ") if each]
        known["description"] = ", ".join([*names, kind])
    return found


# Who may call, and where the work is done.


async def _service_here() -> Service:
    return _here.get()


async def _calling() -> Caller:
    return _caller.get()


async def _calling_all() -> Callers:
    return _callers.get()


Here = Annotated[Service, Depends(_service_here)]
Calling = Annotated[Caller, Depends(_calling)]
CallingAll = Annotated[Callers, Depends(_calling_all)]


class _SignedIn(APIRoute):
    """A route for whoever has a token that holds; a plain function runs in a thread."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        if not inspect.iscoroutinefunction(endpoint):
            endpoint = self._in_thread(endpoint)
        super().__init__(path, endpoint, **more)

    def _in_thread(self, endpoint: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(endpoint)
        async def run(**words: Any) -> Any:
            return await self.run(_here.get(), functools.partial(endpoint, **words))

        return run

    async def run(self, service: Service, work: Callable[[], Any]) -> Any:
        """Have a thread do it."""
        return await service.read(work)

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def authenticated(request: Request) -> Response:
            service = service_of(request)
            _here.set(service)
            name = await self.authenticate(service, request)
            sent = request.method in ("POST", "PATCH", "PUT")
            limit = request.scope["holdfast_limit"] if sent else 0
            with service.bodies.held(name, int(request.headers.get("content-length", limit))):
                return await handle(request)

        return authenticated

    async def authenticate(self, service: Service, request: Request) -> str:
        """Find out who calls; the name that their bodies are counted by."""
        _callers.set(await service.callers(request))
        return ""


class _OfHoldout(_SignedIn):
    """A route for whoever has this role at a holdout."""

    role: Role
    asks: bool

    async def run(self, service: Service, work: Callable[[], Any]) -> Any:
        return await (service.ask(work, _caller.get()) if self.asks else service.read(work))

    async def authenticate(self, service: Service, request: Request) -> str:
        caller = await service.caller(request, request.path_params["holdout"], self.role)
        _caller.set(caller)
        return f"{caller.served.name}/{caller.asker.id}"


def _router(needs: Role, *, asks: bool = False) -> APIRouter:
    """A router for what belongs to one holdout, and needs this role.

    What `asks` may take long, and has threads of its own: all others read the ledger alone.
    """

    async def named(holdout: _Name) -> None:
        """Have the name in the address checked and described."""

    kind = type("Route", (_OfHoldout,), {"role": needs, "asks": asks})
    return APIRouter(
        prefix="/api/holdouts/{holdout}",
        dependencies=[Depends(named), _TOKEN],
        responses=_errors("forbidden"),
        route_class=kind,
    )


_asking = _router("analyst", asks=True)
_analyst = _router("analyst")
_viewer = _router("viewer")
_custodian = _router("custodian")
_checking = _router("custodian", asks=True)  # it may read all the files


# The verbs in SQL, their price, and jobs.


_ASKING = _errors("conflict", "exhausted")
JobId = Annotated[str, Path(pattern=r"^[0-9a-f]{24}$")]


def _asking_route(verb: VerbSchema) -> None:
    """The route of a verb; its body are the verb's words."""

    def route(caller: Calling, service: Here, words: Words, key: Key = None) -> Reply:
        return _answer(service, caller, verb.name, words.spoken(), key)

    route.__name__, route.__doc__ = verb.name, verb.help
    route.__annotations__ = {**route.__annotations__, "words": QUESTIONS[verb.name]}
    _asking.post(f"/{verb.name}", responses=shaped(SHAPES[verb.answer], _ASKING))(route)


for _verb in VERBS.values():
    _asking_route(_verb)


def _answer(
    service: Service, caller: Caller, verb: str, words: Reply, key: str | None, **more: Any
) -> Reply:
    result = getattr(caller.holdout, verb)(**words, request=caller.request(key), **more)
    told: Result = getattr(result, "result", result)  # that of a submission
    service.counts.answer(caller.served.name, verb, cached=told.cached)
    return {"type": told.kind, **result.to_dict()}


def _price(caller: Caller, verb: VerbSchema, words: Reply) -> Reply:
    first = words.pop(verb.subject)
    return caller.holdout.price(verb.name, first, **words).to_dict()


@_asking.post("/price", responses=shaped(PriceShape))
def price(caller: Calling, words: Annotated[JOBS, Body()]) -> Reply:
    """What a question would cost, asked now: nothing is drawn, told or charged."""
    return _price(caller, VERBS[words.verb], words.spoken())


@_asking.post("/jobs", status_code=202, responses=shaped(JobShape, _ASKING, status=202))
def start_job(
    caller: Calling, service: Here, words: Annotated[JOBS, Body()], key: Key = None
) -> Reply:
    """Ask in the background: progress and answer, or what is wrong, come by its id."""
    spoken = words.spoken()
    first = spoken.pop(VERBS[words.verb].subject)
    price = caller.holdout.price(words.verb, first, **spoken)  # says now what is wrong with it
    refuse(() if words.anyway else price.doubts)

    def run(tick: Tick) -> Reply:
        now = service.authenticator.again(caller, lambda: tick(None))

        def answer() -> Reply:
            planned = lambda _done, _total: tick(now.pacing.planned)  # noqa: E731
            return _answer(service, now, words.verb, words.spoken(), key, progress=planned)

        return with_room(answer, now)

    said, holdout = words.model_dump_json(exclude_none=True), caller.served.name
    return service.jobs.start(
        holdout, caller.asker.id, words.verb, said, caller.request(key), run
    ).to_dict()


@_analyst.get("/jobs", responses=shaped(list[JobShape]))
def list_jobs(caller: Calling, service: Here) -> list[Reply]:
    """Your jobs, the newest first; a custodian sees all."""
    return [job.to_dict() for job in service.jobs.all(caller.served.name, _whose(caller))]


@_analyst.get("/jobs/{job}", responses=shaped(JobShape))
def show_job(caller: Calling, service: Here, job: JobId) -> Reply:
    """How a job goes, and its answer when it is done."""
    return _job(service, caller, job).to_dict()


@_analyst.delete("/jobs/{job}", responses=shaped(JobShape))
def cancel_job(caller: Calling, service: Here, job: JobId) -> Reply:
    """Stop a job. What it has reserved stays paid; an answer that is recorded stays recorded."""
    return service.jobs.cancel(_job(service, caller, job)).to_dict()


def _job(service: Service, caller: Caller, identity: str) -> StoredJob:
    return service.jobs.get(caller.served.name, identity, _whose(caller))


def _whose(caller: Caller) -> str | None:
    return None if caller.role == "custodian" else caller.asker.id


# For the custodian: tokens and quotas, who asked what, and whether the ledger is sound.


TokenId = Annotated[str, Path(pattern=r"^[0-9a-z]{8}$", description="A token's id.")]


class QuotaWords(BaseModel):
    """Other quotas: what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")
    quota: Annotated[
        Annotated[float, Field(gt=0, le=1)] | None,
        Field(description="Its share of the budget for looks; null for no limit of its own."),
    ] = None
    nats: Annotated[
        Annotated[float, Field(gt=0, allow_inf_nan=False)] | None,
        Field(description="How much it may be told; null for no limit of its own."),
    ] = None


class CheckWords(BaseModel):
    """What to check against."""

    model_config = ConfigDict(extra="forbid")
    receipt: Annotated[str, Field(max_length=300)] | None = None


@_custodian.get("/tokens", responses=shaped(list[GrantShape]))
def tokens(caller: Calling) -> list[Reply]:
    """All grants, with what each has used; tokens themselves are kept nowhere."""
    access = caller.holdout.access
    return [
        {**each.to_dict(), "used": access.used(each.id), "told": access.told(each.id)}
        for each in access.grants()
    ]


@_custodian.delete("/tokens/{token}", responses=shaped(GrantShape))
def revoke(caller: Calling, token: TokenId) -> Reply:
    """End a grant, at once and for good."""
    return caller.holdout.access.revoke(token).to_dict()


@_custodian.patch("/tokens/{token}", responses=shaped(GrantShape))
def change(caller: Calling, token: TokenId, words: QuotaWords) -> Reply:
    """Give a grant other quotas: a share of the budget for looks, nats for what is told."""
    access, given = caller.holdout.access, words.model_fields_set
    if not given:
        raise InvalidInput("body", "{}", "one with a quota, or nats")
    if "quota" in given:
        changed = access.set_quota(token, words.quota)
    if "nats" in given:
        changed = access.set_nats(token, words.nats)
    return changed.to_dict()


@_custodian.get("/audit")
def audit(
    caller: Calling,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Reply:
    """Who did what, row by row of the ledger: grants, reservations, answers."""
    return _page(audit_of(caller.holdout.journal, after, limit), limit)


def _page(rows: list[Reply], limit: int) -> Reply:
    return {"rows": rows, "next": rows[-1]["number"] if len(rows) == limit else None}


@_checking.post("/check")
def check(caller: Calling, words: CheckWords | None = None) -> Reply:
    """Verify chain, plan, prices, budget, answers and files again, from what is on disk."""
    receipt = None if words is None else words.receipt
    # What was answered is not evaluated again: that could take any time.
    return check_holdout(caller.holdout.path, receipt, told=False).to_dict()


# Models: predictions keyed by row id, as the body of a request.


_FORMS = {
    "text/csv": "csv",
    "application/json": "json",
    "application/vnd.apache.parquet": "parquet",
}
_SEVERAL = "multipart/mixed"
_SCORING = _errors("conflict", "exhausted", "unsupported")
_ONE = (
    "Predictions for every row: a table with the ids' own column and `prediction`, or in JSON "
    '{"id": prediction, …}.'
)
_PARTS = {
    "compare": "Two parts, each with predictions as CSV, JSON or Parquet: the new ones, and those "
    "that they are compared with. Their names are what they are called.",
    "best": "A part for each candidate, named as it is called, with predictions as CSV, JSON or "
    "Parquet.",
    "gate": f"{_ONE} With an incumbent: two parts, `predictions` and `better_than`.",
}
_PARTS["scores"] = _PARTS["best"]


def _body_of(verb: str) -> dict[str, Any]:
    """What a request about predictions carries, for OpenAPI."""
    objects = [{"type": "object", "additionalProperties": True}]
    schemas: dict[str, Any] = {
        "text/csv": {"type": "string"},
        "application/json": {"anyOf": [*objects, {"type": "array", "items": {"type": "object"}}]},
        "application/vnd.apache.parquet": {"type": "string", "format": "binary"},
    }
    if verb in _PARTS:
        parts = {_SEVERAL: {"type": "object", "additionalProperties": {"type": "string"}}}
        schemas = {**schemas, **parts} if verb == "gate" else parts
    content = {kind: {"schema": schema} for kind, schema in schemas.items()}
    told = {"required": True, "description": _PARTS.get(verb, _ONE), "content": content}
    return {"requestBody": told}


async def _sent(request: Request) -> tuple[bytes, str]:
    """The body, and its type."""
    return await request.body(), request.headers.get("content-type", "")


Sent = Annotated[tuple[bytes, str], Depends(_sent)]


def _predictions(verb: VerbSchema, body: bytes, kind: str) -> Reply:
    """The predictions in a body, as the arguments that the verb takes them by."""
    name = kind.partition(";")[0].strip().casefold()
    known = _body_of(verb.name)["requestBody"]["content"]
    if name not in known:
        raise HttpError("unsupported", f"Content-Type must be one of {', '.join(known)}.")
    if name != _SEVERAL:
        return {verb.subject: body, "form": _FORMS[name]}
    parts = read_parts(body, kind)
    names = [each for each, _ in parts]
    if verb.name == "gate":
        if sorted(names) != ["better_than", "predictions"]:
            raise InvalidInput("body", names, "two parts, predictions and better_than")
        found = dict(parts)
        return {verb.subject: found["predictions"], "better_than": found["better_than"]}
    contents = [content for _, content in parts]
    if verb.name != "compare":
        return {"candidates": contents, "names": names}
    if len(parts) != 2:
        raise InvalidInput("body", f"{len(parts)} parts", "two parts, which are compared")
    return {**dict(zip(verb.first, contents, strict=True)), "names": names}


def _scoring_routes(verb: VerbSchema) -> None:
    """The route of a verb about predictions, and that of its price; words are parameters."""

    def route(caller: Calling, service: Here, sent: Sent, words: Words, key: Key = None) -> Reply:
        given = _predictions(verb, *sent)
        return _answer(service, caller, verb.name, {**given, **words.spoken()}, key)

    def priced(caller: Calling, sent: Sent, words: Words) -> Reply:
        return _price(caller, verb, {**_predictions(verb, *sent), **words.spoken()})

    route.__name__, route.__doc__ = verb.name, verb.help
    priced.__name__ = f"price_{verb.name}"
    priced.__doc__ = f"What `{verb.name}` would tell, asked now: nothing is told or charged."
    model: Any = QUESTIONS[verb.name]
    for each in (route, priced):
        each.__annotations__ = {**each.__annotations__, "words": Annotated[model, Query()]}
    body, shape = _body_of(verb.name), SHAPES[verb.answer]
    _asking.post(f"/{verb.name}", responses=shaped(shape, _SCORING), openapi_extra=body)(route)
    if verb.name != "enter":  # whose price is that of its score
        place, told = f"/price/{verb.name}", shaped(PriceShape, _errors("unsupported"))
        _asking.post(place, responses=told, openapi_extra=body)(priced)


for _verb in SCORES.values():
    _scoring_routes(_verb)


Metric = Annotated[
    str, Query(pattern=r"^[A-Za-z0-9_]{1,100}$", description="The name of a metric.")
]
Top = Annotated[int, Query(ge=2, le=MOST_KEPT, description="So many entries, the first ones.")]
MaxLevel = Annotated[
    float | None,
    Query(ge=0, allow_inf_nan=False, description="Refuse above this level: others may have asked."),
]


class _Compared(BaseModel):
    """Which entries are compared: a word that means nothing here is refused, as in a question."""

    model_config = ConfigDict(extra="forbid")

    metric: Metric = "accuracy"
    top: Top = TOP
    max_level: MaxLevel = None


Compared = Annotated[_Compared, Query()]


@_viewer.get("/leaderboard", responses=shaped(StandingsShape))
def leaderboard(caller: Calling, metric: Metric = "accuracy") -> Reply:
    """The best submission of every name, with the ranks that their error bars allow."""
    return _board(caller, caller.holdout.leaderboard(metric))


def _board(caller: Caller, standings: Standings) -> Reply:
    told = standings.to_dict()
    for entry, each in zip(standings.entries, told["entries"], strict=True):
        each["mine"] = entry.asker == caller.asker.id
    return told


@_asking.post("/neighbours", responses=shaped(StandingsShape))
def neighbours(caller: Calling, service: Here, words: Compared) -> Reply:
    """The leaderboard, and each of its first entries compared with the next, on the same rows.

    Asked again it is free.
    """

    def holds() -> None:  # they are many questions: a token may end between two of them
        service.authenticator.again(caller, holds)

    caller = service.authenticator.again(caller, holds)
    standings = caller.holdout.leaderboard(neighbours=True, **words.model_dump())
    for each in standings.neighbours or ():
        if each.told is not None:
            service.counts.answer(caller.served.name, "compare", cached=each.told.cached)
    return _board(caller, standings)


@_asking.post("/price/neighbours", responses=shaped(StandingsShape))
def price_neighbours(caller: Calling, words: Compared) -> Reply:
    """What `neighbours` would tell, asked now: nothing is told or charged."""
    return _board(caller, caller.holdout.leaderboard(price=True, **words.model_dump()))


# What is left, what was answered, what can be asked.


After = Annotated[int, Query(ge=0, le=2**53, description="Rows after this one.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many.")]


@_viewer.get("/status", responses=shaped(StatusShape))
def status(caller: Calling) -> Reply:
    """What is spent, what is left, and what it still buys."""
    told = caller.holdout.status().to_dict()
    del told["path"]  # where it lies on the server is nobody's business
    grant, access, quota = caller.grant, caller.holdout.access, None
    if grant is not None:
        quota = {"share": grant.quota, "used": access.used(grant.id)}
        quota |= {"nats": grant.nats, "told": access.told(grant.id)}
    return {**told, "role": caller.role, "quota": quota}


@_viewer.get("/columns")
def columns(caller: Calling, service: Here) -> Reply:
    """What can be asked: columns, verbs and parts of the plan."""
    spec = caller.holdout.spec
    over_rows = service.over_rows(spec)
    return {**can_be_asked(spec), "metrics": service.metric_names, "over_rows": over_rows}


@_viewer.get("/transcript", responses=shaped(TranscriptShape))
def transcript(caller: Calling, after: After = 0, limit: Limit = 100) -> Reply:
    """Questions and answers, the oldest first."""
    rows = caller.holdout.transcript(after, limit)
    for row in rows:
        row["mine"] = row["asker"] == caller.asker.id
        if caller.role != "custodian":
            del row["asker"]
    return _page(rows, limit)


@_viewer.get("/left")
def left(
    caller: Calling,
    protocol: Annotated[
        str | None, Query(max_length=100, description="A part of the plan.")
    ] = None,
    queries: Annotated[int | None, Query(ge=1, le=10**9, description="Questions wanted.")] = None,
    grid: Annotated[int | None, Query(ge=2, le=10**6, description="Points of their grids.")] = None,
) -> Reply:
    """Plan what is left: how many more questions, on grids of which size, it pays for."""
    return caller.holdout.questions_left(protocol, queries, grid)


# The planner of the page: how narrow answers can be, by method. It never sees a holdout.
#
# Half-widths take a second or more of computing, so they are found in a process of their own, one
# after the other, and remembered.


_MODULE = "holdfast.planning.compare"
_SECONDS = 60.0  # for one comparison
_WAITING = 4  # comparisons that may wait for their turn
_MOST_KNOWN = 2_000
_waiting = threading.Semaphore(_WAITING)
_known: dict[tuple[PlannerInput, bool], dict[str, Any]] = {}
_workers: list[Worker] = []  # the one that is alive; only the planner's thread touches it


async def comparison(
    rows: int, queries: int, tail: float, confidence: float, curve: bool
) -> dict[str, Any]:
    """The bars of what is told without a plan, and the half-width of every method's bar for the
    mean of a term between 0 and 1.

    With a curve, also for other numbers of questions; that takes a few times as long.
    """
    key = PlannerInput(rows, queries, tail, confidence), curve
    if key in _known:
        return _known[key]
    if not _waiting.acquire(blocking=False):
        raise HttpError("busy", "The planner is busy. Ask again soon.", wait=2.0)
    try:
        planned = asyncio.get_running_loop().run_in_executor(_thread(), _compare, *key)
        found = await asyncio.wait_for(planned, 2 * _SECONDS)
    finally:
        _waiting.release()
    if len(_known) < _MOST_KNOWN:
        _known[key] = found
    return found


@functools.cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "holdfast-plan")


def _compare(study: PlannerInput, curve: bool) -> dict[str, Any]:
    message = (study.rows, study.queries, study.tail, study.confidence, curve)
    try:
        found: dict[str, Any] = json.loads(_worker().call(message, _SECONDS))
    except WorkerTimeout:
        hint = "Plan it with `holdfast plan`, or ask for fewer questions."
        raise HttpError("bad_question", f"This takes too long to plan here. {hint}") from None
    except WorkerDied:
        raise HttpError(
            "busy", "The planner has to start again. Ask again soon.", wait=2.0
        ) from None
    if "refused" in found:
        raise HttpError("bad_question", found["refused"])
    told = None
    if study.confidence > 0.5:  # at less nothing that is told is certified
        told = preview_without_plan(study.rows, study.queries, study.confidence).to_dict()
    return {**found, "told": told}


def _worker() -> Worker:
    """The process; another one if it has ended. It ends with this one."""
    if not _workers or not _workers[-1].alive:
        _workers[:] = [Worker(_MODULE, environment={"HOLDFAST_CACHE": "off"})]
    return _workers[-1]


# Whether the server is up, what it counts, which holdouts it has, and the planner.


_open = APIRouter()
_operations = APIRouter(route_class=_SignedIn, dependencies=[_TOKEN])
_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}
_BUSY: dict[int | str, dict[str, Any]] = {STATUS["busy"]: {"model": Error, "description": "busy"}}


@_open.get("/health")
async def health() -> dict[str, str]:
    """Whether the server is up. It says nothing of the holdouts."""
    return {"status": "ok"}


@_open.get("/ready", responses=_BUSY)
async def ready(request: Request) -> dict[str, str]:
    """Whether every holdout can be asked: its ledger is read, by a thread that requests need."""
    await service_of(request).ready()
    return {"status": "ok"}


@_operations.get("/metrics", responses={200: _TEXT, **_errors()}, response_class=Response)
def metrics(calling: CallingAll, service: Here) -> Response:
    """Counts for Prometheus, of the holdouts that the token may see."""
    callers, away = calling
    return Response(service.counts.text(callers, [*away]), media_type=CONTENT_TYPE_LATEST)


@_operations.get("/api/holdouts", responses=shaped(list[HoldoutShape], _errors()))
def holdouts(calling: CallingAll) -> list[Reply]:
    """The holdouts that the token may see, and what it may do there."""
    callers, away = calling
    if away and not callers:
        raise next(iter(away.values()))
    return [*map(_listed, callers)]


def _listed(caller: Caller) -> Reply:
    grant, token = caller.grant, None
    if grant is not None:
        token = {name: getattr(grant, name) for name in ("id", "name", "expires", "quota", "nats")}
    spec = caller.holdout.spec
    listed = {"name": caller.served.name, "title": spec.name, "role": caller.role, "token": token}
    return {**listed, "models": spec.target is not None and spec.ids is not None}


@_operations.get("/api/plan", responses=_errors())
async def plan(
    rows: Annotated[int, Query(ge=100, le=10**9)] = 100_000,
    queries: Annotated[int, Query(ge=1, le=10**6)] = 1000,
    tail: Annotated[float, Query(gt=0, lt=0.5)] = 0.25,
    confidence: Annotated[float, Query(ge=0.5, le=0.9999)] = 0.95,
    curve: Annotated[bool, Query(description="Also for other numbers of questions.")] = True,
) -> Reply:
    """How narrow answers can be with so many rows and questions: without a plan, and by method."""
    return await comparison(rows, queries, tail, confidence, curve)


ROUTERS = (_open, _operations, _asking, _analyst, _viewer, _custodian, _checking)
