"""The parts of the Dask engine that need no cluster."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.engines.dask import worker
from holdfast.engines.dask.engine import ClusterAddress, ClusterConnection, DaskEngines, longest
from holdfast.engines.dask.worker import (
    EngineCache,
    ExpectedOutcome,
    Outcome,
    check_versions,
    error_reply,
    numbers_of,
    numbers_reply,
    pack,
    public_blocks,
    question,
    try_out,
    versions,
)
from holdfast.engines.python.estimator import local_estimator, packages
from holdfast.engines.python.metrics import score_estimator
from holdfast.engines.source import Engines, Limits
from holdfast.engines.sql.estimator import sql_estimator
from holdfast.errors import Damaged, InvalidInput, Unavailable
from tests.engines.contract_stores import BLOCKS, Stored, stored


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return stored(tmp_path_factory.mktemp("parts"), "shards, row units")


@pytest.fixture(scope="module")
def engines(given: Stored) -> Iterator[Engines]:
    engines = Engines(given.store, Limits(workers=1))
    yield engines
    engines.close()


def test_addresses() -> None:
    options = ("patience", "patience=0", "patience=a", "workers=2")
    ends = ("", "host", "host:x", "host:99999", "user@host:8786", "host:8786/path")
    wrong = [*ends, *(f"host:8786?{option}" for option in options)]
    for url in ("tcp://host:8786", *(f"dask://{end}" for end in wrong)):
        with pytest.raises(InvalidInput):
            ClusterAddress.read(url)
    assert ClusterAddress.read("dask://[::1]:8786").scheduler == "tcp://[::1]:8786"
    assert ClusterAddress.read("dask+tls://a.b:1/").scheduler == "tls://a.b:1"
    assert ClusterAddress.read("dask://a:1").patience == 300


def test_errors_come_as_they_were_and_of_others_only_the_kind_is_told() -> None:
    for kind in (Damaged, Unavailable, InvalidInput):
        error = kind("a", "b", "c", "d")
        with pytest.raises(kind) as raised:
            numbers_of(error_reply(error), 3, integers=False)
        assert (type(raised.value), str(raised.value)) == (kind, str(error))
    reply = error_reply(KeyError("the data"))
    assert b"data" not in reply[1]
    with pytest.raises(Unavailable, match="one met KeyError"):
        numbers_of(reply, 3, integers=False)


def test_numbers_come_as_they_were() -> None:
    values, sums = np.array([1.5, np.nan]), np.array([2**60, -1])
    assert numbers_of(numbers_reply(values), 2, integers=False).tobytes() == values.tobytes()
    assert numbers_of(numbers_reply(sums), 2, integers=True).tolist() == sums.tolist()
    with pytest.raises(Unavailable, match="another length"):
        numbers_of(numbers_reply(values), 3, integers=False)


def test_a_question_has_no_code_that_a_worker_would_load(given: Stored) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return exec, ("raise SystemExit",)

    trap = Trap()
    estimator = local_estimator(lambda frame: [trap, len(frame)][1])
    asked = question(pack(given.store), (estimator,), Limits(), sums=False)
    again = pickle.loads(pack(asked))
    assert again.functions[0].payload == estimator.payload
    assert again.own_limits().workers == 1


def test_own_metrics_travel_as_they_are(given: Stored) -> None:
    """A Dask worker evaluates them itself: there is nothing of a user's in them."""
    zeros = np.zeros(given.store.manifest.rows)
    estimator = score_estimator(zeros, "mse", target="y", checked=True)
    asked = question(pack(given.store), (estimator,), Limits(), sums=False)
    assert asked.packages == ()
    reply = worker.evaluate(4, 6, versions=versions(), question=pack(asked))
    found = numbers_of(reply, 2, integers=False)
    assert found.tolist() == [float(np.mean(np.square(given.frames[k].y))) for k in (4, 5)]


def test_tasks_evaluate_and_verify(given: Stored) -> None:
    estimator = sql_estimator("sum(y)", given.store.schema)
    text = pack(question(pack(given.store), (estimator,), Limits(), sums=False))
    parts = [text[:100], text[100:]]
    wanted = versions()
    for sent in (text, parts):
        reply = worker.evaluate(4, 5, versions=wanted, question=sent)
        [value] = numbers_of(reply, 1, integers=False)
        assert value == pytest.approx(given.frames[4].y.sum())
    assert asyncio.run(worker.check(wanted, text))[0] == "numbers"
    file = given.store.folder / given.store.shards[1].name
    good = file.read_bytes()
    file.write_bytes(good[:-1] + b"x")
    for task in (worker.evaluate, worker.verify):
        with pytest.raises(Damaged, match="the bytes that were written"):
            numbers_of(task(4, 5, versions=wanted, question=text), 1, integers=False)
    file.write_bytes(good)
    assert worker.verify(4, 5, versions=wanted, question=text)[0] == "numbers"


