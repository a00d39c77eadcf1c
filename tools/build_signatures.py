"""Writes `literals.json` of the catalogue of sentences from its TOML files; --check compares and changes nothing.

python tools/build_signatures.py [--check]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from topodiag.evidence.signatures.entry import FIELDS, INDEX, Signature, catalogue, families, family


def index_of(entries: Mapping[str, tuple[Signature, ...]]) -> dict[str, list[tuple[str, int]]]:
    """The content of `literals.json` for these families: `over`, `text_has` and `text_lacks` are literals too."""
    index: dict[str, list[tuple[str, int]]] = {}
    for name, signatures in sorted(entries.items()):
        for place, entry in enumerate(signatures):
            extra = [entry.over.literal] if entry.over is not None else []
            for literal in (*entry.literals, *extra, *entry.needs, *entry.excludes):
                if (name, place) not in index.setdefault(literal, []):
                    index[literal].append((name, place))
    return dict(sorted(index.items()))


def text() -> str:
    index = index_of({name: family(name) for name in families()})
    lines = (f"  {json.dumps(literal)}: {json.dumps(places)}" for literal, places in index.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def unknown_fields() -> list[str]:
    """A line for each entry whose pattern names a group that is no field."""
    return [
        f"{entry.id}: no field {', '.join(sorted(names))}; a named group is one of {', '.join(FIELDS)}"
        for entry in catalogue()
        if (names := entry.pattern.groupindex.keys() - FIELDS.keys())
    ]


def main() -> int:
    unknown = unknown_fields()
    if unknown:
        print("\n".join(unknown))
        return 1
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
