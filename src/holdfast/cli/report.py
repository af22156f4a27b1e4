"""`holdfast report`: one self-contained page about a holdout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.show import show_json
from holdfast.cli.values import Json
from holdfast.errors import InvalidInput

__all__ = ["report_command"]


def report_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The holdout's folder.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The HTML file to write.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: Json = False,
) -> None:
    """Write one HTML file with promise, budget, every question and answer, and the receipt."""
    from holdfast.report.page import page_html
    from holdfast.report.write import holdout_story, write_text

    if output.exists() and not force:
        hint = "Choose another name, or say --force to replace it."
        raise InvalidInput("output", str(output), "a file that does not exist yet", hint)
    story = holdout_story(folder)
    write_text(output, page_html(story))
    if as_json:
        questions, size = len(story.asked), output.stat().st_size
        facts = {"output": str(output), "bytes": size, "questions": questions}
        show_json({**facts, "receipt": str(story.head)})
    else:
        typer.echo(f"{output}: {len(story.asked):,} questions, as of receipt {story.head}")
