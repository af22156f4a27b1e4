"""`holdfast serve`: answer analysts over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.place import Engine
from holdfast.cli.values import size, whole_option
from holdfast.errors import HoldfastError

__all__ = ["serve_command"]

_PACKAGES = "fastapi greenlet httptools prometheus-client uvicorn uvloop"


def serve_command(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="The folders of the holdouts.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, whole_option("Port to listen on; 0 takes a free one.")] = 8000,
    workers: Annotated[int, whole_option("Processes that answer.")] = 1,
    slot: Annotated[
        float, typer.Option(help="Seconds: answers leave after 1, 2, 4, 8, … of them.")
    ] = 0.05,
    rate: Annotated[float, typer.Option(help="Requests a second for each token.")] = 50.0,
    burst: Annotated[int, whole_option("… and how many at once.")] = 100,
    body_limit: Annotated[str, typer.Option(help="Size of a question, such as 64KB.")] = "64KB",
    submission_limit: Annotated[
        str, typer.Option(help="Size of a submission, such as 50MB.")
    ] = "50MB",
    metrics: Annotated[
        Path | None, typer.Option(help="A Python file with metrics of your own.")
    ] = None,
    engine: Engine = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate, for https.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key.")] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address as one line of JSON.")
    ] = False,
) -> None:
    """Answer analysts over HTTP: they ask, and never see a row.

    holdfast serve flights.holdfast --port 8000
    """
    try:
        from holdfast.server.run import serve
        from holdfast.server.settings import Settings
    except ImportError as missing:
        message = f"The server needs {missing.name}: pip install {_PACKAGES}."
        raise HoldfastError(message) from None

    settings = Settings(
        folders=tuple(folder.resolve() for folder in folders),
        host=host,
        port=port,
        workers=workers,
        slot=slot,
        rate=rate,
        burst=burst,
        body_limit=size("--body-limit", body_limit),
        submission_limit=size("--submission-limit", submission_limit),
        metrics=None if metrics is None else metrics.resolve(),
        engine=engine,
        tls_cert=tls_cert,
        tls_key=tls_key,
    )

    def ready(told: dict[str, Any]) -> None:
        if as_json:
            typer.echo(json.dumps(told))
            return
        typer.echo(f"Holdfast serves {', '.join(told['holdouts'])} at {told['url']}")
        if not settings.loopback and settings.tls_cert is None:
            typer.echo("Tokens travel unencrypted: use --tls-cert, or a proxy that does.", err=True)

    status = serve(settings, level=log_level, ready=ready)
    if status:
        raise typer.Exit(status)
