"""The checks of links between GPUs on AMD's: pairs without a link, slow pairs, errors of the block of xGMI."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import permutations

from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.amd.links import AmdCopyTests
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.model.devices import Gpu
from topodiag.model.finding import Outcome, Status
from topodiag.model.node import Node, Pair
from topodiag.model.provenance import Counter, Fact, Origin
from topodiag.words.dialect import Maker

AT = Origin("showtopo.txt", 7, "a row")


def machine(
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
    outcome = judged(machine(BOARDS[board](gpus) | changed, gpus=gpus), "NVL004")
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
    outcome = judged(machine(copies=even({pair(two): gbs for two, gbs in slow.items()})), "NVL002")
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
    node = machine(name=name)
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
