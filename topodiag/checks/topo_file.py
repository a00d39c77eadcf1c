"""Topology files before NCCL reads them: what a version refuses, what belongs to another machine, what is a rack's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topodiag.checks.common import plural
from topodiag.checks.interface import NodeCheck
from topodiag.cost.nccl.clean import hosts_of
from topodiag.cost.nccl.detect import LackingError, tree_of
from topodiag.cost.nccl.merge import loaded
from topodiag.cost.nccl.predict import predict_tree
from topodiag.cost.nccl.prediction import Prediction
from topodiag.cost.nccl.versions import NEWEST, OLDEST
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.nccl_tree import Element, NcclFile, Refusal
from topodiag.model.node import Node
from topodiag.model.provenance import Origin

SLOWER = 0.05
"""A file that costs more than this share of the ring's bandwidth is worse than none; less is a step of the ladder."""

MAX_WORDS = 120
"""Characters of NCCL's complaint that are repeated."""

ASKED = 28
"""The version whose search is asked where nobody named one: the reference of all rules here."""


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
        Files that NCCL takes, however odd: comments, single quotes, unknown elements and attributes. What NCCL fills
        in from the machine (dev, sm, rank, gdr, the attributes of PCI functions above a GPU) may be missing. A file
        that does not exist: NCCL then goes on without one.

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
            return self.not_applicable(node, "no topology file in the evidence")
        asked = file.asked or tuple(range(OLDEST, NEWEST + 1))
        refusing = [minor for minor in asked if file.refusal(minor) is not None]
        if refusing:
            refusal = file.refusal(refusing[-1])
            assert refusal is not None  # noqa: S101 - chosen by that
            return self.found(node, [self._report(node, file, refusal, refusing, len(asked))])
        minor = file.asked[0] if file.asked else ASKED
        built = _ask(file.tree, minor)
        if built is not None and not built.accepted:
            refusal = Refusal("structure", built.why, built.line, 0, "", minor, minor)
            return self.found(node, [self._report(node, file, refusal, [minor], 1)])
        return self.clean(node, f"NCCL {_versions(asked)} load it")

    def _report(self, node: Node, file: NcclFile, refusal: Refusal, refusing: Sequence[int], asked: int) -> Finding:
        where = Origin(file.name, refusal.line or None, refusal.text)
        words = _short(refusal.words)
        every = len(refusing) == asked
        return self.finding(
            node,
            Severity.ERROR if every or ASKED in refusing else Severity.WARNING,
            f"NCCL {_versions(refusing)} refuses {file.name}: {words}",
            observed=f"line {refusal.line}: {words}" if refusal.line else words,
            expected=_RULES.get(refusal.rule, "what NCCL's reader takes (src/graph/xml.cc)"),
            fix=(
                f"`topodiag emit nccl-topo {file.name} --nccl 2.{refusing[-1]} -o fixed.xml` writes it by NCCL's rules",
                "or unset NCCL_TOPO_FILE, so that NCCL looks at the machine itself",
            ),
            cost=Cost(share=1.0, text="no communicator is made: the job does not start"),
            evidence=[where],
        )


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
}


def _short(words: str) -> str:
    """NCCL's words without the middle of a value that it repeats at length."""
    return words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 30]} … {words[-24:]}"


def _versions(minors: Iterable[int]) -> str:
    """`2.18 to 2.30`, `2.28`, `2.18 to 2.20 and 2.29`."""
    runs: list[list[int]] = []
    for minor in sorted(minors):
        if runs and minor == runs[-1][1] + 1:
            runs[-1][1] = minor
        else:
            runs.append([minor, minor])
    return " and ".join(f"2.{low}" if low == high else f"2.{low} to 2.{high}" for low, high in runs)


