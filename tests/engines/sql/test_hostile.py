"""Hostile questions: each is refused for its text alone, or answered with nothing but a number.

Every question is tried on two stores with the same columns and other data. What is refused is
refused in the same words on both; what is not gives one number a block, without an error inside.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from holdfast.engines.sql.engine import SqlEngine
from holdfast.engines.sql.estimator import sql_estimator
from holdfast.errors import InvalidInput
from holdfast.store.blocks import BlockStore
from tests.engines.sql.tables import HOSTILE_SCHEMA, SCHEMA

REFUSED = {
    "error carries rows": "count(*) FILTER (WHERE arm = 5)",
    "error carries rows, by a sum": "sum(arm)",
    "error carries rows, by a cast": "sum(CAST(arm AS INTEGER))",
    "error carries rows, by ::": "sum(arm::BIGINT)",
    "error function": "sum(error(arm))",
    "error by a date": "min(strptime(arm, '%Y'))",
    "try cast": "sum(TRY_CAST(arm AS DOUBLE))",
    "hidden block": "max(__block)",
    "hidden unit, quoted": 'max("__unit")',
    "hidden row": "sum(__row)",
    "hidden filter": "count_if(__kept)",
    "row number": "max(rowid)",
    "file row number": "max(file_row_number)",
    "file name": "count(DISTINCT filename)",
    "read a file": "count(*) + (SELECT count(*) FROM read_csv('passwords.csv'))",
    "read a text": "length(read_text('passwords.txt'))",
    "table by its path": "avg('blocks.parquet'.x)",
    "union": "avg(x) UNION SELECT 1",
    "except": "avg(x) EXCEPT SELECT 1",
    "common table expression": "WITH t AS (SELECT 1) SELECT avg(x) FROM t",
    "second statement": "avg(x); DROP TABLE blocks",
    "second statement after a comment": "avg(x) /* */ ; SET threads = 99",
    "pragma": "PRAGMA database_list",
    "setting": "SET memory_limit = '1TB'",
    "install": "INSTALL httpfs",
    "load": "LOAD httpfs",
    "attach": "ATTACH 'other.db'",
    "copy": "COPY blocks TO 'leak.csv'",
    "export": "EXPORT DATABASE 'leak'",
    "create macro": "CREATE MACRO f(a) AS a",
    "call": "CALL pragma_version()",
    "values": "VALUES (1)",
    "describe": "DESCRIBE blocks",
    "catalog": "count(*) FROM duckdb_settings()",
    "catalog function": "length(current_setting('secret'))",
    "catalog column": "max(duckdb_settings().name)",
    "version": "length(version())",
    "user": "length(current_user)",
    "database": "length(current_database())",
    "environment": "length(getenv('HOME'))",
    "random": "avg(x + random())",
    "seed": "setseed(0.5)",
    "uuid": "count(DISTINCT uuid())",
    "now": "max(epoch(now()))",
    "today": "max(epoch(current_date))",
    "transaction": "max(txid_current())",
    "sequence": "nextval('s')",
    "exists": "count_if(EXISTS (SELECT 1))",
    "scalar subquery": "avg(x) + (SELECT max(x) FROM blocks)",
    "in a subquery": "count_if(x IN (SELECT y FROM blocks))",
    "any": "count_if(x = ANY (SELECT 1))",
    "quantified list": "count_if(x = ANY ([1, 2]))",
    "window": "avg(x) OVER (ORDER BY y)",
    "window inside": "avg(lag(x) OVER ())",
    "qualify": "avg(x) QUALIFY TRUE",
    "group by": "avg(x) GROUP BY arm",
    "having": "avg(x) HAVING TRUE",
    "order inside": "sum(x ORDER BY y)",
    "limit inside": "sum(x LIMIT 1)",
    "first": "first(x)",
    "last by order": "last(x ORDER BY y)",
    "any value": "any_value(x)",
    "arg max": "arg_max(x, y)",
    "max of n": "max(x, 100000)",
    "min of n": "min(x, 100000)",
    "several quantiles": "quantile_cont(x, [0.1, 0.9])",
    "grouping": "grouping(x)",
    "all columns": "max(COLUMNS(*))",
    "columns by expression": "avg(COLUMNS('x|y'))",
    "star": "avg(*)",
    "star without": "count(* EXCLUDE (x))",
    "star replaced": "count(* REPLACE (1 AS x))",
    "position": "avg(#1)",
    "parameter": "avg(x + ?)",
    "numbered parameter": "avg(x + $1)",
    "named parameter": "avg(x + :name)",
    "at parameter": "avg(x + @name)",
    "named argument": "round(avg(x), digits := 2)",
    "list": "avg(len([1, 2, 3]))",
    "range bomb": "sum(len(range(1000000000)))",
    "list comprehension": "sum(len([v for v in [1, 2]]))",
    "list aggregate": "len(list(x))",
    "list sort": "list_sort(list(x))[1]",
    "lambda": "sum(list_sum(list_transform([1, 2], v -> v + 1)))",
    "python lambda": "sum(list_sum(list_transform([1, 2], lambda v: v + 1)))",
    "struct": "max({'a': x}.a)",
    "struct function": "max(struct_pack(a := x))",
    "row": "max(ROW(x, y))",
    "tuple": "max((x, y))",
    "map": "max(MAP {'a': 1})",
    "subscript": "avg(x[1])",
    "slice of a text": "count_if(arm[1:2] = 'SE')",
    "field": "avg(x.y)",
    "unnest": "sum(unnest([1, 2]))",
    "generate series": "sum(generate_series(1, 10))",
    "repeat bomb": "sum(length(repeat(arm, 1000000000)))",
    "pad bomb": "sum(length(lpad(arm, 2000000000, 'x')))",
    "join bomb": "sum(length(arm || arm || arm))",
    "adjacent texts": "count_if(arm = 'a' 'b')",
    "text of all rows": "length(string_agg(arm, ''))",
    "format": "length(format('{:>2000000000}', arm))",
    "print": "length(printf('%2000000000d', 1))",
    "replace bomb": "sum(length(replace(arm, '', arm)))",
    "regular expression": "count_if(regexp_matches(arm, '(a+)+$'))",
    "regular operator": "count_if(arm ~ '(a+)+$')",
    "similar": "count_if(arm SIMILAR TO '(a+)+')",
    "glob": "count_if(arm GLOB '*a*a*a*')",
    "like bomb": f"count_if(arm LIKE '{'%a' * 30}')",
    "like with a column": "count_if(arm LIKE arm)",
    "factorial": "sum(n!)",
    "factorial function": "sum(factorial(n))",
    "bit shift": "sum(n << 62)",
    "bit not": "sum(~n)",
    "hash": "max(hash(arm))",
    "md5": "max(md5(arm))",
    "integer division": "sum(n // 0)",
    "interval": "max(born + INTERVAL 9999999 YEARS)",
    "date overflow": "max(born + 2147483647)",
    "date of numbers": "max(make_date(99999, 1, 1))",
    "time zone": "max(seen AT TIME ZONE 'Mars')",
    "collation": "count_if(arm COLLATE evil = 'a')",
    "json": "count_if(arm -> '$.a' = 'b')",
    "json function": "max(json_extract(arm, '$.a'))",
    "sql inside": "query('SELECT 1')",
    "table function": "query_table('blocks')",
    "sample": "avg(x) USING SAMPLE 1",
    "try": "TRY(avg(x))",
    "macro of a schema": "main.avg(x)",
    "quoted function": '"avg"(x)',
    "wide letters": "ａｖｇ(x)",
    "Cyrillic letter": "аvg(x)",
    "zero width": "avg(x\u200b)",
    "right to left": "avg(\u202ex)",
    "zero byte": "avg(x)\0",
    "zero byte in a text": "count_if(arm = 'a\0b')",
    "half a character": "count_if(arm = '\ud800')",
    "open quote": "count_if(arm = 'a)",
    "open name": 'avg("x)',
    "open comment": "avg(x) /* ",
    "escaped quote": r"count_if(arm = 'a\' OR TRUE --')",
    "escape text": r"count_if(arm = E'\x41')",
    "dollar text": "count_if(arm = $$a$$)",
    "hex text": "count_if(arm = x'41')",
    "template": "avg({{ x }})",
    "long text": "avg(x)" + " " * 10_000,
    "long constant": f"count_if(arm = '{'a' * 1001}')",
    "long list": f"count_if(x IN ({', '.join(map(str, range(1001)))}))",
    "huge number": f"avg({'9' * 400})",
    "huge exponent": "avg(1e309)",
    "hexadecimal": "avg(0xFFFFFFFFFFFFFFFF)",
    "deep brackets": "avg(" + "(" * 3000 + "x" + ")" * 3000 + ")",
    "deep calls": "avg(" + "abs(" * 60 + "x" + ")" * 60 + ")",
    "very deep calls": "avg(" + "abs(" * 1500 + "x" + ")" * 1500 + ")",
    "deep not": "count_if(" + "NOT " * 2000 + "flag)",
    "deep minus": "avg(" + "- " * 3000 + "x)",
    "deep case": "avg(" + "CASE WHEN flag THEN " * 200 + "1" + " END" * 200 + ")",
    "long chain": "avg(" + "x + " * 600 + "x)",
    "wide chain": "count_if(" + " OR ".join(["x > 1"] * 400) + ")",
    "null": "NULL",
    "nothing": "   ",
    "only a comment": "-- avg(x)",
}
ANSWERED = {
    "overflow oracle": "count(*) * 9223372036854775807",
    "overflow of a sum": "sum(n * 9007199254740992 * 9007199254740992)",
    "exponent bomb": "power(power(power(9, 9), 9), 9) * count(*)",
    "exponent bomb with columns": "sum(power(x, power(y, w)))",
    "division by zero": "sum(x / (y - y)) / count_if(FALSE)",
    "remainder by zero": "sum(x % 0)",
    "logarithm of what has none": "avg(ln(x)) + avg(log(-1, x)) + avg(sqrt(-abs(x)))",
    "arc sine of two": "avg(asin(2 + x))",
    "gradual underflow": "avg(x * 5e-324)",
    "infinity minus itself": "avg(exp(1000) - exp(1000))",
    "variance of huge numbers": "var_samp(x * 1e300)",
    "skewness of huge numbers": "skewness(x * 1e300)",
    "kurtosis of one value": "kurtosis(1)",
    "correlation with a constant": "corr(x, 1)",
    "quantile of nothing": "quantile_cont(x, 0) FILTER (WHERE FALSE)",
    "rounding to many digits": "avg(round(x, 15)) + avg(round(x, -15))",
    "years of extreme dates": "avg(year(born)) + avg(week(born)) + avg(dayofyear(seen))",
    "distance of extreme dates": "avg(date_diff('second', born, seen))",
    "dates beside times": "count_if(born < seen)",
    "upper case of long texts": "avg(length(upper(lower(upper(arm)))))",
    "quote in a text": "count_if(arm = 'it''s; DROP TABLE blocks')",
    "braces in a text": "count_if(arm = '{0}{where}{all}')",
    "comment in a text": "count_if(arm = '-- a /* b')",
    "semicolon at the end": "avg(x);",
    "comment after": "avg(x) -- ; DROP TABLE blocks",
    "comment inside": "avg(/* __block */ x)",
    "case of letters": "aVg(X)",
    "not a number": "count_if(isnan(x)) + avg(nullif(x, x))",
    "infinity": "count_if(isinf(x)) + max(x) - min(x)",
    "truth of nothing": "bool_and(flag) FILTER (WHERE x > 1e308)",
    "long list within the limit": f"count_if(x IN ({', '.join(map(str, range(1000)))}))",
    "deep within the limit": "avg(" + "abs(" * 25 + "x" + ")" * 25 + ")",
    "wide within the limit": "count_if(" + " OR ".join(["x > 1"] * 150) + ")",
    "many quantiles": " + ".join(f"quantile_cont(x, 0.{k:02d})" for k in range(1, 45)),
}


@pytest.fixture(scope="module")
def engines(plain: BlockStore, hostile: BlockStore) -> Iterator[list[SqlEngine]]:
    engines = [SqlEngine(store, threads=1) for store in (plain, hostile)]
    yield engines
    for engine in engines:
        engine.close()


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
def test_answered_without_an_error_inside(engines: list[SqlEngine], question: str) -> None:
    for engine in engines:
        before = engine.fallbacks
        values = engine.values(sql_estimator(question, HOSTILE_SCHEMA))
        assert values.shape == (engine._store.blocks,)
        assert values.dtype == np.float64
        assert engine.fallbacks == before


@pytest.mark.parametrize("condition", ["arm = 5", "x", "avg(x) > 1", "TRUE; DROP TABLE blocks"])
def test_conditions_are_checked_as_questions_are(condition: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        sql_estimator("avg(x)", SCHEMA, where=condition)
    assert caught.value.parameter == "where"
