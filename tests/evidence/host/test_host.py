"""What tools and files say of a host: settings, parameters of NCCL, NUMA nodes, the system, processes, pods."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, node_of, read, recognises, text_of, value, why
from tests.tables import examples, texts
from topodiag.app.scan import scan
from topodiag.checks.shared.tables import reported_by_tables
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.kubernetes import KubectlNode
from topodiag.evidence.host.processes import Processes
from topodiag.evidence.host.settings import as_nccl_reads
from topodiag.evidence.host.slurm_nodes import kind_of
from topodiag.evidence.interface import Blob
from topodiag.evidence.registry import recognise
from topodiag.model.events import Trust
from topodiag.model.system import Process
from topodiag.words.unfilled import is_unfilled

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"


@pytest.mark.parametrize(
    ("line", "read_as"),
    [
        ("NCCL_DEBUG=INFO", ("NCCL_DEBUG", "INFO")),
        ("NCCL_DEBUG=INFO ", ("NCCL_DEBUG", "INFO ")),
        ("NCCL_IB_HCA = mlx5", ("NCCL_IB_HCA ", " mlx5")),
        ("NCCL_IB_HCA==mlx5_0:1", ("NCCL_IB_HCA", "=mlx5_0:1")),
        ('NCCL_ALGO="Ring"', ("NCCL_ALGO", '"Ring"')),
        ("export NCCL_ALGO=Ring", ("export NCCL_ALGO", "Ring")),
        ("NCCL_ALGO=Ring # fast", ("NCCL_ALGO", "Ring # fast")),
        (" # NCCL_ALGO=Ring", (" # NCCL_ALGO", "Ring")),
        ("#NCCL_ALGO=Ring", None),
        ("NCCL_ALGO Ring", None),
        ("", None),
        ("NCCL_A=" + "x" * 2000, ("NCCL_A", "x" * 1023)),
    ],
)
def test_a_conf_line_is_read_to_the_letter_as_nccl_reads_it(line: str, read_as: tuple[str, str] | None) -> None:
    assert as_nccl_reads(line) == read_as


def test_no_other_kind_of_text_in_the_wild_is_taken_for_a_host_format() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not here")
    kinds = ("sys-pci", "sys-cpu", "os-state", "settings", "lspci", "systemctl", "kernel-log")
    wrong = []
    for folder in ("topo_m", "logs", "nccl_tests", "pairwise", "topo"):
        for path in sorted((CORPUS / folder).iterdir()):
            if path.suffix in (".txt", ".xml", ".csv"):
                text = path.read_text(errors="replace")[:65536]
                wrong += [(path.name, kind) for kind in kinds if recognises(kind, text)]
    assert wrong == []


@given(st.lists(st.text(max_size=40), max_size=12))
def test_every_line_of_any_conf_file_is_kept(lines: list[str]) -> None:
    clean = ["".join(char for char in line if char.isprintable()) for line in lines]
    clean = [line for line in clean if not is_unfilled(line) or " " not in line]  # messages of a program
    draft, _ = read("settings", "".join(f"{line}\n" for line in clean), "nccl.conf")
    assert [line.text for line in draft.conf_lines] == clean


# --- `ncclparam -l` becomes settings: what was set, and never what is a default


TEXTS = texts(__file__)
DUMP = TEXTS["dump"]


def test_what_is_set_is_a_setting_of_the_node_and_a_default_is_none(tmp_path: Path) -> None:
    place = tmp_path / "params.txt"
    place.write_text(DUMP)
    result = scan([str(place)])
    assert [item.kind for item in result.inputs] == ["nccl-params"]
    assert [(setting.name, setting.value) for setting in result.nodes[0].settings] == [
        ("NCCL_P2P_DISABLE", "1"),
        ("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1"),
    ]


def test_it_is_known_by_its_second_line_whatever_stands_around() -> None:
    assert recognise(DUMP)[:1] == ("nccl-params",)
    assert "nccl-params" not in recognise("Current value=1 set_by=me\n")


# --- reasons for which a node is out of service: which part they name, and which tell of no fault -------------


@examples("reason", "kind")
def test_a_reason_names_a_part(reason: str, kind: str) -> None:
    assert kind_of(reason) == kind


# --- numactl -H: processors of NUMA nodes, and a node whose memory is gone


TEXT = TEXTS["text"]


def test_a_node_has_its_processors() -> None:
    node = node_of(TEXT.format(cpus="4 5 6 7", size=516000))
    assert [(numa_node.id, numa_node.cpus.value) for numa_node in node.numa] == [(0, "0-3"), (1, "4-7")]
    assert not reported_by_tables(node)


@pytest.mark.parametrize(("cpus", "told"), [("4 5 6 7", 1), ("", 0)], ids=["with processors", "memory alone is none"])
def test_processors_without_memory_are_told(cpus: str, told: int) -> None:
    assert len(reported_by_tables(node_of(TEXT.format(cpus=cpus, size=0)))) == told


# --- kernel and driver state as a tree


DMI = "sys/class/dmi/id"
HOST = text_of("os-state", "HOST")


@examples("vendor", "product", "word")
def test_the_hypervisor_is_told_by_the_firmware_or_unknown(vendor: str, product: str, word: str | None) -> None:
    draft, _ = read("os-state", f"= {DMI}/sys_vendor\t{vendor}\n= {DMI}/product_name\t{product}\n")
    os = draft.single("os")
    assert value(os, "virtualization") == word
    assert (why(os, "virtualization") != "") == (word is None)


def test_bare_metal_by_its_firmware_yields_to_the_processors_hypervisor_flag() -> None:
    draft, _ = read("os-state", HOST)
    flagged, _ = read("sys-cpu", "= proc/cpuinfo\tvendor_id\t: x\n= proc/cpuinfo\tflags\t: hypervisor\n")
    bare = draft.single("os").offers["virtualization"][0]
    guest = flagged.single("os").offers["virtualization"][0]
    named = read("os-state", f"= {DMI}/sys_vendor\tQEMU\n")[0].single("os").offers["virtualization"][0]
    assert bare.trust < guest.trust < named.trust


@examples("vendor", "product", "name")
def test_the_system_is_named_by_vendor_and_product(vendor: str, product: str, name: str | None) -> None:
    draft, _ = read("os-state", f"= {DMI}/sys_vendor\t{vendor}\n= {DMI}/product_name\t{product}\n")
    assert value(draft.single("node"), "system") == name


@examples("lines", "word")
def test_the_container_is_told_by_its_marks_or_unknown(lines: str, word: str | None) -> None:
    draft, _ = read("os-state", lines)
    assert value(draft.single("os"), "container") == word


# --- processes with a GPU open, as the collector wrote them


ONE: dict[str, Any] = json.loads(text_of("processes", "ONE"))


def fill(document: Any) -> NodeDraft:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return draft_by(Processes(), Blob("json/processes.json", data))


def one(**more: Any) -> Process:
    return fill({"processes": [{**ONE, **more}]}).processes[0]


@pytest.mark.parametrize("bad", [None, 3, "x", [], ["a"], {"a": 1}, True, -1, "0-99999999999999"])
def test_a_wrong_type_costs_only_that_value(bad: Any) -> None:
    for key in ("name", "gpus", "cpus_allowed", "nccl_env", "error"):
        assert one(**{key: bad}).pid == 4711
    assert one(cpus_allowed=bad).cpus_allowed.value is None
    assert one(cpus_allowed=bad).gpus == (0, 3)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers())


@given(st.lists(st.dictionaries(st.sampled_from([*ONE]), VALUES), max_size=4))
def test_any_values_are_survived(processes: list[dict[str, Any]]) -> None:
    fill({"processes": [*processes, {**ONE, "pid": 2**20}]})
    assert fill({"processes": [*processes, {**ONE, "pid": 2**31}]}).processes[-1].gpus == (0, 3)


# --- kubectl describe node: GPUs that are had and given out, among siblings


NODE = TEXTS["node"]


def pod(text: str) -> list[tuple[str, str]]:
    draft = NodeDraft()
    KubectlNode().read(Blob("k.txt", text.encode()), draft)
    events = reported_by_tables(assemble(draft, "n"))
    assert {event.trust for event in events} <= {Trust.AGENT}
    return [(event.kind, event.text) for event in events]


@examples("counts", "told")
def test_a_node_that_gives_out_fewer_gpus_is_told(counts: list[tuple[int, int]], told: list[str]) -> None:
    text = "".join(NODE.format(name=f"n{n}", has=has, gives=gives) for n, (has, gives) in enumerate(counts))
    assert KubectlNode().recognises(text)
    assert pod(text) == [("gpu.count_low", text) for text in told]
