"""NCCL's print of a node reads the same from every version; cut and torn rows cost themselves only."""

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples, texts
from topodiag.evidence.nccl_log.grammar.system_print import read_print, vertex_name
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_view import SystemLink
from topodiag.model.provenance import Origin

JOBS = Path(__file__).resolve().parents[5] / "shared" / "corpus" / "jobs"
NAMES = sorted(path.parent.name for path in JOBS.glob("*/truth.json"))

END = "=========================================="

TEXTS = texts(__file__)
OLD = TEXTS["old"]

MIXED = TEXTS["mixed"]

NEW = (
    MIXED.replace("- CPU/0", "- CPU/0-0")
    .replace("- CPU/1", "- CPU/0-1")
    .replace("NVS/0", "NVS/0-0")
    .replace("NET/A (946DAE", "NET/0-a (0/946dae")
    .replace("NET/A", "NET/0-a")
    .replace("CPU/0 (2", "CPU/0-0 (2")
    .replace("GPU/1B000 :", "GPU/0-1b000 :")
)


@pytest.mark.parametrize("text", [OLD.replace("NET/10", "NET/A"), MIXED, NEW], ids=["to 2.20", "2.21", "2.24 on"])
def test_all_versions_read_the_same(text: str) -> None:
    system = read_print(text, Origin("log", 7)).system
    assert system is not None
    assert (system.max_gbs, system.total_gbs) == (12.0, 264.0)
    assert [device.name for device in system.of_kind("GPU")] == ["GPU/0-1b000", "GPU/0-43000"]
    first, second = system.of_kind("GPU")
    assert (first.rank, first.parent, second.rank, second.parent) == (0, "PCI/0-17000", 1, "CPU/0-1")
    (net,) = system.of_kind("NET")
    assert (net.id, net.parent, net.speed_gbs, net.port, net.guid) == (
        "0-a", "NIC/0-18000", 12.5, 1, "946dae0300a00000",
    )  # fmt: skip
    assert system.devices["PCI/0-17000"].pci_ids == "1000c0101000a000"
    assert [cpu.numbers for cpu in system.of_kind("CPU")] == [(1, 1, 2)] * 2
    assert system.devices["CPU/0-1"].parent == ""
    assert SystemLink("GPU/0-1b000", "NVS/0-0", "NVL", 264.0) in system.links
    assert SystemLink("CPU/0-0", "CPU/0-1", "SYS", 10.0) in system.links
    assert system.origin == Origin("log", 7)
    assert {pair: path.type for pair, path in system.paths.items()} == {
        ("GPU/0-1b000", "GPU/0-1b000"): PathType.LOC,
        ("GPU/0-1b000", "GPU/0-43000"): PathType.NVL,
        ("GPU/0-1b000", "CPU/0-0"): PathType.PHB,
        ("GPU/0-1b000", "NET/0-a"): PathType.PIX,
        ("NET/0-a", "GPU/0-1b000"): PathType.PIX,
    }


def test_gpus_below_dev_rows_are_found() -> None:
    text = f"""=== System : maxBw 48.0 totalBw 370.8 ===
CPU/0-0 (1/1/3)
+ PCI[48.0] - DEV/0-1b000 (10de233010de16c1)
              + LOC[5000.0] - GPU/0-1b000
              + NVL[370.8] - NVS/0-0
              + C2C[447.1] - CPU/0-0
+ PCI[48.0] - NIC/0-18000
              + NET[50.0] - GIN/0-0
{END}"""
    system = read_print(text).system
    assert system is not None
    assert system.devices["GPU/0-1b000"].parent == "DEV/0-1b000"
    assert system.devices["GPU/0-1b000"].rank == -1
    assert system.devices["GIN/0-0"].parent == "NIC/0-18000"
    assert system.devices["CPU/0-0"].parent == ""


def test_the_last_complete_print_counts() -> None:
    trimmed = OLD.replace("maxWidth 12.0", "maxWidth 24.0")
    system = read_print(f"{OLD}\n{trimmed}\n=== System : maxWidth 9.0 totalWidth 9.0 ===\nCPU/0 (1/1/2)").system
    assert system is not None
    assert system.max_gbs == 24.0


def test_versions_without_a_total_say_so() -> None:
    for header in ("=== System : maxWidth 5 maxSpeed 12 ===", "=== System : maxWidth 5.0 ==="):
        system = read_print(f"{header}\nCPU/0\n+ QPI[8] - CPU/1\n{END}").system
        assert system is not None
        assert (system.max_gbs, system.total_gbs) == (5.0, None)
        assert system.links == (SystemLink("CPU/0-0", "CPU/0-1", "SYS", 8.0),)


