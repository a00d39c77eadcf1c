"""Builds `topodiag-probe.pyz`, the collector as one file: `python3 tools/build_probe.py [OUTPUT]`.

The same sources give the same bytes: members are sorted, and their times are fixed.
"""

from __future__ import annotations

import io
import os
import sys
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "probes"
INTERPRETER = b"#!/usr/bin/env python3\n"
START = "import sys\nfrom topodiag_probes.__main__ import main\nsys.exit(main())\n"
WHEN = (2020, 1, 1, 0, 0, 0)


def build(target: Path) -> None:
    """Write the archive with a first line that makes it executable."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        _add(archive, "__main__.py", START.encode())
        for source in sorted(SOURCE.glob("topodiag_probes/**/*.py")):
            _add(archive, source.relative_to(SOURCE).as_posix(), source.read_bytes())
    target.write_bytes(INTERPRETER + packed.getvalue())
    target.chmod(0o755)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, WHEN)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, data)


def main() -> int:
    """Build to the named file, by default into the current folder."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("topodiag-probe.pyz")
    build(target)
    sys.stdout.write(f"{target}{os.linesep}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
