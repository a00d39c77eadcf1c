"""A line that is the verdict counts alone: without Init, Using or Connected lines around it."""

from __future__ import annotations

import pytest

from tests.checks.excerpts import HEAD, WARN, found, one, result_of
from tests.tables import examples
from topodiag.model.finding import Severity


@examples("words")
def test_gpudirect_off_for_distance_counts_alone(words: str) -> None:
    finding = one("GDR002", HEAD + words)
    assert finding.severity is Severity.WARNING
    assert "distance 7 where NCCL goes up to 4" in finding.observed
    assert [origin.text for origin in finding.evidence] == [words]


@pytest.mark.parametrize("words", ["(no module)", ""])
def test_gpudirect_off_for_a_device_counts_alone_and_its_line_is_the_evidence(words: str) -> None:
    line = f"NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' {words}".rstrip()
    finding = one("GDR001", HEAD + line)
    assert "mlx5_0" in finding.observed
    assert [origin.text for origin in finding.evidence] == [line]


def test_the_disabled_line_is_the_evidence_and_not_the_list_of_devices() -> None:
    line = "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"
    finding = one("GDR001", HEAD + "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", HEAD + line)
    assert [origin.text for origin in finding.evidence] == [line]


@pytest.mark.parametrize(
    "line",
    [
        WARN + "Cuda failure 802 'system not yet initialized'",
        WARN + "Cuda failure 'system not yet initialized'",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
    ],
)
def test_error_802_names_the_fabric(line: str) -> None:
    finding = one("NVL005", line)
    assert finding.severity is Severity.ERROR
    assert any("nvidia-fabricmanager" in step for step in finding.fix)


def test_a_failed_bind_of_multicast_memory_names_the_fabric() -> None:
    words = "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'not permitted'."
    finding = one("NVL005", WARN + words)
    assert "NVLink SHARP cannot be set up" in finding.message
    assert not any("out of memory" in step for step in finding.fix)


@examples("words")
def test_a_topology_that_nccl_cannot_hold_or_read_counts_alone(words: str) -> None:
    assert one("TOP001", WARN + words).severity is Severity.ERROR


def at(host: str, words: str, dev: int = 0) -> str:
    return f"{host}:{100 + dev}:{100 + dev} [{dev}] NCCL INFO {words}"


@examples("words")
def test_connects_that_are_tried_again_count_alone(words: str) -> None:
    finding = one("NET002", HEAD + words)
    assert finding.severity is Severity.WARNING
    assert [origin.text for origin in finding.evidence] == [words]


@examples("words")
def test_warnings_of_sharp_and_collnet_count_alone(words: str) -> None:
    result = result_of(WARN + words + "\n")
    assert [finding.id for finding in result.findings] == ["NET005"]
    assert not result.troubles()


def test_a_plugin_that_gives_up_counts_alone() -> None:
    result = result_of(WARN + "NET/OFI Only EFA provider is supported\n")
    assert [(finding.id, finding.severity) for finding in result.findings] == [("NET005", Severity.WARNING)]


def system(pcie: list[float]) -> list[str]:
    rows = ["=== System : maxBw 48.0 totalBw 48.0 ===", "CPU/0-0 (1/1/4)"]
    rows += [f"+ PCI[{gbs:.1f}] - GPU/0-{gpu + 1}b000 ({gpu})" for gpu, gbs in enumerate(pcie)]
    return [HEAD + row for row in [*rows, "=========================================="]]


def test_a_gpu_at_3_gbs_among_siblings_at_48_is_narrow() -> None:
    finding = one("PCI001", *system([48.0] * 5 + [3.0] + [48.0] * 2))
    assert finding.cost.gbs_lost == pytest.approx(45.0)
    assert "GPU/0-6b000" in finding.message
    assert "PCI[3.0]" in finding.evidence[0].text


@pytest.mark.parametrize("pcie", [[48.0] * 8, [24.0, 48.0], [24.0] * 4 + [48.0] * 4, [12.0]])
def test_links_of_one_width_or_of_cards_of_two_kinds_are_not_narrow(pcie: list[float]) -> None:
    assert not found("PCI001", *system(pcie))


def test_without_a_print_it_is_said_where_a_narrow_link_is_seen() -> None:
    (outcome,) = (outcome for outcome in result_of(HEAD + "Using network IB\n").outcomes if outcome.check == "PCI001")
    assert "topodiag scan" in outcome.why


def mesh(there: str, back: str) -> list[str]:
    rows = ["=== System : maxBw 40.0 totalBw 40.0 ===", "CPU/0-0 (1/1/4)", "+ PCI[24.0] - GPU/0-1b000 (0)",
            f"              + NVL[{there}] - GPU/0-2b000", "+ PCI[24.0] - GPU/0-2b000 (1)",
            f"              + NVL[{back}] - GPU/0-1b000", "=========================================="]  # fmt: skip
    return [HEAD + row for row in rows]


def test_an_nvlink_whose_directions_differ_is_found_in_the_print() -> None:
    assert "40 GB/s of NVLink one way, 20 GB/s back" in one("TOP004", *mesh("40.0", "20.0")).message
    assert not found("TOP004", *mesh("40.0", "40.0"))


def test_networks_that_differ_are_shown_by_the_lines_that_say_so_with_their_hosts() -> None:
    lines = [at(host, words) for host, network in (("n0", "IB"), ("n1", "Socket"))
             for words in ("cudaDriverVersion 12040", f"Using network {network}")]  # fmt: skip
    texts = [origin.text for origin in one("NET007", *lines).evidence]
    assert texts == ["n1: Using network Socket", "n0: Using network IB"]


@examples("place", "text", "told")
def test_what_cuda_refuses_where_nccl_sets_nvlink_sharp_up_is_of_the_fabric(place: str, text: str, told: bool) -> None:
    findings = result_of(f"n1:7:70 [0] {place} NCCL WARN {text}\nn1:7:70 [0] NCCL INFO {place} -> 1\n").findings
    assert any(finding.id == "NVL005" for finding in findings) is told
