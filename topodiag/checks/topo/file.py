"""Topology files before NCCL reads them: what a version refuses, what is a rack's, a GPU without the NVLinks of its
peers, a device that stands there twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from topodiag.checks.shared import topo_evidence
from topodiag.checks.shared.topo_evidence import ASKED, ask, cost_by_model, spell_ring
from topodiag.checks.shared.topo_file import FileCheck
from topodiag.model import nccl_versions
from topodiag.model.finding import Finding, Outcome, Severity
from topodiag.model.nccl_tree import Element, NcclFile, Refusal, of_rccl
from topodiag.model.nccl_versions import spell_version, spell_versions
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.nccl.prediction import Prediction
from topodiag.nccl.topo.changes import bus_of, gpus_of
from topodiag.nccl.topo.clean import hosts_of
from topodiag.nccl.topo.detect import LackingError, tree_of
from topodiag.nccl.topo.merge import loaded
from topodiag.nccl.topo.repair import nvlink_totals, repair
from topodiag.words.own_data import own_data
from topodiag.words.places import base_name
from topodiag.words.units import fold_runs, grouped, plural

MAX_WORDS = 120
"""Characters of NCCL's complaint that are repeated."""

OLD_SEARCH = nccl_versions.Feature.NO_HOPS_FOLLOWED.since - 1
"""Up to this version the search of NVLS fails on a GPU without a path to the NVSwitches (src/graph/search.cc)."""


class FileRefused(FileCheck, id="TOP001"):
    """TOP001: NCCL refuses the topology file that it was given

    What it finds
        A topology file that a version of NCCL does not load: the line, NCCL's own words, the versions. NCCL's reader is
        not an XML reader: an XML declaration, a tab, a line break inside a tag, text between tags, a value of 255
        characters, more than 256 elements end it. A well-formed file can still lack what NCCL needs: a bus id, a
        class, the speed and width of a link, the reverse of a direct NVLink. In a log: the warning that NCCL gave.

    Why it matters
        The first communicator fails with an internal error or `invalid usage`, on every rank of the node: the job does
        not start. The line is a warning far above the last line of the log.

    Evidence it reads
        The topology file, by NCCL's own lexical rules of each version that is known, then by the rules by which
        NCCL builds its system graph. In a log: warnings of graph/xml.cc and graph/topo.cc, and the file that `Loading
        topology file` or NCCL_TOPO_FILE names.

    When it stays silent
        Files that NCCL takes, however odd: comments, unknown elements and attributes. What NCCL fills in from the
        machine (dev, sm, rank, gdr, attributes of functions above a GPU) may be missing. A file that does not exist.
        A file without any GPU, or one that NCCL_TOPO_FILE names and the capture does not hold, is unknown.

    How to confirm
        topodiag topo check FILE --nccl VERSION
        head -3 "$NCCL_TOPO_FILE"                         `<system version="1">` comes first

    How to fix
        topodiag emit nccl-topo FILE --nccl VERSION -o fixed.xml writes it by NCCL's rules. Or write it again with
        NCCL_TOPO_DUMP_FILE on a healthy node of the same machine type, or unset NCCL_TOPO_FILE and delete
        /var/run/nvidia-topologyd/virtualTopology.xml, the file that is read without it.

    References
        NCCL src/graph/xml.cc (xmlGetToken, xmlLoadSub, ncclTopoGetXmlFromFile), src/graph/xml.h, src/graph/topo.cc
        of every known version.
    """

    def observe_file(self, node: Node, file: NcclFile) -> Outcome:
        tree = _completed(node, file)
        asked = file.asked or nccl_versions.KNOWN
        pairs = ((minor, topo_evidence.refusal_of(file, tree, minor)) for minor in asked)
        refusals = {minor: refusal for minor, refusal in pairs if refusal is not None}
        if refusals:
            return self.any_of(node, [self._report(node, file, refusals, len(asked))])
        if not tree.holds("gpu"):
            why = "NCCL's reader takes it, but it names no GPU: the rest is up to the machine (--against BUNDLE)"
            return self.unknown(node, why)
        searched = _search_refusals(tree, file) if not of_rccl(tree) else {}  # RCCL goes on in the simple order
        if searched:
            return self.any_of(node, [self._report(node, file, searched, len(asked))])
        return self.clean(node, f"NCCL {spell_versions(asked)} {'loads' if len(asked) == 1 else 'load'} it")

    def _report(self, node: Node, file: NcclFile, refusals: Mapping[int, Refusal], asked: int) -> Finding:
        """Why versions of NCCL do not take a file, by minor, of so many versions that were asked."""
        refusing = list(refusals)
        # The newest version's words: those that a reader is likely to meet.
        refusal = refusals[refusing[-1]]
        words = _short(refusal.words)
        all_refused = len(refusing) == asked
        mend = {"search": "broken search", "structure": "broken structure"}.get(refusal.rule, "another rule")
        return self.finding(
            self.where(node),
            "refused",
            f"NCCL {spell_versions(refusing)} {'refuses' if len(refusing) == 1 else 'refuse'} {base_name(file.name)}:"
            f" {words}",
            severity=Severity.ERROR if all_refused or topo_evidence.ASKED in refusing else Severity.WARNING,
            observed="; ".join(_complaints(refusals)),
            expected=_rule(refusal.rule),
            fix=self.steps(mend, "without the file", file=file.name, version=spell_version(refusing[-1])),
            evidence=[Origin(file.name, refusal.line or None, refusal.text)],
        )


