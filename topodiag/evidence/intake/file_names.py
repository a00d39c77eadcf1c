"""What the names of files say of the nodes that their texts are of."""

from __future__ import annotations

import os
import re

from topodiag.evidence.intake.pieces import Piece

_LOG_WORDS = re.compile(
    r"dmesg|journal|kern|syslog|messages|log|boot|xid|nvrm|paste|text|input|part|note|sample|before|after"
)
"""Words of a kernel log's own name, which say nothing of a host."""
ENDS = "._ \t"
"""Where a word of a file's name ends; hosts have dashes."""


def owner_of_log(piece: Piece) -> str:
    """The host that a kernel log is named for (`gpu-h07.txt`), or "" where its name is that of a tool or says nothing:
    dmesg and the journal of one node lie together, logs of two hosts must not become one node."""
    stem = os.path.basename(piece.name).split(".", 1)[0].lower()
    return "" if _LOG_WORDS.search(stem) or not any(letter.isdigit() for letter in stem) else stem


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
