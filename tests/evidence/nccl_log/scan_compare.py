"""Facts compared: as they lie, and as sets of rows for two extractors."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from topodiag.evidence.nccl_log.tables.facts import SCHEMAS, THREAD_TABLES, Facts


def plain_rows(facts: Facts) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, threads by name instead of number, sorted."""
    threads = [tuple(row.values()) for row in facts["threads"].rows()]
    table: dict[str, list[tuple[Any, ...]]] = {}
    for name in SCHEMAS:
        if not len(facts[name]):  # most tables of a few lines
            table[name] = []
            continue
        rows = facts[name].rows()
        if name in THREAD_TABLES:
            rows = [{**row, "thread": threads[row["thread"]]} for row in rows]
        table[name] = sorted((tuple(_plain(value) for value in row.values()) for row in rows), key=repr)
    return table


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def same_facts(left: Facts, right: Facts) -> bool:
    for name in SCHEMAS:  # as text: NaN equals NaN
        assert {column: values.dtype for column, values in left[name].columns.items()} == SCHEMAS[name]
        assert list(left[name].columns) == list(SCHEMAS[name])
        assert repr(left[name].rows()) == repr(right[name].rows()), name
    return True


@contextmanager
def patched(*values: tuple[Any, str, Any]) -> Iterator[None]:
    """Modules with other values of these names, inside a test of many examples."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in values:
            patch.setattr(module, name, value)
        yield
