"""Two nodes of eight Hopper GPUs with NVSwitches and a NIC each, as captures and as a run on them: no file is read."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.nccl.small_trees import GEN5, cpu, element, nvlink, pci
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Timing
from topodiag.model.devices import Gpu
from topodiag.model.finding import Cost, Finding, Severity, Where
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.node import Node
from topodiag.model.provenance import Origin, known
from topodiag.model.result import Case
from topodiag.model.verdict import Cause, CauseStatus, Consequence
from topodiag.nccl.topo.changes import Change, apply
from topodiag.verdict.pricing.mend import HostGround, Machine

PRODUCT = "NVIDIA H100 80GB HBM3"
SIZE = 16 << 30


def _branch(dev: int) -> Element:
    card = element("gpu", nvlink("fffffff:ffff:ff", 18), dev=dev, sm=90, rank=dev, gdr=1)
    port = {"name": f"mlx5_{dev}", "dev": dev, "latency": 0, "speed": 400000, "port": 1, "guid": hex(dev + 1)}
    net = element("net", **port, maxconn=131072, gdr=1)
    nic = pci(f"{dev + 0x50:02x}", element("nic", net), speed=GEN5, class_="0x020700")
    return pci(f"{dev + 0x10:02x}", nic, pci(f"{dev + 0x30:02x}", card, speed=GEN5, class_="0x030200"), speed=GEN5)


def bus_of(dev: int) -> str:
    return f"0000:{dev + 0x30:02x}:00.0"


def tree(*changes: Change) -> Element:
    """The node as built, with these changes."""
    halves = (cpu(numa, *map(_branch, range(numa * 4, numa * 4 + 4))) for numa in range(2))
    return apply(element("system", *halves, version=1), changes).tree


def node(host: str, *changes: Change) -> Node:
    """A node that is known by its topology file alone."""
    gpus = tuple(Gpu(number, bus_of(number), name=known(PRODUCT, Origin(host))) for number in range(8))
    return Node(host, gpus=gpus, nccl_file=NcclFile(f"{host}.xml", tree(*changes)))


def run(*hosts: str, gbs: float | None = None, env: Mapping[str, str] | None = None) -> BenchRun:
    """An all_reduce on all GPUs of these hosts that reached so much at 16 GiB; None: it was not measured."""
    devices = tuple(
        BenchDevice(place * 8 + dev, host, dev, PRODUCT, bus_of(dev))
        for place, host in enumerate(hosts)
        for dev in range(8)
    )
    rows = (BenchRow(SIZE, out_of_place=Timing(1.0, gbs, gbs)),) if gbs is not None else ()
    return BenchRun("all_reduce", rows, devices, len(devices), nccl="2.29.7", env=dict(env or {}), source="run.txt")


def finding(check: str, host: str = "n2", **parts: object) -> Finding:
    """A finding on one host; `gpus`, `nics`, `message`, `settings` and `cost` as they are there."""
    where = Where((host,), tuple(parts.get("gpus", ())), tuple(parts.get("nics", ())))  # type: ignore[arg-type]
    cost = parts.get("cost", Cost())
    assert isinstance(cost, Cost)
    report = Finding(check, Severity.ERROR, str(parts.get("message", check)), "", "", (), where, cost)
    return replace(report, settings=parts.get("settings", ()))  # type: ignore[arg-type]


def cause(of: Finding, *consequences: Finding) -> Cause:
    return Cause(
        of, CauseStatus.ESTABLISHED, consequences=tuple(Consequence(consequence, "") for consequence in consequences)
    )


def case(*changes: Change, gbs: float | None = 100.0, env: Mapping[str, str] | None = None) -> Case:
    """Two nodes of which n2 has these changes, and a run on both."""
    return Case(nodes=(node("n1"), node("n2", *changes)), runs=(run("n1", "n2", gbs=gbs, env=env),))


def host(
    *changes: Change, given: Mapping[str, str] | None = None, edit: Callable[[Element], Element] | None = None
) -> HostGround:
    """A host as built, which a source shows with these changes."""
    shown = tree(*changes)
    view = edit(shown) if edit is not None else shown
    return HostGround("n2", Machine(tree()), (view,), dict(given or {}))
