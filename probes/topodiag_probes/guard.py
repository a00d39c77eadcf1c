"""Ends what the collector started when the collector ends, however that happens: SIGKILL and SIGHUP run no code of it.

A second process waits at the end of a pipe. The pipe ends with the collector; the process then kills the groups that
are still alive, and every process that carries the collector's mark in its environment: what called `setsid` has left
its group and keeps its environment. A program that clears its environment and leaves its group is not found.
"""

import os
import signal
import subprocess
import sys
import time
from typing import Dict, List, Optional, Set

MARK = "TOPODIAG_PROBE_RUN"
"""Variable by which the processes of one capture know each other."""
ROUNDS = 40
PAUSE_S = 0.025
"""Between looks for what is left: a process that is just being killed, or that was just started by another."""
END_S = 2.0
"""A guard that has not ended by then is left alone; it ends by itself."""

_START = (
    "import sys; p = sys.argv.pop(1); sys.path[:] = [p] + [e for e in sys.path if e];"
    " from topodiag_probes.guard import main; sys.exit(main(sys.argv[1]))"
)


class Guard:
    """The collector's end of the pipe."""

    def __init__(self) -> None:
        self.mark = os.urandom(12).hex()
        self._process: "Optional[subprocess.Popen[bytes]]" = None
        self._asked = False

    def environ(self, env: Dict[str, str]) -> Dict[str, str]:
        """An environment with the mark."""
        return dict(env, **{MARK: self.mark})

    def start(self) -> None:
        """Start the guard at the first call. Without one, `end` looks for what is left."""
        if self._asked:
            return
        self._asked = True
        if not sys.executable:
            return
        home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-c", _START, home, self.mark],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            self._process = None

    def watch(self, pid: int) -> None:
        """A group began."""
        self._tell(b"+%d\n" % pid)

    def forget(self, pid: int) -> None:
        """A group's leader was reaped: its number may go to somebody else."""
        self._tell(b"-%d\n" % pid)

    def _tell(self, line: bytes) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            os.write(self._process.stdin.fileno(), line)
        except (OSError, ValueError):
            pass  # the guard was killed; `end` looks for what is left

    def end(self) -> None:
        """End what is left, and the guard."""
        if not self._asked:
            return
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            end_marked(self.mark)
            return
        try:
            process.stdin.close()
        except OSError:
            pass
        try:
            if process.wait(END_S) != 0:
                end_marked(self.mark)
        except subprocess.TimeoutExpired:
            pass


def end_marked(mark: str) -> None:
    """Kill every process with the mark, until none is left."""
    wanted = ("%s=%s" % (MARK, mark)).encode("ascii")
    for _ in range(ROUNDS):
        found = _marked(wanted)
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # gone, or of a user that it has become
        time.sleep(PAUSE_S)


def _marked(wanted: bytes) -> List[int]:
    own = os.getpid()
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdigit() or int(name) == own:
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as handle:
                marked = wanted in handle.read(1024 * 1024).split(b"\0")
        except OSError:
            continue
        if marked:
            found.append(int(name))
    return found


def main(mark: str) -> int:
    """The guard: wait for the end of the pipe on standard input, then end what is left."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    alive: Set[int] = set()
    rest = b""
    while True:
        data = os.read(0, 4096)
        if not data:
            break
        lines = (rest + data).split(b"\n")
        rest = lines.pop()
        for line in lines:
            (alive.add if line[:1] == b"+" else alive.discard)(int(line[1:]))
    for pid in alive:
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            pass
    end_marked(mark)
    return 0
