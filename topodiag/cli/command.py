"""A command of the program: it reads standard input once, and writes over nothing that it reads. Its help groups
options once there are many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import click

from topodiag.cli.params import FILE, PLACE, Evidence
from topodiag.model.dimensions import NAMES
from topodiag.words.own_data import own_data
from topodiag.words.text import clean

HELP = ["-h", "--help"]
JOB = "topodiag.job"
"""Where a context keeps the settings that --job read."""
FEW_OPTIONS = 12
"""A help of so few options is one list."""


@cache
def shared_sections() -> dict[str, list[str]]:
    """Headings of a long help with the parameters below each; a parameter of no heading stands first."""
    listed: dict[str, list[str]] = own_data("cli/options")["sections"]
    return {
        title: [name for word in names for name in (NAMES if word == "dimensions" else (word,))]
        for title, names in listed.items()
    }


class Command(click.Command):
    """A command that never writes over what it reads. `sections` are headings of its own, above the shared ones."""

    def __init__(self, *args: Any, sections: Mapping[str, Sequence[str]] | None = None, **given: Any) -> None:
        # click keeps the option of the first context that asks, which may have no parent to inherit from
        given.setdefault("context_settings", {"help_option_names": HELP})
        super().__init__(*args, **given)
        self.sections = sections or {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records = {
            str(param.name): record
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx))
        }
        if len(records) <= FEW_OPTIONS:
            super().format_options(ctx, formatter)
            return
        sections = {**self.sections, **shared_sections()}
        placed = {name for names in sections.values() for name in names}
        own = tuple(name for name in records if name not in placed)
        for title, names in {"Options": own, **sections}.items():
            if rows := [records[name] for name in names if name in records]:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click leaves it out where the parser refuses; the hint names the command
            raise

    def invoke(self, ctx: click.Context) -> Any:
        if (settings := ctx.meta.get(JOB)) is not None and not ctx.params.get("quiet", False):
            from topodiag.app.job_file import spelt  # noqa: PLC0415 - only with --job

            click.echo(f"note: {clean(spelt(settings))}", err=True)
        files, inputs = _written(self, ctx, FILE), _read(self, ctx)
        outputs = [*files, *_written(self, ctx, PLACE)]
        if inputs.count("-") > 1:
            raise click.UsageError("Standard input can be read only once.", ctx=ctx)
        if outputs:
            from topodiag.writing import check_apart, check_distinct, check_writable  # noqa: PLC0415 - not for the help

            check_distinct(outputs)
            for path in outputs:
                check_apart(path, inputs)
            for path in files:
                check_writable(path)
        return super().invoke(ctx)


def _written(command: click.Command, ctx: click.Context, kind: click.Path) -> list[str]:
    """The values of the command's options of this type: files that it is to write."""
    return [
        value
        for param in command.params
        if isinstance(param, click.Option) and param.type is kind
        for value in _values(ctx, param)
        if value != "-"
    ]


def _read(command: click.Command, ctx: click.Context) -> list[str]:
    """The paths that a command is told to read: evidence, and its arguments."""
    return [
        value
        for param in command.params
        if isinstance(param.type, Evidence) or isinstance(param, click.Argument)
        for value in _values(ctx, param)
    ]


def _values(ctx: click.Context, param: click.Parameter) -> list[str]:
    value = ctx.params.get(param.name or "")
    values = value if isinstance(value, (tuple, list)) else (value,)
    return [value for value in values if isinstance(value, str) and value]
