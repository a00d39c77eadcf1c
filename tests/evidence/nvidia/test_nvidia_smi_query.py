"""What the checks of PCIe links say of `nvidia-smi --query-gpu`; what is read of it is in a table of readings."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import node_of, read, text_of
from tests.pasted import loud, said
from tests.tables import examples
from topodiag.checks.pcie.links import NarrowPcieLink, SlowPcieLink

HEADER = "index, pcie.link.width.current, pcie.link.width.max, utilization.gpu [%]"


def test_a_gpu_without_a_bus_id_has_its_pcie_link_all_the_same() -> None:
    machine = node_of(f"{HEADER}\n0, 16, 16, 97 %\n1, 8, 16, 98 %\n2, 16, 16, 97 %\n")
    function = machine.pci_of(machine.gpus[1])
    assert (function.width.value, function.max_width.value) == (8, 16)
    findings = NarrowPcieLink().judge(machine).findings
    assert [finding.where.gpus for finding in findings] == [("GPU1",)]


def test_gen1_of_a_gpu_at_rest_is_no_fault() -> None:
    header = "index, pcie.link.gen.current, pcie.link.gen.max, utilization.gpu [%]"
    assert not SlowPcieLink().judge(node_of(f"{header}\n0, 1, 4, 0 %\n1, 1, 4, 0 %\n")).findings


# --- values of nvidia-smi's table that no check asks about: they leave open whether all is well, and are no fault

SOUND = "| N/A   31C    P0              61W / 400W |      3MiB / 81559MiB |      0%      Default |"
HEAD = "| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2     |\n"


def table(*second: str, name: str = "A100-SXM4-80GB") -> str:
    rows = (
        f"|   {index}  {name}   On  | 00000000:{index + 1:02X}:00.0 Off |                    0 |\n{text}\n"
        for index, text in enumerate(second)
    )
    return HEAD + "".join(rows)


@examples("row", "words")
def test_an_odd_value_is_quoted_and_leaves_open_whether_all_is_well(row: str, words: str, tmp_path: Path) -> None:
    answer = said(tmp_path, table(SOUND, row, SOUND))
    assert answer["verdict"]["state"] == "unknown"
    assert any(
        f"GPU1: {words}" in each or f"GPU1: its compute mode {words}" in each
        for each in answer["verdict"]["not_explained"]
    )
    assert not loud(tmp_path, table(SOUND, row, SOUND))


@examples("text")
def test_values_that_sound_machines_show_leave_nothing_open(text: str, tmp_path: Path) -> None:
    assert not said(tmp_path, text)["verdict"]["not_explained"]


# --- what `nvidia-smi -q` says as text, quoted, cut or with a bad value; its readings are rows of a table -----

REPORT = text_of("nvidia-smi-q", "REPORT")


@given(st.integers(0, len(REPORT)))
def test_a_report_cut_anywhere_keeps_the_gpus_before_the_cut(cut: int) -> None:
    whole = REPORT[:cut].count("Processes   ")
    assert len(list(read("nvidia-smi-q", REPORT[:cut])[0].entities("gpu"))) >= whole
