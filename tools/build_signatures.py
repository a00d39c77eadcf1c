"""Writes `literals.json` of the catalogue of sentences from its TOML files; --check compares and changes nothing.

python tools/build_signatures.py [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from topodiag.evidence.signatures.entry import INDEX, families, family, index_of


def text() -> str:
    index = index_of({name: family(name) for name in families()})
    lines = (f"  {json.dumps(literal)}: {json.dumps(places)}" for literal, places in index.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    built = text()
    if "--check" in sys.argv[1:]:
        if INDEX.read_text(encoding="utf-8") != built:
            print(f"{INDEX} is not up to date: python tools/build_signatures.py")
            return 1
        return 0
    INDEX.write_text(built, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
