"""NVL001 to NVL005: missing links, slow links, errors, pairs without a link, the fabric; on boards of both makers."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from tests.checks import jobs, nodes
from tests.checks.bent import Built, machine
from tests.checks.nodes import read
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.nvlink.errors import NvlinkErrors
from topodiag.checks.nvlink.job import FabricInLog
from topodiag.checks.nvlink.links import FewerNvlinks
from topodiag.checks.registry import Subject, check_of
from topodiag.checks.run import run
from topodiag.evidence.amd.links import AmdCopyTests
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.kernel_log import KernelLog
from topodiag.evidence.interface import Blob
from topodiag.model.devices import Gpu, GpuFabric
from topodiag.model.finding import Outcome, Status
from topodiag.model.job import Job, Process
from topodiag.model.node import Node, Pair
from topodiag.model.provenance import Counter, Fact, Origin
from topodiag.words.dialect import Maker


def fewer(node: Node) -> Any:
    return FewerNvlinks().judge(node, ())


def h100_pcie(active: tuple[int, ...]) -> Node:
    """Cards with bridge connectors, so many links up on each."""
    cards = [
        nodes.gpu(at, "NVIDIA H100 NVL", 90, 0, nvlinks=nodes.links(18, 26.562, tuple(range(count, 18))))
        for at, count in enumerate(active)
    ]
    return Node("nvl-01", os=nodes.hgx_h100().os, gpus=tuple(cards))


def two_v100(down: tuple[int, ...], of_first: tuple[int, ...] = ()) -> Node:
    cards = [
        nodes.gpu(at, "Tesla V100-SXM2-32GB", 70, 0, nvlinks=nodes.links(6, 25.781, lost))
        for at, lost in ((2, of_first), (3, down))
    ]
    return Node("n", gpus=tuple(cards))


# --- NVL001 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shown", [1, 5, 17])
def test_a_list_of_links_that_was_cut_off_accuses_nobody(shown: int) -> None:
    last = len(nodes.hgx_h100().gpus) - 1
    cut = nodes.with_gpu(nodes.hgx_h100(), last, nvlinks=nodes.links(shown, 26.562))
    assert fewer(cut).status is Status.UNKNOWN
    alike = nodes.with_gpus(nodes.hgx_h100(), nvlinks=nodes.links(shown, 26.562))
    assert fewer(alike).status is Status.UNKNOWN


# --- NVL002 ---------------------------------------------------------------------------------------------------


# --- NVL004 ---------------------------------------------------------------------------------------------------


# --- NVL003: NVLink error counters


def judge(node: Node) -> Any:
    return NvlinkErrors().judge(node, ())


def counting(name: str, *reading: float) -> Node:
    """Eight H100 whose links have the counter at 0, except link 6 of GPU3: first and later value, 10 s apart."""
    quiet = [0, 0, 10.0] if len(reading) > 1 else [0]
    loud = [*reading, 10.0] if len(reading) > 1 else [*reading]
    path = f"nvlinks/{{}}/counters/{name}"
    return machine("hgx_h100", {f"gpus/all/{path.format('all')}": quiet, f"gpus/3/{path.format(6)}": loud})


# --- NVL005: Fabric Manager, fabric registration, NVLink domains


def waiting(base: str) -> Node:
    return nodes.with_gpus(machine(base), fabric=GpuFabric(state=read("in_progress")))


REFUSED = "nvidia-nvswitch: Version mismatch, kernel version 450.80.02 user version 450.51.06"


def refused(*base: str) -> Node:
    """A machine, or no more than a kernel log, with the line of the NVSwitch driver."""
    node = machine(*base) if base else Node(host="n1")
    return replace(node, events=tuple(KernelLog().parse(Blob("dmesg.txt", REFUSED.encode())).records))


def unnamed(base: str) -> Node:
    """Two cards without names, links and a PCI tree."""
    node = machine(base)
    cards = tuple(replace(gpu, name=Fact(), fabric=GpuFabric(), nvlinks=()) for gpu in node.gpus[:2])
    return replace(node, gpus=cards, pci={})


def silent(base: str) -> Node:
    """The machine without a word of its fabric."""
    return nodes.with_gpus(machine(base), fabric=GpuFabric())


BUILDERS: dict[str, Any] = {
    "waiting": waiting, "refused": refused, "unnamed": unnamed, "silent": silent, "h100_pcie": h100_pcie,
    "two_v100": two_v100, "counting": counting,
}  # fmt: skip


# --- NVL005 by logs: the fabric as NVML told NCCL


LINE = "MNNVL busId 0x801000 fabric UUID 3143b15bc2cd192b.28cc9b5473fb5b93 cliqueId 0x7ffe state {} healthMask {}"
IMEX = (
    "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration (nvidia-imex-ctl"
    " -N). Set NCCL_MNNVL_ENABLE=0 to ignore this issue."
)


def said(state: int, mask: str) -> Job:
    return jobs.job(1, 1, messages=[jobs.message("mnnvl", LINE.format(state, mask))])


def test_nvlink_between_trays_that_does_not_work_is_an_error() -> None:
    wanted: Wanted = {"severity": "ERROR", "message": "*IMEX*"}
    assert shown(FabricInLog().judge(jobs.job(events=[jobs.event("cuda", IMEX)])), wanted) == wanted


@examples("state", "mask", "wanted")
def test_the_fabric_that_nccl_prints(state: int, mask: str, wanted: Wanted) -> None:
    assert shown(FabricInLog().judge(said(state, mask)), wanted) == wanted


@examples("uuids", "wanted")
def test_trays_of_a_rack(uuids: list[str], wanted: Wanted) -> None:
    assert shown(FabricInLog().judge(trays(*uuids)), wanted) == wanted


def test_a_log_without_a_fabric_is_not_judged() -> None:
    assert FabricInLog().judge(jobs.job()).status is Status.NOT_APPLICABLE


def trays(*uuids: str) -> Job:
    """A job of one tray for each fabric UUID, "" for a tray that NVML knows of none."""
    kinds = ("version", "bootstrap", "hcas")
    processes = [
        Process(
            f"n{at}",
            100 + at,
            messages=(
                *(jobs.message(kind, "x") for kind in kinds),
                *(
                    [jobs.message("mnnvl", f"MNNVL busId 0x1 fabric UUID {uuid} cliqueId 0x2 state 3 healthMask 0x0")]
                    if uuid
                    else []
                ),
            ),
        )
        for at, uuid in enumerate(uuids)
    ]
    return replace(jobs.job(len(uuids), 1), processes=tuple(processes))


# --- the checks of links between GPUs on AMD's: pairs without a link, slow pairs, errors of the block of xGMI


AT = Origin("showtopo.txt", 7, "a row")


def amd_machine(
    words: Mapping[Pair, str] | None = None,
    *,
    gpus: int = 8,
    name: str = "",
    copies: Mapping[Pair, float] | None = None,
) -> Node:
    """GPUs all of which xGMI joins, but for the pairs with other words."""
    labels = [f"GPU{index}" for index in range(gpus)]
    matrix = {pair: Fact("XGMI", AT) for pair in permutations(labels, 2)}
    for (a, b), word in (words or {}).items():
        matrix[a, b] = matrix[b, a] = Fact(word, AT)
    named: Fact[str] = Fact(name, AT) if name else Fact()
    measured = {pair: Fact(gbs, AT) for pair, gbs in (copies or {}).items()}
    made = tuple(Gpu(index, name=named) for index in range(gpus))
    return Node("n", gpus=made, smi_matrix=matrix, copies=measured, makers=frozenset({Maker.AMD}))


def judged(node: Node, check: str) -> Outcome:
    (outcome,) = run(Subject.NODE, [node], [check])
    return outcome


def ring(gpus: int) -> dict[Pair, str]:
    pairs = [(a, b) for a, b in permutations(range(gpus), 2) if (a - b) % gpus not in (1, gpus - 1)]
    return {(f"GPU{a}", f"GPU{b}"): "PCIE" for a, b in pairs}


def chord(gpus: int) -> dict[Pair, str]:
    """GPUs that each lack one peer."""
    return {(f"GPU{a}", f"GPU{gpus - 1 - a}"): "PCIE" for a in range(gpus)}


def no_link(gpus: int) -> dict[Pair, str]:
    return dict.fromkeys(permutations([f"GPU{n}" for n in range(gpus)], 2), "PCIE")


BOARDS: dict[str, Callable[[int], dict[Pair, str]]] = {
    "whole": lambda gpus: {}, "ring": ring, "chord": chord, "no link": no_link
}  # fmt: skip


def pair(told: str) -> Pair:
    one, _, other = told.partition(" ")
    return one, other


@examples("board", "gpus", "words", "wanted")
def test_pairs_without_xgmi(board: str, gpus: int, words: dict[str, str], wanted: Wanted) -> None:
    changed = {pair(two): word for two, word in words.items()}
    outcome = judged(amd_machine(BOARDS[board](gpus) | changed, gpus=gpus), "NVL004")
    assert shown(outcome, wanted) == wanted
    assert "nvidia" not in " ".join(step for finding in outcome.findings for step in finding.fix)


@examples("product", "rates", "usual", "wanted")
def test_rates_of_xgmi_links(product: str, rates: dict[str, float], usual: float, wanted: Wanted) -> None:
    """A link's rate in GB/s on the GPUs that `rates` names, and on the others."""
    slow = {int(gpu): gbs for gpu, gbs in rates.items()}
    outcome = judged(rated(slow, usual=usual, name=f"AMD Instinct {product}" if product else ""), "NVL002")
    assert shown(outcome, wanted) == wanted
    assert "nvidia" not in " ".join(step for finding in outcome.findings for step in finding.fix)


