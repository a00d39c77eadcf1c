"""Probes that never answered: a read that blocks for ever is how a driver or a device shows that it is stuck."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.node.kernel import no_gpu
from topodiag.model.finding import Finding, Outcome
from topodiag.model.node import Node
from topodiag.model.provenance import NotObserved, Origin, Topic
from topodiag.words.units import few, in_s, plural

LEAST_S = 5.0
"""Seconds that a probe must have had: one that got less can have been slow."""
_SHOWN = 4


class ProbeHangs(NodeCheck, id="HST005"):
    """HST005: a probe of the node hangs

    What it finds
        Commands, libraries and files of the node that gave no answer in the time of the capture: nvidia-smi and NVML of
        a driver that is stuck, files of a device that is dying, a node on which the whole collector never came to its
        end.

    Why it matters
        A job that asks the same driver waits as the probe did: NCCL's start hangs on this node, and all other ranks
        wait for it. What the probe would have shown is not in the evidence: other faults of the node can be hidden.

    Evidence it reads
        The manifest of a capture: items that were given up, and the seconds that each of them had. Bundles of nodes
        that hung, as `topodiag fleet collect` writes them.

    When it stays silent
        A tool that is not installed, refused, or ended with an error: none of them hangs. A probe that had less than 5
        seconds, or whose turn never came: unknown, it can have been slow. A capture in which nothing asked for the
        GPUs: unknown. Texts that are no capture: not applicable. Where another source answered for the same part it is
        a warning, else an error.

    How to confirm
        timeout 60 nvidia-smi -L; echo $?                124: it hangs
        ps -eo pid,stat,wchan:30,args | grep ' D'        processes that wait in the kernel
        dmesg | grep -iE 'xid|nvrm|hung task'            what the driver said before

    How to fix
        Drain the node. Read the kernel log for the first error of the driver or the device, and reboot: processes in
        state D do not end otherwise. Where nvidia-smi is only slow, switch persistence mode on
        (nvidia-persistenced): without it the driver starts all GPUs anew for each call.

    References
        NVIDIA driver persistence documentation; Linux Documentation/admin-guide/sysctl/kernel.rst (hung_task).
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        late = [gap for gap in judged.not_observed if gap.timed_out_s is not None]
        hung = [gap for gap in late if (gap.timed_out_s or 0.0) >= LEAST_S]
        if hung:
            return self.any_of(judged, self._faults(judged, hung))
        if late:
            return self.unknown(judged, f"{plural(len(late), 'probe')} had less than {in_s(LEAST_S)} to answer")
        if judged.time.value is None:
            return self.not_applicable(judged, "the evidence is no capture of a node")
        if Topic.GPUS not in judged.topics and not no_gpu(judged):
            return self.unknown(judged, "nothing in the evidence asked the driver for its GPUs")
        return self.clean(judged, "every probe ended by itself")

    def _faults(self, node: Node, hung: Sequence[NotObserved]) -> Iterator[Finding]:
        """One for what nobody else answered for, one for the rest."""
        gaps = [gap for gap in hung if (gap.of - node.topics if gap.of else not node.topics)]
        other = [gap for gap in hung if gap not in gaps]
        if gaps:
            yield self._fault(node, gaps, "nothing else answered for what they ask", sure=True)
        if other:
            yield self._fault(node, other, "other sources answered for the same parts", sure=False)

    def _fault(self, node: Node, hung: Sequence[NotObserved], beside: str, *, sure: bool) -> Finding:
        tools = Tally(gap.what.split(" ")[0] for gap in hung)
        names = [f"{name} ({plural(count, 'call')})" if count > 1 else name for name, count in tools.items()]
        longest = max(gap.timed_out_s or 0.0 for gap in hung)
        verb = "hangs" if len(hung) == 1 else "hang"
        return self.finding(
            self.where(node),
            "hung probes",
            f"{few(names, _SHOWN)} {verb}: no answer within {in_s(longest)}",
            sure=sure,
            observed="; ".join(f"{gap.what}: {gap.why}" for gap in hung[:_SHOWN])
            + (f"; {plural(len(hung) - _SHOWN, 'more probe')}" if len(hung) > _SHOWN else "")
            + f"; {beside}",
            evidence=(Origin("manifest.json", text=f"{gap.what}: {gap.why}") for gap in hung),
        )
