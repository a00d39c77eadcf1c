"""Files that a test writes: a folder of them, and archives."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path


def laid(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """The folder with these files in it, by their paths below it."""
    for name, data in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def filed(folder: Path, name: str, data: str | bytes) -> Path:
    """The file of this name in the folder, with this in it."""
    return laid(folder, {name: data}) / name


def tarred(files: Mapping[str, bytes], *more: tarfile.TarInfo, mode: str = "w") -> bytes:
    """A tar of these files, packed as the mode says, and of members without data."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member in more:
            archive.addfile(member)
    return packed.getvalue()


def zipped(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()
