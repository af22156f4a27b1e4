"""How the lab's pictures look: one colour and one mark for each method, in all of them.

Nothing here uses pyplot: no window, no global state. Needs matplotlib, the extra `plot`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FAINT", "INK", "LOOKS", "PROMISED", "Look", "look_of", "new_figure", "save_figure"]


class Look(NamedTuple):
    """How a method is drawn."""

    label: str
    colour: str
    marker: str
    line: str = "-"


INK, FAINT, PROMISED = "#222222", "#767676", "#009E73"

# Okabe & Ito's palette: told apart by every kind of colour vision, and by lightness in grey.
LOOKS: dict[str, Look] = {
    "holdfast": Look("Holdfast", "#0072B2", "o"),
    "naive": Look("naive reuse", "#D55E00", "^"),
    "split": Look("fresh splitting", "#009E73", "s"),
    "paper": Look("Feldman & Steinke 2017", "#CC79A7", "v"),
    "gaussian": Look("Gaussian noise", "#E69F00", "D"),
    "laplace": Look("Laplace noise", "#56B4E9", "P"),
    "thresholdout": Look("Thresholdout", "#8B6BB1", "X"),
    "ladder": Look("Ladder", "#A6761D", "<"),
    "guess-and-check": Look("guess and check", "#666666", ">"),
    "sparse-vector": Look("sparse vector", "#B2A000", "p"),
    "bassily": Look("Bassily et al. 2016", "#999933", "v"),
    "rogers": Look("Rogers et al. 2020", "#332288", "D"),
    "jung": Look("Jung et al. 2020", "#AA4499", "^"),
    "holdfast-mean": Look("Holdfast, means", "#0072B2", "o"),
    "holdfast-split": Look("Holdfast, splitting", "#0072B2", "s", ":"),
    "holdfast-exact": Look("Holdfast, exact", "#0072B2", "x", "--"),
    "truth": Look("truth", INK, "", "--"),
}
_OTHER = Look("", FAINT, "o")


def look_of(name: str) -> Look:
    """The look of a method; `holdfast-mean` is drawn as `holdfast` is, under its own name."""
    if name in LOOKS:
        return LOOKS[name]
    family = LOOKS.get(name.split("-")[0], _OTHER)
    return family._replace(label=name.replace("-", " ", 1).replace("holdfast", "Holdfast"))


def new_figure(
    columns: int = 1, *, width: float = 7.2, height: float = 4.2
) -> tuple[Figure, list[Axes]]:
    """A figure with its axes side by side, without the frame that nobody needs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = [figure.add_subplot(1, columns, i + 1) for i in range(columns)]
    for one in axes:
        for side in ("top", "right"):
            one.spines[side].set_visible(False)
        one.grid(visible=True, which="major", color="#DDDDDD", linewidth=0.6)
        one.set_axisbelow(True)
        one.tick_params(colors=FAINT)
    return figure, axes


def save_figure(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write the picture as SVG and PNG, the same bytes for the same picture; return the paths."""
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.svg", folder / f"{stem}.png"]
    # Text stays text: it can be read aloud, searched and copied, and takes a third of the space.
    with matplotlib.rc_context({"svg.hashsalt": "holdfast", "svg.fonttype": "none"}):
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=150)
    return paths
