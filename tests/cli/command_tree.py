"""Every command of the program with its words, `("topo", "check")`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from topodiag.cli import cli


def commands(
    command: click.Command = cli, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None
            yield from commands(below, (*words, name))


ALL = dict(commands())
