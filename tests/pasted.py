"""What the program says of a text that somebody pasted, as a file of its own."""

import json
from pathlib import Path
from typing import Any

from topodiag.api import diagnose
from topodiag.model.errors import TopodiagError


def said(folder: Path, text: str) -> dict[str, Any]:
    """The whole result, as `--format json` prints it."""
    file = folder / "out.txt"
    file.write_text(text)
    document: dict[str, Any] = json.loads(diagnose(str(file)).to_json())
    return document


def loud(folder: Path, text: str) -> list[str]:
    """The ids of what is called faulty; none either where nothing in the text is evidence."""
    try:
        findings = said(folder, text)["findings"]
    except TopodiagError:
        return []
    return [finding["id"] for finding in findings if finding["severity"] != "info"]
