"""What a Python user gives as evidence: a path, several paths, or the content of one file as bytes."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from topodiag.app.case.opening import standard_input

Path = str | os.PathLike[str]
Source = Path | bytes | Iterable[Path]
"""A path (also a pattern, `fixture:NAME` or `-`), several paths, or bytes."""


@contextmanager
def paths_of(source: Source | None) -> Iterator[tuple[str, ...]]:
    """The paths as the use cases take them. Bytes are read where `-` reads standard input. Raises TypeError."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        with standard_input(io.BytesIO(bytes(source))):
            yield ("-",)
        return
    if source is None:
        yield ()
        return
    given = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    for path in given:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"a path is a str or an os.PathLike, not {type(path).__name__}; bytes go alone")
    yield tuple(os.fspath(path) for path in given)
