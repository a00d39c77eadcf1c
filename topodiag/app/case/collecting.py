"""How often Python searches for cycles while much evidence is read: seldom, since what is read stays and has none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS = 500_000
"""New objects between two searches for cycles. A run makes few cycles and ends soon: at Python's usual 700 the searches
take a sixth of the reading of bundles and free next to nothing."""


@contextmanager
def few_collections() -> Iterator[None]:
    """Search seldom inside, and as before afterwards: the process may be a user's own."""
    before = gc.get_threshold()
    gc.set_threshold(max(OBJECTS, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
