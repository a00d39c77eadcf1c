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

from topodiag.evidence.intake.pieces import Piece, SkippedFile
from topodiag.evidence.kinds import Kind
from topodiag.evidence.pasted_files import LOOSE_PROMPT
from topodiag.lazy import regex
from topodiag.words.unfilled import is_unfilled

_DECLARED = regex(
    r"^[ \t]{0,12}(?:"
    r"(?:import|from) [\w.]{1,80}(?: import \(?[\w*, ]{1,200})?[ \t]{0,4}$|import \(?\"?[\w./-]{1,80}\"?\)?;?$"
    r"|(?:async )?def \w{1,80}\(|class \w{1,80}[(:{ ]|@\w[\w.]{0,60}(?:\(|$)"
    r"|func (?:\(\w{1,40} [*\w.]{1,60}\) )?\w{1,80}\(|package \w{1,60};?$|type \w{1,60} (?:struct|interface)\b"
    r"|# ?(?:include|define|ifdef|ifndef|pragma) \S|using namespace \w|namespace \w{1,60}\b|template ?<"
    r"|(?:pub )?(?:fn \w{1,60}[(<]|mod \w|use \w{1,60}::|impl\b)"
    r"|(?:public|private|protected|static|const|extern|inline|struct|enum|typedef|var|let) [\w<>\[\]*&, ]{1,80}[({=;]"
    r")",
    re.MULTILINE,
)
"""Lines that declare something in Python, Go, C, C++, CUDA, Rust, Java or JavaScript."""
_DECLARATIONS = 2
_CODE = regex(
    r"[ \t]{0,80}(?:"
    r"(?:return|raise|assert|yield|await|del|global) \S|(?:return|pass|break|continue|else:|try:|finally:)\s{0,4}$"
    r"|(?:if|elif|for|while|with|except|async)\b.{0,200}:\s{0,4}(?:#.{0,200})?$|(?:if|for|while|switch|catch) ?\("
    r"|(?://|/\*|\*/|\* )|#(?: |!|$)|[\w.\[\]\"'*]{1,80}(?:: [\w\[\], |.]{1,60})? (?:[-+*/|:]?=) \S"
    r"|[\w.]{1,80}\(.{0,200}\)?[,;]?\s{0,4}$|[)\]}]{1,4}[,;:]?\s{0,4}$"
    r"|[\w.\"']{1,80} {0,40}: {1,40}\S.{0,200},\s{0,4}$|case \S.{0,120}:\s{0,4}$|default:$|[\"'].{0,200}[\"'],?\s{0,4}$"
    r"|.{0,400}[;{}]\s{0,4}(?://.{0,200})?$"
    r")"
)
"""Lines as only source has them, comments among them."""
_SHARE = 0.5
"""Of the lines that are not blank; tables and long texts are the rest."""
_OUTPUT = regex(
    r"^(?:Traceback \(most recent call last\)|  File \"[^\"\n]{1,300}\", line \d"
    r"|\[?(?:[A-Z]{4,8}\|[^\n\]]{0,120}\] )?\d{4}-\d\d-\d\d[ T]\d\d:\d\d|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d "
    r"|\[ {0,8}\d{1,8}\.\d{3,9}\] |[IWEF]\d{4} \d\d:|:::MLL(?:OG)? |\[\S{1,255}:\d{1,10}(?::\d{1,10}){1,2}\] "
    r"|\+{1,4} (?:export|readonly|local|srun|mpirun) \S)",
    re.MULTILINE,
)
"""Begins of lines that a program printed, and of those with which a shell follows a script."""
_COMMAND = r"(?:sudo )?(?:[A-Z][A-Z0-9_]{1,60}=\S{0,200} ){0,9}(?:sudo )?[./~]{0,3}[a-z][\w./+-]{0,120}(?:[ ;|&]|$)"
_AT_PROMPT = regex(
    r"^(?:\([\w.-]{1,40}\) ?)?(?:\[?[\w.-]{1,40}@[\w.-]{1,80}(?:[: ][^\n$#%]{0,80})?|[\w.-]{1,60}:[~/][^\s$#]{0,80})?"
    rf"[$%] {_COMMAND}|^\[?[\w.-]{{1,40}}@[\w.-]{{1,80}}[: ][^\n$#%]{{0,80}}# ?{_COMMAND}",
    re.MULTILINE,
)
"""A command behind the prompt of a shell. A bare `#` may as well begin a comment."""
_PROMPTS = 2
_FENCE = regex(r"^[ \t]{0,8}(?:```|~~~)|::$", re.MULTILINE)
"""How documents show commands."""
_ENDED = regex(
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception|Interrupt): \S"
    r"|(?:Segmentation fault|Bus error|Aborted|Illegal instruction|Floating point exception) \(core dumped\)"
)
"""The last words of a program, at the begin of a line."""
_LAST_LINES = 8
_CHANGES = regex(
    r"^(?:[a-z0-9][a-z0-9+.-]{1,60} \([^()\s]{1,60}\) [\w -]{1,60}; urgency="
    r"|\d{4}-\d\d-\d\d {1,3}\S.{1,60} {1,3}<[^<>\s]{1,80}@|\*{1,3} (?:Noteworthy c|C)hanges in "
    r"|(?:#{1,3} )?(?:[Vv]ersion |[Rr]elease )\d{1,4}\.\d{1,4}(?:\.\d{1,4}){0,2}(?:,? .{0,60})?:?$"
    r"|(?:#{1,3} )?\[?v?\d{1,4}(?:\.\d{1,4}){2,3}\]?(?:,? .{0,60})?:?$"
    r"|(?:={4,40} )?(?:Noteworthy c|Major c|Overview of C|C)hanges (?:between|in|since|from) |CHANGES WITH \d"
    r"|What's [Nn]ew in \S.{0,40} \d|Author: [^<\n]{1,80} <[^<>\s]{1,80}>\n(?:Commit)?Date: "
    r"|[ \t]{0,8}(?:<h\d>)?\d{4}-\d\d-\d\d \(\d{1,3}(?:\.\d{1,4}){1,4}\))",
    re.MULTILINE,
)
"""Heads of a release or a commit in a list of changes: Debian's, GNU's, those of a NEWS file, of `git log`."""
_RELEASES, _REACH = 3, 0.5
"""Heads that a list of changes has at least, and the share of the text that lies above the last one."""
_ITEM = regex(r"^(?:[ \t]{0,12}[-*+o] \S|<li>|(?:Commit)?Date: |Released: \d)", re.MULTILINE)
_HEADING = regex(r"^(?:#{1,4} \S|(\S[^\n]{1,79})\n([=\-~^]{4,80})$)", re.MULTILINE)
_SENTENCE = regex(r"(?:[-*+] |\d{1,3}\. )?[A-Z`\[*][^|{}<>=;]{39,1999}[^|{}<>=;\d][.:,)`]?$")
_CHAPTERS, _LONG, _PROSE, _UNEVEN = 8, 100, 0.2, 3
"""A handbook has so many headings, so many lines, and sentences for such a share of them: what somebody writes of one
incident is shorter, or mostly output. Lines that end in a figure are measurements, no sentences."""
_MOST_LINES = 2000


