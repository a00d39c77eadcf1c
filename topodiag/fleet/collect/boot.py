"""The command that a node runs, and what is written to its standard input: nothing is installed there, no disk is used.

The command holds no quote, backslash or newline inside its quotes, because the user's login shell reads it first, be it
bash, csh or fish. Python's code comes as the first line of standard input, and the collector's archive behind it. The
archive stays in memory (memfd, Python 3.8), else in the first folder that takes it, for as long as the capture lasts.
"""

from __future__ import annotations

import json

from topodiag.words.own_data import own_text

_PYTHONS = "python3 /usr/bin/python3 /usr/libexec/platform-python /usr/local/bin/python3"

COMMAND = (
    f"/bin/sh -c 'for p in {_PYTHONS}; do command -v $p >/dev/null 2>&1 &&"
    ' exec $p -c "import sys;exec(sys.stdin.buffer.readline())"; done;'
    " echo topodiag: no python3 on this node >&2; exit 127'"
)
"""For a login shell. For a launcher without a shell: `argv()`."""
NO_PYTHON = "topodiag: no python3 on this node"


def argv() -> tuple[str, ...]:
    """The command for a launcher that starts programs without a shell."""
    return ("/bin/sh", "-c", COMMAND.partition("'")[2].rpartition("'")[0])


def standard_input(collector: bytes, mark: str, arguments: tuple[str, ...], *, tied: bool = True) -> bytes:
    """What the command reads. `tied`: the collector ends when this input does, because the reader is gone then. The
    node knows its name by its launcher (SLURMD_NODENAME, NODE_NAME)."""
    given = [*arguments, *(("--tied",) if tied else ()), "--quiet"]
    # JSON of texts and of a list of texts is Python too, as long as it is ASCII
    code = own_text("fleet/collect/start.txt").format(
        size=len(collector), mark=json.dumps(mark), arguments=json.dumps(given)
    )
    return f"exec({json.dumps(code)})\n".encode("ascii") + collector
