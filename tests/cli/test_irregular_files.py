"""A pipe, a socket or a device in the place of a file is refused by every command, wherever it takes a file.

Opening a pipe waits for a writer, and a device has no end: what is no plain file is not opened.
"""

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
