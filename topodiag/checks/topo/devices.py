"""Devices of a topology file: a GPU without the NVLinks of its peers, a device that stands there twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from topodiag.checks.shared.topo_evidence import ASKED, ask, cost_by_model, spell_ring
from topodiag.checks.shared.topo_file import FileCheck
from topodiag.model.finding import Finding, Outcome
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.nccl_versions import spell_version
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.nccl.prediction import Prediction
from topodiag.nccl.topo.changes import bus_of, gpus_of
from topodiag.nccl.topo.repair import nvlink_totals, repair
from topodiag.words.units import fold_runs, plural

COLLAPSED = 0.5
"""A search that loses more than this share of the bandwidth has collapsed."""


class GpuShortInFile(FileCheck, id="TOP004"):
    """TOP004 by a topology file or dump: with what the loss is by NCCL's own search, and the file that repairs it."""

    def observe_file(self, node: Node, file: NcclFile) -> Outcome:
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
        lacking = {f"GPU{dev}": pci for dev, pci in gpus.items() if bus_of(pci) in short}
        have = "/".join(map(str, sorted(set(short.values()))))
        return self.any_of(node, [self._report(node, file, lacking, have, best)])

    def _report(self, node: Node, file: NcclFile, lacking: Mapping[str, Element], have: str, best: int) -> Finding:
        """GPUs with fewer NVLinks than their peers, by label, and what NCCL makes of the file as it is and repaired."""
        minor = file.asked[0] if file.asked else ASKED
        now, then = _ask(file.tree, minor), _ask(repair(file.tree).tree, minor)
        cost = cost_by_model(then, now, " on this node", "every ring of the node passes this GPU")
        labels = list(lacking)
        verb = "has" if len(labels) == 1 else "have"
        collapsed = cost.share is not None and cost.share > COLLAPSED
        return self.finding(
            self.where(node, gpus=labels),
            "short in a file",
            f"{fold_runs(labels)} {verb} {have} NVLinks to the NVSwitches where the peers have {best}"
            + (": NCCL's search collapses, without a warning" if collapsed else ""),
            observed=f"{have} of {best} NVLinks" + (f"; NCCL {spell_version(minor)} finds {_ring(now)}" if now else ""),
            expected=f"{best} NVLinks" + (f"; NCCL {spell_version(minor)} would find {_ring(then)}" if then else ""),
            fix=self.steps("repair the file", "links of the node", file=file.name),
            cost=cost,
            evidence=[
                Origin(file.name, pci.line or None, f'<pci busid="{pci.get("busid")}">') for pci in lacking.values()
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


class DeviceTwiceInFile(FileCheck, id="TOP005"):
    """TOP005 by a topology file or dump: one bus id, one NIC's name, or one GUID and port, at two places."""

    def observe_file(self, node: Node, file: NcclFile) -> Outcome:
        twice = _twice(file.tree)
        if not twice:
            return self.clean(node, "no duplicate devices")
        words = [what for what, _ in twice]
        finding = self.finding(
            self.where(node),
            "device twice in a file",
            f"{file.name.rpartition('/')[2]} holds {plural(len(words), 'device')} twice: {words[0]}",
            observed="; ".join(words[:4]),
            evidence=[Origin(file.name, element.line or None) for _, elements in twice for element in elements],
        )
        return self.any_of(node, [finding])


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
    return {id(net): bus_of(pci) for pci in tree.walk() if pci.tag == "pci" for net in pci.nets}


def _one_adapter(bus_ids: Sequence[str]) -> bool:
    """Whether these are several functions of one PCI device: bus ids that differ in their last digit alone."""
    return len(set(bus_ids)) == len(bus_ids) and len({bus_id[:-1] for bus_id in bus_ids}) == 1 and "" not in bus_ids
