"""Settings that made a job fail, each with the line by which NCCL says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from topodiag.checks.job.text import failed
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Confidence, Severity
from topodiag.model.job import Given, Job, Process
from topodiag.model.provenance import Origin

_NO_ALGORITHM = regex(
    r"[Nn]o algorithm/protocol (?:nor symKernelId )?available"
    r"|NCCL_(?:ALGO|PROTO).{0,80}(?:invalid|not (?:supported|available))"
)
"""src/enqueue.cc (topoGetAlgoInfo) v2.18 and later; src/tuning/tuning.cc from v2.31 on."""
_NO_NETWORK = regex(
    r"network \S{1,60} not found|Failed to initialize (?:any )?NET plugin|Could not find (?:net|NET) plugin"
)
"""src/net.cc v2.19 and later, src/plugin/net.cc from v2.27 on."""


@dataclass(frozen=True, slots=True)
class FailedSetting:
    """One variable and value that failed: what it did, the lines that show it, the processes that have it."""

    name: str
    value: str
    what: str
    expected: str
    fix: str
    severity: Severity
    sure: Confidence
    given: Given
    shown: tuple[Origin, ...]
    processes: tuple[int, ...]


Shows = Callable[[Job, Process], Origin | None]
"""The line by which a process shows that a setting of its own failed."""


@dataclass(frozen=True, slots=True)
class _Failure:
    names: tuple[str, ...]
    what: str
    expected: str
    fix: str
    shows: Shows
    sure: Confidence = Confidence.HIGH


def _no_device(job: Job, process: Process) -> Origin | None:
    given = process.settings["NCCL_IB_HCA"].value.strip()
    if not given or given.startswith("^") or process.hcas:
        return None
    return next((message.origin for message in process.said("no hca")), None)


def _event(pattern: re.Pattern[str]) -> Shows:
    def shows(job: Job, process: Process) -> Origin | None:
        own = (each for each in job.events if (each.host, each.pid) == (process.host, process.pid))
        return next((each.origin for each in own if pattern.search(each.text)), None)

    return shows


_FAILURES = (
    _Failure(("NCCL_IB_HCA",), "leaves NCCL without an RDMA device: no such name, or none in the container",
             "names of devices that `ibv_devices` lists in the job's container",
             "`ibv_devices` in the job's container lists the names: correct NCCL_IB_HCA, or give the container its"
             " devices", _no_device, Confidence.MEDIUM),
    _Failure(("NCCL_ALGO", "NCCL_PROTO", "NCCL_SYM_KERNEL"), "leaves no algorithm for an operation of this job",
             "a value that has an algorithm for each operation in use",
             "unset it, or allow a second one: NCCL_ALGO=Ring,Tree", _event(_NO_ALGORITHM)),
    _Failure(("NCCL_NET",), "asks for a network that does not come up",
             "a network whose plugin loads, or NCCL's own: IB, Socket",
             "unset NCCL_NET, or mend the plugin: `grep NET/Plugin` in the log says why", _event(_NO_NETWORK)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Refusal:
    """A warning by which NCCL refuses a value, whether or not the log shows the setting itself."""

    words: re.Pattern[str]
    name: str
    what: str
    expected: str
    fix: str


REFUSALS = (
    Refusal(regex(r"NCCL_IB_PKEY_VALUE=\S{1,20} not found in PKey table"), "NCCL_IB_PKEY_VALUE",
            "a port of a NIC has no such partition key", "a key that all ports of the job have",
            "`grep . /sys/class/infiniband/*/ports/*/pkeys/*` lists the keys; the subnet manager gives them"),
    Refusal(regex(r"NCCL cannot use (?:more than \d{1,5} (?:rails|[a-z-]{0,20} ?plane IDs)|a plane ID that is)"),
            "NCCL_IB_HCA", "it names more rails or planes than NCCL takes", "at most 8 rails and 13 planes, from 0 on",
            "count rails and planes in NCCL_IB_HCA (`name:port:rail:plane`) from 0 on, or leave them out"),
    Refusal(regex(r"Inconsistent rail/plane for net "), "NCCL_IB_HCA",
            "rail or plane of a NIC are not those of the topology file", "the same rails and planes in both",
            "write them in one place only: NCCL_IB_HCA, or NCCL_TOPO_FILE"),
)  # fmt: skip
"""SOURCE: NCCL src/transport/net_ib/init.cc, src/graph/search.cc, topo.cc v2.30 and later."""


def failed_settings(job: Job) -> Iterator[FailedSetting]:
    """Settings that the job's own lines show to have failed. Only of a job that failed: where NCCL went on with
    something slower, NET001 tells of that, and of the settings."""
    for failure in _FAILURES if failed(job) else ():
        for name in failure.names:
            yield from _of_name(job, failure, name, Severity.ERROR)


def _of_name(job: Job, failure: _Failure, name: str, severity: Severity) -> Iterator[FailedSetting]:
    met: dict[str, list[tuple[int, Given, Origin | None]]] = {}
    for number, process in enumerate(job.processes):
        given = process.settings.get(name)
        if given is not None and given.how == "environment" and (line := failure.shows(job, process)) is not None:
            met.setdefault(given.value, []).append((number, given, line))
    for value, told in met.items():
        if name == "NCCL_NET" and _device_fails(job, [number for number, _, _ in told]):
            continue  # the network is there, and its device is not
        yield FailedSetting(
            name, value, failure.what, failure.expected, failure.fix, severity, failure.sure, told[0][1],
            tuple(line for _, _, line in told if line is not None), tuple(number for number, _, _ in told),
        )  # fmt: skip


def _device_fails(job: Job, processes: Sequence[int]) -> bool:
    return any("NCCL_IB_HCA" in job.processes[at].settings and _no_device(job, job.processes[at]) for at in processes)
