"""The same job in other libraries: a private median of all values, for neighbours that replace one.

Each is called in the way that was fastest here, and set up outside the timing where its interface
allows it. OpenDP gets a numpy array (a list takes more than twenty times as long); its quantiles
from a tree of counts took longer. diffprivlib knows no candidates: it draws a real number.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["jobs", "versions"]

Floats = NDArray[np.float64]


def versions() -> dict[str, str]:
    found = {}
    for name in ("opendp", "diffprivlib"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def jobs(values: Floats, candidates: Floats, epsilon: float) -> dict[str, Callable[[], object]]:
    """What can be measured in this environment, by name; nothing where a library is missing."""
    found: dict[str, Callable[[], object]] = {}
    installed = versions()
    if "opendp" in installed:
        found |= _opendp(values, candidates, epsilon)
    if "diffprivlib" in installed:
        found["diffprivlib median"] = _diffprivlib(values, candidates, epsilon)
    return found


def _opendp(values: Floats, candidates: Floats, epsilon: float) -> dict[str, Callable[[], object]]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    sized = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=values.size)
    space = sized, dp.symmetric_distance()
    replaced = 2  # one removed, one added
    # The exponential mechanism (Gumbel noise) under zCDP, permute-and-flip under pure DP.
    exponential = dp.m.make_private_quantile(
        *space, dp.zero_concentrated_divergence(), candidates, alpha=0.5, scale=2 / epsilon
    )
    flipped = dp.m.make_private_quantile(
        *space, dp.max_divergence(), candidates, alpha=0.5, scale=2 / epsilon
    )
    assert abs(exponential.map(replaced) - epsilon**2 / 8) < 1e-9
    assert abs(flipped.map(replaced) - epsilon) < 1e-9
    return {
        "OpenDP private_quantile, Gumbel": lambda: exponential(values),
        "OpenDP private_quantile, permute-and-flip": lambda: flipped(values),
    }


def _diffprivlib(values: Floats, candidates: Floats, epsilon: float) -> Callable[[], object]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from diffprivlib import BudgetAccountant
        from diffprivlib.tools import median

    bounds = (float(candidates[0]), float(candidates[-1]))
    unlimited = BudgetAccountant()

    def run() -> object:
        return median(values, epsilon=epsilon, bounds=bounds, accountant=unlimited)

    return run
