"""Former spellings of options: still accepted, each with one line on standard error that names the new spelling.

A command lists them: `@click.command(cls=Command, former=(Former("--out", "--folder"),))`. No help and no completion
shows them, because they are gone before click reads the arguments.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from topodiag.cli.params import PLACE, Evidence


@dataclass(frozen=True, slots=True)
class Former:
    """`spelling` is now `now`, for values that `fits` accepts; with an empty `now` the value is an argument of the
    command. An option that is still there with another meaning needs a `fits`. `flag`: it takes no value (`fits` judges
    the word that follows)."""

    spelling: str
    now: str
    fits: Callable[[str], bool] | None = None
    flag: bool = False

    def note(self, value: str) -> str:
        """One line for standard error."""
        if not self.now:
            return f"topodiag: note: {self.spelling} {value} is now written {value}"
        shown = f" {value}" if self.fits is not None and not self.flag else ""
        return f"topodiag: note: {self.spelling}{shown} is now written {self.now}{shown}"


HELP = ["-h", "--help"]


class Command(click.Command):
    """A command that accepts former spellings, and that never writes over what it reads."""

    def __init__(self, *args: Any, former: Sequence[Former] = (), **given: Any) -> None:
        # click keeps the option of the first context that asks, which may have no parent to inherit from
        given.setdefault("context_settings", {"help_option_names": HELP})
        super().__init__(*args, **given)
        self.former = tuple(former)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known, notes = modern(args, self.former, self.get_params(ctx))
        if not ctx.resilient_parsing:  # the shell is completing
            for note in notes:
                click.echo(note, err=True)
        return super().parse_args(ctx, known)

    def invoke(self, ctx: click.Context) -> Any:
        outputs, inputs = _written(self, ctx), _read(self, ctx)
        if outputs:
            from topodiag.writing import check_apart, check_distinct  # noqa: PLC0415 - not for the help

            check_distinct(outputs)
            for path in outputs:
                check_apart(path, inputs)
        return super().invoke(ctx)


def _written(command: click.Command, ctx: click.Context) -> list[str]:
    """The files that a command is told to write: its options of type PLACE."""
    return [
        each
        for param in command.params
        if isinstance(param, click.Option) and param.type is PLACE
        for each in _values(ctx, param)
        if each != "-"
    ]


def _read(command: click.Command, ctx: click.Context) -> list[str]:
    """The paths that a command is told to read: evidence, and its arguments."""
    return [
        each
        for param in command.params
        if isinstance(param.type, Evidence) or isinstance(param, click.Argument)
        for each in _values(ctx, param)
    ]


def _values(ctx: click.Context, param: click.Parameter) -> list[str]:
    value = ctx.params.get(param.name or "")
    values = value if isinstance(value, (tuple, list)) else (value,)
    return [each for each in values if isinstance(each, str) and each]


def modern(
    args: Sequence[str], former: Sequence[Former], params: Iterable[click.Parameter]
) -> tuple[list[str], list[str]]:
    """The arguments with new spellings, and a note for each former one. What is the value of an option stays."""
    takes = _with_value(params)
    made: list[str] = []
    notes: dict[str, None] = {}
    rest = list(reversed(args))
    while rest:
        word = rest.pop()
        if word == "--":
            return [*made, word, *reversed(rest)], list(notes)
        name, joined, value = word.partition("=")
        if not joined:
            value = rest[-1] if rest else ""
        entry = _entry(former, name, value)
        if entry is None:
            made.append(word)
            if word in takes and rest:
                made.append(rest.pop())
            continue
        made += [entry.now] if entry.now else []
        if not entry.flag and (joined or rest):
            made.append(value if joined else rest.pop())
        notes[entry.note(value)] = None
    return made, list(notes)


def _with_value(params: Iterable[click.Parameter]) -> set[str]:
    """Spellings of the options that take a value."""
    return {
        spelling
        for param in params
        if isinstance(param, click.Option) and not (param.is_flag or param.count)
        for spelling in (*param.opts, *param.secondary_opts)
    }


def _entry(former: Sequence[Former], name: str, value: str) -> Former | None:
    """The former spelling that this option with this value is."""
    own = (each for each in former if each.spelling == name)
    return next((each for each in own if each.fits is None or each.fits(value)), None)


def is_path(value: str) -> bool:
    """Whether a value of the former `--system NAME|PATH` is a path: a fixture, standard input, or what is there."""
    return value == "-" or value.startswith("fixture:") or "/" in value or os.path.exists(value)
