"""One tool's output alone is judged: lspci, ibstat, the kernel log of an adapter, without the rest of the machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.checks.nic.errors import NicPortErrors
from topodiag.checks.nic.rate import NicPortSlow
from topodiag.checks.nic.state import NicPortDown
from topodiag.checks.nvlink.fabric import FabricNotReady
from topodiag.checks.pcie.acs import AcsBetweenPeers
from topodiag.model.devices import Gpu
from topodiag.model.finding import Confidence, Finding, Outcome, Severity, Status

ON = "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
OFF = "ACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"


def only(outcome: Outcome) -> Finding:
    assert outcome.status is Status.FINDING, outcome.why
    (finding,) = outcome.findings
    return finding


@pytest.mark.parametrize("text", [f"\t\t{ON}\t\t{OFF}", f"$ sudo lspci -vvv | grep ACSCtl\n\t\t{ON}", ON])
def test_acs_by_grep_alone_is_a_warning_of_medium_confidence(text: str) -> None:
    finding = only(AcsBetweenPeers().judge(node_of(text)))
    assert (finding.id, finding.severity, finding.confidence) == ("PCI004", Severity.WARNING, Confidence.MEDIUM)


def ibstat(name: str, state: str, rate: int, image: str, node: str = "") -> str:
    phys = {"Active": "LinkUp", "Down": "Polling"}[state]
    return (
        f"CA '{name}'\n\tCA type: MT4129\n\tNode GUID: {node or image}\n\tSystem image GUID: {image}\n\tPort 1:\n"
        f"\t\tState: {state}\n\t\tPhysical state: {phys}\n\t\tRate: {rate}\n\t\tLink layer: InfiniBand\n"
    )


A, B, C = "0xb83fd203009f1a2e", "0xb83fd203009f1a4e", "0xb83fd203009f1a6e"


def test_ibstat_alone_shows_a_port_that_is_down() -> None:
    text = ibstat("mlx5_0", "Down", 10, A) + ibstat("mlx5_1", "Active", 400, B)
    finding = only(NicPortDown().judge(node_of(text)))
    assert finding.severity is Severity.ERROR
    assert finding.where.nics == ("mlx5_0",)


def test_a_second_port_that_no_card_uses_is_silent_in_ibstat_alone() -> None:
    text = "".join(
        ibstat(f"mlx5_{2 * at}", "Active", 400, image, f"{image[:-1]}0")
        + ibstat(f"mlx5_{2 * at + 1}", "Down", 10, image, f"{image[:-1]}1")
        for at, image in enumerate((A, B))
    )
    assert NicPortDown().judge(node_of(text)).status is Status.CLEAN


def test_ibstat_alone_shows_a_port_slower_than_its_siblings() -> None:
    text = "".join(
        ibstat(f"mlx5_{at}", "Active", rate, image) for at, (rate, image) in enumerate(((200, A), (400, B), (400, C)))
    )
    assert only(NicPortSlow().judge(node_of(text))).where.nics == ("mlx5_0",)


@examples("lines", "severity", "word")
def test_the_kernel_log_alone_shows_what_an_adapter_suffers(
    lines: tuple[str, ...], severity: Severity, word: str
) -> None:
    text = "".join(f"[{9000 + at}.000001] {line}\n" for at, line in enumerate(lines))
    finding = only(NicPortErrors().judge(node_of(text)))
    assert finding.severity is severity
    assert word in finding.message


def test_a_link_that_is_down_by_the_last_word_of_the_log_is_an_error_and_one_that_came_back_a_warning() -> None:
    down = "[9000.1] mlx5_core 0000:c0:00.0 ibp192s0: Link down\n"
    finding = only(
        NicPortDown().judge(
            node_of(f"[ 8999.1] mlx5_core 0000:c0:00.0: Port module event: module 0, Cable unplugged\n{down}")
        )
    )
    assert finding.severity is Severity.ERROR
    assert "0000:c0:00.0" in finding.message
    back = node_of(down + "[9012.1] mlx5_core 0000:c0:00.0 ibp192s0: Link up\n")
    assert NicPortDown().judge(back).status is not Status.FINDING
    once = only(NicPortErrors().judge(back))
    assert (once.severity, once.confidence) == (Severity.WARNING, Confidence.LOW)
    assert "came back once" in once.message
    assert NicPortErrors().judge(replace(back, gpus=(Gpu(0),))).status is not Status.FINDING


def test_links_that_train_while_the_machine_boots_are_no_flaps() -> None:
    text = "".join(
        f"[  {at}.1] mlx5_core 0000:c0:00.0 ib0: Link {'down' if at % 2 else 'up'}\n" for at in range(20, 40)
    )
    assert NicPortErrors().judge(node_of(text)).status is not Status.FINDING


MLXLINK = (
    "# mlxlink -d mlx5_5\n\nOperational Info\n----------------\nState          : Active\nPhysical state : LinkUp\n"
    "Speed          : IB-NDR\nWidth          : 4x\nRecommendation : {}\n"
)


@pytest.mark.parametrize("word", ["No issue was observed.", "Cable is unplugged.", "N/A"])
def test_what_the_firmware_does_not_blame_on_the_signal_is_no_finding(word: str) -> None:
    assert not NicPortErrors().judge(node_of(MLXLINK.format(word))).findings


SERVICE = (
    "× nvidia-fabricmanager.service - NVIDIA fabric manager service\n"
    "     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; vendor preset: enabled)\n"
    "     Active: {} since Tue 2026-02-10 04:12:51 UTC; 1 week 1 day ago\n"
)


@pytest.mark.parametrize("state", ["active (running)", "inactive (dead)"])
def test_a_fabric_manager_that_runs_or_was_not_started_is_no_finding_alone(state: str) -> None:
    assert not FabricNotReady().judge(node_of(SERVICE.format(state))).findings


def test_on_a_machine_without_nvswitches_its_failure_is_none() -> None:
    cards = "GPU 0: NVIDIA L40S (UUID: GPU-60c9f17e-9e3a-2d41-bb0c-1f5f5f1f6a20)\n"
    cards += "GPU 1: NVIDIA L40S (UUID: GPU-70c9f17e-9e3a-2d41-bb0c-1f5f5f1f6a20)\n"
    assert not FabricNotReady().judge(node_of(SERVICE.format("failed (Result: timeout)"), cards)).findings


@pytest.mark.parametrize(("word", "kind"), [("Polling", "no link partner"), ("Disable", "switched off")])
def test_mlxlink_alone_shows_a_port_that_is_down(word: str, kind: str) -> None:
    text = MLXLINK.format("Cable is unplugged").replace(": Active", f": {word}").replace(": LinkUp", ": N/A")
    assert kind in only(NicPortDown().judge(node_of(text.replace("IB-NDR", "N/A").replace("4x", "N/A")))).message


def rdma_links(*down: int, count: int = 8) -> str:
    words = {True: "DOWN physical_state POLLING", False: "ACTIVE physical_state LINK_UP"}
    lids = [65535 if n in down else n + 1 for n in range(count)]
    return "".join(f"link mlx5_{n}/1 lid {lid} state {words[n in down]}\n" for n, lid in enumerate(lids))


@pytest.mark.parametrize("text", [rdma_links(1, 3, 5, 7), rdma_links(3, count=4)], ids=["every second", "one of four"])
def test_ports_that_may_be_second_ones_are_no_finding(text: str) -> None:
    assert not NicPortDown().judge(node_of(text)).findings
