"""The identity of a function: equal for equal questions, in every process; else different."""

from __future__ import annotations

import functools
import importlib
import io
import math
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from holdfast.engines.python.identity import Encoder, identify

LIMIT = 3
TABLE = {"a": 1.0, "b": [1, 2]}


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


DIFFERENT_CODE = [
    "def f(x): return x.mean()",
    "def f(x): return x.median()",
    "def f(y): return y.mean() + 0",
    "def f(x): return x.mean() + 1",
    "def f(x): return x.mean() + 1.0",
    "def f(x): return x.mean() + True",
    "def f(x): return x.mean() + 0.0",
    "def f(x): return x.mean() + -0.0",
    "def f(x): return -x.mean()",
    "def f(x, y=1): return x.mean()",
    "def f(x, y=2): return x.mean()",
    "def f(x, *, y=1): return x.mean()",
    "def f(x, *, y=2): return x.mean()",
    "def f(x): return (lambda z: z + 1)(x)",
    "def f(x): return (lambda z: z + 2)(x)",
    "def f(x): return [z + 1 for z in x]",
    "def f(x): return x in {1, 2, 3}",
    "def f(x): return x in {1, 2, 4}",
    "def f(x): return np.mean(x)",
    "def f(x): return np.median(x)",
    "def f(x): return x if x else 1",
    "def f(x):\n    try:\n        return x.mean()\n    except ValueError:\n        return 0",
    "def f(x):\n    try:\n        return x.mean()\n    except KeyError:\n        return 0",
    "def f(x):\n    import statistics\n    return statistics.mean(x)",
    "def f(x):\n    import math\n    return math.mean(x)",
    "def f(x):\n    yield x",
    "async def f(x): return x.mean()",
    "def f(x, /): return x.mean()",
    "def f(x):\n    class A:\n        b = 1\n    return A.b",
    "def f(x):\n    class A:\n        b = 2\n    return A.b",
    "def g(x): return x + 1\ndef f(x): return g(x)",
    "def g(x): return x + 2\ndef f(x): return g(x)",
    "def h(x): return x + 1\ndef g(x): return h(x)\ndef f(x): return g(x)",
    "def h(x): return x + 2\ndef g(x): return h(x)\ndef f(x): return g(x)",
    "class A:\n    def g(self): return 1\ndef f(x): return A().g()",
    "class A:\n    def g(self): return 2\ndef f(x): return A().g()",
    "class A:\n    g = 1\nclass B(A): pass\ndef f(x): return B().g",
    "class A:\n    g = 2\nclass B(A): pass\ndef f(x): return B().g",
    "def f(x): return f(x - 1) if x else 0",
    "def f(x): return undefined(x)",
    "a = [1]\nb = a\ndef f(x): return a, b",
    "a = [1]\nb = [1]\ndef f(x): return a, b",
]


def test_different_code_has_different_identities() -> None:
    found = {source: digest(compiled(source)) for source in DIFFERENT_CODE}
    assert len(set(found.values())) == len(DIFFERENT_CODE)
    assert found == {source: digest(compiled(source)) for source in DIFFERENT_CODE}


