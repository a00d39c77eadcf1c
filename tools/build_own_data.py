"""Writes `own_data.json` of the package from its TOML files; --check compares and changes nothing.

python tools/build_own_data.py [--check]
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from zlib import crc32

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from topodiag.words.own_data import BUILT

PACKAGE = BUILT.parents[1]


def built() -> bytes:
    """One line a file, so that changes of two files do not meet."""
    lines = []
    for path in sorted(PACKAGE.rglob("*.toml")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(PACKAGE).with_suffix("").as_posix()
        row = msgspec.json.encode([crc32(text.encode()), tomllib.loads(text)])
        lines.append(b"%s:%s" % (msgspec.json.encode(name), row))
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def main() -> int:
    if "--check" not in sys.argv[1:]:
        BUILT.write_bytes(built())
    elif BUILT.read_bytes() != built():
        print(f"{BUILT} is not up to date: python tools/build_own_data.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
