"""Bundles of a fleet: DGX H100 with names, serials and counters of their own, and odd ones with a fault each."""

from __future__ import annotations

import gzip
import io
import random
import re
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from fixtures.generate import bundle  # noqa: E402
from fixtures.generate.machine import Machine  # noqa: E402
from fixtures.generate.machines.dgx_h100 import RAILS, dgx_h100  # noqa: E402
from fixtures.generate.parts import digest  # noqa: E402
from fixtures.generate.wiring import take_down  # noqa: E402

BASE = "dgx-XXXXX"


def _kernel(m: Machine) -> None:
    m.kernel = "5.15.0-1040-nvidia"


def _driver(m: Machine) -> None:
    m.driver = "550.54.15"


def _firmware(m: Machine) -> None:
    for nic in m.nics:
        nic.fw = "28.39.1002"


def _command_line(m: Machine) -> None:
    m.cmdline = "intel_iommu=on pci=realloc=off"


def _locked(m: Machine) -> None:
    m.memlock = "65536"


def _balancing(m: Machine) -> None:
    m.numa_balancing = 1


def _peermem(m: Machine) -> None:
    m.modules = [name for name in m.modules if name != "nvidia_peermem"]
    m.memory_peers = False


def _narrow(m: Machine) -> None:
    fn = m.fn("0000:c3:00.0")
    fn.width = m.fn(str(fn.parent)).width = 8


def _links(m: Machine) -> None:
    take_down(m.gpus[3], [4, 5])


def _rate(m: Machine) -> None:
    nic = m.nic("mlx5_6")
    nic.rate, nic.speed_name = 200, "HDR"
    m.netdev(nic.netdev).speed = 200000


def _port_down(m: Machine) -> None:
    nic = m.nic("mlx5_3")
    nic.state, nic.phys = "DOWN", "Polling"
    m.netdev(nic.netdev).operstate = "down"


def _mtu(m: Machine) -> None:
    m.nic("mlx5_9").active_mtu = 2048


def _swapped(m: Machine) -> None:
    """The names of two adapters are exchanged: GPU0 stands beside the one of GPU1."""
    one, other = m.nic(RAILS[0]), m.nic(RAILS[1])
    one.rdma, other.rdma = other.rdma, one.rdma


def _symbols(m: Machine) -> None:
    m.nic("mlx5_4").counters["symbol_error"] = 90_000


def _shared_memory(m: Machine) -> None:
    m.shm_bytes //= 4


FAULTS: tuple[Callable[[Machine], None], ...] = (
    _kernel, _driver, _firmware, _command_line, _locked, _balancing, _peermem, _narrow, _links, _rate, _port_down, _mtu,
    _swapped, _symbols, _shared_memory,
)  # fmt: skip


def name_of(number: int) -> str:
    return f"dgx-{number:05d}"


def odd_numbers(nodes: int, odd: int) -> dict[int, Callable[[Machine], None]]:
    """Which nodes have which fault."""
    chosen = random.Random(nodes).sample(range(nodes), odd)
    return {number: FAULTS[at % len(FAULTS)] for at, number in enumerate(chosen)}


def write_fleet(folder: Path, nodes: int, odd: int) -> dict[str, str]:
    """The bundles, and the name of the fault of each odd host."""
    folder.mkdir(parents=True)
    texts, plain = bundle.files(dgx_h100(BASE)), dgx_h100(BASE)
    pattern, names = _identities(plain)
    faults = odd_numbers(nodes, odd)
    for number in range(nodes):
        own = texts
        if number in faults:
            machine = dgx_h100(BASE)
            faults[number](machine)
            own = bundle.files(machine)
        replaced = {file: _own(text, number, pattern, names) for file, text in own.items()}
        (folder / f"{name_of(number)}.tar.gz").write_bytes(packed(replaced))
    return {name_of(number): fault.__name__.strip("_") for number, fault in faults.items()}


def _identities(plain: Machine) -> tuple[re.Pattern[str], dict[str, tuple[str, int]]]:
    """What is of one machine alone, by the text that stands for it, with what kind it is."""
    found = {BASE: ("host", 0), f"{plain.uptime_s:.2f}": ("uptime", 0)}
    for gpu in plain.gpus:
        found[gpu.uuid], found[gpu.serial] = ("gpu", gpu.index), ("serial", gpu.index)
    for at, nic in enumerate(plain.nics):
        found[nic.guid], found[nic.guid.replace(":", "")] = ("guid", at), ("bare guid", at)
        if nic.traffic:
            found[str(nic.traffic // 4)] = ("traffic", at)
    return re.compile("|".join(map(re.escape, sorted(found, key=len, reverse=True)))), found


def _own(text: str, number: int, pattern: re.Pattern[str], names: dict[str, tuple[str, int]]) -> str:
    def new(match: re.Match[str]) -> str:
        old = match[0]
        kind, at = names[old]
        if kind == "host":
            return name_of(number)
        if kind == "uptime":
            return f"{float(old) + number * 37.0:.2f}"
        own = digest(number, at)
        if kind == "gpu":
            return old[:-12] + own[:12]
        if kind == "serial":
            return old[:4] + str(int(own[:8], 16) % 10**8).zfill(8) + old[12:]
        if kind == "guid":
            return f"{old[:10]}{own[:4]}{old[14:]}"
        return old[:8] + own[:4] + old[12:] if kind == "bare guid" else str(int(old) + int(own[:8], 16))

    return pattern.sub(new, text)


def packed(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, text in files.items():
            data = text.encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), 1)
