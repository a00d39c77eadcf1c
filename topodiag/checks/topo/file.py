"""Topology files before NCCL reads them: what a version refuses, what belongs to another machine, what is a rack's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import plural
from topodiag.checks.topo.evidence import (
    ASKED,
    ask,
    devices_of,
    has_gpus,
    machine_of,
    refusal_of,
    spell_some,
    spell_versions,
    unset_file,
    without_file,
)
from topodiag.model.devices import NicRole
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.nccl_tree import Element, NcclFile, Refusal
from topodiag.model.nccl_versions import NEWEST, OLDEST
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.nccl.prediction import Prediction
from topodiag.nccl.topo.clean import hosts_of
from topodiag.nccl.topo.detect import LackingError, tree_of
from topodiag.nccl.topo.merge import loaded

SLOWER = 0.05
"""A file that costs more than this share of the ring's bandwidth is worse than none; less is a step of the ladder."""

MAX_WORDS = 120
"""Characters of NCCL's complaint that are repeated."""

OLD_SEARCH = 20
"""Up to this version the search of NVLS fails on a GPU without a path to the NVSwitches (src/graph/search.cc)."""

SHOWN = 6
"""Differences that are told one by one."""


class FileRefused(NodeCheck):
    """TOP001: NCCL refuses the topology file that it was given

    What it finds
        A topology file that a version of NCCL does not load: the line, NCCL's own words, the versions. NCCL's reader is
        not an XML reader: an XML declaration, a tab, a line break inside a tag, text between tags, a value of 255
        characters, more than 256 elements end it. What is well formed can still lack what NCCL needs: a bus id, a
        class, the speed and width of a link, the reverse of a direct NVLink. In a log: the warning that NCCL gave.

    Why it matters
        The first communicator fails with an internal error or `invalid usage`, on every rank of the node: the job does
        not start. The line is a warning far above the last line of the log.

    Evidence it reads
        The topology file, by NCCL's own lexical rules of each version from 2.18 to 2.30, then by the rules by which
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
        v2.18 to v2.30.
    """

    id = "TOP001"
    title = "NCCL refuses the topology file that it was given"

    def judge(self, node: Node, peers: Sequence[Node]) -> Outcome:
        file = node.nccl_file
        if file is None:
            return without_file(self, node)
        tree = _completed(node, file)
        asked = file.asked or tuple(range(OLDEST, NEWEST + 1))
        refusals = {minor: refusal for minor in asked if (refusal := refusal_of(file, tree, minor)) is not None}
        if refusals:
            return self.found(node, [self._report(node, file, refusals, len(asked))])
        if not has_gpus(tree):
            why = "NCCL's reader takes it, but it names no GPU: the rest is up to the machine (--against BUNDLE)"
            return self.unknown(node, why)
        searched = _search_refusals(tree, file)
        if searched:
            return self.found(node, [self._report(node, file, searched, len(asked))])
        return self.clean(node, f"NCCL {spell_versions(asked)} {'loads' if len(asked) == 1 else 'load'} it")

    def _report(self, node: Node, file: NcclFile, refusals: dict[int, Refusal], asked: int) -> Finding:
        refusing = list(refusals)
        # The newest version's words: those that a reader is likely to meet.
        refusal = refusals[refusing[-1]]
        words = _short(refusal.words)
        every = len(refusing) == asked
        return self.finding(
            node,
            Severity.ERROR if every or ASKED in refusing else Severity.WARNING,
            f"NCCL {spell_versions(refusing)} {'refuses' if len(refusing) == 1 else 'refuse'} {_base(file.name)}:"
            f" {words}",
            observed="; ".join(_said(refusals)),
            expected=_RULES.get(refusal.rule, "what NCCL's reader takes (src/graph/xml.cc)"),
            fix=(
                _mended(refusal.rule, file.name, refusing[-1]),
                "or unset NCCL_TOPO_FILE, so that NCCL looks at the machine itself",
            ),
            cost=Cost(share=1.0, text="no communicator is made: the job does not start"),
            evidence=[Origin(file.name, refusal.line or None, refusal.text)],
        )


