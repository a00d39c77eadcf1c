"""What one rank prints of its node: the system tree, the paths, the graphs found, and the tuning table.

Formats: src/graph/topo.cc (ncclTopoPrint), paths.cc (printNodePaths), search.cc (ncclTopoPrintGraph) and tuning.cc of
NCCL 2.5 and later. All versions are brought to one form: ids in lower case with their system (`0-1b000`), bandwidths in
GB/s. A row that is cut or torn costs that row.

NCCL's tuning table: predicted latency (us) and bandwidth (GB/s) of every collective, algorithm and protocol.

Format: src/graph/tuning.cc, since 2.31 src/tuning/tuning.cc (without the row of threads). One wide table up to 2.17
(`Latency/AlgBw |    Tree/    LL |`), blocks of three algorithms from 2.18 on. The last block repeats the protocols of
three algorithms whatever it holds: cells count, not headings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field, replace
from functools import lru_cache

from topodiag.lazy import dataclass, regex
from topodiag.model.nccl_enums import Algorithm, Collective, PathType, Protocol
from topodiag.model.nccl_view import Graph, NcclSystem, SystemDevice, SystemLink, Tuning
from topodiag.model.provenance import Origin
from topodiag.words.own_data import patterns

_LIKE = patterns("evidence/nccl_log/grammar/system_print", "row")
_COLLECTIVE = regex(rf" *({'|'.join(Collective)}) \|")
# One CollNet up to 2.9.
_ALGORITHMS = {algorithm.value: algorithm.name for algorithm in Algorithm} | {"CollNet": Algorithm.COLLNET_DIRECT.name}
_PROTOCOLS = {protocol.value: protocol.name for protocol in Protocol}


class TuningReader:
    """Reads row by row. Names are those of NCCL_ALGO and NCCL_PROTO in upper case, as the choices have them."""

    def __init__(self) -> None:
        self.table: dict[tuple[str, str, str], tuple[float, float]] = {}
        self._columns: list[tuple[str, str]] = []
        self._algorithms: list[str] = []

    def read(self, row: str) -> None:
        label, *cells = (cell.strip() for cell in row[:2048].split("|"))
        if label == "Latency/AlgBw":
            self._columns = [_names(*cell.partition("/")[::2]) for cell in cells if cell]
        elif label == "Algorithm":
            self._algorithms, self._columns = [cell for cell in cells if cell], []
        elif label == "Protocol":
            protocols = [cell for cell in cells if cell][:3]
            self._columns = [_names(algorithm, protocol) for algorithm in self._algorithms for protocol in protocols]
        elif match := _COLLECTIVE.match(row):
            self._values(match[1], row, match.end())

    def _values(self, collective: str, row: str, at: int) -> None:
        for algorithm, protocol in self._columns:
            cell = _LIKE["cell"].match(row, at)
            if cell is None:
                return  # cut or torn: what follows cannot be placed
            at = cell.end()
            if algorithm and protocol:
                # Since 2.31 what a collective cannot run is -1.0; before, and of some still, 0.0.
                self.table[collective, algorithm, protocol] = max(float(cell[1]), 0.0), max(float(cell[2]), 0.0)


def _names(algorithm: str, protocol: str) -> tuple[str, str]:
    algorithm = algorithm.strip()
    return _ALGORITHMS.get(algorithm, algorithm.upper()), _PROTOCOLS.get(protocol.strip(), "")


_LINK_KINDS = {"QPI": "SYS"}
"""`QPI` is what 2.5 calls the link between sockets."""

_PATH_TYPES = {**PathType.__members__, "XGMI": PathType.NVL, "0": PathType.LOC, "1": PathType.NVL}
"""RCCL prints XGMI where NCCL prints NVL. NCCL 2.5 prints a path's widest kind of link as a number: 2 (PCI) and 3
(through a CPU) each stand for several path types, and such paths are left out."""

_BEFORE_2_21 = {"DIS": "NET"}
"""Up to 2.20 the table of names lacks NET, and DIS stands in its place (src/graph/topo.cc, topoPathTypeStr): peers of a
path had no dash yet."""

_OWNED = {"NET": ("NET", "GIN", "RMA"), "LOC": ("GPU",)}
"""Links other than PCI below which a vertex is printed as a child; other rows only refer to one printed elsewhere."""

_SYSTEM_SHIFT = 56
"""NCCL_TOPO_ID puts the system's number above the 56 bits of the local id."""