def _ask(tree: Element, minor: int, nodes: int = 1) -> Prediction | None:
    """NCCL's decisions; None where there is no GPU to decide about, which NCCL fills in from the machine."""
    if not any(element.tag == "gpu" for element in tree.walk()):
        return None
    return predict_tree(tree, nodes=nodes, version=f"2.{minor}", sizes=(1 << 30,))


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
        The file, beside a bundle, a log or another file (--against). NCCL's search on what it would detect there, and
        on what it would make of the file there.

    When it stays silent
        Nothing to compare with. Differences that are so by nature: host hash, GUIDs, numbering. NICs that settings
        leave out (NCCL_IB_HCA). A comparison that a log allows for some devices only judges these.

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
            return self.not_applicable(node, "no topology file in the evidence")
        other = file.against
        if other is None:
            return self.not_applicable(node, "nothing to compare the file with: --against a bundle, a log or a file")
        if not other.gpus and not other.nics:
            return self.unknown(node, f"{other.host} names neither GPU nor NIC")
        found = [finding for finding in (self._devices(node, file, other), self._slower(node, file, other)) if finding]
        return self.found(node, found) if found else self.clean(node, f"its devices are those of {other.host}")

    def _devices(self, node: Node, file: NcclFile, other: Node) -> Finding | None:
        mine = {gpu.bus_id.lower(): gpu for gpu in node.gpus if gpu.bus_id}
        theirs = {gpu.bus_id.lower(): gpu for gpu in other.gpus if gpu.bus_id}
        words: list[str] = []
        if theirs:
            words += [f"GPU {bus} is not on {other.host}" for bus in mine if bus not in theirs]
            words += [f"GPU {bus} of {other.host} is not in the file" for bus in theirs if bus not in mine]
            words += [
                f"GPU {bus} has sm {gpu.sm.value} in the file and {theirs[bus].sm.value} on {other.host}"
                for bus, gpu in mine.items()
                if bus in theirs and gpu.sm.value and theirs[bus].sm.value and gpu.sm.value != theirs[bus].sm.value
            ]
        names = {nic.rdma_name or nic.name for nic in node.nics}
        there = {nic.rdma_name or nic.name for nic in other.nics if nic.rdma_name or other.nccl_file}
        if names and there:
            words += [f"NIC {name} is not on {other.host}" for name in sorted(names - there)]
            used = _in_use(other)
            words += [f"NIC {name} of {other.host} is not in the file" for name in sorted((there & used) - names)]
        if not words:
            return None
        gone = [word for word in words if word.startswith("GPU")]
        return self.finding(
            node,
            Severity.ERROR if gone else Severity.WARNING,
            f"{file.name} is not of {other.host}: {words[0]}"
            + (f", and {plural(len(words) - 1, 'more difference')}" if len(words) > 1 else ""),
            observed="; ".join(words[:6]),
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
        minor = file.asked[0] if file.asked else ASKED
        nodes = 2 if any(element.tag == "net" for element in tree.walk()) else 1
        ours, plain = _ask(loaded(file.tree, tree), minor, nodes), _ask(tree, minor, nodes)
        if ours is None or plain is None or not (ours.accepted and plain.accepted):
            return None
        with_file, without = _ring_gbs(ours), _ring_gbs(plain)
        if with_file >= without * (1 - SLOWER) or ours.ranks != plain.ranks:
            return None
        return self.finding(
            node,
            Severity.ERROR,
            f"{file.name} makes NCCL slower than no file would: rings of {with_file:g} GB/s instead of {without:g}",
            observed=_spell_ring(ours),
            expected=f"{_spell_ring(plain)}, which NCCL 2.{minor} finds on {other.host} by itself",
            fix=("unset NCCL_TOPO_FILE", "or write the file anew: `topodiag emit nccl-topo BUNDLE -o topo.xml`"),
            cost=Cost(
                without - with_file, 1 - with_file / without, f"by NCCL's own search over {plural(nodes, 'node')}"
            ),
            evidence=[Origin(file.name)],
            confidence=Confidence.HIGH if other.nccl_file is not None else Confidence.MEDIUM,
        )


def _in_use(node: Node) -> set[str]:
    """The NICs that NCCL would take there."""
    try:
        tree = tree_of(node).tree
    except LackingError:
        return {nic.rdma_name or nic.name for nic in node.nics}
    return {element.get("name") or "" for element in tree.walk() if element.tag == "net"}


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
            return self.not_applicable(node, "no topology file in the evidence")
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
                    f"{file.name} is a dump of {len(hosts)} nodes: as a topology file it gives a node others' GPUs",
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
