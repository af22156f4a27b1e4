"""Responders: who holds the rows, and answers. Each file is one of them, or one kind.

naive            the sample's own mean or median
split            rows that nobody has used
noisy            Gaussian or Laplace noise on means
thresholdout     the reusable holdout, as in its authors' experiment
ladder           the best score so far
guess_and_check  guesses confirmed or corrected, without noise
sparse_vector    guesses confirmed or refused, with noise
holdfast         every protocol of Holdfast
noisy_medians    medians with textbook noise; experiments name them themselves
translate        from medians to means and back
draws            noise in floats, fast
watched          what a responder says, beside what the rows say
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.lab.conversation import Responder, Terms
from holdfast.lab.responders.guess_and_check import GuessAndCheck
from holdfast.lab.responders.holdfast import HOLDFAST
from holdfast.lab.responders.ladder import Ladder
from holdfast.lab.responders.naive import Naive
from holdfast.lab.responders.noisy import Gaussian, Laplace
from holdfast.lab.responders.sparse_vector import SparseVector
from holdfast.lab.responders.split import Split
from holdfast.lab.responders.thresholdout import Thresholdout
from holdfast.lab.responders.watched import Watched

__all__ = ["RESPONDERS", "Watched"]

RESPONDERS: dict[str, Callable[[Terms], Responder]] = {
    each.name: each
    for each in (
        Naive,
        Split,
        Gaussian,
        Laplace,
        Thresholdout,
        Ladder,
        GuessAndCheck,
        SparseVector,
    )
} | HOLDFAST
