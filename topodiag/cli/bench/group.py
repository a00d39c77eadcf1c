"""`topodiag bench`: the commands on measured collectives. A path in place of a command is read and judged."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

import click
from click.shell_completion import CompletionItem

from topodiag.cli import LazyGroup
from topodiag.cli.params import EVIDENCE

READ = "show"


class _Bench(LazyGroup):
    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        READ: ("bench.show:show", "Judge nccl-tests output; `topodiag bench PATH...` is the same."),
        "plan": ("bench.plan:plan", "Plan few runs that find bad links and nodes."),
        "run": ("bench.run:run", "Run a plan, or go on with it."),
        "read": ("bench.read:read", "What the runs of a plan say of nodes, NICs and rails."),
    }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and self._is_input(args[0], ctx):
            args = [READ, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands, and the paths that may stand in the place of one."""
        return super().shell_complete(ctx, incomplete) or EVIDENCE.shell_complete(
            ctx, ctx.command.get_params(ctx)[0], incomplete
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of the command that a path calls stand here too: `bench PATH...` is how most people call it."""
        command = self.get_command(ctx, READ)
        assert command is not None  # noqa: S101 - the table is ours
        own = [record for param in self.get_params(ctx) if (record := param.get_help_record(ctx))]
        of_paths = [
            record
            for param in command.params
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx))
        ]
        self.format_commands(ctx, formatter)
        with formatter.section("Options of bench PATH..."):
            formatter.write_dl(of_paths)
        with formatter.section("Options"):
            formatter.write_dl(own)

    def _is_input(self, word: str, ctx: click.Context) -> bool:
        """A command's name is a command (`./plan` is a file of that name); of other words, those that can be files."""
        if word in self.places or word in ctx.help_option_names:
            return False
        return word.startswith("-") or any(sign in word for sign in "./*?[:") or os.path.exists(word)


@click.group(cls=_Bench, subcommand_metavar="PATH... | COMMAND [ARGS]...")
def bench() -> None:
    """Is this bandwidth normal? Compare measured collectives with what this machine should reach.

    PATH is output of nccl-tests (text or JSON, of any version), a folder of it, or - for standard input.

    \b
    Examples
      topodiag bench all_reduce.txt
      topodiag bench results/ --system dgx-h100
      topodiag bench plan --nodelist gpu[001-064] -o plan.json
    """
