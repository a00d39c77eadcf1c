"""Whether a text is the source of a program, its list of changes or its handbook: it names faults, and none of them has
happened.

    train.py beside a log, a script of a health check      the source of a program
    NEWS, ChangeLog, debian/changelog                      a list of changes
    a README of many chapters                              a handbook
    what `strings libnccl.so` prints                       the strings of a program

Output that quotes source (tracebacks, compilers) has neither enough declarations nor enough lines of code. A transcript
of a shell (`$ cat train.py`, the source, `$ python train.py`) may have both, and so may source that somebody pastes
above the error with which it ended.

Documents and source files beside evidence: they speak of faults, and report none.

Only names tell a runbook from a report. So a paper is set aside where somebody hands over a folder or an archive that
holds evidence as well; a paper that is named by itself, or is all that there is, is read like any text.

Whether a text is JSON, by its first bytes: many a log line begins with a bracket, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from json import JSONDecodeError, JSONDecoder

from topodiag.evidence.intake.pieces import Piece, SkippedFile
from topodiag.evidence.kinds import Kind
from topodiag.evidence.pasted_files import LOOSE_PROMPT
from topodiag.lazy import regex
from topodiag.words.own_data import own_data
from topodiag.words.unfilled import is_unfilled

_DECLARATIONS = 2
_SHARE = 0.5
"""Of the lines that are not blank; tables and long texts are the rest."""
_COMMAND = r"(?:sudo )?(?:[A-Z][A-Z0-9_]{1,60}=\S{0,200} ){0,9}(?:sudo )?[./~]{0,3}[a-z][\w./+-]{0,120}(?:[ ;|&]|$)"
_PROMPTS = 2
_LAST_LINES = 8
_RELEASES, _REACH = 3, 0.5
"""Heads that a list of changes has at least, and the share of the text that lies above the last one."""
_CHAPTERS, _LONG, _PROSE, _UNEVEN = 8, 100, 0.2, 3
"""A handbook has so many headings, so many lines, and sentences for such a share of them: what somebody writes of one
incident is shorter, or mostly output. Lines that end in a figure are measurements, no sentences. A text of which such a
share are measurements is the output of a program, whatever its headings."""
_FIRST_ITEM, _MOST_HEAD = "\n\n\t* ", 100
"""Below the head of a change of cvs2cl, which begins as a line of a log does."""
_MOST_LINES = 2000
_NAMES, _UNFILLED, _PART = 3, 5, 0.2


def _pattern(begin: str = "^", any: Sequence[str] = (), end: str = "") -> re.Pattern[str]:  # noqa: A002 - as the table has it
    text = f"{begin}(?:{'|'.join(any)}){end}"
    return regex(text.replace("<prompt>", LOOSE_PROMPT).replace("<command>", _COMMAND), re.MULTILINE)


_LIKE = {name: _pattern(**row) for name, row in own_data("evidence/intake/genre").items()}
"""What lines look like, by the names of genre.toml."""


def program_text(text: str, tail: str = "") -> str:
    """What the text is called, where it is source, a list of changes or a handbook; "" for all other texts. `tail` is
    its end where `text` is no more than its begin: some trainings print their source first."""
    if _FIRST_ITEM not in text[:_MOST_HEAD] and _LIKE["output"].search(_without_docstrings(text)) is not None:
        return ""
    if len(_LIKE["declared"].findall(text)) >= _DECLARATIONS and _mostly_code(text) and not _was_run(f"{text}\n{tail}"):
        return "the source of a program"
    if _mostly_changes(text):
        return "a list of changes"
    is_long = text.count("\n") >= _LONG - 1
    return "a handbook" if is_long and _headings(text) >= _CHAPTERS and _mostly_prose(text) else ""


def strings_of_binary(text: str) -> bool:
    """Whether a text is what `strings` finds in a program or library: names of a linker, or many messages whose places
    are not filled. The messages beside them have happened to nobody either."""
    if _LIKE["output"].search(text) is not None or (" [" in text and _LIKE["record"].search(text) is not None):
        return False
    asked = _LIKE["strings"].match(text)
    if asked is not None and _LIKE["prompt"].search(text, asked.end()) is None:
        return True
    if sum(1 for _ in islice(_LIKE["of_binary"].finditer(text), _NAMES)) == _NAMES:
        return True
    lines = _lines(text)
    unfilled = sum(is_unfilled(line) for line in lines)
    return unfilled >= _UNFILLED and unfilled >= _PART * len(lines)


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n")[:_MOST_LINES] if line.strip()]


def _without_docstrings(text: str) -> str:
    return "\n".join(text.split('"""')[::2])


