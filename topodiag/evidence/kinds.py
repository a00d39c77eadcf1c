"""The kinds of evidence: what each is called, and which command reads it. The only such list; every command asks it."""

from __future__ import annotations

from enum import Enum

from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data


@dataclass(frozen=True, slots=True)
class Facts:
    """`words` name the kind to a reader. `command` is what reads it, with `{path}` for the file; "" where none does."""

    words: str
    command: str = ""


class Kind(Enum):
    """What a piece of evidence is. The value is its name in JSON."""

    BUNDLE = "bundle"
    NODE_TEXT = "node-text"
    TOPOLOGY = "nccl-topology"
    HWLOC = "hwloc-xml"
    NCCL_LOG = "nccl-log"
    JOB_OUTPUT = "job-output"
    SAVED_FACTS = "saved-facts"
    FLIGHT = "flight-recorder"
    NCCL_TESTS = "nccl-tests"
    CLUSTER = "cluster"
    KUBERNETES = "kubernetes-nodes"
    PODS = "kubernetes-pods"
    HOSTFILE = "hostfile"
    RANKFILE = "rankfile"
    RANK_MAP = "rank-map"
    SIZES = "parallel-sizes"
    GROUPS = "rank-groups"
    SWEEP_PLAN = "sweep-plan"
    SWEEP = "sweep"
    GRAPH = "nccl-graph"
    RAS = "nccl-ras"
    STACKS = "stack-dump"
    INSPECTOR = "nccl-inspector"
    DIAGNOSTICS = "nccl-diagnostics"
    TRACE = "nccl-profiler-trace"
    STEPS = "step-times"
    WATCH = "watch"
    BENCH_CSV = "benchmark-csv"
    MANIFEST = "manifest"
    RESULT = "topodiag-result"
    ARCHIVE = "archive"
    PICKLE = "pickle"
    PARQUET = "parquet"
    PROGRAM = "program"
    TEXT = "text"
    JSON = "json"
    BLANK = "blank"
    EMPTY = "empty"
    BINARY = "binary"

    @property
    def facts(self) -> Facts:
        return KINDS[self]

    __hash__ = object.__hash__  # that of Enum is written in Python, and files are asked for their kinds a hundred times


DAMAGED = "a damaged archive"
"""Of whatever kind: nothing of it unpacks."""
KINDS: dict[Kind, Facts] = {kind: Facts(**own_data("evidence/kinds")[kind.value]) for kind in Kind}

NODE_KINDS = frozenset({Kind.BUNDLE, Kind.NODE_TEXT, Kind.TOPOLOGY, Kind.HWLOC})
"""Kinds from which a node is read."""

NODE_EVIDENCE = (
    "evidence of a node is: bundles, output of nvidia-smi, ibstat, lspci and the like, NCCL topology files, hwloc XML"
)
"""What is said to who gives something else."""

ANY_EVIDENCE = (
    "looked for: NCCL's records, the kernel's messages, errors of CUDA, torch, Slurm, Ray, Kubernetes, mpirun, output"
    " of nvidia-smi, ibstat, lspci and the like, tables of nccl-tests, topology files, bundles"
)
"""The same of who takes any evidence."""


def source_words(source: str) -> str:
    """What the text that a source of evidence/sources.toml reads is called."""
    words: str = own_data("evidence/sources").get(source, {}).get("words", "a capture of topodiag")
    return words


def command_for(kind: Kind, path: str) -> str:
    """The command that reads a file of this kind, ready to be typed; "" where none does."""
    command = KINDS[kind].command
    return command.format(path=_quoted(path)) if command else ""


def _quoted(path: str) -> str:
    from shlex import quote  # noqa: PLC0415 - only for messages

    return path if path.startswith("fixture:") else quote(path)
