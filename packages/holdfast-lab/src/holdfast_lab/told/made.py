"""Made rows in a holdout of their own: whoever made them knows which are sealed, and all truths.

The holdout is created as anybody would, without a plan, and what is read are its answers. Made are
the predictions: so many right on the sealed rows, so many on the open ones.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.holdout.holdout import Holdout
from holdfast.protocols.answers import Told
from holdfast_lab.runner.run import environment

Bits = NDArray[np.bool_]


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for holdouts that nobody will ask again, with a state folder that forgets them."""
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-lab-") as folder,
        environment(HOLDFAST_STATE=str(Path(folder) / "state")),
    ):
        yield Path(folder)


@contextmanager
def made_rows(sealed: int, chance: np.random.Generator) -> Iterator[MadeRows]:
    """A holdout of so many sealed rows and as many open ones."""
    with scratch() as folder, closing(MadeRows(folder, sealed, chance)) as rows:
        yield rows


class MadeRows:
    """Rows with labels 0 and 1, half of them sealed."""

    def __init__(self, folder: Path, sealed: int, chance: np.random.Generator) -> None:
        import pandas as pd

        self._folder, self.sealed, self.chance = folder, sealed, chance
        self._ids = np.arange(2 * sealed)
        self._labels = chance.integers(0, 2, 2 * sealed)
        table = pd.DataFrame({"id": self._ids, "row": self._ids, "label": self._labels})
        words: dict[str, Any] = {"ids": "id", "target": "label", "labels": [0, 1]}
        self.holdout = Holdout.create(self._path, table, open_fraction=0.5, **words)
        self.open = np.zeros(2 * sealed, np.bool_)
        self.open[self.holdout.open_table(["row"])["row"].to_numpy()] = True
        assert np.count_nonzero(~self.open) == sealed

    @property
    def _path(self) -> Path:
        return self._folder / "made.holdfast"

    def close(self) -> None:
        """Nobody asks any more."""
        self.holdout.close()

    def predictions(self, right: Bits) -> Any:
        """Predictions by id, right on these rows and wrong on the others."""
        import pandas as pd

        given = np.where(right, self._labels, 1 - self._labels)
        return pd.DataFrame({"id": self._ids, "prediction": given})

    def score(self, right: Bits, **words: Any) -> Told:
        """The holdout's answer about a model that is right on these rows."""
        return cast(Told, self.holdout.score(self.predictions(right), **words))

    def right(self, share: float) -> Bits:
        """Right on exactly this share of the sealed rows, and of the open ones, drawn by chance."""
        right = np.zeros(self.open.size, np.bool_)
        for rows in (~self.open, self.open):
            places = np.flatnonzero(rows)
            right[self.chance.choice(places, round(share * places.size), replace=False)] = True
        return right

    def changed(self, right: Bits, wins: int, losses: int) -> Bits:
        """So many more and so many others fewer right, of the sealed rows and of the open ones."""
        other = right.copy()
        for rows in (~self.open, self.open):
            for was, count in ((False, wins), (True, losses)):
                places = np.flatnonzero(rows & (right == was))
                other[self.chance.choice(places, count, replace=False)] = not was
        return other

    def least(self, low: int, high: int, enough: Callable[[int], bool]) -> int:
        """The least count above `low` that is enough, as `high` is.

        Each is tried as the next question: then the holdout is put back to what it was before.
        """
        with tempfile.TemporaryDirectory(prefix="holdfast-lab-") as copy:
            self.holdout.close()
            shutil.copytree(self._folder, copy, dirs_exist_ok=True)
            while high - low > 1:
                middle = (low + high) // 2
                self.holdout = Holdout.open(self._path)
                low, high = (low, middle) if enough(middle) else (middle, high)
                self.holdout.close()
                for each in self._folder.iterdir():
                    shutil.rmtree(each)
                shutil.copytree(copy, self._folder, dirs_exist_ok=True)
            self.holdout = Holdout.open(self._path)
        return high
