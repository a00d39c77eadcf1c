"""The traceback with which a text ends: of a process that nobody started again, since nothing of a program follows it.

SOURCE: CPython Lib/traceback.py, Lib/threading.py (excepthook), Lib/multiprocessing/process.py; torch
distributed/elastic/multiprocessing/api.py (SignalException), c10/cuda/CUDAException.cpp. The words of lines stand in
ends.toml.

What a line says or names beside its kind, by the rows of facts.toml: checks ask for these facts and read no text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

from topodiag.evidence.signatures.engine import first_in
from topodiag.evidence.signatures.wrappers import LABELS
from topodiag.lazy import dataclass, regex
from topodiag.words.own_data import own_data, patterns
from topodiag.words.units import grouped

_ERRORS = ""
"""For the kind of the rows that errors and ends are searched for."""


_Row = tuple[str, tuple[str, ...], re.Pattern[str]]


def _row(given: Mapping[str, Any]) -> _Row:
    return given.get("name", ""), tuple(given.get("has", [""])), regex(given["pattern"])


_FACTS = [(given.get("kinds", [_ERRORS]), _row(given)) for given in own_data("evidence/nccl_log/grammar/facts")["fact"]]
_ROWS = grouped((kind, row) for kinds, row in _FACTS for kind in kinds)
"""By kind of line, the names of facts with words, one of which a line holds, and patterns."""


@lru_cache(maxsize=65536)
def facts_of(text: str, kind: str = _ERRORS) -> Mapping[str, str]:
    """The facts of a line of this kind, `1` for those that it says and does not name; of an error without a kind."""
    facts: dict[str, str] = {}
    for name, words, pattern in _ROWS.get(kind, ()):
        if any(map(text.__contains__, words)) and (match := pattern.search(text)) is not None:
            facts |= {group: value for group, value in match.groupdict().items() if value}
            if name:
                facts[name] = "1"
    return facts


MOST_OF_END = 1 << 16
"""Bytes of a text's end that hold its last traceback and what a launcher prints below it."""
_MOST_EPILOGUE = 160
"""Lines that launchers, loggers of experiments and job scripts print when a program is gone, with the stacks of graphs
that TensorFlow's messages hold."""
_TRACEBACK = "Traceback (most recent call last):"
_QUOTED = f"Original {_TRACEBACK}"
"""What torch's exception of a worker holds below itself (torch/_utils.py, ExceptionWrapper)."""
_EXIT = "SystemExit"
_MOST_BELOW = 12
"""Lines with which a message of several lines goes on, or that a buffer still held, below the traceback of a program
that ended."""
_LIKE = patterns("evidence/nccl_log/grammar/ends", "patterns", re.ASCII)
_WORDS = {name: tuple(words) for name, words in own_data("evidence/nccl_log/grammar/ends")["words"].items()}
OF_SOURCE = _WORDS["of_source"]
"""The exceptions of a source that Python cannot read."""


@dataclass(frozen=True, slots=True)
class LastTraceback:
    """The exception of the traceback with which a text ends; of several in a row the first, from which the others
    follow.
    `text` is its line, `line` counts lines from the begin of what was looked at, `frame` is file and line of the
    innermost frame of the program's own, "" where all are of packages; `caught` says that a logger, a thread or an
    interpreter printed it, and the program went on."""

    text: str
    name: str
    message: str
    line: int
    frame: str
    caught: bool


def handled_exceptions(texts: Sequence[str]) -> frozenset[int]:
    """The lines of exceptions that ended nothing: a program handled them as an answer when another one was raised,
    which is the root, or Python ignores them, as those of what is taken down, or a client tries again after them."""
    heads = [at for at, text in enumerate(texts) if text.startswith(_WORDS["links"][0])]
    lookups = [line for at in heads if texts[line := _not_blank(texts, at - 1)].startswith(_WORDS["lookups"])]
    ignored = [at + 2 for at, text in enumerate(texts) if _WORDS["ignored"][0] in text]
    below = (next((line for line in range(at, len(texts)) if not texts[line].startswith("  ")), 0) for at in ignored)
    tried = [at for at in range(1, len(texts)) if texts[at] == _TRACEBACK and _LIKE["tries"].search(texts[at - 1])]
    return frozenset({*lookups, *below, *(line for at in tried for line in _raised_from(texts, at))} - {0})


def _raised_from(texts: Sequence[str], head: int) -> list[int]:
    """The lines of the exceptions of a traceback and of those raised meanwhile; none where nothing stands below."""
    raised: list[int] = []
    linked = True
    for at in range(head + 1, len(texts)):
        if not texts[at].strip() or texts[at].startswith("  ") or texts[at] == _TRACEBACK:
            continue
        if texts[at].startswith(_WORDS["links"]):
            linked = True
        elif linked:
            raised, linked = [*raised, at], False
        else:
            return raised
    return []


