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
from topodiag.evidence.signatures.entry import literals_of
from topodiag.evidence.signatures.lines import events_of_job
from topodiag.evidence.signatures.literals import Finder

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
_SENTENCES = literals_of("job")
WORDS = (b" Pid ", *_SENTENCES, *(word.encode() for word in _PROGRAMS))
"""A line without any of these is none of theirs."""

_ANY = Finder(_SENTENCES)
_NOBODY = frozenset({"<N/A>", "localhost", "unknown"})


def stated_of(text: str) -> list[tuple[str, dict[str, object]]]:
    """Rows of the table `text`; none for most lines."""
    pairs: list[tuple[str, dict[str, object]]] = []
    taken = list(events_of_job(text, "stated")) if _ANY.any(text.encode("utf-8", "replace")) else []
    stated = {what: sentence.fields for what, sentence in reversed(taken)}
    size, host = int(stated.get("size", {}).get("count", 0)), str(stated.get("host", {}).get("host", ""))
    if 0 < size < _MOST:
        pairs.append(("text", {"kind": SIZE, "text": str(size)}))
    if host and host not in _NOBODY:
        pairs.append(("text", {"kind": HOST, "text": host}))
    device = DEVICE.search(text) if " device " in text else None
    if device is not None and device[3] and device[4]:
        pairs.append(("text", {"kind": RANK, "text": device[0][:400]}))
    if "nccl" in stated:
        pairs.append(("text", {"kind": "version", "text": f"NCCL version {stated['nccl']['version']}"}))
    if ("CCL_" in text or any(word in text for word in _PROGRAMS)) and stated_in(text) is not None:
        pairs.append(("text", {"kind": COMMAND, "text": text.strip()[:_MOST_COMMAND]}))
    return pairs
