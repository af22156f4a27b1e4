"""The page of a run: what was measured, what the model says of it, and of sizes beyond."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from typing import Any

from tools.growth.creating import COLUMNS
from tools.growth.model import Cost, Rates, Table, cost

__all__ = ["failures", "page"]

Found = dict[str, Any]

_SLOWEST = 3.0  # times one machine, for a question at …
_AT = 10**7  # … so many rows
_SMALL, _LARGE = 10**9, 10**12
_MOST_PARTS = 10**5  # of a shuffle, that one scheduler keeps


def failures(sizes: list[Found]) -> list[str]:
    """What must hold and does not."""
    wrong = []
    for size in sizes:
        for row in size["questions"]:
            about = f"{row['question']} of {size['rows']:,} rows"
            if not row["same_bits"]:
                wrong.append(f"{about}: the cluster's values differ from this machine's")
            ratio = row["there"] / row["here"]
            if size["rows"] == _AT and ratio > _SLOWEST:
                wrong.append(f"{about}: {ratio:.2f} times the time on one machine")
        if size["holdout"]["ledger_rows"] != 2:
            wrong.append(f"{size['rows']:,} rows: a question wrote {size['holdout']} to the ledger")
    return wrong


def page(sizes: list[Found], beside: Found, workers: int) -> str:
    """All of it as Markdown."""
    rates = _rates(sizes, workers)
    parts = [
        "# Growth, measured",
        _about(workers),
        "## Creation",
        _creation(sizes),
        "## Questions",
        _agreement(sizes),
        _questions(sizes),
        _overheads(beside),
        "## Through a holdout",
        _asked(sizes),
        "## The model, tried",
        f"Rates of one worker, from the {_fitted(sizes)['rows']:,} rows: "
        f"{rates.scanned / 1e6:,.0f} MB/s of sealed files read by a question, "
        f"{rates.shuffled / 1e6:,.0f} MB/s from input to sealed files.",
        _tried(sizes, rates, workers),
        "## … and used",
        "The same table on more workers of this kind. Parts and shards are counted as they were "
        f"made of the {sizes[-1]['rows']:,} rows; there are never more shards than blocks:",
        _beyond(sizes, rates),
        f"\\* The bytes alone: more than {_MOST_PARTS:,} parts are beyond one scheduler, so that a "
        "sample is sealed ([where it ends](growth.md#where-it-ends)).",
    ]
    return "\n\n".join(parts) + "\n"


def _about(workers: int) -> str:
    return (
        f"`make campaign-cluster`, {datetime.now(UTC):%Y-%m-%d}: {workers} workers of one thread, "
        f"beside scheduler and driver on one machine of {os.cpu_count()} cores "
        f"({platform.system()}, Python {platform.python_version()}). What the columns mean, and "
        "why they grow as they do: [growth](growth.md). Three columns of numbers, 4,262 blocks."
    )


def _agreement(sizes: list[Found]) -> str:
    same = all(row["same_bits"] for size in sizes for row in size["questions"])
    agree = "the values agree to the last bit" if same else "**the values do not agree**"
    return f"Medians of five, in turns, on the same shards; {agree}."


def _overheads(beside: Found) -> str:
    took = (f"{1000 * each:.0f} ms in {count} shards" for count, each in beside["seconds"].items())
    return (
        f"A shard costs {1000 * beside['task']:.1f} ms of a worker beside its rows: the same "
        f"{beside['rows']:,} rows took "
        f"{' and '.join(took)}."
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _creation(sizes: list[Found]) -> str:
    stages = list(sizes[0]["creation"])
    head = ["rows", *(f"{stage}, s" for stage in stages), "all, s", "input", "staged", "on disk"]
    head += ["sealed", "shards", "driver", "largest worker"]
    rows = [
        [
            f"{size['rows']:,}",
            *(f"{size['creation'].get(stage, 0.0):.1f}" for stage in stages),
            f"{size['creation_seconds']:.0f}",
            *(_bytes(size[f"{name}_bytes"]) for name in ("data", "staged", "spilled", "sealed")),
            f"{size['shards']:,}",
            _bytes(size["peak_bytes"]["driver"]),
            _bytes(max(v for k, v in size["peak_bytes"].items() if k.startswith("worker"))),
        ]
        for size in sizes
    ]
    return _table(head, rows)


def _questions(sizes: list[Found]) -> str:
    rows = [
        [
            f"`{row['question']}`",
            f"{size['rows']:,}",
            f"{size['shards']:,}",
            _bytes(row["scanned_bytes"]),
            f"{1000 * row['here']:,.0f} ms",
            f"{1000 * row['there']:,.0f} ms",
            f"{row['there'] / row['here']:.2f}",
        ]
        for size in sizes
        for row in size["questions"]
    ]
    head = ["question", "rows", "shards", "read", "one machine", "cluster", "ratio"]
    return _table(head, rows)


def _asked(sizes: list[Found]) -> str:
    rows = [
        [
            f"{size['rows']:,}",
            f"{1000 * size['holdout']['seconds']:,.0f} ms",
            str(size["holdout"]["ledger_rows"]),
            _bytes(8 * size["blocks"]),
        ]
        for size in sizes
    ]
    head = ["rows", "`ask`, the first of a process", "rows of the ledger", "values at the driver"]
    return _table(head, rows)


def _fitted(sizes: list[Found]) -> Found:
    """The size whose rates are used for the others: 10⁷ rows, or else the largest."""
    return next((size for size in sizes if size["rows"] == _AT), sizes[-1])


def _rates(sizes: list[Found], workers: int) -> Rates:
    size = _fitted(sizes)
    once = cost(_of(size), Rates(1.0, 1.0), workers)
    return Rates(
        scanned=once.question_seconds / size["questions"][0]["there"],
        shuffled=once.creation_seconds / size["creation_seconds"],
    )


def _of(size: Found) -> Table:
    rows, row = size["rows"], size["questions"][0]
    return Table(
        rows=rows,
        columns=COLUMNS,
        asked=1,
        row_bytes=size["sealed_bytes"] / rows,
        asked_bytes=row["scanned_bytes"] / rows,
        blocks=size["blocks"],
        shards=size["shards"],
    )


def _tried(sizes: list[Found], rates: Rates, workers: int) -> str:
    rows = []
    for size in sizes:
        told: Cost = cost(_of(size), rates, workers)
        row = size["questions"][0]
        rows.append(
            [
                f"{size['rows']:,}",
                f"{told.creation_seconds:.0f} s",
                f"{size['creation_seconds']:.0f} s",
                f"{1000 * told.question_seconds:,.0f} ms",
                f"{1000 * row['there']:,.0f} ms",
            ]
        )
    head = ["rows", "creation, model", "measured", "`avg(x)`, model", "measured"]
    return _table(head, rows)


def _beyond(sizes: list[Found], rates: Rates) -> str:
    size = _fitted(sizes)
    one = _of(size)
    rows = []
    for count, workers in ((_SMALL, 16), (_SMALL, 128), (_LARGE, 128), (_LARGE, 1024)):
        parts = -(-count * sizes[-1]["shards"] // sizes[-1]["rows"])
        shards = min(one.blocks, parts)
        table = Table(count, COLUMNS, 1, one.row_bytes, one.asked_bytes, one.blocks, shards)
        told = cost(table, rates, workers)
        rows.append(
            [
                f"{count:.0e}".replace("e+", "e"),
                str(workers),
                _bytes(told.shuffled),
                _bytes(told.written),
                f"{parts:,}",
                _seconds(told.creation_seconds) + (" \\*" if parts > _MOST_PARTS else ""),
                f"{told.tasks:,}",
                _bytes(told.scanned),
                _seconds(told.question_seconds),
                _bytes(told.driver),
                str(told.commits),
            ]
        )
    head = ["rows", "workers", "shuffled", "sealed", "parts", "creation", "shards"]
    head += ["read by `avg(x)`", "answer", "driver holds", "commits"]
    return _table(head, rows)


def _bytes(count: float) -> str:
    for name in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or name == "TB":
            return f"{count:,.0f} {name}" if count >= 100 or name == "B" else f"{count:.3g} {name}"
        count /= 1000
    raise AssertionError


def _seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
