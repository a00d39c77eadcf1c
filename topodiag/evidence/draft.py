"""The node under construction: sources offer values for fields of entities, in any order and spelling of identity.

An entity is found by any of its keys; keys given together are learnt to mean one thing, and entities that turn out
to be the same are merged. Each field keeps every offer; `assemble` picks the most trusted and records the others
that differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from topodiag.lazy import dataclass
from topodiag.model.busid import normalise_bus_id
from topodiag.model.events import Event
from topodiag.model.node import ConfLine, Process, Setting
from topodiag.model.provenance import Fact, NotObserved, Origin, Topic
from topodiag.model.tables import Table
from topodiag.words.dialect import Maker

if TYPE_CHECKING:
    from topodiag.model.nccl_tree import NcclFile

Key = str | int


class Offer(msgspec.Struct, frozen=True):  # a capture has thousands, and a dataclass takes seven times as long
    """One source's value for a field, or its reason for having none (`value is None`)."""

    value: Any
    origin: Origin
    trust: int
    sample: int
    why: str = ""


@dataclass(slots=True)
class Weight:
    """How far what is read now is trusted, and which sample it belongs to."""

    trust: int = 0
    sample: int = 0


class Entity:
    """A handle on one device under construction; stays valid when the device is merged with another.

    It knows what is read now and not its draft: a draft and its hundreds of entities would hold each other, and stay
    until Python searches for cycles.
    """

    __slots__ = ("_children", "_counters", "_keys", "_merged_into", "_offers", "_weight")

    def __init__(self, weight: Weight) -> None:
        self._weight = weight
        self._merged_into: Entity | None = None
        self._keys: dict[str, Key] = {}
        self._offers: dict[str, list[Offer]] = {}
        self._counters: dict[str, list[Offer]] = {}
        self._children: dict[tuple[str, Key], Entity] = {}

    @property
    def root(self) -> Entity:
        """The device this handle means after all merges."""
        entity = self
        while entity._merged_into is not None:
            entity = entity._merged_into
        return entity

    @property
    def keys(self) -> dict[str, Key]:
        return self.root._keys

    @property
    def offers(self) -> dict[str, list[Offer]]:
        return self.root._offers

    @property
    def counters(self) -> dict[str, list[Offer]]:
        return self.root._counters

    @property
    def children(self) -> dict[tuple[str, Key], Entity]:
        return self.root._children

    def offer(self, name: str, value: Any, origin: Origin, why: str = "") -> None:
        """Offer a value for a field of the model's class by its name. None is ignored, unless `why` says why a source
        that looked for the field has no value."""
        if value is not None or why:
            why = why if value is None else ""
            offered = Offer(value, origin, self._weight.trust, self._weight.sample, why)
            self.offers.setdefault(name, []).append(offered)

    def put(self, origin: Origin, **values: Any) -> None:
        """Offer the values of some fields; None is none."""
        for name, value in values.items():
            self.offer(name, value, origin)

    def count(self, name: str, value: int | None, origin: Origin) -> None:
        """Offer a reading of a cumulative counter; the draft knows which sample it belongs to."""
        if value is not None:
            self.counters.setdefault(name, []).append(Offer(value, origin, self._weight.trust, self._weight.sample))

    def child(self, kind: str, key: Key) -> Entity:
        """A part of this device: `("nvlink", 4)` of a GPU, `("port", 1)` of a NIC."""
        children = self.children
        if (kind, key) not in children:
            children[kind, key] = Entity(self._weight)
        return children[kind, key]

    def absorb(self, other: Entity) -> None:
        """Make `other` the same device as this one."""
        mine, theirs = self.root, other.root
        if mine is theirs:
            return
        for name, key in theirs._keys.items():
            mine._keys.setdefault(name, key)
        for own, others in ((mine._offers, theirs._offers), (mine._counters, theirs._counters)):
            for name, offers in others.items():
                own.setdefault(name, []).extend(offers)
        for place, child in theirs._children.items():
            mine._children.setdefault(place, child).absorb(child)
        theirs._merged_into = mine


@dataclass(frozen=True, slots=True)
class PairOffer:
    """One source's word on a pair of devices in a table (`smi`, `pcie`, `p2p:read`)."""

    table: str
    a: Entity
    b: Entity
    offer: Offer


