"""The page of a report: lines within its width, of strings that `words.text.clean` has made safe to print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeVar

from rich.cells import cell_len, chop_cells
from rich.text import Text

from topodiag.lazy import dataclass, regex
from topodiag.report.interface import MIN_WIDTH, Style
from topodiag.words.own_data import own_data
from topodiag.words.text import MAX_CHARS, clean
from topodiag.words.units import fold_hosts, grouped, plural

T = TypeVar("T")

_HUES: Mapping[str, str] = own_data("report/hues")["terminal"]
Part = str | tuple[str, str] | Text
LABEL = 11
"""Columns of the labels of a report, after two blanks."""
BELOW = " " * (LABEL + 2)
SCREEN = 23
"""Lines of a page that a terminal of 24 shows whole, its prompt below."""
LAST = 3
"""Of these, the last: a blank one, the verdict and what to do."""
FEW = 2
"""Lines by which a table may be longer than the screen before it is cut."""
FEW_LINES = 10
"""A report of so few lines needs no repetition."""
GROUPS_SHOWN = 3
_WORST_FIRST = "✖▲?●✔"
EXIT = "  exit 1"
"""What the last line ends with where the exit code is not 0."""


def plain(part: Part) -> str:
    """The text of a part without its hue."""
    return part[0] if isinstance(part, tuple) else str(part)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found of one thing: a node, a job, a run, a step. `sign` may be empty."""

    sign: str
    hue: str
    name: str
    words: Text
    action: str = ""
    """The first step of the change, where there is one."""


def answer_groups(answers: Sequence[Answer]) -> list[list[Answer]]:
    """Answers with the same sign and words together, the worst first."""
    groups = grouped(((answer.sign, answer.words.plain), answer) for answer in answers)
    return sorted(groups.values(), key=lambda group: _WORST_FIRST.find(group[0].sign) if group[0].sign else 0)


def more(count: int, what: str, many: str = "") -> str:
    """The words for what was folded away."""
    return f"… and {count} more {what if count == 1 else many or what + 's'} (-v shows all)"


