"""The layout is the architecture: one-way imports, one meaning a name, a light import."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tools.api_pages import PACKAGE_PAGES
from tools.architecture import BUILDS_ON, class_names, problems, repeated_classes, type_tests

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
LAB = ROOT / "packages" / "holdfast-lab" / "src"
FILES = sorted([*SOURCE.rglob("*.py"), *LAB.rglob("*.py")])
PUBLIC_SURFACE = SOURCE / "holdfast" / "__init__.py"  # it gathers names from every package


def module_name(path: Path) -> str:
    source = LAB if path.is_relative_to(LAB) else SOURCE
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_imports_go_one_way() -> None:
    files = [path for path in FILES if path != PUBLIC_SURFACE]
    texts = {path: path.read_text("utf-8") for path in files}
    wrong = [
        problems(module_name(path), text, is_package=path.name == "__init__.py")
        for path, text in texts.items()
    ]
    assert [what for each in wrong for what in each] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("holdfast.theory.coins", "from holdfast.planning import plan"),
        ("holdfast.theory.coins", "def f():\n    from holdfast_lab.audit import audit"),
        ("holdfast.theory.coins", "from ..mechanisms import search"),
        ("holdfast.protocols.split", "from holdfast.planning.solve import plan"),
        ("holdfast.ledger.sqlite", "from holdfast.store.table import Schema"),
        ("holdfast.server.app", "from holdfast.client.client import Client"),
        ("holdfast.theory.coins", "from .. import server"),
        ("holdfast.cli.app", "from holdfast_lab.cli import lab_app"),
        ("holdfast.cli.app", "import holdfast_lab"),
        ("holdfast.errors", "import holdfast.theory.coins"),
        ("holdfast.errors", "from holdfast.grids import Grid"),
        ("holdfast.planning.plan", "import holdfast"),
        ("holdfast.planning.plan", "import holdfast as hf"),
        ("holdfast.planning.plan", "from holdfast import Grid"),
        ("holdfast.planning.plan", "from holdfast import *"),
        ("holdfast.planning.plan", "from .. import plan"),
        ("holdfast.theory.coins", "import random"),
        ("holdfast.theory.coins", "import os.path"),
        ("holdfast.theory.coins", "from pathlib import Path"),
        ("holdfast.theory.coins", "from holdfast.randomness import flip"),
        ("holdfast.theory.coins", "from numpy.random import default_rng"),
        ("holdfast.theory.coins", "import numpy as np\nx = np.random.default_rng(1)"),
        ("holdfast.theory.coins", "open('data')"),
        ("holdfast_lab.audit", "import random"),
        ("holdfast_lab.audit", "import os\nx = os.urandom(8)"),
        ("holdfast_lab.audit", "import scipy"),
        ("holdfast_lab.audit", "if True:\n    from scipy.special import ndtr"),
        ("holdfast_lab.audit", "class A:\n    import scipy.special"),
        ("holdfast_lab.audit", "def f():\n    from scipy import stats"),
        ("holdfast_lab.audit", "def f():\n    import scipy.stats as s"),
        ("holdfast.oddments", "x = 1"),
    ],
)
def test_the_checker_sees_a_broken_rule(module: str, source: str) -> None:
    assert len(problems(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("holdfast.errors", "from holdfast.errors import InvalidInput"),
        ("holdfast.theory.sizing", "import math\nfrom holdfast.theory.coins import Coin"),
        ("holdfast.theory.sizing", "from .coin import Coin\nfrom . import renyi"),
        ("holdfast.theory.sizing", "from ..errors import Infeasible"),
        ("holdfast.randomness", "import os\nx = os.urandom(8)"),
        ("holdfast_lab.audit", "def f():\n    from scipy.special import ndtr"),
        ("holdfast_lab.audit", "class A:\n    def f(self):\n        import scipy.optimize"),
        ("holdfast.cli.main", "import rich\nfrom holdfast.report.page import write_page"),
        ("holdfast_lab.audit", "import holdfast as hf\nfrom holdfast.cli.app import run"),
    ],
)
def test_the_checker_lets_good_modules_pass(module: str, source: str) -> None:
    assert problems(module, source) == []


def test_relative_imports_of_a_package_start_at_the_package() -> None:
    assert problems("holdfast.theory", "from .coin import Coin", is_package=True) == []
    assert len(problems("holdfast.theory", "from ..server import app", is_package=True)) == 1


def test_importing_the_package_is_light() -> None:
    heavy = {"scipy", "matplotlib", "jinja2", "typer", "rich", "holdfast_lab"}
    code = f"import sys, holdfast; print(*sorted({heavy!r} & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=SOURCE
    )
    assert run.stdout.split() == []


@pytest.mark.parametrize(
    "package", [module_name(path) for path in FILES if path.name == "__init__.py"]
)
def test_what_a_package_exports_is_there(package: str) -> None:
    module = import_module(package)
    for name in getattr(module, "__all__", ()):
        getattr(module, name)


def test_every_package_has_a_page_of_the_reference() -> None:
    assert set(BUILDS_ON) - set(PACKAGE_PAGES) == {"cli"}


PACKAGE = SOURCE / "holdfast"
MODULES = {str(p.relative_to(PACKAGE)): p.read_text("utf-8") for p in PACKAGE.rglob("*.py")}


def test_a_class_name_occurs_once_in_the_package() -> None:
    assert repeated_classes(MODULES.values()) == {}


def test_only_protocols_ask_which_plan_part_or_result_something_is() -> None:
    """Everybody else asks the protocol: `isinstance` on classes of planning and protocols."""
    owners = [
        text for name, text in MODULES.items() if name.startswith(("planning/", "protocols/"))
    ]
    kinds = {name for text in owners for name in class_names(text) if name[0] != "_"}
    steps = {"PastTold", "Places", "Reserve", "Sums", "Terms", "Values"}
    kinds -= steps  # who drives a protocol reads them
    others = {name: text for name, text in MODULES.items() if not name.startswith("protocols/")}
    found = {name: type_tests(text, kinds) for name, text in sorted(others.items())}
    assert {name: count for name, count in found.items() if count} == {}
