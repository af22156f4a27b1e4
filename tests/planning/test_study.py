"""Bad input: every message names the parameter, what is allowed, and what came."""

from __future__ import annotations

import math
from typing import Any

import pytest

import holdfast as hf

GOOD: dict[str, Any] = {"queries": 10, "grid": 4, "tail": 0.1}


WHOLE, MANY, UNIT, TAIL = "whole number from 1", "to 100,000,000", "(0, 1)", "(0, 0.5)"
WRONG: list[tuple[str, str, tuple[object, ...]]] = [
    ("queries", WHOLE, (0, -3, 2.5, math.nan, math.inf)),
    ("queries", MANY, (10**9, 10**400)),
    ("queries", "whole number", (True, "ten")),
    ("grid", "whole number from 2", (1, 2**63, math.nan)),
    ("tail", TAIL, (0.5, 0.7, 0, math.nan)),
    ("confidence", UNIT, (0, 1, 1.5, math.nan)),
    ("rows", WHOLE, (0, 1e30)),
    ("block_size", WHOLE, (0,)),
    ("blocks", WHOLE, (0,)),
    ("error", "(0, inf]", (-1, math.nan)),
    ("shape", "'mean', 'sd' or 'none'", ("median",)),
    ("target", UNIT, (1.0,)),
]


@pytest.mark.parametrize(
    ("parameter", "allowed", "value"),
    [(name, allowed, value) for name, allowed, values in WRONG for value in values],
)
def test_one_wrong_argument(parameter: str, allowed: str, value: object) -> None:
    with pytest.raises(hf.InvalidInput) as caught:
        hf.plan(**{**GOOD, parameter: value})
    assert caught.value.parameter == parameter
    assert allowed in str(caught.value)
    assert "got" in str(caught.value)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({}, "queries must be given"),
        ({"rows": 1000}, "block_size or error together with rows"),
        ({**GOOD, "rows": 10, "blocks": 10}, "one at a time"),
        ({**GOOD, "tails": (0.1, 0.9)}, "one at a time"),
        ({"queries": 1, "tails": (0.9, 0.1)}, "0 < a < b < 1"),
        ({"queries": 1, "tails": 0.3}, "0 < a < b < 1"),
        ({"queries": 1, "tails": (0.1, 0.4), "target": 0.6}, "between the tails"),
        ({"queries": 1, "target": 0.9}, "together with tails"),
        ({**GOOD, "error": 0.1, "shape": "none"}, "left out for shape 'none'"),
        ({**GOOD, "shape": "sd"}, "given with shape 'sd'"),
        ({**GOOD, "sd": 1.0}, "left out for shape 'mean'"),
        ({**GOOD, "sd": 1.0, "shape": "none"}, "left out for shape 'none'"),
        ({**GOOD, "low": 0.0, "shape": "none"}, "left out for shape 'none'"),
        ({**GOOD, "low": -1e308, "high": 1e308}, "finite number"),
        (
            {"queries": 1, "grid": hf.grid(0, 0.1, step=0.01), "high": 1.0},
            "covers the mean's range",
        ),
        ({"queries": 5, "error": 1e-12}, "10¹⁵ units"),
        ({"queries": 1, "blocks": 100, "error": 0.1}, "rows or block_size"),
        ({**GOOD, "low": 1.0, "high": 0.0}, "high must be"),
        ({"queries": 1, "grid": hf.grid([3])}, "at least 2 points"),
    ],
)
def test_contradictions(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(hf.InvalidInput, match=message.replace("(", r"\(")):
        hf.plan(**request_)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"queries": 100, "grid": 32, "tail": 0.25, "rows": 1000}, "Not enough rows"),
        ({"queries": 100, "grid": 32, "tail": 0.25, "blocks": 1000}, "Not enough blocks"),
        ({"queries": 100, "grid": 32, "blocks": 3}, "Not enough blocks"),
        ({"blocks": 3, "grid": 32, "tail": 0.25}, "Not enough data"),
        ({**GOOD, "error": 0.01}, "too coarse"),
        (
            {"queries": 10, "grid": 64, "tail": 0.1, "error": 0.05, "block_size": 5},
            "Not enough units",
        ),
        ({"queries": 500, "grid": 8, "rows": 10_000, "block_size": 10_001}, "Not enough rows"),
        ({"queries": 100, "error": 0.01, "block_size": 10}, "Not enough units"),
    ],
)
def test_impossible_combinations(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(hf.Infeasible) as caught:
        hf.plan(**request_)
    assert message in str(caught.value)
    assert caught.value.needed
    assert caught.value.remedy
