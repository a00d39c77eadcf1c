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
KINDS: dict[Kind, Facts] = {
    Kind.BUNDLE: Facts("a bundle of a node", "topodiag scan {path}"),
    Kind.NODE_TEXT: Facts("output of a node's tools", "topodiag scan {path}"),
    Kind.TOPOLOGY: Facts("an NCCL topology file", "topodiag topo check {path}"),
    Kind.HWLOC: Facts("hwloc XML", "topodiag scan {path}"),
    Kind.NCCL_LOG: Facts("an NCCL log", "topodiag logs {path}"),
    Kind.JOB_OUTPUT: Facts("the output of a job", "topodiag logs {path}"),
    Kind.SAVED_FACTS: Facts("saved facts of NCCL logs", "topodiag logs {path}"),
    Kind.FLIGHT: Facts("a flight recorder dump", "topodiag logs {path}"),
    Kind.NCCL_TESTS: Facts("an nccl-tests table", "topodiag bench {path}"),
    Kind.CLUSTER: Facts("a description of a cluster", "topodiag place audit {path} --tp 8"),
    Kind.KUBERNETES: Facts("a Kubernetes node list", "topodiag place audit {path} --tp 8"),
    Kind.PODS: Facts("a list of pods with their nodes"),
    Kind.HOSTFILE: Facts("a hostfile", "topodiag place audit {path} --tp 8"),
    Kind.RANKFILE: Facts("a rankfile", "topodiag place audit {path} --tp 8"),
    Kind.RANK_MAP: Facts("a rank map", "topodiag place audit {path} --tp 8"),
    Kind.SIZES: Facts("the declared sizes of a job's parallel dimensions", "topodiag place audit {path}"),
    Kind.GROUPS: Facts("a file of rank groups", "topodiag place solve --groups {path}"),
    Kind.SWEEP_PLAN: Facts("a sweep plan", "topodiag bench run {path}"),
    Kind.SWEEP: Facts("the folder of a sweep", "topodiag bench read {path}"),
    Kind.GRAPH: Facts("an NCCL graph file"),
    Kind.STACKS: Facts("a dump of stacks (py-spy)", "topodiag logs {path}"),
    Kind.TRACE: Facts("a trace of NCCL's profiler", "topodiag logs {path}"),
    Kind.DIAGNOSTICS: Facts("a report of NCCL's diagnostics", "topodiag logs {path}"),
    Kind.INSPECTOR: Facts("records of NCCL's Inspector", "topodiag logs {path}"),
    Kind.STEPS: Facts("the log of a training, with its step times", "topodiag logs {path}"),
    Kind.WATCH: Facts("what topodiag watch wrote", "topodiag fleet history {path}"),
    Kind.RAS: Facts("an answer of NCCL's RAS (ncclras)", "topodiag logs {path}"),
    Kind.BENCH_CSV: Facts("a table of benchmark results"),
    Kind.MANIFEST: Facts("the manifest of a bundle, without its bundle"),
    Kind.RESULT: Facts("a result of topodiag (--format json)"),
    Kind.ARCHIVE: Facts("an archive"),
    Kind.PICKLE: Facts("a pickle"),
    Kind.PARQUET: Facts("a Parquet file"),
    Kind.PROGRAM: Facts("source code or documentation, so what it names did not happen"),
    Kind.TEXT: Facts("an unknown file type"),
    Kind.JSON: Facts("JSON"),
    Kind.BLANK: Facts("blank"),
    Kind.EMPTY: Facts("empty"),
    Kind.BINARY: Facts("binary"),
}

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
