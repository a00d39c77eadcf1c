"""TOP001, TOP003, TOP004 and TOP005 by logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.checks import jobs
from topodiag.checks.topo.job_file import TopologyFileRefused
from topodiag.checks.topo.job_tree import DeviceTwice, GpuShortOfNvlinks, GuessedTopology
from topodiag.model.finding import Severity, Status
from topodiag.model.nccl_view import NcclSystem, SystemDevice, SystemLink

VERSION = "XML Topology has wrong version 2, 1 needed"


def test_a_refused_file_is_named_with_ncclswords() -> None:
    event = jobs.event("topology", VERSION, pid=1000, rank=0, place="graph/xml.cc:374")
    job = jobs.job(1, 2, events=[event], settings={"NCCL_TOPO_FILE": "/etc/nccl/version2.xml"})
    (finding,) = TopologyFileRefused().judge(job).findings
    assert finding.severity is Severity.ERROR
    assert "/etc/nccl/version2.xml" in finding.message
    assert VERSION in finding.message
    assert finding.where.ranks == (0,)


def test_a_file_that_is_not_there_and_other_faults_are_not_refusals() -> None:
    missing = jobs.event("topology", "Could not open XML topology file /x : No such file or directory")
    other = jobs.event("cuda", "Cuda failure 'out of memory'")
    assert TopologyFileRefused().judge(jobs.job(1, events=[missing, other])).status is Status.CLEAN


def flat(host: int, system: NcclSystem) -> NcclSystem:
    """A guest without a PCI tree: all devices below one CPU of an unknown NUMA node."""
    cpu = SystemDevice("CPU", "0-ffffffffffffffff", numbers=(1, 1, 3))
    devices = [cpu, *(replace(gpu, parent=cpu.name) for gpu in system.of_kind("GPU"))]
    return replace(system, devices={device.name: device for device in devices})


def test_a_machine_without_a_tree_is_guesswork() -> None:
    note = jobs.message("topo note", "Topology detection : could not read /sys/devices/x, ignoring")
    (first,) = GuessedTopology().judge(jobs.job(systems=flat, messages=[note])).findings
    assert first.severity is Severity.WARNING
    assert "could not read" in first.observed


def test_a_tree_with_switches_is_no_guess_whatever_the_notes_say() -> None:
    note = jobs.message("topo note", "Topology detection : could not read /sys/devices/x, ignoring")
    assert GuessedTopology().judge(jobs.job(messages=[note])).status is Status.CLEAN
    assert GuessedTopology().judge(jobs.job(1, systems=lambda h, s: None)).status is Status.UNKNOWN


def short(name: str, gbs: float) -> Callable[[int, NcclSystem], NcclSystem]:
    def hook(host: int, system: NcclSystem) -> NcclSystem:
        kept = [link for link in system.links if link.kind != "NVL" or name not in (link.a, link.b)]
        added = [SystemLink(name, "NVS/0-0", "NVL", gbs)] if gbs else []
        return replace(system, links=(*kept, *added))

    return hook


def test_a_gpu_with_fewer_nvlinks_than_its_siblings_is_named() -> None:
    (finding,) = GpuShortOfNvlinks().judge(jobs.job(1, systems=short("GPU/0-40000", 247.2))).findings
    assert finding.severity is Severity.ERROR
    assert finding.where.gpus == ("GPU3",)
    assert finding.where.ranks == (3,)
    assert "247.2 GB/s of NVLink where the peers have 370.8" in finding.message


def test_a_gpu_without_any_is_named_too() -> None:
    (finding,) = GpuShortOfNvlinks().judge(jobs.job(1, systems=short("GPU/0-40000", 0))).findings
    assert finding.cost.share == 1


def test_equal_gpus_meshes_and_missing_prints_are_silent() -> None:
    assert GpuShortOfNvlinks().judge(jobs.job(1)).status is Status.CLEAN

    def mesh(host: int, system: NcclSystem) -> NcclSystem:
        devices = {name: device for name, device in system.devices.items() if device.kind != "NVS"}
        return replace(short("GPU/0-40000", 100.0)(host, system), devices=devices)

    assert GpuShortOfNvlinks().judge(jobs.job(1, systems=mesh)).status is Status.NOT_APPLICABLE
    assert GpuShortOfNvlinks().judge(jobs.job(1, systems=lambda h, s: None)).status is Status.UNKNOWN


def doubled(host: int, system: NcclSystem) -> NcclSystem:
    """The second half of the GPUs under a second system, with the bus ids of the first half."""
    gpus = system.of_kind("GPU")
    twins = [replace(b, id=a.id.replace("0-", "1-", 1)) for a, b in zip(gpus[:4], gpus[4:], strict=True)]
    devices = [*(d for d in system.devices.values() if d not in gpus[4:]), *twins]
    return replace(system, devices={device.name: device for device in devices})


def test_gpus_of_one_host_under_two_systems_are_told() -> None:
    (finding,) = DeviceTwice().judge(jobs.job(1, systems=doubled)).findings
    assert "4 devices twice" in finding.message
    assert finding.severity is Severity.WARNING


def test_equal_bus_ids_on_two_hosts_of_one_domain_are_two_machines() -> None:
    def joined(host: int, system: NcclSystem) -> NcclSystem:
        other = [replace(gpu, id=gpu.id.replace("0-", "1-", 1), rank=gpu.rank + 8) for gpu in system.of_kind("GPU")]
        return replace(system, devices={**system.devices, **{gpu.name: gpu for gpu in other}})

    assert DeviceTwice().judge(jobs.job(2, systems=joined)).status is Status.CLEAN


def test_a_port_of_a_nic_that_is_there_twice_is_told() -> None:
    def twin(host: int, system: NcclSystem) -> NcclSystem:
        net = system.devices["NET/0-1"]
        return replace(system, devices={**system.devices, "NET/0-9": replace(net, id="0-9")})

    (finding,) = DeviceTwice().judge(jobs.job(1, systems=twin)).findings
    assert "NET/0-1 and NET/0-9" in finding.message


def test_single_devices_and_missing_prints_are_no_doubles() -> None:
    assert DeviceTwice().judge(jobs.job()).status is Status.CLEAN
    assert DeviceTwice().judge(jobs.job(systems=lambda h, s: None)).status is Status.UNKNOWN