@examples("slow", "wanted")
def test_pairs_that_copy_slowly(slow: dict[str, float], wanted: Wanted) -> None:
    outcome = judged(amd_machine(copies=even({pair(two): gbs for two, gbs in slow.items()})), "NVL002")
    assert shown(outcome, wanted) == wanted


def even(slow: Mapping[Pair, float]) -> dict[Pair, float]:
    labels = [f"GPU{index}" for index in range(8)]
    return {pair: slow.get(pair, 48.0 + at % 3 / 10) for at, pair in enumerate(permutations(labels, 2))}


CPUS = 2


def of_rocm(slow: Mapping[tuple[int, int], float]) -> Node:
    """What `rocm-bandwidth-test` prints of two CPUs and eight MI300X, one way and both ways, and the node of it."""
    devices = range(CPUS + 8)
    lines = [
        "RocmBandwidthTest Version: 2.6.0",
        "",
        *(f"Device: {at},  AMD EPYC 9554 64-Core Processor" for at in (0, 1)),
    ]
    lines += [f"Device: {at},  AMD Instinct MI300X,  GPU-06c9d21390bc2e7{at},  {at:02x}:0.0" for at in devices[CPUS:]]
    for title, ways in (("Unidirectional", 1.0), ("Bidirectional", 1.9)):
        lines += ["", f"{title} copy peak bandwidth GB/s", "", "D/D       " + "".join(f"{at:<12}" for at in devices)]
        for a in devices:
            cells = [_cell(a, b, slow) for b in devices]
            lines.append(f"{a:<10}" + "".join(f"{gbs * ways:<12.3f}" if gbs else f"{'N/A':<12}" for gbs in cells))
    source, draft = AmdCopyTests(), NodeDraft()
    blob = Blob("rbt.txt", "\n".join(f"          {line}" for line in lines).encode())
    assert source.recognises(blob.text)
    source.read(blob, draft)
    return replace(assemble(draft, "n"), makers=frozenset({Maker.AMD}))