class Page:
    """Lines under construction, each within the width. All text passes through `clean`; hues are named, not coded."""

    def __init__(self, style: Style, *, on_screen: bool = True) -> None:
        self.style, self.on_screen = style, on_screen
        self.width = max(style.width, MIN_WIDTH)
        self.lines: list[Text] = []
        self.answers: list[Answer] = []

    def clean(self, text: object, limit: int = MAX_CHARS) -> str:
        return clean(self.style.names(str(text)), ascii_only=self.style.ascii, limit=limit)

    def text(self, *parts: Part) -> Text:
        """One Text of strings, (string, hue) pairs and Texts made by this page."""
        drawn = Text(no_wrap=True)
        for part in parts:
            if isinstance(part, Text):
                drawn.append_text(part)
            elif isinstance(part, tuple):
                drawn.append(self.clean(part[0]), _HUES[part[1]] or None)
            else:
                drawn.append(self.clean(part))
        return drawn

    def join(self, parts: Iterable[Part], glue: Part) -> Text:
        return self.text(glue).join([self.text(part) for part in parts])

    def note_answer(self, *words: Part, sign: str = "", hue: str = "", name: str = "", action: str = "") -> None:
        """Keep an answer for the last lines."""
        self.answers.append(Answer(sign, hue, name, self.text(*words), action))

    def repeat_answers(self) -> None:
        """The last lines repeat the answer and what to do, so that they are on the screen after any output: answers
        alike folded, the worst first, and what to do about the worst."""
        if not self.answers or self.style.quiet or len(self.lines) <= FEW_LINES:
            return
        groups = answer_groups(self.answers)
        self.blank()
        items: list[Part] = []
        for group in groups[:GROUPS_SHOWN]:
            first = group[0]
            names = fold_hosts([answer.name for answer in group if answer.name])
            lead = [self.text((first.sign, first.hue), " ")] if first.sign else []
            items.append(self.text(*lead, *([self.text((names, "strong"), "  ")] if names else []), first.words))
        if len(groups) > GROUPS_SHOWN:
            items.append((f"{len(groups) - GROUPS_SHOWN} more", "dim"))
        begin = len(self.lines)
        self.add_items("", items)
        self.keep_lines(begin, min(len(groups), GROUPS_SHOWN + 1))
        if action := groups[0][0].action:
            self.add_do(action)

    def blank(self) -> None:
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def add(self, prefix: Part, *parts: Part, under: Part | None = None) -> None:
        """A line: `prefix`, then the rest wrapped beside it. `under` stands below the prefix on further lines."""
        head, body = self.text(prefix), self.text(*parts)
        if head.cell_len > self.width // 2 and head.cell_len + min(body.cell_len, 24) > self.width:
            self.lines.extend(self._wrap(head, self.width))
            head = self.text(under or "", " " * 6)
        below = self.text(under or "")
        below.append(" " * (head.cell_len - below.cell_len))
        room = max(self.width - head.cell_len, 8)
        for number, line in enumerate(self._wrap(body, room) or [Text()]):
            whole = (head if number == 0 else below).copy()
            whole.append_text(line)
            whole.rstrip()
            self.lines.append(self.cut(whole, self.width))

    def some(self, listed: Sequence[T], most: int) -> Sequence[T]:
        """The first `most` of them; with -v all."""
        return listed if self.style.verbose else listed[:most]

    def add_more(self, count: int, what: str, many: str = "", *, indent: str = "  ") -> None:
        """The line that stands for what was folded away, where something was."""
        if count > 0:
            self.add(indent, (more(count, what, many), "dim"))

    def listed(self, items: Sequence[T], most: int, what: str, many: str = "", *, indent: str = "  ") -> Iterator[T]:
        """The first `most` of them to draw one by one, and after them the line that counts the others; with -v all."""
        shown = self.some(items, most)
        yield from shown
        self.add_more(len(items) - len(shown), what, many, indent=indent)

    def add_line(self, line: Text) -> None:
        """A line that its caller laid out, cut at the width."""
        line.rstrip()
        self.lines.append(self.cut(line, self.width))

    def heading(self, title: str, *more: Part, lead: Part = "") -> None:
        """A blank line and the title of what follows, behind a sign or an indent."""
        self.blank()
        self.add(lead, (title, "strong"), *more)

    def keep_lines(self, begin: int, most: int) -> None:
        """Of the lines from `begin` on keep so many, the last with a mark where something was cut; with -v all."""
        if len(self.lines) > begin + most and not self.style.verbose:
            last = self.text(self.lines[begin + most - 1], " …")
            self.lines[begin + most - 1 :] = [self.cut_words(last, self.width)]

    def entry(self, label: str, *words: Part, hue: str = "dim", most: int = 0) -> None:
        """A label, then words wrapped beside it, where there are any. With `most`, of longer words only so many lines,
        but with -v all."""
        begin, body = len(self.lines), self.text(*words)
        if body.plain:
            self.add(self.text("  ", (f"{label:<{LABEL}}", hue)), body)
        if most:
            self.keep_lines(begin, most)

    def entries(
        self, label: str, rows: Sequence[Sequence[Part]], most: int, what: str, *, hue: str = "dim", lines: int = 1
    ) -> None:
        """An entry of so many lines for each of the first `most` rows, and one that counts the others; with -v all."""
        shown = self.some(rows, most)
        for number, words in enumerate(shown):
            self.entry("" if number else label, *words, hue=hue, most=lines)
        self.add_more(len(rows) - len(shown), what, indent=BELOW)

    def add_do(self, words: str) -> None:
        """What to do, as the last line: cut to one at a word's end, with room for the exit code; as many as its first
        command needs."""
        self.lines.extend(self._do(words))

    def _do(self, words: str) -> list[Text]:
        room = self.width - (len(EXIT) if self.style.exit_code else 0)
        head, mark = self.text("  ", (f"{'do':<{LABEL}}", "ok")), self.clean(" …")
        lines = self._wrap(self.text((words, "strong")), max(room - head.cell_len - len(mark), 8))
        ends = (number for number in range(1, len(lines)) if "".join(map(str, lines[:number])).count("`") > 1)
        most = next(ends, len(lines)) if "`" in words else 1
        leads = [head, *(self.text(" " * head.cell_len) for _ in lines)]
        marks = [mark if most == number < len(lines) else "" for number in range(1, most + 1)]
        return [self.text(*parts) for parts in zip(leads, lines[:most], marks, strict=False)]

    def add_rest(self, rest: Page, begin: int = 0, *, rows: int = 0, of: str = "") -> None:
        """Lines that a reader can spare: of a page that began at `begin`, as many as the screen has room for above the
        last ones. What is left out is counted, and -v shows it. With `rows`, they begin with a head and so many rows of
        one thing each, such as a `node`: no one or two are left out alone, and those left out are counted as such."""
        last = max((len(self._do(answer.action)) for answer in self.answers), default=1)
        room = max(SCREEN - LAST - (last - 1) - (len(self.lines) - begin), 1)
        lines = rest.lines
        if len(lines) > room and not self.style.verbose and self.on_screen:
            lines = [line for line in lines if line.plain]
            heads = [at for at, line in enumerate(lines[:room]) if not line.plain.startswith(" " * (LABEL + 2))]
            whole = max(heads, default=0)
            mark = self._left(len(lines) - room)
            if rows and rows >= room - 2:
                room = rows + 1 if rows < room + FEW else room - 1
                lines = [*lines[:room], self._left(len(lines) - room, max(rows + 1 - room, 0), of)]
            elif len(lines) > room:
                fits = lines[room - 1].cell_len + mark.cell_len <= self.width
                if lines[whole].plain.startswith("  next ") and not (fits and whole == room - 1):
                    room = whole  # what is to be typed stands whole or is counted
                    mark = self._left(len(lines) - room)
                end = [self.text(self.cut(line, self.width - mark.cell_len), mark) for line in lines[:room][-1:]]
                lines = [*lines[:room][:-1], *(end or [mark])]
        self.lines.extend(lines)

    def _left(self, lines: int, rows: int = 0, of: str = "") -> Text:
        """How many lines are left out, and how many rows of something among them."""
        counts = [plural(rows, f"more {of}")] if rows else []
        counts += [plural(lines - rows, "more line")] if lines > rows else []
        return self.text((f"  … {', '.join(counts)} (-v)", "dim"))

    def add_items(self, prefix: Part, items: Sequence[Part], glue: str = " · ", *, tail: Sequence[Part] = ()) -> None:
        """A line of items, broken between items and not inside one; `tail` are words that follow without glue."""
        last = len(items) - 1
        pieces = [self.text(item, (glue, "dim") if number < last else "") for number, item in enumerate(items)]
        self.add_pieces(prefix, [*pieces, *tail])

    def add_pieces(self, prefix: Part, pieces: Iterable[Part]) -> None:
        """Pieces that bring their own blanks and glue, broken only between them unless one is longer than a line."""
        room = max(self.width - self.text(prefix).cell_len, 8)
        line = Text(no_wrap=True)
        for piece in pieces:
            word = self.text(piece)
            if line.plain and line.cell_len + len(word.plain.rstrip()) > room:
                self.add(prefix, _without_glue(line))
                prefix, line = " " * self.text(prefix).cell_len, Text(no_wrap=True)
            line.append_text(word)
        if line.plain:
            self.add(prefix, line)

    def _wrap(self, text: Text, width: int) -> list[Text]:
        if text.cell_len <= width:
            return [text]
        lines = list(text.divide(_breaks(text.plain, width)))
        for line in lines:
            line.rstrip()
        return [line for line in lines if line.plain]

    def cut(self, text: Text, width: int) -> Text:
        """The text within `width` columns, its end marked when something was cut."""
        if text.cell_len <= width:
            return text
        mark = self.clean("…")
        short = text.copy()
        short.truncate(max(width - len(mark), 0), overflow="crop")
        short.append(mark)
        return short

    def cut_words(self, text: Text, width: int) -> Text:
        """`cut` at the end of a word, unless one word has most of the line, and never inside a command."""
        if text.cell_len <= width:
            return text
        mark = self.clean(" …")
        whole = self._wrap(text, max(width - len(mark), 8))[0]
        return self.text(whole, mark) if 2 * whole.cell_len > width or "`" in text.plain else self.cut(text, width)

    def fitting(self, place: str, taken: int) -> str:
        """A place (`file:line`) that fits on one line beside `taken` columns: of a long path the end is shown."""
        room = max(self.width - taken, 8)
        text = self.clean(place)
        return text if cell_len(text) <= room else self.clean("…") + text[-(room - 2) :]

    def pad(self, text: Text, width: int) -> Text:
        return self.text(text, " " * (width - text.cell_len))


