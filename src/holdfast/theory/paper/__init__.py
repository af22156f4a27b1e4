"""Feldman & Steinke (2017) as printed: every statement that has constants, as a pure function.

The reference planner: what the same promise costs by the paper's own theorems. Where a printed
statement and its proof differ, the function follows the proof and says so; the list is in
docs/explanation/deviations.md, and docs/explanation/paper-map.md leads from each label to its
function and test. Natural logarithms throughout. `failure` is the paper's β, `queries` its k,
`grid_size` its |T| = r, `blocks` its m, `tail` its ρ, `refusals` its ℓ in verification.
"""

from __future__ import annotations

from holdfast.theory.paper.estimation import (
    SimpleSize,
    adaptive_iqr,
    adaptive_simple,
    intro_sq_error,
    intro_var_error,
    intro_var_grid_size,
    mad_range_error,
    mad_range_grid_size,
)
from holdfast.theory.paper.generalization import (
    GEN_ADAPT_EPSILON,
    Stability,
    escape_probability,
    expectation_gap,
    gen,
    gen_adapt,
    gen_error,
    indicator_deviation,
    selected_overfit,
)
from holdfast.theory.paper.median import (
    exponential_median_blocks,
    exponential_median_epsilon,
    exponential_medians_epsilon,
    noisy_search_blocks,
)
from holdfast.theory.paper.privacy import (
    composition,
    interactive_composition,
    query_epsilon,
    smallest_delta,
)
from holdfast.theory.paper.tails import TailSize, adaptive_tails
from holdfast.theory.paper.verification import (
    VerificationSize,
    sparse_vector_blocks,
    sv,
    sv_stability,
)

__all__ = [
    "GEN_ADAPT_EPSILON",
    "SimpleSize",
    "Stability",
    "TailSize",
    "VerificationSize",
    "adaptive_iqr",
    "adaptive_simple",
    "adaptive_tails",
    "composition",
    "escape_probability",
    "expectation_gap",
    "exponential_median_blocks",
    "exponential_median_epsilon",
    "exponential_medians_epsilon",
    "gen",
    "gen_adapt",
    "gen_error",
    "indicator_deviation",
    "interactive_composition",
    "intro_sq_error",
    "intro_var_error",
    "intro_var_grid_size",
    "mad_range_error",
    "mad_range_grid_size",
    "noisy_search_blocks",
    "query_epsilon",
    "selected_overfit",
    "smallest_delta",
    "sparse_vector_blocks",
    "sv",
    "sv_stability",
]