def last_traceback(texts: Sequence[str], handled: frozenset[int]) -> LastTraceback | None:
    """The traceback with which a text ends, from its last lines; None where the text goes on below it, and where
    somebody stopped the program. `handled` are the lines of handled_exceptions."""
    texts = _without_logger(texts)
    if not any(text.endswith((_TRACEBACK, _TRACEBACK[:-1])) or _WORDS["unhandled"][0] in text for text in texts):
        return None
    last = _raised_by_main(texts, above_epilogue(texts, _timed(texts) or len(texts) - 1))
    root: tuple[int, int, re.Match[str]] | None = None
    head, is_main, is_handled, is_quoted = _head_of(texts, last), False, False, False
    while head is not None and (raised := _raised_at(texts[last], is_first=root is None)) is not None:
        is_exit = raised[2] == _EXIT  # how a worker ends because of the exception above
        root = root if root is not None and (is_handled or is_exit or is_quoted) else (head, last, raised)
        above = _not_blank(texts, head - 1)
        linked = texts[above].startswith(_WORDS["links"])
        upper = above_epilogue(texts, _not_blank(texts, above - 1) if linked else above)
        upper_head = _head_of(texts, upper)
        if upper_head is None or _started_again(texts, upper, last):
            if is_exit:
                return None
            caught = not is_main and _is_caught(texts, above, head, last)
            return _traceback_of(texts, *root, caught=caught)
        is_handled, is_quoted = is_handled or upper in handled, texts[head] == _QUOTED
        last, head, is_main = upper, upper_head, is_main or not linked
    return None


def _raised_at(text: str, *, is_first: bool) -> re.Match[str] | None:
    """The exception of a line; None where it is that of somebody who stopped the program, though one may end so because
    of another exception."""
    raised = _LIKE["raised"].match(text)
    by_hand = raised is not None and raised[2] in _WORDS["by_hand"] and (is_first or raised[2] != _EXIT)
    return None if by_hand else raised


def _without_logger(texts: Sequence[str]) -> Sequence[str]:
    """The lines, of which a logger printed the last traceback line by line within a second, each with the time in
    front: those bare, and blank where the message of the exception goes on."""
    head = next((at for at in reversed(range(len(texts))) if texts[at].endswith(_TRACEBACK)), -1)
    front = texts[head].removesuffix(_TRACEBACK) if head >= 0 else ""
    time = re.search(r"\d:\d\d:\d\d", front) if front else None
    if time is None or _LIKE["remark"].search(front) is not None:
        return texts
    label = re.escape(front[: time.end()]) + r"[.,\d]*" + re.escape(front[time.end() :].lstrip(".,0123456789"))
    below = takewhile(bool, (re.match(label, text) for text in texts[head:]))
    bare = [match.string[match.end() :] for match in below if match is not None]
    raised = next((at for at, text in enumerate(bare[1:], 1) if not text.startswith("  ")), 0)
    return [*texts[:head], *bare[: raised + 1], *[""] * (len(bare) - raised - 1), *texts[head + len(bare) :]]


def last_error(texts: Sequence[str]) -> int | None:
    """The line of the program's own error with which a text ends, from its last lines; None where it ends otherwise or
    nothing stands above the error, as who gives one line gives a part, or the same words stood above its work."""
    last = above_epilogue(texts, _timed(texts) or len(texts) - 1)
    if not any(map(str.strip, texts[:last])) or any(_WORDS["trials"][0] in text for text in texts[last:]):
        return None
    if _LIKE["error"].match(texts[last]) is not None:
        first = texts.index(texts[last])
        return last if not any(map(_lives, texts[first + 1 : last])) else None
    return next((line for line in range(last, len(texts)) if _LIKE["of_make"].match(texts[line]) is not None), None)


def says_done(text: str) -> bool:
    """Whether a program says that its work is done. A script says it of what failed, too."""
    return _LIKE["work_done"].match(text) is not None


def _traceback_of(texts: Sequence[str], head: int, last: int, raised: re.Match[str], *, caught: bool) -> LastTraceback:
    """The traceback from its head to the line of its exception."""
    quoted = texts[last].replace("\\n", "\n").split("\n")
    frames = [frame for text in (*texts[head:last], *quoted) if (frame := _LIKE["in_file"].match(text)) is not None]
    own = [f"{frame[1]}:{frame[2]}" for frame in frames if not any(map(frame[1].__contains__, _WORDS["packages"]))]
    return LastTraceback(texts[last], raised[2], raised[3] or "", last, own[-1] if own else "", caught)


def _is_caught(texts: Sequence[str], above: int, head: int, last: int) -> bool:
    """Whether the program went on below a traceback, by the line right above it and its outermost frame: what came out
    of the program's own module ended it, though a logger says it, and so did what a logger calls fatal."""
    line = texts[above]
    frames = [frame[1] for text in texts[head:last] if (frame := _LIKE["in_file"].match(text)) is not None]
    if frames and all(frame.endswith(_WORDS["trackers"]) for frame in frames):
        return True
    if _LIKE["lived_on"].search(line) is not None:
        return True
    is_logged = "fatal" not in line.lower() and any(map(line.__contains__, _WORDS["levels"]))
    return is_logged and not _is_of_main(texts, head, last)


