"""The identity of a function: equal for equal questions, in every process; else different."""

from __future__ import annotations

import importlib
import math
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from holdfast.engines.python.identity import Encoder, identify


def digest(value: object) -> str:
    found = identify(value).digest
    assert found is not None
    return found


def compiled(source: str, **names: Any) -> Any:
    """A function named f, made from source as if it had been typed just now."""
    space: dict[str, Any] = {"__name__": "__main__", "np": np, "pd": pd, "math": math, **names}
    exec(compile(textwrap.dedent(source), f"<input {len(source)}>", "exec"), space)
    return space["f"]


def closure(value: Any) -> Callable[[Any], Any]:
    return lambda block: (block, value)


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Point:
    x: float
    y: list[float]


class Scaler:
    scale = 2.0

    def __init__(self, shift: float) -> None:
        self.shift = shift

    def apply(self, block: Any) -> Any:
        return block * self.scale + self.shift

    @property
    def double(self) -> float:
        return 2 * self.shift

    @staticmethod
    def plain(block: Any) -> Any:
        return block

    def __call__(self, block: Any) -> Any:
        return self.apply(block)


class Slotted:
    __slots__ = ("v",)


class OtherSlotted:
    __slots__ = ("u", "v")


def fixed(array: Any) -> Any:
    array.flags.writeable = False
    return array


SAME_CODE = [
    "def f(x): return x.mean()",
    "def f(x):\n    # another comment\n    return x.mean()",
    "\n\n\ndef f(x):\n    return (\n        x.mean()\n    )",
]


@pytest.mark.parametrize("source", SAME_CODE)
def test_where_and_how_a_function_is_written_does_not_matter(source: str) -> None:
    assert digest(compiled(source)) == digest(compiled(SAME_CODE[0]))


BODIES = """
x.mean(); x.median(); x.mean() + 0; x.mean() + 1; x.mean() + 1.0; x.mean() + True; x.mean() + 0.0
x.mean() + -0.0; -x.mean(); (lambda z: z + 1)(x); (lambda z: z + 2)(x); [z + 1 for z in x]
x in {1, 2, 3}; x in {1, 2, 4}; np.mean(x); np.median(x); x if x else 1; undefined(x)
f(x - 1) if x else 0
"""
DIFFERENT_CODE = [
    *(f"def f(x): return {body}" for body in BODIES.strip().replace("\n", "; ").split("; ")),
    *(f"def f(x, {more}): return x.mean()" for more in ("y=1", "y=2", "*, y=1", "*, y=2", "/")),
    *(
        f"def f(x):\n    try:\n        return x.mean()\n    except {error}:\n        return 0"
        for error in ("ValueError", "KeyError")
    ),
    *(
        f"def f(x):\n    import {name}\n    return {name}.mean(x)"
        for name in ("statistics", "math")
    ),
    "def f(x):\n    yield x",
    "async def f(x): return x.mean()",
    *(f"def f(x):\n    class A:\n        b = {n}\n    return A.b" for n in (1, 2)),
    *(f"def g(x): return x + {n}\ndef f(x): return g(x)" for n in (1, 2)),
    *(f"def h(x): return x + {n}\ndef g(x): return h(x)\ndef f(x): return g(x)" for n in (1, 2)),
    *(f"class A:\n    def g(self): return {n}\ndef f(x): return A().g()" for n in (1, 2)),
    *(f"class A:\n    g = {n}\nclass B(A): pass\ndef f(x): return B().g" for n in (1, 2)),
    *(f"a = [1]\nb = {b}\ndef f(x): return a, b" for b in ("a", "[1]")),
]


def test_different_code_has_different_identities() -> None:
    found = {source: digest(compiled(source)) for source in DIFFERENT_CODE}
    assert len(set(found.values())) == len(DIFFERENT_CODE) == 42
    assert found == {source: digest(compiled(source)) for source in DIFFERENT_CODE}


IMPORTS = """
import functools, threading, polars as pl, pyarrow as pa
from collections import Counter, OrderedDict
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
"""


def evaluated(text: str) -> Any:
    space = dict(globals())
    exec(IMPORTS, space)
    return eval(text, space)