@dataclass(frozen=True, slots=True)
class Print:
    """`system` is the last complete one printed, after trimming; None when there is none."""

    system: NcclSystem | None = None
    graphs: tuple[Graph, ...] = ()
    tuning: Tuning = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether nothing that a later print says of the system and its graphs counts beside this one."""
        return self.system is not None and self.system.whole and bool(self.graphs)

    def joined(self, later: Print) -> Print:
        """Both of one rank, or of the ranks of a host: the first of everything, and of systems a whole one."""
        other = later.system is not None and (self.system is None or later.system.whole)
        return Print(later.system if other else self.system, self.graphs or later.graphs, self.tuning or later.tuning)


def read_print(text: str, origin: Origin | None = None) -> Print:
    """Read the rows that one thread printed of one communicator, joined by newlines. Never raises."""
    reader = _Reader(origin)
    for row in text.split("\n"):
        reader.read(row)
    return reader.result()


@lru_cache(maxsize=65536)
def vertex_name(kind: str, printed: str) -> str:
    """`GPU/0-1b000` from `GPU/1B000`, `GPU/0-1b000` or the raw 64-bit id that 2.21 and 2.22 print of a link's end."""
    return f"{kind}/{_normal_id(printed)}"


def _normal_id(printed: str) -> str:
    system, dash, local = printed.partition("-")
    if dash:
        return f"{int(system, 16):x}-{int(local, 16):x}"
    number = int(printed, 16)
    if number == (1 << 64) - 1:  # -1, as for a NUMA node that is not known
        return f"0-{number:x}"
    return f"{number >> _SYSTEM_SHIFT:x}-{number & ((1 << _SYSTEM_SHIFT) - 1):x}"


@dataclass
class _Draft:
    """One system print on its way."""

    max_gbs: float | None = None
    total_gbs: float | None = None
    complete: bool = False
    devices: dict[str, SystemDevice] = field(default_factory=dict)
    links: dict[SystemLink, None] = field(default_factory=dict)
    paths: dict[tuple[str, str], PathType] = field(default_factory=dict)
    above: list[tuple[int, str]] = field(default_factory=list)
    """Columns and names of the rows that the next one may hang below."""

    def add(self, kind: str, printed: str, detail: str, parent: str, defines: bool) -> str:
        name = vertex_name(kind, printed)
        known = self.devices.get(name)
        device = known or SystemDevice(kind, name.partition("/")[2])
        if defines and (known is None or not known.parent):
            device = replace(device, parent=parent)
        if detail:
            device = _with_detail(device, detail)
        if device is not known:
            self.devices[name] = device
        return name


