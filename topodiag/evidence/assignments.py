r"""Variables that a command, a shell's trace or a job's description sets, as one line writes them.

    mpirun -np 16 -x NCCL_PROTO=LL ./all_reduce_perf       Open MPI
    mpiexec -genv NCCL_IB_DISABLE 1 ./train                 MPICH, Intel MPI
    + export NCCL_P2P_DISABLE=1                             a script, and its trace
    srun --export=ALL,NCCL_NET=Socket,NCCL_DEBUG=INFO       Slurm
    docker run -e NCCL_IB_HCA=mlx5_0,mlx5_1 image           a container
    unset NCCL_PROTO
    setenv NCCL_ALGO Ring                                   csh
    os.environ["NCCL_SHM_DISABLE"] = "1"                    Python
      NCCL_SOCKET_IFNAME: eth0                              YAML
    - name: NCCL_NET                                        Kubernetes, in two lines
      value: "Socket"
    {'NCCL_DEBUG': 'INFO', 'NCCL_NET': 'Socket'}            a dictionary of Python, JSON

A line that prints what is set (`echo $NCCL_NET`) and a comment set nothing. In the output of a job a sentence may also
advise a setting: there only commands, traces of commands and dumps of the environment count (`stated_in`).
"""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.evidence.signatures.wrappers import unwrap
from topodiag.words.own_data import own_data, patterns

COMMANDED = "command"
"""How a setting was given that no line of NCCL shows in force."""
_LIKE = patterns("evidence/lines", "assignments")
_COMMENT, _OF_SCHEDULERS = ("#", "//"), ("#SBATCH", "#PBS", "#BSUB", "#$")


def assigned(line: str, above: str = "") -> Iterator[tuple[str, str]]:
    """Names and values that a line sets, "" for one that it unsets. `above` is the line before it, which may hold the
    name alone."""
    if "CCL_" not in line and "UCX_" not in line and "FI_" not in line:
        named = _LIKE["named"].match(above) if "value" in line and "_" in above else None
        its = _LIKE["its_value"].match(line) if named is not None else None
        if named is not None and its is not None:
            yield named[1], its[1]
        return
    bare = line.lstrip(" \t+")
    if bare.startswith(_COMMENT) and not bare.startswith(_OF_SCHEDULERS):
        return
    for match in _LIKE["unset"].finditer(line):
        yield from ((name, "") for name in (match[1] or match[2]).split())
    items = [*_LIKE["assigned"].finditer(line), *_LIKE["spaced"].finditer(line), *_LIKE["item"].finditer(line)]
    for match in items:
        yield match[1], next((value for value in match.groups()[1:] if value), "")
    if not items and (entry := _LIKE["yaml"].match(line)) is not None:
        yield entry[1], entry[2].strip()


_ADVISING = frozenset(own_data("evidence/words")["advising"])
"""The first word of a line that prints or advises a setting."""


def commanded_in(line: str, above: str = "") -> Iterator[tuple[str, str]]:
    """`assigned` for the output of a benchmark, whose commands have many forms: all lines but those that print or
    advise a setting."""
    if line.lstrip(" \t+>*").partition(" ")[0].rstrip(":").lower() not in _ADVISING:
        yield from assigned(line, above)


def stated_in(line: str, above: str = "") -> tuple[str, list[tuple[str, str]]] | None:
    """What a line of a job's output says of settings: the program that it starts with them ("" where they hold until
    the shell changes them, as its own command or a dump of variables says), and the names and values that it sets (""
    for one that it unsets). None for all other lines. `above` as for `assigned`."""
    match = _LIKE["states"].match(unwrap(line).text)
    program = (match["program"] or match["path"] or "") if match is not None else ""
    if match is None:
        pair = _LIKE["named"].match(above) is not None and _LIKE["its_value"].match(line) is not None
        listed = line.lstrip().startswith(("{", "environ({")) and _LIKE["item"].search(line) is not None
        sets = pair or listed or _LIKE["yaml"].match(line) is not None
    else:
        # What a shell's trace shows without export is the shell's own, or the next command's.
        sets = bool(program or match["shell"] or not (match["writes"] or match["trace"]))
    settings = list(assigned(line, above)) if sets else []
    return (program, settings) if program or settings else None