def program_text(text: str) -> str:
    """What the text is called, where it is source, a list of changes or a handbook; "" for all other texts."""
    if _OUTPUT.search(_without_docstrings(text)) is not None:
        return ""
    if len(_DECLARED.findall(text)) >= _DECLARATIONS and _mostly_code(text) and not _was_run(text):
        return "the source of a program"
    if _mostly_changes(text):
        return "a list of changes"
    is_long = text.count("\n") >= _LONG - 1
    return "a handbook" if is_long and _headings(text) >= _CHAPTERS and _mostly_prose(text) else ""


_OF_BINARY = regex(
    r"^(?:__gmon_start__|_ITM_(?:de)?registerTMCloneTable|__cxa_\w{2,30}|GLIBC(?:XX)?_[\d.]{1,10}|_Z[NKTS]\w{3,400}"
    r"|\.(?:rodata|eh_frame\w{0,5}|init_array|dynsym|gnu\.\w{2,20}|note\.\S{2,40})|/lib64/ld-linux\S{1,30})$",
    re.MULTILINE,
)
"""Names that the linker and the compiler leave in each program and library."""
_STRINGS = regex(rf"\s{{0,20}}{LOOSE_PROMPT}(?:sudo )?strings (?:-\S{{1,12}} ){{0,3}}\S[^\n]{{0,300}}\n")
_PROMPT = regex(rf"^{LOOSE_PROMPT}\S", re.MULTILINE)
_RECORD = regex(r"^\S{1,255}:\d{1,10}:\d{1,10} \[\d", re.MULTILINE)
"""The head of a line that NCCL printed."""
_NAMES, _UNFILLED, _PART = 3, 5, 0.2


def strings_of_binary(text: str) -> bool:
    """Whether a text is what `strings` finds in a program or library: names of a linker, or many messages whose places
    are not filled. The messages beside them have happened to nobody either."""
    if _OUTPUT.search(text) is not None or _RECORD.search(text) is not None:
        return False
    asked = _STRINGS.match(text)
    if asked is not None and _PROMPT.search(text, asked.end()) is None:
        return True
    if sum(1 for _ in islice(_OF_BINARY.finditer(text), _NAMES)) == _NAMES:
        return True
    lines = _lines(text)
    unfilled = sum(is_unfilled(line) for line in lines)
    return unfilled >= _UNFILLED and unfilled >= _PART * len(lines)


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n")[:_MOST_LINES] if line.strip()]


