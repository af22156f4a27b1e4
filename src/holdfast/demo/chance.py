"""Where the demo's samples come from: the operating system's entropy, or a seed."""

from __future__ import annotations

import numpy as np

from holdfast.randomness import SeededEntropy, system_entropy

__all__ = ["generator"]


def generator(seed: int | None) -> np.random.Generator:
    """A generator of samples and of fresh blocks; the holdout has its own entropy."""
    source = system_entropy() if seed is None else SeededEntropy(seed)
    return np.random.default_rng([int(word) for word in source.words(4)])