def _search_refusals(tree: Element, file: NcclFile) -> dict[int, Refusal]:
    """What only the search refuses, by version. Where none was named the reference and the last one of the old search
    are asked, and its elders where that one refuses."""
    minors = list(file.asked or (OLD_SEARCH, topo_evidence.ASKED))
    refusals: dict[int, Refusal] = {}
    for minor in minors:
        refusal = topo_evidence.search_refusal_of(tree, minor)
        if refusal is not None:
            refusals[minor] = refusal
            if minor == OLD_SEARCH and not file.asked:
                minors.extend(older for older in nccl_versions.KNOWN if older < OLD_SEARCH)
    return dict(sorted(refusals.items()))


def _completed(node: Node, file: NcclFile) -> Element:
    """What NCCL works on: the file, completed by the machine that it is for where that is known and is its own."""
    machine = topo_evidence.machine_of(node)
    there = {gpu.bus_id.lower() for gpu in machine.gpus if gpu.bus_id} if machine is not None else set()
    # A file of another machine is judged as it stands: what becomes of it here is TOP002's.
    if machine is None or not there or not set(topo_evidence.devices_of(file.tree)[0]) <= there:
        return file.tree
    try:
        return loaded(file.tree, tree_of(machine).tree)
    except LackingError:
        return file.tree


def _complaints(refusals: Mapping[int, Refusal]) -> Iterator[str]:
    """Each complaint with its line, and the versions that utter it where they do not agree."""
    versions = grouped(
        (f"line {refusal.line}: {_short(refusal.words)}" if refusal.line else _short(refusal.words), minor)
        for minor, refusal in refusals.items()
    )
    for words, minors in versions.items():
        yield words if len(versions) == 1 else f"{words} ({spell_versions(minors)})"


def _rule(name: str) -> str:
    """What NCCL's reader takes, by the rule that a file breaks."""
    words: str = own_data("checks/topo/rules").get(name, "what NCCL's reader takes (src/graph/xml.cc)")
    return words.format(
        old=f"up to NCCL {spell_version(OLD_SEARCH)}",
        elements=nccl_versions.MAX_ELEMENTS[nccl_versions.NEWEST],
        old_elements=nccl_versions.MAX_ELEMENTS[nccl_versions.OLDEST],
        children=nccl_versions.MAX_CHILDREN[OLD_SEARCH + 1],
        old_children=nccl_versions.MAX_CHILDREN[nccl_versions.OLDEST],
    )


def _short(words: str) -> str:
    """NCCL's words without the middle of a value that it repeats at length."""
    return words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 30]} … {words[-24:]}"


class FileOfARack(FileCheck, id="TOP006"):
    """TOP006: a dump of several nodes is used as a topology file

    What it finds
        A topology file with processors of more than one host: the dump of a job in a multi-node NVLink domain (GB200
        NVL72 and its like), into which NCCL merged the trees of all its nodes.

    Why it matters
        NCCL gives every processor of a file the hash of the host that reads it: the GPUs of the other trays are then
        taken as this node's own until they are trimmed, bus ids that two trays share collide, and the limit of 256
        elements is soon passed.

    Evidence it reads
        host_hash of each <cpu> in the file.

    When it stays silent
        One host, or no host hash at all (written before NCCL 2.21, or by hand).

    How to confirm
        grep -o 'host_hash="[^"]*"' FILE | sort -u        one line is one host

    How to fix
        topodiag emit nccl-topo FILE --host HASH -o node.xml cuts one node out.

    References
        NCCL src/graph/xml.cc (ncclTopoXmlLoadCpu, ncclTopoFuseXml), src/graph/xml.h (NCCL_TOPO_XML_MAX_NODES) v2.28.
    """

    def observe_file(self, node: Node, file: NcclFile) -> Outcome:
        hosts = hosts_of(file.tree)
        if len(hosts) < 2:
            return self.clean(node, "it is of one host")
        first = [next(cpu for cpu in file.tree.having("cpu") if (cpu.get("host_hash") or "") == host) for host in hosts]
        finding = self.finding(
            self.where(node),
            self.advice("file of a rack", file=file.name, host=hosts[0]),
            f"{base_name(file.name)} is a dump of {len(hosts)} nodes: as a topology file it gives a node the GPUs of"
            " others",
            observed=f"{len(hosts)} host hashes: {', '.join(hosts[:4])}",
            evidence=[
                Origin(file.name, cpu.line or None, f'<cpu numaid="{cpu.get("numaid")}" host_hash="{host}">')
                for cpu, host in zip(first, hosts, strict=True)
            ],
        )
        return self.any_of(node, [finding])


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