def _mended(rule: str, name: str, minor: int) -> str:
    if rule == "search":
        return f"`topodiag emit nccl-topo {name} --repair -o repaired.xml` gives it the links that its siblings have"
    if rule == "structure":
        return "write it again on a healthy node of this type (NCCL_TOPO_DUMP_FILE), or mend what the line lacks"
    return f"`topodiag emit nccl-topo {name} --nccl 2.{minor} -o fixed.xml` writes it by NCCL's rules"


def _search_refusals(tree: Element, file: NcclFile) -> dict[int, Refusal]:
    """What only the search refuses, by version. Where none was named the reference and the last one of the old search
    are asked, and its elders where that one refuses."""
    minors = list(file.asked or (OLD_SEARCH, ASKED))
    refusals: dict[int, Refusal] = {}
    for minor in minors:
        made = ask(tree, minor)
        if made is not None and not made.accepted:
            refusals[minor] = Refusal("search", made.why, made.line, 0, "", minor, minor)
            if minor == OLD_SEARCH and not file.asked:
                minors.extend(range(OLDEST, OLD_SEARCH))
    return dict(sorted(refusals.items()))


def _reference(file: NcclFile) -> int:
    return file.asked[0] if file.asked else ASKED


def _completed(node: Node, file: NcclFile) -> Element:
    """What NCCL works on: the file, completed by the machine that it is for where that is known and is its own."""
    machine = machine_of(node)
    there = {gpu.bus_id.lower() for gpu in machine.gpus if gpu.bus_id} if machine is not None else set()
    # A file of another machine is judged as it stands: what becomes of it here is TOP002's.
    if machine is None or not there or not set(devices_of(file.tree).gpus) <= there:
        return file.tree
    try:
        return loaded(file.tree, tree_of(machine).tree)
    except LackingError:
        return file.tree


def _said(refusals: dict[int, Refusal]) -> Iterator[str]:
    """Each complaint with its line, and the versions that utter it where they do not agree."""
    versions: dict[str, list[int]] = {}
    for minor, refusal in refusals.items():
        words = f"line {refusal.line}: {_short(refusal.words)}" if refusal.line else _short(refusal.words)
        versions.setdefault(words, []).append(minor)
    for words, minors in versions.items():
        yield words if len(versions) == 1 else f"{words} ({spell_versions(minors)})"


def _base(name: str) -> str:
    """The last part of a path: messages are headlines."""
    return name.rstrip("/").rpartition("/")[2] or name


_RULES = {
    "prolog": "no XML declaration: NCCL's reader knows none",
    "byte-order-mark": "plain text from the first byte on",
    "tab": "blanks and line breaks only",
    "newline-in-tag": "each tag on one line, its attributes one blank apart",
    "closing-tag": "a closing tag for each opening one",
    "value-without-name": 'attributes as name="value", one blank apart',
    "text": "elements and comments only",
    "too-long": "names and values of at most 254 characters",
    "too-many-elements": "at most 256 elements (1024 up to NCCL 2.20)",
    "too-many-children": "at most 128 children of one element (32 up to NCCL 2.20)",
    "version": '<system version="1">',
    "no-system": "a <system> element",
    "structure": "every attribute that NCCL needs to build its system graph",
    "search": "links over which NCCL's search finds its channels",
}


def _short(words: str) -> str:
    """NCCL's words without the middle of a value that it repeats at length."""
    return words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 30]} … {words[-24:]}"


