"""NVL001 to NVL005: missing links, slow links, errors, pairs without NVLink, the fabric."""

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import jobs, nodes
from tests.checks.bent import Built, machine
from tests.checks.nodes import read
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.nvlink.errors import NvlinkErrors, unpack_ber
from topodiag.checks.nvlink.fabric import FabricNotReady
from topodiag.checks.nvlink.job import FabricInLog
from topodiag.checks.nvlink.links import FewerNvlinks
from topodiag.checks.nvlink.pairs import PairWithoutNvlink
from topodiag.checks.nvlink.rate import SlowNvlinks
from topodiag.evidence.host.kernel_log import KernelLog
from topodiag.evidence.interface import Blob
from topodiag.model.devices import GpuFabric
from topodiag.model.finding import Status
from topodiag.model.job import Job, Process
from topodiag.model.node import Node
from topodiag.model.provenance import Fact


def fewer(node: Node) -> Any:
    return FewerNvlinks().judge(node, ())


def slow(node: Node) -> Any:
    return SlowNvlinks().judge(node, ())


def pairs(node: Node) -> Any:
    return PairWithoutNvlink().judge(node, ())


def h100_pcie(active: tuple[int, ...]) -> Node:
    """Cards with bridge connectors, so many links up on each."""
    cards = [
        nodes.gpu(at, "NVIDIA H100 NVL", 90, 0, nvlinks=nodes.links(18, 26.562, tuple(range(count, 18))))
        for at, count in enumerate(active)
    ]
    return Node("nvl-01", os=nodes.hgx_h100().os, gpus=tuple(cards))


def two_v100(down: tuple[int, ...], of_first: tuple[int, ...] = ()) -> Node:
    cards = [
        nodes.gpu(at, "Tesla V100-SXM2-32GB", 70, 0, nvlinks=nodes.links(6, 25.781, lost))
        for at, lost in ((2, of_first), (3, down))
    ]
    return Node("n", gpus=tuple(cards))


# --- NVL001 ---------------------------------------------------------------------------------------------------