# One expression a line, or several with semicolons; no two have the same identity.
VALUES = """
None; ...; True; 1; 1.0; 1j; 10**30; -(10**30); math.nan; 0.0; -0.0
"1"; b"1"; bytearray(b"1"); (1,); [1]; [[1]]; {1}; frozenset({1}); {"x", "y", "z", "w", "v"}
{"a": 1}; {"a": 1, "b": 2}; {"b": 2, "a": 1}; {1: "a"}; OrderedDict(a=1); Counter("aab")
range(3); slice(1, 2); date(2020, 1, 1); datetime(2020, 1, 1, tzinfo=UTC); datetime(2020, 1, 1)
Decimal("1.0"); Decimal("1.00"); Fraction(1, 3); Path("/data"); Colour.RED; Colour.BLUE
Point(1.0, [2.0]); Point(1.0, [3.0]); Scaler(1.0); Scaler(2.0); Scaler(1.0).apply
Scaler(2.0).apply; Scaler.plain; Scaler; Point; vars(Slotted)["v"]; vars(OtherSlotted)["v"]
functools.partial(math.pow, 2.0); functools.partial(math.pow, 3.0); functools.partial(max, key=len)
[1].append; [2].append; len; math.sqrt; str.upper; str.count; list.count; int.__abs__
float.__abs__; np.ndarray.max; np.generic.max; np.ndarray.real; np.generic.real; np.mean; np.add
np.float64; np; math; pd.DataFrame; np.float64(1.0); np.float32(1.0); np.dtype("f4"); np.arange(3)
np.arange(3.0); np.arange(4).reshape(2, 2); np.asfortranarray(np.arange(4).reshape(2, 2))
fixed(np.arange(4).reshape(2, 2)); np.arange(4); np.array(["a", None], object)
np.ma.masked_array([1, 2], [True, False]); np.ma.masked_array([1, 2], [False, True])
np.ma.masked_array([1, 2], [False, True], fill_value=3)
np.ma.masked_array([1, 2], [False, True], fill_value=4)
np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")])
np.random.default_rng(1); np.random.default_rng(2); pd.Series([1, 2], name="a")
pd.Series([1, 2], name="b"); pd.Series([1, 2], index=[1, 0], name="a"); pd.Series(["x", None])
pd.Series(["x", "y"], dtype="category"); pd.Series([1, None], dtype="Int64")
pd.Series([1, 2], dtype="Int64"); pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
pd.DataFrame({"a": [1, 3], "b": ["x", "y"]}); pd.DataFrame({"a": [1, 2], "c": ["x", "y"]})
pd.Index([1, 2]); pd.MultiIndex.from_tuples([(1, "a"), (2, "b")]); pd.Timestamp("2020-01-01")
pd.Timedelta("1 day"); pl.DataFrame({"a": [1, 2]}); pl.DataFrame({"a": [1, 3]})
pl.DataFrame({"b": [1, 2]}); pl.Series("a", [1, 2]); pa.table({"a": [1, 2]})
pa.table({"a": [1, None]}); pa.array([1, 2])
"""


def test_every_value_in_a_closure_has_an_identity_of_its_own() -> None:
    texts = VALUES.strip().replace("\n", "; ").split("; ")
    assert len(texts) == 108
    found = [digest(closure(evaluated(text))) for text in texts]
    wrong = [text for text, each in zip(texts, found, strict=True) if found.count(each) > 1]
    assert wrong == []
    assert found == [digest(closure(evaluated(text))) for text in texts]


def test_a_global_counts_by_its_value_if_it_is_used() -> None:
    source = "def f(x): return x + LIMIT"
    values: list[dict[str, Any]] = [{"LIMIT": 3}, {"LIMIT": 4}, {"LIMIT": 3.0}, {}]
    assert len({digest(compiled(source, **each)) for each in values}) == 4
    assert digest(compiled(source, LIMIT=3)) == digest(compiled(source, LIMIT=3))
    unused = "def f(x): return x.LIMIT"
    assert digest(compiled(unused, LIMIT=3)) == digest(compiled(unused, LIMIT=4))
    one, two = closure(1), closure(1)
    two.threshold = 3  # type: ignore[attr-defined]  # and so do attributes of a function
    assert digest(one) != digest(two)


def test_what_leads_back_to_itself_has_an_identity() -> None:
    def ring(last: int) -> Any:
        items: list[Any] = [1, last]
        items.append(items)
        return closure(items)

    def circle(last: int) -> Any:
        return compiled(f"def g(x): return f(x) + {last}\ndef f(x): return g(x)")

    for make in (ring, circle):
        assert digest(make(1)) == digest(make(1)) != digest(make(2))


def numbers() -> Iterator[int]:
    yield 1


def test_frames_and_arrays_count_by_their_values_in_the_order_in_which_they_travel() -> None:
    """Not by how they are held."""
    whole = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    pieces = pd.DataFrame({"a": [1.0, 2.0]})
    pieces["b"] = [3.0, 4.0]
    assert digest(closure(whole)) == digest(closure(pieces))
    values = np.arange(24.0).reshape(4, 6)
    for view in (values[:, :3], values[:, ::2], values[::2, 0], values.reshape(2, 3, 4).T[:, 1:]):
        arrived = pickle.loads(cloudpickle.dumps(view))
        assert arrived.flags.c_contiguous
        assert digest(view) == digest(arrived) == digest(np.array(view, order="C"))
    turned = np.asfortranarray(values)
    assert digest(turned) == digest(pickle.loads(cloudpickle.dumps(turned))) != digest(values)


class Raises:
    def __reduce_ex__(self, protocol: object) -> Any:
        raise RuntimeError("never")


UNREADABLE = """
numbers(); threading.Lock(); threading.Thread(target=print); sys._getframe(); Raises()
np.frompyfunc(len, 1, 1); sys.modules["__main__"]; type(sys)("by_hand"); memoryview(b"1")
closure(numbers()); functools.partial(print, threading.Lock()); {"deep": [(threading.Lock(),)]}
Scaler(threading.Lock())
"""


