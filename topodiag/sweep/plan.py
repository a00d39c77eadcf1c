"""The first round: few runs in which every part of the fabric takes part at least twice, with different partners.

A ring through all nodes gives every node two pairs (`pairs` and `ring`), so one slow node makes two runs slow and its
neighbours' other runs acquit the neighbours. All rails of a pair run at once; which rail it was is asked in the next
round, and only of suspects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from topodiag.model.errors import TopodiagError
from topodiag.model.nccl_enums import SIMPLE_ONLY
from topodiag.sweep.values import Fabric, SweepPlan, SweepRun

KINDS = ("intra", "pairs", "ring", "rails", "racks", "bisection", "settings", "fabric")
DEFAULT = ("intra", "pairs", "ring", "racks", "bisection")

_SIMPLE_ONLY = frozenset(algorithm.setting for algorithm in SIMPLE_ONLY)
_ONLY = {"Tree": ("all_reduce",), "NVLSTree": ("all_reduce",), "CollnetChain": ("all_reduce",),
         "CollnetDirect": ("all_reduce", "all_gather", "reduce_scatter"), "NVLS": ("all_reduce", "all_gather",
         "reduce_scatter"), "PAT": ("all_gather", "reduce_scatter")}  # fmt: skip
"""The collectives that NCCL has each algorithm for (same file); Ring has all but the point-to-point ones."""
_POINT_TO_POINT = frozenset({"alltoall", "sendrecv"})
MAX_RUNS = 100_000


def first_round(
    fabric: Fabric,
    kinds: Sequence[str] = DEFAULT,
    *,
    algorithms: Sequence[str] = (),
    protocols: Sequence[str] = (),
    collectives: Sequence[str] = (),
) -> SweepPlan:
    """Round 1 over all nodes. Naming an algorithm, a protocol or a collective adds the runs of `settings`.

    Raises TopodiagError where no run is left, or more than MAX_RUNS.
    """
    wanted = list(kinds)
    if (algorithms or protocols or collectives) and "settings" not in wanted:
        wanted.append("settings")
    makers: dict[str, Callable[[], list[SweepRun]]] = {
        "intra": lambda: [intra_run(fabric, node, 1) for node in fabric.nodes] if fabric.gpus > 1 else [],
        "pairs": lambda: _pairs(fabric, 0),
        "ring": lambda: _pairs(fabric, 1),
        "rails": lambda: _rails(fabric, "rails"),
        "racks": lambda: _racks(fabric),
        "bisection": lambda: _bisection(fabric),
        "settings": lambda: _settings(fabric, algorithms, protocols, collectives or ("all_reduce",)),
        "fabric": lambda: _rails(fabric, "fabric"),
    }
    if len(fabric.nodes) * fabric.rails > MAX_RUNS and {"rails", "fabric"} & set(wanted):
        raise TopodiagError("too many pairs for every rail by itself", hint="leave out --kind rails: suspects get it")
    runs: list[SweepRun] = []
    for kind in KINDS:
        if kind in wanted:
            base = max((run.wave for run in runs), default=0)
            runs += [replace(run, wave=run.wave + base) for run in makers[kind]()]
    if not runs:
        raise TopodiagError(
            f"{len(fabric.nodes)} node with {fabric.gpus} GPU leaves nothing to compare", hint="name two nodes or more"
        )
    return SweepPlan(fabric, tuple(runs))


def all_gpus(fabric: Fabric) -> tuple[int, ...]:
    return tuple(range(fabric.gpus))


def ordered(fabric: Fabric) -> tuple[str, ...]:
    """Nodes rack by rack, so that neighbours mostly share their leaf."""
    racked = [node for nodes in fabric.by_rack().values() for node in nodes]
    return (*racked, *(node for node in fabric.nodes if node not in fabric.racks))


def intra_run(fabric: Fabric, node: str, wave: int, number: int = 1) -> SweepRun:
    return SweepRun(f"{number}-intra-{node}", "intra", wave, (node,), all_gpus(fabric), "all_reduce", "all_reduce_perf")


def pair_run(fabric: Fabric, a: str, b: str, wave: int, *, kind: str = "pairs", number: int = 1) -> SweepRun:
    """All rails of two nodes at once: every GPU exchanges with every other."""
    return SweepRun(f"{number}-{kind}-{a}+{b}", kind, wave, (a, b), all_gpus(fabric), "alltoall", "alltoall_perf")


def rail_run(fabric: Fabric, a: str, b: str, rail: int, wave: int, *, kind: str = "rails", number: int = 1) -> SweepRun:
    """One rail of two nodes: one GPU each, or `ib_write_bw` without a GPU (kind `fabric`)."""
    program, collective = ("ib_write_bw", "write") if kind == "fabric" else ("sendrecv_perf", "sendrecv")
    gpus = (fabric.gpu_of(rail),)
    return SweepRun(f"{number}-{kind}-{a}+{b}-rail{rail}", kind, wave, (a, b), gpus, collective, program, rail)


def racks_run(fabric: Fabric, a: str, b: str, wave: int, *, rail: int | None = None, number: int = 1) -> SweepRun:
    """All nodes of two racks, so that the leaves' uplinks are loaded."""
    by_rack = fabric.by_rack()
    size = min(len(by_rack[a]), len(by_rack[b]))
    nodes = _sorted(fabric, by_rack[a][:size] + by_rack[b][:size])
    gpus = all_gpus(fabric) if rail is None else (fabric.gpu_of(rail),)
    names = list(by_rack)
    # Numbers, because names that differ in signs alone would be one.
    name = f"{number}-racks-{names.index(a)}-{slug(a)}+{names.index(b)}-{slug(b)}"
    name += "" if rail is None else f"-rail{rail}"
    return SweepRun(name, "racks", wave, nodes, gpus, "alltoall", "alltoall_perf", rail)


