"""The command line. Only click is loaded here: a command's module, and all that is heavy, loads when it runs."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar, NoReturn

import click

from topodiag.app.collecting import OBJECTS
from topodiag.version import __version__

_COMMANDS = {
    "diagnose": ("diagnose:diagnose", "Join all evidence of a job into one verdict. Start here."),
    "scan": ("scan:scan", "Diagnose this node, or captured evidence."),
    "topo": ("topo.group:topo", "See what NCCL sees: check, predict, change and draw topology files."),
    "emit": ("emit.group:emit", "Write what applies a fix: topology files, nccl.conf, pictures."),
    "logs": ("logs:logs", "Rebuild a job from its NCCL logs, and diagnose its communication."),
    "ras": ("ras:ras", "Ask a running job who the others wait for (NCCL's RAS)."),
    "model": ("model.group:model", "What the wires allow: links, collectives and training steps priced."),
    "place": ("place.group:place", "Ranks on the right wires: a layout audited, solved and written."),
    "bench": ("bench.group:bench", "Is a measured bandwidth normal? nccl-tests output judged."),
    "env": ("env:env", "Print the debug settings for the next run."),
    "explain": ("explain:explain", "Say what a check finds, why it matters and how to fix it."),
    "checks": ("checks:checks", "List all checks."),
    "fixtures": ("fixtures:fixtures", "List the machines, jobs and tables that ship with topodiag."),
    "watch": ("watch:watch", "Watch this node: write down which links come and go."),
    "fleet": ("fleet.group:fleet", "Many nodes: collect their evidence, compare and remember it."),
    "probe": ("probe:probe", "Write the collector as one file, for nodes without topodiag."),
    "completion": ("completion:completion", "Print the completion script of a shell."),
}
"""Every command, one line each: where it lives, and its line in the help."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they run; their help lines are known without that."""

    places: ClassVar[Mapping[str, tuple[str, str]]] = _COMMANDS

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            from topodiag.cli.errors import NoCommandError  # noqa: PLC0415 - only on this error

            raise NoCommandError(ctx)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.places.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry[0].partition(":")
        command = getattr(import_module(f"topodiag.cli.{module}"), name)
        assert isinstance(command, click.Command)  # noqa: S101 - the tables are ours
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name not in self.places and not name.startswith("-"):
            from topodiag.cli.errors import no_such  # noqa: PLC0415 - only on this error

            raise no_such("command", name, self.places, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.places.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 clean, 1 findings at or above --fail-on, 2 usage or unreadable input, 130 interrupted.",
)
@click.version_option(__version__, message="topodiag %(version)s")
@click.option("--debug", is_flag=True, help="Show a traceback when something goes wrong inside.")
def cli(debug: bool) -> None:
    """Why is communication on these GPU nodes slower than the wires allow, where, and what should change?"""
    # The runner reads --debug from the arguments: it must know it when reading the arguments is what failed.


def main(argv: list[str] | None = None) -> NoReturn:
    """The entry point: runs a command and exits with its code."""
    from topodiag.cli.errors import run  # noqa: PLC0415 - keeps `import topodiag.cli` to its one job

    gc.set_threshold(OBJECTS)
    raise SystemExit(run(cli, argv))
