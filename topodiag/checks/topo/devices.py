"""Devices of a topology file: a GPU without the NVLinks of its peers, a device that stands there twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from topodiag.checks.shared.topo_evidence import ASKED, ask, cost_by_model, spell_ring
from topodiag.checks.shared.topo_file import FileCheck
from topodiag.lazy import dataclass
from topodiag.model.finding import Finding, Outcome
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.nccl_versions import spell_version
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.nccl.prediction import Prediction
from topodiag.nccl.topo.changes import gpus_of
from topodiag.nccl.topo.repair import nvlink_totals, repair
from topodiag.words.fold import fold_runs, plural

COLLAPSED = 0.5
"""A search that loses more than this share of the bandwidth has collapsed."""


@dataclass(frozen=True, slots=True)
class ShortGpus:
    """GPUs with fewer NVLinks than their peers in a file, by label, and what NCCL 2.`minor` makes of the file as it
    is and repaired; None where it refuses it."""

    file: NcclFile
    lacking: Mapping[str, Element]
    have: str
    best: int
    minor: int
    now: Prediction | None
    repaired: Prediction | None


class GpuShortInFile(FileCheck[ShortGpus]):
    """TOP004 by a topology file or dump: with what the loss is by NCCL's own search, and the file that repairs it."""

    id = "TOP004"

    def observe_file(self, node: Node, file: NcclFile) -> ShortGpus | Outcome:
        gpus = gpus_of(file.tree)
        totals = nvlink_totals(file.tree)
        if not any(totals.values()):
            return self.not_applicable(node, "no NVSwitch in the file: GPUs of a mesh differ by design")
        best = max(totals.values())
        usual = sum(count == best for count in totals.values())
        short = {bus: count for bus, count in totals.items() if count < best}
        if not short:
            return self.clean(node, f"{plural(len(totals), 'GPU')} with {best} NVLinks each")
        if usual < 2 or usual <= len(short):
            return self.unknown(node, "most GPUs of the file have fewer NVLinks than the best: which is right?")
        lacking = {f"GPU{dev}": pci for dev, pci in gpus.items() if (pci.get("busid") or "").lower() in short}
        have = "/".join(map(str, sorted(set(short.values()))))
        minor = file.asked[0] if file.asked else ASKED
        return ShortGpus(file, lacking, have, best, minor, _ask(file.tree, minor), _ask(repair(file.tree).tree, minor))

    def findings(self, judged: Node, observed: ShortGpus) -> Iterator[Finding]:
        file, have, best, minor = observed.file, observed.have, observed.best, observed.minor
        now, then = observed.now, observed.repaired
        cost = cost_by_model(then, now, " on this node", "every ring of the node passes this GPU")
        labels = list(observed.lacking)
        verb = "has" if len(labels) == 1 else "have"
        collapsed = cost.share is not None and cost.share > COLLAPSED
        yield self.finding(
            self.where(judged, gpus=labels),
            "short in a file",
            f"{fold_runs(labels)} {verb} {have} NVLinks to the NVSwitches where the peers have {best}"
            + (": NCCL's search collapses, without a warning" if collapsed else ""),
            observed=f"{have} of {best} NVLinks" + (f"; NCCL {spell_version(minor)} finds {_ring(now)}" if now else ""),
            expected=f"{best} NVLinks" + (f"; NCCL {spell_version(minor)} would find {_ring(then)}" if then else ""),
            fix=(
                f"until the hardware is repaired: `topodiag emit nccl-topo {file.name} --repair -o repaired.xml`",
                "`nvidia-smi nvlink -s` and `dmesg | grep -i nvlink` on the node: which links are down, and why",
                "reset all GPUs of the node and restart the fabric manager; if it stays, drain the node",
            ),
            cost=cost,
            evidence=[
                Origin(file.name, pci.line or None, f'<pci busid="{pci.get("busid")}">')
                for pci in observed.lacking.values()
            ],
        )


def _ask(tree: Element, minor: int) -> Prediction | None:
    prediction = ask(tree, minor)
    return prediction if prediction is not None and prediction.accepted else None


def _ring(prediction: Prediction) -> str:
    nvls = prediction.graph(3)
    text = spell_ring(prediction.graph(0), across=False)
    if prediction.library == "RCCL":
        return text
    return text + (", NVLS" if nvls is not None and nvls.channels else ", no NVLS")


@dataclass(frozen=True, slots=True)
class RepeatedDevices:
    """What stands twice in a file, with the elements that name it."""

    file: NcclFile
    devices: tuple[tuple[str, Sequence[Element]], ...]


class DeviceTwiceInFile(FileCheck[RepeatedDevices]):
    """TOP005 by a topology file or dump: one bus id, one NIC's name, or one GUID and port, at two places."""

    id = "TOP005"

    def observe_file(self, node: Node, file: NcclFile) -> RepeatedDevices | Outcome:
        twice = _twice(file.tree)
        return RepeatedDevices(file, tuple(twice)) if twice else self.clean(node, "no duplicate devices")

    def findings(self, judged: Node, observed: RepeatedDevices) -> Iterator[Finding]:
        name = observed.file.name
        words = [what for what, _ in observed.devices]
        yield self.finding(
            self.where(judged),
            "device twice in a file",
            f"{name.rpartition('/')[2]} holds {plural(len(words), 'device')} twice: {words[0]}",
            observed="; ".join(words[:4]),
            evidence=[Origin(name, element.line or None) for _, elements in observed.devices for element in elements],
        )


def _twice(tree: Element) -> list[tuple[str, list[Element]]]:
    """What stands twice, host by host: trays of a rack share bus ids. Functions of one adapter share its GUID."""
    places: dict[tuple[str, str], list[Element]] = defaultdict(list)
    ports: dict[tuple[str, str], list[Element]] = defaultdict(list)
    for cpu in tree.having("cpu"):
        host = cpu.get("host_hash") or ""
        for element in cpu.walk():
            if element.tag == "pci" and element.get("busid"):
                places[host, f"bus id {(element.get('busid') or '').lower()}"].append(element)
            elif element.tag == "net":
                if element.get("name"):
                    places[host, f"NIC {element.get('name')}"].append(element)
                guid = (element.get("guid") or "").lower()
                if guid.strip("0x") and element.get("port"):
                    ports[host, f"GUID {guid} port {element.get('port')}"].append(element)
    pairs = [(what, elements) for (_, what), elements in places.items() if len(elements) > 1]
    if not pairs:
        functions = _functions(tree)
        pairs = [
            (f"{' and '.join(str(element.get('name')) for element in elements)} ({what})", elements)
            for (_, what), elements in ports.items()
            if len(elements) > 1 and not _one_adapter([functions.get(id(element), "") for element in elements])
        ]
    return pairs


def _functions(tree: Element) -> dict[int, str]:
    """The bus id of the PCI function that each net stands in, by the net."""
    return {
        id(net): (pci.get("busid") or "").lower()
        for pci in tree.walk()
        if pci.tag == "pci"
        for nic in pci.having("nic")
        for net in nic.having("net")
    }


def _one_adapter(bus_ids: Sequence[str]) -> bool:
    """Whether these are several functions of one PCI device: bus ids that differ in their last digit alone."""
    return len(set(bus_ids)) == len(bus_ids) and len({bus_id[:-1] for bus_id in bus_ids}) == 1 and "" not in bus_ids
