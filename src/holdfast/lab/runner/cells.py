"""From parameters to cells: every combination, every repeat, each with a number of its own.

A cell's number is a hash of its parameters. So it is the same in quick and full runs, and stays
the same when values are added to a config file or put in another order: what was measured is kept.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from hashlib import sha256

from holdfast.lab.experiments.base import Cell
from holdfast.lab.runner.config import Mode, Scalar

__all__ = ["cells_of", "combinations", "count_cells", "identity_of", "key_of", "number_of"]


def combinations(mode: Mode) -> Iterator[dict[str, Scalar]]:
    """Every combination of the parameters, the last one turning fastest."""
    names = list(mode.parameters)
    for values in itertools.product(*mode.parameters.values()):
        yield dict(zip(names, values, strict=True))


def count_cells(mode: Mode) -> int:
    """How many cells there are."""
    return mode.repeats * math.prod(map(len, mode.parameters.values()))


def cells_of(mode: Mode, seed: int) -> list[Cell]:
    """All cells, in the order of measuring: first one repeat of everything, then the next.

    >>> mode = Mode(repeats=2, parameters={"size": (10, 20)})
    >>> [(cell["size"], cell.repeat) for cell in cells_of(mode, seed=1)]
    [(10, 0), (20, 0), (10, 1), (20, 1)]
    """
    numbered = [(each, number_of(each)) for each in combinations(mode)]
    return [
        Cell(parameters, seed, number, repeat)
        for repeat in range(mode.repeats)
        for parameters, number in numbered
    ]


def number_of(parameters: Mapping[str, Scalar]) -> int:
    """A number below 2**63 that depends on the parameters alone.

    >>> number_of({"a": 1, "b": "x"}) == number_of({"b": "x", "a": 1.0})
    True
    """
    return int.from_bytes(sha256(key_of(parameters).encode()).digest()[:8]) >> 1


def identity_of(cell: Cell) -> tuple[str, int]:
    """What tells a cell from all others of its experiment."""
    return key_of(cell.parameters), cell.repeat


def key_of(parameters: Mapping[str, Scalar]) -> str:
    """The parameters as one text, whatever their order; 1.0 is written as 1 is.

    >>> key_of({"b": True, "a": 2.0})
    '{"a": 2, "b": true}'
    """
    plain = {name: _plain(value) for name, value in parameters.items()}
    return json.dumps(plain, sort_keys=True, ensure_ascii=False)


def _plain(value: Scalar) -> Scalar:
    return int(value) if isinstance(value, float) and value.is_integer() else value