class FileOfAnotherMachine(NodeCheck):
    """TOP002: the topology file is not of this machine, or makes it slower than no file would

    What it finds
        A topology file whose GPUs or NICs are not those of the node or log it is compared with: stale bus ids, a GPU or
        NIC that is missing from the file, one that is only in the file, another compute capability. And a file that
        fits, but on which NCCL finds less bandwidth than on what it would detect by itself.

    Why it matters
        NCCL trusts the file: what it says of a device that is there wins over the hardware, and the device stays where
        the file puts it. A device of a wrong bus id is trimmed, and the real one is placed as a guest without a file
        would see it. One H200 node was slower with a topology file than with none.

    Evidence it reads
        The file, beside a bundle, a log or another file (--against), or the node that it was captured on. NCCL's search
        on what it would detect there, and on what it would make of the file there.

    When it stays silent
        Nothing to compare with. Differences that are so by nature: host hash, GUIDs, numbering. NICs that settings
        leave out (NCCL_IB_HCA), and those of storage. A log that shows some devices only lets these be judged.

    How to confirm
        nvidia-smi --query-gpu=index,pci.bus_id --format=csv     beside the busid of each <gpu>
        topodiag topo diff FILE BUNDLE

    How to fix
        topodiag emit nccl-topo BUNDLE -o topo.xml writes the file of this machine. A file that is slower than none:
        unset NCCL_TOPO_FILE.

    References
        NCCL src/graph/xml.cc (ncclTopoFillGpu, ncclTopoFillNet), src/graph/topo.cc (ncclTopoGetSystem) v2.28.
    """

    id = "TOP002"
    title = "the topology file is not of this machine, or makes it slower than no file would"

    def judge(self, node: Node, peers: Sequence[Node]) -> Outcome:
        file = node.nccl_file
        if file is None:
            return without_file(self, node)
        other = machine_of(node)
        if other is None:
            return self.not_applicable(node, "nothing to compare the file with: --against a bundle, a log or a file")
        if not other.gpus and not other.nics:
            return self.unknown(node, f"{other.host} names neither GPU nor NIC")
        found = [finding for finding in (self._devices(node, file, other), self._slower(node, file, other)) if finding]
        return self.found(node, found) if found else self.clean(node, f"its devices are those of {other.host}")

    def _devices(self, node: Node, file: NcclFile, other: Node) -> Finding | None:
        mine = devices_of(file.tree)
        theirs = {gpu.bus_id.lower(): gpu for gpu in other.gpus if gpu.bus_id}
        gpus: list[str] = []
        if mine.gpus and theirs:
            gpus += [f"GPU {bus} is not on {other.host}" for bus in mine.gpus if bus not in theirs]
            gpus += [f"GPU {bus} of {other.host} is not in the file" for bus in theirs if bus not in mine.gpus]
            gpus += [
                f"GPU {bus} has sm {sm} in the file and {theirs[bus].sm.value} on {other.host}"
                for bus, sm in mine.gpus.items()
                if bus in theirs and sm and theirs[bus].sm.value and sm != str(theirs[bus].sm.value)
            ]
        nics: list[str] = []
        there = {nic.rdma_name or nic.name for nic in other.nics if nic.rdma_name or other.nccl_file}
        if mine.nics and there:
            nics += [f"NIC {name} is not on {other.host}" for name in mine.nics if name not in there]
            missing = sorted((there & _in_use(other)) - set(mine.nics) - _aside(other))
            nics += [f"NIC {name} of {other.host} is not in the file" for name in missing]
        words = [*gpus, *nics]
        if not words:
            return None
        strange = not (set(mine.gpus) & set(theirs)) if mine.gpus and theirs else False
        headline = f"none of its GPUs is on {other.host}" if strange else words[0]
        more = f", and {plural(len(words) - 1, 'more difference')}" if len(words) > 1 and not strange else ""
        return self.finding(
            node,
            Severity.ERROR if gpus else Severity.WARNING,
            f"{_base(file.name)} is not of {other.host}: {headline}{more}",
            observed=spell_some(words, SHOWN),
            expected=f"the GPUs and NICs of {other.host}, by bus id and name",
            fix=(
                "write the file on this machine: NCCL_TOPO_DUMP_FILE, or `topodiag emit nccl-topo BUNDLE -o topo.xml`",
                "or unset NCCL_TOPO_FILE",
            ),
            cost=Cost(text="NCCL trims what is not there and places the rest itself: the file is of no use"),
            evidence=[Origin(file.name), *(gpu.sm.origin for gpu in theirs.values())][:4],
        )

    def _slower(self, node: Node, file: NcclFile, other: Node) -> Finding | None:
        try:
            tree = tree_of(other).tree
        except LackingError:
            return None
        minor = _reference(file)
        nodes = 2 if any(element.tag == "net" for element in tree.walk()) else 1
        ours, plain = ask(loaded(file.tree, tree), minor, nodes), ask(tree, minor, nodes)
        if ours is None or plain is None or not (ours.accepted and plain.accepted):
            return None
        with_file, without = _ring_gbs(ours), _ring_gbs(plain)
        if with_file >= without * (1 - SLOWER) or ours.ranks != plain.ranks:
            return None
        return self.finding(
            node,
            Severity.ERROR,
            f"{_base(file.name)} makes NCCL slower than no file would: rings of {with_file:g} GB/s"
            f" instead of {without:g}",
            observed=_spell_ring(ours),
            expected=f"{_spell_ring(plain)}, which NCCL 2.{minor} finds on {other.host} by itself",
            fix=("unset NCCL_TOPO_FILE", "or write the file anew: `topodiag emit nccl-topo BUNDLE -o topo.xml`"),
            cost=Cost(
                without - with_file, 1 - with_file / without, f"by NCCL's own search over {plural(nodes, 'node')}"
            ),
            evidence=[Origin(file.name)],
            confidence=Confidence.HIGH if other.nccl_file is not None else Confidence.MEDIUM,
            settings=unset_file(node),
        )


