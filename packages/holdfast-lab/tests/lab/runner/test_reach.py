"""The digest of what is measured: it sees what `measure` reaches, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast_lab.runner import experiment
from holdfast_lab.runner.experiment import digest_of

FILES = {
    "mine.py": (
        "from holdfast_lab.helpers import used\n"
        "from holdfast_lab.pictures import paint\n"
        "from holdfast.theory.sizing import blocks\n"
        "SIZE = 3\nCOLOUR = 'red'\n"
        "def measure(cell):\n    from holdfast_lab.late import late\n"
        "    return inner(used, late, blocks)\n"
        "def inner(*x):\n    return SIZE\n"
        "def draw(results):\n    return paint(COLOUR)\n"
    ),
    "holdfast_lab/helpers/__init__.py": "from holdfast_lab.helpers.deep import used\n",
    "holdfast_lab/helpers/deep.py": "LIMIT = 4\ndef used():\n    return LIMIT\ndef other(): pass\n",
    "holdfast_lab/late.py": "import holdfast_lab.whole\ndef late(): pass\n",
    "holdfast_lab/whole.py": "def anything(): return 1\n",
    "holdfast_lab/pictures.py": "def paint(colour): return colour\n",
    "holdfast/theory/sizing.py": "def blocks(): return 1\n",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(experiment, "_ROOT", tmp_path)
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "old", "new", "seen"),
    [
        ("mine.py", "SIZE = 3", "SIZE = 5", True),
        ("mine.py", "SIZE = 3", "SIZE = 3  # three", False),
        ("mine.py", "'red'", "'blue'", False),
        ("mine.py", "return inner", "'''One cell.'''\n    return inner", False),
        ("holdfast_lab/helpers/deep.py", "LIMIT = 4", "LIMIT = 5", True),
        ("holdfast_lab/helpers/deep.py", "def other", "def another", False),
        ("holdfast_lab/late.py", "pass", "return 7", True),
        ("holdfast_lab/pictures.py", "return colour", "return 1", False),
        ("holdfast/theory/sizing.py", "return 1", "return 2", False),  # its version speaks for it
    ],
)
def test_what_counts_is_what_is_reached(
    tree: Path, name: str, old: str, new: str, seen: bool
) -> None:
    before = digest_of(tree / "mine.py")
    path = tree / name
    assert old in FILES[name]
    path.write_text(FILES[name].replace(old, new), "utf-8")
    assert (digest_of(tree / "mine.py") != before) == seen


def test_a_module_that_is_imported_whole_counts_whole(tree: Path) -> None:
    source = tree / "mine.py"
    source.write_text("import holdfast_lab.whole as w\ndef measure(cell): return w.anything()\n")
    before = digest_of(source)
    (tree / "holdfast_lab/whole.py").write_text("def anything(): return 2\n", "utf-8")
    assert digest_of(source) != before