class _Reader:
    def __init__(self, origin: Origin | None) -> None:
        self.origin = origin
        self.systems: list[_Draft] = []
        self.in_tree = False
        self.graphs: list[tuple[re.Match[str], list[tuple[str, ...]]]] = []
        self.tuning = TuningReader()
        self.dashed = False

    def read(self, row: str) -> None:
        if row.startswith("===") and row.strip("= ") == "":
            if self.in_tree:
                self.systems[-1].complete = True
            self.in_tree = False
        elif match := _LIKE["header"].match(row):
            total = match[2]
            self.systems.append(_Draft(float(match[1]), float(total) if total else None))
            self.in_tree = True
        elif match := _LIKE["branch"].match(row):
            self._branch(match)
        elif match := _LIKE["paths"].match(row):
            self._paths(match, row)
        elif match := _LIKE["graph"].match(row):
            self.graphs.append((match, []))
        elif match := _LIKE["order"].match(row):
            if self.graphs:
                self.graphs[-1][1].append(tuple(match[1].split()))
        elif match := _LIKE["root"].match(row):
            self._root(match)
        else:
            self.tuning.read(row)

    def _draft(self) -> _Draft:
        """The print that a row belongs to; rows whose header is lost make one of their own."""
        if not self.systems:
            self.systems.append(_Draft())
        return self.systems[-1]

    def _root(self, match: re.Match[str]) -> None:
        draft = self._draft()
        self.dashed |= "-" in match[2]
        draft.above = [(-1, draft.add(match[1], match[2], match[3] or "", "", defines=True))]

    def _branch(self, match: re.Match[str]) -> None:
        draft = self._draft()
        spaces, printed_kind, gbs, kind, printed, detail = match.groups()
        self.dashed |= "-" in printed
        column, link = len(spaces), _LINK_KINDS.get(printed_kind, printed_kind)
        while draft.above and draft.above[-1][0] >= column:
            draft.above.pop()
        parent = draft.above[-1][1] if draft.above else ""
        owned = link == "PCI" or kind in _OWNED.get(link, ())
        name = draft.add(kind, printed, detail or "", parent, defines=owned)
        draft.above.append((column, name))
        if parent:
            draft.links[SystemLink(parent, name, link, float(gbs))] = None

    def _paths(self, match: re.Match[str], row: str) -> None:
        draft = self._draft()
        self.in_tree = False
        start = vertex_name(match[1], match[2])
        for kind, printed, word in _LIKE["path"].findall(row, match.end()):
            known = _PATH_TYPES.get(_BEFORE_2_21.get(word, word) if "-" not in printed else word)
            if known is not None:
                draft.paths[start, vertex_name(kind, printed)] = known

    def result(self) -> Print:
        return Print(self._system(), tuple(self._graph(*graph) for graph in self.graphs), self.tuning.table)

    def _system(self) -> NcclSystem | None:
        if not self.systems:
            return None
        taken = next((draft for draft in reversed(self.systems) if draft.complete), None)
        if taken is None:
            taken = next((draft for draft in reversed(self.systems) if draft.devices), self.systems[-1])
        # Paths are printed once per trimming at most: those of the whole system hold for what is left of it.
        paths = taken.paths or next((draft.paths for draft in reversed(self.systems) if draft.paths), {})
        whole = taken.complete and taken.max_gbs is not None
        return NcclSystem(taken.max_gbs, taken.total_gbs, taken.devices, tuple(taken.links), paths, self.origin, whole)

    def _graph(self, match: re.Match[str], orders: Iterable[tuple[str, ...]]) -> Graph:
        pattern, cross, channels, intra, inter, type_intra, type_inter, same = match.groups()
        return Graph(
            pattern=int(pattern),
            cross_nic=int(cross),
            channels=int(channels),
            bw_intra=float(intra),
            bw_inter=float(inter),
            type_intra="" if type_intra.isdecimal() else type_intra,
            type_inter=type_inter or "",
            same_channels=same == "1",
            orders=tuple(tuple(self._ordered(vertex) for vertex in order) for order in orders),
            origin=self.origin,
        )

    def _ordered(self, vertex: str) -> str:
        """A vertex of a channel. Without a system GPUs are ranks (before 2.27), and left so; NETs are decimal up to
        2.20, and hexadecimal in 2.21 and 2.22, whose system print has dashes."""
        kind, _, printed = vertex.partition("/")
        if not _LIKE["id"].fullmatch(printed) or (kind == "GPU" and "-" not in printed):
            return vertex
        if "-" not in printed and not self.dashed and printed.isdecimal():
            printed = f"{int(printed):x}"
        return vertex_name(kind, printed)


def _with_detail(device: SystemDevice, detail: str) -> SystemDevice:
    """The figures in parentheses: what they are depends on the vertex."""
    parts = detail.split("/")
    if device.kind == "GPU":
        rank = _int(detail)
        return replace(device, rank=-1 if rank is None else rank)
    if device.kind == "CPU":
        return replace(device, numbers=tuple(number for part in parts if (number := _int(part)) is not None))
    if device.kind == "NET" and len(parts) in (3, 4):
        guid, port, gbs = parts[-3:]
        speed = float(gbs) if _LIKE["number"].fullmatch(gbs) else None
        return replace(device, guid=guid.lower(), port=_int(port), speed_gbs=speed)
    return device


def _int(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else None
