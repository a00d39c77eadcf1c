"""What a plan may hand to its launcher: options of the launcher, and never a program of the plan's own.

srun and mpirun take the first word that is no option, and no value of one, for the program to run. So a word that is no
option is allowed only after an option that is known to take it, and options that name programs or files of code are
refused. (Slurm 24.05, srun(1); Open MPI 5 and 4.1, mpirun(1).)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from topodiag.lazy import regex

_OPTION = regex(r"--?[A-Za-z][A-Za-z0-9_-]*(=.*)?", re.DOTALL)
_TAKES = {
    "srun": {"-p": 1, "-A": 1, "-q": 1, "-w": 1, "-C": 1, "-t": 1},
    "mpirun": {
        "--mca": 2, "-mca": 2, "--prtemca": 2, "--pmixmca": 2, "-x": 1, "--map-by": 1, "--bind-to": 1, "--rank-by": 1,
        "-map-by": 1, "-bind-to": 1, "-rank-by": 1,
    },
}  # fmt: skip
"""Options that take their values as words of their own, and how many."""
_RUNS = regex(
    r"--?(task-)?(pro|epi)log|--?multi-prog|--?bcast|--?app(file)?|--?launch-agent|--?(ompi-)?prefix|--?path|--?tune|--?am"
    r"|--?debug(ger)?|--?tv|--?xterm|--?preload-(binary|files)|--?personality|--?export-file|--?wrap"
)
"""Options that start programs, or read files that name some."""
_AGENT = regex(r"agent|_path$|component|_params$|preload|rsh", re.IGNORECASE)
"""Words in MCA parameters that name programs or libraries."""
_LOADS = regex(r"LD_.*|PATH|BASH_ENV|ENV|PYTHON.*|PERL.*|IFS|.*_PROLOG|.*_EPILOG|(OMPI|PRTE|PMIX)_(MCA|PREFIX).*")
"""Variables that load code into whatever is started."""


def refuse_arguments(launcher: str, words: Sequence[str]) -> str:
    """Why these arguments would start something else than a benchmark, "" where they would not."""
    takes = _TAKES.get(launcher, {})
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        name, joined, value = word.partition("=")
        if not _OPTION.fullmatch(word):
            return f"{word[:40]!r} is no option of {launcher}, and would be started as a program"
        if _RUNS.fullmatch(name):
            return f"{name} names a program or a file of options"
        if joined and "mca" in name and _AGENT.search(value):
            return f"{word[:40]!r} names a program"
        values = [rest.pop() for _ in range(min(takes.get(name, 0), len(rest))) if not joined]
        if "mca" in name and values and _AGENT.search(values[0]):
            return f"{name} {values[0][:40]} names a program"
    return ""


def refuse_environment(env: Mapping[str, str]) -> str:
    """Why this environment would load code, "" where it would not."""
    loads = next((name for name in env if _LOADS.fullmatch(name)), None)
    return f"the variable {loads} loads code into what is started" if loads is not None else ""
