"""Processors and NUMA nodes."""

import re
from typing import List, Optional, Set

from topodiag_probes.interface import Context, Probe, TreeProbe
from topodiag_probes.reduced import cpuinfo
from topodiag_probes.tree import Tree

CPUINFO = "proc/cpuinfo"
NODES = "sys/devices/system/node"
CPUS = "sys/devices/system/cpu"
CPUINFO_LIMIT = 4 * 1024 * 1024
"""1.5 KiB for each processor, and there may be a thousand."""

_NODE = re.compile(r"node[0-9]+\Z")


def one_per_socket(text: str) -> str:
    """The first processor's block of each socket (`physical id`), or of all when the kernel names no sockets (Arm)."""
    seen: Set[str] = set()
    kept: List[str] = []
    for block in text.split("\n\n"):
        match = re.search(r"^physical id[ \t]*:[ \t]*(\S+)", block, re.MULTILINE)
        socket = match.group(1) if match else ""
        if block.strip() and socket not in seen:
            seen.add(socket)
            kept.append(block.strip("\n"))
    return "\n\n".join(kept)


class SysCpu(TreeProbe):
    """Sockets, NUMA nodes and their distances."""

    id = "sys-cpu"
    kind = "sys-cpu"
    file = "trees/sys-cpu.tree"
    about = "processor model of each socket, NUMA nodes, distances, governor"
    keeps = ("model of each socket, NUMA nodes, their processors and distances, governor",)
    needs = "/proc/cpuinfo"
    absent = "no processors in sysfs"

    def paths(self) -> Optional[List[str]]:
        return [CPUINFO, NODES, CPUS]

    def collect(self, tree: Tree, ctx: Context) -> None:
        tree.texts(NODES, ("online", "possible"))
        for node in ctx.root.names(NODES):
            if not _NODE.match(node):
                continue
            path = "%s/%s" % (NODES, node)
            cpus = tree.text(path + "/cpulist") or ""
            tree.texts(path, ("cpumap", "distance"))
            first = re.match(r"[0-9]{1,6}", cpus)
            if first:
                tree.text("%s/cpu%s/topology/physical_package_id" % (CPUS, first.group(0)))
        tree.texts(CPUS, ("online", "possible"))
        tree.texts(CPUS + "/cpu0/cpufreq", ("scaling_governor", "scaling_driver"))
        try:
            text = ctx.root.read(CPUINFO, CPUINFO_LIMIT).decode("utf-8", "replace")
        except OSError:
            return
        tree.put(CPUINFO, cpuinfo(one_per_socket(text)))


def probes() -> List[Probe]:
    return [SysCpu()]
