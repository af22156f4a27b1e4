"""The command line: thin, no statistics of its own.

Exit status: 0 answered, 2 a bad question, 3 nothing more can be told, 4 a gate failed, 5 a gate is
unclear, 6 damaged or a check failed, 1 anything else.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the `holdfast` command."""
    from holdfast.cli.app import run

    sys.exit(run(sys.argv[1:]))
