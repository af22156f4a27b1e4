"""`python -m tools.crash`: the whole campaign, or as much of it as was asked for."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from tools.crash.account import Account, Subject
from tools.crash.crowd import crowd, retries
from tools.crash.holdout_writer import ToldWriter
from tools.crash.kills import kill_campaign
from tools.crash.page import Results, page, reported
from tools.crash.power import power_campaign
from tools.crash.speed import measure


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--cuts", type=int, default=2000)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--processes", type=int, default=32, help="at once on one budget")
    parser.add_argument("--requests", type=int, default=100, help="of each of them")
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--retries", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=20, help="of 100 rows, to measure speed")
    parser.add_argument("--subject", default="tools.crash.account:Account", help="MODULE:CLASS")
    parser.add_argument("--output", type=Path, help="write the page here instead of printing it")
    return parser.parse_args(words)


def _subject(name: str) -> type[Subject]:
    module, _, attribute = name.partition(":")
    found: type[Subject] = getattr(import_module(module), attribute)
    return found


def main(words: list[str]) -> int:
    """Run, write the page, and return the exit status."""
    wanted = _arguments(words)
    subject = _subject(wanted.subject)
    powered = ToldWriter if subject is ToldWriter else Account
    results = Results(
        killed=kill_campaign(subject, wanted.kills, wanted.writers),
        cut=power_campaign(wanted.cuts, subject=powered),
        control=power_campaign(wanted.cuts, durable=False, subject=powered),
        crowded=crowd(subject, wanted.processes, wanted.requests, wanted.budget),
        retried=retries(subject, 8, 5, wanted.retries),
        speed=measure(wanted.batches),
    )
    command = " ".join(["python -m tools.crash", *words])
    text = page(results, command, wanted.subject, datetime.now(UTC).date().isoformat())
    return reported(text, wanted.output, results.faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
