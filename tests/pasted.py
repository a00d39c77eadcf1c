"""What the program says of a text that somebody pasted, as a file of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from topodiag.api import diagnose
from topodiag.model.errors import TopodiagError


def said(folder: Path, text: str) -> dict[str, Any]:
    """The whole result, as `--format json` prints it."""
    file = folder / "out.txt"
    file.write_text(text)
    made: dict[str, Any] = json.loads(diagnose(str(file)).to_json())
    return made


def seen(made: dict[str, Any]) -> list[dict[str, Any]]:
    """The findings of a result without the note of what its words are like, which is no finding of a check."""
    leads = {each["check"]: each["message"] for each in made["verdict"]["leads"]}
    return [each for each in made["findings"] if leads.get(each["id"]) != each["message"]]


def chain(made: dict[str, Any]) -> list[tuple[str, str]]:
    """The findings of a result by their ids, each with the id of what it follows from, "" without."""
    return [(each["id"], (each["follows_from"] or {}).get("check", "")) for each in seen(made)]


def loud(folder: Path, text: str) -> list[str]:
    """The ids of what is called faulty; none either where nothing in the text is evidence."""
    try:
        findings = said(folder, text)["findings"]
    except TopodiagError:
        return []
    return [each["id"] for each in findings if each["severity"] != "info"]