def test_a_type_that_stands_for_several_is_left_out() -> None:
    system = read_print("GPU/6000 :GPU/6000 (0/5000/0) GPU/7000 (1/21/1) CPU/0 (2/12/3) CPU/1 (2/12/XYZ) ").system
    assert system is not None
    assert sorted(path.type for path in system.paths.values()) == [PathType.LOC, PathType.NVL]


@examples("row", "expected")
def test_a_path_printed_dis_up_to_2_20_goes_over_the_network(row: str, expected: PathType) -> None:
    """Their table of names lacks NET, so that its place is taken by DIS: the two GPUs are not disconnected."""
    system = read_print(row).system
    assert system is not None
    assert system.paths["GPU/0-6000", "GPU/0-7000"].type is expected


def test_the_net_that_2_23_prints_at_both_ends_of_a_ring_is_kept_as_printed() -> None:
    """src/graph/search.cc of 2.23 prints the number of the first NET twice: which NIC a ring leaves by is not in it."""
    rows = """Pattern 4, crossNic 2, nChannels 2, bw 48.000000/24.500000, type NVL/PIX, sameChannels 0
 0 : NET/0-0 GPU/0 GPU/1 NET/0-0
 1 : NET/0-1 GPU/1 GPU/0 NET/0-1"""
    (ring,) = read_print(rows).graphs
    assert ring.orders == (("NET/0-0", "GPU/0", "GPU/1", "NET/0-0"), ("NET/0-1", "GPU/1", "GPU/0", "NET/0-1"))
    assert ring.cross_nic == 2


def test_ids_of_any_spelling_are_one() -> None:
    assert vertex_name("GPU", "1B000") == vertex_name("GPU", "0-1b000") == "GPU/0-1b000"
    assert vertex_name("GPU", "10000000001B000") == vertex_name("GPU", "1-1b000")
    assert vertex_name("CPU", "FFFFFFFFFFFFFFFF") == vertex_name("CPU", "0-ffffffffffffffff")


def test_graphs_come_with_their_channels() -> None:
    rows = """Pattern 4, crossNic 2, nChannels 2, bw 48.000000/24.500000, type NVL/PIX, sameChannels 0
 0 : NET/0-0 GPU/0-1b000 GPU/0-43000 NET/0-1
 1 : NET/0-1 GPU/0-43000 GPU/0-1b000 NET/0-0
Pattern 3, crossNic 0, nChannels 1, speed 6.000000/5.000000, type PHB/SYS, sameChannels 1
 0 : NET/12 GPU/3 GPU/11 NET/12
Pattern 1, crossNic 0, nChannels 1, speed 21/21, nvlink 1, type 2, sameChannels 1"""
    ring, tree, oldest = read_print(rows, Origin("log")).graphs
    assert (ring.pattern, ring.cross_nic, ring.channels, ring.bw_intra, ring.bw_inter) == (4, 2, 2, 48.0, 24.5)
    assert (ring.type_intra, ring.type_inter, ring.same_channels) == ("NVL", "PIX", False)
    assert ring.orders[1] == ("NET/0-1", "GPU/0-43000", "GPU/0-1b000", "NET/0-0")
    assert tree.same_channels
    assert (oldest.type_intra, oldest.type_inter, oldest.bw_intra) == ("", "", 21.0)


def test_network_devices_of_channels_are_named_as_in_the_system() -> None:
    """Decimal up to 2.20, hexadecimal in 2.21 and 2.22; GPUs are ranks before 2.27."""
    pattern = "Pattern 4, crossNic 0, nChannels 1, bw 12.0/12.0, type NVL/PIX, sameChannels 1"
    decimal = read_print(f"{OLD}\n{pattern}\n 0 : NET/10 GPU/0 GPU/1 NET/10").graphs
    hexadecimal = read_print(f"{MIXED}\n{pattern}\n 0 : NET/A GPU/0 GPU/1 NET/10").graphs
    assert decimal[0].orders == (("NET/0-a", "GPU/0", "GPU/1", "NET/0-a"),)
    assert hexadecimal[0].orders == (("NET/0-a", "GPU/0", "GPU/1", "NET/0-10"),)


def test_the_wide_tuning_table_is_read() -> None:
    rows = """Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Ring/Simple |
 Max NThreads |            512 |            640 |            512 |
    Broadcast |     0.0/   0.0 |     0.0/   0.0 |    11.8/ 360.0 |
    AllReduce |    15.2/  43.6 |    31.5/ 128.8 |    56.0/"""
    assert read_print(rows).tuning == {
        ("Broadcast", "TREE", "LL"): (0.0, 0.0),
        ("Broadcast", "TREE", "LL128"): (0.0, 0.0),
        ("Broadcast", "RING", "SIMPLE"): (11.8, 360.0),
        ("AllReduce", "TREE", "LL"): (15.2, 43.6),
        ("AllReduce", "TREE", "LL128"): (31.5, 128.8),
    }


