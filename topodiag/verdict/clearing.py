"""What evidence shows to be whole or in use: one place for each mechanism.

The rules ask it, the status of a cause, and what the verdict rules out. A source that clears a part counts as much as
one that accuses it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from topodiag.checks.shared.devices import compute_nics, gpu_spec, is_up
from topodiag.model.provenance import Origin
from topodiag.verdict.scene import Scene

if TYPE_CHECKING:
    from topodiag.model.bench import Benchmark
    from topodiag.model.job import Process

MAX_LINES = 4
"""Lines kept of each proof: one for each device would bury the report."""


def whole_nvlinks(scene: Scene, hosts: Iterable[str]) -> tuple[Origin, ...]:
    """Lines by which every GPU of these hosts has all NVLinks of its product; () where one lacks some or is silent."""
    origins: list[Origin] = []
    wanted = scene.hosts(hosts)
    seen: set[str] = set()
    for node in scene.case.nodes:
        if scene.host(node.host) not in wanted or not node.gpus:
            continue
        for gpu in node.gpus:
            spec = gpu_spec(gpu)
            if spec is None or not spec.nvlinks or gpu.active_links is None or gpu.active_links < spec.nvlinks:
                return ()
            origins += [link.state.origin for link in gpu.nvlinks[:1] if link.state.origin is not None]
        seen.add(scene.host(node.host))
    return tuple(dict.fromkeys(origins)) if seen == wanted else ()


def devices_listed(scene: Scene, hosts: Iterable[str], names: Iterable[str]) -> tuple[Origin, ...]:
    """Lines of NCCL's logs that list each of these RDMA devices on these hosts, so that a port was up when the job
    began; () where one is missing. NCCL lists only ports that are active (src/transport/net_ib/init.cc)."""
    wanted, origins = set(names), dict[str, Origin]()
    near = scene.hosts(hosts)
    for process in _processes(scene, near):
        for hca in process.hcas:
            if hca.name in wanted and hca.origin is not None:
                origins.setdefault(hca.name, hca.origin)
    return tuple(origins[name] for name in sorted(origins)) if wanted and wanted == set(origins) else ()


def devices_left_out(scene: Scene, hosts: Iterable[str], names: Iterable[str]) -> bool:
    """Whether the processes on these hosts list their RDMA devices, and each lists some, but none of these."""
    wanted = set(names)
    lists = [{hca.name for hca in process.hcas} for process in _processes(scene, scene.hosts(hosts)) if process.hcas]
    return bool(wanted and lists) and not any(wanted & listed for listed in lists)


def rdma_in_use(scene: Scene, hosts: Iterable[str]) -> tuple[Origin, ...]:
    """Lines by which the processes of all these hosts use RDMA between nodes: `Using network IB`, or a plugin's own
    name; () where one uses sockets or does not say."""
    wanted = scene.hosts(hosts)
    networks: dict[str, Origin | None] = {}
    for process in _processes(scene, wanted):
        used = process.network.lower()
        if used == "socket":
            return ()
        if used:
            origin = next((message.origin for message in process.said("network")), process.origin)
            networks.setdefault(scene.host(process.host), origin)
    lines = tuple(where for where in networks.values() if where is not None)
    return lines if wanted and wanted <= set(networks) else ()


def gpudirect_in_use(scene: Scene, hosts: Iterable[str]) -> tuple[Origin, ...]:
    """Lines by which NCCL has GPUDirect RDMA for every device that it lists on these hosts; () where it is off for one,
    or where the log does not say."""
    wanted = scene.hosts(hosts)
    origins: dict[str, Origin] = {}
    for process in _processes(scene, wanted):
        for hca in process.hcas:
            if hca.gdr is False:
                return ()
            if hca.gdr and hca.origin is not None:
                origins.setdefault(scene.host(process.host), hca.origin)
    return tuple(origins.values()) if wanted and wanted <= set(origins) else ()


def active_ports(scene: Scene, hosts: Iterable[str]) -> tuple[Origin, ...]:
    """Lines by which every compute NIC of these hosts has its ports up, and no host has fewer than another; () where a
    port is down or nothing says so."""
    wanted, seen = scene.hosts(hosts), dict[str, int]()
    origins: list[Origin] = []
    for node in scene.case.nodes:
        if scene.host(node.host) not in wanted:
            continue
        nics = compute_nics(node)
        ups = [is_up(nic) for nic in nics]
        if not nics or not all(ups):
            return ()
        seen[scene.host(node.host)] = len(nics)
        origins += [where for nic in nics[:1] for port in nic.ports[:1] if (where := port.state.origin) is not None]
    return tuple(dict.fromkeys(origins)) if set(seen) == wanted and len(set(seen.values())) == 1 else ()


def captured_nics(scene: Scene, hosts: Iterable[str]) -> tuple[Origin, ...]:
    """Lines of captures that list the compute NICs of all these hosts; () where a host has no capture of them: NCCL's
    own list does not show what a node lacks."""
    wanted = scene.hosts(hosts)
    nics = ((node.host, nic) for node in scene.case.nodes for nic in compute_nics(node)[:1])
    lines = ((host, port.state.origin) for host, nic in nics for port in nic.ports[:1])
    listed = {scene.host(host): where for host, where in lines if where is not None}
    return tuple(listed[host] for host in sorted(wanted)) if wanted and wanted <= set(listed) else ()


def normal_runs(scene: Scene, benchmarks: Sequence[Benchmark], hosts: Iterable[str]) -> tuple[Origin, ...]:
    """Tables of nccl-tests that reach what the machine should, in runs on all of these hosts: what slows these
    machines would have slowed them too."""
    wanted = scene.hosts(hosts)
    normal = (benchmark.run for benchmark in benchmarks if benchmark.verdict == "normal")
    on_all = (run.origin for run in normal if wanted and wanted <= scene.hosts(run.hosts))
    return tuple(where for where in on_all if where is not None)[:MAX_LINES]


def _processes(scene: Scene, hosts: Collection[str]) -> Iterator[Process]:
    """Those of these hosts, in the order in which the case has the hosts."""
    for host, own in scene.processes.items():
        if host in hosts:
            yield from own
