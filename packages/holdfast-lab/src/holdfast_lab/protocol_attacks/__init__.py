"""An attack on every protocol: an adaptive analyst tries to break each promise, in many runs.

`python -m holdfast_lab.protocol_attacks --runs 300 --seed 1 --output PAGE.md`

    sample       blocks whose laws are known exactly, as a source
    collector    the analyst who learns labels, one a question
    aggregator   the analyst who adds up what many answers gave away
    base         what an attack is; what a textbook would compare counts with
    plans        the plans, kept in a file
    searches, intervals, means, guesses, correct, fresh, weights, mixture   the attacks
    results      many runs of each
    page         the evidence as a page
"""

from __future__ import annotations

from holdfast_lab.protocol_attacks.base import Attack, Run
from holdfast_lab.protocol_attacks.results import ATTACKS, Result, run_attack

__all__ = ["ATTACKS", "Attack", "Result", "Run", "run_attack"]
