"""What no finding explains is listed: "no faults found" never stands beside a line that tells of a fault."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from tests.evidence.filled import node_of
from tests.tables import examples, texts
from topodiag.app.scan import scan
from topodiag.checks.pcie.errors import PcieErrors
from topodiag.model.finding import Severity, Status
from topodiag.model.result import Result
from topodiag.report.interface import Style
from topodiag.report.page import print_drawn
from topodiag.report.table import draw_result


def judged(text: str, folder: Path) -> Result:
    (folder / "dmesg.txt").write_text(text)
    return scan([str(folder / "dmesg.txt")])


@examples("line")
def test_a_kernel_message_that_no_rule_explains_is_listed(line: str, tmp_path: Path) -> None:
    result = judged(f"[ 5000.000001] {line}\n", tmp_path)
    assert result.findings == ()
    (trouble,) = result.troubles()
    assert line in trouble.text


def test_an_error_of_amds_display_spoils_no_verdict_and_one_beside_a_finding_is_not_listed(tmp_path: Path) -> None:
    display = "[    9.1] amdgpu 0000:0c:00.0: [drm:amdgpu_dm_init [amdgpu]] *ERROR* No EDID read.\n"
    assert judged(display, tmp_path).troubles() == ()
    block = "[    8.7] [drm:amdgpu_device_init.cold [amdgpu]] *ERROR* sw_init of IP block <psp> failed -22\n"
    start = "[    8.8] amdgpu 0000:43:00.0: amdgpu: Fatal error during GPU init\n"
    result = judged(block + start, tmp_path)
    assert [finding.id for finding in result.findings] == ["GPU003"]
    assert result.troubles() == ()


def test_what_a_finding_speaks_of_is_not_listed_again(tmp_path: Path) -> None:
    text = (
        "[ 5000.000001] NVRM: _kgspLogXid119: ****** GSP Timeout ******\n"
        "[ 5000.000002] NVRM: Xid (PCI:0000:1b:00): 119, pid=71, name=a, Timeout after 6s of waiting for RPC response\n"
    )
    result = judged(text, tmp_path)
    assert [finding.id for finding in result.findings] == ["GPU003"]
    assert result.troubles() == ()


def test_lines_that_mean_nothing_carry_the_reason_and_do_not_spoil_the_verdict(tmp_path: Path) -> None:
    result = judged(
        "[ 5000.1] mlx5_core 0000:5c:00.0: mlx5_cmd_out_err:838:(pid 1): ACCESS_REG(0x805) failed\n", tmp_path
    )
    assert result.troubles() == ()
    assert result.unexplained[0].harmless


def test_uncorrectable_pcie_errors_of_the_kernel_log_are_found_and_a_few_corrected_ones_are_not() -> None:
    fatal = "[ 9000.1] pcieport 0000:99:04.0: AER: Uncorrectable (Fatal) error message received from 0000:99:04.0\n"
    (finding,) = PcieErrors().judge(node_of(fatal)).findings
    assert finding.severity is Severity.WARNING
    corrected = "[ 9000.1] pcieport 0000:99:04.0: AER: Corrected error message received from 0000:9d:00.0\n"
    assert PcieErrors().judge(node_of(corrected * 3)).status is not Status.FINDING
    disk = "[ 9000.1] nvme 0000:9a:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer\n"
    assert PcieErrors().judge(node_of(disk)).status is not Status.FINDING


TEXTS = texts(__file__)
P2P = TEXTS["p2p"]


def test_a_peer_to_peer_table_alone_is_judged_and_drawn(tmp_path: Path) -> None:
    result = judged(P2P, tmp_path)
    (trouble,) = result.troubles()
    assert "2 of 3 pairs" in trouble.text
    assert "CNS" in trouble.text
    stream = StringIO()
    print_drawn(draw_result, result, stream, Style(width=100))
    page = stream.getvalue()
    assert "refused by the chipset" in " ".join(page.split())
    assert "no faults found" not in page


def test_a_table_in_which_all_pairs_have_access_has_no_trouble(tmp_path: Path) -> None:
    assert judged(P2P.replace("\tCNS", "\tOK"), tmp_path).troubles() == ()
