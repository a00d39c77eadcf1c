"""The options of all commands: options.toml has each word with one meaning, one form of value and one help text.

A command takes them by name with `options`; several that belong together reach it as one value (`value_options`). It
reads standard input once, writes over nothing that it reads, and its help groups options once there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TextIO

import click
from click.core import ParameterSource

from topodiag.cli.params import FILE, PLACE, TYPES, Evidence
from topodiag.lazy import dataclass
from topodiag.model.layout import NAMES
from topodiag.words.own_data import own_data
from topodiag.words.text import clean

if TYPE_CHECKING:
    from topodiag.report.interface import Style

Body = Callable[..., None]
Option = Callable[[Body], Body]
FORMATS = ("table", "json")
DEFAULT_SYSTEM = "dgx-h100"


def env_reader(prefix: str) -> Callable[[click.Context, click.Parameter, Sequence[str]], dict[str, str]]:
    """Reads NAME=VALUE; names begin with `prefix`."""

    def read(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
        env: dict[str, str] = {}
        for value in values:
            name, equals, text = value.partition("=")
            if not (equals and name.startswith(prefix) and name.isidentifier() and name.isascii()):
                raise click.BadParameter(f"{value!r}: write it like NCCL_P2P_LEVEL=PHB.", ctx, param)
            env[name] = text
        return env

    return read


def _systems(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """For the shell: the names of all systems that start so."""
    from topodiag.app.model import known_systems  # noqa: PLC0415 - only when the shell asks

    return [name for name in known_systems() if name.startswith(incomplete.lower())]


def _html(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value == "-":
        raise click.UsageError("--html writes a file: name it, as --html report.html.")
    return value


OTHER_PICTURES = (".png", ".pdf", ".jpg", ".jpeg", ".gif", ".webp", ".eps", ".ps")
SVG_ONLY = "A browser shows it; for a bitmap: rsvg-convert FILE.svg -o FILE.png"


def _svg(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and value.lower().endswith(OTHER_PICTURES):
        raise click.BadParameter(f"{value!r} does not end in .svg. {SVG_ONLY}", ctx, param)
    return value


_CODE: Mapping[str, Mapping[str, Any]] = {
    "env": {"callback": env_reader("NCCL_")},
    "html": {"callback": _html},
    "svg": {"callback": _svg},
    "system": {"shell_complete": _systems},
}
"""What no table can say of an option."""


def option(name: str, of: str = "", **more: Any) -> Option:
    """The option of this parameter: that of all commands, with what the command `of` has otherwise, and `more`."""
    shared, own = (own_data("cli/options").get(place, {}).get(name, {}) for place in ("shared", of))
    entry: dict[str, Any] = {**shared, **own, **_CODE.get(name, {}), **more}
    flags = entry.pop("flags", [f"--{name.replace('_', '-')}"])
    if (choices := entry.pop("choices", None)) is not None:
        entry["type"] = click.Choice(choices, case_sensitive=entry.pop("case_sensitive", True))
    elif isinstance(entry.get("type"), str):
        word, *bounds = entry["type"].split()
        entry["type"] = TYPES[word](*map(_bound, bounds)) if bounds else TYPES[word]
    return click.option(*flags, name, **entry)


def _bound(word: str) -> int | float | str:
    return word if word.isalpha() else float(word) if "." in word else int(word)


def options(*listed: str | Option, of: str = "") -> Option:
    """Several options as one decorator, in the order of the help: by name, of the command `of`, or ready made."""

    def add(command: Body) -> Body:
        for one in reversed(listed):
            command = (option(one, of) if isinstance(one, str) else one)(command)
        return command

    return add


def value_options(argument: str, kind: Callable[..., Any], added: Option, names: Iterable[str] = ()) -> Option:
    """These options as one argument of the command: what `kind` makes of those of these `names`; without names a value
    of this kind, whose fields are called like them."""

    def add(command: Body) -> Body:
        @added
        @wraps(command)
        def wrapped(*args: Any, **given: Any) -> None:
            own = tuple(names) or [field.name for field in fields(kind)]  # type: ignore[arg-type]
            value = kind(**{name: given.pop(name) for name in own if name in given})
            command(*args, **{argument: value}, **given)

        return wrapped

    return add


def on_command_line(name: str) -> bool:
    """Whether the command line names this parameter, be it with the value of its default."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


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


page_options = value_options(
    "printing", Printing, options("output", "color", "ascii_only", "width", "quiet", "verbose")
)
"""For commands that print a page: `printing`, which takes in the other options of printing that stand above."""


def format_option(formats: Sequence[str] = FORMATS) -> Option:
    """One of these; the first is the default."""
    return click.option(
        "--format", "format_", type=click.Choice(tuple(formats)), default=formats[0], show_default=True,
        help="Output format.",
    )  # fmt: skip


def answer_options() -> Option:
    """For commands whose answer is a page or JSON, also as HTML: `printing`."""
    return options(format_option(), "html", "redact", page_options)


def report_options(formats: Sequence[str] = FORMATS) -> Option:
    """The same for commands that print findings: with `fail_on` in it."""
    return options(format_option(formats), "html", "redact", "fail_on", page_options)


plot_options = options("svg", "explain", format_option(), page_options)
"""For commands of the model: a page whose terms can be shown, and its plot as a file."""


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
    """`nccl`; with `otherwise` an empty one, for which the command does what `otherwise` says."""
    from topodiag.model.nccl_versions import DEFAULT_VERSION, spell_range  # noqa: PLC0415 - for few commands

    more = f" (default: {otherwise})" if otherwise else ""
    return click.option(
        "--nccl", default="" if otherwise else DEFAULT_VERSION, show_default=not otherwise,
        metavar="VERSION", callback=_version, help=f"NCCL version, {spell_range()}{more}.",
    )  # fmt: skip


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
    """A command that never writes over what it reads. `sections` are its headings, above those that all share."""

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
    """The paths that a command reads: evidence, and its arguments."""
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
