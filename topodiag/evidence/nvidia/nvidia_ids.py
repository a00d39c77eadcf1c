"""Identities that NVIDIA's tools print, kept only where they can tell devices apart.

Published and redacted output often carries one made-up UUID for every GPU; believed, it would merge them into one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from topodiag.lazy import regex

_UUID = regex(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def distinct_uuids(named: Iterable[tuple[int, str]]) -> dict[int, str]:
    """GPU UUIDs by index: only whole ones that are not all zeros, and none of two for an index or for two indices."""
    owners: dict[str, set[int]] = {}
    held: dict[int, set[str]] = {}
    for index, text in named:
        uuid = text.strip()
        if _UUID.fullmatch(uuid) and uuid.strip("GPU-0"):
            owners.setdefault(uuid.lower(), set()).add(index)
            held.setdefault(index, set()).add(uuid)
    return {
        index: next(iter(uuids))
        for index, uuids in held.items()
        if len(uuids) == 1 and owners[next(iter(uuids)).lower()] == {index}
    }


def distinct_bus_ids(named: Iterable[tuple[int, str]]) -> dict[int, str]:
    """Bus ids by index, without any that two indices claim."""
    given = [(index, text.strip().lower()) for index, text in named if text.strip()]
    texts = [text for _, text in given]
    return {index: text for index, text in given if texts.count(text) == 1}
