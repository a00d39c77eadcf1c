"""The machine itself at fault, by its kernel log: the kernel stops or breaks its own rules, a processor hangs, memory
loses data or is used up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import NodeCheck, advice_of
from topodiag.checks.shared.node.kernel import log_was_read, no_log, times
from topodiag.model.finding import Finding, Outcome
from topodiag.model.node import Node
from topodiag.words.own_data import own_data

_SHOWN = 4


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
