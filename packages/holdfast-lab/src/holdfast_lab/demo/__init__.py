"""The demo: a hunt for the worst flights from New York, naive and on a holdout.

flights    the population: every flight of 2013, what is public of it and what is not
analyst    one strategy of search, whoever answers
naive      exact answers from the whole sample, and the textbook's interval
sealed     the same questions to a holdout
fresh      the promise, checked on blocks that are drawn from the population
story      all of it together; show and picture put it on a screen and on paper
"""

from __future__ import annotations

from holdfast_lab.demo.story import count_runs, run_demo

__all__ = ["count_runs", "run_demo"]
