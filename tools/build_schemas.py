"""Writes the published JSON Schemas, topodiag/report/schema/, from the types of the documents: one line per schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from topodiag.model.collect import CollectDocument
from topodiag.report.documents.types.common import DIAGNOSIS_VERSION, SCHEMA_VERSION
from topodiag.report.documents.types.fleet import FleetDocument
from topodiag.report.documents.types.history import HistoryDocument
from topodiag.report.documents.types.model import CollectiveDocument, HierarchyDocument, LinkDocument, StepDocument
from topodiag.report.documents.types.place import AuditDocument, SolveDocument
from topodiag.report.documents.types.result import ResultDocument
from topodiag.report.documents.types.sweep import SweepDocument
from topodiag.report.documents.types.topo import DiffDocument, PredictDocument, WhatIfDocument
from topodiag.report.documents.types.verdict import DiagnosisDocument

FOLDER = Path(__file__).resolve().parent.parent / "topodiag" / "report" / "schema"

_EVERY = (
    "Schema version {major}: later minors add keys, so readers ignore keys they do not know and refuse another major."
    " Unknown values are null. GB/s are 1e9 bytes per second in one direction."
)


@dataclass(frozen=True, slots=True)
class Schema:
    """A published schema: the commands whose documents it describes, and their types."""

    name: str
    commands: str
    documents: tuple[type[msgspec.Struct], ...]
    version: str = SCHEMA_VERSION

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.schema.json"


SCHEMAS = (
    Schema("diagnose", "diagnose", (DiagnosisDocument,), DIAGNOSIS_VERSION),
    Schema("result", "scan, logs, bench, topo check", (ResultDocument,)),
    Schema("predict", "topo predict", (PredictDocument,)),
    Schema("what-if", "topo what-if", (WhatIfDocument,)),
    Schema("diff", "topo diff", (DiffDocument,)),
    Schema("model", "model link, collective, hierarchy, step",
           (LinkDocument, CollectiveDocument, HierarchyDocument, StepDocument)),
    Schema("place", "place audit, place solve", (AuditDocument, SolveDocument)),
    Schema("fleet", "fleet compare", (FleetDocument,)),
    Schema("collect", "fleet collect", (CollectDocument,)),
    Schema("sweep", "bench read", (SweepDocument,)),
    Schema("history", "fleet history", (HistoryDocument,)),
)  # fmt: skip
"""Every document of `--format json`."""


def generated(schema: Schema) -> dict[str, Any]:
    """The schema as JSON Schema of draft 2020-12."""
    documents, parts = msgspec.json.schema_components(schema.documents, ref_template="#/$defs/{name}")
    for part in parts.values():  # lines of a docstring are indented up to Python 3.12 and no longer from 3.13 on
        if "description" in part:
            part["description"] = " ".join(part["description"].split())
    top = documents[0] if len(documents) == 1 else {"anyOf": list(documents)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:topodiag:schema:{schema.name}:{schema.version}",
        "title": f"What topodiag {schema.commands} prints with --format json",
        "description": _EVERY.format(major=schema.version.partition(".")[0]),
        **top,
        "$defs": parts,
    }


def files() -> Iterator[tuple[str, str]]:
    """(file name, text) of every published schema."""
    for schema in SCHEMAS:
        yield schema.file_name, json.dumps(generated(schema), indent=2) + "\n"


def main() -> None:
    texts = dict(files())
    for old in FOLDER.glob("*.schema.json"):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"wrote {len(texts)} schemas to {FOLDER}")


if __name__ == "__main__":
    main()
