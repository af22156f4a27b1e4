"""Opening: which store a manifest describes, and which engines are asked, by their addresses."""

from __future__ import annotations

from pathlib import Path

from holdfast.engines.source import Engines, Limits
from holdfast.engines.store.manifest import Contents, Manifest, read_contents
from holdfast.engines.store.reader import BlockStore
from holdfast.errors import InvalidInput

__all__ = ["check_engine", "open_engines", "open_store", "store_of"]

_CLUSTERS = ("dask://", "dask+tls://")


def open_store(folder: Path, manifest: Manifest) -> BlockStore:
    """The blocks of the holdout in a folder, whose ledger has this manifest."""
    return store_of(folder, read_contents(folder, manifest))


def store_of(folder: Path, contents: Contents) -> BlockStore:
    """The blocks in a folder, or where the manifest says that they are."""
    if contents.location is None:
        return BlockStore(folder, contents)
    from holdfast.engines.store.remote import RemoteStore

    return RemoteStore(folder, contents)


def check_engine(engine: str | None) -> str | None:
    """The same, if it is something that can be asked."""
    if engine is None or str(engine).startswith(_CLUSTERS):
        return engine
    allowed = "left out, for this machine, or dask://HOST:PORT, the address of a Dask scheduler"
    raise InvalidInput("engine", engine, allowed)


def open_engines(store: BlockStore, limits: Limits | None, engine: str | None = None) -> Engines:
    """The engines of this machine, or those of a cluster at an address."""
    if check_engine(engine) is None:
        return Engines(store, limits)
    from holdfast.engines.dask.engine import DaskEngines

    assert engine is not None
    return DaskEngines(store, limits, engine)
