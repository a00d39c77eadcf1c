"""TOP001, TOP003, TOP004 and TOP005 by logs."""

from collections.abc import Callable
from dataclasses import replace

from tests.checks import jobs
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.topo.job_file import TopologyFileRefused
from topodiag.checks.topo.job_tree import DeviceTwice, GpuShortOfNvlinks, GuessedTopology
from topodiag.model.nccl_view import NcclSystem, SystemDevice, SystemLink


def flat(host: int, system: NcclSystem) -> NcclSystem:
    """A guest without a PCI tree: all devices below one CPU of an unknown NUMA node."""
    cpu = SystemDevice("CPU", "0-ffffffffffffffff", numbers=(1, 1, 3))
    devices = [cpu, *(replace(gpu, parent=cpu.name) for gpu in system.of_kind("GPU"))]
    return replace(system, devices={device.name: device for device in devices})


def mesh(host: int, system: NcclSystem) -> NcclSystem:
    """GPUs joined without NVSwitches, one of them with less."""
    devices = {name: device for name, device in system.devices.items() if device.kind != "NVS"}
    return replace(short("GPU/0-40000", 100.0)(host, system), devices=devices)


def joined(host: int, system: NcclSystem) -> NcclSystem:
    """Equal bus ids on another host of one NVLink domain."""
    other = [replace(gpu, id=gpu.id.replace("0-", "1-", 1), rank=gpu.rank + 8) for gpu in system.of_kind("GPU")]
    return replace(system, devices={**system.devices, **{gpu.name: gpu for gpu in other}})


def twin(host: int, system: NcclSystem) -> NcclSystem:
    """A port of a NIC that is there twice."""
    net = system.devices["NET/0-1"]
    return replace(system, devices={**system.devices, "NET/0-9": replace(net, id="0-9")})


def doubled(host: int, system: NcclSystem) -> NcclSystem:
    """The second half of the GPUs under a second system, with the bus ids of the first half."""
    gpus = system.of_kind("GPU")
    twins = [replace(b, id=a.id.replace("0-", "1-", 1)) for a, b in zip(gpus[:4], gpus[4:], strict=True)]
    devices = [*(d for d in system.devices.values() if d not in gpus[4:]), *twins]
    return replace(system, devices={device.name: device for device in devices})


CHECKS = {check.__name__: check for check in (TopologyFileRefused, GuessedTopology, GpuShortOfNvlinks, DeviceTwice)}


@examples("check", "given", "wanted")
def test_what_nccl_printed_of_the_machine(check: str, given: jobs.Given, wanted: Wanted) -> None:
    hooks = {"flat": flat, "short": short, "mesh": mesh, "joined": joined, "twin": twin, "doubled": doubled}
    assert shown(CHECKS[check]().judge(jobs.of_row(given, **hooks)), wanted) == wanted


def short(name: str, gbs: float) -> Callable[[int, NcclSystem], NcclSystem]:
    def hook(host: int, system: NcclSystem) -> NcclSystem:
        kept = [link for link in system.links if link.kind != "NVL" or name not in (link.a, link.b)]
        added = [SystemLink(name, "NVS/0-0", "NVL", gbs)] if gbs else []
        return replace(system, links=(*kept, *added))

    return hook