def _is_of_main(texts: Sequence[str], head: int, last: int) -> bool:
    """Whether the outermost frame of a traceback is that of a program's own module: not that of a package which handles
    what fails when it is imported, and says why right above."""
    frame, raised = _LIKE["in_file"].match(texts[head + 1]), _LIKE["raised"].match(texts[last])
    if frame is None or not frame[3]:
        return False
    is_said = raised is not None and raised[3] is not None and texts[head - 1].endswith(f": {raised[3]}")
    return not (is_said and "-packages/" in frame[1])


def _timed(texts: Sequence[str]) -> int:
    """The line of the shell's `time` among the last ones, below which only the script goes on; 0 without."""
    lines = range(len(texts) - 3, max(len(texts) - _MOST_EPILOGUE, 0), -1)
    return next((line for line in lines if all(map(str.startswith, texts[line : line + 3], _WORDS["times"]))), 0)


def above_epilogue(texts: Sequence[str], at: int) -> int:
    """The line at or above `at` that is the program's own; the last looked at where all are what its end leaves."""
    least = max(at - _MOST_EPILOGUE, 0)
    return next((line for line in range(at, least, -1) if not _is_left(texts[line])), least)


def _raised_by_main(texts: Sequence[str], at: int) -> int:
    """The line of the exception that came out of the program's own module, where below it stand few lines and none that
    shows a program at work; else `at`."""
    lines = 0
    for line in range(at, max(at - _MOST_EPILOGUE, 0), -1):
        head, raised = _head_of(texts, line), _LIKE["raised"].match(texts[line])
        if head is not None and raised is not None and _is_of_main(texts, head, line):
            return at if _started_again(texts, line, at) else line
        is_raised = raised is not None and raised[2].endswith(("Error", "Exception"))
        if head is not None or is_raised or texts[line].startswith(_WORDS["of_threads"]):
            continue  # threads end with the program, each with a traceback
        if raised is not None and raised[2] in _WORDS["by_hand"]:
            break
        if _is_left(texts[line]) or LABELS["ray"].match(texts[line]) is not None:
            continue  # what Ray's workers printed comes to the driver later
        lines += 1
        if lines > _MOST_BELOW or _lives(texts[line]):
            break
    return at


def _started_again(texts: Sequence[str], line: int, last: int) -> bool:
    """Whether a program whose source could not be read was started again, and another exception stands below: Python
    reads a source before it runs it."""
    return (
        texts[line].startswith(OF_SOURCE)
        and _head_of(texts, last) is not None
        and not texts[last].startswith(OF_SOURCE)
    )


def _lives(text: str) -> bool:
    """Whether a line shows a program at work: a single word (`done`) is a script's as likely, and a server that is shut
    down says so."""
    if _LIKE["shut_down"].match(text) is not None:
        return False
    return first_in("progress", text) is not None or (" " in text.strip() and _LIKE["goes_on"].search(text) is not None)


def _is_left(text: str) -> bool:
    """Whether a line is what a program's end leaves: blank, a rule, indented as a long message goes on, or a word
    of the launcher, the shell or the script."""
    if not text.strip("-=*#_~ \t") or text[:1].isspace() or _LIKE["by_script"].match(text) is not None:
        return True
    return first_in("harmless", text) is not None


def _head_of(texts: Sequence[str], last: int) -> int | None:
    """The head of the traceback whose exception stands on this line; None where no frame stands above the line."""
    head = last - 1
    while head > 0 and texts[head].startswith("  "):
        head -= 1
    framed = 0 <= head < last - 1 and _LIKE["in_file"].match(texts[head + 1])
    if framed and texts[head].startswith(_WORDS["remote"]):
        return _head_of(texts, head)
    return head if framed and _begins_traceback(texts[head]) else None


def _begins_traceback(text: str) -> bool:
    """Whether a line is the head of a traceback: Python's, a worker's that torch quotes, or Ray's of a remote one that
    nobody asked for."""
    return text in (_TRACEBACK, _QUOTED) or _WORDS["unhandled"][0] in text


def _not_blank(texts: Sequence[str], at: int) -> int:
    """The line at or above `at` that is neither blank nor a rule, 0 where none is."""
    return next((line for line in range(at, 0, -1) if texts[line].strip("-=* \t")), 0)


def logs_of(texts: Sequence[str]) -> frozenset[str]:
    """The hosts whose systems wrote these lines, of which the first may be cut: none where a line has another form, or
    all are of one program."""
    hosts, senders, systems = set[str](), set[str](), set[str]()
    for text in filter(str.strip, texts[1:]):
        match = _LIKE["of_system"].match(text)
        if match is None:
            return frozenset()
        hosts.add(match[1])
        (systems if match[2] else senders).add(match[2] or match[3])
    return frozenset(hosts) if systems and len(systems) + len(senders) > 1 else frozenset()
