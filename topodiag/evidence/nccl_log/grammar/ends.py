"""Lines by which launchers, schedulers and frameworks say that a process ended, or that ranks wait for others.

SOURCE: Slurm src/slurmd/slurmstepd and src/srun (`oom_kill event`, `CANCELLED AT .. DUE TO ..`, `task N: ..`); torch
distributed/elastic/multiprocessing/{api,errors}.py, distributed/c10d/{Utils.hpp, ProcessGroupWrapper.cpp,
ProcessGroupGloo.cpp}; Open MPI's mpirun, MPICH's Hydra; Ray's raylet and autoscaler; Horovod's stall_inspector.cc;
CPython's traceback; UCX' and glibc's signal handlers.
"""

from __future__ import annotations

import re

from topodiag.evidence.nccl_log.grammar import memory_ends, program_ends, stack_frames
from topodiag.evidence.nccl_log.grammar.any_of import any_of
from topodiag.evidence.nccl_log.grammar.numbers import compiled, error_named
from topodiag.evidence.nccl_log.grammar.signals import how_of_code, how_of_signal

LIMIT = 2000
"""Characters that are kept of such a line: torch prints two fingerprints on one."""

_D = r"(\d{1,9})"
_CANCELLED = compiled(
    r"\*\*\* (?:STEP|JOB) [\d.+_\w]{1,40} ON (\S{1,80}) CANCELLED AT (\S{8,30})(?: DUE TO ([A-Z ]{4,40}?))?"
    r"(?:, SEE SLURM\w{1,12} LOG FOR DETAILS)? ?\*\*\*"
)
_TASK = compiled(
    r"srun: error: (\S{1,80}): tasks? ([\d,\-\[\]]{1,200}): (Out Of Memory|Killed|Aborted|Segmentation fault|Bus error"
    r"|Floating point exception|Terminated|Exited with exit code (\d{1,9}))"
)
_LIMIT = compiled(r"TERM_RUNLIMIT|job killed: walltime \d{1,9} exceeded limit|\bDeadlineExceeded\b")
_NODE = compiled(
    r"\bNODE_FAIL\b|srun: error: Node failure on |\bNodeLost\b|[Nn]ode \S{1,80} (?:failed|is down), job requeued"
    r"|\bbecause (?:its|the actor's) node (?:has )?(?:died|failed)\b"
)
_EVICTED = compiled(
    r"(?:(?:[Cc]luster|[Ii]nstance|[Nn]ode|[Ww]orker|VM|[Jj]ob) (?:is|was|has been|got|were) preempted)\b"
    r"|will be terminated soon \(reason: ([\w\- ]{3,60})\)|[Rr]eason: {1,12}Evicted\b"
    r"|The node was low on resource|[Pp]od \S{1,80} (?:was |has been |is )?(?:evicted|preempted)|TERM_PREEMPT"
    r"|[Ss]pot (?:instance )?interruption(?! (?:noti|warn|event|handl))"
    r"|\b[Ii]nstance (?:was )?(?:terminated|preempted)\b.{0,60}(?:maintenance|preempt)"
    r"|(?<![\w/.])(?:[1-9]\d{0,5}(?:/\d{1,6})? |[Ss]ome )(?:workers?|pods?|replicas?|launchers?)(?: pods?)? (?:is|are"
    r"|was|were|got|has been|have been) evicted\b|\b[Rr]eason\"?: {0,12}\"?\w{1,30}JobEvicted\b"
)
_NO_ROOM = compiled(
    r"(?:\bFailedScheduling\b|\b\d{1,6}/\d{1,6} nodes are available).{0,400}?(\bInsufficient [\w.:/-]{2,80})"
    r"|\b([Nn]ot enough slots available)|No available node types can fulfill (resource request .{2,120}?\})"
    r"|\bCannot provide a (placement group) of .{1,1200}? within \d|\b([Pp]lacement group) creation timed out\."
    r"|(?:srun|salloc|sbatch): error: (?:Unable to (?:allocate resources|create step for job \d{1,12})"
    r"|Batch job submission failed): ([^\n]{5,120})"
)
"""Kubernetes' scheduler, Open MPI's mpirun, Ray's autoscaler, Slurm: nothing started, as there is no place for it."""
_SIGNAL = r"(?:Segmentation fault|Bus error|Illegal instruction|Floating point exception)"
_CRASH = compiled(
    rf"Caught signal {_D} \(([^):]{{3,60}})|Signal: ({_SIGNAL}) \({_D}\)|Fatal Python error: ([^\n]{{3,80}})"
    rf"|exited on signal {_D} \(([^)]{{3,40}})\)|\b({_SIGNAL}) {{1,12}}\(core dumped\)"
    r"|(?:received|terminated with) signal (SIG(?:SEGV|BUS|ILL|FPE)), "
    r"|\*\*\* (SIG(?:SEGV|BUS|ILL|FPE)) (?:\(@0x[0-9a-f]{1,16}\) )?received "
    r"|!!!!!!! (Segfault|Bus error) encountered|(Memory access fault) by GPU node-\d"
    r"|(?:^|[\s:\]>])((?:free|malloc|realloc|calloc|munmap_chunk|malloc_consolidate)\(\): [a-z][\w ./()-]{3,60}"
    r"|double free or corruption|corrupted (?:size vs\. prev_size|double-linked list)|\*\*\* stack smashing detected)"
    rf"|\bProcess \d{{1,9}} \(({memory_ends.OF_JOB})\S{{0,40}}\) of user \d{{1,9}} (?:dumped core|terminated"
    rf" abnormally)"
    r"|(?:\bsegfault at [0-9a-f]{1,16} ip |\bgeneral protection fault ip:).{0,120} in (lib(?:nccl|rccl|torch|cuda"
    r"|mpi|ucp|uct|fabric)[^\s\[]{0,80})\["
)
_BY_WORD = (
    ("no room", _NO_ROOM), ("memory", memory_ends.KILLED), ("limit", _LIMIT), ("node failure", _NODE),
    ("evicted", _EVICTED), ("crash", _CRASH),
)  # fmt: skip
_NOT_LAUNCHED = compiled(
    r"srun: error: Nodes \S{1,200} are still not ready"
    r"|srun: error: .{0,120}\b(?:[Tt]ask|[Aa]pplication|[Jj]ob) ?launch\b.{0,80}\bfailed|\b[Jj]ob prolog failed\b"
    r"|: ssh exited with exit code 255\b"
    r"|\b(?:[Ff]ailed to|[Cc]annot) (?:launch|spawn) (?:the )?(?:tasks?|processes|step)\b"
)
_POD = compiled(
    r"^\s{0,8}(?:\S{1,80}\s{1,60})?(\S{1,253})\s{1,60}\d{1,3}/\d{1,3}\s{1,60}(?:Init:)?(CrashLoopBackOff|Error|OOMKilled"
    r"|Evicted|ErrImagePull|ImagePullBackOff|(?:CreateContainer|RunContainer|UnexpectedAdmission)Error"
    r"|ContainerCannotRun|NodeLost)\s{1,60}\d"
)
"""A row of `kubectl get pods`: name, ready, status, restarts."""
_POD_STATUS = {"OOMKilled": "memory", "Evicted": "evicted", "NodeLost": "node failure", "CrashLoopBackOff": "died",
               "Error": "died"}  # fmt: skip