def test_blocks_of_the_tuning_table_go_by_their_algorithms() -> None:
    protocols = "  Protocol    |             LL |          LL128 |         Simple |" + " LL | LL128 | Simple |" * 2
    rows = f"""  Algorithm   |          CollNetChain        |        NVLSTree           |
{protocols}
 Max NThreads |              0 |              0 |            640 |
    AllReduce |     0.0/   0.0 |     0.0/   0.0 |    69.2/   0.0 |     0.0/   0.0 |     0.0/   0.0 |    25.0/ 272.0 |
  Algorithm   |                             PAT                  |
{protocols}
    AllGather |     1.0/   2.0 |     3.0/   4.0 |     5.0/   6.0 |"""
    tuning = read_print(rows).tuning
    assert len(tuning) == 9
    assert tuning["AllReduce", "COLLNET_CHAIN", "SIMPLE"] == (69.2, 0.0)
    assert tuning["AllReduce", "NVLS_TREE", "SIMPLE"] == (25.0, 272.0)
    assert tuning["AllGather", "PAT", "LL128"] == (3.0, 4.0)


def test_what_a_collective_cannot_run_is_nothing_whether_printed_as_minus_one_or_as_zero() -> None:
    rows = """  Algorithm   |                           Tree                  |
  Protocol    |             LL |          LL128 |         Simple | LL | LL128 | Simple | LL | LL128 | Simple |
    Broadcast |    -1.0/  -1.0 |    -1.0/  -1.0 |     0.0/   0.0 |
    AllReduce |    15.2/  43.6 |    31.5/ 128.8 |    64.4/ 165.6 |"""  # 2.31, which prints no row of threads
    tuning = read_print(rows).tuning
    assert {tuning["Broadcast", "TREE", protocol] for protocol in ("LL", "LL128", "SIMPLE")} == {(0.0, 0.0)}
    assert tuning["AllReduce", "TREE", "LL128"] == (31.5, 128.8)


def test_nothing_printed_is_nothing_known() -> None:
    nothing = read_print("")
    assert (nothing.system, nothing.graphs, dict(nothing.tuning)) == (None, (), {})


_PIECES = st.sampled_from(
    ["GPU/", "NET/0-0 ", "1B000", "(0/", "5000.0/LOC)", " :", "+ PCI[", "24.0] - ", "Pattern 4,", "|", "AllReduce |",
     "=== System : maxBw ", "===", "9" * 400, "\n", " " * 14, "٣", "-", "CPU/0 (1/1/2)", "\x00"]
)  # fmt: skip


@given(st.lists(_PIECES | st.text(max_size=5), max_size=30).map("".join))
def test_any_text_is_read(text: str) -> None:
    read_print(text)


@given(st.sampled_from([OLD, MIXED, NEW]), st.integers(0, 900), st.integers(0, 60), st.text(max_size=8))
def test_a_torn_print_is_read(text: str, at: int, size: int, noise: str) -> None:
    read_print(text[:at] + noise + text[at + size :])


@pytest.mark.skipif(not NAMES, reason=f"the corpus of jobs is not at {JOBS}")
@pytest.mark.parametrize("name", NAMES)
def test_graphs_are_those_that_real_logs_hold(name: str) -> None:
    truth = json.loads((JOBS / name / "truth.json").read_bytes())
    log = gzip.decompress((JOBS / name / "logs" / "rank000.log.gz").read_bytes()).decode("utf-8", "replace")
    inits: list[list[str]] = [[]]
    for row in re.findall("NCCL INFO (.*)", log):
        if "Init START" in row:
            inits.append([])
        inits[-1].append(row)
    prints = [read_print("\n".join(rows)) for rows in inits]
    lines = [
        [str(graph.pattern), str(graph.cross_nic), str(graph.channels), f"{graph.bw_intra:.6f}",
         f"{graph.bw_inter:.6f}", graph.type_intra, graph.type_inter, str(int(graph.same_channels))]
        for made in prints for graph in made.graphs
    ]  # fmt: skip
    assert lines == truth["counted"]["patterns_rank0"]
    assert all(len(graph.orders) == graph.channels for made in prints for graph in made.graphs)
    for made in prints:
        for device in made.system.devices.values() if made.system else ():
            assert device.parent or device.kind in ("CPU", "NVS")
