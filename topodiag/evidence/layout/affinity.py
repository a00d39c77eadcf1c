"""A CSV matrix of what was measured between GPUs and NICs, such as ib_write_bw with --use_cuda for each pair.

The first line names the NICs, every further line a GPU and its values. The first cell may name the unit: `GB/s` (the
default), `Gb/s`, `us` or `ns`.

Which device of a guest is which of its host: `guest=host` pairs from the command line, a CSV or a JSON file.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable

from topodiag.lazy import regex
from topodiag.model.affinity import Affinity
from topodiag.model.errors import InputError

MAX_BYTES = 1_000_000
MAX_SIDE = 256
"""GPUs or NICs of one machine, with room."""
UNITS = ("GB/s", "Gb/s", "us", "ns")
_UNIT = regex(r"(?<![A-Za-z])(GB/s|Gb/s|us|ns)(?![A-Za-z])")


def read_affinity(data: bytes, path: str) -> Affinity:
    """The matrix of a file. Raises InputError with the line that is wrong."""
    if len(data) > MAX_BYTES:
        raise InputError(path, f"is larger than a matrix of {MAX_SIDE} GPUs could be")
    text = data.decode("utf-8-sig", "replace")
    head = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    mark = next((mark for mark in ("\t", ";", ",") if mark in head), ",")
    unit = "GB/s"
    nics: tuple[str, ...] = ()
    rows: dict[str, tuple[float, ...]] = {}
    try:
        for number, cells in enumerate(csv.reader(text.splitlines(), delimiter=mark), start=1):
            cells = [cell.strip() for cell in cells]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if not nics:
                unit, nics = _head(cells, path, number)
                continue
            if cells[0] in rows:
                raise InputError(path, f"has {cells[0][:60]} twice", line=number)
            rows[cells[0]] = _values(cells, nics, path, number)
    except csv.Error as error:
        raise InputError(path, f"is no CSV: {error}") from None
    if not rows:
        raise InputError(path, "holds no row of values", hint="a line of NIC names, then GPU0,48.1,22.0,...")
    if len(rows) > MAX_SIDE:
        raise InputError(path, f"has more than {MAX_SIDE} rows")
    return Affinity(tuple(rows), nics, tuple(rows.values()), unit)


def _head(cells: list[str], path: str, number: int) -> tuple[str, tuple[str, ...]]:
    match = _UNIT.search(cells[0])
    nics = tuple(cells[1:])
    if not nics or not all(nics) or len(set(nics)) < len(nics) or len(nics) > MAX_SIDE:
        hint = f"the first cell may be the unit: {', '.join(UNITS)}"
        raise InputError(path, "does not name a NIC for each column in its first line", line=number, hint=hint)
    if all(_number(nic) is not None for nic in nics):
        raise InputError(path, "begins with values: its first line has to name the NICs", line=number)
    return (match[1] if match else "GB/s"), nics


def _values(cells: list[str], nics: tuple[str, ...], path: str, number: int) -> tuple[float, ...]:
    if len(cells) - 1 != len(nics):
        raise InputError(path, f"has {len(cells) - 1} values for {len(nics)} NICs", line=number)
    values = [_number(cell) for cell in cells[1:]]
    wrong = next((cell for cell, value in zip(cells[1:], values, strict=True) if value is None or value <= 0), None)
    if wrong is not None:
        raise InputError(path, f"has {wrong[:40]!r} where a value above zero belongs", line=number)
    return tuple(value for value in values if value is not None)


def _number(text: str) -> float | None:
    if len(text) > 40:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


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
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(path, "is no JSON", hint=HINT) from None
    if isinstance(document, dict):
        return [(str(guest), str(host)) for guest, host in document.items()]
    rows: list[tuple[str, ...]] = []
    for item in document:
        if isinstance(item, dict):
            rows.append((str(item.get("guest", "")), str(item.get("host", ""))))
        else:
            rows.append(tuple(map(str, item)) if isinstance(item, list) else (str(item),))
    return rows


def _checked(rows: Iterable[tuple[str, ...]], path: str) -> dict[str, str]:
    checked: dict[str, str] = {}
    for row in rows:
        cells = [cell.strip() for cell in row]
        if len(cells) != 2 or not all(cells):
            raise InputError(path, f"{'='.join(cells)[:80]!r} is no pair", hint=HINT)
        guest, host = cells
        if checked.get(guest, host) != host:
            raise InputError(path, f"{guest[:60]} has two pairs", hint=HINT)
        checked[guest] = host
    if not checked or len(checked) > MAX_PAIRS:
        raise InputError(path, "holds no pair" if not checked else f"holds more than {MAX_PAIRS} pairs", hint=HINT)
    return checked