_ELASTIC = compiled(rf"failed \(exitcode: (-?\d{{1,5}})\) local_rank: {_D} \(pid: {_D}\)")
_SUMMARY = compiled(rf"(?:^|[\s:\]])exitcode\s{{1,8}}: (-?\d{{1,5}}) \(pid: {_D}\)")
_SUMMARY_RANK = compiled(rf"(?:^|[\s:\]])rank\s{{1,8}}: {_D} \(local_rank: {_D}\)")
_SUMMARY_HOST = compiled(r"(?:^|[\s:\]])host\s{2,8}: (\S{1,120})\s*$")
_EXIT = compiled(
    r"EXIT CODE: (-?\d{1,5})\b|[Cc]hild process unexpectedly failed with exitcode=(-?\d{1,5})"
    r"|[Ee]xit [Cc]ode: {1,12}(137|139|134|135|143)\b|terminated with exit code (\d{1,3})\b"
    r"|exits with return code = (-?\d{1,5})\b"
)
_LOADER = compiled(
    r"\berror while loading shared libraries: ([\w.+-]{2,80}): cannot open shared object file"
    r"|\bsymbol lookup error: |\bundefined symbol: (\w{2,80})|: version `([\w.]{2,40})' not found \(required by "
    r"|\brelocation error: .{1,300}\bsymbol (\w{2,80}), version [\w.]{2,40} not defined in file "
)
"""The dynamic loader (glibc's dl-lookup.c, dl-version.c): a library that is older than what was built against it."""
_PORT_TAKEN = compiled(
    rf"failed to listen on any local|failed to bind to |{error_named('EADDRINUSE')}"
    r"|(?:OSError|RuntimeError): .{0,200}[Aa]ddress already in use"
)
_TAKEN = re.compile(r"EADDRINUSE|[Aa]ddress already in use")
_DEATH_SIGNAL = compiled(r"\bReceived (?:Signals\.)?(\d{1,2}|SIG[A-Z]{2,6}) death signal, shutting down workers\b")
"""torch distributed/elastic/agent/server/api.py: the launcher itself was told to stop."""
_ABORTED = compiled(r"\bMPI_ABORT was invoked on rank (\d{1,9}) in communicator\b")
_KILLED = compiled(r": line \d{1,6}: {1,8}\d{1,9} Killed {1,40}\S|Signal 9 \(SIGKILL\) received|^Killed\s*$")
_WORKER = compiled(
    r"DataLoader worker \(pid(?:\(s\))? [\d, ]{1,200}\) "
    r"(?:exited unexpectedly|is killed by signal: (?!Bus error|Termin|Interr))"
)
_DIED = compiled(
    r"\b(?i:worker|process|actor|task|rank|trainer|engine ?core|learner|replica|proc)s?\b[^.;:\n]{0,60}?"
    r"\b(?:(?:has |was |had )?died\b(?! down| out| away)|was killed\b|crashed\b|unexpectedly exit(?:s|ed)\b"
    r"|exited unexpectedly\b|terminated unexpectedly\b|is dead\b)"
)
"""That a process of the job is gone, in any launcher's words, and not how."""
_NOT_DIED = re.compile(
    r"\b(?:if|when|in case|unless|whether|until|before|may|might|could|would|no|not|never)\b|\?", re.I
)
_EXCEPTION = compiled(
    r"(?:^|[\s:\]\"'])((?:[A-Za-z_]\w{0,60}\.){0,8}_?[A-Z]\w{0,60}(?:Error|Exception|Interrupt)): (\S.{0,1500})$"
)
_BARE_EXCEPTION = compiled(
    r"^\s{0,8}(?:\[rank\d{1,6}\]: ?)?(?:[A-Za-z_]\w{0,60}\.){1,8}([A-Z]\w{0,60}(?:Error|Exception))\s*$"
)
"""One without a message, told by its module."""
_UNCAUGHT = compiled(r"\[rank(\d{1,9})\]: *$")
"""Torch's hook for what nobody caught puts its rank before each line."""
_SRUN = compiled(r"(?:\[\d{1,6},(?=\d)|\s{0,8})(\d{1,6})(?:\]<std(?:err|out)>:|: ) *$")
"""`srun -l` and `mpirun --tag-output` put the rank before each line, caught or not."""
_OF_OTHERS = re.compile(
    r"find (?:the |any |a )?(?:network|socket) interface|"
    r"ChildFailedError|LustreError|\w(?:Dead|Died|Lost|Gone)(?:Error|Exception)|Dist(?:Backend|Store|Network)Error|\bnccl|NCCL|Ray(?:Actor|Task)Error|Actor(?:Died|Unavailable)"
    r"Error|WorkerCrashed|store based barrier|TCPStore|Broken pipe|[Cc]onnection (?:reset|refused|closed|was)|EOFError"
    r"|[Uu]ncorrectable|ECC|nvlink|NVLink|hardware error|not yet initialized|unknown error"
    r"|CUDA-capable|initialization error|named symbol|no kernel image|/dev/shm|shared memory|Bus error"
    r"|DataLoader worker|gloo|Gloo|Horovod|monitoredBarrier|mismatch between collectives|Watchdog|heartbeat"
    r"|[Tt]imed? ?out|Timeout|\b[Hh][Cc][Cc][Ll]|\bHccl|oneCCL|\|CCL_ERROR\|"
)
"""Exceptions that a process meets because something else failed before: another process, the network, the GPU."""
_MISSING = compiled(r"(?:^|[\s:>])Missing ranks:\s*$")
"""Horovod 0.20 and later: the lines below name a rank each."""
_STALLED = compiled(r"^(.{0,300}?) ?\[missing ranks: ?([\d, ]{1,2000})\]")
_GLOO_WAIT = compiled(r"\bTimed out waiting \d{1,12} ?ms for (?P<op>send|recv) operation to complete")
"""gloo/transport/tcp/unbound_buffer.cc, and torch's process group over it."""
_WATCHED = compiled(
    r"\bWatchdog timeout \(|\branks? \(marked by \"!\"\) (?:is|are) stalled for longer than \d"
    r"|\breached (?P<op>monitoredBarrier), but received errors while waiting for send/recv\b"
)
"""SGLang's watchdog of its scheduler: no batch came to its end; Horovod's stall check, which ends the job; what torch's
other ranks say of a barrier that the first one gave up."""
_MISSED = compiled(r"^\s{0,8}missing ranks: \{([\d, ]{1,2000})\}\s*$")
"""torch's analyzer of flight recorder dumps (torch/distributed/flight_recorder, fr_trace)."""
_READY = compiled(r"(\S{1,200}) \[ready ranks: ?([\d, ]{1,2000})\]")
"""Horovod before 0.20 names the ranks that came: who did not is what their numbers leave out."""
MOST_READY = 1 << 16
_BARRIER = compiled(r"[Rr]anks? ([\d, ]{1,2000}) failed to (?:pass|reach) monitoredBarrier in (\d{1,12}) ms")
_FINGERPRINTS = compiled(
    r"mismatch between collectives on ranks\. Rank (\d{1,9}) is running collective: CollectiveFingerPrint\("
    r"(.{1,900}?)\), but Rank (\d{1,9}) is running collective: "
    r"(?:CollectiveFingerPrint\((.{1,900}?)\)|([A-Z_]{2,40})\b)"
)
_INCONSISTENT = compiled(
    r"mismatch between collectives on ranks\. Rank (\d{1,9}) is running inconsistent collective: "
    r"CollectiveFingerPrint\((.{1,900}?)\)"
)
"""torch 1.11 and earlier name one side."""
_PART = compiled(r"(SequenceNumber|OpType|TensorShape|TensorDtypes)=(\[[\d, ]{0,200}\]|\w{1,40}?)(?=OpType=|[,)]|$)")

