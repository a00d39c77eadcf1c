"""Writes docs/topodiag.1, the man page, from the help of every command.

python tools/build_man.py            write it
python tools/build_man.py --check    exit 1 when the page is not what the help says
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from topodiag.cli import LazyGroup, cli
from topodiag.version import __version__

PAGE = Path(__file__).parent.parent / "docs" / "topodiag.1"
VERBATIM = "\b"
"""click's mark of a paragraph whose lines stay as they are."""


def man_page() -> str:
    """The whole page in the macros of man(7)."""
    ctx = click.Context(cli, info_name="topodiag", **cli.context_settings)
    lines = [
        f'.TH TOPODIAG 1 "" "topodiag {__version__}" "User Commands"',
        ".SH NAME",
        f"topodiag \\- {roff(cli.get_short_help_str(200))}",
        ".SH SYNOPSIS",
        f".B {roff(usage(ctx))}",
        ".SH DESCRIPTION",
        *paragraphs(cli.help or ""),
        ".SH OPTIONS",
        *options(ctx),
        ".SH COMMANDS",
    ]
    for below in commands(ctx):
        lines += [
            f".SS {roff(below.command_path)}",
            f".B {roff(usage(below))}",
            ".PP",
            *paragraphs(below.command.help or ""),
            *options(below),
        ]
    lines += [".SH EXIT STATUS", *paragraphs(cli.epilog or "")]
    return "\n".join(lines) + "\n"


def commands(ctx: click.Context) -> Iterator[click.Context]:
    """Every command and group below, each group before its commands."""
    group = ctx.command
    assert isinstance(group, click.Group)
    if isinstance(group, LazyGroup) and (nameless := group.path_command()) is not None:
        yield click.Context(nameless, parent=ctx, info_name="PATH...")
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        below = click.Context(command, parent=ctx, info_name=name)
        yield below
        if isinstance(command, click.Group):
            yield from commands(below)


def usage(ctx: click.Context) -> str:
    return " ".join([ctx.command_path, *ctx.command.collect_usage_pieces(ctx)])


def paragraphs(text: str) -> Iterator[str]:
    """Prose filled; lines of a paragraph that click leaves as it is stay lines."""
    for paragraph in cleandoc(text.replace("\f", "")).split("\n\n"):
        block = paragraph.strip("\n")
        if block.startswith(VERBATIM):
            yield ".nf"
            yield from (roff(line) for line in block.removeprefix(VERBATIM).strip("\n").split("\n"))
            yield ".fi"
        else:
            yield roff(" ".join(block.split()))
        yield ".PP"


def options(ctx: click.Context) -> Iterator[str]:
    for param in ctx.command.get_params(ctx):
        record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if record is not None:
            yield ".TP"
            yield f".B {roff(record[0])}"
            yield roff(record[1])


def roff(text: str) -> str:
    """Text that troff prints as it is: no escape, no request at the start of a line, hyphens that can be copied."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    wanted = man_page()
    if parser.parse_args().check:
        same = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == wanted
        print("docs/topodiag.1 is current" if same else "docs/topodiag.1 is stale: run python tools/build_man.py")
        return 0 if same else 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
