"""AMD's GPUs: the driver's topology in sysfs, and what amd-smi and rocm-smi say of products, links, clocks and errors.

Of the properties of a node only those are kept that tell its place and its links: others number the chip itself.
"""

from typing import List, Optional

from topodiag_probes.interface import CommandProbe, Context, Probe, Reduce, TreeProbe
from topodiag_probes.reduced import amd_static
from topodiag_probes.tree import Tree

AMD_SMI_S = 15.0
"""Seconds: the tool asks every GPU in turn."""
NODES = "sys/class/kfd/kfd/topology/nodes"
KEPT = frozenset(
    (
        "cpu_cores_count",
        "simd_count",
        "gfx_target_version",
        "location_id",
        "domain",
        "hive_id",
        "num_xcc",
        "type",
        "node_from",
        "node_to",
        "weight",
        "min_bandwidth",
        "max_bandwidth",
    )
)
"""Properties of nodes and links (Linux drivers/gpu/drm/amd/amdkfd/kfd_topology.c)."""


def placed(text: str) -> str:
    """The lines of a `properties` file that are kept."""
    return "\n".join(line for line in text.split("\n") if line.split(" ", 1)[0] in KEPT)


class SysKfd(TreeProbe):
    """GPUs and links as the driver knows them."""

    id = "sys-kfd"
    kind = "sys-kfd"
    file = "trees/sys-kfd.tree"
    about = "AMD's GPUs and the links between them, as the driver lists them"
    keeps = ("of each node and link: place, kind, weight and bandwidth",)
    needs = "/" + NODES
    absent = "no driver of AMD's GPUs for computing"

    def paths(self) -> Optional[List[str]]:
        return [NODES]

    def collect(self, tree: Tree, ctx: Context) -> None:
        for node in ctx.root.names(NODES):
            path = "%s/%s" % (NODES, node)
            tree.text(path + "/properties", keep=placed)
            for kind in ("io_links", "p2p_links"):
                for link in ctx.root.names("%s/%s" % (path, kind)):
                    tree.text("%s/%s/%s/properties" % (path, kind, link), keep=placed)


def _probe(
    name: str, kind: str, argv: List[str], keeps: str, *, sampled: bool = False, reduce: Optional[Reduce] = None
) -> Probe:
    probe = CommandProbe(name, kind, argv, sampled=sampled, reduce=reduce, keeps=(keeps,))
    probe.limit_s = AMD_SMI_S
    return probe


def probes() -> List[Probe]:
    links = "the output as it is: GPUs by number and place, and what joins them"
    return [
        SysKfd(),
        _probe("amd-smi-topology", "amd-links", ["amd-smi", "topology", "--json"], links),
        _probe("amd-smi-xgmi", "amd-smi-xgmi", ["amd-smi", "xgmi"], links),
        _probe(
            "amd-smi-metric",
            "amd-smi-json",
            ["amd-smi", "metric", "--json"],  # all of it: releases differ in the names of the options
            "the output as it is: load, clocks, power and counters of GPUs by number",
            sampled=True,
        ),
        _probe(
            "amd-smi-static",
            "amd-smi-json",
            ["amd-smi", "static", "--asic", "--bus", "--numa", "--limit", "--json"],
            "the output: product, place and limits of GPUs, without serial numbers",
            reduce=amd_static,
        ),
        _probe("rocm-smi-showtopo", "amd-links", ["rocm-smi", "--showtopo"], links),
    ]
