"""What programs beside NCCL state of the whole job: how many ranks it has, which they are, the NCCL they loaded.

    world_size=16 rank=0 local_rank=0 distributed_init_method=tcp://..     vLLM
    Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/2                  Lightning
    Waiting in store based barrier .. (world_size=8, worker_count=7, ..)   torch
      host      : gpu187.cluster.local                                     torchrun's table of failures
    srun: error: gpu6156: task 0: Out Of Memory                            Slurm
    #  Rank  0 Group  0 Pid  41821 on  node5 device  0 [0x0f] NVIDIA A800  nccl-tests
    vLLM is using nccl==2.20.5                                             vLLM, SGLang
    + export NCCL_NET=Socket                                               a shell, and its trace

A size with a word before it (`local_world_size`, `tensor parallel world size`) is one of a part of the job, and an
option of a command (`--world_size=4`, `WORLD_SIZE=2 python ..`) counts machines as often as ranks: neither is read.

SOURCE: pytorch_lightning/fabric/utilities/distributed.py (_init_dist_connection); torch
distributed/elastic/multiprocessing/errors/__init__.py (_format_failure), distributed_c10d.py; deepspeed
launcher/launch.py; Slurm src/srun/libsrun/launch.c; Open MPI help-orterun.txt; vllm
distributed/device_communicators/pynccl.py.
"""

from __future__ import annotations

from topodiag.evidence.assignments import stated_in
from topodiag.evidence.bench_devices import DEVICE
from topodiag.evidence.nccl_log.grammar.numbers import compiled

SIZE, HOST, RANK, COMMAND = "world size", "rank host", "rank device", "command"
STATED = (SIZE, HOST, RANK, COMMAND)
"""Kinds of lines that tell of a job, and by themselves make none."""
_MOST = 10_000_000
"""More ranks than any job has: a damaged number."""
_MOST_COMMAND = 2000
"""Characters kept of a command."""

_PROGRAMS = (
    "mpirun ", "mpiexec ", "srun ", "torchrun ", "docker run ", "python ", "python3 ", "deepspeed ",
    "accelerate launch ",
)  # fmt: skip
WORDS = (
    b"orld_size", b"orld size", b"orld Size", b"WORLD_SIZE", b"MEMBER: ", b"egistered. Starting with ",
    b"Num processes: ", b"initialized host ", b"host      : ", b"Local host: ", b"srun: error: ", b" CANCELLED AT ",
    b"noticed that process rank", b"Process received signal", b"UCX  ", b"is using nccl==", b" Pid ",
    *(word.encode() for word in _PROGRAMS),
)  # fmt: skip
"""A line without any of these is none of theirs."""

_OF_SIZE = (
    "orld_size", "orld size", "orld Size", "WORLD_SIZE", "MEMBER: ", "egistered. Starting with ", "Num processes: ",
)  # fmt: skip
_SIZES = (
    compiled(r"(?<![\w.$-])(?:dist_)?world_size['\"]?(?: ?[=:] ?| )(?P<size>\d{1,9})(?![\w.])"),
    compiled(r"\bMEMBER: \d{1,7}/(?P<size>\d{1,9})\b"),
    compiled(r"\bprocesses registered\. Starting with (?P<size>\d{1,9}) processes\b"),
    compiled(r"\bRANK=\d{1,7}\b.{0,120}?(?<![\w$-])WORLD_SIZE=(?P<size>\d{1,9})\b"),
    compiled(r"\bglobal_world_sizes=\[(?P<size>\d{1,9})[,\]]"),
    compiled(r"^\s{0,8}(?:\[rank\d{1,7}\]: ?)?Num processes: (?P<size>\d{1,9})\s*$"),
    compiled(
        r"(?:^|[^\w ] ?|\b(?:the|using|with|total|global|and|current|has) )[Ww]orld [Ss]ize(?: ?[:=] ?| of | is | )"
        r"(?P<size>\d{1,9})(?![\w.])"
    ),
)
_UNTOLD = compiled(
    r"^\s{0,20}(?:[$#]|export\b|[\w.-]{1,60}@[\w.-]{1,60}[: ]\S{0,80}[$#] |[A-Z_]{2,40}=\S)|\bNamespace\("
)
"""Commands, comments, and the defaults of a program's options, which it prints before it knows its ranks."""

_HOSTS = (
    compiled(r"^\s{0,8}(?:\[rank\d{1,7}\]: ?)?\s{0,8}host {6}: ([\w.-]{1,255})\s*$"),
    compiled(r"\bsrun: error: ([\w.-]{1,255}): tasks? \d"),
    compiled(r"\bnoticed that process rank \d{1,7} with PID \d{1,10} on node ([\w.-]{1,255}?)\.? exited\b"),
    compiled(r"\binitialized host ([\w.-]{1,255}) as rank \d"),
    compiled(r"^\s{0,8}\[([\w.-]{1,255}):\d{1,10}\] \*\*\* Process received signal"),
    compiled(r"\[([\w.-]{1,255}):\d{1,10}:\d{1,10}(?::\d{1,10})?\] .{0,80}?\bUCX {1,4}[A-Z]{4,5} "),
    compiled(r"^\s{0,8}Local host: {1,40}([\w.-]{1,255})\s*$"),
    compiled(r"\*\*\* (?:JOB|STEP) [\w.+]{1,40} ON ([\w.-]{1,255}) CANCELLED AT "),
)
_TELL_HOST = ("host", "srun: ", "noticed", "signal", "UCX", " ON ")
_NOBODY = frozenset({"<N/A>", "localhost", "unknown"})
_LOADED = compiled(r"\b(?:vLLM|sglang) is using nccl==(\d{1,3}\.\d{1,3}\.\d{1,3})\b")


def stated_of(text: str) -> list[tuple[str, dict[str, object]]]:
    """Rows of the table `text`; none for most lines."""
    made: list[tuple[str, dict[str, object]]] = []
    size = _size_of(text)
    if size:
        made.append(("text", {"kind": SIZE, "text": size}))
    if any(word in text for word in _TELL_HOST):
        found = next((match[1] for pattern in _HOSTS if (match := pattern.search(text)) is not None), "")
        if found and found not in _NOBODY:
            made.append(("text", {"kind": HOST, "text": found}))
    device = DEVICE.search(text) if " device " in text else None
    if device is not None and device[3] and device[4]:
        made.append(("text", {"kind": RANK, "text": device[0][:400]}))
    loaded = _LOADED.search(text) if "nccl==" in text else None
    if loaded is not None:
        made.append(("text", {"kind": "version", "text": f"NCCL version {loaded[1]}"}))
    if ("CCL_" in text or any(word in text for word in _PROGRAMS)) and stated_in(text) is not None:
        made.append(("text", {"kind": COMMAND, "text": text.strip()[:_MOST_COMMAND]}))
    return made


def _size_of(text: str) -> str:
    """The number of ranks of the job, "" where the line states none."""
    if not any(word in text for word in _OF_SIZE) or _UNTOLD.search(text) is not None:
        return ""
    found = next((match for pattern in _SIZES if (match := pattern.search(text)) is not None), None)
    return str(int(found["size"])) if found is not None and 0 < int(found["size"]) < _MOST else ""