def test_what_cannot_be_read_has_no_identity() -> None:
    for text in UNREADABLE.strip().replace("\n", "; ").split("; "):
        assert identify(closure(evaluated(text))).digest is None, text
    with Path(os.devnull).open("rb") as file:
        assert identify(closure(file)).digest is None


def test_values_nested_too_deep_or_too_many_have_no_identity() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert identify(closure(deep)).digest is None
    while deep:  # taken apart from outside: Python's own way would climb down all of it
        deep = deep[0]
    assert identify(closure([0] * 600_000)).digest is None


def test_models_of_scikit_learn_count_by_what_they_have_learnt() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(100, 3)), rng.integers(0, 2, 100)

    def fitted(c: float, rows: int) -> Any:
        return make_pipeline(StandardScaler(), LogisticRegression(C=c)).fit(x[:rows], y[:rows])

    def forest(seed: int) -> Any:
        return RandomForestClassifier(n_estimators=3, random_state=seed).fit(x, y)

    made = [fitted(1, 100), fitted(2, 100), fitted(1, 90), forest(1), forest(2)]
    again = [fitted(1, 100), fitted(2, 100), fitted(1, 90), forest(1), forest(2)]
    found = [digest(model.predict) for model in made]
    assert len(set(found)) == len(found)
    assert found == [digest(model.predict) for model in again]


def test_functions_of_the_users_own_modules_are_read_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))

    def written(body: str) -> tuple[str, frozenset[str]]:
        (tmp_path / "own_estimators.py").write_text(f"import own_helpers\n{body}", "utf-8")
        for name in ("own_estimators", "own_helpers"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        module = importlib.import_module("own_estimators")
        found = identify(module.f)
        assert found.digest is not None
        return found.digest, found.modules

    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two edits in one second
    (tmp_path / "own_helpers.py").write_text("def help(x): return x + 1\n", "utf-8")
    one, modules = written("def f(x): return own_helpers.help(x)\n")
    assert modules == {"own_estimators"}
    assert written("def f(x): return own_helpers.help(x)\n")[0] == one
    assert written("def f(x): return own_helpers.help(x + 1)\n")[0] != one
    (tmp_path / "own_helpers.py").write_text("def help(x): return x + 2\n", "utf-8")
    assert written("def f(x): return own_helpers.help(x)\n")[0] != one
    for name in ("own_estimators", "own_helpers"):
        sys.modules.pop(name, None)


def test_own_modules_count_with_all_that_they_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file counts, and whether it is loaded already does not."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    package = tmp_path / "own_package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("", "utf-8")
    (package / "inner" / "__init__.py").write_text("import own_third\n", "utf-8")
    (tmp_path / "own_third.py").write_text("LIMIT = 1\n", "utf-8")
    importlib.invalidate_caches()
    function = compiled(
        "def f(x):\n    from own_package.inner import own_third\n    return own_third"
    )
    first = digest(function)
    importlib.import_module("own_package.inner")
    try:
        assert digest(function) == first
        (tmp_path / "own_third.py").write_text("LIMIT = 2\n", "utf-8")
        second = digest(function)
        assert second != first
        (package / "other.py").write_text("", "utf-8")
        assert digest(function) not in {first, second}
    finally:
        for name in ("own_package.inner", "own_package", "own_third"):
            sys.modules.pop(name, None)


SCRIPT = """
import functools, math, sys
import numpy as np, pandas as pd
from dataclasses import dataclass
from enum import Enum
from holdfast.engines.python.identity import identify
NAMES = {"alpha", "beta", "gamma", "delta"}
TABLE = {"alpha": {"x", "y", "z"}, "beta": frozenset({"u", "v"})}
class Kind(Enum):
    A = "a"
    B = "b"
@dataclass(frozen=True)
class Rule:
    names: frozenset
    kind: Kind = Kind.A
    def __call__(self, block):
        return len(block) + len(self.names)
def helper(x): return x in NAMES
def f(block, rule=Rule(frozenset({"p", "q", "r"}))):
    return helper(block) and np.mean(block) and TABLE and rule(block) and block in {"k", "l", "m"}
values = [f, Rule(frozenset({"a", "b"})), functools.partial(f, rule=None), np.quantile,
          lambda d: d.x.mean(), lambda d: (d, NAMES, object), Kind.B, Rule]
print(*(identify(value).digest for value in values))
"""


def test_identities_are_the_same_in_every_process() -> None:
    found = set()
    for seed in ("0", "1", "77"):
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "None" not in run.stdout
        found.add(run.stdout)
    assert len(found) == 1
    assert len(set(found.pop().split())) == 8


def test_many_texts_are_written_as_each_would_be() -> None:
    texts = ["ham", "", "Grüße", "\ud800", "ham"] * 3
    together, apart = Encoder(), Encoder()
    together.add_all("items", texts)
    apart.write("items", len(texts))
    for each in texts:
        apart.add(each)
    assert together.digest() == apart.digest()
    assert identify(np.array(["x"] * 600_000, object)).digest is None  # as ever: too many values
