"""What every engine must do, in every layout of a store: the names of the checks are stable.

A test class for each engine inherits from `EngineContract` and says how to open one and in which
language it is asked. What each check finds is the support table of the documentation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.engines.python.estimator import local_estimator
from holdfast.engines.source import Engines, Limits
from holdfast.errors import Damaged, InvalidInput
from holdfast.protocols.source import UNIT, WEIGHT_SCALE
from tests.engines.contract_stores import BAD, BLOCKS, EMPTY, LAYOUTS, Stored, stored
from tests.engines.questions import IN_ORDER, PYTHON, QUESTIONS, TERMS, Language, Question

MEAN = QUESTIONS["mean"]
SLOW_LAYOUT = "shards, id units"  # a late failure costs its seconds: not in every layout


class Asked:
    """A store and its engines, and what every engine must say of it."""

    def __init__(self, given: Stored, engines: Engines, language: Language, layout: str) -> None:
        self.given, self.engines, self.language, self.layout = given, engines, language, layout

    def plain(self, question: Question) -> NDArray[np.float64]:
        """What DuckDB says of one file on this machine, or the function itself of its rows."""
        if self.language is PYTHON:
            return self.by_pandas(question)
        return self._duckdb.values(self.estimator(question), 0, BLOCKS)

    @cached_property
    def _duckdb(self) -> Engines:
        return Engines(self.given.whole, Limits(workers=1))

    def values(self, question: Question, start: int = 0, stop: int = BLOCKS) -> NDArray[np.float64]:
        return self.engines.values(self.estimator(question), start, stop)

    def estimator(self, question: Question) -> Any:
        return self.language.estimator(question, self.given.store)

    def by_pandas(self, question: Question) -> NDArray[np.float64]:
        return np.array([question.by_pandas(frame) for frame in self.given.frames])

    def close(self) -> None:
        self.engines.close()
        self._duckdb.close()


class EngineContract(ABC):
    language: ClassVar[Language]

    @classmethod
    @abstractmethod
    def open(cls, given: Stored, limits: Limits, request: pytest.FixtureRequest) -> Engines:
        """Engines of a store."""

    @pytest.fixture(scope="class", params=LAYOUTS)
    @classmethod
    def asked(
        cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Asked]:
        given = stored(tmp_path_factory.mktemp("contract"), request.param)
        engines = cls.open(given, Limits(workers=1), request)
        asked = Asked(given, engines, cls.language, request.param)
        yield asked
        asked.close()

    @pytest.mark.parametrize("name", QUESTIONS)
    def test_values_are_those_of_pandas(self, asked: Asked, name: str) -> None:
        question = QUESTIONS[name]
        values = asked.values(question)
        assert values.dtype == np.float64
        np.testing.assert_allclose(values, asked.by_pandas(question), rtol=1e-12)

    @pytest.mark.parametrize("name", ["some rows", "a sum of unlike numbers"])
    def test_every_bit_is_that_of_one_file_on_one_machine(self, asked: Asked, name: str) -> None:
        assert asked.values(QUESTIONS[name]).tobytes() == asked.plain(QUESTIONS[name]).tobytes()

    @pytest.mark.parametrize("name", TERMS)
    def test_sums_are_those_of_pandas(self, asked: Asked, name: str) -> None:
        function, where = asked.language.term(name, asked.given.store)
        for bounds in (UNIT, (-1.0, 3.0)) if name.startswith("number") else (UNIT,):
            sums = asked.engines.sums(function, where, 0, BLOCKS, bounds)
            assert sums.dtype == np.int64
            assert sums.tolist() == [_terms(f, name, bounds).sum() for f in asked.given.frames]

    @pytest.mark.parametrize("name", TERMS)
    def test_terms_are_those_of_pandas_and_add_up(self, asked: Asked, name: str) -> None:
        function, where = asked.language.term(name, asked.given.store)
        for bounds in (UNIT, (-1.0, 3.0)) if name.startswith("number") else (UNIT,):
            terms = asked.engines.sums(function, where, 0, BLOCKS, bounds, terms=True)
            assert terms.dtype == np.int64
            wanted = np.concatenate([_terms(f, name, bounds) for f in asked.given.frames])
            assert terms.tolist() == wanted.tolist()
            sums = asked.engines.sums(function, where, 0, BLOCKS, bounds)
            assert terms.reshape(BLOCKS, -1).sum(axis=1).tolist() == sums.tolist()

    def test_the_term_of_nothing_is_1(self, asked: Asked) -> None:
        terms = asked.engines.sums(None, None, 1, 3, terms=True)
        assert terms.tolist() == [WEIGHT_SCALE] * (2 * asked.given.store.units)
        sums = asked.engines.sums(None, None, 1, 3)
        assert sums.tolist() == [WEIGHT_SCALE * asked.given.store.units] * 2

    def test_terms_of_two_questions_are_of_the_same_units(self, asked: Asked) -> None:
        """However blocks are asked: together, from the middle of a shard, or one by one."""
        number, _ = asked.language.term("number", asked.given.store)
        _, some = asked.language.term("count of some rows", asked.given.store)
        both = asked.engines.sums(number, some, 0, BLOCKS, terms=True)
        kept = asked.engines.sums(None, some, 0, BLOCKS, terms=True)
        assert 0 < np.count_nonzero(kept) < len(kept)
        assert set(kept.tolist()) == {0, WEIGHT_SCALE}
        assert not both[kept == 0].any()
        if asked.given.store.manifest.one_row_units:
            every = asked.engines.sums(number, None, 0, BLOCKS, terms=True)
            assert both.tolist() == np.where(kept == 0, 0, every).tolist()
        parts = [(0, 1), (1, 4), (4, 9), (9, BLOCKS)]
        found = [asked.engines.sums(number, some, *part, terms=True) for part in parts]
        assert np.concatenate(found).tolist() == both.tolist()

    @pytest.mark.parametrize("how", ["error", "no number", "end", "kill"])
    def test_a_block_that_fails_has_no_terms(self, asked: Asked, how: str) -> None:
        """As it has no sum; no other is the worse for it, and nothing is said of it."""
        term = asked.language.hostile_term(how, asked.given.store)
        if term is None:
            pytest.skip("no question in this language can do that")
        terms = asked.engines.sums(term, None, 0, BLOCKS, terms=True).reshape(BLOCKS, -1)
        good, _ = asked.language.term("number", asked.given.store)
        wanted = asked.engines.sums(good, None, 0, BLOCKS, terms=True).reshape(BLOCKS, -1).copy()
        assert wanted[BAD].any()
        wanted[BAD] = 0
        assert terms.tolist() == wanted.tolist()
        sums = asked.engines.sums(term, None, 0, BLOCKS)
        assert sums.tolist() == wanted.sum(axis=1).tolist()

    def test_any_part_of_the_blocks(self, asked: Asked) -> None:
        whole = asked.values(MEAN)
        function, where = asked.language.term("number", asked.given.store)
        sums = asked.engines.sums(function, where, 0, BLOCKS)
        for start, stop in [(0, 1), (4, 5), (2, 10), (BLOCKS - 1, BLOCKS)]:
            assert asked.values(MEAN, start, stop).tobytes() == whole[start:stop].tobytes()
            part = asked.engines.sums(function, where, start, stop)
            assert part.tolist() == sums[start:stop].tolist()
            terms = asked.engines.sums(function, where, start, stop, terms=True)
            assert terms.reshape(stop - start, -1).sum(axis=1).tolist() == part.tolist()

    def test_blocks_that_are_not_there_are_refused(self, asked: Asked) -> None:
        for start, stop in [(-1, 5), (5, 5), (0, BLOCKS + 1)]:
            with pytest.raises(InvalidInput):
                asked.values(MEAN, start, stop)

    def test_a_block_without_values_is_a_failure_alone(self, asked: Asked) -> None:
        missing = np.isnan(asked.values(MEAN))
        assert np.flatnonzero(missing).tolist() == [EMPTY]

    @pytest.mark.parametrize("how", ["error", "no number", "end", "kill"])
    def test_a_failure_is_of_its_block_alone(self, asked: Asked, how: str) -> None:
        self.expect_failure(asked, asked.engines, how)

    @pytest.mark.parametrize("how", ["time", "memory"])
    def test_too_much_is_a_failure_of_its_block_alone(
        self, asked: Asked, how: str, request: pytest.FixtureRequest
    ) -> None:
        if asked.layout != SLOW_LAYOUT:
            pytest.skip("in one layout only")
        memory = 2**34 if how == "time" and self.language is not PYTHON else 2**28
        limits = Limits(block_seconds=1.5, seconds=1.5, memory=memory, workers=1)
        engines = self.open(asked.given, limits, request)
        try:
            self.expect_failure(asked, engines, how, BAD - 1, BAD + 1)
        finally:
            engines.close()

    def expect_failure(
        self, asked: Asked, engines: Engines, how: str, start: int = 0, stop: int = BLOCKS
    ) -> None:
        estimator = asked.language.hostile(how, asked.given.store)
        if estimator is None:
            pytest.skip("no question in this language can do that")
        values = engines.values(estimator, start, stop)
        expected = asked.by_pandas(MEAN)
        expected[BAD] = np.nan
        np.testing.assert_allclose(values, expected[start:stop], rtol=1e-12)
        good = engines.values(asked.estimator(MEAN), BAD, BAD + 1)  # it is as good as before
        np.testing.assert_allclose(good, asked.by_pandas(MEAN)[BAD : BAD + 1], rtol=1e-12)

    def test_progress_goes_to_the_end(self, asked: Asked) -> None:
        seen: list[tuple[int, int]] = []
        estimator = asked.estimator(MEAN)
        asked.engines.values(estimator, 1, BLOCKS, lambda *told: seen.append(told))
        assert {total for _, total in seen} == {BLOCKS - 1}
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        assert all(0 <= done <= BLOCKS - 1 for done, _ in seen)

    def test_progress_that_raises_ends_an_evaluation(self, asked: Asked) -> None:
        class Enough(BaseException):
            pass

        def progress(done: int, total: int) -> None:
            raise Enough

        good = asked.values(MEAN)
        with pytest.raises(Enough):
            asked.engines.values(asked.estimator(MEAN), 0, BLOCKS, progress)
        assert asked.values(MEAN).tobytes() == good.tobytes()

    def test_closed_engines_answer_again(self, asked: Asked) -> None:
        good = asked.values(MEAN)
        asked.engines.close()
        asked.engines.close()
        assert asked.values(MEAN).tobytes() == good.tobytes()

    def test_threads_get_their_own_answers(self, asked: Asked) -> None:
        questions = [QUESTIONS[name] for name in ("mean", "share", "median", "mean")]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(asked.values, questions))
        alone = [asked.values(question) for question in questions]
        assert [each.tobytes() for each in together] == [each.tobytes() for each in alone]

    def test_the_order_of_rows_is_kept(self, asked: Asked) -> None:
        if self.language is not PYTHON:
            pytest.skip("SQL has no order of rows")
        for function in IN_ORDER.values():
            found = asked.engines.values(local_estimator(function), 0, BLOCKS)
            assert found.tolist() == [float(function(frame)) for frame in asked.given.frames]

    def test_a_changed_file_is_refused(self, asked: Asked, request: pytest.FixtureRequest) -> None:
        file = asked.given.store.folder / asked.given.store.shards[-1].name
        engines, good = self.open(asked.given, Limits(workers=1), request), file.read_bytes()
        try:
            engines.verify("contract")
            file.write_bytes(good[:-1])
            engines.close()
            again = self.open(asked.given, Limits(workers=1), request)
            with pytest.raises(Damaged):
                again.verify("contract")
            again.close()
        finally:
            file.write_bytes(good)
            engines.close()


def _terms(frame: Any, name: str, bounds: tuple[float, float]) -> NDArray[np.int64]:
    """Of every unit of a block, in the order of their numbers."""
    _, function, _, where = TERMS[name]
    kept = frame if where is None else frame[where(frame)]
    terms = np.ones(len(kept))
    if function is not None:
        low, high = bounds
        numbers = np.asarray(function(kept), np.float64)
        terms = (np.clip(np.where(np.isnan(numbers), low, numbers), low, high) - low) / (high - low)
    average = kept.assign(term=terms).groupby("__unit").term.mean()
    parts = np.floor(average * WEIGHT_SCALE + 0.5)
    every = parts.reindex(frame["__unit"].unique(), fill_value=0)
    return np.asarray(every, np.int64)
