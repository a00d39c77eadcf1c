"""What the program says of a text that somebody pasted, as a file of its own."""

from pathlib import Path
from typing import Any

from topodiag.api import diagnose
from topodiag.model.errors import TopodiagError
from topodiag.report.documents.from_model import plain
from topodiag.report.formats.json import document


def answer(path: Path) -> dict[str, Any]:
    """The whole result, as `--format json` prints it: JSON is written and read back in tests of its own."""
    values: dict[str, Any] = plain(document(diagnose(str(path)).result))
    return values


def said(folder: Path, text: str) -> dict[str, Any]:
    """The whole result of a text."""
    file = folder / "out.txt"
    file.write_text(text)
    return answer(file)


def loud(folder: Path, text: str) -> list[str]:
    """The ids of what is called faulty; none either where nothing in the text is evidence."""
    try:
        findings = said(folder, text)["findings"]
    except TopodiagError:
        return []
    return [finding["id"] for finding in findings if finding["severity"] != "info"]
