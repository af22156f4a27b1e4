"""The store: a table cut into random blocks, once, and kept in Parquet files."""

from __future__ import annotations

from holdfast.engines.store.columns import Column, Schema
from holdfast.engines.store.inputs import Input, open_input
from holdfast.engines.store.manifest import (
    Contents,
    Manifest,
    Shard,
    StoredFile,
    read_contents,
    write_contents,
)
from holdfast.engines.store.reader import BlockStore, check_files
from holdfast.engines.store.registry import Known, first_seen, forget, known, recognise, remember
from holdfast.engines.store.state import state_folder
from holdfast.engines.store.survey import Survey
from holdfast.engines.store.verified import verify_once
from holdfast.engines.store.write import Split, split_units, write_store

__all__ = [
    "BlockStore",
    "Column",
    "Contents",
    "Input",
    "Known",
    "Manifest",
    "Schema",
    "Shard",
    "Split",
    "StoredFile",
    "Survey",
    "check_files",
    "first_seen",
    "forget",
    "known",
    "open_input",
    "read_contents",
    "recognise",
    "remember",
    "split_units",
    "state_folder",
    "verify_once",
    "write_contents",
    "write_store",
]
