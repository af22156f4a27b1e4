"""Asking: the five verbs, their price, and jobs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Body, Path, Request

from holdfast.engines.source import Progress
from holdfast.holdout.doubts import refuse
from holdfast.holdout.questions import Verb
from holdfast.protocols.correct import Corrected
from holdfast.server.identity import Seat
from holdfast.server.jobs import Job
from holdfast.server.questions import (
    AskWords,
    CorrectWords,
    IntervalWords,
    JobWords,
    MeanWords,
    VerifyWords,
    Words,
    as_told,
    asked,
)
from holdfast.server.routes.common import Key, holdout_router, responses
from holdfast.server.routes.shapes import (
    AnswerShape,
    CorrectedShape,
    JobShape,
    PriceShape,
    VerdictShape,
    shaped,
)
from holdfast.server.service import Service, service_of

__all__ = ["answer", "router"]

router = holdout_router()
_ASKING = responses("conflict", "exhausted", "busy")
JobId = Annotated[str, Path(pattern=r"^[0-9a-f]{24}$")]
Told = dict[str, Any]


@router.post("/ask", responses=shaped(AnswerShape, _ASKING))
async def ask(request: Request, words: AskWords, key: Key = None) -> Told:
    """An estimator's value on fresh data."""
    return await answer(request, "ask", words, key)


@router.post("/interval", responses=shaped(AnswerShape, _ASKING))
async def interval(request: Request, words: IntervalWords, key: Key = None) -> Told:
    """An interval that encloses the median of what the estimator gives on fresh blocks."""
    return await answer(request, "interval", words, key)


@router.post("/mean", responses=shaped(AnswerShape, _ASKING))
async def mean(request: Request, words: MeanWords, key: Key = None) -> Told:
    """The mean of a term of one row, with its error bar."""
    return await answer(request, "mean", words, key)


@router.post("/verify", responses=shaped(VerdictShape, _ASKING))
async def verify(request: Request, words: VerifyWords, key: Key = None) -> Told:
    """Whether a guess is compatible with fresh data, not compatible, or nobody can tell."""
    return await answer(request, "verify", words, key)


@router.post("/correct", responses=shaped(CorrectedShape, _ASKING))
async def correct(request: Request, words: CorrectWords, key: Key = None) -> Told:
    """Whether a guess is compatible with fresh data; if not, an answer in its place."""
    return await answer(request, "correct", words, key)


async def answer(request: Request, verb: Verb, words: Words, key: str | None) -> Told:
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
) -> Told:
    result = asked(seat.holdout, verb, words, seat.request(key), progress)
    cached = result.verdict.cached if isinstance(result, Corrected) else result.cached
    service.counts.answer(seat.hosted.name, verb, cached=cached)
    return as_told(result)


@router.post("/price", responses=shaped(PriceShape))
async def price(request: Request, words: Annotated[JobWords, Body()]) -> Told:
    """What a question would cost, asked now: nothing is drawn, and nothing charged."""

    def work(seat: Seat) -> Told:
        first, spoken = words.spoken()
        return seat.holdout.price(words.verb, first, **spoken).to_dict()

    return await service_of(request).read(request, "analyst", work)


@router.post("/jobs", status_code=202, responses=shaped(JobShape, _ASKING, status=202))
async def start_job(request: Request, words: Annotated[JobWords, Body()], key: Key = None) -> Told:
    """Ask in the background: progress and answer, or what is wrong, come by its id."""
    service = service_of(request)

    def work(seat: Seat) -> Told:
        first, spoken = words.spoken()
        price = seat.holdout.price(words.verb, first, **spoken)  # says now what is wrong with it
        refuse(() if words.anyway else price.doubts)

        def run(progress: Progress) -> Told:
            now = service.doorman.again(seat).cancellable(lambda: progress(1, 1))
            return _told(service, now, words.verb, words, key, progress)

        said = words.model_dump_json(exclude_none=True)
        asker = seat.asker.id
        return service.jobs.start(
            seat.hosted.name, asker, words.verb, said, seat.request(key), run
        ).to_dict()

    return await service.read(request, "analyst", work)


@router.get("/jobs", responses=shaped(list[JobShape]))
async def list_jobs(request: Request) -> list[Told]:
    """Your jobs, the newest first; a custodian sees all."""
    service = service_of(request)

    def work(seat: Seat) -> list[Told]:
        return [job.to_dict() for job in service.jobs.all(seat.hosted.name, _whose(seat))]

    return await service.read(request, "analyst", work)


@router.get("/jobs/{job}", responses=shaped(JobShape))
async def show_job(request: Request, job: JobId) -> Told:
    """How a job goes, and its answer when it is done."""
    service = service_of(request)
    return await service.read(request, "analyst", lambda seat: _job(service, seat, job).to_dict())


@router.delete("/jobs/{job}", responses=shaped(JobShape))
async def cancel_job(request: Request, job: JobId) -> Told:
    """Stop a job. What it has reserved stays paid; an answer that is recorded stays recorded."""
    service = service_of(request)
    return await service.read(
        request, "analyst", lambda seat: service.jobs.cancel(_job(service, seat, job)).to_dict()
    )


def _job(service: Service, seat: Seat, identity: str) -> Job:
    return service.jobs.get(seat.hosted.name, identity, _whose(seat))


def _whose(seat: Seat) -> str | None:
    return None if seat.role == "custodian" else seat.asker.id