def _without_docstrings(text: str) -> str:
    return "\n".join(text.split('"""')[::2])


def _was_run(text: str) -> bool:
    """Whether the source is quoted in a transcript of a shell, or the error stands below it with which it ended."""
    plain = _without_docstrings(text).strip()
    prompts = len(_AT_PROMPT.findall(plain))
    if prompts and (_AT_PROMPT.match(plain) is not None or (prompts >= _PROMPTS and _FENCE.search(plain) is None)):
        return True
    return any(_ENDED.match(line) for line in plain[-4000:].split("\n")[1:][-_LAST_LINES:])


def _mostly_code(text: str) -> bool:
    lines = _lines(_without_docstrings(text))
    code = sum(1 for line in lines if _CODE.match(line[:500]) or _DECLARED.match(line[:500]))
    return code >= _SHARE * len(lines)


def _mostly_changes(text: str) -> bool:
    """Whether releases follow each other down to the end: a job may show some commits, and then goes on."""
    heads = [head.start() for head in _CHANGES.finditer(text)]
    return len(heads) >= _RELEASES and heads[-1] >= _REACH * len(text) and _ITEM.search(text) is not None


def _headings(text: str) -> int:
    """Headings of a document: an underline is about as long as its title, a ruler between parts of output is not."""
    matches = _HEADING.finditer(text)
    return sum(head[2] is None or abs(len(head[1]) - len(head[2])) <= _UNEVEN for head in matches)


def _mostly_prose(text: str) -> bool:
    lines = _lines(text)
    prose = sum(1 for line in lines if _SENTENCE.match(line.strip()[:2000]))
    return len(lines) >= _LONG and prose >= _PROSE * len(lines)


_PAPER = regex(
    r"(?:readme|change[-_ ]?log|changes|news|licen[cs]e|contributing|authors|runbook|todo)"
    r"(?:\.(?:txt|md|rst|adoc|html))?"
    r"|.{1,200}\.(?:md|rst|adoc|py|pyi|c|cc|cpp|cxx|h|hpp|cu|cuh|go|rs|java|js|ts)",
    re.IGNORECASE,
)
_OPEN = frozenset({Kind.TEXT, Kind.PROGRAM, Kind.JSON})
"""Kinds of which nobody knows whether they are evidence."""
WHY = "a document or source file beside evidence: not read"


def without_papers(pieces: Sequence[Piece]) -> tuple[list[Piece], list[SkippedFile]]:
    """The pieces without papers, and the papers, where anything else is evidence."""
    papers = [piece for piece in pieces if not piece.named and _PAPER.fullmatch(_name(piece))]
    if not papers or all(piece in papers or set(piece.kinds) <= _OPEN for piece in pieces):
        return list(pieces), []
    aside = [SkippedFile(piece.name, WHY, hint="give it by its name to read it") for piece in papers]
    return [piece for piece in pieces if piece not in papers], aside


def _name(piece: Piece) -> str:
    return (piece.member or piece.path).rpartition("/")[2]


MOST_CHARS = 1 << 16
MOST_DEPTH = 512

_TOKEN = regex(
    r"[ \t\r\n]*(?:(?P<open>[\[{])|(?P<close>[\]}])|(?P<part>[,:])"
    r'|(?P<value>"(?:[^"\\\x00-\x1f]|\\.)*(?:"|$)|-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,9})?(?![0-9A-Za-z_.-])'
    r"|(?:true|false|null)(?![0-9A-Za-z_]))|(?P<end>$))",
    re.DOTALL,
)
_CUT = regex(r"(?:-|-?[0-9.]{1,400}(?:[eE][+-]?[0-9]{0,9})?|t|tr|tru|f|fa|fal|fals|n|nu|nul)$")
_PAIRS = {"[": "]", "{": "}"}


def is_json(text: str) -> bool:
    """Whether a text that begins with a bracket or a brace reads as JSON, one value or several below each other, as far
    as it goes: what is cut off at its end still counts. At most MOST_CHARS of it are looked at."""
    text = text.lstrip("\ufeff \t\r\n")[:MOST_CHARS]
    if text[:1] not in _PAIRS:
        return False
    stack: list[str] = []
    at, after_value = 0, False
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return bool(stack) and _CUT.match(text[at:].lstrip()) is not None
        if match["end"] is not None:
            return True
        if match["part"]:
            fits, after_value = after_value and bool(stack), False
        elif match["close"]:
            fits, after_value = bool(stack) and stack.pop() == match["close"], True
        else:
            fits = not after_value or (not stack and match["open"] is not None and "\n" in match[0])
            after_value = match["open"] is None and bool(stack)
            fits = fits and (bool(stack) or match["open"] is not None)
            if match["open"]:
                stack.append(_PAIRS[match["open"]])
        if not fits or len(stack) > MOST_DEPTH:
            return False
        at = match.end()
    return True
