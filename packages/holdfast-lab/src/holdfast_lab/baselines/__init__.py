"""Baselines: the textbook's mechanisms, done right, for comparison. None of them can certify.

    sparse_vector         verdicts on counts, ℓ refusals (Dwork, Naor et al. 2009; thm `sv-emp`);
                          Thresholdout, the reusable holdout (Dwork et al. 2015)
    noisy_means           means with noise (Dwork et al. 2014, Bassily et al. 2016)
    subsample_aggregate   the winsorised mean of estimates on blocks (Smith 2011)
    ladder                a leaderboard of the best so far (Blum & Hardt 2015)
    guess_and_check       guesses confirmed or corrected, exactly (Rogers et al. 2020);
                          description length: few transcripts, a union bound (Dwork et al. 2015)
    noise                 exact noise on exact whole sums, and what all answers are: `Uncertified`

Each module says what its theorem promises and what it does not. Every answer is `Uncertified`.
"""

from __future__ import annotations
