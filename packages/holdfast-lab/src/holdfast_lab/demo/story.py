"""The demo from beginning to end: plan, seal, search twice, verify, report, compare."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.holdout.holdout import Holdout
from holdfast_lab.demo.sealed import NAME, Sealed, check_records, demo_plan, fresh_blocks
from holdfast_lab.demo.search import Finding, Naive, cell_words, generator, percent
from holdfast_lab.demo.show import (
    DemoResult,
    Run,
    Runs,
    Screen,
    draw_pictures,
    show_comparison,
    show_rounds,
)
from holdfast_lab.flights import Flights, Rows, load_flights

QUESTIONS, SAMPLE = 300, 300_000
Progress = Callable[[int, int], None]
_FRESH_SAMPLES = 20
_HALF, _TOLERANCE = 0.5, 0.05


def run_demo(
    output: Path,
    screen: Screen,
    *,
    questions: int = QUESTIONS,
    seed: int | None = None,
    sample: int = SAMPLE,
) -> DemoResult:
    """Run the demo; leave the holdout, its report and the pictures in the folder `output`."""
    began = time.monotonic()
    flights, chance = load_flights(), generator(seed)
    folder = _place(output)
    rows = flights.sample(sample, chance)
    late = float(flights.late.mean())
    source = "the operating system's entropy" if seed is None else f"seed {seed}: not certified"
    screen.say(
        "Flights",
        f"{flights.count:,} left New York in 2013: the population, which is known here. Late is 15 "
        f"minutes or more after schedule, or never: {percent(late, 1)}",
    )
    screen.say("Sample", f"{sample:,} of them, drawn with replacement ({source})")
    sealed = _seal(screen, folder, flights, rows, questions, seed)
    with sealed.holdout:
        result = _search(screen, flights, rows, sealed, questions)
        _ask_more(screen, sealed, result)
        result.report = _report(screen, sealed.holdout, output)
        result.receipt = str(sealed.holdout.receipt)
    _check(screen, flights, sealed, result, chance)
    with screen.bar("naive reuse of fresh samples") as report:
        result.naive_runs = naive_findings(
            flights,
            chance,
            runs=_FRESH_SAMPLES,
            questions=questions,
            sample=sample,
            progress=report,
        )
    show_comparison(screen, result)
    result.pictures = draw_pictures(result, flights, output)
    where = " and ".join(str(path) for path in result.pictures)
    screen.say("Picture", where or "none: matplotlib is missing (pip install matplotlib)")
    result.seconds = time.monotonic() - began
    screen.say("Try", f"holdfast status {folder} · holdfast check {folder}")
    screen.say("Time", f"{result.seconds:.0f} seconds")
    return result


def _seal(
    screen: Screen,
    folder: Path,
    flights: Flights,
    rows: Rows,
    questions: int,
    seed: int | None,
) -> Sealed:
    with screen.bar("planning"):
        made = demo_plan(questions)
    screen.say(
        "Plan",
        f"{made.queries:,} questions on {made.grid} points take {made.blocks} blocks. Promise: "
        f"every answer lies between the {percent(made.tail_low)} and the "
        f"{percent(1 - made.tail_high)} quantile of its estimator on fresh blocks, all at once "
        f"with probability {made.confidence:g}",
    )
    with screen.bar("sealing") as report:
        sealed = Sealed.create(
            folder,
            flights,
            rows,
            made,
            seed,
            lambda _, share: report(round(100 * share), 100),
        )
    manifest = sealed.holdout.spec.manifest
    screen.say(
        "Holdout",
        f"{folder}: {manifest.blocks} blocks of {manifest.block_units:,} flights, "
        f"{manifest.leftover_units:,} left over",
    )
    return sealed


def _search(
    screen: Screen,
    flights: Flights,
    rows: Rows,
    sealed: Sealed,
    questions: int,
) -> DemoResult:
    with screen.bar("searching, exact answers") as report:
        naive = Naive(flights, rows)
        naive_hunt = naive.search(questions, report)
    with screen.bar("searching, Holdfast's answers") as report:
        hunted = sealed.search(questions, report)
    manifest = sealed.holdout.spec.manifest
    result = DemoResult(
        population=flights.count,
        sample=manifest.units,
        questions=len(hunted.answers),
        blocks=manifest.blocks,
        block_units=manifest.block_units,
        leftover=manifest.leftover_units,
        certified=sealed.holdout.spec.seed is None,
        naive_hunt=naive_hunt,
        hunt=hunted,
        naive=naive.finding(naive_hunt),
        holdfast=sealed.finding(hunted.finding),
        everything=sealed.finding(()),
    )
    show_rounds(screen, result)
    return result


def _ask_more(screen: Screen, sealed: Sealed, result: DemoResult) -> None:
    """What else can be asked: delays, a question for the second time, a bad one, a guess."""
    finding = result.hunt.finding
    with screen.bar("asking for delays, SQL and Python"):
        each = {cell_words(cell): sealed.delays(cell) for cell in finding[:2]}
    result.delays = {
        name: {what: answer.value for what, answer in answers.items()}
        for name, answers in each.items()
    }
    words = "; ".join(
        f"{name}: average {d['average']:.0f} and median {d['median']:.0f} minutes (SQL), 90 % "
        f"quantile {d['90 % quantile']:.0f} (Python)"
        for name, d in result.delays.items()
    )
    screen.say("Delays", words)
    again = sealed.again(result.hunt.rounds[0][0])
    result.cached = again.cached
    first = cell_words(result.hunt.rounds[0][0])
    screen.say("Again", f"{first}, in other words: {percent(again.value, 1)} as before, free")
    result.refused = sealed.refused()
    screen.say("Refused", result.refused)
    for guess in (round(result.holdfast.value, 2), _HALF):
        verdict = sealed.verify(finding, guess, _TOLERANCE).verdict
        result.verdicts[f"{guess:g}"] = verdict
    words = ", ".join(f"{percent(float(guess))}? {said}" for guess, said in result.verdicts.items())
    screen.say(
        "Verify", f"flights on Holdfast's list that are late, ± {percent(_TOLERANCE)}: {words}"
    )
    status = sealed.holdout.status()
    (main,) = status.sets
    result.status = status.to_dict()
    screen.say(
        "Status",
        f"{status.answers:,} questions answered, {percent(main.used)} of the budget spent; the "
        f"rest buys {main.parts[0].questions_left:,} more",
    )


def _report(screen: Screen, holdout: Holdout, output: Path) -> Path:
    from holdfast.report.page import write_report

    path = output / "report.html"
    with screen.bar("writing the report"):
        write_report(holdout, path)
    screen.say("Report", str(path))
    return path


def _check(
    screen: Screen,
    flights: Flights,
    sealed: Sealed,
    result: DemoResult,
    chance: np.random.Generator,
) -> None:
    fresh = fresh_blocks(flights, sealed.units, chance)
    with screen.bar("checking every answer on fresh blocks") as report:
        checked = check_records(sealed.records, fresh, report)
    result.checked = checked
    screen.say(
        "Promise",
        f"{checked.kept} of {checked.answers} answers keep it: more than {percent(checked.tail)} "
        f"of {checked.blocks:,} fresh blocks from the population lie on either side (fewest: "
        f"{percent(checked.least)}); {checked.contained} of {checked.bars} bars contain the "
        "population's value",
        good=checked.kept == checked.answers and checked.contained == checked.bars,
    )


def _place(output: Path) -> Path:
    """Where the holdout goes. One that an earlier demo left there is removed, no other."""
    if output.exists() and not output.is_dir():
        raise InvalidInput("output", str(output), "a folder")
    output.mkdir(parents=True, exist_ok=True)
    folder = output / f"{NAME}.holdfast"
    if folder.exists():
        try:
            with Holdout.open(folder) as earlier:
                of_the_demo = earlier.spec.name == NAME
        except HoldfastError:
            of_the_demo = False
        if not of_the_demo:
            hint = "What is there was not left by an earlier demo."
            raise InvalidInput("output", str(output), f"a folder without {folder.name}", hint)
        shutil.rmtree(folder)
    return folder


# How often: the two searches, on one fresh sample of the population after another.


def naive_findings(
    flights: Flights,
    chance: np.random.Generator,
    *,
    runs: int,
    questions: int,
    sample: int,
    progress: Progress | None = None,
) -> list[Finding]:
    """What naive reuse finds in fresh samples."""
    found = []
    for done in range(runs):
        naive = Naive(flights, flights.sample(sample, chance))
        found.append(naive.finding(naive.search(questions)))
        if progress is not None:
            progress(done + 1, runs)
    return found


def count_runs(
    runs: int,
    *,
    questions: int = 300,
    sample: int = SAMPLE,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Runs:
    """Both searches on so many fresh samples; their holdouts are thrown away."""
    flights, chance, made = load_flights(), generator(seed), demo_plan(questions)
    found = []
    with _scratch() as folder:
        for done in range(runs):
            rows = flights.sample(sample, chance)
            naive = Naive(flights, rows)
            own = None if seed is None else (seed + done) % 2**64
            sealed = Sealed.create(folder / f"{done}.holdfast", flights, rows, made, own)
            with sealed.holdout:
                hunted = sealed.search(questions)
                finding = sealed.finding(hunted.finding)
            fresh = fresh_blocks(flights, sealed.units, chance)
            checked = check_records(sealed.records, fresh)
            found.append(Run(naive.finding(naive.search(questions)), finding, checked))
            if progress is not None:
                progress(done + 1, runs)
    return Runs(questions, tuple(found))


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for holdouts that nobody will ask again, with a state folder that forgets them."""
    before = os.environ.get("HOLDFAST_STATE")
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        os.environ["HOLDFAST_STATE"] = str(Path(folder) / "state")
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["HOLDFAST_STATE"]
            else:
                os.environ["HOLDFAST_STATE"] = before
