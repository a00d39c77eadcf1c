"""Writes the published JSON Schemas, topodiag/report/schema/, from the types of the documents."""

from __future__ import annotations

from pathlib import Path

from topodiag.report.documents.schemas import files

FOLDER = Path(__file__).resolve().parent.parent / "topodiag" / "report" / "schema"


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
