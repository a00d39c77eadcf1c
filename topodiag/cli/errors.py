"""The one place that turns errors into exit codes. docs/exit-codes.md is its page, and tests hold the two together.

0 clean, 1 findings at or above `--fail-on`, 2 usage or unreadable input (and errors of our own), 130 Ctrl-C. With
`--format nagios` every failure is 3, because a monitoring system reads 2 as CRITICAL.
"""

from __future__ import annotations

import errno
import os
import sys
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise

import click

from topodiag.lazy import dataclass
from topodiag.model.errors import TopodiagError

CLEAN, FOUND, FAILED, INTERRUPTED = 0, 1, 2, 130
NAGIOS_UNKNOWN = 3


@dataclass(slots=True)
class Outcome:
    """What a command has reached so far; it stands when the reader of its output goes away."""

    code: int = CLEAN


class NoCommandError(Exception):
    """A group was called without a command: its help is the answer."""

    def __init__(self, ctx: click.Context) -> None:
        super().__init__(ctx.command_path)
        self.help = ctx.get_help()


def run(command: click.Command, argv: list[str] | None = None) -> int:
    """Run a command line and return its exit code. Never raises, except what click's completion exits with."""
    args = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:
        # `>&-`: nobody reads, as with a closed pipe; and no file opened later may become standard output by chance.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the rest of the process
    if sys.stderr is None:  # `2>&-`: the same
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the rest of the process
    if "_TOPODIAG_COMPLETE" in os.environ:
        import topodiag.cli.completion  # noqa: F401, PLC0415 - bash, as it needs it

        command.main(args, prog_name="topodiag")
    reached = Outcome()
    nagios = _wants_nagios(args)
    try:
        try:
            with command.make_context("topodiag", list(args), obj=reached) as ctx:
                command.invoke(ctx)
            code = reached.code
        except click.exceptions.Exit as end:
            code = end.exit_code
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        return reached.code
    except (KeyboardInterrupt, click.Abort):
        return _say(INTERRUPTED, "interrupted", nagios=nagios)
    except NoCommandError as lacking:
        _complain(lacking.help)
        return FAILED
    except TopodiagError as error:
        return _say(FAILED, error.message, error.hint, nagios=nagios)
    except click.ClickException as error:
        return _usage(error, nagios)
    except OSError as error:
        return _os_error(error, reached, args, nagios)
    except Exception as error:  # noqa: BLE001 - the last guard: users never see a traceback unasked
        return _internal(error, args, nagios)
    return code


def unknown_name(
    what: str,
    name: str,
    names: Iterable[str],
    ctx: click.Context | None = None,
    *,
    hint: str = "",
    or_path: bool = False,
) -> click.UsageError:
    """A usage error that suggests the nearest known names, else says `hint`. `or_path`: a path would do as well."""
    from difflib import get_close_matches  # noqa: PLC0415 - only on this error

    known = {name.lower(): name for name in names}
    near = [known[match] for match in get_close_matches(name.lower(), known, n=3, cutoff=0.5)]
    hint = f" Did you mean {' or '.join(near)}?" if near else f" {hint}" if hint else ""
    if or_path:
        from topodiag.app.fixtures import shipped  # noqa: PLC0415 - only on this error

        if any(name == fixture.name for fixture in shipped()):
            hint = f" It ships with topodiag: fixture:{name}"
    either = " or file" if or_path else ""
    return click.UsageError(f"No such {what}{either}: {_line(name)!r}.{hint}", ctx)


def _wants_nagios(args: list[str]) -> bool:
    """Read off the raw arguments: this must be known even when they cannot be parsed."""
    return "--format=nagios" in args or ("--format", "nagios") in pairwise(args)


def _line(text: object) -> str:
    """One line without control characters; the errors of hostile input must not paint the terminal."""
    safe = "".join(" " if c in "\t\r\n" else "?" if unicodedata.category(c) in _UNSAFE else c for c in str(text))
    return safe if len(safe) <= 1000 else safe[:1000] + "..."


_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def _say(code: int, message: str, hint: str = "", *, nagios: bool) -> int:
    """Report a failure; the code that is to be exited with."""
    from topodiag_probes.secrets import without_secrets  # noqa: PLC0415 - only on this error

    message, hint = without_secrets(message), without_secrets(hint)
    if code == INTERRUPTED:
        _complain("topodiag: interrupted")
    else:
        print_note(f"topodiag: error: {_line(message)}")
        if hint:
            print_note(f"  hint: {_line(hint)}")
    if not nagios:
        return code
    with suppress(OSError):
        words = _line(message).encode("ascii", "backslashreplace").decode().replace("|", "/")
        sys.stdout.write(f"TOPODIAG UNKNOWN - {words}\n")
        sys.stdout.flush()
    return NAGIOS_UNKNOWN


def _complain(line: str) -> None:
    with suppress(OSError):
        click.echo(line, err=True)


def print_note(line: str) -> None:
    """One line of words on standard error; a terminal shows it broken between words, a file has it whole."""
    if sys.stderr.isatty():
        import shutil  # noqa: PLC0415 - 5 ms
        import textwrap  # noqa: PLC0415 - 3 ms

        width, below = max(shutil.get_terminal_size().columns, 20), " " * 6
        line = textwrap.fill(line, width, subsequent_indent=below, break_long_words=False, break_on_hyphens=False)
    _complain(line)


def _usage(error: click.ClickException, nagios: bool) -> int:
    message = " ".join(error.format_message().split())
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    where = ctx.command_path.strip() if ctx else "topodiag"
    group = ctx.parent.command if ctx and ctx.parent else None
    other = ""
    if ctx and isinstance(group, click.Group):
        if ctx.info_name is None and ctx.command.name in group.list_commands(ctx):  # `topodiag PATH`
            where += f" {ctx.command.name}"
        elif isinstance(error, click.NoSuchOption) and ctx.parent and ctx.parent.parent:
            named = ((name, group.get_command(ctx, name)) for name in group.list_commands(ctx))
            owners = [
                name for name, one in named if one and any(error.option_name in param.opts for param in one.params)
            ]
            whose = f"{ctx.parent.command_path} {' and '.join(owners)}"
            other = f"{error.option_name} belongs to {whose}; " if owners else ""
    return _say(FAILED, message, f"{other}see {where} --help", nagios=nagios)


def _os_error(error: OSError, reached: Outcome, args: list[str], nagios: bool) -> int:
    if error.errno == errno.EPIPE:
        _forget_stdout()
        return reached.code
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}:
        return _say(FAILED, f"the output cannot be written: {error.strerror}", nagios=nagios)
    return _internal(error, args, nagios)


def _internal(error: Exception, args: list[str], nagios: bool) -> int:
    if "--debug" in args:
        import traceback  # noqa: PLC0415 - only on this error

        with suppress(OSError):
            traceback.print_exception(error)
    hint = "" if "--debug" in args else "; run with --debug for the traceback, and please report it"
    return _say(FAILED, f"internal error: {type(error).__name__}: {error}{hint}", nagios=nagios)


def _forget_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's last flush has nobody to complain to."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
