"""Machines drawn by chance, with adapters of one to four ports, rails and planes: the virtual NICs are those that
a plain reading of NCCL's rules gives, and the machine is predicted as a whole."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tests.depth import some_of
from tests.nccl.small_trees import GEN5, cpu, element, gpu, host, pci
from topodiag.model.nccl_tree import Element
from topodiag.nccl.predict import predict_tree

LOC, PORT, PIX, PHB, SYS = "LOC", "PORT", "PIX", "PHB", "SYS"
ORDER = (LOC, PORT, PIX, PHB, SYS)
MOST = {28: 4, 30: 8, 32: 8}


@dataclass(frozen=True)
class Port:
    """A port by its number, and where it stands: socket, PCIe switch, adapter."""

    number: int
    socket: int
    switch: int
    adapter: int
    gbps: int
    rail: int
    plane: int

    @property
    def name(self) -> str:
        return f"mlx5_{self.number}"

    def to(self, other: Port) -> str:
        """The type of the way to another port."""
        if self.adapter == other.adapter:
            return PORT
        if self.switch == other.switch:
            return PIX
        return PHB if self.socket == other.socket else SYS


def machine(seed: int) -> tuple[Element, list[Port], dict[str, str], int]:
    """A host with two sockets, its ports, the settings of a job on it, and the minor version."""
    draw = random.Random(seed)
    minor = draw.choice(list(MOST))
    ports: list[Port] = []
    sockets: list[list[Element]] = [[], []]
    switches = draw.choice([2, 4, 8])
    planes = draw.choice([0, 2])
    for switch in range(switches):
        below = [gpu(f"{switch + 1:x}1", sm=90, speed=GEN5, dev=switch)]
        for at in range(draw.choice([1, 1, 2])):
            apart, count = draw.random() < 0.5, draw.choice([1, 2, 2, 4])
            gbps = draw.choice([100, 200, 400])
            mine = [
                Port(len(ports) + index, switch % 2, switch, switch * 8 + at, gbps,
                     draw.choice([-1, switch % 4]), index % planes if planes else -1)
                for index in range(count)
            ]  # fmt: skip
            ports += mine
            below += functions(f"{switch + 1:x}{8 + at}", mine, apart=apart)
        sockets[switch % 2].append(pci(f"{switch + 1:x}0", *below, speed=GEN5))
    env = {}
    if draw.random() < 0.5:
        env["NCCL_NET_MERGE_LEVEL"] = draw.choice([LOC, PORT, PIX, PHB])
    if draw.random() < 0.2:
        env["NCCL_IB_MERGE_NICS"] = "0"
    if draw.random() < 0.3:
        env["NCCL_NET_MERGE_POLICY"] = draw.choice(["RAIL", "ALL"])
    return host(*(cpu(at, *elements) for at, elements in enumerate(sockets))), ports, env, minor


def functions(bus: str, ports: list[Port], *, apart: bool) -> list[Element]:
    """An adapter's ports, each in a function of its own or all in one."""
    nets = []
    for port in ports:
        given: dict[str, object] = {"rail": port.rail, "plane": port.plane}
        nets.append(
            element(
                "net", name=port.name, dev=port.number, speed=port.gbps * 1000, port=1, gdr=1,
                guid=f"0xa{port.adapter:x}", **{name: value for name, value in given.items() if value != -1},
            )
        )  # fmt: skip
    link = {"class_": "0x020700", "link_speed": GEN5, "link_width": 16}
    if not apart:
        return [element("pci", element("nic", *nets), busid=f"0000:{bus}:00.0", **link)]
    return [
        element("pci", element("nic", net), busid=f"0000:{bus}:00.{number}", **link) for number, net in enumerate(nets)
    ]


def wanted(ports: list[Port], env: dict[str, str], minor: int) -> dict[str, int]:
    """Names of the devices with Gb/s of their ports together, by ncclTopoAutoMerge read plainly."""
    level = ORDER.index(env.get("NCCL_NET_MERGE_LEVEL", PORT))
    by_rail = env.get("NCCL_NET_MERGE_POLICY") == "RAIL" and minor >= 30
    able = env.get("NCCL_IB_MERGE_NICS") != "0"
    left, made = list(ports), {}
    while left:
        first, *rest = left
        group = [first]
        for port in rest:
            near = ORDER.index(first.to(port)) <= level
            same = not by_rail or (first.rail != -1 and first.rail == port.rail)
            if near and same and able and len(group) < MOST[minor]:
                group.append(port)
        made["+".join(port.name for port in group)] = sum(port.gbps for port in group)
        left = [port for port in left if port not in group]
    return made


@pytest.mark.parametrize("seed", some_of(range(40), "virtual NICs", 2))
def test_a_machine_of_several_ports_and_planes_is_predicted_as_nccl_merges_it(seed: int) -> None:
    tree, ports, env, minor = machine(seed)
    prediction = predict_tree(tree, nodes=2, version=f"2.{minor}", env=env, sizes=(1 << 30,))
    assert prediction.accepted, prediction.why
    devices = wanted(ports, env, minor)
    merged = {name: gbps / 8 for name, gbps in devices.items() if "+" in name}
    assert {nic.name: nic.gbs for nic in prediction.virtual_nics} == merged
    labels = {end for row in prediction.paths.values() for end in row if end.startswith("NET/")}
    texts = {f"NET/0-{port.number:x}" for port in ports if port.name in devices}
    assert labels == texts | {nic.label for nic in prediction.virtual_nics}
    assert prediction.max_bw <= max(devices.values()) / 8
    assert prediction.all_reduce.busbw_gbs > 0