_OPERATION = (
    r"((?:all[-_ ]?(?:reduce|gather|to[-_ ]?all)|reduce[-_ ]?scatter|barrier|collective)\w{0,12}"
    r"|(?:CPU|GPU) (?:recv|send|receive)|(?:expert|moe) (?:dispatch|combine))"
)
_TIME_OUT = r"\btime[d -]{0,2}out\b"
_WAITED = compiled(rf"(?i:\b{_OPERATION}\b.{{0,80}}{_TIME_OUT}|{_TIME_OUT}.{{0,80}}\b{_OPERATION}\b)")
"""An exception of a rank that waited for others in an operation until its time was over, in any library's words."""
_OTHER_WAITS = re.compile(
    r"NCCL|nccl|[Ss]tore|[Gg]loo|HCCL|[Hh]ccl|CCL_|Horovod|[Cc]onnect|[Hh]andshake|[Ss]ocket|[Hh]eartbeat|https?://|HTTP"
)
"""Waits that are told by other words, or are none for ranks."""

WORDS = (
    b" Insufficient ", b"enough slots", b"No available node", b"lacement group", b"error: Unable to",
    b"submission failed", b"CANCELLED AT", b"srun: error", b"NODE_FAIL", b"NodeLost", b"s node ", b"job requeued",
    b"oom", b"OOM", b"ut of memory", b"emory limit", b"TERM_", b"job killed:", b"OUT_OF_ME", b"DeadlineExceeded",
    b"terminated soon", b"victed", b"low on resource", b"preempt", b"nterruption", b"Caught signal", b"Signal: ",
    b"Fatal Python", b"exited on signal", b"core dumped", b"dumped core", b"terminated with signal",
    b"protection fault", b"received signal", b"*** SIG", b"PC: @", b"    @ ", b"!!!!!!!", b"free(): ", b"alloc(): ",
    b"_chunk(): ", b"consolidate(): ", b"double free", b"corrupted ", b"stack smashing", b"segfault at", b"exitcode",
    b"EXIT CODE", b"xit Code: ", b"xit code", b"return code = ", b"Killed", b"SIGKILL", b"Timed out waiting ",
    b"atchdog timeout (", b"ssh exited", b"failed to listen", b"EADDRINUSE", b"already in use", b"undefined symbol",
    b"' not found (required", b"MPI_ABORT", b"access fault", b"nstance ", b"Error", b"launch", b"prolog failed",
    b"o spawn", b"BackOff", b"Error ", b"ErrImagePull", b"ContainerCannotRun", b"unexpectedly", b"died",
    b"was killed", b" crashed", b" is dead", b"is killed by signal", b"Error: ", b"Exception: ", b"Interrupt: ",
    b"issing ranks", b"ready ranks", b"stalled for longer", b"onitoredBarrier", b"between collectives",
    *stack_frames.WORDS, *program_ends.WORDS, b"symbol lookup", b"relocation error", b"loading shared lib",
    b"(local_rank: ", b"host  ",
    b"death signal",
)  # fmt: skip
"""A line without any of these is none of theirs."""