@cache
def _word(width: int) -> re.Pattern[str]:
    """A word with the unit that follows it, or a command in back quotes that fits on a line: each stays on one line."""
    command = rf"[^\s`]{{0,2}}`[^`]{{1,{max(width - 6, 1)}}}`\S{{0,2}}(?!\S)"
    return regex(rf"\s*(?:{command}|\S+)(?: (?:%|[KMGT]i?[Bb](?:/s)?(?!\w)|[mu]?s(?!\w))\S*)?\s*")


def _breaks(text: str, width: int) -> list[int]:
    """Where a line breaks: between words, and inside a word only when it is longer than a line.

    rich wraps the same way, but its Text.wrap asks for a Console, which takes longer to load than all else here.
    """
    breaks: list[int] = []
    taken = 0
    for word in _word(width).finditer(text):
        bare = cell_len(word[0].rstrip())
        if taken + bare <= width:
            taken += cell_len(word[0])
            continue
        start = word.start()
        if taken:
            breaks.append(start)
        *whole, rest = chop_cells(word[0], width) if bare > width else [word[0]]
        for piece in whole:
            start += len(piece)
            breaks.append(start)
        taken = cell_len(rest)
    return breaks


def _without_glue(line: Text) -> Text:
    """The line without the dot that would have led to the next item."""
    bare = line.plain.rstrip().rstrip("·|").rstrip()
    return line[: len(bare)]
