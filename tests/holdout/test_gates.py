"""Gates that are exact, on blocks of their own: a pass is free, and all else is as with looks."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from holdfast.errors import InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.state import can_be_asked
from holdfast.protocols.exact import exact_verdicts
from tests.holdout.tables import table


def sealed(path: Path, plans: list[Any], rows: int) -> tuple[Holdout, pd.DataFrame]:
    frame = table(rows).assign(row=range(rows), y=[k % 2 for k in range(rows)])
    return Holdout.create(path, frame, plans, ids="row", target="y"), frame


def keyed(frame: pd.DataFrame, values: Any) -> dict[int, int]:
    return dict(zip(frame["row"], values, strict=True))


def test_gates_with_blocks_of_their_own(tmp_path: Path) -> None:
    plan = exact_verdicts(20, 3, 1e-6, 1 - 1e-6, sides=1)
    holdout, frame = sealed(tmp_path / "h", [plan], 1_000)
    right, wrong = keyed(frame, frame.y), keyed(frame, 1 - frame.y)
    with holdout:
        first = holdout.gate(right, at_least=0.9)
        assert (first.passed, first.verdict.price, first.verdict.refusals_left) == (True, 0, 3)
        for threshold in (0.8, 0.9):
            assert holdout.gate(wrong, at_least=threshold).verdict.price == 1
        again = holdout.gate(right, at_least=0.9).verdict
        assert (again.cached, again.refusals_left, again.budget_left) == (True, 1, 1.0)
        [part] = holdout.status().sets[0].parts
        assert (part.name, part.protocol, part.refusals_left) == ("gate", "exact-verify", 1)
        assert part.questions_left == 17
        before = holdout.receipt
        with pytest.raises(InvalidInput, match="planned for gate"):
            holdout.score(right)
        for ask in (holdout.verify, partial(holdout.price, "verify")):
            with pytest.raises(InvalidInput, match="covers one-sided guesses"):
                ask("avg(x)", guess=0.5)
        assert holdout.receipt == before
        assert check_holdout(holdout.path).passed


def test_equalities_are_not_asked_of_gates(tmp_path: Path) -> None:
    plans = [
        exact_verdicts(20, 3, 1e-6, 1 - 1e-6, 0.98, sides=1),
        exact_verdicts(5, 1, 1e-3, 0.4, 0.97),
    ]
    holdout, _ = sealed(tmp_path / "h", plans, 20_000)
    with holdout:
        assert holdout.price("verify", "avg(y)", guess=0.5).part == "exact-verify"
        assert holdout.verify("avg(y)", 0.5).tail_high == 0.4
        with pytest.raises(InvalidInput, match="gates of scores"):
            holdout.verify("avg(y)", -1.0, claim="at least", by="gate")
        assert can_be_asked(holdout.spec)["verbs"]["verify"] == ["exact-verify"]
