"""A question's values are the same bits on every run, and however many blocks are asked at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from holdfast.engines.sql.engine import SqlEngine
from holdfast.engines.sql.estimator import sql_estimator, to_text, value_of
from holdfast.engines.sql.worker import Number, Query, _groups, statement
from holdfast.randomness import SeededEntropy
from holdfast.store.blocks import BlockStore
from holdfast.store.inputs import open_input
from holdfast.store.sealing import write_store
from holdfast.store.table import Column, Schema
from tests.engines.sql.expressions import Questions
from tests.engines.sql.tables import SCHEMA, path_of, same, worker, write


@pytest.fixture(scope="module")
def skewed(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    """Numbers of all sizes, whose sum's last bits depend on the order, in many small blocks."""
    generator, blocks, rows = np.random.default_rng(3), 3_000, 40
    columns = {
        "x": generator.lognormal(0, 5, blocks * rows),
        "y": generator.normal(size=blocks * rows),
        "n": generator.integers(0, 9, blocks * rows),
    }
    schema = Schema(tuple(Column(name, "number") for name in columns))
    folder = tmp_path_factory.mktemp("skewed")
    return write(folder, columns, schema, blocks, group_blocks=101)


@pytest.fixture(scope="module")
def engines(skewed: BlockStore) -> Iterator[list[SqlEngine]]:
    engines = [SqlEngine(skewed, threads=threads) for threads in (1, 2, 8)]
    yield engines
    for engine in engines:
        engine.close()


@pytest.mark.parametrize(
    "question",
    [
        "avg(x)",
        "sum(x) FILTER (WHERE n IN (1, 2, 3, 4, 5, 6, 7))",
        "stddev(x) + corr(x, y) + regr_slope(x, y)",
        "skewness(x)",
        "sum(x) + count(DISTINCT n)",
        "median(x) + mad(x)",
    ],
)
def test_bits_do_not_depend_on_threads_or_on_what_is_asked_at_once(
    skewed: BlockStore, engines: list[SqlEngine], question: str
) -> None:
    estimator = sql_estimator(question, skewed.schema, where="y < 2.5")
    found = []
    for engine in engines:
        found += [engine.values(estimator) for _ in range(2)]
        alone = [engine.values(estimator, k, k + 1) for k in range(5, skewed.blocks, 197)]
        assert same(np.concatenate(alone), found[0][5::197])
        parts = [engine.values(estimator, k, min(k + 700, 3000)) for k in range(0, 3000, 700)]
        found.append(np.concatenate(parts))
    assert all(same(each, found[0]) for each in found)
    assert np.isfinite(found[0]).all()


def test_random_questions_have_the_same_bits_block_by_block(engine: SqlEngine) -> None:
    schema = Schema(SCHEMA.columns[:8])
    questions = Questions(schema, 5)
    for _ in range(60):
        estimator = sql_estimator(to_text(questions.aggregate_question()), schema)
        whole = engine.values(estimator)
        alone = [engine.values(estimator, k, k + 1) for k in (0, 13, 39)]
        assert same(np.concatenate(alone), whole[[0, 13, 39]]), estimator
    assert engine.fallbacks == 0