def _sorted(fabric: Fabric, nodes: Sequence[str]) -> tuple[str, ...]:
    """In the order of the fabric, which is that of node sets."""
    wanted = frozenset(nodes)
    return tuple(node for node in fabric.nodes if node in wanted)


def slug(text: str) -> str:
    """A rack's name as a part of a run's: the run's name is a file's too."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in text)[:40]


def edges(count: int) -> list[tuple[int, int, int]]:
    """The ring through `count` places as (place, next, wave): even edges, odd edges, and for odd counts the last."""
    if count < 3:
        return [(0, 1, 0)] if count == 2 else []
    rows = [(i, (i + 1) % count, i % 2) for i in range(count)]
    if count % 2:
        rows[-1] = (count - 1, 0, 2)
    return rows


def _pairs(fabric: Fabric, parity: int) -> list[SweepRun]:
    nodes = ordered(fabric)
    return [
        pair_run(fabric, nodes[a], nodes[b], 2 if wave == 2 else 1, kind="ring" if parity else "pairs")
        for a, b, wave in edges(len(nodes))
        if (wave > 0) == bool(parity)
    ]


def _rails(fabric: Fabric, kind: str) -> list[SweepRun]:
    nodes = ordered(fabric)
    rows = edges(len(nodes))
    return [
        rail_run(fabric, nodes[a], nodes[b], rail, 3 * rail + wave + 1, kind=kind)
        for rail in range(fabric.rails)
        for a, b, wave in rows
    ]


def _racks(fabric: Fabric) -> list[SweepRun]:
    """Each rack with two others. Two racks are but one pair, which has no like: there each rail runs by itself, and
    rails are compared."""
    racks = list(fabric.by_rack())
    if len(racks) == 2 and fabric.leaf_per_rail and fabric.rails > 2:
        return [racks_run(fabric, racks[0], racks[1], rail + 1, rail=rail) for rail in range(fabric.rails)]
    return [racks_run(fabric, racks[a], racks[b], wave + 1) for a, b, wave in edges(len(racks))]


def _bisection(fabric: Fabric) -> list[SweepRun]:
    """Each half by itself, at once, then interleaved halves of the same size: those must cross the middle."""
    nodes = ordered(fabric)
    half = len(nodes) // 2
    if half < 2:
        return []
    sets = (nodes[:half], nodes[half : 2 * half], nodes[0 : 2 * half : 2], nodes[1 : 2 * half : 2])
    return [
        SweepRun(
            f"1-bisection-{number}",
            "bisection",
            1 if number < 3 else 2,
            _sorted(fabric, part),
            all_gpus(fabric),
            "alltoall",
            "alltoall_perf",
            why="a half by itself" if number < 3 else "every second node: crosses the middle",
        )
        for number, part in enumerate(sets, 1)
    ]


def exists(collective: str, algorithm: str, protocol: str) -> bool:
    """Whether NCCL can run this collective so."""
    if not algorithm and not protocol:
        return True
    if collective in _POINT_TO_POINT:
        return False  # no choice is made: point to point is Simple (LL where it is told)
    if algorithm and algorithm != "Ring" and collective not in _ONLY[algorithm]:
        return False
    return not (protocol not in {"", "Simple"} and algorithm in _SIMPLE_ONLY)


def _settings(
    fabric: Fabric, algorithms: Sequence[str], protocols: Sequence[str], collectives: Sequence[str]
) -> list[SweepRun]:
    """All nodes, one combination after the other, over small and large sizes."""
    sweep_runs: list[SweepRun] = []
    for collective in dict.fromkeys(collectives):
        for algorithm in dict.fromkeys(algorithms or ("",)):
            for protocol in dict.fromkeys(protocols or ("",)):
                if exists(collective, algorithm, protocol):
                    name = "-".join(word for word in ("1-settings", collective, algorithm, protocol) if word)
                    sweep_runs.append(
                        SweepRun(
                            name, "settings", len(sweep_runs) + 1, fabric.nodes, all_gpus(fabric), collective,
                            f"{collective}_perf", None, algorithm, protocol, 1 << 10, 1 << 30,
                        )
                    )  # fmt: skip
    return sweep_runs
