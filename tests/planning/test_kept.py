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


def leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Where the numbers, words and truths are in nested data, and what they are."""
    if isinstance(data, dict):
        return [found for key, value in data.items() for found in leaves(value, (*path, key))]
    if isinstance(data, list):
        return [found for key, value in enumerate(data) for found in leaves(value, (*path, key))]
    return [(path, data)] if path[-1] != "format" else []


def changed(data: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    copy = json.loads(json.dumps(data))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return copy


@pytest.mark.parametrize("kind", KINDS)
def test_another_type_is_refused(kind: str) -> None:
    data = json.loads(json.dumps(KINDS[kind]().kept()))
    for path, value in leaves(data):
        others: list[object] = [None, [value], 1.5 if isinstance(value, str) else str(value)]
        others += [1] if isinstance(value, bool) else [True]
        others += [float(value)] if type(value) is int and "parts" in path else []
        for other in others:
            with pytest.raises(InvalidInput):
                plan_from_dict(changed(data, path, lambda _, other=other: other))  # type: ignore[misc]


PROMISES = [  # what makes more of the same blocks
    ("told", ("confidence",), lambda _: 0.5),
    ("split", ("queries",), lambda count: 100 * count),
    ("split", ("blocks_per_question",), lambda blocks: blocks // 2),
    ("rounds", ("sets",), lambda count: count + 1),
    ("rounds", ("set_blocks",), lambda blocks: blocks // 3),
    ("rounds", ("confidence",), lambda _: 0.99),
    ("rounds", ("verification", "plan", "budget"), lambda budget: 2 * budget),
    ("mixed", ("plan", "budget"), lambda budget: 2 * budget),
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
