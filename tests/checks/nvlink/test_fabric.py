"""NVL005: Fabric Manager, fabric registration, NVLink domains."""

from dataclasses import replace
from typing import Any

from tests.checks import jobs, nodes
from tests.checks.bent import Built, machine
from tests.checks.nodes import read
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.nvlink.fabric import FabricNotReady
from topodiag.checks.nvlink.job import FabricInLog
from topodiag.evidence.host.kernel_log import KernelLog
from topodiag.evidence.interface import Blob
from topodiag.model.devices import GpuFabric
from topodiag.model.finding import Status
from topodiag.model.job import Job, Process
from topodiag.model.node import Node
from topodiag.model.provenance import Fact


def judge(node: Node) -> Any:
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
    assert shown(judge(machine(node, changes, **BUILDERS)), wanted) == wanted


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
