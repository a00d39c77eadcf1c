"""Conditions of rules that no ids show, and what contradicts their causes, by the names that rules.toml uses."""

from __future__ import annotations

from topodiag.checks.shared.node.kernel import lasted_s
from topodiag.lazy import regex
from topodiag.model.clock_text import booted, is_wall, seconds
from topodiag.model.events import Event
from topodiag.model.finding import Finding, Severity
from topodiag.model.provenance import Origin
from topodiag.verdict import clearing
from topodiag.verdict.moments import waited_s
from topodiag.verdict.one_node import wall_s
from topodiag.verdict.scene import Scene, comes_from, error_is, error_says, of_number, of_store, waits_for_all
from topodiag.words.own_data import own_data


def is_severe(cause: Finding, _: Finding, __: Scene) -> bool:
    """Whether the cause is as bad as can be."""
    return cause.severity is Severity.ERROR


def is_lost_by_itself(lost: Finding, other: Finding, _: Scene) -> bool:
    """Not where a GPU's processor does not answer and nvidia-smi shows none: the driver starts no such GPU."""
    return "(GSP)" not in other.message or "nvidia-smi finds no GPU" not in lost.message


def may_have_met_it(cause: Finding, other: Finding, scene: Scene) -> bool:
    """Not where the driver found the lost GPU again at a later start, and nothing shows when the job ran."""
    return "at a later start" not in cause.message or any(error.ts is not None for error in scene.errors(other))


def are_links_of_the_gpu(cause: Finding, other: Finding, scene: Scene) -> bool:
    if _ends_a_job(scene):  # then the failure is what its user asks for, and the links are its trace
        return False
    return "nvlink" in f"{other.message} {other.observed}".lower() and same_gpu(cause, other, scene)


def _ends_a_job(scene: Scene) -> bool:
    """Whether a job of this case died of an NVLink error, by its own first error."""
    errors = scene.first_errors.values()
    return any(event is not None and "nvlink error" in event.text.lower() for event in errors)


def same_gpu(cause: Finding, other: Finding, _: Scene) -> bool:
    return bool(_gpus(cause) & _gpus(other))


def _gpus(finding: Finding) -> frozenset[str]:
    return frozenset(label.split(" ")[0] for label in (*finding.where.gpus, *finding.where.links))


_OPERATOR_POD = regex(
    r"\b(?:nvidia-(?:cuda-|operator-)?validator|(?:nvidia|dra-driver-nvidia|gpu)-[\w-]{0,60}(?:plugin|exporter)\b)"
    r"\S{0,80} .{0,60}CrashLoopBackOff"
)
"""What NVIDIA's operator starts on each node to see whether CUDA starts there, and the plug-ins that ask each GPU for
its fabric."""


def refuses_cuda(cause: Finding, other: Finding, scene: Scene) -> bool:
    """Of ends a program that names no reason, or CUDA's, and no signal or limit of another kind."""
    if other.id != "JOB009" or _OPERATOR_POD.search(other.observed) is not None:
        return True
    if not scene.same_node(cause, other):
        return False
    return "802" in other.observed or "error code" in other.message or _ends_below(cause, other)


def _ends_below(cause: Finding, other: Finding) -> bool:
    """Whether a program ends with an exception or a fatal error below the line in which CUDA refuses to start: whatever
    it says, the program has no GPU."""
    pairs = ((first, later) for first in cause.evidence for later in other.evidence if first.source == later.source)
    below = any(0 < (first.line or 0) < (later.line or 0) for first, later in pairs)
    return below and ("exception" in other.message or "fatal error" in other.message)


_WAITED = {"watchdog", "timeout"}
"""Kinds of first errors that only say that somebody is behind."""
_PATIENCE_S = 180.0
"""Seconds that a client waits before the kernel says that a server is silent (nfs(5): 60 s, tried three times)."""
_SOON_S = 60.0
"""Seconds after which queues that nobody served have timed out: the kernel reports a lockup after 20, an adapter after
some more."""
_ZONE_S = 14 * 3600.0
"""How far apart clocks of unknown zones show one moment."""


