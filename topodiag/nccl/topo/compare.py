"""Two topologies compared by what matters to communication, without what differs by nature.

Left out: the hash of host and boot, GUIDs, ranks, PCI domains, the ports and numbers that a plugin gives its devices.
Devices are matched by what they are called: GPUs by their NVML index, NICs by name, processors by NUMA node.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import dataclass
from topodiag.model.cpulist import parse_cpumask
from topodiag.model.nccl_tree import Element, family_of
from topodiag.nccl.topo.changes import bus_of, gpus_of, ways_down
from topodiag.words.units import fold_numbers, in_gbs

Facts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs: of which device, which property, and its value on either side ("" where absent)."""

    device: str
    what: str
    left: str
    right: str


def compare(left: Element, right: Element, *, buses: bool = False) -> tuple[Difference, ...]:
    """All differences, devices in the order of the left tree, then those that only the right one has. With `buses` the
    bus ids (without domain) count, too."""
    ours, theirs = describe(left), describe(right)
    differences: list[Difference] = []
    for device in dict.fromkeys((*ours, *theirs)):
        a, b = ours.get(device), theirs.get(device)
        if a is None or b is None:
            differences.append(
                Difference(device, "", "there" if a is not None else "", "there" if b is not None else "")
            )
            continue
        for what in dict.fromkeys((*a, *b)):
            if a.get(what, "") != b.get(what, "") and (buses or what != "bus id"):
                differences.append(Difference(device, what, a.get(what, ""), b.get(what, "")))
    return tuple(differences)


def describe(tree: Element) -> dict[str, Facts]:
    """Each device by name, with its properties in words."""
    by_path: dict[str, Facts] = {}
    for cpu in tree.having("cpu"):
        keys = ("arch", "vendor", "familyid", "modelid")
        facts = {key: cpu.get(key) or "" for key in keys} | {"cpus": _cpus(cpu.get("affinity") or "")}
        if facts["familyid"].isdecimal():  # by version of NCCL one family is written in two ways
            facts["familyid"] = str(family_of(int(facts["familyid"][:9])))
        by_path.setdefault(f"NUMA {cpu.get('numaid')}", facts)
    ways = {id(way[-1]): way[:-1] for way in ways_down(tree)}
    names = {bus_of(pci): f"GPU{number}" for number, pci in gpus_of(tree).items()}
    beside = _gpus_below_switch(ways, names)
    for number, pci in gpus_of(tree).items():
        for gpu in pci.having("gpu")[:1]:
            facts = {"sm": gpu.get("sm") or "", "gdr": gpu.get("gdr") or ""}
            by_path.setdefault(f"GPU{number}", {**facts, **_links(gpu, names), **_place(pci, ways)})
    for element in tree.walk():
        for net in element.nets:
            name = net.get("name") or "?"
            facts = {"speed": net.get("speed") or "", "gdr": net.get("gdr") or "0", "coll": net.get("coll") or "0"}
            place = _place(element, ways) if element.tag == "pci" else {"below": "a processor"}
            by_path.setdefault(name, {**facts, **place, "beside": beside.get(id(element), "")})
    return by_path


def _place(pci: Element, ways: Mapping[int, tuple[Element, ...]]) -> dict[str, str]:
    above = ways.get(id(pci), ())
    switches = [element for element in above if element.tag == "pci"]
    facts = {
        "NUMA": next((element.get("numaid") or "" for element in above if element.tag == "cpu"), ""),
        "PCIe": _link(pci),
        "switches above": str(len(switches)),
        "bus id": bus_of(pci).partition(":")[2],
    }
    for height, switch in enumerate(reversed(switches), start=1):
        facts[f"switch {height} above"] = _link(switch)
    return facts


def _link(pci: Element) -> str:
    return f"{pci.get('link_speed') or 'speed ?'} x{pci.get('link_width') or '?'}"


def _links(gpu: Element, names: Mapping[str, str]) -> dict[str, str]:
    """NVLinks by far end; all NVSwitches are one."""
    counts: dict[str, int] = {}
    for link in gpu.having("nvlink"):
        far = names.get(bus_of(link, "target"), "NVSwitch")
        counts[far] = counts.get(far, 0) + link.number("count")
    links = {f"NVLinks to {far}": str(count) for far, count in counts.items()}
    for link in gpu.having("c2c"):
        # NCCL multiplies them: how many links they come by is nothing to it.
        links["C2C"] = in_gbs(link.number("count") * link.number("bw") / 1000, exact=True)
    return links


def _cpus(mask: str) -> str:
    """`0-15,32-47` for `0000ffff,0000ffff`, however many empty groups stand before it; what is no mask as it is."""
    cpus = parse_cpumask(mask)
    return mask if cpus is None else fold_numbers(cpus)


def _gpus_below_switch(ways: Mapping[int, tuple[Element, ...]], names: Mapping[str, str]) -> dict[int, str]:
    """For each function the GPUs below the lowest switch that it shares with any."""
    numbers: dict[int, str] = {}
    for number, above in ways.items():
        for switch in reversed([element for element in above if element.tag == "pci"]):
            gpus = [names.get(bus_of(e), "") for e in switch.walk() if e.tag == "pci" and e.having("gpu")]
            if gpus:
                numbers[number] = ", ".join(sorted(filter(None, gpus)))
                break
    return numbers
