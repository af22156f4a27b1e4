"""First the price, then the data: nobody touches them before the reservation is durable.

The time of an answer is hidden from the moment on when its price is paid; before it, nothing that
takes time may depend on the data.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import holdfast as hf
from holdfast.engines.source import Engines
from holdfast.errors import HoldfastError
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.tokens import Asker
from tests.holdout import plans
from tests.holdout.tables import sealed

POINTS = hf.grid(0, 1, points=8)
Asking = Callable[[Holdout], Any]
CASES: dict[str, tuple[Callable[[], Any], Asking]] = {
    "ask": (plans.mixed, lambda h: h.ask("avg(x)", grid=POINTS)),
    "interval": (plans.mixed, lambda h: h.interval("avg(x)", grid=POINTS)),
    "verify": (plans.mixed, lambda h: h.verify("avg(x)", 0.5)),
    "correct": (plans.mixed, lambda h: h.correct("avg(x)", 0.5, grid=POINTS)),
    "mean": (plans.mixed, lambda h: h.mean("c = 5")),
    "simple": (plans.simple, lambda h: h.ask("avg(x)", grid=POINTS)),
    "amplified": (plans.amplified, lambda h: h.ask("avg(x)", grid=POINTS)),
    "direct mean": (plans.direct, lambda h: h.mean("y = 1")),
    "filtered mean": (plans.medians, lambda h: h.mean("y = 1", where="g = 'a'")),
    "medians": (plans.medians, lambda h: h.mean("y = 1")),
    "rounds": (plans.rounds, lambda h: h.ask("avg(x)")),
    "split": (plans.split, lambda h: h.ask("avg(x)")),
}


@pytest.mark.parametrize("case", CASES)
def test_the_price_is_paid_before_the_data_are_touched(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, ask = CASES[case]
    touched: list[str] = []
    paced: list[str] = []
    pace: Any = SimpleNamespace(
        admit=lambda _: paced.append("admit"),
        begin=lambda: paced.append("begin"),
        wait=lambda: paced.append("wait"),
    )

    def watched(name: str) -> Callable[..., Any]:
        original = getattr(Engines, name)

        def touch(self: Engines, *words: Any, **more: Any) -> Any:
            touched.append(opened.journal.ledger.rows()[-1].kind)
            return original(self, *words, **more)

        return touch

    path = tmp_path / "study"
    sealed(path, make()).close()
    with Holdout.open(path) as opened:
        for name in ("values", "sums"):
            monkeypatch.setattr(Engines, name, watched(name))
        try:
            ask(opened.on_behalf(Asker("a"), pace))
        except HoldfastError as error:  # no case may pass by being refused
            pytest.fail(str(error))
    assert touched
    assert set(touched) == {"reserved"}
    assert paced[0] == "admit"  # before anything is charged
    steps = [paced[k : k + 2] for k in range(1, len(paced), 2)]
    assert steps
    assert all(step == ["begin", "wait"] for step in steps)
