"""Scores of models and of predictions, as estimators.

    blockwise   the common metrics in numpy, for many blocks at once
    table       metrics by name: what they need, their range, and scikit-learn's for the rest
    score       a model or predictions with a metric, as a function of blocks
    rowwise     the term of a row, where a metric is the mean of one between 0 and 1

scikit-learn is loaded only where a metric that is not in the table asks for it.
"""

from __future__ import annotations

from holdfast.engines.local.metrics.score import score_estimator

__all__ = ["score_estimator"]
