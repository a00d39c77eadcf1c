"""A line that is the verdict counts alone: without Init, Using or Connected lines around it."""

from __future__ import annotations

import pytest

from tests.checks.excerpts import HEAD, WARN, found, one, result_of
from tests.tables import examples
from topodiag.model.finding import Confidence, Severity


@examples("words")
def test_gpudirect_off_for_distance_counts_alone(words: str) -> None:
    finding = one("GDR002", HEAD + words)
    assert finding.severity is Severity.WARNING
    assert "distance 7 where NCCL goes up to 4" in finding.observed
    assert [origin.text for origin in finding.evidence] == [words]


def test_a_gpu_with_a_nearer_nic_is_not_too_far() -> None:
    lines = [
        "GPU Direct RDMA Disabled for GPU 1b000 / HCA 4 (distance 7 > 4)",
        "GPU Direct RDMA Enabled for GPU 1b000 / HCA 0 (distance 3 <= 4), read 1",
    ]
    assert not found("GDR002", *(HEAD + line for line in lines))


def test_only_the_gpu_without_any_near_nic_is_counted() -> None:
    lines = [
        "GPU Direct RDMA Enabled for GPU 1b000 / HCA 0 (distance 3 <= 4), read 1",
        "GPU Direct RDMA Disabled for GPU 1b000 / HCA 1 (distance 7 > 4)",
        "GPU Direct RDMA Disabled for GPU 43000 / HCA 0 (distance 7 > 4)",
        "GPU Direct RDMA Disabled for GPU 43000 / HCA 1 (distance 7 > 4)",
    ]
    assert "for 1 GPU:" in one("GDR002", *(HEAD + line for line in lines)).message


def test_a_distance_that_a_setting_made_is_the_settings() -> None:
    lines = [
        "NCCL_NET_GDR_LEVEL set by environment to LOC",
        "GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 3 > 0)",
    ]
    assert not found("GDR002", *(HEAD + line for line in lines))


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


def test_the_same_words_at_level_info_are_no_fault() -> None:
    assert not result_of(HEAD + "Attribute class of node nic not found\n").findings


def test_mnnvl_that_does_not_work_counts_alone() -> None:
    words = "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration."
    assert one("NVL005", WARN + words).confidence is Confidence.HIGH


def at(host: str, words: str, dev: int = 0) -> str:
    return f"{host}:{100 + dev}:{100 + dev} [{dev}] NCCL INFO {words}"


@examples("words")
def test_connects_that_are_tried_again_count_alone(words: str) -> None:
    finding = one("NET002", HEAD + words)
    assert finding.severity is Severity.WARNING
    assert [origin.text for origin in finding.evidence] == [words]


def test_a_refused_connect_is_tried_again_in_every_job_that_starts() -> None:
    assert not found("NET002", HEAD + "Call to connect returned Connection refused, retrying")


def test_tries_before_an_init_that_completed_are_no_fault() -> None:
    init = "ncclCommInitRank comm 0x5562 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x9f - Init "
    other = init.replace("rank 0", "rank 1").replace("1b000", "2b000")
    lines = [at("n0", "Call to connect returned Connection timed out, retrying"),
             at("n0", init + "START"), at("n0", init + "COMPLETE"),
             at("n1", other + "START", 1), at("n1", other + "COMPLETE", 1)]  # fmt: skip
    assert not found("NET002", *lines)


def test_a_peer_at_the_address_of_the_hosts_own_bridge_is_the_wrong_interface() -> None:
    failed = WARN + "socketStartConnect: Connect to 172.17.0.2<38847> failed : Software caused connection abort"
    assert "172.17.0.2" in one("NET002", HEAD + "Bootstrap : Using eth0:172.17.0.2<0>", failed).message


def test_shared_memory_between_ranks_counts_alone_as_a_note() -> None:
    finding = one("P2P001", HEAD + "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct")
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.LOW)


def test_the_network_between_ranks_of_one_host_counts_alone() -> None:
    lines = [at("n0", "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0"),
             at("n0", "Channel 00/0 : 0[0] -> 1[1] [receive] via NET/Socket/0", 1)]  # fmt: skip
    assert "talk over the network" in one("P2P001", *lines).message


def test_machines_that_share_a_host_name_are_not_one_host() -> None:
    lines = [at("localhost", "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"),
             "localhost:7:7 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [receive] via NET/Socket/0"]  # fmt: skip
    assert not found("P2P001", *lines)


