"""What `topodiag fleet collect` writes beside bundles: sums, and which nodes did not answer. It is no evidence of a
machine, and who reads the folder is told which nodes are not in it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from topodiag.words.fold import fold_hosts, plural

SUMS, ANSWERS = "SHA256SUMS", "collect.json"
_SUM_OF_ONE = ".tar.gz.sha256"
_MOST = 64 << 20


class _Answer(msgspec.Struct):
    node: str
    state: str
    file: str = ""


class _Collection(msgspec.Struct):
    kind: str
    answers: tuple[_Answer, ...]


def without_bookkeeping(folder: str, names: Sequence[str], notes: list[str]) -> list[str]:
    """The files of a folder without those of a collection; a note names the nodes that left nothing there."""
    rest = [name for name in names if not name.endswith(_SUM_OF_ONE)]
    if SUMS not in names or ANSWERS not in names:
        return rest
    path = os.path.join(folder, ANSWERS)
    try:
        with open(path, "rb") as stream:
            found = msgspec.json.decode(stream.read(_MOST), type=_Collection)
    except (OSError, msgspec.DecodeError, ValueError, RecursionError):
        return rest
    if found.kind != "collect":
        return rest
    silent = [each.node for each in found.answers if not each.file]
    if silent:
        notes.append(f"{path}: {plural(len(silent), 'node')} left no evidence: {fold_hosts(silent)}")
    return [name for name in rest if name not in {SUMS, ANSWERS}]