def takes_the_store(cause: Finding, other: Finding, scene: Scene) -> bool:
    if not comes_from(cause, scene, waits_for_all):
        return False
    if other.id == "JOB006":
        return "ncclUniqueId" in other.message
    errors = scene.errors(other)
    return bool(errors) and all(of_store(event) for event in errors)


def has_the_port(cause: Finding, _: Finding, scene: Scene) -> bool:
    return comes_from(cause, scene, lambda event: event.details.get("how") == "port taken")


def leaves_a_rank_to_nobody(cause: Finding, other: Finding, scene: Scene) -> bool:
    errors = scene.errors(other)
    if not errors or not comes_from(cause, scene, of_number):
        return False
    return all(of_number(event) or event.kind in _WAITED or of_store(event) for event in errors)


def is_more_than_a_wait(cause: Finding, _: Finding, scene: Scene) -> bool:
    kinds = [event.kind for event in scene.errors(cause)]
    return bool(kinds) and not _WAITED.issuperset(kinds)


def keeps_ranks_out(cause: Finding, other: Finding, scene: Scene) -> bool:
    """A watchdog reports that somebody is behind: it keeps nobody from a collective."""
    kinds = [event.kind for event in scene.errors(cause)]
    return other.id != "JOB006" or not kinds or not _WAITED.issuperset(kinds)


def lasted_as_long(cause: Finding, other: Finding, scene: Scene) -> bool:
    """What is over by now held a rank only where it lasted about as long as ranks waited, and at no other time."""
    if cause.severity is not Severity.INFO:
        return True
    lines = [(event, node) for node in scene.case.nodes for event in node.events if event.origin in cause.evidence]
    lasted = lasted_s([event for event, _ in lines])
    days = [day for event, node in lines if (day := wall_s(event, booted(node))) is not None]
    return any(
        lasted >= max(waited - _PATIENCE_S, waited / 2)
        and (not days or not is_wall(event.ts) or min(days) - _ZONE_S < event.ts < max(days) + waited + _ZONE_S)
        for job in scene.jobs_of(other)
        for event in job.events
        if (waited := waited_s(event))
    )


def comes_soon_before(cause: Finding, other: Finding, scene: Scene) -> bool:
    """Whether the first line of what may follow stands within a minute below one of the cause, by the clock of both."""
    before, after = (
        [time for node in scene.case.nodes for event in node.events
         if event.origin in finding.evidence and (time := _logged_s(event)) is not None]
        for finding in (cause, other)
    )  # fmt: skip
    return any(0 <= min(after) - time <= _SOON_S for time in before if after)


def _logged_s(event: Event) -> float | None:
    """When a line was written; of a date without a year, which compares with others of its log alone, in some year."""
    return seconds(f"Mon {event.date} 2000") if event.time_s is None else event.time_s


def is_of_this_node(cause: Finding, other: Finding, scene: Scene) -> bool:
    """Whether what a node's own NICs bring about may follow: that a node lacks devices, or takes sockets, comes from
    no port of another node."""
    own = other.id in ("NIC005", "NET001") or (other.id == "NET007" and "Socket" in other.message)
    return not own or scene.same_node(cause, other)


def was_in_use(cause: Finding, _: Finding, scene: Scene) -> bool:
    """A port that was down before the job began had no connection over it."""
    return not clearing.devices_left_out(scene, cause.where.nodes, cause.where.nics)


def fails_by_name(_: Finding, other: Finding, scene: Scene) -> bool:
    return other.id != "JOB005" or error_is(other, scene, "plugin") or error_says(other, scene, "network", "NET/")


