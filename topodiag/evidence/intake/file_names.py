"""What the names of files say of the nodes that their texts are of."""

from __future__ import annotations

import os
import re

from topodiag.evidence.intake.pieces import Piece
from topodiag.lazy import regex

_LOG_WORDS = regex(
    r"dmesg|journal|kern|syslog|messages|log|boot|xid|nvrm|paste|text|input|part|note|sample|before|after"
)
"""Words of a kernel log's own name, which say nothing of a host."""
_SMI_WORDS = regex(r"nvidia|smi|dmon|query|topo|gpus(?![0-9])|-?(?<![a-z0-9])[lqxm](?![a-z0-9])")
"""Words of a report of nvidia-smi's own name."""
_MOMENT = regex(
    r"(?:before|after|run|sample|step|day|try|attempt|rank|cuda|driver|job|part|case|test|boot|paste|text|input|note|[tvr])"
    r"[-_]?[0-9]*\Z"
)
"""What a file is named for that is no host: a moment, a version, a number of several."""
_PLAIN = frozenset({
    "csv", "gpu", "gpus", "hwloc", "json", "log", "lstopo", "m", "matrix", "mp", "nccl", "nvidia", "nvidiasmi", "nvml",
    "out", "output", "pci", "q", "query", "smi", "sys", "topo", "topology", "tree", "txt", "x", "xml",
})  # fmt: skip
"""Words of commands, their options and their output: a file that is named by them alone is named for no host."""
ENDS = "._ \t"
"""Where a word of a file's name ends; hosts have dashes."""


def owner_of_log(piece: Piece) -> str:
    """The host that a kernel log is named for (`gpu-h07.txt`), or "" where its name is that of a tool or says nothing:
    dmesg and the journal of one node lie together, logs of two hosts must not become one node."""
    stem = os.path.basename(piece.name).split(".", 1)[0].lower()
    return "" if _LOG_WORDS.search(stem) or not any(letter.isdigit() for letter in stem) else stem


def owner_of_smi(piece: Piece) -> str:
    """The host that a report of nvidia-smi is named for (`w01-nvidia-smi.txt`), or "" where its name says nothing."""
    stem = os.path.basename(piece.name).split(".", 1)[0].lower()
    word = _SMI_WORDS.sub("", stem).strip("-_ ")
    told = any(letter.isdigit() for letter in word) and any(letter.isalpha() for letter in word)
    return word if told and not _MOMENT.match(word) else ""


def is_named_for_a_command(piece: Piece) -> bool:
    """Whether a file has the name of what printed it and of nothing else: `topo_m.txt`, `nvidia-smi-q.xml`."""
    words = re.split(r"[^a-z0-9]{1,8}", os.path.basename(piece.name).lower())
    return all(word in _PLAIN for word in words if word)


def shared(one: str, other: str) -> int:
    """How many characters two words begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def mentions(piece: Piece, word: str) -> bool:
    """Whether a file's name, or the folder it lies in, holds the word by itself."""
    if not word:
        return False
    name = f" {os.path.basename(piece.name)} ".lower()
    at = name.find(word.lower())
    while at >= 0:
        if not name[at - 1].isalnum() and not name[at + len(word)].isalnum():
            return True
        at = name.find(word.lower(), at + 1)
    return False