def test_more_blocks_than_one_query_takes(
    skewed: BlockStore, engines: list[SqlEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator = sql_estimator("sum(x)", skewed.schema)
    whole = engines[0].values(estimator)
    monkeypatch.setattr("holdfast.engines.sql.engine._BATCH", 999)
    assert same(engines[0].values(estimator), whole)
    assert same(engines[0].values(estimator, 5, 2_500), whole[5:2_500])


def test_groups_are_formed_by_number(skewed: BlockStore) -> None:
    """The plan on which the equality of bits rests; hashing would split groups."""
    answer = worker(skewed, 8, in_memory=False)
    number = value_of(sql_estimator("sum(x)", skewed.schema, "y > 0"))
    for first, stop in ((0, skewed.blocks), (5, 6), (100, 2001)):
        query = Query(number, path_of(skewed), first, stop, whole=stop == skewed.blocks)
        sql = "EXPLAIN " + statement([query])
        rows = answer.__self__.open(path_of(skewed)).execute(sql).fetchall()
        assert "Perfect Hash Group By" in rows[0][1]


CONSTANT = ("c", "c * 3", "r", "k", "m", "0.1", "CASE WHEN c > 0 THEN 0.1 ELSE r END", "nothing")


@pytest.mark.parametrize("blocks", [5, 2_500], ids=["large blocks", "small blocks"])
def test_a_table_in_memory_has_the_bits_of_the_file(tmp_path: Path, blocks: int) -> None:
    """Constants above all: DuckDB adds up a constant in a way of its own."""
    random, rows = np.random.default_rng(3), 12_500
    frame = pd.DataFrame(
        {
            "c": np.full(rows, 0.1),
            "r": random.lognormal(0, 5, rows),
            "k": np.where(np.arange(rows) < 11_000, 0.1, 0.3),
            "m": np.where(random.random(rows) < 0.9, np.nan, 0.1),
            "nothing": np.full(rows, np.nan),
        }
    )
    with open_input(frame) as data:
        manifest = write_store(tmp_path, data, blocks=blocks, entropy=SeededEntropy(1))
    store = BlockStore(tmp_path, manifest)
    path, kept, read = path_of(store), worker(store), worker(store, 2, in_memory=False)
    questions = [f"{name}({term})" for name in ("sum", "avg", "stddev_samp") for term in CONSTANT]
    numbers = [value_of(sql_estimator(each, store.schema)) for each in questions]
    whole = [Query(number, path, 0, blocks, whole=True) for number in numbers]
    some = [Query(number, path, 1, 4, whole=False) for number in numbers]
    every = [*whole, *some]
    together = kept(every)
    assert together == read(every)
    alone = [kept([each])[:8] for each in every] + [read([each])[8:] for each in every]
    assert together == b"".join(alone)  # and whatever is asked beside them


# What DuckDB would make of each other, and what it may find to be constant.
FAMILIAR = (
    *("avg(0.1)", "sum(0.1)", "sum(0.1) / count(*)", "stddev_samp(0.3)", "sum(w)", "avg(w)"),
    *("sum(CASE WHEN x > -1 THEN 0.1 ELSE 0.2 END)", "sum(CASE WHEN w < 5 THEN 0.7 END)"),
    *("avg(x)", "sum(x)", "count(x)", "count(*)", "var_pop(x)", "regr_slope(x, w)", "count(w)"),
)


@pytest.mark.parametrize(("blocks", "rows"), [(2_000, 3), (3, 3_000), (40, 70)])
def test_bits_do_not_depend_on_what_is_asked_beside(tmp_path: Path, blocks: int, rows: int) -> None:
    random, size = np.random.default_rng(rows), blocks * rows
    columns = {
        "x": random.lognormal(0, 5, size),
        "y": random.normal(size=size),
        "w": np.full(size, 0.1),
        "n": random.integers(0, 9, size).astype(float),
        "flag": random.random(size) < 0.5,
        "arm": np.array(["a", "b", "cc"])[random.integers(0, 3, size)],
        "born": random.integers(0, 20_000, size).astype("datetime64[D]"),
        "seen": random.integers(0, 2**50, size).astype("datetime64[us]"),
    }
    schema = Schema(SCHEMA.columns[:8])
    store = write(tmp_path, columns, schema, blocks, group_blocks=max(1, blocks // 3))
    path, answer = path_of(store), worker(store)
    asked = Questions(schema, 11)
    texts = [*FAMILIAR, *(to_text(asked.aggregate_question()) for _ in range(60))]
    wheres = (None, "y < 1.5")
    numbers = [value_of(sql_estimator(each, schema, where)) for each in texts for where in wheres]
    queries = [Query(number, path, 0, blocks, whole=True) for number in numbers]
    alone = [answer([query])[8:] for query in queries]
    assert all(len(each) == 8 * blocks for each in alone)
    for count in (2, 16, 16, 16, 16, len(queries)):
        chosen = random.permutation(len(queries))[:count].tolist()
        together = answer([queries[k] for k in chosen])[8 * count :]
        assert together == b"".join(alone[k] for k in chosen)


@pytest.fixture
def small(tmp_path: Path) -> BlockStore:
    return write(tmp_path, {"x": np.arange(40.0)}, Schema((Column("x", "number"),)), 4)


def test_no_aggregate_is_made_of_others(small: BlockStore) -> None:
    """DuckDB would divide the sum by the count, where both are there, and call that an average."""
    for in_memory in (True, False):
        answer, path = worker(small, in_memory=in_memory), path_of(small)
        texts = ("avg(x)", "sum(x)", "count(x)")
        together = [Query(Number(each), path, 0, small.blocks, whole=True) for each in texts]
        rows = answer.__self__.open(path).execute("EXPLAIN " + statement(together)).fetchall()
        grouped = rows[0][1].partition("Aggregates:")[2].partition("rows")[0]
        assert "avg(" in grouped


def test_those_who_are_asked_with_a_question_that_fails(small: BlockStore) -> None:
    """It fails alone; those beside it are asked again, each by itself."""
    path, answer = path_of(small), worker(small)
    good = [Query(Number(f"sum(x + {k})"), path, 0, 4, whole=True) for k in range(3)]
    bad = Query(Number("error('no')"), path, 0, 4, whole=True)
    lengths = [32, 0, 32, 32]
    reply = answer([good[0], bad, *good[1:]])
    assert np.frombuffer(reply[:32], np.int64).tolist() == lengths
    assert reply[32:] == b"".join(answer([each])[8:] for each in good)


def test_a_statement_asks_for_no_more_than_one_question_may() -> None:
    """Else the memory of many questions would be taken at once."""
    short, long = "s" * 300, "l" * 2_000
    for texts, wanted in (
        ([short] * 3, [3]),
        ([short] * 7, [3, 3, 1]),
        ([long, short, short, long], [1, 2, 1]),
        ([short, long, long], [1, 1, 1]),
    ):
        numbers = [Number(f"{text}{k}") for k, text in enumerate(texts)]
        queries = [Query(each, "", 0, 1, whole=True) for each in numbers]
        groups = list(_groups(queries))
        assert [len(each) for each in groups] == wanted
        assert [each for group in groups for each in group] == queries
