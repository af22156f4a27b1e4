"""Submissions: predictions keyed by row id, checked before anything is asked or charged.

    reading        what was given, by its form: bytes, a file, a table, a dictionary
    csv_bytes      CSV              json_bytes  JSON
    parquet_bytes  Parquet, opened by parquet_worker in a process with little memory
    frames         tables and dictionaries in Python
    values         what one prediction must be, for a metric and a target
    matching       ids in any order, matched with the rows that they name

Every error is about the submission and the public ids alone. Which labels there are is not public:
a prediction of a label that no row has is a wrong prediction, and no error.
"""

from __future__ import annotations

from holdfast.holdout.submissions.reading import FORMS, most_bytes, read_submission
from holdfast.holdout.submissions.values import Wanted, values_by_row, wanted_for

__all__ = ["FORMS", "Wanted", "most_bytes", "read_submission", "values_by_row", "wanted_for"]
