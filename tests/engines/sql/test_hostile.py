"""Hostile questions: each is refused for its text alone, or answered with nothing but a number.

Every question is tried on two stores with the same columns and other data. What is refused is
refused in the same words on both; what is not gives one number a block, without an error inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from holdfast.engines.sql.engine import SqlEngine
from holdfast.engines.sql.estimator import sql_estimator
from holdfast.errors import InvalidInput
from holdfast.store.blocks import BlockStore
from tests.engines.sql.tables import HOSTILE_SCHEMA, SCHEMA, path_of, same, worker

# Rows in errors, hidden columns, files, other statements, the catalogue, what is not the same each
# time, subqueries, windows, order, other columns, lists, long texts and values, patterns, letters.
REFUSED_TEXTS = """
count(*) FILTER (WHERE arm = 5) ¦ sum(arm) ¦ sum(CAST(arm AS INTEGER)) ¦ sum(arm::BIGINT)
sum(error(arm)) ¦ min(strptime(arm, '%Y')) ¦ sum(TRY_CAST(arm AS DOUBLE)) ¦ max(__block)
max("__unit") ¦ sum(__row) ¦ count_if(__kept) ¦ max(rowid) ¦ max(file_row_number)
count(DISTINCT filename) ¦ count(*) + (SELECT count(*) FROM read_csv('passwords.csv'))
length(read_text('passwords.txt')) ¦ avg('blocks.parquet'.x) ¦ avg(x) UNION SELECT 1
avg(x) EXCEPT SELECT 1 ¦ WITH t AS (SELECT 1) SELECT avg(x) FROM t ¦ avg(x); DROP TABLE blocks
avg(x) /* */ ; SET threads = 99 ¦ PRAGMA database_list ¦ SET memory_limit = '1TB' ¦ INSTALL httpfs
LOAD httpfs ¦ ATTACH 'other.db' ¦ COPY blocks TO 'leak.csv' ¦ EXPORT DATABASE 'leak'
CREATE MACRO f(a) AS a ¦ CALL pragma_version() ¦ VALUES (1) ¦ DESCRIBE blocks
count(*) FROM duckdb_settings() ¦ length(current_setting('secret')) ¦ max(duckdb_settings().name)
length(version()) ¦ length(current_user) ¦ length(current_database()) ¦ length(getenv('HOME'))
avg(x + random()) ¦ setseed(0.5) ¦ count(DISTINCT uuid()) ¦ max(epoch(now()))
max(epoch(current_date)) ¦ max(txid_current()) ¦ nextval('s') ¦ count_if(EXISTS (SELECT 1))
avg(x) + (SELECT max(x) FROM blocks) ¦ count_if(x IN (SELECT y FROM blocks))
count_if(x = ANY (SELECT 1)) ¦ count_if(x = ANY ([1, 2])) ¦ avg(x) OVER (ORDER BY y)
avg(lag(x) OVER ()) ¦ avg(x) QUALIFY TRUE ¦ avg(x) GROUP BY arm ¦ avg(x) HAVING TRUE
sum(x ORDER BY y) ¦ sum(x LIMIT 1) ¦ first(x) ¦ last(x ORDER BY y) ¦ any_value(x) ¦ arg_max(x, y)
max(x, 100000) ¦ min(x, 100000) ¦ quantile_cont(x, [0.1, 0.9]) ¦ grouping(x) ¦ max(COLUMNS(*))
avg(COLUMNS('x|y')) ¦ avg(*) ¦ count(* EXCLUDE (x)) ¦ count(* REPLACE (1 AS x)) ¦ avg(#1)
avg(x + ?) ¦ avg(x + $1) ¦ avg(x + :name) ¦ avg(x + @name) ¦ round(avg(x), digits := 2)
avg(len([1, 2, 3])) ¦ sum(len(range(1000000000))) ¦ sum(len([v for v in [1, 2]])) ¦ len(list(x))
list_sort(list(x))[1] ¦ sum(list_sum(list_transform([1, 2], v -> v + 1)))
sum(list_sum(list_transform([1, 2], lambda v: v + 1))) ¦ max({'a': x}.a)
max(struct_pack(a := x)) ¦ max(ROW(x, y)) ¦ max((x, y)) ¦ max(MAP {'a': 1}) ¦ avg(x[1])
count_if(arm[1:2] = 'SE') ¦ avg(x.y) ¦ sum(unnest([1, 2])) ¦ sum(generate_series(1, 10))
sum(length(repeat(arm, 1000000000))) ¦ sum(length(lpad(arm, 2000000000, 'x')))
sum(length(arm || arm || arm)) ¦ count_if(arm = 'a' 'b') ¦ length(string_agg(arm, ''))
length(format('{:>2000000000}', arm)) ¦ length(printf('%2000000000d', 1))
sum(length(replace(arm, '', arm))) ¦ count_if(regexp_matches(arm, '(a+)+$'))
count_if(arm ~ '(a+)+$') ¦ count_if(arm SIMILAR TO '(a+)+') ¦ count_if(arm GLOB '*a*a*a*')
count_if(arm LIKE arm) ¦ sum(n!) ¦ sum(factorial(n)) ¦ sum(n << 62) ¦ sum(~n) ¦ max(hash(arm))
max(md5(arm)) ¦ sum(n // 0) ¦ max(born + INTERVAL 9999999 YEARS) ¦ max(born + 2147483647)
max(make_date(99999, 1, 1)) ¦ max(seen AT TIME ZONE 'Mars') ¦ count_if(arm COLLATE evil = 'a')
count_if(arm -> '$.a' = 'b') ¦ max(json_extract(arm, '$.a')) ¦ query('SELECT 1')
query_table('blocks') ¦ avg(x) USING SAMPLE 1 ¦ TRY(avg(x)) ¦ main.avg(x) ¦ "avg"(x) ¦ ａｖｇ(x)
аvg(x) ¦ count_if(arm = 'a) ¦ avg("x) ¦ count_if(arm = $$a$$) ¦ count_if(arm = x'41')
avg({{ x }}) ¦ avg(1e309) ¦ avg(0xFFFFFFFFFFFFFFFF) ¦ NULL ¦ -- avg(x)
"""
# No error inside: overflow, division by zero, logarithms, dates of no calendar, quotes, comments,
# moments (DuckDB's own say "SKEW is out of range!").
ANSWERED_TEXTS = """
count(*) * 9223372036854775807 ¦ sum(n * 9007199254740992 * 9007199254740992)
power(power(power(9, 9), 9), 9) * count(*) ¦ sum(power(x, power(y, w)))
sum(x / (y - y)) / count_if(FALSE) ¦ sum(x % 0)
avg(ln(x)) + avg(log(-1, x)) + avg(sqrt(-abs(x))) ¦ avg(asin(2 + x)) ¦ avg(x * 5e-324)
avg(exp(1000) - exp(1000)) ¦ var_samp(x * 1e300) ¦ skewness(x * 1e300) ¦ kurtosis(1) ¦ corr(x, 1)
quantile_cont(x, 0) FILTER (WHERE FALSE) ¦ avg(round(x, 15)) + avg(round(x, -15))
avg(year(born)) + avg(week(born)) + avg(dayofyear(seen)) ¦ avg(date_diff('second', born, seen))
count_if(born < seen) ¦ avg(length(upper(lower(upper(arm)))))
count_if(arm = 'it''s; DROP TABLE blocks') ¦ count_if(arm = '{0}{where}{all}')
count_if(arm = '-- a /* b') ¦ avg(x); ¦ avg(x) -- ; DROP TABLE blocks ¦ avg(/* __block */ x)
aVg(X) ¦ count_if(isnan(x)) + avg(nullif(x, x)) ¦ count_if(isinf(x)) + max(x) - min(x)
bool_and(flag) FILTER (WHERE x > 1e308) ¦ skewness(x) ¦ kurtosis(x) ¦ kurtosis_pop(x)
"""


def listed(text: str) -> list[str]:
    return text.strip().replace("\n", " ¦ ").split(" ¦ ")


REFUSED = {
    **{each: each for each in listed(REFUSED_TEXTS)},
    "like bomb": f"count_if(arm LIKE '{'%a' * 30}')",
    "zero width": "avg(x\u200b)",
    "right to left": "avg(\u202ex)",
    "zero byte": "avg(x)\0",
    "zero byte in a text": "count_if(arm = 'a\0b')",
    "half a character": "count_if(arm = '\ud800')",
    "open comment": "avg(x) /* ",
    "escaped quote": r"count_if(arm = 'a\' OR TRUE --')",
    "escape text": r"count_if(arm = E'\x41')",
    "long text": "avg(x)" + " " * 10_000,
    "long constant": f"count_if(arm = '{'a' * 1001}')",
    "long list": f"count_if(x IN ({', '.join(map(str, range(1001)))}))",
    "huge number": f"avg({'9' * 400})",
    "deep brackets": "avg(" + "(" * 3000 + "x" + ")" * 3000 + ")",
    "deep calls": "avg(" + "abs(" * 60 + "x" + ")" * 60 + ")",
    "very deep calls": "avg(" + "abs(" * 1500 + "x" + ")" * 1500 + ")",
    "deep not": "count_if(" + "NOT " * 2000 + "flag)",
    "deep minus": "avg(" + "- " * 3000 + "x)",
    "deep case": "avg(" + "CASE WHEN flag THEN " * 200 + "1" + " END" * 200 + ")",
    "long chain": "avg(" + "x + " * 600 + "x)",
    "wide chain": "count_if(" + " OR ".join(["x > 1"] * 400) + ")",
    "nothing": "   ",
}
ANSWERED = {
    **{each: each for each in listed(ANSWERED_TEXTS)},
    "long list within the limit": f"count_if(x IN ({', '.join(map(str, range(1000)))}))",
    "deep within the limit": "avg(" + "abs(" * 25 + "x" + ")" * 25 + ")",
    "wide within the limit": "count_if(" + " OR ".join(["x > 1"] * 150) + ")",
    "many quantiles": " + ".join(f"quantile_cont(x, 0.{k:02d})" for k in range(1, 45)),
}


@pytest.mark.parametrize("question", REFUSED.values(), ids=REFUSED.keys())
def test_refused_by_its_text_alone(question: str) -> None:
    messages = []
    for schema in (SCHEMA, HOSTILE_SCHEMA):
        with pytest.raises(InvalidInput) as caught:
            sql_estimator(question, schema)
        messages.append(str(caught.value))
        assert caught.value.__cause__ is None
    assert messages[0] == messages[1]


@pytest.mark.parametrize("question", ANSWERED.values(), ids=ANSWERED.keys())
def test_answered_without_an_error_inside(
    engine: SqlEngine, hostile_engine: SqlEngine, question: str
) -> None:
    for each in (engine, hostile_engine):
        before = each.fallbacks
        values = each.values(sql_estimator(question, HOSTILE_SCHEMA))
        assert values.shape == (each._store.blocks,)
        assert values.dtype == np.float64
        assert each.fallbacks == before


# One test for each hazard of SQL on data that nobody may see.


def test_an_overflow_tells_the_count(engine: SqlEngine, plain: BlockStore) -> None:
    """As integers this fails exactly if a block has two rows or more."""
    values = engine.values(sql_estimator("count(*) * 9223372036854775807", SCHEMA))
    assert values.tolist() == [plain.units * 2.0**63] * plain.blocks
    assert engine.fallbacks == 0


def test_the_text_is_never_run(plain: BlockStore, engine: SqlEngine) -> None:
    """What runs is written anew: a comment that hides an end of the text changes nothing."""
    estimator = sql_estimator("avg(x) -- ) FROM blocks; DROP TABLE blocks", SCHEMA)
    assert estimator.aggregate == 'avg("x")'
    assert same(engine.values(estimator), engine.values(sql_estimator("avg(x)", SCHEMA)))


LOCKED_OUT = """
SELECT * FROM read_csv('{folder}/other.csv')
SELECT * FROM read_text('{folder}/other.csv')
SELECT * FROM '{folder}/other.csv'
SELECT * FROM glob('{folder}/*')
COPY (SELECT 1) TO '{folder}/leak.csv'
ATTACH '{folder}/leak.db'
EXPORT DATABASE '{folder}/leak'
INSTALL httpfs
LOAD httpfs
SET threads = 4
SET enable_external_access = true
SET allowed_paths = ['{folder}']
SET lock_configuration = false
RESET memory_limit
SELECT * FROM frame
SELECT getenv('HOME')
"""
SETTINGS = {
    "enable_external_access": False,
    "lock_configuration": True,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
    "error_on_division_by_zero": False,
    "max_temp_directory_size": "0 bytes",
    "memory_limit": "256.0 MiB",
    "TimeZone": "UTC",
}


@pytest.fixture(scope="module")
def connection(plain: BlockStore) -> Iterator[Any]:
    """The connection that a worker has, in this process."""
    connection = worker(plain, in_memory=False).__self__.open(path_of(plain))
    yield connection
    connection.close()


@pytest.mark.parametrize("statement", LOCKED_OUT.strip().splitlines())
def test_duckdb_is_locked(connection: Any, tmp_path: Path, statement: str) -> None:
    frame = pa.table({"a": [1]})
    assert frame.num_rows == 1  # a variable that DuckDB would find, if it were let
    (tmp_path / "other.csv").write_text("a\n1\n")
    with pytest.raises(duckdb.Error):
        connection.execute(statement.format(folder=tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["other.csv"]


def test_settings_are_what_they_should_be(connection: Any) -> None:
    found = {
        name: connection.execute(f"SELECT current_setting('{name}')").fetchone()[0]
        for name in SETTINGS
    }
    assert found == SETTINGS


def test_dates_that_no_calendar_knows_are_null(hostile_engine: SqlEngine) -> None:
    """week(DATE '-5877641-06-25') is an error, and a text of some timestamps a fatal one."""
    schema = hostile_engine._store.schema
    known = hostile_engine.values(sql_estimator("count(born)", schema))
    years = hostile_engine.values(sql_estimator("min(year(born))", schema))
    weeks = hostile_engine.values(sql_estimator("max(week(born))", schema))
    assert known.min() == 0
    assert np.nanmin(years) >= 1
    assert np.nanmax(weeks) <= 53
    assert hostile_engine.fallbacks == 0
