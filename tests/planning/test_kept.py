"""Plans as plain data: every kind comes back, and nothing that was changed does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.protocols.plans import SetPlan, plan_from_dict
from tests.holdout import plans

KINDS: dict[str, Callable[[], SetPlan]] = {
    "mixed": plans.mixed,
    "amplified": plans.amplified,
    "direct": plans.direct,
    "told": plans.told,
    "weights": plans.weights,
    "rounds": plans.rounds,
    "split": plans.split,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_through_json(kind: str) -> None:
    plan = KINDS[kind]()
    data = json.loads(json.dumps(plan.kept()))
    again = plan_from_dict(data)
    assert again == plan
    assert type(again) is type(plan)
    assert again.kept() == data


def numbers(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the numbers are in nested data."""
    if isinstance(data, dict):
        return [found for key, value in data.items() for found in numbers(value, (*path, key))]
    if isinstance(data, list):
        return [found for key, value in enumerate(data) for found in numbers(value, (*path, key))]
    number = isinstance(data, int | float) and not isinstance(data, bool)
    return [path] if number and path[-1] != "format" else []


def changed(data: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    copy = json.loads(json.dumps(data))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return copy


@pytest.mark.parametrize("kind", KINDS)
def test_another_type_of_number_is_refused(kind: str) -> None:
    data = json.loads(json.dumps(KINDS[kind]().kept()))
    for path in numbers(data):
        for change in (str, lambda _: None, lambda _: [1], lambda _: True):
            with pytest.raises(InvalidInput):
                plan_from_dict(changed(data, path, change))


PROMISES = [  # what makes more of the same blocks
    ("told", ("confidence",), lambda _: 0.5),
    ("split", ("queries",), lambda count: 100 * count),
    ("split", ("blocks_per_question",), lambda blocks: blocks // 2),
    ("rounds", ("sets",), lambda count: count + 1),
    ("rounds", ("set_blocks",), lambda blocks: blocks // 3),
    ("rounds", ("confidence",), lambda _: 0.99),
    ("rounds", ("verification", "plan", "budget"), lambda budget: 2 * budget),
    ("mixed", ("plan", "budget"), lambda budget: 2 * budget),
    ("mixed", ("plan", "confidence"), lambda _: 0.99),
    ("mixed", ("plan", "blocks"), lambda blocks: blocks // 2),
    ("mixed", ("plan", "parts", 0, "looks"), lambda looks: 10**6 * looks),
    ("mixed", ("plan", "parts", 2, "refusals"), lambda _: 0),
    ("direct", ("plan", "parts", 0, "half_width"), lambda _: 0.001),
    ("amplified", ("plan", "parts", 0, "subblocks"), lambda _: 3),
    ("weights", ("plan", "parts", 0, "universe"), lambda _: 10**9),
]


@pytest.mark.parametrize(
    ("kind", "path", "change"),
    PROMISES,
    ids=[f"{k}-{p[-1]}-{n}" for n, (k, p, _) in enumerate(PROMISES)],
)
def test_a_plan_that_promises_more_than_it_can_is_refused(
    kind: str, path: tuple[Any, ...], change: Callable[[Any], Any]
) -> None:
    data = json.loads(json.dumps(KINDS[kind]().kept()))
    plan_from_dict(data)
    with pytest.raises(InvalidInput):
        plan_from_dict(changed(data, path, change))


@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_neither_more_nor_fewer(kind: str) -> None:
    data = json.loads(json.dumps(KINDS[kind]().kept()))
    for key in data:
        with pytest.raises(InvalidInput):
            plan_from_dict({name: value for name, value in data.items() if name != key})
    with pytest.raises(InvalidInput):
        plan_from_dict({**data, "extra": 1})
    with pytest.raises(InvalidInput):
        plan_from_dict({**data, "kind": "other"})


def test_rounds_are_verified_by_a_plan_for_guesses() -> None:
    data = plans.rounds().kept()
    with pytest.raises(InvalidInput):
        plan_from_dict({**data, "verification": plans.split().kept()})