def speaks(text: str) -> bool:
    """Whether a line tells the end of a process, or of ranks that others wait for."""
    return end_of(text) is not None


def label_of(text: str) -> str:
    """The rank that such a line names for itself, as digits; "" without."""
    task = _TASK.search(text)
    if task is not None:
        return task[2] if task[2].isdecimal() and len(task[2]) < 10 else ""
    found = _EXCEPTION.search(text)
    if found is None:
        return program_ends.rank_of(text)
    before = text[: found.start(1)]
    named = _UNCAUGHT.search(before) or _SRUN.match(before)
    return named[1] if named is not None else ""


def end_of(text: str) -> tuple[str, dict[str, str]] | None:
    """Kind (`ended`, `stalled`, `mismatch`) and what the line names; None for all others.

    `how` of an end: no room, memory, limit, preempted, evicted, node failure, cancelled, stopped, crash, exception,
    killed, terminated, aborted, hung up, exit, died, not launched, loader, port taken, or context (a line of
    torch's summary that names rank or host).
    """
    if _NOTHING.search(text) is None:
        return None
    found = _FINGERPRINTS.search(text)
    if found is not None:
        return "mismatch", _fingerprints(found)
    found = _INCONSISTENT.search(text)
    if found is not None:
        return "mismatch", {"ranks": found[1], "one": _words(found[2])}
    found = _BARRIER.search(text)
    if found is not None:
        return "stalled", {"ranks": found[1].replace(" ", ""), "waited_ms": found[2], "op": "monitoredBarrier"}
    found = _STALLED.search(text)
    if found is not None:
        return "stalled", {"ranks": found[2].replace(" ", ""), "op": found[1].strip()[-120:]}
    waited = _GLOO_WAIT.search(text) or _WATCHED.search(text)
    if waited is not None:
        return "stalled", {"ranks": "", "op": waited.groupdict().get("op") or ""}
    found = _MISSED.match(text)
    if found is not None:
        return "stalled", {"ranks": found[1].replace(" ", ""), "op": ""}
    found = _READY.search(text)
    if found is not None:
        return "stalled", {"ranks": _left_out(found[2]), "op": found[1][-120:]}
    if _MISSING.search(text):
        return "stalled", {"ranks": "", "op": ""}
    return _ended(text)


