"""`python -m holdfast_lab.attacks`: run all attacks and write their page."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from holdfast_lab.attacks.protocols import ATTACKS, Attack
from holdfast_lab.attacks.results import Result, page, run_attack
from holdfast_lab.attacks.targets import write_plans

_PROGRAM = "python -m holdfast_lab.attacks"
_NOT_SUPPORTED = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the attacks; exit status 4 if they do not support the promises."""
    parser = argparse.ArgumentParser(prog=_PROGRAM, description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="runs of each attack")
    parser.add_argument("--seed", type=int, help="repeatable, and not certified")
    parser.add_argument("--only", metavar="NAME", help="attacks whose name contains this")
    parser.add_argument("--output", type=Path, help="the page to write; else standard output")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the page")
    parser.add_argument("--plans", action="store_true", help="make the kept plans again, no more")
    given = sys.argv[1:] if arguments is None else list(arguments)
    chosen = parser.parse_args(given)
    if chosen.plans:
        write_plans(wanted for attack in ATTACKS for wanted in attack.kept)
        return 0
    attacks = [attack for attack in ATTACKS if (chosen.only or "") in attack.name]
    if not attacks:
        parser.error(f"--only: no attack has {chosen.only!r} in its name")
    results = _run(attacks, chosen.runs, chosen.seed)
    command = shlex.join([*shlex.split(_PROGRAM), *given])
    text = page(results, command, datetime.now(UTC).date().isoformat(), chosen.seed)
    if chosen.output is not None:
        chosen.output.write_text(text, "utf-8")
    if chosen.json:
        sys.stdout.write(json.dumps([result.to_json() for result in results], indent=2) + "\n")
    elif chosen.output is None:
        sys.stdout.write(text)
    return 0 if all(result.passed for result in results) else _NOT_SUPPORTED


def _run(attacks: Sequence[Attack], runs: int, seed: int | None) -> list[Result]:
    from rich.console import Console
    from rich.progress import Progress

    results = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for attack in attacks:
            task = progress.add_task(attack.name, total=runs)
            step = partial(progress.advance, task)
            results.append(run_attack(attack, runs, seed, progress=step))
    return results


if __name__ == "__main__":
    sys.exit(main())