def test_other_versions_are_refused() -> None:
    check_versions(versions(["sklearn.linear_model"]))
    for wanted in (("duckdb", "duckdb 1.0"), ("no_such_package", "no_such_package 2.0")):
        with pytest.raises(Unavailable, match="on every worker, as here"):
            check_versions((wanted,))
        assert asyncio.run(worker.check((wanted,), b""))[0] == "unavailable"
    # Also of packages that a function imports when it is called.
    named = packages([pickle.dumps(("sklearn.no_such_part", "this", "no_such_package"))])
    assert named == ("sklearn",)
    assert ("sklearn", f"sklearn {version('scikit-learn')}") in versions(named)


@pytest.mark.parametrize("sums", [False, True])
def test_a_function_must_give_on_a_worker_what_it_gives_here(
    given: Stored, engines: Engines, tmp_path: Path, sums: bool
) -> None:
    file = tmp_path / "weight.txt"
    file.write_text("0.5")

    def weighed(frame: Any) -> Any:
        weight = float(file.read_text())
        return weight * (frame.y > 0) if sums else weight * frame.y.sum()

    estimator = local_estimator(weighed)
    blocks = public_blocks(engines.local, estimator, sums=sums)
    tried = try_out(engines.local, estimator, blocks, sums=sums)
    expected = ExpectedOutcome.make(blocks, tried, b"")
    functions = (estimator, None) if sums else (estimator,)
    asked = question(pack(given.store), functions, Limits(), sums=sums, expected=(expected, None))

    def told() -> Any:
        worker._passed.clear()  # as in another process
        reply = worker.evaluate(0, 1, versions=versions(), question=pack(asked))
        return numbers_of(reply, 1, integers=sums)

    [value] = told()
    assert expected.key in worker._passed
    assert value > 0
    file.write_text("0.25")
    with pytest.raises(Unavailable, match=r"gave other values \(on public blocks\)"):
        told()
    file.unlink()
    with pytest.raises(Unavailable, match="failed: FileNotFoundError"):
        told()


def test_a_failure_for_another_reason_is_another_outcome() -> None:
    nothing = np.full(2, np.nan).tobytes()
    one = Outcome(nothing, "KeyError", "KeyError: 'a'")
    assert one == Outcome(nothing, "KeyError", "KeyError: 'b'")
    assert one != Outcome(nothing, "ModuleNotFoundError", "ModuleNotFoundError: x")


def test_a_worker_keeps_as_many_engines_as_it_uses_at_once(given: Stored, tmp_path: Path) -> None:
    other = stored(tmp_path / "other", "one file, row units")
    texts = [
        pack(question(pack(each), (None,), Limits(), sums=False))
        for each in (given.store, other.store)
    ]
    cache = EngineCache()
    with cache.borrowed(texts[0]) as (asked, first):
        pass
    with cache.borrowed(texts[0]) as (same, again):
        assert (same, again) == (asked, first)
        assert same is asked
    with cache.borrowed(texts[1]) as (_, second):
        assert second is not first
        assert cache.idle == []  # one at a time: the other was closed
        with cache.borrowed(texts[0]) as (_, third):
            assert third is not first
    assert [engines for *_, engines in cache.idle] == [third, second]
    with pytest.raises(KeyError), cache.borrowed(texts[0]):
        raise KeyError
    assert [engines for *_, engines in cache.idle] == [second]


def test_tasks_are_given_time() -> None:
    limits = Limits(block_seconds=1, seconds=10)
    assert longest(limits, 1) > 10 + 1
    assert longest(limits, 5000) > 5 * 10 + 5000 * 1


def test_without_dask_it_is_said_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "distributed.py").write_text("raise ImportError('no')")
    code = (
        "from holdfast.engines.dask.engine import ClusterAddress, ClusterConnection\n"
        "ClusterConnection(ClusterAddress('tcp://127.0.0.1:1')).threads()"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "pip install 'dask[dataframe]' distributed fsspec" in run.stderr


def test_blocks_of_python_functions_are_divided(
    given: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClusterConnection, "threads", lambda _: 2)
    engines = DaskEngines(given.whole, None, "dask://nowhere:1")
    sql = engines._question((sql_estimator("sum(y)", given.whole.schema),), sums=False)
    python = engines._question((local_estimator(len),), sums=False)
    assert engines._parts(sql, 1, BLOCKS) == [range(1, BLOCKS)]
    assert engines._parts(python, 1, BLOCKS) == [range(1, 6), range(6, BLOCKS)]
    sharded = DaskEngines(given.store, None, "dask://nowhere:1")
    assert sharded._parts(sql, 1, 6) == [range(1, 4), range(4, 5), range(5, 6)]
