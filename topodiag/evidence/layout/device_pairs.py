"""Which device of a guest is which of its host: `guest=host` pairs from the command line, a CSV or a JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable

from topodiag.model.errors import InputError

MAX_BYTES = 1_000_000
MAX_PAIRS = 4096
HINT = "a pair is guest=host, such as 0000:05:00.0=0000:1b:00.0 or GPU0=0000:1b:00.0"


def parse_pairs(text: str) -> dict[str, str]:
    """`guest=host,guest=host`. Raises InputError."""
    return _checked((tuple(part.split("=")) for part in text.split(",") if part.strip()), "--pairs")


def read_pairs_file(data: bytes, path: str) -> dict[str, str]:
    """A JSON object of guest to host (or a list of `{"guest": .., "host": ..}`), or lines `guest,host`. InputError."""
    if len(data) > MAX_BYTES:
        raise InputError(path, "is larger than any map of devices")
    text = data.decode("utf-8-sig", "replace")
    if text.lstrip()[:1] in ("{", "["):
        return _checked(_of_json(text, path), path)
    lines = (line.split("#", 1)[0].strip() for line in text.splitlines())
    rows = [tuple(line.replace("=", ",").replace(";", ",").replace("\t", ",").split(",")) for line in lines if line]
    if rows and tuple(cell.strip().lower() for cell in rows[0]) == ("guest", "host"):
        rows = rows[1:]
    return _checked(rows, path)


def _of_json(text: str, path: str) -> list[tuple[str, ...]]:
    try:
        made = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(path, "is no JSON", hint=HINT) from None
    if isinstance(made, dict):
        return [(str(guest), str(host)) for guest, host in made.items()]
    rows: list[tuple[str, ...]] = []
    for each in made:
        if isinstance(each, dict):
            rows.append((str(each.get("guest", "")), str(each.get("host", ""))))
        else:
            rows.append(tuple(map(str, each)) if isinstance(each, list) else (str(each),))
    return rows


def _checked(rows: Iterable[tuple[str, ...]], path: str) -> dict[str, str]:
    made: dict[str, str] = {}
    for row in rows:
        cells = [cell.strip() for cell in row]
        if len(cells) != 2 or not all(cells):
            raise InputError(path, f"{'='.join(cells)[:80]!r} is no pair", hint=HINT)
        guest, host = cells
        if made.get(guest, host) != host:
            raise InputError(path, f"{guest[:60]} has two pairs", hint=HINT)
        made[guest] = host
    if not made or len(made) > MAX_PAIRS:
        raise InputError(path, "holds no pair" if not made else f"holds more than {MAX_PAIRS} pairs", hint=HINT)
    return made
