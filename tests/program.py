"""Runs topodiag as a user does: a process of its own, with its own streams, environment and folder.

`run` forks from a process that has imported the program's libraries once, and read what tests read most (see
preloaded.py): a run takes hundredths of a second of CPU in place of half a second, and the suite has a thousand.
`start` and `ARGV` are for what needs the interpreter's own start: signals, pipes that close, limits of the process.
Tests of what a start loads use neither.
"""

import io
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Any

ARGV = [sys.executable, "-m", "topodiag"]
FOREIGN = frozenset({"COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "LC_ALL", "TERM", "PYTHONIOENCODING"})
"""Variables of whoever runs the suite that would change what the program prints."""
START_ONLY = ("LC_ALL", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONPATH", "PYTHONHASHSEED", "OPENBLAS_NUM_THREADS")
"""Variables that only the start of an interpreter obeys."""

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.preloaded"])
_NOBODY = ModuleType("__main__")
"""Stands for pytest where a job is handed over: its process would import pytest first, 0.15 s of CPU each time."""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's variables without what would change the output, in UTF-8, with `extra` on top."""
    clean = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    return clean | {"LANG": "C.UTF-8"} | dict(extra or {})


def run(
    *args: object,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    input: str | bytes = b"",  # noqa: A002 - as subprocess.run names it
    stdin: IO[Any] | None = None,
    timeout: float = 120,
    text: bool = True,
    entry: str = "topodiag.cli",
    memory: int = 0,
) -> subprocess.CompletedProcess[Any]:
    """`topodiag ARGS` to its end. `env` is added to `environment()`; its standard input is `input`, or what `stdin` (a
    file) still holds. Output is text (UTF-8) or, with `text=False`, bytes. `entry` is the module whose `main` runs:
    one of the tests may put something in the place of a part first. `memory` bounds what it takes, in bytes, beyond
    what it has at its start; 0: nothing does. Raises subprocess.TimeoutExpired."""
    argv = [str(arg) for arg in args]
    given = stdin.read() if stdin is not None else input
    given = given.encode() if isinstance(given, str) else given
    if any(name in (env or {}) for name in START_ONLY):
        done = subprocess.run(
            [*(ARGV if entry == "topodiag.cli" else [sys.executable, "-m", entry]), *argv],
            env=environment(env), cwd=cwd, input=given, capture_output=True, timeout=timeout, check=False,
            preexec_fn=(lambda: _bound(memory)) if memory else None,
        )  # fmt: skip
        return _completed(done.args, done.returncode, done.stdout, done.stderr, text)
    with tempfile.TemporaryDirectory(prefix="topodiag-run-") as folder:
        place = Path(folder)
        (place / "in").write_bytes(given)
        job = _context.Process(
            target=_child, args=(entry, argv, environment(env), str(cwd or Path.cwd()), folder, memory)
        )
        main, sys.modules["__main__"] = sys.modules["__main__"], _NOBODY
        try:
            job.start()
        finally:
            sys.modules["__main__"] = main
        job.join(timeout)
        if job.exitcode is None:
            job.kill()
            job.join()
            raise subprocess.TimeoutExpired(argv, timeout)
        code = job.exitcode
        job.close()
        out, err = (place / "out").read_bytes(), (place / "err").read_bytes()
    return _completed([*ARGV, *argv], code, out, err, text)


def start(*args: object, **kwargs: Any) -> subprocess.Popen[Any]:
    """`topodiag ARGS` under way, by an interpreter of its own that takes Ctrl-C, whatever this process does with it."""
    argv = [*ARGV, *map(str, args)]
    return subprocess.Popen(argv, preexec_fn=take_interrupts, **kwargs)  # noqa: PLW1509 - one thread starts it


def take_interrupts() -> None:
    """For `preexec_fn`: a suite in the background of a shell ignores SIGINT, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _completed(args: list[str], code: int, out: bytes, err: bytes, text: bool) -> subprocess.CompletedProcess[Any]:
    if not text:
        return subprocess.CompletedProcess(args, code, out, err)
    return subprocess.CompletedProcess(args, code, _lines(out), _lines(err))


def _lines(data: bytes) -> str:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8").read()


def _bound(memory: int) -> None:
    has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (has + memory, has + memory))


def _child(entry: str, argv: list[str], env: dict[str, str], cwd: str, folder: str, memory: int) -> None:  # noqa: PLR0917
    """In the forked process: become `topodiag ARGV`, then end as it ends."""
    if memory:
        _bound(memory)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for number, (name, flags) in enumerate((("in", os.O_RDONLY), ("out", _WRITE), ("err", _WRITE))):
        handle = os.open(f"{folder}/{name}", flags, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    # As the interpreter opens them at its start in a UTF-8 locale.
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = ["topodiag", *argv]

    import_module(entry).main()


_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
