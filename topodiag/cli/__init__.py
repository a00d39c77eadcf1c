"""The command line. Only click is loaded here: a command's module, and all that is heavy, loads when it runs."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Mapping
from importlib import import_module
from os.path import exists
from typing import TYPE_CHECKING, Any, NoReturn

import click

from topodiag.app.case.collecting import OBJECTS
from topodiag.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_COMMANDS = {
    "diagnose": ("diagnose:diagnose", "Join all evidence of a job into one verdict, as `topodiag PATH`."),
    "scan": ("scan:scan", "Check this node or captures; on a GPU node plain `topodiag` does."),
    "logs": ("logs:logs", "Rebuild a job from its NCCL logs and check its communication."),
    "bench": ("groups:bench", "Check whether a measured bandwidth is normal (nccl-tests)."),
    "ras": ("ras:ras", "Find the rank that a hung job waits for."),
    "fleet": ("groups:fleet", "Collect, compare and remember the evidence of many nodes."),
    "explain": ("explain:explain", "List the checks, or explain one: what it finds, and the fix."),
    "place": ("groups:place", "Check, optimise and write rank placement."),
    "topo": ("groups:topo", "Check, predict, change and draw what NCCL sees of a node."),
    "model": ("groups:model", "Estimate the best bandwidth and step time that the links allow."),
    "emit": ("groups:emit", "Write topology files, nccl.conf and pictures."),
    "probe": ("probe:probe", "Write the collector as one file, for nodes without topodiag."),
    "env": ("env:env", "Print the debug settings for the next run."),
    "watch": ("watch:watch", "Record which links of this node come and go."),
    "demo": ("demo:demo", "Diagnose an incident that ships with topodiag."),
    "fixtures": ("fixtures:fixtures", "List the incidents, machines and jobs that ship with topodiag."),
    "completion": ("completion:completion", "Print the completion script of a shell."),
}
"""Every command, one line each: where it lives, and its line in the help."""
_HEADINGS = {"diagnose": "Commands", "place": "Planning", "emit": "Tools"}


class LazyGroup(click.Group):
    """A group whose commands are imported when they run. `places` are where each lives, and its line in the help;
    `headings` stand above the first command below each; `of_paths` is the command that runs where a path or an option
    stands instead of a command."""

    def __init__(
        self,
        *args: Any,
        places: Mapping[str, tuple[str, str]],
        headings: Mapping[str, str] | None = None,
        of_paths: str = "",
        **given: Any,
    ) -> None:
        # click keeps the option of the first context that asks, which may have no parent to inherit from
        given.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*args, **given)
        self.places, self.headings, self.of_paths = places, headings or {}, of_paths

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            self.without_command(ctx)
        known = {spelling for param in self.get_params(ctx) for spelling in param.opts}
        if self.of_paths and args and args[0].startswith("-") and args[0].partition("=")[0] not in known:
            args = ["--", *args]  # not an option of the group: of the command that takes paths
        return super().parse_args(ctx, args)

    def without_command(self, ctx: click.Context) -> None:
        """What a group without a command does."""
        from topodiag.cli.errors import NoCommandError  # noqa: PLC0415 - only on this error

        raise NoCommandError(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.places.get(cmd_name)
        return None if entry is None else _load(entry[0])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name in self.places:
            return super().resolve_command(ctx, args)
        if self.of_paths and _may_be_input(name):
            return None, _load(self.of_paths), args
        from topodiag.cli.errors import unknown_name  # noqa: PLC0415 - only on this error

        raise unknown_name("command", name, self.places, ctx, or_path=bool(self.of_paths))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands, and the paths that may stand instead of one."""
        offered = super().shell_complete(ctx, incomplete)
        if offered or not self.of_paths:
            return offered
        from topodiag.cli.params import EVIDENCE  # noqa: PLC0415 - only when the shell asks

        return EVIDENCE.shell_complete(ctx, self.get_params(ctx)[0], incomplete)

    def path_command(self) -> click.Command | None:
        """The command of paths, where it has no name of its own."""
        named = {place for place, _ in self.places.values()}
        return _load(self.of_paths) if self.of_paths and self.of_paths not in named else None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, then the options of the command of paths where it has no name, else those of the group."""
        self.format_commands(ctx, formatter)
        nameless = self.path_command()
        if nameless is None:
            click.Command.format_options(self, ctx, formatter)
        else:
            nameless.format_options(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        rows: dict[str, list[tuple[str, str]]] = {}
        heading = "Commands"
        for name, (_, line) in self.places.items():
            heading = self.headings.get(name, heading)
            rows.setdefault(heading, []).append((name, line))
        for title, listed in rows.items():
            formatter.write_heading(title)
            with formatter.indentation():
                formatter.write_dl(listed)


def _load(place: str) -> click.Command:
    module, _, name = place.partition(":")
    command = getattr(import_module(f"topodiag.cli.{module}"), name)
    assert isinstance(command, click.Command)  # noqa: S101 - the tables are ours
    return command


def _may_be_input(word: str) -> bool:
    """Whether a word that is no command can be a path or an option (`./plan` is a file that has a command's name)."""
    return word.startswith("-") or any(sign in word for sign in "./*?[:") or exists(word)


def is_gpu_node() -> bool:
    """Whether a GPU's driver is loaded here: NVIDIA's and AMD's make these once a GPU is there."""
    return exists("/dev/nvidiactl") or exists("/dev/kfd")


class _Program(LazyGroup):
    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, and the options in one line: the whole help fits 30 lines."""
        self.format_commands(ctx, formatter)
        names = ", ".join(", ".join(param.opts) for param in self.get_params(ctx))
        formatter.write_text(f"Options: {names}")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_text(self.epilog or "")

    def without_command(self, ctx: click.Context) -> None:
        """On a GPU node `topodiag` is `topodiag scan`; elsewhere it prints the help."""
        if not is_gpu_node():
            click.echo(ctx.get_help())
            ctx.exit()
        scan = _load("scan:scan")
        with scan.make_context("scan", [], parent=ctx) as below:
            scan.invoke(below)
        ctx.exit(below.obj.code)


@click.group(
    cls=_Program,
    places=_COMMANDS,
    headings=_HEADINGS,
    of_paths="diagnose:diagnose",
    subcommand_metavar="PATH... | COMMAND [ARGS]...",
    epilog="Exit codes: 0 clean; 1 slow, failed or hung; 2 wrong input; 130 interrupted.",
)
@click.version_option(__version__, message="topodiag %(version)s")
@click.option("--debug", is_flag=True, help="Show a traceback when something goes wrong inside.")
def cli(debug: bool) -> None:
    """Find why communication between GPUs is slower than the links allow.

    \b
      topodiag incident/  one verdict from any mix of logs, captures and tables
      topodiag scan       check this node
      topodiag demo       diagnose an incident that ships with topodiag
    """
    # The runner reads --debug from the arguments: it must know it when reading the arguments is what failed.


def main(argv: list[str] | None = None) -> NoReturn:
    """The entry point: runs a command and exits with its code."""
    from topodiag.cli.errors import run  # noqa: PLC0415 - keeps `import topodiag.cli` to its one job

    gc.set_threshold(OBJECTS)
    atexit.register(gc.freeze)  # Python ends with several searches for cycles, in memory that the system takes anyway
    raise SystemExit(run(cli, argv))
