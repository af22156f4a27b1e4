"""Readings: what a score is about, as a code that is kept and as the words for people.

A score of predictions, or of a model, can be read in two ways (docs/explanation/promise.md). The
rule that made the predictions, on fresh rows: that needs that the rule was made without the
features of the sealed rows, for a rule that knows them may be right there and nowhere else. Or
these very rows, with fresh labels: that is not offered yet.
"""

from __future__ import annotations

__all__ = ["READINGS", "RULE", "reading_words"]

RULE = "rule-on-fresh-rows"
READINGS = {
    RULE: "this rule, on fresh rows (assumes that it was made without these rows' features)",
}


def reading_words(code: str | None) -> str | None:
    """The words for a code; None where there is nothing to read in two ways.

    >>> reading_words(RULE)
    "this rule, on fresh rows (assumes that it was made without these rows' features)"
    """
    return None if code is None else READINGS[code]
