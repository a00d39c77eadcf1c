"""The bundle in memory, and how it is written: a folder, or a tar.gz with nothing of this machine in its headers."""

import calendar
import gzip
import io
import json
import os
import tarfile
import time
from typing import Any, BinaryIO, Dict, Iterator, Tuple

MANIFEST = "manifest.json"


class Bundle:
    """One node's evidence: `manifest` as docs/bundle.md describes it, `files` by path."""

    def __init__(self, manifest: Dict[str, Any], files: Dict[str, bytes]) -> None:
        self.manifest = manifest
        self.files = files

    def members(self) -> Iterator[Tuple[str, bytes]]:
        """Every file, the manifest first, then by name."""
        text = json.dumps(self.manifest, indent=1, ensure_ascii=True, sort_keys=False)
        yield MANIFEST, text.encode("ascii") + b"\n"
        for name in sorted(self.files):
            yield name, self.files[name]


def write_folder(bundle: Bundle, path: str) -> None:
    """Write the bundle as a folder, which may exist already."""
    for name, data in bundle.members():
        place = os.path.join(path, *name.split("/"))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as handle:
            handle.write(data)


def _epoch(text: str) -> int:
    try:
        return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return 0


def write_tar(bundle: Bundle, fileobj: BinaryIO) -> None:
    """Write the bundle as tar.gz to a binary stream that need not seek. The same bundle gives the same bytes."""
    when = _epoch(str(bundle.manifest.get("time", "")))
    with gzip.GzipFile(filename="", mode="wb", fileobj=fileobj, compresslevel=6, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for name, data in bundle.members():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode, entry.mtime = len(data), 0o644, when
                entry.uid = entry.gid = 0
                archive.addfile(entry, io.BytesIO(data))
