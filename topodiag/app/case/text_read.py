"""What a text of a program counts while it works, and how it ends: in the middle of a line, or with a traceback."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from topodiag.app.case.starts import BAR, Starts
from topodiag.evidence.intake.pieces import Intake, Piece, blocks_of
from topodiag.evidence.nccl_log.grammar import ends as text_ends
from topodiag.evidence.nccl_log.grammar.ends import facts_of
from topodiag.evidence.nccl_log.input.streams import Reading
from topodiag.evidence.signatures import engine
from topodiag.evidence.signatures.literals import windows
from topodiag.evidence.signatures.wrappers import is_of_service, of_one_process
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.events import Progress
from topodiag.model.job import Event
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.verdict.state import STEP_OF
from topodiag.words.colours import without_colours

_BEGAN, _DONE = "progress.began", "progress.done"
"""Lines that a program or its launcher prints once: when it starts, and when its work is done."""


@dataclass(frozen=True, slots=True)
class TextRead:
    """What a text counts while its program works (`progress`), and how it ends: `is_cut` in the middle of a line; with
    the traceback of an exception (`last`), None without. `lines` are the numbers of its last lines, by their text;
    `began` is the last line on which a program says that it starts, `starts` knows those on which its head stands
    again; `done` is the last one that shows its work done (its word, or its last step), 0 where one started below it,
    `word` is its last own line, with its number; `handled` are exceptions that a program handled when another one was
    raised; `logs_of` are the hosts whose systems wrote it, by the form of its last lines."""

    progress: tuple[Progress, ...] = ()
    is_cut: bool = False
    began: int = 0
    starts: Starts = field(default_factory=Starts)
    done: int = 0
    word: tuple[int, str] = (0, "")
    last: Event | None = None
    lines: Mapping[str, int] = field(default_factory=dict)
    handled: frozenset[str] = frozenset()
    logs_of: frozenset[str] = frozenset()


NOTHING = TextRead()


def read_text(intake: Intake, piece: Piece) -> TextRead:
    """The progress of a text, and how it ends; nothing of one that is gone."""
    tail, starts = bytearray(), Starts()
    try:
        with blocks_of(intake, piece, Reading()) as blocks:
            seen = starts.seen(windows(_remembering(blocks, tail)))
            read = engine.read_windows(seen, piece.name, "", "progress")
    except InputError:
        return NOTHING
    counted, above = read.progress, read.breaks - tail.count(b"\n")
    texts = [line.rstrip("\r") for line in without_colours(bytes(tail)).decode("utf-8", "replace").split("\n")]
    lines, bare = {text.strip(): above + at for at, text in enumerate(texts, 1)}, of_one_process(texts)
    handled = text_ends.handled_exceptions(bare)
    last = _last_event(texts, bare, handled, above, piece.name)
    began = max((line.last.line or 0 for line in counted if line.kind == _BEGAN), default=0)
    done = max((line.last.line or 0 for line in counted if line.kind == _DONE or _is_last_step(line)), default=0)
    done = done if done > began and done > starts.last([done]) else 0
    progress = tuple(line for line in counted if line.kind not in (_BEGAN, _DONE))
    is_cut = bool(tail) and not tail.endswith(b"\n")
    raised = frozenset(texts[at].strip() for at in handled)
    at = text_ends.above_epilogue(bare, len(bare) - 1)
    word = (above + at + 1, bare[at])
    bar = _last_bar(bare, at)
    done = 0 if above + bar >= done and starts.counts_anew(bare[bar], done) else done
    return TextRead(progress, is_cut, began, starts, done, word, last, lines, raised, text_ends.logs_of(texts))


def _last_bar(texts: Sequence[str], last: int) -> int:
    """The last line with a bar, which is indented below 100 %, at or below the last one that is a program's own."""
    return max((row for row in range(last, len(texts)) if "%|" in texts[row]), default=last)


def _is_last_step(line: Progress) -> bool:
    """Whether the last line of steps is that of the last step, by its own word; beside an epoch they may be its own."""
    step = STEP_OF.search(line.last.text)
    return step is not None and step[1] == step[2] and "epoch" not in line.last.text.lower()


def is_full_bar(line: str, step: int | None) -> bool:
    """Whether a line is the bar of all steps of a training (tqdm's), of which `step` was the last."""
    return (bar := BAR.search(line)) is not None and bar[1] == bar[2] and int(bar[2]) == step


def _last_event(
    texts: Sequence[str], bare: Sequence[str], handled: frozenset[int], above: int, name: str
) -> Event | None:
    """The end of the process whose traceback, or own error, stands last in a text; `above` lines stand above `texts`,
    its last ones, and `bare` are these without the label of the one process that printed them."""
    if (last := text_ends.last_traceback(bare, handled)) is not None:
        named = {"how": "exception", "what": last.name, "message": last.message[:200], "frame": last.frame}
        line, details = last.line, {**facts_of(last.text), **named, "last": "" if last.caught else "1"}
    elif (error := text_ends.last_error(bare)) is not None:
        line, details = error, {"how": "last error", "what": bare[error].strip()[:120], "last": "1"}
    else:
        return None
    if is_of_service(texts[line]):
        return None
    origin = Origin(name, above + line + 1, texts[line][:MAX_QUOTE])
    return Event("ended", texts[line], "", level="APP", secondary=True, details=details, origin=origin)


def _remembering(blocks: Iterable[bytes], tail: bytearray) -> Iterator[bytes]:
    for block in blocks:
        tail[:] = (tail + block[-text_ends.MOST_OF_END :])[-text_ends.MOST_OF_END :]
        yield block
