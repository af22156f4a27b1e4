"""docs/explanation/paper-map.md has a row for every label of the paper, and every row is true."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "paper-map.md"

# Every label of the LaTeX source, in the order of its first appearance, removed parts too.
LABELS = (
    "thm:intro-sq",
    "thm:intro-var",
    "thm:intro-iqr",
    "thm:intro-rh",
    "thm:intro-iqr-mwu",
    "fig:interact",
    "def:DP",
    "def:DP2",
    "thm:post",
    "thm:composition",
    "thm:interactive-composition",
    "lem:amp-med",
    "eqn:rho1",
    "eqn:rho0",
    "thm:EM-med",
    "eqn:EMacc",
    "lem:median2sq",
    "thm:SQ-med",
    "thm:em-adapt",
    "sec:mad-generalization",
    "eq:def-mad",
    "thm:gen",
    "thm:gen-adapt",
    "eqn:empacc",
    "thm:adaptive-iqr",
    "fig:median-strong",
    "eqn:emp-pf",
    "eqn:comp-dp",
    "cor:mad-range",
    "eq:iq2mad",
    "thm:gen-simp",
    "thm:adaptive-simple-general",
    "eqn:emp-int-point",
    "fig:median-strong-simp",
    "sec:extensions",
    "sec:reusable",
    "thm:sv",
    "thm:sv-emp",
    "thm:sv-sq",
    "eqn:suff",
    "eqn:multadd",
    "eqn:gne",
    "thm:adaptive-sq-mwu",
    "thm:adaptive-general-mwu",
    "app:mad-proof",
    "lem:DPEX",
    "lem:MultiEx",
    "eqn:EM",
    "eqn:MultiExUB",
    "eqn:ContraLB",
)


def rows() -> list[list[str]]:
    lines = PAGE.read_text("utf-8").splitlines()
    return [[c.strip() for c in line.strip("|").split("|")] for line in lines if line[:3] == "| `"]


ROWS = rows()


def resolve(name: str) -> object:
    """The module, or the attribute of a module, that a dotted name stands for."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)


@cache
def functions_of(file: str) -> frozenset[str]:
    found = sorted((ROOT / "tests").rglob(file))
    assert len(found) == 1, f"{file}: {found}"
    tree = ast.parse(found[0].read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_label_has_one_row_in_the_order_of_the_paper() -> None:
    assert Counter(LABELS).most_common(1)[0][1] == 1
    assert [row[0].strip("`") for row in ROWS] == list(LABELS)
    assert {len(row) for row in ROWS} == {4}
    assert all(all(cell for cell in row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("`"))
def test_every_function_exists_or_the_row_says_why_not(row: list[str]) -> None:
    names = re.findall(r"`((?:theory|mechanisms)\.[\w.]+)`", row[2])
    assert names or "no function" in row[2]
    for name in names:
        assert resolve(f"holdfast.{name}") is not None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("`"))
def test_every_test_exists_or_the_row_says_why_not(row: list[str]) -> None:
    names = re.findall(r"`(test_\w+\.py)::(\w+)`", row[3])
    assert names or row[3].startswith("no test: ")
    for file, name in names:
        assert name in functions_of(file), f"{file} has no {name}"


def test_names_that_do_not_exist_are_noticed() -> None:
    with pytest.raises(AttributeError):
        resolve("holdfast.theory.paper.no_such_function")
    with pytest.raises(AssertionError):
        functions_of("test_no_such_file.py")
    assert "test_no_such_test" not in functions_of("test_paper.py")
