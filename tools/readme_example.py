"""Prints the first Python example of a page: `python -m tools.readme_example README.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.fences import fences


def main() -> None:
    """Read the file named on the command line, print the example or say that there is none."""
    path = Path(sys.argv[1])
    examples = [fence for fence in fences(path.read_text("utf-8")) if fence.language == "python"]
    if not examples:
        sys.exit(f"{path} has no Python example")
    print(examples[0].text, end="")


if __name__ == "__main__":
    main()
