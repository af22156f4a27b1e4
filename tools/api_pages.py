"""Writes docs/reference/api: a page for each package, which mkdocstrings fills from the docstrings.

Every `make docs` writes them again, and they are not committed: none can be out of date.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tools.architecture import BUILDS_ON

__all__ = ["PACKAGE_PAGES", "write_pages"]

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "reference" / "api"

# What a reader should expect of a package. The command line is documented as commands, not as code.
PACKAGE_PAGES = {
    "errors": "The exception tree.",
    "concurrency": "Waiting, locks that a fork survives, many writes done together.",
    "grids": "The finite sets of possible answers.",
    "randomness": "The one source of entropy, and exact draws from it.",
    "verbs": "What can be asked of a holdout, and with which words: one table.",
    "theory": "Every bound, as a pure function: no data, no randomness, no files.",
    "mechanisms": "The randomised algorithms, given counts or values.",
    "protocols": "What may be asked of blocks, what it costs and what the answer may say; no I/O.",
    "planning": "A question about a study in, a plan that explains itself out.",
    "store": "Sealed blocks and the open part, as files.",
    "engines": "From blocks and an estimator to one value per block.",
    "ledger": "The durable record.",
    "holdout": "Data is reached through it alone: charge, draw, record, answer.",
    "report": "One self-contained page about a holdout.",
    "server": "The holdout behind a network interface.",
    "client": "Talks to a server.",
    "holdfast_lab": "The evidence, a package of its own: attacks, baselines, experiments, audits.",
}
_PUBLIC, _LAB = "holdfast", "holdfast_lab"

_INDEX = """\
# Python modules

Made from the docstrings: first the public surface, then a page for each package of the code, where
a module imports only from its own package and from those above it. What is in the public surface
stays; what is only in the modules is documented so that it can be checked, and may change.

| page | what it holds |
|---|---|
"""


def write_pages(folder: Path) -> list[str]:
    """Write an index and the pages of the packages; return the names of the pages."""
    packages = [name for name in BUILDS_ON if name in PACKAGE_PAGES]
    about = {_PUBLIC: "The public surface: what `import holdfast` gives."}
    about |= {name: PACKAGE_PAGES[name] for name in packages}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, sentence in about.items():
        if name == _PUBLIC:
            # Its submodules have their own pages; here only the names it gathers.
            block = f"::: {name}\n    options:\n      show_submodules: false\n"
        else:
            block = f"::: {name}\n" if name == _LAB else f"::: {_PUBLIC}.{name}\n"
        (folder / f"{name}.md").write_text(f"# {name}\n\n{sentence}\n\n{block}", "utf-8")
    rows = "".join(f"| [{name}]({name}.md) | {sentence} |\n" for name, sentence in about.items())
    (folder / "index.md").write_text(_INDEX + rows, "utf-8")
    order = "".join(f"  - {page}.md\n" for page in ["index", *about])
    (folder / ".nav.yml").write_text(f"title: Python modules\nnav:\n{order}", "utf-8")
    return list(about)


if __name__ == "__main__":
    write_pages(PAGES)
