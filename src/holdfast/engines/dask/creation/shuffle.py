"""The random order by Dask's own shuffle: its parts are ranges of places, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from holdfast.engines.dask.connection import Connection
from holdfast.engines.dask.creation.pieces import Piece
from holdfast.engines.dask.creation.placing import HIGH, Placing, Staged, empty_frame, placed, stage
from holdfast.engines.dask.creation.waiting import results
from holdfast.engines.store.session import Progress

__all__ = ["shuffle"]

_KEYS = 2**64  # places that the upper half of a key tells apart


def shuffle(
    connection: Connection,
    placing: Placing,
    pieces: Sequence[Piece],
    parts: int,
    progress: Progress,
) -> list[Staged]:
    """Bring every row to its place, and stage the order in so many parts."""
    client, topic = connection.client, placing.job.creation
    tasks = client.compute(_graph(placing, pieces, parts))
    read, found = Counter[str](), dict[int, Staged]()

    def tell() -> None:
        share = min(1.0, read["pieces"] / len(pieces))
        progress("shuffling", (share + len(found) / parts) / 2)

    client.subscribe_topic(topic, lambda _: read.update(["pieces"]))
    try:
        tell()
        for number, each in results(connection, tasks, tell):
            found[number] = each
            tell()
    finally:
        client.unsubscribe_topic(topic)
    return [found[number] for number in range(parts)]


def _graph(placing: Placing, pieces: Sequence[Piece], parts: int) -> list[Any]:
    import dask
    import dask.dataframe as dd
    from dask.delayed import delayed

    from_map: Any = dd.from_map
    bounds = [part * _KEYS // parts - _KEYS // 2 for part in range(parts)]
    with dask.config.set({"dataframe.convert-string": False}):
        rows = from_map(placed, pieces, placing=placing, meta=empty_frame(placing.chosen))
        ordered = rows.set_index(HIGH, divisions=(*bounds, _KEYS // 2 - 1), shuffle_method="p2p")
        found = ordered.to_delayed()
    staged = delayed(stage, pure=False)
    return [staged(part, number, placing) for number, part in enumerate(found)]
