"""Facts as sets of rows, for comparing two extractors."""

from __future__ import annotations

import math
from typing import Any

from topodiag.evidence.nccl_log.facts import SCHEMAS, THREAD_TABLES, Facts


def plain_rows(facts: Facts) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, threads by name instead of number, sorted."""
    threads = [tuple(row.values()) for row in facts["threads"].to_pylist()]
    made = {}
    for name in SCHEMAS:
        rows = facts[name].to_pylist()
        if name in THREAD_TABLES:
            rows = [{**row, "thread": threads[row["thread"]]} for row in rows]
        made[name] = sorted((tuple(_plain(value) for value in row.values()) for row in rows), key=repr)
    return made


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
