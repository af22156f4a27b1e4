"""The universe: every multiset once, found again by its place, and no word about the data."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput
from holdfast.mechanisms import hypothesis as module
from holdfast.mechanisms.hypothesis import LARGEST, Universe, check_size

SHAPES = [(n, t) for n in range(1, 6) for t in range(1, 6)] + [(2, 40), (40, 2), (3, 20), (20, 3)]


def colexicographic(points: int, block_size: int) -> list[list[int]]:
    """All sorted rows, the largest unit compared first."""
    rows = itertools.combinations_with_replacement(range(points), block_size)
    return [list(row) for row in sorted(rows, key=lambda row: row[::-1])]


def test_every_multiset_is_listed_once_and_found_again_in_any_order() -> None:
    for points, block_size in SHAPES:
        universe = Universe.multisets(np.linspace(-1, 3, points), block_size)
        assert universe.rows(0, universe.size).tolist() == colexicographic(points, block_size)
        assert universe.rows(0, universe.size).dtype == np.int32
        blocks = universe.blocks(0, universe.size)
        shuffled = np.random.default_rng(1).permuted(blocks, axis=1)
        assert universe.locate(shuffled).tolist() == list(range(universe.size))


@settings(max_examples=60)
@given(st.data())
def test_large_universes_too(data: st.DataObject) -> None:
    """Places of any stretch, by units or by points, up to millions of elements."""
    points, block_size = data.draw(
        st.sampled_from(
            [(2, 30_000), (30_000, 1), (3, 3_000), (4_000, 2), (40, 5), (6, 40), (12, 11)]
        )
    )
    universe = Universe.multisets(np.arange(points), block_size)
    start = data.draw(st.integers(0, universe.size - 1))
    stop = min(universe.size, start + 5)
    rows = universe.rows(start, stop)
    assert np.all(np.diff(rows.astype(np.int64), axis=1) >= 0)
    assert universe.locate(rows[:, ::-1].copy()).tolist() == list(range(start, stop))
    assert universe.size == math.comb(points + block_size - 1, block_size)


def test_points_are_the_universe_of_single_units() -> None:
    universe = Universe.points([3, 1, 2])
    assert universe.blocks(0, 3).tolist() == [[1], [2], [3]]
    for blocks in (np.array([2, 3]), np.array([[2], [3]]), [2, 3], [[2], [3]], (2.0, [3.0])):
        assert universe.locate(blocks).tolist() == [1, 2]
    assert repr(universe) == "<Universe of 3 blocks: 1 of 3>"
    for start, stop in ((0, 4), (-1, 1), (2, 1)):
        with pytest.raises(InvalidInput):
            universe.rows(start, stop)
    assert universe.rows(1, 1).shape == (0, 1)


def test_the_points_cannot_be_changed() -> None:
    given_points = np.array([1.0, 2.0])
    universe = Universe.points(given_points)
    given_points[0] = 7
    assert universe.units.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        universe.units[0] = 7


# Projection.


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=12, unique=True),
    st.lists(st.floats(-60, 60), min_size=1, max_size=20),
)
def test_a_number_counts_as_the_nearest_point(points: list[int], values: list[float]) -> None:
    universe = Universe.points(points)
    found = universe.units[universe.locate(np.array(values))]
    for value, point in zip(values, found.tolist(), strict=True):
        assert point == min(
            sorted(points), key=lambda p: abs(p - Fraction(value))
        )  # of two the lower


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=9, unique=True)
)
def test_every_point_counts_as_itself(points: list[float]) -> None:
    """Also neighbouring floats, whose middle is one of them, and the largest ones."""
    near = sorted({math.nextafter(p, math.inf) for p in points if p < 1e308} | set(points))
    universe = Universe.points(near)
    assert universe.locate(universe.units).tolist() == list(range(len(near)))


def test_failures_count_as_the_lowest_point() -> None:
    universe = Universe.points([5, -2, 7])
    values = [math.nan, None, "7", object(), [1, 2], 10**400, -(10**400), math.inf, 6.9]
    assert universe.locate(values).tolist() == [0, 0, 0, 0, 0, 2, 0, 2, 2]
    assert universe.locate(np.array([math.nan, math.inf, -math.inf])).tolist() == [0, 2, 0]
    assert universe.locate(np.array(["5", "x"])).tolist() == [0, 0]
    assert universe.locate(np.ma.array([5, 7], mask=[False, True])).tolist() == [1, 0]


def test_a_unit_that_fails_does_not_spoil_its_block() -> None:
    universe = Universe.multisets([0, 1, 2], 2)
    blocks = universe.blocks(0, universe.size).tolist()
    assert blocks[universe.locate(np.array([[math.nan, 2.0]]))[0]] == [0, 2]
    assert blocks[universe.locate([[2, None]])[0]] == [0, 2]
    for wrong in ([1, 1, 1], [1], 1, "12", None, [[1], [1]], [[1, 1], [1]]):
        assert blocks[universe.locate([wrong])[0]] == [0, 0]


class Hostile:
    def __array__(self, *_: object, **__: object) -> NDArray[Any]:
        raise RuntimeError("a secret")

    def __len__(self) -> int:
        raise RuntimeError("a secret")

    def __float__(self) -> float:
        raise RuntimeError("a secret")


@given(
    st.lists(
        st.recursive(
            st.none() | st.floats() | st.integers() | st.text(max_size=2) | st.builds(Hostile),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=6,
        ),
        max_size=5,
    ),
    st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2)]),
)
def test_no_list_of_data_raises(blocks: list[object], shape: tuple[int, int]) -> None:
    columns, block_size = shape
    points = [0, 1, 2] if columns == 1 else [[0, 0], [0, 1], [1, 0]]
    universe = Universe.multisets(points, block_size)
    with np.errstate(all="raise"):
        places = universe.locate(blocks)
    assert places.dtype == np.int64
    assert len(places) == len(blocks)
    assert all(0 <= place < universe.size for place in places)


def test_only_the_shape_of_an_array_is_refused() -> None:
    universe = Universe.multisets([0, 1], 3)
    for shape in ((4,), (4, 2), (4, 3, 1), ()):
        with pytest.raises(InvalidInput, match=r"\(m, 3\)"):
            universe.locate(np.zeros(shape))
    assert universe.locate(np.zeros((0, 3))).tolist() == []
    assert universe.locate([]).tolist() == []


# Points that are rows.


@given(
    st.lists(
        st.tuples(st.integers(-2, 2), st.floats(-2, 2), st.booleans()), unique=True, min_size=1
    ),
    st.lists(st.tuples(st.integers(-2, 2), st.floats(-2, 2), st.booleans())),
)
def test_rows_are_matched_exactly(points: list[Any], others: list[Any]) -> None:
    try:
        universe = Universe.points(points)
    except InvalidInput:  # equal after all, such as 0 and −0
        assert len({tuple(x + 0.0 for x in p) for p in points}) < len(points)
        return
    wanted = [*points, *others]
    expected = [points.index(x) if x in points else 0 for x in wanted]
    assert universe.locate(np.array(wanted, float)).tolist() == expected
    assert universe.locate(wanted).tolist() == expected


def test_blocks_of_rows() -> None:
    points = np.array([[1, 1], [0, 1], [1, 0], [0, 0]])
    universe = Universe.multisets(points, 2)
    blocks = universe.blocks(0, universe.size)
    assert blocks.shape == (10, 2, 2)
    assert universe.locate(blocks[:, ::-1]).tolist() == list(range(10))
    assert universe.locate([block.tolist() for block in blocks]).tolist() == list(range(10))
    agree = universe.evaluate(lambda x: (x[:, :, 0] == x[:, :, 1]).mean(axis=1))
    assert agree.tolist() == [np.mean([a == b for a, b in block]) for block in blocks.tolist()]
    unknown = np.array([[[1.0, 7.0], [math.nan, 0.0]]])
    assert blocks[universe.locate(unknown)[0]].tolist() == [[1, 1], [1, 1]]


# The size.


def test_what_does_not_fit_is_refused_before_it_is_allocated() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(Infeasible) as refused:
            Universe.multisets(range(1000), 4)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
    text = str(refused.value)
    count = math.comb(1003, 4)
    for part in (f"{count:,}", f"{count * 32 / 1e9:,.1f} GB", "2.1 GB", "67,108,864"):
        assert part in text
    for way_out in ("coarser points", "smaller blocks", "separate searches"):
        assert way_out in text
    with pytest.raises(Infeasible, match="more than 1e\\+30 elements"):
        Universe.multisets(range(1000), 900)
    assert check_size(LARGEST) == LARGEST
    with pytest.raises(Infeasible):
        check_size(LARGEST + 1)


@pytest.mark.parametrize(
    ("points", "block_size", "parameter"),
    [
        ([], 1, "points"),
        (["a", "b"], 1, "points"),
        ([[1, 2], [3]], 1, "points"),
        ([[[1]]], 1, "points"),
        ([1, 1], 1, "points"),
        ([0.0, -0.0], 1, "points"),
        ([[1, 2], [1, 2]], 1, "points"),
        ([1.0, math.nan], 1, "points"),
        ([1.0, math.inf], 1, "points"),
        ([2**53, 2**53 + 1], 1, "points"),
        ([2**63 - 1], 1, "points"),
        (5, 1, "points"),
        ([1, 2], 0, "block_size"),
        ([1, 2], 1.5, "block_size"),
    ],
)
def test_what_is_no_universe(points: object, block_size: int, parameter: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Universe.multisets(points, block_size)
    assert refused.value.parameter == parameter


# Values of estimators.


@pytest.fixture(params=[1, 7, 10**6])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(module, "_CHUNK", request.param)
    return int(request.param)


def test_values_come_in_the_order_of_the_universe(chunk: int) -> None:
    universe = Universe.multisets([0.5, 2, 10], 3)
    rows = colexicographic(3, 3)
    expected = [float(np.median(universe.units[row])) for row in rows]
    seen: list[tuple[int, int]] = []
    values = universe.evaluate(
        lambda blocks: np.median(blocks, axis=1), progress=lambda a, b: seen.append((a, b))
    )
    assert values.tolist() == expected
    assert (
        universe.evaluate(lambda block: float(np.median(block)), batch=False).tolist() == expected
    )
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (10, 10)
    assert {total for _, total in seen} == {10}
    assert len(seen) == -(-10 // max(1, chunk // 3))


def test_failures_are_nan() -> None:
    universe = Universe.points([0, 1, 2])

    def fails(block: NDArray[np.int64]) -> object:
        if block[0] == 1:
            raise ZeroDivisionError
        return None if block[0] == 2 else 7

    assert np.isnan(universe.evaluate(fails, batch=False)).tolist() == [False, True, True]
    with pytest.raises(InvalidInput, match="failure on every block"):
        universe.evaluate(lambda block: [][0], batch=False)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = universe.evaluate(lambda blocks: blocks[:, 0] / (blocks[:, 0] - 1.0))
    assert values.tolist() == [0.0, math.inf, 2.0]


def test_an_estimator_of_the_wrong_shape_is_refused_and_a_broken_one_shows_its_error() -> None:
    universe = Universe.multisets([0, 1], 2)
    for wrong in (np.mean, lambda blocks: blocks, lambda blocks: blocks.mean(axis=0)):
        with pytest.raises(InvalidInput, match="axis 1"):
            universe.evaluate(wrong)
    with pytest.raises(IndexError):
        universe.evaluate(lambda blocks: [][0])
