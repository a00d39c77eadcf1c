"""The options that commands share: each word has one meaning, one form of value and one help text in all commands.

An option of one command alone stands in that command's module. A word that is here means nothing else anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any, TextIO

import click
from click.core import ParameterSource

from topodiag.cli.params import EVIDENCE, PLACE, Count, LinkParam, Pair, Ratio, Size, Sizes
from topodiag.lazy import dataclass

if TYPE_CHECKING:
    from topodiag.report.interface import Style

Command = Callable[..., None]
Option = Callable[[Command], Command]

FAIL_ON = ("info", "warning", "error", "never")
FORMATS = ("table", "json")
MAX_NODES = 100_000
DEFAULT_SYSTEM = "dgx-h100"


def format_option(formats: Sequence[str] = FORMATS) -> Option:
    """One of these; the first is the default."""
    return click.option(
        "--format", "format_", type=click.Choice(tuple(formats)), default=formats[0], show_default=True,
        help="Output format.",
    )  # fmt: skip


def fail_on_option(default: str = "error") -> Option:
    return click.option(
        "--fail-on", type=click.Choice(FAIL_ON), default=default, show_default=True,
        help="Exit 1 from this severity on; SLOW, FAILED and HUNG exit 1 as well; `never` always exits 0.",
    )  # fmt: skip


output_option = click.option(
    "--output", "-o", metavar="FILE", type=PLACE, help="Write to this file instead of standard output."
)
color_option = click.option(
    "--color", type=click.Choice(("auto", "always", "never")), default="auto", show_default=True, help="Use colour."
)
ascii_option = click.option("--ascii", "ascii_only", is_flag=True, help="Print only ASCII characters.")
width_option = click.option(
    "--width", type=Count(40, 400), metavar="N", help="Columns of the output (default: the terminal's, else 80)."
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print only the verdict or result, and no progress.")
verbose_option = click.option("--verbose", "-v", count=True, help="Print all details; quoted lines are cut at --width.")
explain_option = click.option("--explain", is_flag=True, help="Show each term of the derivation.")


@dataclass(frozen=True, slots=True)
class Printing:
    """Where and how a command prints, as its options say, and from which severity on it exits with 1."""

    output: str | None = None
    color: str = "auto"
    ascii_only: bool = False
    width: int | None = None
    quiet: bool = False
    verbose: int = 0
    format_: str = "table"
    html: str | None = None
    redact: bool = False
    fail_on: str = "error"

    def style(self, stream: TextIO) -> Style:
        """For a stream; the exit code is the one that the command has reached so far."""
        from topodiag.cli.terminal import style_for  # noqa: PLC0415 - not for the help

        return style_for(
            stream,
            color=self.color,
            ascii_only=self.ascii_only,
            width=self.width,
            verbose=self.verbose,
            quiet=self.quiet,
            exit_code=getattr(click.get_current_context().obj, "code", 0),
        )


def options(*groups: tuple[Option, ...]) -> Option:
    """Several options as one decorator, in their order in the help."""

    def add(command: Command) -> Command:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return add


def was_given(name: str) -> bool:
    """Whether the command line names this parameter, be it with the value of its default."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


_PAGE = (output_option, color_option, ascii_option, width_option, quiet_option, verbose_option)


def page_options(command: Command) -> Command:
    """For commands that print a page: `printing`, which takes in the other options of printing that stand above."""

    @options(_PAGE)
    @wraps(command)
    def wrapped(*args: Any, **given: Any) -> None:
        printing = Printing(**{field.name: given.pop(field.name) for field in fields(Printing) if field.name in given})
        command(*args, printing=printing, **given)

    return wrapped


# What a job is: its nodes, its NCCL, its environment.


def nodes_option(default: int | None = None, when: str = "") -> Option:
    """`nodes`: how many, never which (`--nodelist`)."""
    more = f" {when}" if when else ""
    return click.option(
        "--nodes", type=Count(1, MAX_NODES), default=default, show_default=default is not None, metavar="N",
        help=f"Number of nodes{more}.",
    )  # fmt: skip


