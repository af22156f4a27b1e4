"""Baselines: the textbook's mechanisms, done right, for comparison. None of them can certify.

    sparse_vector         verdicts on counts, ℓ refusals (Dwork, Naor et al. 2009; thm `sv-emp`)
    noisy_means           means with noise (Dwork et al. 2014, Bassily et al. 2016)
    thresholdout          the reusable holdout (Dwork et al. 2015)
    description_length    few transcripts and a union bound (Dwork et al. 2015)
    subsample_aggregate   the winsorised mean of estimates on blocks (Smith 2011)
    ladder                a leaderboard of the best so far (Blum & Hardt 2015)
    guess_and_check       guesses confirmed or corrected, exactly (Rogers et al. 2020)
    published             widths that papers prove for k means on n rows, as numbers
    noise, sums           exact noise on exact whole sums
    uncertified           what all their answers are

Each module says what its theorem promises and what it does not. Every answer is `Uncertified`.
"""

from __future__ import annotations

from holdfast_lab.baselines.guess_and_check import (
    CheckedGuess,
    Confirmation,
    DescriptionLength,
    GuessAndCheck,
    check_half_width,
    check_rows,
    description_rows,
    false_discovery,
)
from holdfast_lab.baselines.ladder import Ladder, LadderScore, ladder_error, ladder_step
from holdfast_lab.baselines.noise import Uncertified
from holdfast_lab.baselines.noisy_means import NoisyMean, NoisyMeans, rows_by_bassily, rows_by_dwork
from holdfast_lab.baselines.sparse_vector import (
    SparseVector,
    SparseVerdict,
    Thresholdout,
    ThresholdoutAnswer,
    sv_emp_blocks,
    thresholdout_settings,
)
from holdfast_lab.baselines.subsample_aggregate import Aggregate, subsample_aggregate

__all__ = [
    "Aggregate",
    "CheckedGuess",
    "Confirmation",
    "DescriptionLength",
    "GuessAndCheck",
    "Ladder",
    "LadderScore",
    "NoisyMean",
    "NoisyMeans",
    "SparseVector",
    "SparseVerdict",
    "Thresholdout",
    "ThresholdoutAnswer",
    "Uncertified",
    "check_half_width",
    "check_rows",
    "description_rows",
    "false_discovery",
    "ladder_error",
    "ladder_step",
    "rows_by_bassily",
    "rows_by_dwork",
    "subsample_aggregate",
    "sv_emp_blocks",
    "thresholdout_settings",
]
