"""The host by its kernel log: storage that does not answer and processes that wait for it; the kernel stops or breaks
its own rules, a processor hangs, memory loses data or is used up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import inf

from topodiag.checks.interface import NodeCheck, advice_of
from topodiag.checks.shared.node.kernel import lasted_s, log_was_read, no_log, times
from topodiag.model.events import Event
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.words.own_data import own_data
from topodiag.words.units import few, grouped, in_s, plural

_DISKS = ("kernel.disk_error", "kernel.file_system_error")
PULLED_S = 5.0
"""Longest time after a USB device was pulled in which what still reads its disk meets errors."""
_SHOWN = 4


class StorageStalls(NodeCheck, id="HST006"):
    """HST006: storage does not answer, or processes wait in the kernel

    What it finds
        Servers of NFS, Lustre, Ceph and CIFS that the kernel waits for, disks and file systems with errors, and tasks
        that were blocked in the kernel for minutes. Jobs whose writes fail: a file system that is full, over its quota,
        read-only, or gone.

    Why it matters
        A rank that writes a checkpoint, reads a batch or starts its program from that storage does not come to the next
        collective, and all other ranks wait for it until their watchdog ends the job. It looks like a network fault.

    Evidence it reads
        The kernel log: `nfs: server .. not responding`, `Lustre: .. Connection to .. was lost`, `I/O error, dev ..`,
        `EXT4-fs error`, `XFS .. Shutting down`, `task .. blocked for more than .. seconds`. A job's output: `[Errno
        28]`, `No space left on device`, `Disk quota exceeded`, `Read-only file system`, `Stale file handle`.

    When it stays silent
        A server that answered again, as far as the log goes, is a note; it is likely to be why ranks waited about as
        long at that time. In a few lines of a log a server that does not answer is likely: it may have come back in the
        rest. Tasks that were blocked are a warning, as the line does not say for what they wait, and nothing beside
        storage that does not answer. A disk of which the first error comes right after a USB device was pulled. Shared
        memory without room is a limit (HST001). No kernel log in the evidence: unknown. A few lines of one: unknown.

    How to confirm
        ps -eo pid,stat,wchan:30,args | grep ' D'        processes that wait in the kernel
        timeout 10 ls MOUNT; echo $?                      124: the file system hangs
        dmesg -T | grep -iE 'not responding|I/O error|blocked for more'

    How to fix
        Find out why the server or the disk does not answer, from another client as well. Drain the node where its own
        disk fails. Give a job that checkpoints to slow storage a longer timeout, or let it write in the background.

    References
        Linux net/sunrpc/clnt.c, kernel/hung_task.c, Documentation/admin-guide/sysctl/kernel.rst; Lustre manual.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        events = [event for event in judged.events if event.kind == "storage" and "name" in event.fields]
        tasks = [event for event in judged.events if event.kind == "hung-task"]
        stalls = [*_servers(self, judged, events, log_was_read(judged)), _disks(self, judged, events)]
        named = any(stall is not None and stall.severity is Severity.ERROR for stall in stalls)
        # What is blocked beside storage that does not answer waits for it.
        answer = self.any_of(judged, (*stalls, None if named else _blocked(self, judged, tasks)))
        return answer if answer.findings or log_was_read(judged) else self.unknown(judged, no_log(judged))


def _disk_of(event: Event) -> str:
    """The disk of a partition, or the name as it stands."""
    name = str(event.fields.get("name", ""))
    return name.rstrip("0123456789") if name.startswith("sd") else name


def _pulled(events: Sequence[Event]) -> set[str]:
    """Disks whose first error comes right after a USB device was pulled: nothing failed."""
    pulled_s = -inf
    first: dict[str, bool] = {}
    for event in events:
        if "USB disconnect" in event.text:
            pulled_s = event.time_s or -inf
        elif event.signature in _DISKS:
            first.setdefault(_disk_of(event), 0 <= (event.time_s or -inf) - pulled_s <= PULLED_S)
    return {name for name, was_pulled in first.items() if was_pulled and name.startswith("sd")}


def _servers(check: NodeCheck, node: Node, events: Sequence[Event], whole: bool) -> Iterator[Finding]:
    """Of some lines of a log nobody knows whether the server answered after the last one."""
    for what, server in own_data("checks/host/storage").items():
        outages: dict[str, list[list[Event]]] = defaultdict(list)
        answering: set[str] = set()
        for event in events:
            name = str(event.fields["name"])
            if event.signature in server["silent"]:
                if name in answering or name not in outages:
                    outages[name].append([])
                answering.discard(name)
                outages[name][-1].append(event)
            elif event.signature == server["back"] and name in outages.keys() - answering:
                answering.add(name)
                outages[name][-1].append(event)
        for name, several in outages.items():
            back = name in answering
            kernel_events = max(several, key=lasted_s) if back else several[-1]
            seconds = lasted_s(kernel_events)
            yield check.finding(
                check.where(node),
                check.advice("servers", named=name),
                f"{what} {name} {'did not answer for a while' if back else 'does not answer'}",
                severity=Severity.INFO if back else Severity.ERROR,
                observed=f"{plural(sum(map(len, several)), 'line')}: {kernel_events[0].text[:160]}"
                + (f"; it came back after {in_s(seconds)}" if seconds and back else "; it came back" if back else ""),
                evidence=(*kernel_events[: _SHOWN - 1], *kernel_events[_SHOWN - 1 :][-1:]),
                confidence=Confidence.HIGH if back or whole else Confidence.MEDIUM,
            )


def _disks(check: NodeCheck, node: Node, events: Sequence[Event]) -> Finding | None:
    pulled = _pulled(node.events)
    of_disks = (event for event in events if event.signature in _DISKS and _disk_of(event) not in pulled)
    by_disk = grouped((str(event.fields["name"]), event) for event in of_disks)
    first = [own[0] for own in by_disk.values()]
    if not first:
        return None
    return check.finding(
        check.where(node),
        "disks",
        f"{few(sorted(by_disk), _SHOWN)}: the kernel reports errors of the disk or its file system",
        observed="; ".join(event.text[:160] for event in first[:_SHOWN]),
        evidence=first,
    )


def _blocked(check: NodeCheck, node: Node, tasks: Sequence[Event]) -> Finding | None:
    if not tasks:
        return None
    names = list(dict.fromkeys(str(event.fields["name"]) for event in tasks))
    longest = max(int(event.fields["seconds"]) for event in tasks)
    return check.finding(
        check.where(node),
        "blocked tasks",
        f"{few(names, _SHOWN)}: blocked in the kernel for {longest} seconds or longer",
        observed=f"{plural(len(tasks), 'line')}: {tasks[0].text[:160]}",
        evidence=tasks[:_SHOWN],
    )


class MachineStops(NodeCheck, id="HST007"):
    """HST007: the kernel stops, a processor hangs, or memory loses data

    What it finds
        A panic of the kernel with its reason; processors that were stuck (soft and hard lockups, stalls of RCU); errors
        of the main memory, and of processors, that could not be corrected. Faults of the kernel's own code, with the
        module whose work it was. Processes that the kernel killed because the machine had no memory left.

    Why it matters
        All ranks of the node end with it, or wait, and the ranks of other nodes see a peer that no longer answers. It
        looks like a network fault.

    Evidence it reads
        The kernel log: `Kernel panic - not syncing: ..`, `BUG: soft lockup`, `detected hard LOCKUP`, `rcu: INFO: ..`,
        `EDAC MC0: 1 UE`, `mce: [Hardware Error]: .. Machine Check Exception`, `BUG: ..`, `kernel BUG at ..` and the
        `Workqueue:` and `last function:` below them, `Out of memory: Killed process ..` and, up to Linux 5.2,
        `Out of memory: Kill process ..`.

    When it stays silent
        Errors of memory that were corrected, and `mce: [Hardware Error]` without one of these lines: it also stands
        for what was corrected. A process that met its own memory limit: JOB009 tells it. Expedited stalls of RCU below
        a thousand jiffies. No kernel log in the evidence, or a few lines of one without such a line: unknown.

    How to confirm
        journalctl -k -b -1 | tail -50         the end of the boot before this one
        ls /var/crash /sys/fs/pstore           what the kernel left when it stopped
        ipmitool sel list | tail               what the board's own log says at that time

    How to fix
        Drain the node. Memory: have the module that the line or the board's log names exchanged. A panic names its
        reason, and the module in brackets beside the first function of its trace: a driver is updated, a machine check
        is the hardware's. Processors that were stuck in a driver's function wait for its device.

    References
        Linux kernel/panic.c, kernel/watchdog.c, kernel/rcu/tree_stall.h, drivers/edac/edac_mc.c, kernel/workqueue.c,
        lib/bug.c, mm/oom_kill.c.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        return self.any_of(judged, self._faults(judged), unknown="" if log_was_read(judged) else no_log(judged))

    def _faults(self, node: Node) -> Iterator[Finding]:
        for fault in own_data("checks/host/machine_faults")["fault"]:
            spoken = (event for event in node.events if event.kind == "cpu")
            lines = [event for event in spoken if any(name in event.text for name in fault["names"])]
            if lines:
                module = next((event.fields["module"] for event in lines if "module" in event.fields), "")
                reason = lines[-1].fields.get("reason", module and f"in the work of {module}")
                yield self.finding(
                    self.where(node),
                    advice_of(fault),
                    fault["message"] + (f": {reason}" if reason else ""),
                    observed=f"{lines[-1].text[:160]}{times(lines)}",
                    evidence=(*lines[: _SHOWN - 1], *lines[_SHOWN - 1 :][-1:]),
                )
