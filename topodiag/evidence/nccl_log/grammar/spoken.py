"""Which lines of a text are worth reading: the words in them, and whether any line is one of a job.

The one list of words for who searches bytes: the fast extractor, and the front door's look at a text.

What programs beside NCCL state of the whole job: how many ranks it has, which they are, the NCCL they loaded.

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

import re
from collections.abc import Callable
from functools import cache

from topodiag.evidence.assignments import stated_in
from topodiag.evidence.bench_devices import DEVICE
from topodiag.evidence.nccl_log.grammar import job_lines
from topodiag.evidence.nccl_log.grammar.prefix import application, clean
from topodiag.evidence.signatures.engine import events_of_job
from topodiag.evidence.signatures.entry import literals_of
from topodiag.evidence.signatures.literals import Finder
from topodiag.evidence.signatures.wrappers import without_launcher
from topodiag.lazy import regex
from topodiag.words.own_data import own_data

SIZE, HOST, RANK, COMMAND = "world size", "rank host", "rank device", "command"
STATED = (SIZE, HOST, RANK, COMMAND)
"""Kinds of lines that tell of a job, and by themselves make none."""
_MOST = 10_000_000
"""More ranks than any job has: a damaged number."""
_MOST_COMMAND = 2000
"""Characters kept of a command."""

_TABLES = own_data("evidence/nccl_log/grammar/spoken")
_LIKE = {name: regex("".join(pieces).encode(), re.M) for name, pieces in _TABLES["pattern"].items()}
_SENTENCES = literals_of("job")

_ANY = Finder(_SENTENCES)
_NOBODY = frozenset({"<N/A>", "localhost", "unknown"})


def stated_of(text: str) -> list[tuple[str, dict[str, object]]]:
    """Rows of the table `text`; none for most lines."""
    taken = list(events_of_job(text, "stated")) if _ANY.any(text.encode("utf-8", "replace")) else []
    stated = {what: sentence.fields for what, sentence in reversed(taken)}
    size, host = int(stated.get("size", {}).get("count", 0)), str(stated.get("host", {}).get("host", ""))
    device = DEVICE.search(text) if " device " in text else None
    commands = ("CCL_" in text or any(map(text.__contains__, _TABLES["programs"]))) and stated_in(text) is not None
    texts = (
        (SIZE, str(size) if 0 < size < _MOST else ""),
        (HOST, host if host not in _NOBODY else ""),
        (RANK, device[0][:400] if device is not None and device[3] and device[4] else ""),
        ("version", f"NCCL version {stated['nccl']['version']}" if "nccl" in stated else ""),
        (COMMAND, text.strip()[:_MOST_COMMAND] if commands else ""),
    )
    return [("text", {"kind": kind, "text": words}) for kind, words in texts if words]


SPEAKS = (*map(str.encode, _TABLES["speaks"]), *map(str.encode, _TABLES["programs"]), *job_lines.WORDS, *_SENTENCES)
"""A line in which none of these stands holds no record, and says nothing to `prefix.application`
and `stated_of`. What a training prints at every step should not be among them: to read a
line costs as much as to search a hundred for these."""
_MOST_LINE = 4096
_SOCKET = b"ocket"
_TELLING = (*(word for word in SPEAKS if word not in (b"ailed", b"ccl", b"] INFO ", b" WARN ")), b"Failed to bind")
"""Words of lines by which a text is a job's output; of sockets NCCL's functions, `ocketStart`, and not the word."""


@cache
def telling() -> Finder:
    return Finder(_TELLING)


@cache
def speaking() -> Finder:
    """All of SPEAKS, in one pass over the bytes."""
    return Finder(SPEAKS)


_NEAR = 1 << 16
_LAST = 8
"""Lines in which CUDA and JAX explain an exception behind it."""


def holds_job_lines(data: bytes) -> bool:
    """Whether any line of a text is one of a job: an error of NCCL that torch repeats, a watchdog, the end of a
    process, a fault of a device. An exception counts where a traceback, torch's rank or a fault stands with it, or
    where the text ends with it: logs name exceptions that their program caught, and go on."""
    hits = telling().hits(data)
    if not hits:
        return False
    seen = -1
    traceback = cache(lambda: _holds_traceback(data) or _ends_with_exception(data))
    by_shell = cache(lambda: _is_told_by_shell(data))
    for at, number in hits:
        end = at + len(_TELLING[number])
        if at < seen or (_TELLING[number] == _SOCKET and not data[end : end + 1].isupper()):
            continue
        begin, seen = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", end)
        begin = max(begin, data.rfind(b"\r", begin, at) + 1)  # a progress bar redraws with carriage returns
        seen = seen if seen >= 0 else len(data)
        if _is_of_job(clean(data[begin : min(seen, begin + _MOST_LINE)]), traceback, by_shell):
            return True
    return False


def _holds_traceback(data: bytes) -> bool:
    return (b"Traceback" in data or b'File "' in data) and _LIKE["traceback"].search(data) is not None


def _is_told_by_shell(data: bytes) -> bool:
    """Whether `Killed` alone is a shell's word on the command above it, or the last word of a text, and nobody typed
    the signal."""
    killed = _LIKE["killed"].search(data)
    if killed is None or _LIKE["by_hand"].search(data) is not None:
        return False
    if _LIKE["killed_last"].search(data[-_MOST_LINE:]) is not None:
        return True
    return _LIKE["prompt"].search(data, max(0, killed.start() - _NEAR), killed.start()) is not None


def _ends_with_exception(data: bytes) -> bool:
    """Whether an exception opens one of the last lines, behind no more than a launcher's label: so a program ends."""
    last = data[-_MOST_LINE:].split(b"\n")
    lines = [line for line in last if line.strip()][-_LAST:]
    return any(_LIKE["exception"].match(without_launcher(clean(line)).encode("utf-8", "replace")) for line in lines)


def _is_of_job(text: str, traceback: Callable[[], bool], by_shell: Callable[[], bool]) -> bool:
    row = application(text)
    if row is None or row[0] != "event":
        return False
    pair = job_lines.said_of(text)
    if pair is not None and "placed" in pair[1]:
        return False
    if pair is None or pair[1].get("how") not in ("context", "exception"):
        return text.strip() != "Killed" or by_shell()
    return traceback() or any(pair[1].get(name) for name in ("uncaught", "fault", "symbol"))
