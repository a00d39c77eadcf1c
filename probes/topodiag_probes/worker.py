"""The child process in which libraries are asked; see library.py for what it writes."""

import ctypes
import json
import os
import signal
import sys
from typing import Any, Callable, Dict, List

from topodiag_probes.items import nvml, processes
from topodiag_probes.watch import gpus

PR_SET_PDEATHSIG = 1
"""linux/prctl.h"""
Emit = Callable[[str, Any], None]

JOBS: Dict[str, Callable[[Emit, List[str]], None]] = {
    "nvml": nvml.read,
    "processes": processes.read,
    "watch": gpus.read,
}


def main(arguments: List[str]) -> int:
    """Run one job, and end with the collector where the kernel sees to that (prctl(2), PR_SET_PDEATHSIG).

    Standard output is for its lines alone: what a library prints goes to standard error.
    """
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    except (OSError, AttributeError):
        pass  # not Linux: the guard ends it
    own = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(own, "wb") as out:

        def emit(key: str, value: Any) -> None:
            out.write(json.dumps([key, value]).encode("ascii") + b"\n")
            out.flush()

        JOBS[arguments[0]](emit, arguments[1:])
    sys.stdout.flush()
    return 0