def _ended(text: str) -> tuple[str, dict[str, str]] | None:
    named = (
        _of_port(text)
        or _of_scheduler(text)
        or program_ends.end_of(text)
        or _of_word(text)
        or _of_code(text)
        or _of_context(text)
        or _of_exception(text)
    )
    if named is not None:
        return "ended", named
    operation = _waited_in(text)
    return ("stalled", {"ranks": "", "op": operation}) if operation else None


def _waited_in(text: str) -> str:
    """The operation in which a rank waited for others until its time was over; "" for all other lines."""
    found = _EXCEPTION.search(text) if _OTHER_WAITS.search(text) is None else None
    waited = _WAITED.search(found[2]) if found is not None else None
    return (waited[1] or waited[2]) if waited is not None else ""


def _of_port(text: str) -> dict[str, str] | None:
    """That a process could not have the port at which others should meet it."""
    if _PORT_TAKEN.search(text) is None or not _TAKEN.search(text):
        return None
    return {"how": "port taken"}


def _of_scheduler(text: str) -> dict[str, str] | None:
    found = _CANCELLED.search(text)
    if found is not None:
        due = {"TIME LIMIT": "limit", "PREEMPTION": "preempted", "NODE FAILURE": "node failure"}
        return {"how": due.get(found[3] or "", "cancelled"), "host": found[1], "at": found[2]}
    found = _TASK.search(text)
    if found is not None:
        return {"how": _how_of_task(found[3], found[4]), "host": found[1], "code": found[4] or "", "tasks": found[2]}
    return None