VALUES: list[Callable[[], Any]] = [
    lambda: None,
    lambda: ...,
    lambda: True,
    lambda: 1,
    lambda: 1.0,
    lambda: 1j,
    lambda: 10**30,
    lambda: -(10**30),
    lambda: math.nan,
    lambda: 0.0,
    lambda: -0.0,
    lambda: "1",
    lambda: b"1",
    lambda: bytearray(b"1"),
    lambda: (1,),
    lambda: [1],
    lambda: [[1]],
    lambda: {1},
    lambda: frozenset({1}),
    lambda: {"a": 1},
    lambda: {"a": 1, "b": 2},
    lambda: {"b": 2, "a": 1},  # what iterates over it sees another order
    lambda: {1: "a"},
    lambda: {"x", "y", "z", "w", "v"},
    lambda: OrderedDict(a=1),
    lambda: Counter("aab"),
    lambda: range(3),
    lambda: slice(1, 2),
    lambda: date(2020, 1, 1),
    lambda: datetime(2020, 1, 1, tzinfo=UTC),
    lambda: datetime(2020, 1, 1),
    lambda: Decimal("1.0"),
    lambda: Decimal("1.00"),
    lambda: Fraction(1, 3),
    lambda: Path("/data"),
    lambda: Colour.RED,
    lambda: Colour.BLUE,
    lambda: Point(1.0, [2.0]),
    lambda: Point(1.0, [3.0]),
    lambda: Scaler(1.0),
    lambda: Scaler(2.0),
    lambda: Scaler(1.0).apply,
    lambda: Scaler(2.0).apply,
    lambda: Scaler.plain,
    lambda: Scaler,
    lambda: Point,
    lambda: functools.partial(math.pow, 2.0),
    lambda: functools.partial(math.pow, 3.0),
    lambda: functools.partial(max, key=len),
    lambda: [1].append,
    lambda: [2].append,
    lambda: len,
    lambda: math.sqrt,
    lambda: str.upper,
    lambda: str.count,
    lambda: list.count,
    lambda: int.__abs__,
    lambda: float.__abs__,
    lambda: np.ndarray.max,
    lambda: np.generic.max,
    lambda: np.ndarray.real,
    lambda: np.generic.real,
    lambda: vars(Slotted)["v"],
    lambda: vars(OtherSlotted)["v"],
    lambda: np.mean,
    lambda: np.add,
    lambda: np.float64,
    lambda: np,
    lambda: math,
    lambda: pd.DataFrame,
    lambda: np.float64(1.0),
    lambda: np.float32(1.0),
    lambda: np.dtype("f4"),
    lambda: np.arange(3),
    lambda: np.arange(3.0),
    lambda: np.arange(4).reshape(2, 2),
    lambda: np.asfortranarray(np.arange(4).reshape(2, 2)),
    lambda: fixed(np.arange(4).reshape(2, 2)),
    lambda: np.arange(4),
    lambda: np.array(["a", None], object),
    lambda: np.ma.masked_array([1, 2], [True, False]),
    lambda: np.ma.masked_array([1, 2], [False, True]),
    lambda: np.ma.masked_array([1, 2], [False, True], fill_value=3),
    lambda: np.ma.masked_array([1, 2], [False, True], fill_value=4),
    lambda: np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]),
    lambda: np.random.default_rng(1),
    lambda: np.random.default_rng(2),
    lambda: pd.Series([1, 2], name="a"),
    lambda: pd.Series([1, 2], name="b"),
    lambda: pd.Series([1, 2], index=[1, 0], name="a"),
    lambda: pd.Series(["x", None]),
    lambda: pd.Series(["x", "y"], dtype="category"),
    lambda: pd.Series([1, None], dtype="Int64"),
    lambda: pd.Series([1, 2], dtype="Int64"),
    lambda: pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
    lambda: pd.DataFrame({"a": [1, 3], "b": ["x", "y"]}),
    lambda: pd.DataFrame({"a": [1, 2], "c": ["x", "y"]}),
    lambda: pd.Index([1, 2]),
    lambda: pd.MultiIndex.from_tuples([(1, "a"), (2, "b")]),
    lambda: pd.Timestamp("2020-01-01"),
    lambda: pd.Timedelta("1 day"),
    lambda: pl.DataFrame({"a": [1, 2]}),
    lambda: pl.DataFrame({"a": [1, 3]}),
    lambda: pl.DataFrame({"b": [1, 2]}),
    lambda: pl.Series("a", [1, 2]),
    lambda: pa.table({"a": [1, 2]}),
    lambda: pa.table({"a": [1, None]}),
    lambda: pa.array([1, 2]),
]


def test_every_value_in_a_closure_has_an_identity_of_its_own() -> None:
    found = [digest(closure(make())) for make in VALUES]
    wrong = [number for number, each in enumerate(found) if found.index(each) != number]
    assert wrong == []
    assert found == [digest(closure(make())) for make in VALUES]


