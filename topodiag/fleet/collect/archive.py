"""The collector as one file, `topodiag-probe.pyz`, from the sources that are installed beside topodiag.

The same sources give the same bytes: members are sorted, and their times are fixed. Python 3.6 can run the file.
"""

from __future__ import annotations

import io
import zipfile
from importlib.resources import files
from importlib.resources.abc import Traversable

from topodiag.words.own_data import own_text

PACKAGE = "topodiag_probes"
INTERPRETER = b"#!/usr/bin/env python3\n"
START = own_text("fleet/collect/main.txt")
"""What runs first: it must compile under any Python to be able to say that one is too old."""
WHEN = (2020, 1, 1, 0, 0, 0)


def archive() -> bytes:
    """The zip archive of the collector, below a first line that makes it executable."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as packed_file:
        _add(packed_file, "__main__.py", START.encode())
        for name, data in sorted(_sources(files(PACKAGE), PACKAGE)):
            _add(packed_file, name, data)
    return INTERPRETER + packed.getvalue()


def _sources(folder: Traversable, name: str) -> list[tuple[str, bytes]]:
    """Name and content of every module below a package."""
    pairs: list[tuple[str, bytes]] = []
    for path in folder.iterdir():
        if path.is_dir():
            pairs += _sources(path, f"{name}/{path.name}")
        elif path.name.endswith(".py"):
            pairs.append((f"{name}/{path.name}", path.read_bytes()))
    return pairs


def _add(packed_file: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, WHEN)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    packed_file.writestr(entry, data)