def _version(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not value:
        return ""
    from topodiag.model.nccl_versions import UnknownVersionError, minor_of  # noqa: PLC0415 - not for the help

    try:
        minor_of(value)
    except UnknownVersionError as unknown:
        raise click.BadParameter(f"{unknown}.", ctx, param) from None
    return value


def nccl_option(otherwise: str = "") -> Option:
    """`version`; with `otherwise` an empty one, for which the command does what `otherwise` says."""
    from topodiag.model.nccl_versions import DEFAULT_VERSION, spell_range  # noqa: PLC0415 - for few commands

    more = f" (default: {otherwise})" if otherwise else ""
    return click.option(
        "--nccl", "version", default="" if otherwise else DEFAULT_VERSION, show_default=not otherwise,
        metavar="VERSION", callback=_version, help=f"NCCL version, {spell_range()}{more}.",
    )  # fmt: skip


def env_option(prefix: str = "NCCL_") -> Option:
    """`env` as a dictionary; names begin with `prefix`."""

    def read(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
        env: dict[str, str] = {}
        for value in values:
            name, equals, text = value.partition("=")
            if not (equals and name.startswith(prefix) and name.isidentifier() and name.isascii()):
                raise click.BadParameter(f"{value!r}: write it like NCCL_P2P_LEVEL=PHB.", ctx, param)
            env[name] = text
        return env

    return click.option(
        "--env", multiple=True, metavar="NAME=VALUE", callback=read,
        help="A variable of the job's environment; may be given several times.",
    )  # fmt: skip


# What a machine is: a system of the catalogue, or evidence of it.


def _systems(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """For the shell: the names of all systems that start so."""
    from topodiag.app.model import known_systems  # noqa: PLC0415 - only when the shell asks

    return [name for name in known_systems() if name.startswith(incomplete.lower())]


def system_option(otherwise: str) -> Option:
    """`system`, a name of the catalogue, None where it is not given."""
    return click.option(
        "--system", metavar="NAME", shell_complete=_systems,
        help=f"The machine by its name: dgx-h100, p5, gb200-nvl72, ... (default: {otherwise}).",
    )  # fmt: skip


machine_option = click.option(
    "--machine", "evidence", metavar="PATH", type=EVIDENCE,
    help="Evidence of the machine: a bundle, a topology file, fixture:NAME.",
)  # fmt: skip
gpu_option = click.option(
    "--gpu", metavar="NAME", default="", help="Model of the GPU, for a system that is sold with several."
)
nics_option = click.option(
    "--nics", type=Pair("NICs", "8x400", whole=False), metavar="COUNTxGBPS",
    help="NICs of a node for the job: 8x400 (default: those found, else the datasheet's).",
)  # fmt: skip
leaf_option = click.option(
    "--leaf", type=Count(1, MAX_NODES), metavar="N", help="Nodes under one leaf switch (default: all)."
)
oversubscription_option = click.option(
    "--oversubscription", type=Ratio(1, 1000), metavar="RATIO",
    help="Bandwidth into a leaf switch over bandwidth up to the spine (default: 1).",
)  # fmt: skip
gpus_per_node_option = click.option(
    "--gpus-per-node", type=Count(1, 1024), default=8, show_default=True, metavar="N", help="GPUs of a node."
)


def nodelist_option(what: str) -> Option:
    """`nodelist`: which nodes, never how many (`--nodes`)."""
    text = f"{what}: gpu[001-064]; may be given several times."
    return click.option("--nodelist", multiple=True, metavar="NODES", help=text)


def topology_option(what: str) -> Option:
    """`topology`: a file that says which nodes hang together, never a node's own (`--machine`)."""
    return click.option("--topology", type=EVIDENCE, metavar="FILE", default="", help=f"The cluster: {what}.")


inside_option = click.option(
    "--inside",
    type=LinkParam("inside"),
    metavar="US,GBS",
    help="Link inside a node: latency and bandwidth. Replaces --system.",
)
outside_option = click.option(
    "--outside", type=LinkParam("network"), metavar="US,GBS", help="Link between nodes for one rank, with --inside."
)


# What is sent.


def size_option(default: str) -> Option:
    return click.option(
        "--size", type=Size(), default=default, show_default=True, metavar="SIZE",
        help="Bytes of the message or buffer: 4K, 256MiB, 16MB.",
    )  # fmt: skip


def sizes_option(default: str) -> Option:
    return click.option(
        "--sizes",
        type=Sizes(),
        default=default,
        show_default=True,
        metavar="FROM:TO",
        help="Sizes to show, from the smallest to the largest.",
    )


def algo_option(names: Sequence[str], help_: str, *, default: str | None = None) -> Option:
    """`algo`: one of these, or with no default any number of them."""
    return click.option(
        "--algo", multiple=default is None, type=click.Choice(tuple(names), case_sensitive=False), default=default,
        show_default=default is not None, help=help_,
    )  # fmt: skip


def folder_option(what: str) -> Option:
    """`folder`, empty where it is not given: what a command or a run writes goes there."""
    return click.option("--to", "folder", type=PLACE, metavar="DIR", default="", help=f"Folder {what}.")


log_option = click.option(
    "--log",
    "logs",
    type=EVIDENCE,
    multiple=True,
    metavar="PATH",
    help="NCCL logs of a job: files, folders; may be given several times.",
)


def _svg(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The name of a picture that can be written. Raises InputError before any work is done."""
    if value is None:
        return None
    if value.lower().endswith(OTHER_PICTURES):
        raise click.BadParameter(f"{value!r} does not end in .svg. {SVG_ONLY}", ctx, param)
    from topodiag.writing import check_writable  # noqa: PLC0415 - not for the help

    check_writable(value)
    return value


html_option = click.option("--html", "html", metavar="FILE", type=PLACE, help="Also write the report as one HTML file.")
redact_option = click.option(
    "--redact", is_flag=True, help="Replace names, addresses and serials in the report by tokens."
)
OTHER_PICTURES = (".png", ".pdf", ".jpg", ".jpeg", ".gif", ".webp", ".eps", ".ps")
SVG_ONLY = "A browser shows it; for a bitmap: rsvg-convert FILE.svg -o FILE.png"
svg_option = click.option(
    "--svg", "svg", metavar="FILE.svg", type=PLACE, callback=_svg, help="Also write the picture or plot to this file."
)


def answer_options(formats: Sequence[str] = FORMATS) -> Option:
    """For commands whose answer is a page in one of these formats, also as HTML: `printing`."""
    return options((format_option(formats), html_option, redact_option, page_options))


def report_options(formats: Sequence[str] = FORMATS) -> Option:
    """The same for commands that print findings: with `fail_on` in it."""
    return options((format_option(formats), html_option, redact_option, fail_on_option(), page_options))


plot_options = options((svg_option, explain_option, format_option(), page_options))
"""For commands of the model: a page whose terms can be shown, and its plot as a file."""
