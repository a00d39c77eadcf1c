"""A pipe, a socket or a device in the place of a file is refused by every command, wherever it takes a file.

Opening a pipe waits for a writer, and a device has no end: what is no plain file is not opened.
"""

import inspect
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli.command_tree import ALL, OF_PATHS
from topodiag.cli import cli
from topodiag.cli.errors import run
from topodiag.cli.params import Evidence

WRITTEN = {
    "--output", "--save", "--svg", "--html", "--next", "--bin-dir", "--textfile",
    "--to", "--pass-list", "--fail-list",
}  # fmt: skip
"""Where something is written or looked for, not read."""
ELSEWHERE = {
    (("ras",), "--with"): "read after a job was asked over the network",
    (("logs",), "--flight"): "a dump that is none costs that dump alone: the test below",
}
NODE = "fixture:t4-box"
BESIDE = {
    ("emit", "nccl-topo"): (NODE,),
    ("topo", "check"): (NODE,),
    ("topo", "diff"): (NODE,),
    ("topo", "what-if"): ("--off", "gdr"),
    ("logs",): ("fixture:version-mismatch",),
    ("bench", "./"): ("fixture:all-reduce-healthy",),
    ("bench", "plan"): ("--nodelist", "a[1-2]"),
    ("place", "emit"): ("rankfile",),
    ("place", "audit"): ("--nodes", "2", "--tp", "8"),
    ("place", "solve"): ("--nodes", "2", "--tp", "8"),
    ("model", "collective"): ("all_reduce",),
    ("model", "step"): ("--tp", "8"),
    ("model", "link"): (),
    ("model", "hierarchy"): ("--nodes", "2"),
}
"""What else a command needs before it comes to its files."""
NAMES_NODES = {"--topology", "--bundles", "--machine"}
"""Options of `place` that say what `--nodes` would."""


def inputs() -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Every command with each of its arguments and options that name a file to read."""
    for words, command in ALL.items():
        for param in command.params:
            name = param.opts[0]
            if isinstance(param.type, click.Path) and name not in WRITTEN:
                if (words, name) in ELSEWHERE:
                    continue
                shown = name if isinstance(param, click.Option) else f"argument {name}"
                yield f"{' '.join(words)} {shown}", words, name if isinstance(param, click.Option) else ""


INPUTS = tuple(inputs())


@pytest.fixture(scope="module")
def irregular(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    folder = tmp_path_factory.mktemp("irregular")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket"))
        yield str(folder / "pipe"), str(folder / "socket"), "/dev/zero"


def test_every_command_that_reads_is_tried() -> None:
    assert len(INPUTS) > 50
    assert {words[0] for _, words, _ in INPUTS} >= {
        "diagnose",
        "scan",
        "topo",
        "emit",
        "logs",
        "place",
        "bench",
        "model",
    }


@pytest.mark.parametrize(("words", "option"), [row[1:] for row in INPUTS], ids=[row[0] for row in INPUTS])
def test_what_is_no_plain_file_is_refused_at_once(
    words: tuple[str, ...], option: str, irregular: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    for path in irregular:
        code = answered(arguments(words, option, path))
        out, err = capsys.readouterr()
        assert (code, out) == (2, ""), (path, out, err)
        assert "internal error" not in err
        assert err.startswith("topodiag: error: ")
        assert Path(path).name in err.splitlines()[0]


def test_a_pipe_among_dumps_costs_that_dump(irregular: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["logs", "fixture:version-mismatch", "--flight", irregular[0], "--format", "json"]
    assert answered(argv) == 1
    assert "it is no regular file" in capsys.readouterr().out


def arguments(words: tuple[str, ...], option: str, path: str) -> list[str]:
    beside = BESIDE.get(words, ())
    if words[0] == "place" and option in NAMES_NODES:
        beside = beside[2:]
    if option == "--groups":
        beside = beside[:2]
    if words in {("topo", "check"), ("emit", "nccl-topo"), ("logs",), ("bench", "./")} and not option:
        beside = ()
    return [*(word for word in words if word != OF_PATHS), *beside, *((option, path) if option else (path,))]


def answered(argv: list[str]) -> int:
    """The exit code; a command that waits fails the test."""

    def waited(*_: object) -> None:
        raise AssertionError(f"still waiting: {argv}")

    before = signal.signal(signal.SIGALRM, waited)
    signal.alarm(60)
    try:
        return run(cli, argv)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# --- Secrets come out of no command: what each one answers goes through one function, and so do lines of errors


TOKEN = "glpat-7hUq2Lx9VbN4mT1cRz8K"
SHOW_NO_TEXT = {
    ("bench", "plan"): "names of nodes and NICs",
    ("bench", "run"): "names of runs of a plan",
    ("completion",): "words of our own",
    ("demo",): "fixtures of our own",
    ("explain",): "the catalogue, and the line that was given",
    ("fleet", "manifest"): "words of our own",
    ("model", "collective"): "figures",
    ("model", "hierarchy"): "figures",
    ("model", "link"): "figures",
    ("model", "step"): "figures",
    ("watch",): "the collector's readings, which hold no text",
}
"""Commands that read something and show none of its text."""


def reads(command: click.Command) -> bool:
    return any(isinstance(param.type, Evidence) or isinstance(param, click.Argument) for param in command.params)


def test_every_command_that_shows_what_it_reads_hides_secrets() -> None:
    bare = set()
    for words, command in ALL.items():
        if isinstance(command, click.Group) or not reads(command):
            continue
        assert command.callback is not None
        source = inspect.getsourcefile(inspect.unwrap(command.callback))
        assert source is not None
        if "printable" not in Path(source).read_text(encoding="utf-8"):
            bare.add(words)
    assert bare == set(SHOW_NO_TEXT)


def test_a_secret_in_an_error_is_hidden(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(cli, ["diagnose", str(tmp_path / TOKEN)]) == 2
    message = capsys.readouterr().err
    assert TOKEN not in message
    assert "<hidden>" in message


def test_saved_facts_hold_no_secret(tmp_path: Path) -> None:
    log, saved = tmp_path / "job.log", tmp_path / "job.facts"
    lines = (
        "n0:41:41 [0] NCCL INFO NCCL version 2.28.3 compiled with CUDA 12.9",
        f"n0:41:41 [0] NCCL WARN Call to connect failed: {TOKEN}",
        f"n0:41:41 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to https://a:{TOKEN}@b/",
    )
    log.write_text("\n".join(lines) + "\n")
    run(cli, ["logs", str(log), "--save", str(saved), "--workers", "1"])
    from topodiag.evidence.nccl_log.tables.saved import load  # noqa: PLC0415 - only here

    kept = str([table.rows() for table in load(str(saved))[0].tables.values()])
    assert TOKEN not in kept
    assert "Call to connect failed: <hidden>" in kept
