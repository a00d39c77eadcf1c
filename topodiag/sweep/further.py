"""The next round: a second, different pairing for every suspect, narrowed to what could not be told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from topodiag.sweep.judge import CONTROL, shape
from topodiag.sweep.parts import crosses
from topodiag.sweep.plan import intra_run, ordered, pair_run, racks_run, rail_run
from topodiag.sweep.values import Fabric, Fault, Part, Standing, SweepJudgement, SweepPlan, SweepRun
from topodiag.words.units import grouped

CONTROLS = 3
"""Pairs of good nodes that run along where a shape of run was not measured yet: without them there is no normal."""
PARTNERS = 2
"""Partners of a rail that only a run over that rail has accused; a node whose pairs are slow has met two already."""
LEAST_OWN = 6
"""GPUs of a node from which its own pairs say what is normal: two of them are slow where one GPU is."""


def next_round(plans: Sequence[SweepPlan], judged: SweepJudgement, *, write_bw: bool = False) -> SweepPlan | None:
    """The plan of the round after the last, or None where no suspect is left (or none that runs could narrow). With
    `write_bw`, here or in the last plan, ib_write_bw tells the links of NICs from the GPUs' ways to them."""
    last = plans[-1]
    write_bw = write_bw or last.write_bw
    planner = _Planner(last.fabric, judged, last.round + 1, plans, write_bw)
    runs = planner.plan()
    if not runs:
        return None
    return SweepPlan(last.fabric, tuple(_in_waves(runs)), last.round + 1, last.launch, write_bw)