def _was_run(text: str) -> bool:
    """Whether the source is quoted in a transcript of a shell, or something else stands below it: the output, or the
    error with which it ended."""
    plain = _without_docstrings(text).strip()
    prompts = len(_LIKE["at_prompt"].findall(plain))
    if prompts and (
        _LIKE["at_prompt"].match(plain) is not None or (prompts >= _PROMPTS and _LIKE["fence"].search(plain) is None)
    ):
        return True
    last = [line for line in plain[-4000:].split("\n")[1:] if line.strip()][-_LAST_LINES:]
    return any(map(_LIKE["ended"].match, last)) or (len(last) == _LAST_LINES and not any(map(_is_code, last)))


def _mostly_code(text: str) -> bool:
    lines = _lines(_without_docstrings(text))
    return sum(map(_is_code, lines)) >= _SHARE * len(lines)


def _is_code(line: str) -> bool:
    return (_LIKE["code"].match(line[:500]) or _LIKE["declared"].match(line[:500])) is not None


def _mostly_changes(text: str) -> bool:
    """Whether releases follow each other down to the end: a job may show some commits, and then goes on."""
    heads = [head.start() for head in _LIKE["changes"].finditer(text)]
    return len(heads) >= _RELEASES and heads[-1] >= _REACH * len(text) and _LIKE["item"].search(text) is not None


def _headings(text: str) -> int:
    """Headings of a document, each once: an underline is about as long as its title, a ruler between parts of output is
    not, a box around a message stands there again and again, and one right below another is a line of such a box."""
    matches = _LIKE["heading"].finditer(text)
    places = [head.start() for head in matches if head[2] is None or abs(len(head[1]) - len(head[2])) <= _UNEVEN]
    below = {text.find("\n", at) + 1 for at in places}
    return len({text[at : at + _MOST_HEAD].partition("\n")[0] for at in places if at not in below})


def _mostly_prose(text: str) -> bool:
    """Whether sentences are a large part of the lines, each counted once: what ranks repeat is no prose."""
    lines = set(_lines(text))
    prose = sum(1 for line in lines if _LIKE["sentence"].match(line.strip()[:2000]))
    measured = sum(1 for line in lines if _LIKE["measured"].search(line[:500]))
    return len(lines) >= _LONG and prose >= _PROSE * len(lines) and measured < _PROSE * len(lines)


_OPEN = frozenset({Kind.TEXT, Kind.PROGRAM, Kind.JSON})
"""Kinds of which nobody knows whether they are evidence."""
WHY = "a document or source file beside evidence: not read"


def without_papers(pieces: Sequence[Piece]) -> tuple[list[Piece], list[SkippedFile]]:
    """The pieces without papers, and the papers, where anything else is evidence."""
    papers = [piece for piece in pieces if not piece.named and _LIKE["paper"].fullmatch(_name(piece))]
    if not papers or all(piece in papers or set(piece.kinds) <= _OPEN for piece in pieces):
        return list(pieces), []
    aside = [SkippedFile(piece.name, WHY, hint="give it by its name to read it") for piece in papers]
    return [piece for piece in pieces if piece not in papers], aside


def _name(piece: Piece) -> str:
    return (piece.member or piece.path).rpartition("/")[2]


MOST_CHARS = 1 << 16
_CUT = regex(r"(?:-|-?[0-9.]{1,400}(?:[eE][+-]?[0-9]{0,9})?|t|tr|tru|f|fa|fal|fals|n|nu|nul|\\.{0,5})?$")
"""What a value may end in that is cut off."""


def is_json(text: str) -> bool:
    """Whether a text that begins with a bracket or a brace reads as JSON, one value or several below each other, as far
    as it goes: what is cut off at its end still counts. At most MOST_CHARS of it are looked at."""
    text = text.lstrip("\ufeff \t\r\n")[:MOST_CHARS].rstrip()
    at = 0
    while text[at : at + 1] in ("[", "{"):
        try:
            _, end = JSONDecoder(strict=False).raw_decode(text, at)
        except JSONDecodeError as error:
            # A string is named by where it begins, and is open where the text is cut.
            return error.msg.startswith("Unterminated string") or _CUT.match(text, error.pos) is not None
        except (ValueError, RecursionError):  # a number of thousands of digits, thousands of brackets
            return False
        below = text[end:].lstrip()
        at = len(text) - len(below)
        if not below or "\n" not in text[end:at]:
            return not below
    return False
