"""GDR001 and GDR002 of nodes and of jobs: the parts that GPUDirect RDMA needs, and its distance."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.checks import jobs, nodes
from tests.checks.bent import Built, machine
from tests.checks.nodes import read
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.registry import Subject, check_of
from topodiag.model.job import Process
from topodiag.model.node import Node, Setting
from topodiag.model.provenance import Origin


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


# --- GDR001 and GDR002 by logs


def disabled(*hosts: int) -> Callable[[int, int, Process], Process]:
    def hook(rank: int, host: int, process: Process) -> Process:
        off = tuple(replace(hca, gdr=False) for hca in process.hcas)
        return replace(process, hcas=off) if host in hosts else process

    return hook


def receives_without() -> list[dict[str, Any]]:
    """The second node receives without GPUDirect RDMA."""
    rows = jobs.healthy_rows(2, 8, 8)
    return [row | {"via": "NET/IB"} if row.get("direction") == 2 and int(row["peer"]) >= 8 else row for row in rows]


def sends_without() -> list[dict[str, Any]]:
    return [row | {"via": "NET/IB"} if row.get("direction") == 1 else row for row in jobs.healthy_rows(2, 8, 8)]


def silent(rank: int, host: int, process: Process) -> Process:
    return replace(process, hcas=tuple(replace(hca, gdr=None) for hca in process.hcas))


HOOKS: dict[str, Any] = {
    "disabled": disabled, "silent": silent, "receives_without": receives_without(), "sends_without": sends_without()
}  # fmt: skip


@examples("check", "given", "wanted")
def test_gpudirect_of_a_job(check: str, given: jobs.Given, wanted: Wanted) -> None:
    assert shown(check_of(Subject.JOB, check)().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted


@examples("check", "node", "changes", "wanted")
def test_gpudirect_of_a_machine(check: str, node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    """Healthy machines with something changed."""
    outcome = check_of(Subject.NODE, check)().judge(machine(node, changes, **BUILDERS), ())
    assert shown(outcome, wanted) == wanted
