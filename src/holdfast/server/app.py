"""The app: routes, errors and middleware put together."""

from __future__ import annotations

import gc
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from holdfast.engines.sql.parser import parse
from holdfast.server import routes
from holdfast.server.errors import add_handlers, document_errors
from holdfast.server.middleware import Requests
from holdfast.server.service import Service
from holdfast.server.settings import Settings, use

__all__ = ["SETTINGS_VARIABLE", "create_app", "from_environment"]

SETTINGS_VARIABLE = "HOLDFAST_SERVER_SETTINGS"
_PAGE = Path(__file__).parent / "page"


def create_app(settings: Settings) -> FastAPI:
    """An app that serves these holdouts. They are open from here until its shutdown."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="Holdfast",
        version=version("holdfast"),
        description="Ask one holdout adaptively chosen questions, and know what each answer is "
        "worth.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # to an address that the client has named
        lifespan=lifespan,
    )
    app.state.service = service
    add_handlers(app)
    app.add_middleware(Requests, service=service)
    for each in routes.ROUTERS:
        app.include_router(each)
    app.mount("/page", StaticFiles(directory=_PAGE), name="page")

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(_PAGE / "index.html")

    document_errors(app)
    return app


def from_environment() -> FastAPI:
    """The app of a worker process, whose parent has left the settings in its environment."""
    parse("1")  # loads the parser: the first question shall not
    settings = Settings.from_json(os.environ[SETTINGS_VARIABLE])
    if settings.state is not None:
        use(settings.state)  # until this process ends, should its parent end before
    app = create_app(settings)
    # What is loaded now stays: the search for cycles need not go through it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 5)
    return app
