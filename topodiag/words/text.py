"""Foreign text made harmless: one line without control characters, escape sequences or signs that turn its direction.

Host names, product names and log lines come from outside. What would steer a terminal is shown as its escape.
"""

from __future__ import annotations

import unicodedata

from topodiag.lazy import regex

MAX_CHARS = 1000
"""Longest foreign string printed: five quoted lines of evidence; a hostile one is of any length."""

_PARTS = regex(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\W_]+")
_PLAIN = str.maketrans(
    {
        "✖": "X", "▲": "!", "●": "i", "✔": "+", "├": "|", "└": "`", "│": "|", "─": "-", "·": "|", "…": "...", "•": "-",
        "×": "x", "–": "-", "—": "-", "−": "-", "→": "->", "←": "<-", "≥": ">=", "≤": "<=", "≈": "~", "±": "+-",
        "µ": "u", "μ": "u", "Δ": "delta", "°": "deg", "®": "(R)", "™": "(TM)", "“": '"', "”": '"', "‘": "'", "’": "'",
        "┊": "|", "┴": "+", "█": "#", "▏": ".", "■": "#",
    }
)  # fmt: skip
"""The signs that this program and datasheets use, in ASCII; any other character is shown as its escape."""

# Categories of Unicode that show nothing, move the cursor or change the direction of what follows.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_STEERING = frozenset({"Cc", "Cf", "Zl", "Zp"})
_FORMULA = ("=", "+", "-", "@")
_NUMBER = regex(r"[-+]?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][-+]?[0-9]{1,4})?")


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clean(text: object, *, ascii_only: bool = False, limit: int = MAX_CHARS) -> str:
    """One line that is safe on a terminal, at most `limit` characters of the original."""
    line = str(text)
    if len(line) > limit:
        line = line[: limit - 1] + "…"
    if ascii_only:
        line = line.translate(_PLAIN)
    if line.isascii() and line.isprintable():
        return line
    out: list[str] = []
    marks = 0
    for char in line:
        category = unicodedata.category(char)
        # Combining marks take no room: a pile of them on one letter would cover the lines above.
        marks = marks + 1 if category in {"Mn", "Me"} else 0
        if char in "\t\n\r":
            out.append(" ")
        elif category in _UNSAFE or marks > 2 or (ascii_only and not char.isascii()):
            out.append(_escape(char))
        else:
            out.append(" " if category == "Zs" else char)
    return "".join(out)


def cell(text: str) -> str:
    """Foreign text as a cell of CSV: one line, and with an apostrophe before it what a spreadsheet would run as a
    formula (OWASP, CSV Injection). A number with a sign is none."""
    line = clean(text, limit=len(text))
    return "'" + line if line.lstrip().startswith(_FORMULA) and not _NUMBER.fullmatch(line) else line


def without_steering(text: str) -> str:
    """The text with what would steer a terminal as its escape, and all else as it is."""
    if text.isprintable():
        return text
    return "".join(_escape(char) if unicodedata.category(char) in _STEERING else char for char in text)


def words_of_name(name: str, most: int) -> str:
    """The first `most` characters of a name as words in small letters: `clocks_event_reasons.hwSlowdown` is
    `clocks event reasons hw slowdown`."""
    return " ".join(_PARTS.sub(" ", name[:most]).lower().split())


def shell_word(text: str) -> str:
    """A word of a command line to be shown: quoted for the shell, and one with control characters as bash's `$'..'`, so
    that it is the same word and steers no terminal."""
    from shlex import quote  # noqa: PLC0415 - only where commands are shown

    shown = without_steering(text)
    if shown == text:
        return quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{without_steering(escaped)}'"
