"""Lines of steps that differ in their numbers only, read once as a form and then by one pattern: 5 us instead of 240.

A form is learnt by example. The line is read with its own numbers and with others in their place; each value of the
result must be one of the line's numbers, alike in all of them. Where one is not, such lines are read in full each time.
Of many such lines in a row, as a training prints them, columns are made without a value for each line: 2 us.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from topodiag.evidence.live.step_lines import MAX_LINE, StepLine, number_of, read_line
from topodiag.evidence.signatures.wrappers import without_clock
from topodiag.lazy import dataclass, regex

MOST_KNOWN = 24
"""Forms that a line is compared with; the one that was met last comes first."""
MOST_LEARNT = 200
"""Forms of one text that are learnt: a text of more has none."""
_LEAST_ALIKE, _MOST_FAILED = 8, 8
"""Lines in a row that are worth columns, and how often these may be in vain before all lines of a text are read by
themselves: those of several ranks that print in turn."""
_LONGEST_FRONT = 300
"""Characters in front of a step among which a clock is looked for."""
_PROBES = 4
_NUMBER = regex(r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,2})?")
_ZERO = "0.,"
"""The signs of a zero."""
_OF_CLOCK = regex(r"[0-9][:-][0-9]")
_SCALES = (1.0, 1e-3, 1e-6)
_WORK = "work"
_LEAST, _MOST = 1e-9, 1e15
"""Values that `read_line` keeps."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of the result: the product of numbers of the line, counted from 1 as groups of a match, times a scale, or
    one over it."""

    tokens: tuple[int, ...]
    scale: float = 1.0
    inverse: bool = False

    def of(self, numbers: Sequence[str] | re.Match[str]) -> float:
        return self.product([number_of(numbers[token]) for token in self.tokens])

    def column(self, numbers: Mapping[int, Sequence[float]]) -> list[float]:
        """The same of many lines, whose numbers stand in columns by token."""
        return list(map(self.product, zip(*(numbers[token] for token in self.tokens), strict=True)))

    def product(self, factors: Iterable[float]) -> float:
        value = prod(factors, start=self.scale)
        return 1 / value if self.inverse and value else value


@dataclass(frozen=True, slots=True)
class _Form:
    """What lines of a form say, by numbers of the line. `values`, with _WORK where it is said, None: they are read in
    full; `number` 0: they say nothing of a step."""

    pattern: re.Pattern[str]
    number: int = 0
    total: int = 0
    values: tuple[tuple[str, _Value], ...] | None = ()
    word: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """Lines of one process in a row and what they say of steps, by column: numbers, which rise, times (NaN without a
    clock), values by unit, and the work of a step, None where they say none."""

    lines: Sequence[str]
    numbers: Sequence[int]
    times: Sequence[float]
    values: Mapping[str, Sequence[float]]
    work: Sequence[float] | None


class Forms:
    """The forms of one text, learnt while it is read."""

    def __init__(self) -> None:
        self._known: list[_Form] = []
        self._learnt = self._failed = 0

    def run(self, text: str) -> Run | None:
        """The lines at the begin of a text that are of the form that was met last, but for the last of them: what
        follows may be of its step. None where they are few, or not of one process that goes from step to step."""
        form = self._known[0] if self._known else None
        if form is None or not form.values or not form.word or self._failed > _MOST_FAILED:
            return None
        matches: list[re.Match[str]] = []
        begin = 0
        while (end := text.find("\n", begin)) >= 0 and (match := form.pattern.fullmatch(text, begin, end)) is not None:
            matches.append(match)
            begin = end + 1
        if len(matches) < _LEAST_ALIKE:
            return None
        run = _by_column(form, dict(form.values), matches[:-1])
        self._failed += run is None
        return run

    def read(self, line: str) -> StepLine | None:
        """What `step_lines.read_line` says of the line."""
        for place, form in enumerate(self._known):
            match = form.pattern.fullmatch(line)
            if match is not None:
                if place:
                    self._known.insert(0, self._known.pop(place))
                return _by_form(form, match, line)
        if self._learnt < MOST_LEARNT and len(line) < MAX_LINE:
            self._learnt += 1
            self._known.insert(0, _learnt(line))
            del self._known[MOST_KNOWN:]
        return read_line(line)


def _by_form(form: _Form, match: re.Match[str], line: str) -> StepLine | None:
    if form.values is None:
        return read_line(line)
    if not form.number:
        return None
    values = {unit: value.of(match) for unit, value in form.values}
    if not all(_LEAST < value < _MOST for value in values.values()):
        return read_line(line)
    at = line.rfind(form.word, 0, match.start(form.number)) if form.word else -1
    total = int(number_of(match[form.total])) if form.total else 0
    work = values.pop(_WORK, None)
    return StepLine(int(number_of(match[form.number])), total, values, work, at=at)


def _by_column(form: _Form, units: Mapping[str, _Value], matches: Sequence[re.Match[str]]) -> Run | None:
    """What these lines say, each value by its unit; None where each line has to be read by itself."""
    lines = [match[0] for match in matches]
    at = lines[0].rfind(form.word, 0, matches[0].start(form.number))
    fronts = [without_clock(line[: at + len(form.word)]) for line in lines]
    if len({front for front, _ in fronts}) > 1 or not 0 <= at <= _LONGEST_FRONT or "rank" in lines[0][at:].lower():
        return None
    tokens = {form.number, form.total or form.number}.union(*(value.tokens for value in units.values()))
    columns = {token: [float(match[token].replace(",", "")) for match in matches] for token in tokens}
    values = {unit: value.column(columns) for unit, value in units.items()}
    numbers = list(map(int, columns[form.number]))
    is_one = not form.total or len(set(columns[form.total])) == 1
    in_reach = all(_LEAST < value < _MOST for column in values.values() for value in column)
    if not (is_one and in_reach and numbers == sorted(set(numbers))):
        return None
    return Run(lines, numbers, [time for _, time in fronts], values, values.pop(_WORK, None))


def _learnt(line: str) -> _Form:
    tokens = list(_NUMBER.finditer(line))
    pattern = regex("".join(_pieces(line, tokens)))
    dice = random.Random(len(line))  # noqa: S311 - numbers to try, the same for the same line
    lines = [line, *(_varied(line, tokens, dice) for _ in range(_PROBES))]
    full = _Form(pattern, values=None)
    if any(pattern.fullmatch(line) is None for line in lines):
        return full
    read = [read_line(line) for line in lines]
    step_lines = [step_line for step_line in read if step_line is not None]
    if not step_lines:
        return _Form(pattern)
    if len(step_lines) < len(read) or '"' in line or "'" in line or not all(map(_is_plain, step_lines)):
        return full
    form = _explained(pattern, step_lines, [[line, *_NUMBER.findall(line)] for line in lines])
    if form is None:
        return full
    start, at = tokens[form.number - 1].start(), step_lines[0].at
    word = line[at:start].rstrip() if at >= 0 else ""
    if start < at or (word and line.rfind(word, 0, start) != at):
        return full
    return replace(form, word=word)


def _explained(
    pattern: re.Pattern[str], step_lines: Sequence[StepLine], numbers: Sequence[Sequence[str]]
) -> _Form | None:
    """The form of lines that say this, each value by the number that it is; None where one is none of them."""
    number = _value([float(step_line.number or 0) for step_line in step_lines], numbers)
    total = _value([float(step_line.total) for step_line in step_lines], numbers)
    read = [step_line.values | ({_WORK: step_line.work} if step_line.work else {}) for step_line in step_lines]
    values = {unit: _value([one.get(unit, 0.0) for one in read], numbers) for unit in read[0]}
    known = tuple((unit, value) for unit, value in values.items() if value is not None)
    if len(known) < len(values) or any(list(one) != list(values) for one in read):
        return None
    as_printed = all(value == _Value(value.tokens[:1]) for value in (number, total) if value is not None)
    if number is None or (total is None and step_lines[0].total) or not as_printed:
        return None
    return _Form(pattern, number.tokens[0], total.tokens[0] if total is not None else 0, known)


def _is_plain(step_line: StepLine) -> bool:
    """Whether a line has nothing but a step with values: no bar, no parts, no waiting for data."""
    more = (step_line.bar, step_line.opens, step_line.parts)
    return step_line.number is not None and step_line.waited is None and not any(more)


def _pieces(line: str, tokens: Sequence[re.Match[str]]) -> Iterator[str]:
    """The pattern of all lines that differ from this one in their numbers, and in how far columns are moved."""
    at = 0
    for token in tokens:
        yield _text(line[at : token.start()])
        clock = _OF_CLOCK.search(line[max(0, token.start() - 2) : token.end() + 2]) is not None
        yield f"({_class(token[0], clock)})"
        at = token.end()
    yield _text(line[at:])


def _text(text: str) -> str:
    # One run is one piece: a bar has a hundred blanks, and pieces side by side would be tried in every division.
    return re.sub(r"(?:\\ ){2,}", " {2,}", re.escape(text))


def _class(token: str, clock: bool) -> str:
    """Numbers that a line may have in the place of this one: zero is another thing than a number."""
    digits, _, exponent = re.sub("[eE]", "e", token).partition("e")
    whole, _, part = digits.partition(".")
    pattern = r"[0-9]{1,3}(?:,[0-9]{3}){1,5}" if "," in whole else "[0-9]{1,9}" if len(whole) < 10 else re.escape(whole)
    pattern += r"\.[0-9]{1,20}" if part else ""
    if not clock:
        pattern = "[0.,]+(?![0-9])" if not digits.strip(_ZERO) else rf"(?!0[0.,]*(?![0-9.,])){pattern}"
    return f"{pattern}[eE][-+]?[0-9]{{1,2}}" if exponent else rf"{pattern}(?![0-9]|\.[0-9])"


def _varied(line: str, tokens: Sequence[re.Match[str]], dice: random.Random) -> str:
    """The line with other numbers of the same lengths; zeros, and digits that lead with a zero, stay."""
    texts, at = [], 0
    for token in tokens:
        texts.append(line[at : token.start()])
        digits, mark, exponent = re.sub("[eE]", "e", token[0]).partition("e")
        stays = not digits.strip(_ZERO)
        texts.append("".join(d if stays or not d.isdigit() or d == "0" else str(dice.randint(1, 9)) for d in digits))
        texts.append(token[0][len(digits) :] if mark or exponent else "")
        at = token.end()
    return "".join([*texts, line[at:]])


def _value(values: Sequence[float], numbers: Sequence[Sequence[str]]) -> _Value | None:
    """The number of the line that a value is in all of these lines, as it is or scaled; None where it is none, or
    zero: any zero of the line may be meant."""
    if 0.0 in values:
        return None
    most = range(1, len(numbers[0]))
    tries = [_Value((token,), scale, inverse) for scale in _SCALES for inverse in (False, True) for token in most]
    tries += [_Value((first, second)) for first in most for second in most if first < second]
    return next(
        (one for one in tries if all(one.of(own) == value for own, value in zip(numbers, values, strict=True))), None
    )
