"""What a scheduler or a monitor of nodes says of a node, as findings of the checks that judge such a fault.

The sentence is a verdict without its evidence: it counts where the check itself found nothing, and never more than
medium; a line of a tool that topodiag does not know is a warning of low confidence, and nothing where the check looked
and found all well. A sentence that names no part becomes a line that nothing explains (`checks/node/troubles.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from topodiag.checks.shared.tables import told_by_tables
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity, Status, Where
from topodiag.model.node import Node
from topodiag.model.system import HELD, REPORTED, TOLD_OF, KernelEvent
from topodiag.words.fold import plural

MOST_SHOWN = 8
_PASSING = frozenset({"subnet-event"})
"""Events that connections live through: a remark."""
_NAMED = re.compile(rf"(\S{{1,253}})(?:{re.escape(HELD)}| gives out | has the (?:condition|label) )")
"""What begins with the nodes that it is of."""
_COSTS = {
    "peermem": "without DMA-BUF the traffic of GPUs goes through the memory of the host",
    "registration": "the program fails here, or its traffic goes through the memory of the host",
    "provider": "no RDMA over that device from here: sockets, or the program ends",
    "devices": "no RDMA over that device from here",
    "link-slow": "what goes over this link is held to its pace",
    "link-errors": "packets are sent again, and connections die when it is many",
    "lossy": "a lost packet is repeated with all that followed it: little loss costs much bandwidth",
    "mtu": "large packets are lost, or queue pairs do not connect",
    "pkey": "queue pairs of that port do not connect",
    "gid": "queue pairs of that port do not connect, or time out",
    "subnet": "ports get no address, or connections break when addresses change",
    "tcp-loss": "packets are lost on that path; RDMA over it repeats them, too",
    "tcp-slow": "bootstrap, storage and NET/Socket go at this pace",
    "ecmp": "pairs that share an uplink share its bandwidth",
    "switch": "connections over it lose packets or end when their retries run out",
    "pairs": "each ring goes at the pace of its slowest pair",
    "plugin": "NCCL goes on with its own networks: sockets where the fabric needs the plug-in",
    "qp": "queue pairs of that port do not connect",
    "subnet-event": "none by itself; with errors of connections it shows when the fabric changed",
    "route": "ranks at both ends do not meet: init hangs or fails",
    "ranks-alone": "nothing is communicated between them: the numbers are those of single nodes",
    "gpu-taken": "the program runs out of memory, or leaves that GPU alone",
    "two-ways": "the job has the rate of the other interface, or its peers drop what comes from there",
    "unlisted": "the request waits for a node that never comes, and nothing starts",
    "sockets": "1 to 3 GB/s for each interface, and the host's cores copy the data",
}
_BY = dict.fromkeys(("link-slow", "link-errors"), "by the word of a tool of the network") | {
    "two-ways": "by the kernel's own table of sockets",
    "unlisted": "by the addresses that the text names",
    "peermem": "as modprobe says", "registration": "as a program says", "devices": "as ibv_devinfo says",
    "adapter-firmware": "as lspci says",
}  # fmt: skip

WORDS: dict[str, tuple[str, str, str, str]] = {
    "gpu-lost": ("GPU001", "a GPU is lost", "GPUs that all answer",
                 "`nvidia-smi -L` and `dmesg -T | grep -i xid` on the node: which GPU is missing, and since when"),
    "gpu-count": ("GPU001", "the node has fewer GPUs than it should have", "the GPUs that it is configured with",
                  "`nvidia-smi -L` and `lspci -d 10de:` on the node: is a GPU lost, or does the driver not run?"),
    "gpu-memory": ("GPU002", "a GPU has a fault of its memory", "no uncorrectable error, no row that waits for a remap",
                   "`nvidia-smi -q -d ECC,ROW_REMAPPER` on the node: which GPU, and whether a reset mends it"),
    "xid": ("GPU003", "the driver logged an Xid", "no Xid of a fault of the hardware",
            "`dmesg -T | grep -i xid` on the node: the number says which part"),
    "nvlink": ("NVL001", "NVLinks are not as they should be", "all NVLinks active",
               "`nvidia-smi nvlink -s` and `nvidia-smi nvlink -e` on the node: which GPU and which links"),
    "nvlink-errors": ("NVL003", "NVLinks have errors", "counters that stay as they are under load",
                      "`nvidia-smi nvlink -e` twice with a minute between, under load: which GPU and link count"),
    "fabric": ("NVL005", "the NVLink fabric is not ready", "a fabric manager that runs, and a fabric that is complete",
               "`systemctl status nvidia-fabricmanager` and `nvidia-smi -q | grep -A6 Fabric` on the node"),
    "gpu-clocks": ("GPU004", "clocks of GPUs are held down", "clocks that the product reaches",
                   "`nvidia-smi -q -d PERFORMANCE,CLOCK` on the node: the reason that holds them"),
    "gpu-slow": ("GPU006", "copies to or from a GPU are slower than they should be", "copies as fast as those of"
    " its siblings",
                 "`nvbandwidth` or `bandwidthTest` for each GPU, then `sudo lspci -vv`: LnkSta beside LnkCap of"
                 " that GPU"),
    "port-flap": ("NIC003", "the link of a network port goes down and comes back", "links that stay up",
                  "`dmesg -T | grep -iE 'link|mlx5'` on the node; clean and reseat the cable of that port"),
    "port-count": ("NIC005", "the node has fewer adapters than it should have", "all adapters of the node",
                   "`lspci | grep -i mellanox` and `ibstat -l` on the node: is it off the bus, or without its driver?"),
    "link-slow": ("NIC002", "a link of the fabric is below what it should be", "links at what both ends can do",
                  "`iblinkinfo` for that port: what it runs at and what both ends could do; then its cable"),
    "link-errors": ("NIC003", "a link of the fabric has errors", "counters of errors that stay as they are under load",
                    "`mlxlink -d DEVICE -c` or `perfquery -x` for that port, twice with a minute between; its cable"),
    "adapter-firmware": ("NIC003", "an adapter runs no firmware, and is no network device until it is burnt anew",
                         "adapters that run their firmware",
                         "`mstflint -d BUS_ID q` on the node, burn the vendor's image for its board id, then switch the"
                         " power off and on; if it stays so, the adapter is to be replaced"),
    "lossy": ("NET009", "RoCE traffic is without flow control, or rides another class", "one class with flow control,"
              " the same at hosts and switches, that the traffic rides",
              "`mlnx_qos -i IF` at each host beside the switch's PFC of that port; `ethtool -S IF | grep prio`: which"
              " priority carries the bytes"),
    "mtu": ("NIC004", "the MTU is not the same all along the path", "one MTU at both hosts and at each switch port",
            "`ip link show IF | grep mtu` on both nodes, and `ping -M do -s 8972 PEER` over that interface"),
    "pkey": ("NET008", "a port is not a member of the partition in use", "the partition's key in each port's table",
             "`cat /sys/class/infiniband/DEVICE/ports/1/pkeys/*` on both nodes beside partitions.conf of opensm"),
    "gid": ("NET008", "the GID of a port is not at the index in use", "RoCE v2 with a routable address at that index",
            "`show_gids` on both nodes: NCCL_IB_GID_INDEX unset lets NCCL 2.21 and later choose"),
    "tcp-loss": ("NIC003", "TCP sends many packets again", "hardly any packet sent again",
                 "`ethtool -S IF` at both ends before and after: discards and CRC errors; drops of the switches"),
    "tcp-slow": ("BEN001", "a test of TCP is far below the rate of the interface", "a tenth of it by one stream",
                 "`iperf3 -P 8` and `ib_write_bw` between the same hosts and between others: the path, or one host?"),
    "ecmp": ("BEN005", "flows share some of the paths, and others are idle", "flows spread over all uplinks",
             "the uplinks' counters during a run; adaptive routing, or other hash fields and UDP source ports"),
    "switch": ("NIC003", "a switch of the fabric failed, restarted or loses packets", "switches that lose nothing",
               "the switch's log at that time, counters of its ports, and the jobs whose paths cross it"),
    "pairs": ("BEN005", "some pairs of hosts carry far less than the others", "pairs that carry alike",
              "the same pairs alone, then with other UDP source ports or adaptive routing: paths that share an uplink"
              " recover; one host in all slow pairs is slow itself"),
    "plugin": ("NET005", "a library that the network plug-in needs is not found", "all libraries of the plug-in found",
               "`ldd` on the plug-in in the job's container; LD_LIBRARY_PATH with libfabric and its kin on each node"),
    "qp": ("NET008", "a queue pair is refused by the adapter", "queue pairs that come to RTR and RTS",
           "`show_gids`, pkeys and active MTU of both ends: an index that is empty, or a larger MTU, is refused so"),
    "subnet-event": ("NET008", "the subnet manager told its ports something", "no such event while a job runs",
                     "the log of opensm at that time: which connections lived through it?"),
    "subnet": ("NET008", "the subnet manager does not answer, or another one took over", "one master subnet manager",
               "`sminfo` and `ibstat | grep SM` on the node; the log of opensm at that time"),
    "route": ("NET002", "a peer is not reached", "a way to each peer, and open ports between the nodes",
              "`ip route get PEER` names the interface; then VLAN and routes of the switch, then firewalls between"),
    "unlisted": ("NET002", "a node is asked for by an address that no node of the cluster has",
                 "one address for each node, the same to the cluster and to who asks for it",
                 "`ray list nodes` beside `ip -brief addr` on each node: `ray start --node-ip-address` and VLLM_HOST_IP"
                 " (or what the launcher takes for it) must name the same address of the network between the nodes"),
    "two-ways": ("NET002", "of two interfaces in one network data leaves by the one that its peers are not"
                 " numbered like",
                 "one interface for each network, or routes by the address that a socket has",
                 "`ip route get PEER` on each node: give the interfaces networks of their own (a longer netmask), or"
                 " the slow one a larger metric"),
    "sockets": ("NET001", "a program takes sockets in place of RDMA", "RDMA where adapters for it are there",
                "`ibv_devinfo` and `ls /dev/infiniband` in the job's container: is the device there, and its library?"),
    "port-down": ("NIC001", "a network port is not active", "ports that are Active and LinkUp",
                  "`ibstat` on the node: state and physical state of that port; then its cable and its switch port"),
    "peermem": ("GDR001", "the module for RDMA with GPU memory is not loaded", "nvidia-peermem loaded, or DMA-BUF",
                "`dmesg | grep -i peer` after `modprobe nvidia-peermem`: reinstall the driver after the RDMA stack"),
    "registration": ("GDR001", "memory of a GPU cannot be registered for RDMA", "nvidia-peermem loaded, or DMA-BUF",
                     "`lsmod | grep peer` on the node and in the container's host; without it DMA-BUF needs kernel 5.12"
                     " and the open kernel modules: load nvidia-peermem"),
    "rdma-count": ("HST002", "pods on this node get no device for RDMA", "the devices that the node has, given out",
                   "the log of the RDMA or SR-IOV device plug-in on that node: which devices it left out, and why"),
    "devices": ("HST002", "an RDMA device that is seen cannot be opened", "a device node for each device that is seen",
                "`ls -l /dev/infiniband` here and on the host: uverbs of the devices must be passed in"),
    "provider": ("HST002", "an RDMA device has no user-space driver here", "the library of its provider in the image",
                 "`ls /etc/libibverbs.d` here, and `ibv_devices` here and on the host: install ibverbs-providers"
                 " (rdma-core) in the image, of a version that fits the host's driver"),
    "storage": ("HST006", "storage is missing or does not answer", "storage that is mounted and answers",
                "`findmnt` and `timeout 10 ls` of what is named, on this node and on another"),
    "pcie": ("PCI001", "a PCIe link is below what it should be", "links at the width and speed of their devices",
             "`sudo lspci -vv` on the node: LnkSta beside LnkCap of that device"),
    "iommu": ("PCI004", "the IOMMU translates the accesses of devices", "groups of type `identity` (passthrough)",
              "`cat /proc/cmdline`, `dmesg | grep -i iommu`: boot bare metal with iommu=pt; a guest's is the host's"),
    "acs": ("PCI004", "PCIe access control (ACS) sends traffic between peers through the root",
            "ACS off on the switch ports between peers",
            "`sudo lspci -vvv | grep ACSCtl` on the node: bridges with ReqRedir+; a guest's are the host's"),
    "shm": ("HST001", "shared memory is too small", "room in /dev/shm for NCCL's and the data loaders' segments",
            "`df -h /dev/shm` in the job's container; `--shm-size=8g`, `--ipc=host`, or an emptyDir of medium Memory"),
    "memlock": ("HST001", "the limit of locked memory is too low", "`ulimit -l` is unlimited in the job",
                "`ulimit -l` inside the job: it is the launcher's daemon that passes the limit on (LimitMEMLOCK=)"),
    "rank-late": ("JOB008", "a rank takes longer than the others for its own part of a step",
                  "ranks that take the same time",
                  "what that rank does: data loader, logging, checkpoint, clocks of its GPU; the others only wait"),
    "versions-differ": ("JOB002", "a host has another version than the others", "one version on all nodes",
                        "start the same image on all nodes; which library is loaded: LD_LIBRARY_PATH, `pip list`"),
    "settings-differ": ("JOB003", "a host has another setting than the others", "one value on all ranks",
                        "export settings once, in the job script; remove nccl.conf lines of single nodes"),
    "ranks-alone": ("JOB001", "processes that one command started do not know of each other",
                    "one job of all processes: one list of devices with all ranks",
                    "build nccl-tests with MPI=1 (`ldd all_reduce_perf | grep mpi`): without it each process measures"
                    " the GPUs of its own node, and nothing passes between nodes"),
    "gpu-shared": ("JOB004", "several processes use one GPU", "one process of one job on each GPU",
                   "`nvidia-smi` and `ps -o user,pid,lstart,args -p PID` on the node: whose are they, and is that job"
                   " over? In one job: set the device from the local rank before init"),
    "gpu-taken": ("JOB004", "memory of a GPU is taken before the program has any", "a GPU whose memory is free",
                  "`nvidia-smi --query-compute-apps=pid,gpu_bus_id,used_memory --format=csv` on the node: whose process"
                  " has it? None listed: `sudo fuser -v /dev/nvidia*`; end what was left behind, or take another GPU"),
    "pcie-errors": ("PCI003", "a PCIe link has errors", "no uncorrected error of PCIe",
                    "`dmesg -T | grep -i aer` on the node: which device, and is it always the same slot?"),
}  # fmt: skip
"""By part: the check, what is wrong, what should be, what to look at first."""

_BY_NUMBERS = {
    "gpu-taken": "by the numbers that the text gives",
    "ranks-alone": "by the lists of their devices",
}
_OF_SOME = frozenset({"fabric", "nvlink"})
"""Parts that a node may do without, by what its GPUs are: a Fabric Manager that does not start beside one GPU."""
OF_JOBS = ("BEN005", "JOB001", "JOB002", "JOB003", "JOB008", "NET001", "NET002", "NET005", "NET008")
"""Checks of jobs and benchmarks of which tools speak that know no job: of ranks and hosts, of ways to peers."""


def with_reports(outcome: Outcome, node: Node) -> Outcome:
    """The outcome of a check with what others say of the same fault, where it found none itself."""
    if any(finding.severity > Severity.INFO for finding in outcome.findings):
        return outcome
    told_by = (REPORTED,) if outcome.status is Status.CLEAN else (REPORTED, TOLD_OF)
    lacking = _OF_SOME if outcome.status is Status.NOT_APPLICABLE and node.gpus else frozenset()
    by_part: dict[tuple[str, str, str], list[KernelEvent]] = {}
    known = {(event.origin.source, event.origin.line) for event in node.events if event.kind.startswith(REPORTED)}
    for event in (*node.events, *told_by_tables(node)):
        by = next((each for each in told_by if event.kind.startswith(each)), "")
        part = event.kind.removeprefix(by)
        if by == TOLD_OF and (event.origin.source, event.origin.line) in known:
            continue  # two readers of one line: that of its tool says more
        if by and part in WORDS and part not in lacking and WORDS[part][0] == outcome.check:
            named = _NAMED.match(event.text)
            by_part.setdefault((by, part, named[1] if named is not None else node.host), []).append(event)
    if not by_part:
        return outcome
    findings = tuple(_finding(where, by, part, events) for (by, part, where), events in by_part.items())
    findings = (*findings, *outcome.findings)
    return Outcome(outcome.check, Status.FINDING, node.host, findings, coverage=outcome.coverage)


def of_jobs(node: Node) -> tuple[Outcome, ...]:
    """What a text that is no log of a job says, of checks that judge no node; none without such a text."""
    asked = (Outcome(check, Status.NOT_APPLICABLE, node.host) for check in OF_JOBS)
    return tuple(each for one in asked if (each := with_reports(one, node)).status is Status.FINDING)


def _finding(nodes: str, by: str, part: str, events: Sequence[KernelEvent]) -> Finding:
    check, wrong, expected, look = WORDS[part]
    known = by == REPORTED
    told = _BY_NUMBERS.get(part, "in the text's own words")
    whose = _BY.get(part, "by the word of a scheduler or a test of the node") if known else told
    said = events[0].text[:160]
    more = f", and {plural(len(events) - 1, 'other line')} alike" if len(events) > 1 else ""
    return Finding(
        id=check,
        severity=Severity.INFO if part in _PASSING else Severity.ERROR if known else Severity.WARNING,
        message=f"{wrong}, {whose}: {said}{more}",
        observed=said,
        expected=expected,
        fix=(look, "this sentence is all that was given: `topodiag scan` on the node shows more"),
        where=Where(nodes=(nodes,)),
        cost=Cost(text=_COSTS.get(part, "a job on this node meets the fault, or does not start there")),
        evidence=tuple(event.origin for event in events[:MOST_SHOWN]),
        confidence=Confidence.MEDIUM if known else Confidence.LOW,
    )


__all__ = ["OF_JOBS", "WORDS", "of_jobs", "with_reports"]
