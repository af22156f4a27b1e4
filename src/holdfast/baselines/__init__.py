"""Baselines: the textbook's mechanisms, done right, for comparison. None of them can certify.

    sparse_vector         verdicts on counts, ℓ refusals (Dwork, Naor et al. 2009; thm `sv-emp`)
    noisy_means           means with noise (Dwork et al. 2014, Bassily et al. 2016)
    thresholdout          the reusable holdout (Dwork et al. 2015)
    description_length    few transcripts and a union bound (Dwork et al. 2015)
    subsample_aggregate   the winsorised mean of estimates on blocks (Smith 2011)
    noise, sums           exact noise on exact whole sums
    uncertified           what all their answers are

Each module says what its theorem promises and what it does not. Every answer is `Uncertified`.
"""

from __future__ import annotations

from holdfast.baselines.description_length import (
    Confirmation,
    DescriptionLength,
    description_rows,
    false_discovery,
)
from holdfast.baselines.noisy_means import NoisyMean, NoisyMeans, rows_by_bassily, rows_by_dwork
from holdfast.baselines.sparse_vector import SparseVector, SparseVerdict, sv_emp_blocks
from holdfast.baselines.subsample_aggregate import Aggregate, subsample_aggregate
from holdfast.baselines.thresholdout import (
    Thresholdout,
    ThresholdoutAnswer,
    thresholdout_settings,
)
from holdfast.baselines.uncertified import Uncertified

__all__ = [
    "Aggregate",
    "Confirmation",
    "DescriptionLength",
    "NoisyMean",
    "NoisyMeans",
    "SparseVector",
    "SparseVerdict",
    "Thresholdout",
    "ThresholdoutAnswer",
    "Uncertified",
    "description_rows",
    "false_discovery",
    "rows_by_bassily",
    "rows_by_dwork",
    "subsample_aggregate",
    "sv_emp_blocks",
    "thresholdout_settings",
]
