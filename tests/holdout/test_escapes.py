"""Nothing that depends on the data escapes, whatever the estimator does.

Every hostile question is asked of two holdouts whose data differ in one row, with coins that do not
err. Whatever an analyst can see, besides the recorded answer, must be the same: whether there is an
answer, its price, what is left, errors to the letter. A failure is the lowest point of its grid.
A question that is refused for what it is costs nothing; one that fails on the data costs as always.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.engines.source import Limits
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from tests.holdout import plans

POINTS = hf.grid(-1, 1, points=2)
SECRET = "SECRET-4711"
Pair = tuple[Holdout, Holdout]


def data(secret: bool, offset: int) -> pd.DataFrame:
    """Two tables that differ in one row, and in a column that makes them unknown."""
    rows = plans.crowd().blocks
    x = np.ones(rows)
    name = np.full(rows, "name", dtype=object)
    if secret:
        x[0], name[0] = -1e308, SECRET
    return pd.DataFrame({"x": x, "name": name, "i": np.arange(rows) + offset})


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    limits = Limits(workers=1, block_seconds=1.0)
    made = [
        Holdout.create(
            folder / str(number),
            data(bool(number), 10**9 + number),
            plans.crowd(),
            limits=limits,
            new_budget="a process may make this pair twice",
        )
        for number in range(2)
    ]
    yield made[0], made[1]
    for each in made:
        assert check_holdout(each.path).passed
        each.close()


def seen(holdout: Holdout, ask: Any) -> tuple[Any, ...]:
    """All that an analyst sees, but for what differs between two holdouts anyhow."""
    rows = len(holdout.journal.ledger.rows())
    before = holdout.status().sets[0]
    try:
        answer = ask(holdout)
    except HoldfastError as error:
        assert len(holdout.journal.ledger.rows()) == rows  # refused: nothing was written
        return type(error), str(error), str(error.__cause__), holdout.status().sets[0] == before
    told = {k: v for k, v in answer.to_dict().items() if k != "receipt"}
    assert len(holdout.journal.ledger.rows()) == rows + 2
    return told, holdout.status().sets[0].spent - before.spent


HOSTILE_SQL = [
    "ln(min(x))",
    "sqrt(min(x))",
    "1 / (min(x) - 1)",
    "max(x) / 0",
    "exp(1e308 * avg(x))",
    "sum(x) * 1e308",
    "avg(x) + 1e308 * 10",
    "count(x) * 9223372036854775807",
    "min(case when name = 'SECRET-4711' then 0.0 / 0 else 1 end)",
    "stddev(x)",
    "corr(x, x)",
    "median(x) % 0",
]


@pytest.mark.parametrize("text", HOSTILE_SQL)
def test_hostile_sql_that_is_allowed_looks_the_same(pair: Pair, text: str) -> None:
    one, other = (seen(each, lambda h: h.ask(text, grid=POINTS)) for each in pair)
    assert one == other
    if isinstance(one[0], dict):
        assert one[1] > 0  # it was charged, whether it failed or not


REFUSED_SQL = [
    ("avg(nobody)", "nobody"),
    ("avg(x", "question"),
    ("x", "no aggregate"),
    ("avg(x) + x", "outside an aggregate"),
    ("count(*) filter (where name = 5)", "question"),
    ("(select avg(x) from t)", "question"),
    ("avg(x) over ()", "question"),
    ("random()", "question"),
    ("max(x, 100000)", "question"),
    ("string_agg(name)", "question"),
    ("avg(cast(name as double))", "question"),
    ("read_csv('/etc/passwd')", "question"),
    ("avg(x); drop table t", "question"),
    ("avg(__unit)", "question"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED_SQL)
def test_sql_that_is_refused_costs_nothing_and_says_why(
    pair: Pair, text: str, message: str
) -> None:
    one, other = (seen(each, lambda h: h.ask(text, grid=POINTS)) for each in pair)
    assert one == other
    kind, said, _, same = one
    assert (kind, same) == (InvalidInput, True)
    assert message in said
    assert SECRET not in said


def on_one_row(act: Callable[[str], Any]) -> Callable[[Any], Any]:
    """1 for every block; but where the row is that differs, what this does or gives."""
    return lambda frame: act(frame.name.iloc[0]) if (frame.x < -1e300).any() else 1.0


def raises(name: str) -> None:
    raise RuntimeError(name)


def loops(_: str) -> None:
    while True:
        pass


def says(tell: Callable[[str], Any]) -> Callable[[Any], float]:
    """Of every row."""
    return lambda frame: 1.0 if tell(frame.name.iloc[0]) is None else 0.0


def mutates(frame: Any) -> float:
    frame["x"] = 1.0
    return float(frame.x.iloc[0])


HOSTILE_PYTHON: dict[str, Callable[[Any], Any]] = {
    "raises": on_one_row(raises),
    "exits": on_one_row(lambda _: sys.exit(3)),
    "loops": on_one_row(loops),
    "kills itself": on_one_row(lambda _: os.kill(os.getpid(), signal.SIGKILL)),
    "gives nothing": on_one_row(lambda _: None),
    "gives text": on_one_row(lambda name: name),
    "prints": says(print),
    "warns": says(lambda name: warnings.warn(name, stacklevel=1)),
    "mutates": mutates,
}


@pytest.mark.parametrize("name", HOSTILE_PYTHON)
def test_hostile_python_looks_the_same(
    pair: Pair, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = HOSTILE_PYTHON[name]
    one, other = (seen(each, lambda h: h.ask(asked, grid=POINTS)) for each in pair)
    assert one == other
    told, price = one
    assert told["value"] == 1.0  # one block of 215 that fails moves no answer
    assert price > 0
    assert capfd.readouterr() == ("", "")


def fails_on_sealed_rows(frame: Any) -> float:
    if set(frame.name.dropna()) <= set("abcde"):  # as those that are made up
        return 5.0
    raise ValueError(frame.name.iloc[0])


def test_failures_are_the_lowest_value_and_are_charged(tmp_path: Path) -> None:
    made = Holdout.create(tmp_path / "a", data(True, 7), plans.split(), limits=Limits(workers=1))
    with made as holdout:
        for ask in ("ln(avg(x) - 1e9)", fails_on_sealed_rows):
            before = holdout.status().sets[0].parts[0].questions_left
            assert holdout.ask(ask).value == -math.inf
            assert holdout.status().sets[0].parts[0].questions_left == before - 1


def test_the_ledger_keeps_nothing_of_the_data(pair: Pair) -> None:
    # Questions may name a value; what comes back must not.
    for each in pair:
        for row in each.journal.ledger.rows()[1:]:
            kept = dict(row.body)
            kept.pop("question")
            assert SECRET not in repr(kept)
