"""Analysts: who asks. Each file is one published attack, or one of ours.

freedman            screens variables, then tests the survivors on the same rows
variable_selection  selects attributes with a holdout's help (the experiment of Thresholdout)
boosting            climbs a leaderboard by the vote of lucky submissions
quadratic           the strategy of Rogers et al. 2020: weighted votes, again and again
signs               adds up medians of fair signs, then asks for the median of the sum
subgroups           searches real flights for the worst subgroups
fair_bits           random bits, fast
"""

from __future__ import annotations

from typing import Any

from holdfast.lab.analysts.boosting import Boosting
from holdfast.lab.analysts.freedman import Freedman
from holdfast.lab.analysts.quadratic import Quadratic
from holdfast.lab.analysts.signs import SignAggregation
from holdfast.lab.analysts.subgroups import Subgroups
from holdfast.lab.analysts.variable_selection import VariableSelection

__all__ = ["ANALYSTS"]

ANALYSTS: dict[str, type[Any]] = {
    each.name: each
    for each in (Freedman, VariableSelection, Boosting, Quadratic, SignAggregation, Subgroups)
}