class _Planner:
    """One round being planned: which partners are taken, and which runs are asked for already."""

    def __init__(
        self, fabric: Fabric, judged: SweepJudgement, number: int, plans: Sequence[SweepPlan], write_bw: bool
    ) -> None:
        self.fabric, self.judged, self.number, self.write_bw = fabric, judged, number, write_bw
        self.runs: dict[str, SweepRun] = {}
        self.met: dict[str, set[str]] = {}
        self.load: dict[str, int] = {}
        self.known = {run.id: run for plan in plans for run in plan.runs}
        for run in self.known.values():
            if len(run.nodes) == 2:
                a, b = run.nodes
                self.met.setdefault(a, set()).add(b)
                self.met.setdefault(b, set()).add(a)
        accused = {part.place for fault in judged.faults for part in fault.parts if part.kind != "path"}
        slow = {node for run in judged.runs if run.standing is not Standing.NORMAL for node in run.run.nodes}
        linked = {part.place for part in judged.passed if part.kind in {"host", "link"}}
        good = [node for node in ordered(fabric) if node not in accused and node in linked]
        # Those first whose every run was normal; a node behind a bad leaf is good itself, and a poor partner.
        self.good = sorted(good, key=lambda node: (Part("host", node) not in judged.passed, node in slow))

    def plan(self) -> list[SweepRun]:
        for fault in self.judged.faults:
            if not fault.confirmed:
                self._suspect(fault)
            elif self.write_bw:
                self._wire(fault)
        self._controls()
        return list(self.runs.values())

    def _add(self, run: SweepRun) -> None:
        self.runs.setdefault(run.id, run)

    def _suspect(self, fault: Fault) -> None:
        of_net = grouped((part.place, part) for part in fault.parts if part.kind in {"link", "pcie", "host"})
        for node, parts in of_net.items():
            rails = {part.rail for part in parts if part.kind != "host"}
            self._node(node, rails, whole=any(part.kind == "host" for part in parts))
        self._switches(fault)
        for node in dict.fromkeys(part.place for part in fault.parts if part.kind in {"gpu", "board"}):
            self._gpus(node, fault)
        if any(part.kind == "path" for part in fault.parts):
            self._again(fault)

    def _switches(self, fault: Fault) -> None:
        rails_of = grouped(((part.kind, part.place), part.rail) for part in fault.parts)
        for (kind, rack), rails in rails_of.items():
            asked = list(range(self.fabric.rails)) if rails == [-1] else sorted(rails)
            if kind == "leaf":
                self._leaf(rack, asked)
            elif kind == "uplink":
                self._uplink(rack, asked)
            elif kind == "between":
                self._between(asked)

    def _node(self, node: str, rails: Iterable[int], *, whole: bool) -> None:
        for turn in range(1 if whole else PARTNERS):
            partner = self._partner(node)
            if partner is None:
                return
            if whole and turn == 0:
                self._add(pair_run(self.fabric, node, partner, 0, number=self.number))
            for rail in sorted(rails):
                self._add(rail_run(self.fabric, node, partner, rail, 0, number=self.number))

    def _partner(self, node: str) -> str | None:
        """A good node that this one has not met, of the same rack where there is one, and little used in this round."""
        rack = self.fabric.racks.get(node)
        met = self.met.setdefault(node, set())
        able = [other for other in self.good if other != node and other not in met]
        able = able or [other for other in self.good if other != node]
        if not able:
            return None
        best = min(
            able,
            key=lambda node: (
                Part("host", node) not in self.judged.passed,
                self.fabric.racks.get(node) != rack,
                self.load.get(node, 0),
            ),
        )
        self.load[best] = self.load.get(best, 0) + 1
        met.add(best)
        return best

    def _leaf(self, rack: str, rails: Iterable[int], most: int = 1 << 30) -> None:
        """Every node of the rack with one that is half the rack away, rail by rail: a bad NIC may hide there."""
        nodes = self.fabric.by_rack().get(rack, ())
        half = len(nodes) // 2
        shift = (self.number - 2) % half if half else 0
        for rail in rails:
            for place in range(min(half, most)):
                other = nodes[half + (place + shift) % half]
                self._add(rail_run(self.fabric, nodes[place], other, rail, 0, number=self.number))

    def _uplink(self, rack: str, rails: Sequence[int]) -> None:
        others = [node for node in self.fabric.by_rack() if node != rack]
        bad = {part.place for fault in self.judged.faults for part in fault.parts if part.kind in {"leaf", "uplink"}}
        good = [node for node in others if node not in bad] or others
        if not good:
            return
        other = good[(self.number + sum(map(ord, rack))) % len(good)]
        for rail in rails:
            self._add(racks_run(self.fabric, rack, other, 0, rail=rail, number=self.number))

    def _between(self, rails: Sequence[int]) -> None:
        """Two racks have no other partner: the same rails once more; and pairs inside each, which a bad leaf slows."""
        racks = list(self.fabric.by_rack())
        if len(racks) != 2:  # the last plan was edited
            return
        first, second = racks
        for rail in rails:
            self._add(racks_run(self.fabric, first, second, 0, rail=rail, number=self.number))
            for rack in (first, second):
                self._leaf(rack, [rail], most=2)

    def _gpus(self, node: str, fault: Fault) -> None:
        """The node once more, and every GPU with both of its neighbours: two slow pairs have one GPU in common."""
        if Part("board", node) in fault.parts:
            self._add(intra_run(self.fabric, node, 0, self.number))
        if self.fabric.gpus < 3:
            return
        step = 1 + (self.number - 2) % 2
        for gpu in range(self.fabric.gpus):
            a, b = sorted((gpu, (gpu + step) % self.fabric.gpus))
            self._add(self._two(node, a, b))

    def _again(self, fault: Fault) -> None:
        """The same run: only that tells a path from what happened once."""
        for name in fault.runs[:4]:
            run = self.known[name]
            bare = name.split("-", 1)[-1]
            self._add(replace(run, id=f"{self.number}-{bare}", wave=0))

    def _wire(self, fault: Fault) -> None:
        """A NIC that is found: ib_write_bw without GPUs tells its link from the GPU's way to it."""
        if {part.kind for part in fault.parts} != {"link", "pcie"}:
            return
        node, rail = fault.parts[0].place, fault.parts[0].rail
        if any(run.kind == "fabric" and run.rail == rail and node in run.nodes for run in self.known.values()):
            return  # once asked: it did not work, or could not be judged
        partner = self._partner(node)
        if partner is not None:
            self._add(rail_run(self.fabric, node, partner, rail, 0, kind="fabric", number=self.number))

    def _controls(self) -> None:
        """Good pairs beside the suspects, for shapes of which too few normal runs say what is normal."""
        normal = Counter(shape(run.run, self.fabric) for run in self.judged.runs if run.standing is Standing.NORMAL)
        lacking = {shape(run, self.fabric): run for run in self.runs.values()}
        busy = {node for run in self.runs.values() for node in run.nodes}
        free = [node for node in self.good if node not in busy] + [node for node in self.good if node in busy]
        for key, like in lacking.items():
            if normal[key] >= CONTROLS:
                continue
            if like.kind in {"rails", "fabric"}:
                for number, (a, b) in enumerate(self._pairs(free, across=crosses(like, self.fabric))):
                    rail = number % self.fabric.rails
                    sweep_run = rail_run(self.fabric, a, b, rail, 0, kind=like.kind, number=self.number)
                    self._add(replace(sweep_run, why=CONTROL))
            elif like.kind == "gpus" and self.fabric.gpus < LEAST_OWN:
                for node in free[:CONTROLS]:
                    self._add(replace(self._two(node, 0, 1), why=CONTROL))

    def _pairs(self, nodes: Sequence[str], *, across: bool) -> list[tuple[str, str]]:
        """Up to CONTROLS disjoint pairs of good nodes, inside racks or across."""
        left = list(nodes)
        pairs: list[tuple[str, str]] = []
        while len(pairs) < CONTROLS and left:
            a = left.pop(0)
            rack = self.fabric.racks.get(a, "")
            b = next((node for node in left if (self.fabric.racks.get(node, "") != rack) == across), None)
            if b is not None:
                left.remove(b)
                pairs.append((a, b))
        return pairs

    def _two(self, node: str, a: int, b: int) -> SweepRun:
        return SweepRun(f"{self.number}-gpus-{node}-{a}-{b}", "gpus", 0, (node,), (a, b), "sendrecv", "sendrecv_perf")


def _in_waves(runs: Sequence[SweepRun]) -> Iterator[SweepRun]:
    """Each run in the first wave in which nobody uses its GPUs (in one node) or its nodes (between nodes)."""
    taken: list[dict[str, set[int]]] = []
    for run in runs:
        gpus = set(run.gpus) if len(run.nodes) == 1 else set(range(-1, 1 << 8))
        for wave, used in enumerate(taken):  # noqa: B007 - used after the loop
            if all(used.get(node, _NONE).isdisjoint(gpus) for node in run.nodes):
                break
        else:
            taken.append({})
            wave = len(taken) - 1
        for node in run.nodes:
            taken[wave].setdefault(node, set()).update(gpus)
        yield replace(run, wave=wave + 1)


_NONE: frozenset[int] = frozenset()
