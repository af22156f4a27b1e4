"""Noise for the lab, many draws at once.

`holdfast.baselines.noise` is exact and takes 0.05 to 0.1 ms a draw: minutes for a million
questions. The lab's responders certify nothing, so they add floats. What exact noise protects from,
an analyst who reads the lowest bits of an answer, is not among the lab's analysts.
"""

from __future__ import annotations

import numpy as np

from holdfast.randomness import Entropy

__all__ = ["floats_from"]


def floats_from(entropy: Entropy) -> np.random.Generator:
    """A generator of floats, seeded by four words of the entropy.

    >>> from holdfast.randomness import SeededEntropy
    >>> floats_from(SeededEntropy(1)).normal(size=3).round(3).tolist()
    [1.141, -0.774, -0.83]
    """
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy.words(4).tolist())))
