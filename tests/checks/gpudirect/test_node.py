"""GDR001 and GDR002: the parts that GPUDirect RDMA needs, and its distance."""

from dataclasses import replace
from typing import Any

from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.nodes import read
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.gpudirect.node import GdrModuleMissing, GdrTooFar
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.model.system import Setting


def module(node: Node) -> Any:
    return GdrModuleMissing().judge(node, ())


def far(node: Node) -> Any:
    return GdrTooFar().judge(node, ())


def without_module(base: str) -> Node:
    """Neither a peer memory module nor, with closed kernel modules, DMA-BUF."""
    facts = {"peermem": read(False), "modules": read(frozenset({"nvidia"})), "driver_open": read(False)}
    return nodes.with_os(machine(base), **facts)


def older_module() -> Node:
    return nodes.with_os(without_module("hgx_h100"), modules=read(frozenset({"nv_peer_mem"})))


def set_level(level: str) -> Node:
    """A box with a far GPU, and the level to which NCCL was told to go."""
    setting = Setting("NCCL_NET_GDR_LEVEL", level, "environment", Origin("env", 1))
    return replace(nodes.to_nics(nodes.l40s_box(), "PHB", "GPU1"), settings=(setting,))


def unseen(gpu: str) -> Node:
    """A box without the distances of one GPU."""
    node = nodes.to_nics(nodes.l40s_box(), "", gpu)
    return replace(node, paths={pair: path for pair, path in node.paths.items() if gpu not in pair})


BUILDERS: dict[str, Any] = {
    "without_module": without_module, "older_module": older_module, "set_level": set_level, "unseen": unseen,
}  # fmt: skip


@examples("node", "changes", "wanted")
def test_the_module_that_gpudirect_needs(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(module(machine(node, changes, **BUILDERS)), wanted) == wanted


@examples("node", "changes", "wanted")
def test_gpus_too_far_from_nics(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(far(machine(node, changes, **BUILDERS)), wanted) == wanted
