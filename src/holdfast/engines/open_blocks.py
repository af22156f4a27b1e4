"""The open part of a holdout, cut into blocks of the same size as the sealed ones.

Anybody may see it. An estimator's values on it show where its answers may lie, at no price.
"""

from __future__ import annotations

from dataclasses import replace

from holdfast.engines.store.manifest import OPEN_FILE, Shard
from holdfast.engines.store.reader import BlockStore

__all__ = ["OpenBlocks", "open_blocks"]


class OpenBlocks(BlockStore):
    """A store whose blocks are those of the open part."""

    @property
    def shards(self) -> tuple[Shard, ...]:
        rest = self.manifest.leftover_units > 0  # a last block that is not whole
        return (Shard(OPEN_FILE, 0, self.blocks + rest, self.manifest.block_rows),)


def open_blocks(store: BlockStore) -> OpenBlocks | None:
    """The open part as blocks; None if it does not fill one."""
    sealed = store.manifest
    blocks = sealed.open_units // sealed.block_units
    if not blocks:
        return None
    manifest = replace(
        sealed,
        rows=sealed.open_rows,
        units=sealed.open_units,
        blocks=blocks,
        block_rows=sealed.open_rows,  # of the file: the last block may be incomplete, and is unused
        open_units=0,
        open_rows=0,
        leftover_units=sealed.open_units - blocks * sealed.block_units,
        leftover_rows=0,
        shards=(),
        location=None,
    )
    return OpenBlocks(store.folder, manifest)
