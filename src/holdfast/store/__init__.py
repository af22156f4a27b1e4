"""The store: a table cut into random blocks, once, and kept in Parquet files.

table        columns and their kinds, and how values are stored
inputs       data as they are given: files, frames, dictionaries; how many rows, their fingerprint
duckdb       the locked database that reads and sorts them
sealing      shuffled, cut into blocks, written
blocks       what was written: manifest, files, reading
remote       blocks that are elsewhere
user_state   what this account knows of the data that it has sealed
"""

from __future__ import annotations

from holdfast.store.blocks import (
    BlockStore,
    Contents,
    Manifest,
    Shard,
    StoredFile,
    check_files,
    read_contents,
    write_contents,
)
from holdfast.store.inputs import Input, Survey, open_input
from holdfast.store.sealing import UnitSplit, split_units, write_store
from holdfast.store.table import Column, Schema
from holdfast.store.user_state import (
    Known,
    first_seen,
    forget,
    known,
    recognise,
    remember,
    state_folder,
    verify_once,
)

__all__ = [
    "BlockStore",
    "Column",
    "Contents",
    "Input",
    "Known",
    "Manifest",
    "Schema",
    "Shard",
    "StoredFile",
    "Survey",
    "UnitSplit",
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