def _of_word(text: str) -> dict[str, str] | None:
    """What the words of a scheduler, the kernel or a signal handler say; `what` is what they name."""
    for how, pattern in _BY_WORD:
        found = pattern.search(text)
        if found is not None and not (how == "memory" and memory_ends.only_spoken_of(text, found)):
            return {"how": how, "what": next((part for part in found.groups() if part and not part.isdecimal()), "")}
    return None


def _of_code(text: str) -> dict[str, str] | None:
    for pattern in (_ELASTIC, _SUMMARY, _EXIT):
        found = pattern.search(text)
        if found is not None:
            code = next(part for part in found.groups() if part)
            local = found[2] if pattern is _ELASTIC else ""
            return {"how": how_of_code(int(code)), "code": code, "local_rank": local}
    loader = _LOADER.search(text) if "NCCL " not in text else None
    if loader is not None:
        return {"how": "loader", "what": next(filter(None, loader.groups()), "")}
    aborted = _ABORTED.search(text)
    if aborted is not None:
        return {"how": "exit", "tasks": aborted[1]}
    if _KILLED.search(text):
        return {"how": "killed"}
    if _WORKER.search(text):
        return {"how": "worker"}
    if _NOT_LAUNCHED.search(text):
        return {"how": "not launched"}
    stopped = _DEATH_SIGNAL.search(text)
    if stopped is not None:
        return {"how": "hung up" if stopped[1] in ("1", "SIGHUP") else "stopped"}
    pod = _POD.match(text)
    if pod is not None:
        return {"how": _POD_STATUS.get(pod[2], "not launched"), "what": pod[2] if pod[2] != "Error" else ""}
    died = _DIED.search(text)
    return {"how": "died"} if died is not None and _NOT_DIED.search(text[: died.end()]) is None else None


def _of_context(text: str) -> dict[str, str] | None:
    """Lines that only name who ended: a function of NCCL in a stack, a rank or host of a summary."""
    frame = stack_frames.frame_of(text)
    if frame is not None:
        return {"how": "context", "symbol": frame[0], "so": frame[1]}
    found = _SUMMARY_RANK.search(text)
    if found is not None:
        return {"how": "context", "named_rank": found[1]}
    found = _SUMMARY_HOST.search(text)
    return {"how": "context", "host": found[1]} if found is not None else None


def _of_exception(text: str) -> dict[str, str] | None:
    bare = _BARE_EXCEPTION.match(text)
    if bare is not None and _OF_OTHERS.search(text) is None:
        return {"how": "exception", "what": bare[1], "message": "", "uncaught": ""}
    found = _EXCEPTION.search(text)
    if found is None or (_OF_OTHERS.search(text) and not found[1].endswith(("ImportError", "ModuleNotFoundError"))):
        return None
    if found[1].endswith("SignalException") and (how := how_of_signal(found[2])):
        return {"how": how}
    uncaught = _UNCAUGHT.search(text[: found.start(1)])
    return {
        "how": "exception",
        "what": found[1].rsplit(".", 1)[-1],
        "message": found[2][:200],
        "uncaught": "1" if uncaught else "",
    }


def _how_of_task(words: str, code: str | None) -> str:
    if code is not None:
        return how_of_code(int(code))
    return {"Out Of Memory": "memory", "Killed": "killed", "Aborted": "aborted", "Terminated": "terminated"}.get(
        words, "crash"
    )


def _fingerprints(found: re.Match[str]) -> dict[str, str]:
    made = {"ranks": f"{found[1]},{found[3]}"}
    for side, text in (("one", found[2]), ("other", found[4] or f"OpType={found[5]},")):
        parts = dict(_PART.findall(text))
        made[side] = _words(text)
        if "SequenceNumber" in parts:
            made[f"{side}_seq"] = parts["SequenceNumber"]
    return made


def _words(fingerprint: str) -> str:
    """Operation, shape and type of a fingerprint, as far as it has them."""
    parts = dict(_PART.findall(fingerprint))
    return " ".join(word for name in ("OpType", "TensorShape", "TensorDtypes") if (word := parts.get(name, "")))


def _left_out(ready: str) -> str:
    """The ranks below the highest that a list leaves out; "" where it leaves out none: the missing one is above."""
    came = {int(word) for word in re.findall(r"\d{1,6}", ready)}
    highest = max(came, default=0)
    if highest >= MOST_READY:
        return ""
    return ",".join(str(rank) for rank in range(highest) if rank not in came)


_NOTHING = re.compile(any_of(WORDS).decode())