@examples("node", "changes", "wanted")
def test_links_that_are_not_active(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(fewer(machine(node, changes, h100_pcie=h100_pcie, two_v100=two_v100)), wanted) == wanted


@pytest.mark.parametrize("shown", [1, 5, 17])
def test_a_list_of_links_that_was_cut_off_accuses_nobody(shown: int) -> None:
    last = len(nodes.hgx_h100().gpus) - 1
    cut = nodes.with_gpu(nodes.hgx_h100(), last, nvlinks=nodes.links(shown, 26.562))
    assert fewer(cut).status is Status.UNKNOWN
    alike = nodes.with_gpus(nodes.hgx_h100(), nvlinks=nodes.links(shown, 26.562))
    assert fewer(alike).status is Status.UNKNOWN


# --- NVL002 ---------------------------------------------------------------------------------------------------


@examples("node", "changes", "wanted")
def test_links_that_run_slowly(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(slow(machine(node, changes)), wanted) == wanted


# --- NVL004 ---------------------------------------------------------------------------------------------------


@examples("node", "changes", "wanted")
def test_pairs_without_nvlink(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(pairs(machine(node, changes, h100_pcie=h100_pcie)), wanted) == wanted


# --- NVL003: NVLink error counters


def judge(node: Node) -> Any:
    return NvlinkErrors().judge(node, ())


def counting(name: str, *reading: float) -> Node:
    """Eight H100 whose links have the counter at 0, except link 6 of GPU3: first and later value, 10 s apart."""
    quiet = [0, 0, 10.0] if len(reading) > 1 else [0]
    loud = [*reading, 10.0] if len(reading) > 1 else [*reading]
    path = f"nvlinks/{{}}/counters/{name}"
    return machine("hgx_h100", {f"gpus/all/{path.format('all')}": quiet, f"gpus/3/{path.format(6)}": loud})


@examples("node", "changes", "wanted")
def test_error_counters_of_links(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(judge(machine(node, changes, counting=counting)), wanted) == wanted


def test_the_bit_error_rate_is_unpacked_as_nvml_packs_it() -> None:
    assert unpack_ber(0xFFF) == 0.0
    assert unpack_ber(0x30B) == pytest.approx(3e-11)
    assert unpack_ber(None) is None
    assert unpack_ber(1 << 40) is None


# --- NVL005: Fabric Manager, fabric registration, NVLink domains


def fabric(node: Node) -> Any:
    return FabricNotReady().judge(node, ())


def waiting(base: str) -> Node:
    return nodes.with_gpus(machine(base), fabric=GpuFabric(state=read("in_progress")))


REFUSED = "nvidia-nvswitch: Version mismatch, kernel version 450.80.02 user version 450.51.06"


def refused(*base: str) -> Node:
    """A machine, or no more than a kernel log, with the line of the NVSwitch driver."""
    node = machine(*base) if base else Node(host="n1")
    return replace(node, events=tuple(KernelLog().parse(Blob("dmesg.txt", REFUSED.encode())).records))


def unnamed(base: str) -> Node:
    """Two cards without names, links and a PCI tree."""
    node = machine(base)
    cards = tuple(replace(gpu, name=Fact(), fabric=GpuFabric(), nvlinks=()) for gpu in node.gpus[:2])
    return replace(node, gpus=cards, pci={})


def silent(base: str) -> Node:
    """The machine without a word of its fabric."""
    return nodes.with_gpus(machine(base), fabric=GpuFabric())


BUILDERS = {"waiting": waiting, "refused": refused, "unnamed": unnamed, "silent": silent}


@examples("node", "changes", "wanted")
def test_the_state_of_the_fabric(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(fabric(machine(node, changes, **BUILDERS)), wanted) == wanted


# --- NVL005 by logs: the fabric as NVML told NCCL


LINE = "MNNVL busId 0x801000 fabric UUID 3143b15bc2cd192b.28cc9b5473fb5b93 cliqueId 0x7ffe state {} healthMask {}"
IMEX = (
    "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration (nvidia-imex-ctl"
    " -N). Set NCCL_MNNVL_ENABLE=0 to ignore this issue."
)


def said(state: int, mask: str) -> Job:
    return jobs.job(1, 1, messages=[jobs.message("mnnvl", LINE.format(state, mask))])


def test_nvlink_between_trays_that_does_not_work_is_an_error() -> None:
    wanted: Wanted = {"severity": "ERROR", "message": "*IMEX*"}
    assert shown(FabricInLog().judge(jobs.job(events=[jobs.event("cuda", IMEX)])), wanted) == wanted


@examples("state", "mask", "wanted")
def test_the_fabric_that_nccl_prints(state: int, mask: str, wanted: Wanted) -> None:
    assert shown(FabricInLog().judge(said(state, mask)), wanted) == wanted


@examples("uuids", "wanted")
def test_trays_of_a_rack(uuids: list[str], wanted: Wanted) -> None:
    assert shown(FabricInLog().judge(trays(*uuids)), wanted) == wanted


def test_a_log_without_a_fabric_is_not_judged() -> None:
    assert FabricInLog().judge(jobs.job()).status is Status.NOT_APPLICABLE


def trays(*uuids: str) -> Job:
    """A job of one tray for each fabric UUID, "" for a tray that NVML knows of none."""
    kinds = ("version", "bootstrap", "hcas")
    processes = [
        Process(
            f"n{at}",
            100 + at,
            messages=(
                *(jobs.message(kind, "x") for kind in kinds),
                *(
                    [jobs.message("mnnvl", f"MNNVL busId 0x1 fabric UUID {uuid} cliqueId 0x2 state 3 healthMask 0x0")]
                    if uuid
                    else []
                ),
            ),
        )
        for at, uuid in enumerate(uuids)
    ]
    return replace(jobs.job(len(uuids), 1), processes=tuple(processes))
