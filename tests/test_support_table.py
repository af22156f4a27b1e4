"""The support table: it says what a report says, and the page has every check of the suites."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.contract import EngineContract
from tests.ledger.contract import LedgerContract
from tools.support_table import PAGE, _sentence, page, read_report

REPORT = """<testsuites><testsuite>
<testcase classname="tests.a.TestSqlHere" name="test_sums[one file]" />
<testcase classname="tests.a.TestSqlHere" name="test_sums[shards]"><skipped/></testcase>
<testcase classname="tests.a.TestSqlOnDask" name="test_sums[one file]"><failure/></testcase>
<testcase classname="tests.a.TestSqlOnDask" name="test_sums[shards]" />
<testcase classname="tests.a.TestPythonOnDask" name="test_who_kills"><skipped/></testcase>
<testcase classname="tests.a.TestSqliteLedger" name="test_rows" />
<testcase classname="tests.a.TestPostgresLedger" name="test_rows"><error/></testcase>
<testcase classname="tests.a.TestOther" name="test_rows" />
</testsuite></testsuites>"""


def test_one_failure_is_a_no_and_none_is_a_yes(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(REPORT, "utf-8")
    lines = page(read_report(tmp_path / "r.xml")).splitlines()
    assert "| Sums | yes | **no** | – | – |" in lines
    assert "| Who kills | – | – | – | – |" in lines
    assert "| Rows | yes | **no** |" in lines


@pytest.mark.parametrize("contract", [EngineContract, LedgerContract])
def test_the_page_has_every_check_and_no_failure(contract: type) -> None:
    text = PAGE.read_text("utf-8")
    assert "**no**" not in text
    rows = {line.split(" | ")[0].removeprefix("| ") for line in text.splitlines()}
    wanted = {_sentence(name) for name in dir(contract) if name.startswith("test_")}
    assert wanted <= rows
