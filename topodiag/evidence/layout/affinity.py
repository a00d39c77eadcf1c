"""A CSV matrix of what was measured between GPUs and NICs, such as ib_write_bw with --use_cuda for each pair.

The first line names the NICs, every further line a GPU and its values. The first cell may name the unit: `GB/s` (the
default), `Gb/s`, `us` or `ns`.

Which device of a guest is which of its host: `guest=host` pairs from the command line, a CSV or a JSON file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topodiag.evidence.interface import Blob
from topodiag.evidence.json_values import load
from topodiag.evidence.page import bare_lines, csv_rows
from topodiag.model.errors import InputError
from topodiag.model.links import Affinity
from topodiag.words.units import read_number

MAX_BYTES = 1_000_000
MAX_SIDE = 256
"""GPUs or NICs of one machine, with room."""
UNITS = ("GB/s", "Gb/s", "us", "ns")


def read_affinity(data: bytes, path: str) -> Affinity:
    """The matrix of a file. Raises InputError with the line that is wrong."""
    if len(data) > MAX_BYTES:
        raise InputError(path, f"is larger than a matrix of {MAX_SIDE} GPUs could be")
    lines = csv_rows(Blob(path, data))
    unit, nics = _head(lines[0][1], path, lines[0][0]) if lines else ("", ())
    rows: dict[str, tuple[float, ...]] = {}
    for number, cells in lines[1:]:
        if cells[0] in rows:
            raise InputError(path, f"has {cells[0][:60]} twice", line=number)
        rows[cells[0]] = _values(cells, nics, path, number)
    if not rows:
        raise InputError(path, "holds no row of values", hint="a line of NIC names, then GPU0,48.1,22.0,...")
    if len(rows) > MAX_SIDE:
        raise InputError(path, f"has more than {MAX_SIDE} rows")
    return Affinity(tuple(rows), nics, tuple(rows.values()), unit)


def _head(cells: list[str], path: str, number: int) -> tuple[str, tuple[str, ...]]:
    words = cells[0].translate(str.maketrans("()[]", "    ")).split()
    nics = tuple(cells[1:])
    if not nics or not all(nics) or len(set(nics)) < len(nics) or len(nics) > MAX_SIDE:
        hint = f"the first cell may be the unit: {', '.join(UNITS)}"
        raise InputError(path, "does not name a NIC for each column in its first line", line=number, hint=hint)
    if all(map(_number, nics)):
        raise InputError(path, "begins with values: its first line has to name the NICs", line=number)
    return next((unit for unit in UNITS if unit in words), UNITS[0]), nics


def _values(cells: list[str], nics: tuple[str, ...], path: str, number: int) -> tuple[float, ...]:
    if len(cells) - 1 != len(nics):
        raise InputError(path, f"has {len(cells) - 1} values for {len(nics)} NICs", line=number)
    values = tuple(map(_number, cells[1:]))
    if 0.0 in values:
        wrong = cells[1:][values.index(0.0)]
        raise InputError(path, f"has {wrong[:40]!r} where a value above zero belongs", line=number)
    return values


def _number(text: str) -> float:
    """A value above zero, 0 for what is none."""
    return max(read_number(text) or 0.0, 0.0) if len(text) <= 40 else 0.0


MAX_PAIRS = 4096
HINT = "a pair is guest=host, such as 0000:05:00.0=0000:1b:00.0 or GPU0=0000:1b:00.0"


def parse_pairs(text: str) -> dict[str, str]:
    """`guest=host,guest=host`. Raises InputError."""
    return _checked((part.split("=") for part in text.split(",") if part.strip()), "--pairs")


def read_pairs_file(data: bytes, path: str) -> dict[str, str]:
    """A JSON object of guest to host (or a list of `{"guest": .., "host": ..}`), or lines `guest,host`. InputError."""
    if len(data) > MAX_BYTES:
        raise InputError(path, "is larger than any map of devices")
    blob = Blob(path, data.removeprefix(b"\xef\xbb\xbf"))
    if blob.text.lstrip()[:1] in ("{", "["):
        document, why = load(blob)
        if why:
            raise InputError(path, "is no JSON", hint=HINT)
        listed = document.items() if isinstance(document, dict) else document
        return _checked(([*map(str, _pair_of(item))] for item in listed), path)
    rows = [text.translate(dict.fromkeys(map(ord, "=;\t"), ",")).split(",") for _, text in bare_lines(blob)]
    if rows and [cell.strip().lower() for cell in rows[0]] == ["guest", "host"]:
        rows = rows[1:]
    return _checked(rows, path)


def _pair_of(item: object) -> Sequence[object]:
    if isinstance(item, dict):
        return item.get("guest", ""), item.get("host", "")
    return item if isinstance(item, list | tuple) else [item]


def _checked(rows: Iterable[Sequence[str]], path: str) -> dict[str, str]:
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