UNNAMED_NIC = "the port"
"""The RDMA name of an adapter whose text does not name it: it counts where no other adapter is known."""


class NodeDraft:
    """Everything offered so far for one node. `weight` is set by the reader before each source fills."""

    def __init__(self) -> None:
        self.weight = Weight()
        self.sample_interval_s = 0.0
        self.singles: dict[str, Entity] = {}
        self.pairs: list[PairOffer] = []
        self.events: list[Event] = []
        self.reports: list[Event] = []
        self.tables: list[Table] = []
        self.processes: list[Process] = []
        self.settings: list[Setting] = []
        self.conf_lines: list[ConfLine] = []
        self.acs_lines: list[Fact[int]] = []
        self.missing: list[NotObserved] = []
        self.nccl_file: NcclFile | None = None
        self.read: set[str] = set()
        """Kinds of sources."""
        self.topics: set[Topic] = set()
        self.makers: set[Maker] = set()
        self.only_loads: set[bool] = set()
        """Of each kernel log that names NVIDIA's driver, whether it shows no more of it than that it was loaded."""
        self._index: dict[tuple[str, str, Key], Entity] = {}
        self._entities: dict[str, list[Entity]] = {}

    def single(self, kind: str) -> Entity:
        """The one entity of a kind: `node`, `cpu`, `os`, `services`, `scheduler`, `registry`."""
        if kind not in self.singles:
            self.singles[kind] = Entity(self.weight)
        return self.singles[kind]

    def gpu(self, *, index: int | None = None, bus_id: str | None = None, uuid: str | None = None) -> Entity:
        return self._find("gpu", {"index": index, "bus_id": _bus(bus_id), "uuid": uuid})

    def nic(self, *, rdma: str | None = None, bus_id: str | None = None, label: str | None = None) -> Entity:
        """A NIC by its RDMA name, its PCI function, or its column in `topo -m`."""
        return self._find("nic", {"rdma": rdma, "bus_id": _bus(bus_id), "label": label})

    def netdev(self, name: str) -> Entity:
        return self._find("netdev", {"name": name})

    def fabric_port(self, name: str, guid: str, number: int) -> Entity:
        """A port somewhere in the fabric: of a switch or of any host's adapter. `number` 0 is all ports of a switch."""
        return self._find("fabric", {"port": f"{number} {guid} {name}"})

    def pci(self, bus_id: str) -> Entity:
        return self._find("pci", {"bus_id": _bus(bus_id) or bus_id.lower()})

    def numa(self, number: int) -> Entity:
        return self._find("numa", {"id": number})

    def pair(self, table: str, a: Entity, b: Entity, value: str, origin: Origin) -> None:
        """Offer a word on a pair: table `smi` (`topo -m`), `pcie` (PCIe level alone) or `p2p:CAPABILITY`."""
        self.pairs.append(PairOffer(table, a, b, Offer(value, origin, self.weight.trust, self.weight.sample)))

    def entities(self, kind: str) -> Iterator[Entity]:
        """Distinct entities of a kind, in the order they were first named."""
        for entity in self._entities.get(kind, []):
            if entity._merged_into is None:
                yield entity

    def all_entities(self) -> Iterator[tuple[str, Entity]]:
        """Distinct entities with their kinds, each kind's in the order they were first named."""
        return ((kind, entity) for kind in self._entities for entity in self.entities(kind))

    def _find(self, kind: str, keys: dict[str, Any]) -> Entity:
        given = {name: key for name, key in keys.items() if key is not None}
        if len(given) == 1:  # nearly every call, and nearly always of a device that is known
            known = self._index.get((kind, *given.popitem()))
            if known is not None:
                return known.root
            given = {name: key for name, key in keys.items() if key is not None}
        entities = [
            self._index[kind, name, key].root for name, key in given.items() if (kind, name, key) in self._index
        ]
        if entities:
            entity = entities[0]
            for other in entities[1:]:
                entity.absorb(other)
        else:
            entity = Entity(self.weight)
            self._entities.setdefault(kind, []).append(entity)
        for name, key in given.items():
            self._index.setdefault((kind, name, key), entity)
            entity.keys.setdefault(name, key)
        return entity


def _bus(text: str | None) -> str | None:
    return None if text is None else normalise_bus_id(text)