def test_a_global_counts_by_its_value() -> None:
    source = "def f(x): return x + LIMIT"
    assert digest(compiled(source, LIMIT=3)) == digest(compiled(source, LIMIT=3))
    assert digest(compiled(source, LIMIT=3)) != digest(compiled(source, LIMIT=4))
    assert digest(compiled(source, LIMIT=3)) != digest(compiled(source, LIMIT=3.0))
    assert digest(compiled(source, LIMIT=3)) != digest(compiled(source))


def test_a_global_that_is_not_used_does_not_count() -> None:
    source = "def f(x): return x.LIMIT"
    assert digest(compiled(source, LIMIT=3)) == digest(compiled(source, LIMIT=4))


def test_a_function_that_calls_itself_or_another_in_a_circle_has_an_identity() -> None:
    circle = "def g(x): return f(x) + {}\ndef f(x): return g(x)"
    one, two = (compiled(circle.format(number)) for number in (1, 2))
    assert digest(one) == digest(compiled(circle.format(1)))
    assert digest(one) != digest(two)


def test_a_container_that_holds_itself_has_an_identity() -> None:
    def ring(last: int) -> list[Any]:
        items: list[Any] = [1, last]
        items.append(items)
        return items

    assert digest(closure(ring(2))) == digest(closure(ring(2)))
    assert digest(closure(ring(2))) != digest(closure(ring(3)))


def test_attributes_of_a_function_count() -> None:
    one, two = closure(1), closure(1)
    two.threshold = 3  # type: ignore[attr-defined]
    assert digest(one) != digest(two)


def test_a_frame_counts_by_its_values_not_by_how_it_is_held() -> None:
    whole = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    pieces = pd.DataFrame({"a": [1.0, 2.0]})
    pieces["b"] = [3.0, 4.0]
    assert digest(closure(whole)) == digest(closure(pieces))
    array = np.arange(6.0)
    assert digest(closure(array[::2])) == digest(closure(array[::2].copy()))


def numbers() -> Iterator[int]:
    yield 1


UNREADABLE: list[Callable[[], Any]] = [
    numbers,
    threading.Lock,
    lambda: open(os.devnull, "rb"),  # noqa: PTH123, SIM115
    lambda: threading.Thread(target=print),
    lambda: sys._getframe(),
    lambda: np.frompyfunc(len, 1, 1),
    lambda: sys.modules["__main__"],
    lambda: type(sys)("by_hand"),
    lambda: memoryview(b"1"),
    lambda: closure(numbers()),
    lambda: functools.partial(print, threading.Lock()),
    lambda: {"deep": [(threading.Lock(),)]},
    lambda: Scaler(threading.Lock()),  # type: ignore[arg-type]
]


def test_an_array_is_hashed_in_the_order_in_which_it_travels() -> None:
    values = np.arange(24.0).reshape(4, 6)
    for view in (values[:, :3], values[:, ::2], values[::2, 0], values.reshape(2, 3, 4).T[:, 1:]):
        arrived = pickle.loads(cloudpickle.dumps(view))
        assert arrived.flags.c_contiguous
        assert digest(view) == digest(arrived) == digest(np.array(view, order="C"))
    turned = np.asfortranarray(values)
    assert digest(turned) == digest(pickle.loads(cloudpickle.dumps(turned))) != digest(values)


@pytest.mark.parametrize("make", UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_cannot_be_read_has_no_identity(make: Callable[[], Any]) -> None:
    value = make()
    try:
        assert identify(closure(value)).digest is None
    finally:
        if isinstance(value, io.IOBase):
            value.close()


def test_what_raises_when_it_is_read_has_no_identity() -> None:
    class Evil:
        def __reduce_ex__(self, protocol: object) -> Any:
            raise RuntimeError("never")

    assert identify(closure(Evil())).digest is None


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