def _in_use(node: Node) -> set[str]:
    """The NICs that NCCL would take there."""
    try:
        tree = tree_of(node).tree
    except LackingError:
        return {nic.rdma_name or nic.name for nic in node.nics}
    return {element.get("name") or "" for element in tree.walk() if element.tag == "net"}


def _aside(node: Node) -> set[str]:
    """NICs of storage and management: whoever wrote the file may well have left them out (NCCL_IB_HCA)."""
    return {nic.rdma_name or nic.name for nic in node.nics if nic.role in (NicRole.STORAGE, NicRole.MANAGEMENT)}


def _ring_gbs(made: Prediction) -> float:
    ring = made.graph(0)
    return ring.channels * ring.bw_inter if ring is not None else 0.0


def _spell_ring(made: Prediction) -> str:
    ring = made.graph(0)
    return f"{plural(ring.channels, 'ring')} of {ring.bw_inter:g} GB/s" if ring is not None else "no ring"


class FileOfARack(NodeCheck):
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

    id = "TOP006"
    title = "a dump of several nodes is used as a topology file"

    def judge(self, node: Node, peers: Sequence[Node]) -> Outcome:
        file = node.nccl_file
        if file is None:
            return without_file(self, node)
        hosts = hosts_of(file.tree)
        if len(hosts) < 2:
            return self.clean(node, "it is of one host")
        first = [next(cpu for cpu in file.tree.having("cpu") if (cpu.get("host_hash") or "") == host) for host in hosts]
        return self.found(
            node,
            [
                self.finding(
                    node,
                    Severity.WARNING,
                    f"{_base(file.name)} is a dump of {len(hosts)} nodes: as a topology file it gives a node the GPUs"
                    " of others",
                    observed=f"{len(hosts)} host hashes: {', '.join(hosts[:4])}",
                    expected="one host: NCCL gives all processors of a file the hash of the host that reads it",
                    fix=(f"`topodiag emit nccl-topo {file.name} --host {hosts[0]} -o node.xml` cuts one node out",),
                    cost=Cost(text="colliding bus ids, wrong trims, and soon more than the 256 elements NCCL takes"),
                    evidence=[Origin(file.name, cpu.line or None, _shown(cpu)) for cpu in first],
                )
            ],
        )


def _shown(cpu: Element) -> str:
    return f'<cpu numaid="{cpu.get("numaid")}" host_hash="{cpu.get("host_hash")}">'
