"""An nccl.conf by the letter of NCCL's reader: `NAME=value`, comments on lines of their own that begin with `#`.

NCCL takes a line up to its first `=` as the name and all the rest as the value, blanks and quotes with it, at most 1023
bytes of each (setEnvFile, src/misc/param.cc, v2.28).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from topodiag.lazy import regex
from topodiag.model.nccl_conf import ConfEntry

MAX_BYTES = 1023
WIDTH = 118
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")


class UnwritableError(ValueError):
    """A setting that no line of an nccl.conf can hold; the message says which."""


def to_text(entries: Iterable[ConfEntry], elsewhere: Iterable[str] = (), subject: str = "") -> str:
    """The file. Raises UnwritableError for a name or value that NCCL would read otherwise."""
    whose = f" for {subject}" if subject else ""
    lines = _comment(f"nccl.conf{whose}, by topodiag emit nccl-conf, to be /etc/nccl.conf on every node")
    lines += _comment(
        "NCCL reads NAME=value to the letter: no blanks, no quotes, no comment behind a value. What is set first stays:"
        " the environment, then ~/.nccl.conf (or NCCL_CONF_FILE), then /etc/nccl.conf"
    )
    for entry in entries:
        lines.append("")
        for sentence in entry.why:
            lines += _comment(sentence)
        if entry.value is None:
            lines.append("#" + _one_line(entry.was or entry.name))
        else:
            lines.append(_setting(entry.name, entry.value))
    for sentence in elsewhere:
        lines += ["", *_comment(sentence)]
    return "\n".join(lines) + "\n"


def _setting(name: str, value: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > MAX_BYTES:
        raise UnwritableError(f"{name[:40]!r} cannot be a name in an nccl.conf")
    if value != value.strip() or value[:1] in ("'", '"') or value[-1:] in ("'", '"'):
        raise UnwritableError(f"the value of {name} has blanks or quotes round it")
    if len(value.encode("utf-8", "replace")) > MAX_BYTES or any(ord(char) < 32 for char in value):
        raise UnwritableError(f"the value of {name} is longer than {MAX_BYTES} bytes or holds control characters")
    return f"{name}={value}"


def _comment(sentence: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(_one_line(sentence), WIDTH, break_long_words=False)] or ["#"]


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text).strip()