def networks_meet(cause: Finding, other: Finding, scene: Scene) -> bool:
    if "differ" not in cause.message and cause.id != "NET007" and "some" not in cause.message:
        return False
    if other.id != "JOB005" or error_is(other, scene, "mismatch", "connect", "watchdog", "timeout"):
        return True
    return error_says(other, scene, "wrong type 3 != 4", "wrong type 4 != 3")


def lists_the_devices(cause: Finding, scene: Scene) -> tuple[Origin, ...]:
    return clearing.devices_listed(scene, cause.where.nodes, cause.where.nics)


def uses_rdma(cause: Finding, scene: Scene) -> tuple[Origin, ...]:
    return clearing.rdma_in_use(scene, cause.where.nodes)


def uses_gpudirect(cause: Finding, scene: Scene) -> tuple[Origin, ...]:
    return clearing.gpudirect_in_use(scene, cause.where.nodes) if cause.id == "GDR001" else ()


CAN_CAUSE: dict[str, tuple[str, ...]] = {
    name: tuple(entry["leads_to"]) for entry in own_data("verdict/settings")["effect"] for name in entry["variables"]
}
"""By variable, what it can lead to. A variable that is not here explains nothing."""
EFFECTS = tuple(sorted({check_id for effects in CAN_CAUSE.values() for check_id in effects} - {"JOB003"}))
"""What some setting can lead to."""


def names_the_missing(cause: Finding, other: Finding, _: Scene) -> bool:
    return bool(cause.settings and other.where.nics) and set(other.where.nics) <= set(cause.where.nics)


def can_cause(cause: Finding, other: Finding, scene: Scene) -> bool:
    names = [name for name, _ in cause.settings]
    if not any(other.id in CAN_CAUSE.get(name, ()) for name in names):
        return False
    if other.id[:3] not in ("JOB", "BEN") and not scene.same_node(cause, other):
        return False
    if other.id not in ("JOB005", "JOB006"):
        return True
    words = [word for name in names for word in own_data("verdict/settings")["error_words"].get(name, ())]
    values = [value for _, value in cause.settings if value and len(value) > 2]
    return error_says(other, scene, *names, *values, *words)


def setting_is_not_in_force(cause: Finding, scene: Scene) -> tuple[Origin, ...]:
    """A setting that is written somewhere and keeps NCCL from RDMA is not in force where NCCL uses RDMA."""
    if not any(name == "NCCL_IB_DISABLE" for name, _ in cause.settings):
        return ()
    return clearing.rdma_in_use(scene, cause.where.nodes)


def parts_ranks(cause: Finding, other: Finding, scene: Scene) -> bool:
    if other.id == "ENV001":  # the same setting, told once more for what it costs the ranks that have it
        return not {name for name, _ in cause.settings}.isdisjoint(name for name, _ in other.settings)
    channels = any("NCHANNELS" in name or "CTAS" in name for name, _ in cause.settings)
    if channels and other.id == "JOB005" and error_says(other, scene, "with family"):
        return True  # a connection of a channel that the peer does not make
    return other.id != "JOB005" or error_is(other, scene, "mismatch", "watchdog", "timeout", "connect")


_SHM_FULL = regex(r"/dev/shm is too small|\(/dev/shm\) (?:is full|holds)")  # noqa: S108 - words of a finding
_BUS_ERROR = regex(r"[Bb]us error|SIGBUS|\bsignal 7\b|exit ?code:? (?:-7|135)\b")
"""How a process ends that touches memory for which there is no room."""


def leaves_no_room(cause: Finding, other: Finding, scene: Scene) -> bool:
    """Of ends that whose line names the limit, and that of a page of a mapped file for which there is no room: the
    kernel sends SIGBUS."""
    if other.id != "JOB009":
        return True
    if not {(at.source, at.line) for at in cause.evidence}.isdisjoint((at.source, at.line) for at in other.evidence):
        return True  # the line with which it ended names the limit
    full = _SHM_FULL.search(cause.message) is not None and scene.same_node(cause, other)
    return full and _BUS_ERROR.search(f"{other.message} {other.observed}") is not None
