"""Every command of the program with its words, `("topo", "check")`."""

from collections.abc import Iterator

import click

from topodiag.cli import LazyGroup, cli

OF_PATHS = "./"
"""The word that calls the command of paths: a path, which every such command must take for one."""


def commands(
    command: click.Command = cli, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        if isinstance(command, LazyGroup) and (nameless := command.path_command()) is not None:
            yield (*words, OF_PATHS), nameless
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None
            yield from commands(below, (*words, name))


ALL = dict(commands())