def _cell(a: int, b: int, slow: Mapping[tuple[int, int], float]) -> float:
    if a < CPUS or b < CPUS:
        return 0.0 if a < CPUS and b < CPUS else 55.2
    return slow.get((a - CPUS, b - CPUS), 48.6 + (7 * a + b) % 5 / 20) if a != b else 1912.3


def test_a_slow_pair_of_rocm_bandwidth_test_is_named_by_gpus_and_not_by_its_devices() -> None:
    findings = judged(of_rocm({(6, 2): 31.1}), "NVL002").findings
    assert [finding.message for finding in findings] == [
        "GPU6 to GPU2 copies at 31.1 GB/s, the other pairs at 48.7 GB/s"
    ]
    assert len(judged(of_rocm({(6, 2): 31.1, (2, 6): 30.8}), "NVL002").findings) == 2


def test_an_even_board_of_rocm_bandwidth_test_is_silent() -> None:
    assert judged(of_rocm({}), "NVL002").findings == ()


def rated(slow: Mapping[int, float], *, usual: float = 64.0, name: str = "AMD Instinct MI300X") -> Node:
    node = amd_machine(name=name)
    gpus = tuple(replace(gpu, xgmi_gbs=Fact(slow.get(gpu.index, usual), AT)) for gpu in node.gpus)
    return replace(node, gpus=gpus)


def counted(lost: int, corrected: int) -> Node:
    counts = {"xgmi_uncorrected": lost, "xgmi_corrected": corrected}
    counters = {name: Counter(name, Fact(value, AT)) for name, value in counts.items()}
    return Node("n", gpus=(Gpu(5, "0000:a6:00.0", counters=counters),), makers=frozenset({Maker.AMD}))


def test_uncorrectable_errors_of_links_are_found_and_corrected_ones_are_not() -> None:
    (finding,) = judged(counted(2, 41), "NVL003").findings
    assert finding.message == "GPU5 (0000:a6:00.0): 2 uncorrectable errors in the block of its xGMI links"
    assert judged(counted(0, 41), "NVL003").status is Status.CLEAN


@examples("check", "node", "changes", "wanted")
def test_links_of_a_machine(check: str, node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    """Healthy machines with something changed."""
    outcome = check_of(Subject.NODE, check)().judge(machine(node, changes, **BUILDERS), ())
    assert shown(outcome, wanted) == wanted