def test_sockets_count_alone() -> None:
    assert one("NET001", HEAD + "Channel 00/0 : 3[3] -> 8[0] [receive] via NET/Socket/0").severity is Severity.INFO


def test_a_library_that_is_not_there_is_why_sockets_are_used() -> None:
    finding = one("NET001", HEAD + "Failed to open libibverbs.so[.1]", HEAD + "Using network Socket")
    assert finding.severity is Severity.INFO, "a workstation has no RDMA device, and so no library for it"
    assert "libibverbs" in finding.evidence[0].text


def test_one_node_with_sockets_for_nobody_is_not_judged() -> None:
    init = "ncclCommInitRank comm 0x5562 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x9f - Init "
    assert not found("NET001", HEAD + "Using network Socket", HEAD + init + "START", HEAD + init + "COMPLETE")


@examples("words")
def test_warnings_of_sharp_and_collnet_count_alone(words: str) -> None:
    result = result_of(WARN + words + "\n")
    assert [finding.id for finding in result.findings] == ["NET005"]
    assert not result.troubles()


def test_a_plugin_that_gives_up_counts_alone() -> None:
    result = result_of(WARN + "NET/OFI Only EFA provider is supported\n")
    assert [(finding.id, finding.severity) for finding in result.findings] == [("NET005", Severity.WARNING)]


def test_a_hint_at_acs_counts_alone() -> None:
    words = "HINT: In many cases this error occurs when ACS is enabled which would break GPU Direct RDMA protocol."
    assert one("PCI004", HEAD + words).confidence is Confidence.LOW


def test_no_hint_is_no_judgement_of_acs() -> None:
    assert not found("PCI004", HEAD + "HINT: Default value is 20, which is ~30 seconds before error.")


def test_one_rank_alone_counts_alone_and_several_are_a_warning() -> None:
    assert one("JOB001", HEAD + "Channel 00/02 : 0").severity is Severity.INFO
    init = "ncclCommInitRank comm 0x{0}0 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId {0}b000 commId 0x{0}9 - Init {1}"
    lines = [at("n0", init.format(n, word), n) for n in (1, 2) for word in ("START", "COMPLETE")]
    assert one("JOB001", *lines).severity is Severity.WARNING


def fabric(host: str, uuid: str, clique: str = "0x7ffe", bus: str = "0x801000", mask: str = "0xaa") -> str:
    return at(host, f"MNNVL busId {bus} fabric UUID {uuid} cliqueId {clique} state 3 healthMask {mask}")


def test_trays_of_two_clusters_with_one_clique_number_are_two_domains() -> None:
    lines = [fabric(host, uuid) for host, uuid in (("a", "1.2"), ("b", "1.2"), ("c", "3.4"), ("d", "3.4"))]
    finding = one("NVL005", *lines)
    assert finding.severity is Severity.INFO
    assert "2 NVLink domains: different clusters" in finding.message


def test_a_tray_that_is_alone_in_its_domain_is_a_warning() -> None:
    finding = one("NVL005", fabric("a", "1.2"), fabric("b", "1.2"), fabric("c", "3.4"))
    assert (finding.severity, finding.where.nodes) == (Severity.WARNING, ("c",))


def test_gpus_of_one_tray_in_two_cliques_are_an_error() -> None:
    finding = one("NVL005", fabric("a", "1.2", "0x1"), fabric("a", "1.2", "0x2", bus="0x901000"))
    assert finding.severity is Severity.ERROR


def test_one_domain_and_a_mask_of_fields_that_are_false_are_healthy() -> None:
    assert not found("NVL005", fabric("a", "1.2"), fabric("b", "1.2"))


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


def test_interfaces_of_sockets_are_no_rdma_devices() -> None:
    lines = [HEAD + "NET/Socket : GPU Direct RDMA Disabled for HCA 1 'eno3'", HEAD + "Using network Socket"]
    assert not found("GDR001", *lines)
    assert one("NET001", *lines).severity is Severity.INFO


@examples("place", "text", "told")
def test_what_cuda_refuses_where_nccl_sets_nvlink_sharp_up_is_of_the_fabric(place: str, text: str, told: bool) -> None:
    findings = result_of(f"n1:7:70 [0] {place} NCCL WARN {text}\nn1:7:70 [0] NCCL INFO {place} -> 1\n").findings
    assert any(finding.id == "NVL005" for finding in findings) is told
