"""The checks of links between GPUs on AMD's: pairs without a link, slow pairs, errors of the block of xGMI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

import pytest

from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.amd.copy_tests import AmdCopyTests
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.model.devices import Gpu
from topodiag.model.finding import Confidence, Outcome, Status
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


@pytest.mark.parametrize("word", ["PCIE", "XGMI down", "XGMI over 2 hops"])
def test_a_pair_without_its_link_is_found(word: str) -> None:
    (finding,) = judged(machine({("GPU1", "GPU5"): word}), "NVL004").findings
    assert finding.message == "GPU1 and GPU5 talk without xGMI"
    assert word in finding.observed
    assert "nvidia" not in " ".join(finding.fix)


def test_a_whole_board_is_clean() -> None:
    assert judged(machine(), "NVL004").status is Status.CLEAN


def ring(gpus: int) -> dict[Pair, str]:
    pairs = [(a, b) for a, b in permutations(range(gpus), 2) if (a - b) % gpus not in (1, gpus - 1)]
    return {(f"GPU{a}", f"GPU{b}"): "PCIE" for a, b in pairs}


def chord() -> dict[Pair, str]:
    return {(f"GPU{a}", f"GPU{7 - a}"): "PCIE" for a in range(8)}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(ring(4), id="a ring of four"),
        pytest.param(ring(8), id="a ring of eight"),
        pytest.param(chord(), id="eight GPUs that each lack one peer"),
        pytest.param(dict.fromkeys(permutations([f"GPU{n}" for n in range(8)], 2), "PCIE"), id="no link at all"),
    ],
)
def test_boards_that_join_some_pairs_only_are_no_fault(words: Mapping[Pair, str]) -> None:
    gpus = 4 if words == ring(4) else 8
    assert judged(machine(words, gpus=gpus), "NVL004").findings == ()


def test_a_link_that_is_down_is_found_on_any_board() -> None:
    words = {**ring(4), ("GPU0", "GPU1"): "XGMI down"}
    (finding,) = judged(machine(words, gpus=4), "NVL004").findings
    assert finding.message == "GPU0 and GPU1 talk without xGMI"


def even(slow: Mapping[Pair, float]) -> dict[Pair, float]:
    labels = [f"GPU{index}" for index in range(8)]
    return {pair: slow.get(pair, 48.0 + at % 3 / 10) for at, pair in enumerate(permutations(labels, 2))}


def test_a_pair_that_copies_slowly_is_named_with_its_direction() -> None:
    (finding,) = judged(machine(copies=even({("GPU6", "GPU2"): 31.1})), "NVL002").findings
    assert finding.message.startswith("GPU6 to GPU2 copies at 31.1 GB/s")


@pytest.mark.parametrize(
    "slow",
    [
        {},
        {("GPU6", "GPU2"): 43.0},
        {(f"GPU{a}", "GPU2"): 31.0 for a in (0, 1, 3, 4)},
    ],
    ids=["even", "a little below", "one GPU with many"],
)
def test_pairs_that_do_not_stand_out_are_no_fault(slow: Mapping[Pair, float]) -> None:
    assert judged(machine(copies=even(slow)), "NVL002").findings == ()


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


@pytest.mark.parametrize(
    ("node", "want"),
    [
        (rated({3: 32.0}), "GPU3: 7 NVLinks at 32 GB/s instead of 64 GB/s"),
        (rated({3: 32.0}, name=""), "GPU3: 7 NVLinks at 32 GB/s instead of 64 GB/s"),
        (rated({}, usual=32.0), "GPU0-7: 56 NVLinks at 32 GB/s instead of 64 GB/s"),
        (rated({}, usual=38.0, name="AMD Instinct MI355X"), "GPU0-7: 56 NVLinks at 38 GB/s instead of 76.8 GB/s"),
    ],
    ids=["one GPU", "one GPU of no known product", "the whole board", "the whole board of MI355X"],
)
def test_links_below_their_rate_are_found(node: Node, want: str) -> None:
    (finding,) = judged(node, "NVL002").findings
    assert finding.message == want.replace("NVLinks", "xGMI links")
    assert finding.confidence is Confidence.MEDIUM
    assert "nvidia" not in " ".join(finding.fix)


@pytest.mark.parametrize(
    "node",
    [rated({}), rated({2: 63.0}), rated({}, usual=76.0, name="AMD Instinct MI350X"), rated({}, usual=32.0, name="")],
    ids=["as built", "rounded", "MI350X as amd-smi rounds it", "even, of no known product"],
)
def test_links_at_their_rate_are_clean(node: Node) -> None:
    assert judged(node, "NVL002").status is Status.CLEAN


def test_rates_that_differ_without_product_and_majority_are_not_called_well() -> None:
    halves = dict.fromkeys(range(4), 32.0)
    outcome = judged(rated(halves, name=""), "NVL002")
    assert outcome.status is Status.UNKNOWN
    assert "link rates differ" in outcome.why
    assert judged(rated(halves), "NVL002").findings


def test_what_the_pcie_link_can_do_is_no_rate_of_xgmi() -> None:
    """`amd-smi xgmi` of ROCm 6.2 and 6.3 prints 16 GT/s times 16 on an MI250X whose links run at 25."""
    assert judged(rated({}, usual=32.0, name="AMD Instinct MI250X"), "NVL002").status is Status.UNKNOWN
    assert judged(rated({}, usual=25.0, name="AMD Instinct MI250X"), "NVL002").findings


def counted(lost: int, corrected: int) -> Node:
    counts = {"xgmi_uncorrected": lost, "xgmi_corrected": corrected}
    counters = {name: Counter(name, Fact(value, AT)) for name, value in counts.items()}
    return Node("n", gpus=(Gpu(5, "0000:a6:00.0", counters=counters),), makers=frozenset({Maker.AMD}))


def test_uncorrectable_errors_of_links_are_found_and_corrected_ones_are_not() -> None:
    (finding,) = judged(counted(2, 41), "NVL003").findings
    assert finding.message == "GPU5 (0000:a6:00.0): 2 uncorrectable errors in the block of its xGMI links"
    assert judged(counted(0, 41), "NVL003").status is Status.CLEAN
