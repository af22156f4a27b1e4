"""The mathematics: pure functions, no data, no randomness, no input or output.

One bound, one function, one proof in `docs/explanation/theory`. Statements of the paper
(Feldman & Steinke 2017) are cited by their LaTeX label.
"""
