"""Keeps the published JSON Schemas, topodiag/report/schema/, alike: a definition that several have is written once, and
that of `fleet collect` is of its type. A schema itself is edited by hand: a key there is a key of the document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import msgspec

from topodiag.model.collect import CollectDocument
from topodiag.report.documents.from_model import VERSIONS

FOLDER = Path(str(resources("topodiag.report") / "schema"))
SOURCES = ("result", "predict")
"""Schemas whose definitions stand as they are in the others, too."""
OWN = {"fleet": {"Unexplained"}, "model": {"Link"}}
"""Definitions of a schema that have the name of another one."""


def file_name(name: str) -> str:
    return f"{name}-{VERSIONS[name]}.schema.json"


def read(name: str) -> dict[str, Any]:
    """A published schema as it stands."""
    made: dict[str, Any] = json.loads((FOLDER / file_name(name)).read_text(encoding="utf-8"))
    return made


def generated(name: str) -> dict[str, Any]:
    """The schema with what it shares with others as these have it."""
    made = read(name)
    parts: dict[str, Any] = made["$defs"]
    for source in (read(source)["$defs"] for source in SOURCES):
        parts |= {part: source[part] for part in parts if part in source and part not in OWN.get(name, ())}
    if name == "collect":
        _, typed = msgspec.json.schema_components((CollectDocument,), ref_template="#/$defs/{name}")
        made["$defs"] = typed
        for part in typed.values():  # lines of a docstring are indented up to Python 3.12 and no longer from 3.13 on
            if "description" in part:
                part["description"] = " ".join(part["description"].split())
            for kind in part.get("properties", {}).values():  # written by msgspec from 0.23 on
                kind.pop("propertyNames", None)
    return made


def files() -> Iterator[tuple[str, str]]:
    """(file name, text) of every published schema."""
    for name in VERSIONS:
        yield file_name(name), json.dumps(generated(name), indent=2) + "\n"


def main() -> None:
    for name, text in dict(files()).items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
