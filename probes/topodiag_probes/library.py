"""A probe that asks a library, in a child process: a call into a driver can hang, and a thread cannot be killed.

The child (worker.py) writes one JSON value per line as it learns it, so a hang costs only what comes after it.
"""

import importlib.util
import json
import os
import sys
from typing import Any, Dict, Tuple

from topodiag_probes.interface import ITEM_LIMIT, Context, Outcome, Probe
from topodiag_probes.run import run

# The package's own place (a folder or the .pyz) is on the path for its import only: as a site-packages it would
# otherwise come before the standard library. Empty entries stand for the current folder and are dropped.
_START = (
    "import sys; p = sys.argv.pop(1); sys.path[:] = [p] + [e for e in sys.path if e];"
    " from topodiag_probes.worker import main; sys.path.remove(p); sys.exit(main(sys.argv[1:]))"
)


def importable(name: str) -> bool:
    """Whether a module is there, without importing it."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _home() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class LibraryProbe(Probe):
    """Runs `worker.py` for one library and puts its lines together to one JSON document."""

    spawns = True
    job = ""
    """The worker's job and its arguments, separated by blanks."""
    lists: Tuple[str, ...] = ()
    """Keys of the document whose values come one by one."""

    def assemble(self, data: bytes) -> Dict[str, Any]:
        """Lines `[key, value]`: `top` is merged into the document, other keys are lists that grow."""
        document: Dict[str, Any] = {}
        for line in data.split(b"\n"):
            try:
                key, value = json.loads(line.decode("utf-8", "replace"))
            except ValueError:
                continue  # the last line of a worker that was killed
            if key == "top":
                document.update(value)
            else:
                document.setdefault(key, []).append(value)
        if "error" not in document:
            for key in self.lists:
                document.setdefault(key, [])
        return document

    def run(self, ctx: Context, end: float, out: Outcome) -> None:
        if not ctx.live:
            out.status, out.why = "skipped", "libraries are asked on the live host only"
            return
        if not sys.executable:
            out.status, out.why = "error", "the interpreter's own path is not known"
            return
        argv = [sys.executable, "-B", "-c", _START, _home(), *self.job.split()]
        done = run(argv, ctx.command_environ(), end=end, limit=ITEM_LIMIT, groups=ctx.groups)
        out.rc, out.status, out.why, out.truncated = done.rc, done.status, done.why, done.truncated
        out.stderr = done.stderr.decode("utf-8", "replace")
        document = self.assemble(done.stdout)
        if not document and done.status != "ok":
            return
        out.data = dump(document)
        failed = document.get("error")
        if failed and done.status == "ok":
            absent = failed == "LibraryNotFound" or failed.endswith("not importable")
            out.status, out.why = "absent" if absent else "error", failed


def dump(document: Dict[str, Any]) -> bytes:
    """JSON with one value per line, ASCII only."""
    return json.dumps(document, indent=1, sort_keys=False).encode("ascii") + b"\n"


def fail(out: Outcome, status: str, why: str) -> None:
    """An outcome known without starting a child, in the shape of the child's answer."""
    out.status, out.why = status, why
    out.data = dump({"error": why})
